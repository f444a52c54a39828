"""One trial: a cold and a warm process on one private, at first empty, compile cache."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

from gate.check.schedule import WHOLE, Content, compute_trial_s, has_other_code, plan_trial
from gate.check.work import Unit, UnitResult
from gate.decide.evidence.disturbed import drop_host_metrics, excuse_steal, sum_up_disturbances
from gate.devices import is_target
from gate.lab.arms.provenance import read_time
from gate.lab.host.fitness import HostSample, describe_host, read_crowd, read_host
from gate.lab.host.gpu import read_memory_share
from gate.lab.trials.bench import (
    Bench,
    LabSettings,
    check_disk,
    keep_cache,
    make_job,
    remove_cache,
    run_job,
    seed_cache,
)
from gate.lab.trials.opening import Lab
from gate.lab.trials.traces import add_trace
from gate.lab.workers.worker import load_result
from gate.lab.workers.worker_environment import note_dropped_variables
from gate.metrics import OF_WARM
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.events import Noted
from gate.records.facts import Disturbance, Fact, list_distinct, name_words
from gate.records.protocol import Stage, WorkerResult, WorkerRole
from gate.records.run import CaseFailure, Conditions, Extent, FailureKind, Pairing, Trial

# Stands for a second process where a trial has none.
_NO_PROCESS = WorkerResult(role=WorkerRole.WARM, stage=Stage.START)


def measure_trial(lab: Lab, unit: Unit) -> UnitResult:
    """Measure what is wanted of a trial.

    Where a light trial finds new code it is measured again as a whole, with counters, memory and drift, even
    beyond the budget. Raises as :func:`run_trial`.
    """
    (case,), trials, begun = unit.run.cases, unit.run.trials, time.monotonic()
    content = plan_trial(unit.metrics, trials, lab.bench.settings.device, unit.own_steal)
    came = _measure_fit(lab, unit, content, begun)
    if content.extent is not Extent.WHOLE and not came.failures:
        alone = [trial for trial in trials if trial.pairing is Pairing.ALONE]
        if has_other_code((*alone, *came.trials)):
            came = _measure_fit(lab, unit, WHOLE, begun)
    if lab.bench.settings.traces and not came.failures:
        return replace(came, trials=tuple(add_trace(lab.bench, case, trial) for trial in came.trials))
    return came


def _measure_fit(lab: Lab, unit: Unit, content: Content, begun: float) -> UnitResult:
    """Measure a trial, and once more where the host was not fit, as far as repeats and time allow.

    A repeat that was killed is no failure of the case.
    """
    (case,) = unit.run.cases
    first = run_trial(lab.bench, case, unit.index, content)
    excused = excuse_steal(first.trials, unit.own_steal)
    disturbed = [trial for trial in excused if trial.conditions.disturbances]
    if first.failures or lab.bench.settings.counts_only or not (disturbed and unit.repeats):
        return first
    (trial,) = first.trials
    at_s = unit.run.wall_s + time.monotonic() - begun
    if unit.limit_s is not None and at_s + compute_trial_s(trial) > unit.limit_s:
        return first
    fact = sum_up_disturbances(Code.REPEATED, [trial.conditions], unit.run.environment.cores)
    fact = replace(fact, cases=(case.id,), numbers={**fact.numbers, "trial": unit.index})
    lab.observe(Noted(fact=fact))
    again = run_trial(lab.bench, case, unit.index, content)
    if any(failure.kind is FailureKind.KILLED for failure in again.failures):
        warning = again.failures[0].quote(Code.REPEAT_KILLED)
        lab.observe(Noted(fact=warning))
        again = UnitResult(trials=(replace(trial, warnings=(*trial.warnings, warning)),))
    trials = [replace(trial, conditions=replace(trial.conditions, repeated=True)) for trial in again.trials]
    return replace(again, trials=tuple(trials))


def run_trial(bench: Bench, case: Case, index: int, content: Content = WHOLE) -> UnitResult:
    """Measure ``case`` once; ``index`` counts from 1. A trial that failed may still have measured something.

    Raises:
        MachineError: Too little disk, or the interpreter cannot be started.
    """
    check_disk(bench)
    begun, started = time.monotonic(), read_time()
    before = sample_host(bench)
    try:
        seed_cache(bench)
        cold, warm, failure = _run_processes(bench, case, index, content)
        if failure is not None:
            shutil.rmtree(bench.get_kept_caches(case), ignore_errors=True)
    finally:
        remove_cache(bench)
    if failure is not None:
        check_disk(bench)  # a full disk is the machine's fault, not the case's
        if not (cold.samples or warm.samples):
            return UnitResult(failures=(failure,))
    blank = Trial(
        case_id=case.id,
        index=index,
        arm=bench.arm.name,
        extent=content.extent,
        started=started,
        place=bench.place,
    )
    trial = merge_results(blank, cold, warm, time.monotonic() - begun)
    if not is_target(bench.settings.device):  # how fit the host was matters to what is timed
        trial = add_host(trial, (before, sample_host(bench)), bench.settings)
    return UnitResult(trials=(trial,), failures=(failure,) if failure else ())


def sample_host(bench: Bench) -> HostSample:
    """No worker of a trial is alive, so nobody should use the GPU's memory."""
    return replace(read_host(), foreign_memory=read_memory_share(bench.gpu))


