"""One trial: a cold and a warm process on one private, at first empty, compile cache."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

from gate.check.schedule import WHOLE, Content, compute_trial_s, has_other_code, plan_trial
from gate.check.work import Part, Unit
from gate.decide.evidence.steal import excuse_steal
from gate.decide.evidence.trials import drop_host_metrics, sum_up_disturbances
from gate.devices import is_target
from gate.lab.arms.checkouts import read_time
from gate.lab.host.fitness import HostSample, describe_host, find_crowd, read_host
from gate.lab.host.gpu import read_memory_share
from gate.lab.trials.bench import (
    Bench,
    LabSettings,
    check_disk,
    keep_cache,
    make_case_path,
    make_job,
    remove_cache,
    run_job,
    seed_cache,
)
from gate.lab.trials.opening import Lab
from gate.lab.workers.worker import load_result, note_dropped_variables, run_worker
from gate.metrics import OF_WARM
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.events import Noted
from gate.records.facts import Disturbance, Fact, list_distinct, name_words
from gate.records.protocol import Stage, WorkerResult, WorkerRole
from gate.records.run import CaseFailure, Conditions, Extent, FailureKind, Pairing, Trial

# Stands for a second process where a trial has none.
_NO_PROCESS = WorkerResult(role=WorkerRole.WARM, stage=Stage.START)


def measure_trial(lab: Lab, unit: Unit) -> Part:
    """Measure what is wanted of a trial; all there is where its code is not that of the trials before.

    A light trial of other code leaves out what that code does: its counters, memory and drift. So it is
    measured anew, even where that ends after the budget. Raises as :func:`run_trial`.
    """
    (case,), own, begun = unit.run.cases, unit.run.trials, time.monotonic()
    content = plan_trial(unit.metrics, own, lab.bench.settings.device)
    came = _measure_fit(lab, unit, content, begun)
    if content.extent is not Extent.WHOLE and not came.failures:
        alone = [one for one in own if one.pairing is Pairing.ALONE]
        if has_other_code((*alone, *came.trials)):
            came = _measure_fit(lab, unit, WHOLE, begun)
    if lab.bench.settings.traces and not came.failures:
        return replace(came, trials=tuple(add_trace(lab.bench, case, trial) for trial in came.trials))
    return came


def _measure_fit(lab: Lab, unit: Unit, content: Content, begun: float) -> Part:
    """Measure a trial, and once more where the host was not fit, as far as repeats and time allow.

    Counts alone are the same on any host. A repeat that somebody killed says nothing of the case, which ran
    before: that trial is kept.
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
    told = sum_up_disturbances(Code.REPEATED, [trial.conditions], unit.run.environment.cores)
    numbers = {**told.numbers, "trial": unit.index}
    lab.observe(Noted(fact=replace(told, cases=(case.id,), numbers=numbers)))
    again = run_trial(lab.bench, case, unit.index, content)
    if any(failure.kind is FailureKind.KILLED for failure in again.failures):
        warning = again.failures[0].quote(Code.REPEAT_KILLED)
        lab.observe(Noted(fact=warning))
        again = Part(trials=(replace(trial, warnings=(*trial.warnings, warning)),))
    repeated = (replace(one, conditions=replace(one.conditions, repeated=True)) for one in again.trials)
    return replace(again, trials=tuple(repeated))


def run_trial(bench: Bench, case: Case, index: int, content: Content = WHOLE) -> Part:
    """Measure ``case`` once; ``index`` counts from 1. The caches are gone afterwards, or kept for pairs.

    A trial that failed may have measured something: then both are there.

    Raises:
        MachineError: Too little disk, or the interpreter cannot be started.
    """
    check_disk(bench)
    begun, started = time.monotonic(), read_time()
    before = look_at_host(bench)
    try:
        seed_cache(bench)
        cold, warm, failure = _run_processes(bench, case, index, content)
        if failure is not None:
            shutil.rmtree(bench.find_kept(case), ignore_errors=True)
    finally:
        remove_cache(bench)
    if failure is not None:
        check_disk(bench)  # a full disk is the machine's fault, not the case's
        if not (cold.samples or warm.samples):
            return Part(failures=(failure,))
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
        trial = add_host(trial, (before, look_at_host(bench)), bench.settings)
    return Part(trials=(trial,), failures=(failure,) if failure else ())


def look_at_host(bench: Bench) -> HostSample:
    """Look at the host, and at its GPU's memory, which nobody should use: no worker of a trial is alive."""
    return replace(read_host(), foreign_memory=read_memory_share(bench.gpu))


