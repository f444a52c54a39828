"""One attempt of ``selftest``: plant a fault, measure it with the lab, judge it with the real decision."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gate.check.procedure import PairMeasurer, make_need, settle_pairs
from gate.check.schedule import compute_trial_s
from gate.cli.setup import RUN_FILE
from gate.decide.evidence.values import collect_values
from gate.decide.judge.compare import find_threshold
from gate.decide.side_by_side import judge_pairs
from gate.decide.suspects import Suspect, list_unsettled
from gate.errors import UsageError
from gate.files.codec import RUN
from gate.lab.trials.lane import describe_base, make_measurer
from gate.lab.trials.opening import Lab
from gate.lab.trials.runs import make_run
from gate.lab.trials.trials import Bench, run_trial
from gate.lab.workers.worker import make_directory
from gate.metrics import list_watching
from gate.records import BASE_ARM, Case, Pairing, Policy, Provenance, Run, Trial
from gate.records.studies import Attempt, Fault, FaultKind, Method
from gate.report.words.failures import describe_failure
from gate.selftest.catalog import (
    NOTHING,
    FaultSize,
    Opinion,
    choose_size,
    find_scale,
    judge_fault,
    measure_size,
    plant_case,
)

# The decision asks for a second look at a counter, at memory and at drift before it calls them red.
TRIALS_ONCE = 2
# One pair can clear but not convict: whatever the time, an attempt gets the pairs of so many looks.
FREE_LOOKS = 2
# What is exact does not get more so by sampling: as few timed blocks as the schedule allows.
SUPER_BLOCKS_ONCE = 3
# A case hangs once it takes this many times its usual time, and at least so many seconds.
HANG_TRIALS = 3.0
MIN_HANG_S = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptContext:
    """Where faults are tried: both arms are the same tree; what was measured is kept below ``out``.

    Both also carry the wrapping that faults come in, so that they differ by the fault alone.
    After ``limit_s`` seconds an attempt gets no further pairs, but it gets those of its first looks.
    """

    lab: Lab
    policy: Policy
    out: Path
    limit_s: float
    provenance: Provenance


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptSubject:
    """A case, trials of the base that measured everything, and its latest ones, which sizes come from."""

    case: Case
    base: tuple[Trial, ...]
    latest: tuple[Trial, ...] = ()


def try_in_pairs(
    context: AttemptContext, fault: Fault, subject: AttemptSubject, number: int
) -> tuple[Attempt, AttemptSubject]:
    """Plant a fault and measure pairs, look by look, until the decision is made.

    Returns the subject with the base's latest trials, too; with a fault in the base those are no measure.
    Raises as :meth:`gate.check.measurer.Measurer.add_pairs`.
    """
    begun, size = time.monotonic(), _choose_size(context, fault, subject)
    planted, bare = plant_case(subject.case, fault, size), plant_case(subject.case, NOTHING, FaultSize())
    base, head = (planted, bare) if fault.is_in_base else (bare, planted)
    suspects = _list_suspects(fault, subject.case)
    blank = _make_run(context, base, head)
    save = partial(RUN.save, path=context.out / f"{fault.name}-{number}" / RUN_FILE)
    measurer = make_measurer(context.lab, save)
    first = _take_first_pairs(measurer, blank, context.policy, suspects)
    run = settle_pairs(measurer, first, context.policy, blank.wall_s + context.limit_s, suspects)
    save(run)
    opinion = judge_fault(fault, judge_pairs(run, context.policy, suspects), run.failures)
    trials = tuple(trial for trial in run.trials if trial.arm == BASE_ARM)
    size = _measure_size(context, fault, size, trials)
    attempt = _make_attempt(fault, subject.case, size, opinion)
    attempt = replace(attempt, wall_s=time.monotonic() - begun)
    latest = () if fault.is_in_base else trials
    return attempt, replace(subject, latest=latest or subject.latest)


def try_once(context: AttemptContext, fault: Fault, subject: AttemptSubject) -> Attempt:
    """Plant a fault that leaves nothing to chance and compare a trial or two with the base's.

    Raises as :func:`gate.lab.trials.trials.run_trial`.
    """
    begun, size = time.monotonic(), _choose_size(context, fault, subject)
    head = plant_case(subject.case, fault, size)
    bench = _shorten_limits(context.lab.bench, fault, subject)
    run = _make_run(context, plant_case(subject.case, NOTHING, FaultSize()), head)
    for index in range(1, TRIALS_ONCE + 1):
        came = run_trial(bench, head, index)
        run = replace(run, trials=(*run.trials, *([came.trial] if came.trial else [])))
        if came.failure:
            run = replace(run, failures=(came.failure,))
            break
    run = _add_base_trials(run, subject)
    opinion = judge_fault(fault, judge_pairs(run, context.policy), run.failures)
    attempt = _make_attempt(fault, subject.case, size, opinion)
    return replace(attempt, wall_s=time.monotonic() - begun)


def measure_base(context: AttemptContext, case: Case) -> tuple[Trial, ...]:
    """Measure the base's trials, which faults that leave nothing to chance are compared with.

    Raises:
        UsageError: The case cannot be measured even without a fault.
    """
    bench, bare = _shorten_sampling(context.lab.base), plant_case(case, NOTHING, FaultSize())
    make_directory(bench.settings.out)
    trials: list[Trial] = []
    for index in range(1, TRIALS_ONCE + 1):
        came = run_trial(bench, bare, index)
        if came.trial is None or came.failure:
            reason = describe_failure(came.failure) if came.failure else "no trial came back"
            fix = "Fix it, or select another case with --select."
            raise UsageError(f"{case.id} cannot be measured: {reason}", fix)
        trials.append(came.trial)
    return tuple(trials)


def estimate_attempt_s(fault: Fault, subject: AttemptSubject) -> float:
    """Estimate what an attempt takes at least, by the base's trials."""
    usual_s = max(map(compute_trial_s, subject.base), default=0.0)
    arms = 1 if fault.method is Method.ONCE else 2
    return arms * TRIALS_ONCE * usual_s


