"""The one place where a comparison is made, of a metric that both sides have or only one."""

import math
from dataclasses import replace

from gate.decide.evidence.gather import Question
from gate.decide.judge.interval import Reading, Ruling
from gate.decide.stats import estimate_mean, estimate_metric
from gate.metrics import SPECS, Role
from gate.records.cases import Metric
from gate.records.facts import Fact
from gate.records.verdict import Change, Comparison, Estimate


def make_comparison(
    case_id: str,
    metric: Metric,
    ruling: Ruling,
    *remarks: Fact,
    sides: tuple[Estimate | None, Estimate | None] = (None, None),
    change: Change | None = None,
) -> Comparison:
    """``sides``: before and after."""
    status, reason = ruling
    return Comparison(
        case_id=case_id,
        metric=metric,
        status=status,
        reason=reason,
        decides=SPECS[metric].role is Role.DECIDES,
        baseline=sides[0],
        candidate=sides[1],
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
        before = estimate_metric(question.metric, question.before)
        after = estimate_metric(question.metric, question.after)
    else:
        base, head = math.log(reading.baseline), math.log(reading.candidate)
        before = estimate_mean(base, reading.noise, reading.baseline_trials, of_logs=True)
        after = estimate_mean(head, reading.noise, reading.trials, of_logs=True)
    remarks = (*question.remarks, *remarks)
    row = make_comparison(
        question.case.id, question.metric, ruling, *remarks, sides=(before, after), change=change
    )
    return replace(row, threshold=question.threshold)