def add_host(trial: Trial, samples: tuple[HostSample, HostSample], settings: LabSettings) -> Trial:
    """Add what happened on the host between both looks, and the settings that the trial did not get.

    The first look was before anything of the trial was started, the second once all of it has ended. Where
    counts alone are wanted, what depends on the host is dropped.
    """
    conditions = describe_host(trial.conditions, samples, settings.threads)
    if settings.counts_only:
        trial = replace(trial, samples=drop_host_metrics(trial.samples), undisturbed_s={})
    if Disturbance.CROWDED in conditions.disturbances:
        conditions = replace(conditions, crowd=find_crowd())  # most of them are still at work
    return replace(
        trial,
        conditions=conditions,
        warnings=(*trial.warnings, *note_dropped_variables(os.environ, of_stack=True)),
    )


def _run_processes(
    bench: Bench, case: Case, index: int, content: Content
) -> tuple[WorkerResult, WorkerResult, CaseFailure | None]:
    """Run the cold process, then the warm one unless it failed; of one that failed, what it had written."""
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
    """Stand in for the warm process of a target's trial, which has none: the first tells all there is."""
    return WorkerResult(role=WorkerRole.WARM, stage=Stage.DONE, samples=cold.samples)


def _load_part(bench: Bench, role: WorkerRole) -> WorkerResult:
    """Load what a failed process wrote before: each sample was complete when it was written."""
    left = load_result(Path(make_job(bench, role).request.result))
    told = Fact(code=Code.PROCESS_FAILED, names=name_words(role=role))
    part = left if isinstance(left, WorkerResult) else WorkerResult(role=role, stage=Stage.START)
    return replace(part, warnings=(*part.warnings, told))


def merge_results(blank: Trial, cold: WorkerResult, warm: WorkerResult, wall_s: float) -> Trial:
    """Join what both processes measured in ``wall_s`` seconds into one trial. Pure.

    Where both report something, the cold process is believed, except for what only a warm one can
    know. Stage times are summed; the overhead is the wall time that no stage but ``start`` explains.
    """
    stages_s = {
        stage: cold.stages_s.get(stage, 0.0) + warm.stages_s.get(stage, 0.0)
        for stage in (*cold.stages_s, *(stage for stage in warm.stages_s if stage not in cold.stages_s))
    }
    explained_s = sum(value for stage, value in stages_s.items() if stage != Stage.START)
    return replace(
        blank,
        samples={**warm.samples, **{one: was for one, was in cold.samples.items() if one not in OF_WARM}},
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
    """What either process imported; where one did not compare, nobody knows."""
    if cold.changed_imports is None or warm.changed_imports is None:
        return None
    return tuple(dict.fromkeys((*cold.changed_imports, *warm.changed_imports)))


def _merge_warnings(cold: WorkerResult, warm: WorkerResult) -> tuple[Fact, ...]:
    differing = sorted(
        key for key in cold.workload.keys() & warm.workload.keys() if cold.workload[key] != warm.workload[key]
    )
    told = [Fact(code=Code.PROCESSES_DISAGREE, names=name_words(subject=key)) for key in differing]
    return list_distinct((*cold.warnings, *warm.warnings, *told))


TRACE_FOLDER = "traces"
_NOT_TOLD = Fact(code=Code.NO_TRACE)


def add_trace(bench: Bench, case: Case, trial: Trial) -> Trial:
    """Add where torch's trace of such a trial lies, below the out directory, or why there is none.

    torch reads ``TORCH_TRACE`` as it is imported, so a forked worker cannot be told; and writing a trace
    takes time. So a process of its own compiles the case once more, on empty caches of its own, when all of
    the trial has ended. What goes wrong there is no failure of the case: its trial has been measured.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    begun = time.monotonic()
    name = make_case_path(case.id)
    path = TRACE_FOLDER / Path(bench.folder) / name.with_name(f"{name.name}-{trial.index}.log")
    problem = _record_trace(bench, case, trial.index, bench.settings.out / path)
    return replace(
        trial,
        trace="" if problem == _NOT_TOLD else str(path),
        stages_s={**trial.stages_s, Stage.TRACE: time.monotonic() - begun},
        unknown=(*trial.unknown, *([problem] if problem else [])),
    )


def _record_trace(bench: Bench, case: Case, index: int, path: Path) -> Fact | None:
    """Compile once in a process that imports torch itself, and keep what it wrote; what went wrong."""
    path.unlink(missing_ok=True)  # of an earlier run
    scratch = bench.scratch / TRACE_FOLDER
    own = replace(bench, scratch=scratch, toolchain=bench.toolchain or bench.scratch)
    written = scratch / "written"
    try:
        seed_cache(own)
        job = make_job(own, WorkerRole.TRACE, case, index)
        outcome = run_worker(replace(job, environment={**job.environment, "TORCH_TRACE": str(written)}))
        # A file a process: that of the worker itself is by far the largest.
        largest = max(written.glob("*.log"), key=lambda one: one.stat().st_size, default=None)
        if largest is None:
            return _NOT_TOLD
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(largest, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return outcome.quote(Code.TRACE_CUT) if isinstance(outcome, CaseFailure) else None