def _choose_size(context: AttemptContext, fault: Fault, subject: AttemptSubject) -> FaultSize:
    metric = find_scale(fault)
    if metric is None:
        return FaultSize()
    values = collect_values(subject.latest).get(metric) or collect_values(subject.base)[metric]
    return choose_size(fault, values, find_threshold(context.policy, subject.case.id, metric, in_pairs=True))


def _measure_size(context: AttemptContext, fault: Fault, size: FaultSize, base: Sequence[Trial]) -> FaultSize:
    """Measure the size against what the base did in the same pairs."""
    metric, values = find_scale(fault), collect_values(base)
    if metric is None or metric not in values:
        return size
    threshold = find_threshold(context.policy, base[0].case_id, metric, in_pairs=True)
    original = [value - size.amount for value in values[metric]] if fault.is_in_base else values[metric]
    return measure_size(size.amount, original, threshold)


def _list_suspects(fault: Fault, case: Case) -> Sequence[Suspect] | None:
    """What the pairs are to settle: the metrics that the fault is about, or for none of it everything."""
    metric = find_scale(fault)
    return [Suspect(case_id=case.id, metrics=list_watching(metric), thorough=True)] if metric else None


def _take_first_pairs(
    measurer: PairMeasurer, run: Run, policy: Policy, suspects: Sequence[Suspect] | None
) -> Run:
    """Measure the pairs of the first looks, however long they take: with fewer nothing can be caught.

    Where nothing is planted everything is measured twice.
    """
    for look in range(FREE_LOOKS):
        needs = [make_need(run, one) for one in list_unsettled(run, policy, suspects)]
        if not look and suspects is None:
            needs = [replace(need, more=max(need.more, TRIALS_ONCE)) for need in needs]
        run = measurer.add_pairs(run, needs, math.inf)
    return run


def _make_run(context: AttemptContext, base: Case, head: Case) -> Run:
    run = make_run(context.lab, (head,), head.id, 0)
    return replace(run, base=describe_base(context.lab, "the same tree", run.provenance, (base,)))


def _shorten_limits(bench: Bench, fault: Fault, subject: AttemptSubject) -> Bench:
    """A bench that spends no time on timing, and little on waiting for the end of a hang."""
    bench = _shorten_sampling(bench)
    settings = bench.settings
    if fault.kind is FaultKind.HANG:
        usual_s = max(map(compute_trial_s, subject.base), default=0.0)
        limit_s = min(settings.trial_timeout_s, max(MIN_HANG_S, HANG_TRIALS * usual_s))
        settings = replace(settings, trial_timeout_s=limit_s)
    return replace(bench, settings=settings)


def _shorten_sampling(bench: Bench) -> Bench:
    settings = bench.settings
    sampling = replace(settings.sampling, super_blocks=SUPER_BLOCKS_ONCE)
    return replace(bench, settings=replace(settings, sampling=sampling, out=settings.out / "selftest"))


def _add_base_trials(run: Run, subject: AttemptSubject) -> Run:
    """Put as many of the base's trials beside the head's; they ran one after the other."""
    base = [replace(trial, index=index) for index, trial in enumerate(subject.base[:TRIALS_ONCE], start=1)]
    trials = (replace(trial, pairing=Pairing.TURNS) for trial in (*base, *run.trials))
    return replace(run, trials=tuple(trials), finished=True)


def _make_attempt(fault: Fault, case: Case, size: FaultSize, opinion: Opinion) -> Attempt:
    return Attempt(
        kind=fault.kind,
        size=fault.size,
        case_id=case.id,
        result=opinion.result,
        planted=size.planted,
        is_asked=size.is_asked,
        comparison=opinion.row,
        fact=opinion.fact,
    )
