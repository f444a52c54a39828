"""Pairs: one trial of the base and one of the head on one machine, their timed blocks alternating.

Back-to-back processes of one program differ by far more than blocks that alternate within
milliseconds, so both arms' workers are kept alive and take turns. Where two do not fit on the device,
whole processes take turns instead, and the trials say so.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from gate.check.pair_schedule import plan_content
from gate.lab.host import read_host
from gate.lab.prime import prime_bench
from gate.lab.provenance import format_time
from gate.lab.server_pool import Seated, add_seating, seat_jobs
from gate.lab.trials import (
    Bench,
    TrialCircumstances,
    add_host,
    check_disk,
    make_case_path,
    make_job,
    merge_results,
    seed_cache,
)
from gate.lab.turns import Came, run_together
from gate.lab.worker import WorkerJob, run_worker
from gate.protocol import Stage, WorkerResult, WorkerRole
from gate.records import Arm, Case, CaseFailure, Environment, Metric, Pairing, Trial

BASE = "base"
# Blocks of two programs in turn disturb each other's caches; over this long it does not show.
LIVE_BLOCK_S = 0.030

# What CUDA, ROCm, torch and their libraries say where a device has no room for two, or lets only one in. A
# library that cannot allocate its handle is "not initialized".
_CROWDED = re.compile(
    r"out[ _]of[ _]memory|memoryallocation|alloc_failed|(cublas|cudnn|cusolver)_status_not_initialized"
    r"|busy or unavailable|devices?_?unavailable",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """The benches of both arms of one case, and the case as each defines it."""

    base: Bench
    head: Bench
    base_case: Case
    head_case: Case


@dataclass(frozen=True, kw_only=True, slots=True)
class PairPlan:
    """What one pair measures. ``index`` counts from 1."""

    index: int
    first: WorkerRole  # COLD on empty caches, or ROUNDS on those of the pair before
    warm: bool  # whether a warm process of each arm follows
    pairing: Pairing


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """What came of a pair: a trial of each arm, or why there is none."""

    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()


def open_base(head: Bench, arm: Arm) -> tuple[Bench, Environment | None]:
    """Make the bench of the base arm; another interpreter is primed, and its environment returned.

    Raises:
        MachineError: The base's interpreter cannot compile here.
    """
    scratch = head.scratch / BASE
    if arm.python == head.arm.python:
        scratch.mkdir(exist_ok=True)
        return replace(head, arm=arm, scratch=scratch, toolchain=head.toolchain or head.scratch), None
    (scratch / "tmp").mkdir(parents=True, exist_ok=True)
    bench = replace(head, arm=arm, scratch=scratch, folder=BASE)
    return bench, prime_bench(bench).environment


def make_sides(base: Bench, head: Bench, base_case: Case, head_case: Case) -> Sides:
    """Give both arms of a case caches of their own, which last as long as the lab."""
    return Sides(
        base=_make_side(base, head_case, BASE),
        head=_make_side(head, head_case, head.arm.name),
        base_case=base_case,
        head_case=head_case,
    )


def plan_pair(metrics: Collection[Metric], index: int, device: str, pairing: Pairing) -> PairPlan:
    """Plan the processes of a pair by :func:`gate.check.pair_schedule.plan_content`."""
    content = plan_content(metrics, index, device)
    first = WorkerRole.COLD if content.compiles else WorkerRole.ROUNDS
    return PairPlan(index=index, first=first, warm=content.warm, pairing=pairing)


def measure_pair(sides: Sides, plan: PairPlan) -> Pair:
    """Measure one pair; an arm that fails is a failure of that arm, and the pair gives no trial.

    Raises:
        MachineError: Too little disk, or an interpreter cannot be started.
    """
    check_disk(sides.head)
    begun, before = _observe(), read_host()
    for bench in (sides.base, sides.head):
        if plan.first is WorkerRole.COLD or not bench.trial_cache.is_dir():
            seed_cache(bench)
    came = _run_rounds(sides, plan)
    failures = [one.outcome for one in came.values() if isinstance(one.outcome, CaseFailure)]
    if failures and plan.pairing is Pairing.LIVE and _is_crowded(sides, failures):
        return measure_pair(sides, replace(plan, first=WorkerRole.COLD, pairing=Pairing.TURNS))
    warm = {} if failures or not plan.warm else _run_warm(sides, plan)
    failures += [one.outcome for one in warm.values() if isinstance(one.outcome, CaseFailure)]
    if failures:
        check_disk(sides.head)  # a full disk is the machine's fault, not the case's
        return Pair(failures=tuple(failures))
    blank = Trial(case_id=sides.head_case.id, index=plan.index, pairing=plan.pairing)
    joined = (
        _join_trial(replace(blank, arm=arm), [came[arm], *([warm[arm]] if warm else [])], begun)
        for arm in came
    )
    return Pair(trials=tuple(add_host(trial, before, sides.head) for trial in joined))


def _make_side(bench: Bench, case: Case, arm: str) -> Bench:
    scratch = bench.scratch / make_case_path(case.id)
    scratch.mkdir(parents=True, exist_ok=True)
    sampling = replace(bench.settings.sampling, block_s=LIVE_BLOCK_S)
    return replace(
        bench,
        settings=replace(bench.settings, sampling=sampling),
        scratch=scratch,
        toolchain=bench.toolchain or bench.scratch,
        folder=str(Path("pairs") / arm),
    )


def _order_arms(sides: Sides, plan: PairPlan) -> tuple[tuple[Bench, Case], tuple[Bench, Case]]:
    """The arm that starts first changes from pair to pair."""
    arms = ((sides.base, sides.base_case), (sides.head, sides.head_case))
    return arms if plan.index % 2 else (arms[1], arms[0])


def _run_rounds(sides: Sides, plan: PairPlan) -> dict[str, Came]:
    """Run the first process of both arms; by name of the arm, in the order of their start."""
    seated = _seat_jobs(sides, plan, plan.first)
    jobs = seated.jobs
    if plan.pairing is Pairing.LIVE:
        came = run_together(jobs[0], jobs[1], sides.head.settings.sampling)
    else:
        came = _run_alone(jobs[0]), _run_alone(jobs[1])
    opened_s = seated.opened_s / len(jobs)
    return {
        job.arm: Came(outcome=one.outcome and add_seating(one.outcome, seated), wall_s=one.wall_s + opened_s)
        for job, one in zip(jobs, came, strict=True)
    }


def _run_warm(sides: Sides, plan: PairPlan) -> dict[str, Came]:
    return {job.arm: _run_alone(job) for job in _seat_jobs(sides, plan, WorkerRole.WARM).jobs}


def _seat_jobs(sides: Sides, plan: PairPlan, role: WorkerRole) -> Seated:
    """Make one job of each arm, in the order of their start."""
    jobs = tuple(make_job(bench, role, case, plan.index) for bench, case in _order_arms(sides, plan))
    return seat_jobs(sides.head.pool, jobs)


def _run_alone(job: WorkerJob) -> Came:
    begun = time.monotonic()
    outcome = run_worker(job)
    return Came(outcome=outcome, wall_s=time.monotonic() - begun)


def _is_crowded(sides: Sides, failures: Collection[CaseFailure]) -> bool:
    """Whether a pair failed because the device has no memory for two, or lets one process in at a time."""
    if sides.head.settings.device == "cpu":
        return False
    return any(_CROWDED.search(f"{one.message}\n{one.log_tail}") for one in failures)


def _observe() -> TrialCircumstances:
    load = os.getloadavg()[0]
    return TrialCircumstances(
        started=format_time(datetime.now(UTC)), wall_s=0.0, load_before=load, load_after=load
    )


def _join_trial(blank: Trial, came: Collection[Came], begun: TrialCircumstances) -> Trial:
    results = [one.outcome for one in came if isinstance(one.outcome, WorkerResult)]
    nothing = WorkerResult(role=WorkerRole.WARM, stage=Stage.DONE)
    circumstances = replace(begun, wall_s=sum(one.wall_s for one in came), load_after=os.getloadavg()[0])
    return merge_results(blank, results[0], results[1] if len(results) > 1 else nothing, circumstances)
