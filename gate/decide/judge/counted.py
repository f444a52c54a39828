"""Judges what hardly varies or does not vary at all: counters, memory, Python calls and drift."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, median

from gate.decide.constants import (
    DRIFT_BEYOND_ROUNDING,
    DRIFT_LIMIT_FLOAT32,
    DRIFT_LIMIT_HALF,
    DRIFT_ROUNDING_STEPS,
    DRIFT_SD_FLOOR,
    DRIFT_SIGMAS,
)
from gate.decide.evidence.stored import Evidence
from gate.decide.evidence.values import Question
from gate.decide.judge.interval import BETTER, CLEAR, OPEN, WORSE
from gate.decide.stats import compute_variance, estimate_metric, pool_variances
from gate.metrics import Role
from gate.records import (
    MAYBE_WORSE,
    Case,
    Change,
    Code,
    DType,
    Fact,
    Finding,
    Metric,
    Reason,
    Status,
    Worst,
)


def judge_counted(question: Question) -> Finding:
    """Judge a counter or an amount: more is worse, and every value of head counts against every stored one.

    Noise is far below what counts, so that nothing is left to chance while each arm agrees with itself.
    """
    before, after = question.before, question.after
    tolerance = max(question.threshold.relative * median(before), question.threshold.absolute)
    low, high = min(after) - max(before), max(after) - min(before)
    status, reason = OPEN
    if low > tolerance:
        status, reason = WORSE
    elif high < -tolerance:
        status, reason = BETTER
    elif high <= tolerance:
        status, reason = CLEAR
    if question.spec.role is Role.EXPLAINS and status is not Status.INCONCLUSIVE:
        status = Status.UNCHANGED
    is_ratio = question.spec.is_ratio
    scale = (median(before) or 1.0) if is_ratio else 1.0
    noticed = tolerance + max(before) - min(before)
    change = Change(
        centre=(median(after) - median(before)) / scale,
        low=low / scale,
        high=high / scale,
        detectable=(noticed if is_ratio else max(1.0, noticed)) / scale,
    )
    return question.find(status, reason, change)


def follow_leader(ratio: Finding, leader: Finding, eager: Finding | None = None) -> Finding:
    """Let a ratio move only as far as what it is a ratio of: else eager needs less, or more.

    That is compiled's latency or peak of memory. ``eager`` is what was found of eager's, where that is known.
    """
    if ratio.status is Status.UNCHANGED or ratio.reason is Reason.FEW_TRIALS:
        return ratio
    if leader.status is ratio.status or (leader.status is Status.REGRESSED and ratio.status in MAYBE_WORSE):
        return ratio
    if leader.status is Status.INCONCLUSIVE:
        more = leader.more_pairs
        return replace(ratio, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED, more_pairs=more)
    change = eager.change.centre if eager and eager.change else _compute_eager_change(ratio, leader)
    fact = () if change is None else (Fact(code=Code.EAGER_CHANGED, numbers={"change": change}),)
    return replace(ratio, status=Status.UNCHANGED, reason=Reason.LEADER_STANDS, remarks=fact, more_pairs=None)


def follow_misses(calls: Finding, misses: Finding | None) -> Finding:
    """Let calls of a compile move only where the caches have no part in it.

    A process that found nothing in the caches has compiled before its calls are counted, and set the compiler
    up: it counts up to two thirds fewer.
    """
    more = misses.change.centre if misses is not None and misses.change is not None else 0.0
    if (more > 0 and calls.status is Status.IMPROVED) or (more < 0 and calls.status in MAYBE_WORSE):
        return replace(calls, status=Status.UNCHANGED, reason=Reason.LEADER_STANDS)
    return calls


def _compute_eager_change(ratio: Finding, leader: Finding) -> float | None:
    if ratio.change is None or leader.change is None or min(ratio.change.centre, leader.change.centre) <= -1:
        return None
    return (1 + leader.change.centre) / (1 + ratio.change.centre) - 1


def judge_drift(question: Question) -> Finding:
    """Judge the difference of the means against the absolute threshold, noise and the limit.

    A value beyond the limit convicts only when the baseline is within it and clearly lower.
    """
    before, after, threshold = question.before, question.after, question.threshold.absolute
    sd = math.sqrt(pool_variances(compute_variance(before), compute_variance(after)).value)
    noise = DRIFT_SIGMAS * max(sd, DRIFT_SD_FLOOR) * math.sqrt(1 / len(before) + 1 / len(after))
    change, limit = fmean(after) - fmean(before), get_limit(question.case, question.metric)
    if change > threshold:
        ruling = WORSE if change > noise else OPEN
    elif fmean(before) <= limit < fmean(after) and change > noise:
        ruling = Status.REGRESSED, Reason.LIMIT_EXCEEDED
    elif change < -threshold and -change > noise:
        ruling = BETTER
    else:
        ruling = OPEN if noise > threshold else CLEAR
    interval = Change(
        centre=change,
        low=change - noise,
        high=change + noise,
        detectable=max(threshold, noise) + noise,
    )
    is_beyond = ruling[1] is Reason.LIMIT_EXCEEDED
    return question.find(*ruling, interval, _name_limit(limit) if is_beyond else ())


def judge_drift_alone(evidence: Evidence, metric: Metric) -> Finding | None:
    """Judge drift that no baseline applies to: beyond the limit, and what rounding costs, it has regressed.

    A value beyond the limit that a baseline of another environment holds for the same definition waives it.
    ``None`` when there is nothing to say. The change is against the limit: it is what an acceptance allows.
    """
    case, after = evidence.case, evidence.values[metric]
    others = [one.baseline.trials.get(metric, ()) for one in evidence.stored if one.same_definition]
    limit = get_limit(case, metric)
    waived = any(fmean(values) > limit for values in others if values)
    if waived or fmean(after) <= limit or _is_rounding(evidence, metric):
        return None
    candidate = estimate_metric(metric, after)
    return Finding(
        status=Status.REGRESSED,
        reason=Reason.LIMIT_EXCEEDED,
        candidate=candidate,
        change=Change(
            centre=candidate.centre - limit,
            low=(candidate.centre if candidate.low is None else candidate.low) - limit,
            high=(candidate.centre if candidate.high is None else candidate.high) - limit,
            detectable=0.0,
        ),
        remarks=_name_limit(limit),
    )


def _is_rounding(evidence: Evidence, metric: Metric) -> bool:
    """Whether every trial is known to be no further from float64 than rounding explains."""
    known = [trial.worst.get(metric) for trial in evidence.trials if trial.samples.get(metric)]
    is_float32 = get_limit(evidence.case, metric) == DRIFT_LIMIT_FLOAT32
    return all(one is not None and _is_explained(one, is_float32=is_float32) for one in known)


def _is_explained(worst: Worst, *, is_float32: bool) -> bool:
    if worst.beyond is not None and worst.beyond <= DRIFT_BEYOND_ROUNDING:
        return True
    return is_float32 and 0 < worst.steps <= DRIFT_ROUNDING_STEPS


_HALF = frozenset((DType.BFLOAT16, DType.FLOAT16))


def get_limit(case: Case, metric: Metric) -> float:
    """Largest drift, in log2 units, that is taken without a stored value to compare with."""
    if metric is not Metric.DRIFT_FLOAT32 and case.dtype in _HALF:
        return DRIFT_LIMIT_HALF
    return DRIFT_LIMIT_FLOAT32


def _name_limit(limit: float) -> tuple[Fact, ...]:
    return (Fact(code=Code.DRIFT_LIMIT, numbers={"limit": limit}),)
