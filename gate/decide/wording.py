"""The one sentence of a comparison: the values, how they changed, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping

from gate.decide.finding import Finding
from gate.metrics import SPECS
from gate.records import CaseFailure, Estimate, Metric, Reason, Status, Threshold
from gate.units import render_threshold, render_value
from gate.words import count_noun, describe_change

REASONS: Mapping[Reason, str] = {
    Reason.EXACT_EQUAL: "the same in every trial",
    Reason.EXACT_CHANGED: "the counts of both sides do not overlap",
    Reason.COUNTER_UNSTABLE: "the count differs between trials of the same code",
    Reason.WITHIN_NOISE: "no change that noise does not explain",
    Reason.BELOW_THRESHOLD: "too small a change to matter",
    Reason.BEYOND_BAR: "beyond{limit}, and too large to be noise",
    Reason.LIMIT_EXCEEDED: "the compiled result is further from float64 than is allowed",
    Reason.SUSPECT: "it looks changed, but noise could explain it",
    Reason.NOISE_TOO_HIGH: "the trials differ so much that even a large change could hide",
    Reason.MACHINE_SHIFT: "the machine itself is slower or faster than when the baseline was recorded",
    Reason.SHARED_SHIFT: "eager slowed down in the same processes, so it may be the machine",
    Reason.UNCORROBORATED: "compiling took longer, but did no more work that can be counted",
    Reason.EAGER_FASTER: "only because eager got faster",
    Reason.DISTURBED: "other work disturbed the machine while it was measured",
    Reason.FEW_TRIALS: "the baseline has too few trials to know the noise",
    Reason.NO_BASELINE: "no baseline is stored for this case",
    Reason.OTHER_ENVIRONMENT: "the baselines were recorded on other machines",
    Reason.OTHER_STACK: "the baselines were recorded with other software or on another kind of GPU{codegen}",
    Reason.STALE_DEFINITION: "the case is defined differently than when its baseline was recorded",
    Reason.NOT_RECORDED: "the baseline does not have this metric",
    Reason.NOT_MEASURED: "the baseline has this metric and this run does not",
    Reason.NOT_RUN: "it was planned and no trial of it came back",
    Reason.TRIALS_MISSING: "fewer trials than planned came back",
    Reason.CASE_FAILED: "the case could not be measured",
    Reason.ACCEPTED: "worse by no more than was accepted",
    Reason.CONFIRMED: "beyond{limit}{beside}, and too large to be noise",
    Reason.ACQUITTED: "no change beyond{limit}{beside}",
    Reason.UNPAIRED: "worse than its baseline, and not measured side by side with the base",
    Reason.UNSETTLED: "could not tell{beside}",
    Reason.BASE_FAILED: "the base could not be measured",
}
_OPENINGS: Mapping[Status, str] = {
    Status.INCONCLUSIVE: "could not tell: ",
    Status.NEW: "not judged: ",
    Status.NOT_COMPARABLE: "not judged: ",
    Status.MISSING: "missing: ",
}
_BOTH = 2


def describe_finding(metric: Metric, finding: Finding, threshold: Threshold | None) -> str:
    """One sentence: values and change, then the reason, then the remark."""
    remarks = [part for part in (_describe_need(finding), finding.remark) if part]
    remark = f" ({'; '.join(remarks)})" if remarks else ""
    because = _describe_reason(metric, finding, threshold)
    opening = "" if finding.reason is Reason.UNSETTLED else _OPENINGS.get(finding.status, "")
    told = f"{_describe_values(metric, finding)}{opening}{because}{remark}."
    return f"{told[0].upper()}{told[1:]}"


def describe_failure(failure: CaseFailure) -> str:
    """One sentence on where and how a case failed."""
    return f"Trial {failure.trial} failed at {failure.stage} ({failure.kind.value}): {failure.message}"


def _describe_reason(metric: Metric, finding: Finding, threshold: Threshold | None) -> str:
    before, after = finding.baseline, finding.candidate
    if finding.reason is Reason.EXACT_CHANGED and before and after:
        arm = "base" if finding.pairs else "baseline"
        return f"{_describe_counts(before, f'{arm} trial')}, {_describe_counts(after, 'new one')}"
    return REASONS[finding.reason].format(
        limit=_describe_limit(metric, threshold),
        beside=f" in {count_noun(finding.pairs, 'pair')} side by side with the base" if finding.pairs else "",
        codegen=", another instruction set or another number of threads"
        if SPECS[metric].same_codegen
        else "",
    )


def _describe_counts(estimate: Estimate, noun: str) -> str:
    """What a counter was: ``0 in all 5 baseline trials``; an exact estimate's interval is its range."""
    if estimate.low is None or estimate.high is None:
        return f"{estimate.centre:,.0f} in the {noun}"
    low, high = (f"{value:,.0f}" for value in (estimate.low, estimate.high))
    if low != high:
        return f"{low} to {high} in {estimate.n} {noun}s"
    return f"{low} in {'both' if estimate.n == _BOTH else f'all {estimate.n}'} {noun}s"


def _describe_need(finding: Finding) -> str:
    """How many pairs would settle what pairs have not."""
    if finding.reason is not Reason.UNSETTLED or finding.more_pairs is None:
        return ""
    if not finding.more_pairs:
        return "too close to its limit for more pairs to help"
    return f"needs {count_noun(finding.more_pairs, 'more pair')}"


def _describe_limit(metric: Metric, threshold: Threshold | None) -> str:
    told = threshold is not None and (threshold.relative or threshold.absolute)
    return f" the limit of {render_threshold(metric, threshold)}" if threshold and told else " the limit"


def _describe_values(metric: Metric, finding: Finding) -> str:
    after = render_value(metric, finding.candidate.centre) if finding.candidate else ""
    before = render_value(metric, finding.baseline.centre) if finding.baseline else ""
    if not (before and after):
        return f"{after or before}, " if after or before else ""
    if finding.change is None or finding.reason is Reason.EXACT_EQUAL:
        return f"{before} -> {after}: "
    return f"{before} -> {after}, {describe_change(metric, finding.change.centre)}: "
