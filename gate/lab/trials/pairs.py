"""Pairs: one trial of the base and one of the head on one machine, their timed blocks alternating.

Processes differ by far more than alternating blocks, so both workers are kept alive. Where two do not fit on
the device, whole processes take turns.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gate.check.schedule import Content, is_base_first, plan_content
from gate.check.work import Unit, UnitResult
from gate.decide.evidence.functions import keep_changed
from gate.devices import get_kind, is_target
from gate.kinds import KIND_SPECS
from gate.lab.arms.provenance import read_time
from gate.lab.trials.bench import Bench, check_disk, make_case_path, make_job, seed_cache
from gate.lab.trials.opening import Lab
from gate.lab.trials.traces import add_trace
from gate.lab.trials.trials import add_host, merge_results, repeat_samples, sample_host
from gate.lab.workers.log_tail import name_shortage
from gate.lab.workers.turns import WorkerOutcome, run_timed, run_together, run_warm_together
from gate.lab.workers.worker import WorkerJob
from gate.records.cases import Case, Metric
from gate.records.protocol import Stage, WorkerResult, WorkerRole
from gate.records.run import BASE_ARM, CaseFailure, FailureKind, Pairing, Trial

# Messages of CUDA, ROCm, torch and their libraries where a device has no room for two, or lets only one in. A
# library that cannot allocate its handle is "not initialized".
_CROWDED = re.compile(
    r"out[ _]of[ _]memory|memoryallocation|alloc_failed|(cublas|cudnn|cusolver)_status_not_initialized"
    r"|busy or unavailable|devices?_?unavailable",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    base: Bench
    head: Bench
    base_case: Case
    head_case: Case


@dataclass(frozen=True, kw_only=True, slots=True)
class PairPlan:
    index: int
    content: Content
    pairing: Pairing
    kept: Path | None = None  # caches that hold the code of both arms, for the first pair to begin with

    @property
    def first(self) -> WorkerRole:
        return WorkerRole.COLD if self.content.compiles else WorkerRole.ROUNDS


def measure_lab_pair(lab: Lab, unit: Unit) -> UnitResult:
    gpu, (case,) = lab.bench.gpu, unit.run.cases
    (base_case,) = unit.run.base.cases if unit.run.base else (case,)
    alone = gpu is not None and gpu.exclusive  # the second arm's process would be turned away
    crowded = any(trial.pairing is Pairing.TURNS for trial in unit.run.trials)
    pairing = Pairing.TURNS if alone or crowded else Pairing.LIVE
    kept = find_shared_caches(lab, case, unchanged_code=unit.unchanged_code)
    plan = plan_pair(unit.metrics, unit.index, lab.bench.settings.device, pairing, kept)
    head = replace(lab.bench, settings=replace(lab.bench.settings, options=unit.options))
    return measure_pair(make_sides(lab.base, head, base_case, case), plan)


def find_shared_caches(lab: Lab, case: Case, *, unchanged_code: bool) -> Path | None:
    """Head's caches, if base's code is known to be in them.

    Not where code is found by a file's name: base would be given head's.
    """
    kept = lab.bench.get_kept_caches(case)
    is_known = unchanged_code and lab.base.arm.python == lab.bench.arm.python
    is_file = KIND_SPECS[case.kind].is_file
    return kept if is_known and not is_file and kept.is_dir() else None


def make_sides(base: Bench, head: Bench, base_case: Case, head_case: Case) -> Sides:
    return Sides(
        base=_make_side(base, head_case, BASE_ARM),
        head=_make_side(head, head_case, head.arm.name),
        base_case=base_case,
        head_case=head_case,
    )


def get_side_cache(bench: Bench, case: Case) -> Path:
    return replace(bench, scratch=bench.scratch / make_case_path(case.id)).trial_cache


def plan_pair(
    metrics: Collection[Metric], index: int, device: str, pairing: Pairing, kept: Path | None = None
) -> PairPlan:
    if is_target(device):  # nothing is timed: there are no blocks to alternate
        pairing = Pairing.TURNS
    content = plan_content(metrics, index, device, finds_code=kept is not None)
    return PairPlan(index=index, content=content, pairing=pairing, kept=kept)


def measure_pair(sides: Sides, plan: PairPlan) -> UnitResult:
    """An arm that fails is a failure of that arm, and the pair gives no trial.

    Raises:
        MachineError: Too little disk, or an interpreter cannot be started.
    """
    check_disk(sides.head)
    started, before = read_time(), sample_host(sides.head)
    for bench in (sides.base, sides.head):
        if plan.first is WorkerRole.COLD or not bench.trial_cache.is_dir():
            seed_cache(bench, None if plan.first is WorkerRole.COLD else plan.kept)
    outcomes = _run_rounds(sides, plan)
    failures = _list_failures(outcomes.values())
    if failures and plan.pairing is Pairing.LIVE and _failed_for_room(sides, failures):
        content = replace(plan.content, compiles=True)
        return measure_pair(sides, replace(plan, content=content, pairing=Pairing.TURNS))
    warm = {} if failures or not plan.content.warm else _run_warm(sides, plan)
    failures += _list_failures(warm.values())
    if is_target(sides.head.settings.device):
        warm = {
            arm: WorkerOutcome(outcome=repeat_samples(worker.outcome), wall_s=0.0)
            for arm, worker in outcomes.items()
            if isinstance(worker.outcome, WorkerResult)
        }
    if failures:
        check_disk(sides.head)  # a full disk is the machine's fault, not the case's
        return UnitResult(failures=tuple(failures))
    blank = Trial(
        case_id=sides.head_case.id,
        index=plan.index,
        pairing=plan.pairing,
        started=started,
        place=sides.head.place,
    )
    trials = _join_trials(blank, outcomes, warm)
    if not is_target(sides.head.settings.device):
        samples = (before, sample_host(sides.head))
        trials = [add_host(trial, samples, sides.head.settings) for trial in trials]
    if sides.head.settings.traces and plan.index == 1:  # later pairs compile the same, if at all
        trials = [_trace_side(sides, trial) for trial in trials]
    return UnitResult(trials=tuple(trials), sources=list_changed_sources(outcomes))


def _join_trials(
    blank: Trial, outcomes: Mapping[str, WorkerOutcome], warm: Mapping[str, WorkerOutcome]
) -> list[Trial]:
    trials = [
        _join_trial(replace(blank, arm=arm), [outcomes[arm], *([warm[arm]] if warm else [])])
        for arm in outcomes
    ]
    functions = keep_changed(*(trial.functions for trial in sorted(trials, key=lambda trial: trial.arm)))
    return [replace(trial, functions=functions[trial.arm != BASE_ARM]) for trial in trials]


def _list_failures(outcomes: Iterable[WorkerOutcome]) -> list[CaseFailure]:
    return [worker.outcome for worker in outcomes if isinstance(worker.outcome, CaseFailure)]


def _trace_side(sides: Sides, trial: Trial) -> Trial:
    is_base = trial.arm == BASE_ARM
    bench, case = (sides.base, sides.base_case) if is_base else (sides.head, sides.head_case)
    return add_trace(bench, case, trial)


def list_changed_sources(outcomes: Mapping[str, WorkerOutcome]) -> dict[str, str]:
    arms = [worker.outcome for worker in outcomes.values() if isinstance(worker.outcome, WorkerResult)]
    codes = [set(arm.identity.kernels.values()) for arm in arms]
    shared = set.intersection(*codes) if codes else set()
    return {code: text for arm in arms for code, text in arm.sources.items() if code not in shared}


def _make_side(bench: Bench, case: Case, arm: str) -> Bench:
    scratch = bench.scratch / make_case_path(case.id)
    scratch.mkdir(parents=True, exist_ok=True)
    sampling = replace(bench.settings.sampling, block_s=get_kind(bench.settings.device).live_block_s)
    return replace(
        bench,
        settings=replace(bench.settings, sampling=sampling),
        scratch=scratch,
        toolchain=bench.toolchain or bench.scratch,
        folder=str(Path("pairs") / arm),
    )


def _run_rounds(sides: Sides, plan: PairPlan) -> dict[str, WorkerOutcome]:
    jobs = _open_jobs(sides, plan, plan.first)
    if plan.pairing is Pairing.LIVE:
        outcomes = run_together(jobs[0], jobs[1], sides.head.settings.sampling)
    else:
        outcomes = run_timed(jobs[0]), run_timed(jobs[1])
    return {job.arm: outcome for job, outcome in zip(jobs, outcomes, strict=True)}


def _run_warm(sides: Sides, plan: PairPlan) -> dict[str, WorkerOutcome]:
    """Both load and count calls at once, and take turns for the rest.

    One after the other on a GPU, whose memory and time are shared, and where two have no room.
    """
    jobs = _open_jobs(sides, plan, WorkerRole.WARM)
    if plan.pairing is Pairing.LIVE and not get_kind(sides.head.settings.device).is_gpu:
        outcomes = run_warm_together(jobs[0], jobs[1])
        if not _failed_for_room(sides, _list_failures(outcomes)):
            return {job.arm: worker for job, worker in zip(jobs, outcomes, strict=True)}
        jobs = _open_jobs(sides, plan, WorkerRole.WARM)
    return {job.arm: run_timed(job) for job in jobs}


def _open_jobs(sides: Sides, plan: PairPlan, role: WorkerRole) -> tuple[WorkerJob, ...]:
    """One job of each arm, in the order of their start, which alternates from pair to pair."""
    arms = [(sides.base, sides.base_case), (sides.head, sides.head_case)]
    if not is_base_first(sides.head_case.id, plan.index):
        arms.reverse()
    jobs = [make_job(bench, role, case, plan.index) for bench, case in arms]
    asked = [replace(job, request=replace(job.request, skips_calls=plan.content.skips_calls)) for job in jobs]
    later = [make_job(bench, WorkerRole.WARM, case) for bench, case in arms] if plan.content.warm else []
    return sides.head.pool.open(asked, later)


def is_crowded(message: str) -> bool:
    return _CROWDED.search(message) is not None


def _failed_for_room(sides: Sides, failures: Collection[CaseFailure]) -> bool:
    on_gpu = get_kind(sides.head.settings.device).is_gpu
    for failure in failures:
        message = f"{failure.fact.name('message')}\n{failure.log_tail}"
        if is_crowded(message) if on_gpu else name_shortage(message) == "memory":
            return True
        # The kernel killed some meanwhile because memory ran out.
        if failure.kind is FailureKind.KILLED and failure.fact.numbers.get("oom_kills", 0) > 0:
            return True
    return False


def _join_trial(blank: Trial, outcomes: Collection[WorkerOutcome]) -> Trial:
    results = [worker.outcome for worker in outcomes if isinstance(worker.outcome, WorkerResult)]
    nothing = WorkerResult(role=WorkerRole.WARM, stage=Stage.DONE, changed_imports=results[0].changed_imports)
    cold, warm = (*results, nothing)[:2]
    return merge_results(blank, cold, warm, sum(worker.wall_s for worker in outcomes))
