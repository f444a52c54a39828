"""Judges numerical drift: log2 of compiled's error against fp64 over eager's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from gate.decide.constants import (
    DRIFT_BEYOND_ROUNDING,
    DRIFT_LIMIT_FLOAT32,
    DRIFT_LIMIT_HALF,
    DRIFT_NOTABLE,
    DRIFT_ROUNDING_STEPS,
    DRIFT_SD_FLOOR,
    DRIFT_SIGMAS,
)
from gate.decide.evidence.finding import Question
from gate.decide.evidence.stored import Evidence
from gate.decide.stats.estimate import estimate_metric
from gate.decide.stats.moments import compute_variance, pool_variances
from gate.records import Case, Change, Code, DType, Fact, Finding, Metric, Reason, Status, Worst


def judge_drift(question: Question) -> Finding:
    """Judge the difference of the means against the absolute threshold, noise and the limit.

    A value beyond the limit convicts only when the baseline is within it and clearly lower.
    """
    noise = DRIFT_SIGMAS * _compute_error(question.before, question.after)
    change = fmean(question.after) - fmean(question.before)
    status, reason = _decide_drift(question, change, noise)
    told = Change(
        centre=change,
        low=change - noise,
        high=change + noise,
        detectable=max(question.threshold.absolute, noise) + noise,
    )
    is_beyond = reason is Reason.LIMIT_EXCEEDED
    return question.find(
        status, reason, told, _name_limit(question.case, question.metric) if is_beyond else ()
    )


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
        remarks=_name_limit(case, metric),
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


def _name_limit(case: Case, metric: Metric) -> tuple[Fact, ...]:
    return (Fact(code=Code.DRIFT_LIMIT, numbers={"limit": get_limit(case, metric)}),)


def _compute_error(before: Sequence[float], after: Sequence[float]) -> float:
    """Standard error of the difference of the means."""
    pooled = pool_variances(compute_variance(before), compute_variance(after))
    sd = max(math.sqrt(pooled.value), DRIFT_SD_FLOOR)
    return sd * math.sqrt(1 / len(before) + 1 / len(after))


def _decide_drift(question: Question, change: float, noise: float) -> tuple[Status, Reason]:
    limit = get_limit(question.case, question.metric)
    threshold = question.threshold.absolute
    crossed = fmean(question.before) <= limit < fmean(question.after)
    if change > threshold:
        return (Status.REGRESSED, Reason.BEYOND_BAR) if change > noise else _SUSPECT
    if crossed and change > max(DRIFT_NOTABLE, noise):
        return Status.REGRESSED, Reason.LIMIT_EXCEEDED
    if change < -threshold and -change > noise:
        return Status.IMPROVED, Reason.BEYOND_BAR
    if noise > threshold:
        return Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH
    return Status.UNCHANGED, Reason.BELOW_THRESHOLD if abs(change) > noise else Reason.WITHIN_NOISE


_SUSPECT = (Status.INCONCLUSIVE, Reason.SUSPECT)