def add_host(trial: Trial, samples: tuple[HostSample, HostSample], settings: LabSettings) -> Trial:
    """Without what depends on the host where counts alone are wanted."""
    conditions = describe_host(trial.conditions, samples, settings.threads)
    if settings.counts_only:
        trial = replace(trial, samples=drop_host_metrics(trial.samples), undisturbed_s={})
    if Disturbance.CROWDED in conditions.disturbances:
        conditions = replace(conditions, crowd=read_crowd())  # most of them are still at work
    return replace(
        trial,
        conditions=conditions,
        warnings=(*trial.warnings, *note_dropped_variables(os.environ, of_stack=True)),
    )


def _run_processes(
    bench: Bench, case: Case, index: int, content: Content
) -> tuple[WorkerResult, WorkerResult, CaseFailure | None]:
    has_warm = content.warm and not is_target(bench.settings.device)
    later = [make_job(bench, WorkerRole.WARM, case, index)] if has_warm else []
    cold = run_job(bench, make_job(bench, WorkerRole.COLD, case, index), later)
    if isinstance(cold, CaseFailure):
        return _load_part(bench, WorkerRole.COLD), _NO_PROCESS, cold
    keep_cache(bench, case)
    if not content.warm:
        return cold, _NO_PROCESS, None
    if not later:
        return cold, repeat_samples(cold), None  # nothing is run: a second process would find the same
    warm = run_job(bench, later[0])
    if isinstance(warm, CaseFailure):
        return cold, _load_part(bench, WorkerRole.WARM), warm
    return cold, warm, None


def repeat_samples(cold: WorkerResult) -> WorkerResult:
    """A target's trial has no warm process: it would find the same."""
    return WorkerResult(role=WorkerRole.WARM, stage=Stage.DONE, samples=cold.samples)


def _load_part(bench: Bench, role: WorkerRole) -> WorkerResult:
    left = load_result(Path(make_job(bench, role).request.result))
    warning = Fact(code=Code.PROCESS_FAILED, names=name_words(role=role))
    part = left if isinstance(left, WorkerResult) else WorkerResult(role=role, stage=Stage.START)
    return replace(part, warnings=(*part.warnings, warning))


def merge_results(blank: Trial, cold: WorkerResult, warm: WorkerResult, wall_s: float) -> Trial:
    """Join what both processes measured in ``wall_s`` seconds; the cold one has precedence.

    Overhead is the wall time that no stage but ``start`` explains.
    """
    stages_s = {
        stage: cold.stages_s.get(stage, 0.0) + warm.stages_s.get(stage, 0.0)
        for stage in (*cold.stages_s, *(stage for stage in warm.stages_s if stage not in cold.stages_s))
    }
    explained_s = sum(value for stage, value in stages_s.items() if stage != Stage.START)
    from_cold = {metric: values for metric, values in cold.samples.items() if metric not in OF_WARM}
    return replace(
        blank,
        samples={**warm.samples, **from_cold},
        undisturbed_s=cold.undisturbed_s,
        identity=cold.identity if cold.identity.digest else warm.identity,
        workload={**warm.workload, **cold.workload},
        graph_breaks=cold.graph_breaks or warm.graph_breaks,
        recompile_reasons=cold.recompile_reasons or warm.recompile_reasons,
        caches=warm.caches,
        worst=warm.worst,
        drift_definition=warm.drift_definition,
        unknown=list_distinct((*cold.unknown, *warm.unknown)),
        phases_s={**warm.phases_s, **cold.phases_s},
        kernels_s=cold.kernels_s,
        parts_s=cold.parts_s,
        options=cold.options,
        stages_s=stages_s,
        overhead_s=max(0.0, wall_s - explained_s),
        conditions=Conditions(
            canaries_s={**warm.conditions.canaries_s, **cold.conditions.canaries_s},
            throttled=tuple(dict.fromkeys((*cold.conditions.throttled, *warm.conditions.throttled))),
            foreign_processes=max(cold.conditions.foreign_processes, warm.conditions.foreign_processes),
        ),
        warnings=_merge_warnings(cold, warm),
        changed_imports=_merge_imports(cold, warm),
        packages={**warm.packages, **cold.packages},
        functions=warm.functions,
    )


def _merge_imports(cold: WorkerResult, warm: WorkerResult) -> tuple[str, ...] | None:
    """``None`` where one process did not compare."""
    if cold.changed_imports is None or warm.changed_imports is None:
        return None
    return tuple(dict.fromkeys((*cold.changed_imports, *warm.changed_imports)))


def _merge_warnings(cold: WorkerResult, warm: WorkerResult) -> tuple[Fact, ...]:
    differing = sorted(
        key for key in cold.workload.keys() & warm.workload.keys() if cold.workload[key] != warm.workload[key]
    )
    disagreements = [Fact(code=Code.PROCESSES_DISAGREE, names=name_words(subject=key)) for key in differing]
    return list_distinct((*cold.warnings, *warm.warnings, *disagreements))
