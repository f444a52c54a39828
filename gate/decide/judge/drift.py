"""Judges drift: by its change from a baseline, or by a limit where no baseline applies."""

import math
from statistics import fmean

from gate.decide.constants import (
    DRIFT_BEYOND_ROUNDING,
    DRIFT_LIMIT_FLOAT32,
    DRIFT_LIMIT_HALF,
    DRIFT_ROUNDING_STEPS,
    DRIFT_SD_FLOOR,
    DRIFT_SIGMAS,
)
from gate.decide.evidence.gather import Evidence, Question
from gate.decide.judge.comparison import answer_question, make_comparison
from gate.decide.judge.interval import BETTER, UNCHANGED, UNSETTLED, WORSE, Ruling
from gate.decide.stats import compute_variance, estimate_metric, pool_variances
from gate.records.cases import Case, DType, Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Change, Comparison, Reason, Status

_EXCEEDED: Ruling = (Status.REGRESSED, Reason.LIMIT_EXCEEDED)


def judge_drift(question: Question) -> Comparison:
    """A value beyond the limit convicts only if the baseline is within it and clearly lower."""
    before, after, threshold = question.before, question.after, question.threshold.absolute
    sd = math.sqrt(pool_variances(compute_variance(before), compute_variance(after)).value)
    noise = DRIFT_SIGMAS * max(sd, DRIFT_SD_FLOOR) * math.sqrt(1 / len(before) + 1 / len(after))
    change, limit = fmean(after) - fmean(before), get_limit(question.case, question.metric)
    if change > threshold:
        ruling = WORSE if change > noise else UNSETTLED
    elif fmean(before) <= limit < fmean(after) and change > noise:
        ruling = _EXCEEDED
    elif change < -threshold and -change > noise:
        ruling = BETTER
    else:
        ruling = UNSETTLED if noise > threshold else UNCHANGED
    interval = Change(
        centre=change, low=change - noise, high=change + noise, detectable=max(threshold, noise) + noise
    )
    remarks = [Fact(code=Code.DRIFT_LIMIT, numbers={"limit": limit})] if ruling is _EXCEEDED else []
    return answer_question(question, ruling, *remarks, change=interval)


def judge_drift_alone(evidence: Evidence, metric: Metric) -> Comparison | None:
    """Beyond the limit, and what rounding costs, it has regressed; else ``None``.

    A baseline of another environment that is beyond the limit, of the same definition, waives it.
    """
    case, after = evidence.case, evidence.values[metric]
    others = [stored.baseline.trials.get(metric, ()) for stored in evidence.stored if stored.same_definition]
    limit = get_limit(case, metric)
    waived = any(fmean(values) > limit for values in others if values)
    if waived or fmean(after) <= limit or _is_rounding(evidence, metric):
        return None
    drift = estimate_metric(metric, after)
    change = Change(
        centre=drift.centre - limit,
        low=(drift.centre if drift.low is None else drift.low) - limit,
        high=(drift.centre if drift.high is None else drift.high) - limit,
        detectable=0.0,
    )
    remark = Fact(code=Code.DRIFT_LIMIT, numbers={"limit": limit})
    return make_comparison(case.id, metric, _EXCEEDED, remark, values=((), after), change=change)


def _is_rounding(evidence: Evidence, metric: Metric) -> bool:
    most_steps = DRIFT_ROUNDING_STEPS if get_limit(evidence.case, metric) == DRIFT_LIMIT_FLOAT32 else 0.0
    drifts = [trial.worst.get(metric) for trial in evidence.trials if trial.samples.get(metric)]
    return all(
        drift is not None
        and (
            0 < drift.steps <= most_steps
            or (drift.beyond is not None and drift.beyond <= DRIFT_BEYOND_ROUNDING)
        )
        for drift in drifts
    )


def get_limit(case: Case, metric: Metric) -> float:
    """In log2 units."""
    if metric is not Metric.DRIFT_FLOAT32 and case.dtype is not DType.FLOAT32:
        return DRIFT_LIMIT_HALF
    return DRIFT_LIMIT_FLOAT32
