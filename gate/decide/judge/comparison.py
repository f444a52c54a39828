"""The one place where a comparison is made, of a metric that both sides have or only one."""

import math
from collections.abc import Sequence

from gate.decide.evidence.gather import Question
from gate.decide.judge.interval import Reading, Ruling
from gate.decide.stats import estimate_mean, estimate_metric
from gate.metrics import SPECS, Role
from gate.records.cases import Metric
from gate.records.facts import Fact
from gate.records.verdict import Change, Comparison


def make_comparison(
    case_id: str,
    metric: Metric,
    ruling: Ruling,
    *remarks: Fact,
    values: tuple[Sequence[float], Sequence[float]] = ((), ()),
    change: Change | None = None,
) -> Comparison:
    """``values``: before and after, from which each side is estimated."""
    status, reason = ruling
    before, after = (estimate_metric(metric, side) if side else None for side in values)
    return Comparison(
        case_id=case_id,
        metric=metric,
        status=status,
        reason=reason,
        decides=SPECS[metric].role is Role.DECIDES,
        baseline=before,
        candidate=after,
        change=change,
        remarks=remarks,
    )


def answer_question(
    question: Question,
    ruling: Ruling,
    *remarks: Fact,
    change: Change | None = None,
    reading: Reading | None = None,
) -> Comparison:
    """Both sides are estimated from their values, or as the ``reading`` pooled them, with its noise."""
    if reading is None:
        before, after = (estimate_metric(question.metric, side) for side in (question.before, question.after))
    else:
        base, head = math.log(reading.baseline), math.log(reading.candidate)
        before = estimate_mean(base, reading.noise, reading.baseline_trials, of_logs=True)
        after = estimate_mean(head, reading.noise, reading.trials, of_logs=True)
    status, reason = ruling
    return Comparison(
        case_id=question.case.id,
        metric=question.metric,
        status=status,
        reason=reason,
        decides=question.spec.role is Role.DECIDES,
        baseline=before,
        candidate=after,
        change=change,
        threshold=question.threshold,
        remarks=(*question.remarks, *remarks),
    )
