"""The one sentence of a comparison: the values, how they moved, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping

from gate.decide.finding import Finding
from gate.metrics import SPECS, Family
from gate.records import CaseFailure, Change, Metric, Reason, Threshold

_MIB = 1024.0 * 1024.0
_MS = 1e-3

REASONS: Mapping[Reason, str] = {
    Reason.EXACT_EQUAL: "the same in every trial",
    Reason.EXACT_CHANGED: "the same in no trial of both sides",
    Reason.COUNTER_UNSTABLE: "the count differs between trials of one program, so it says nothing",
    Reason.WITHIN_NOISE: "nothing worse than noise",
    Reason.BELOW_THRESHOLD: "too little to matter",
    Reason.BEYOND_BAR: "beyond the threshold by more than chance, noise and the machine explain",
    Reason.LIMIT_EXCEEDED: "compiled is further from fp64 than its limit allows",
    Reason.SUSPECT: "looks changed, but not surely",
    Reason.NOISE_TOO_HIGH: "the trials vary so much that even a large change could hide",
    Reason.MACHINE_SHIFT: "the machine itself changed, and the change does not stand with and without it",
    Reason.SHARED_SHIFT: "eager in the same processes moved along, so it may be the machine",
    Reason.UNCORROBORATED: "compiling took longer, but did no more work that can be counted",
    Reason.EAGER_FASTER: "only because eager got faster",
    Reason.DISTURBED: "the host was not fit while it was measured",
    Reason.FEW_TRIALS: "too few baseline trials to know the noise",
    Reason.NO_BASELINE: "nothing is stored for this case",
    Reason.OTHER_ENVIRONMENT: "measured only: its baselines were recorded on other hosts",
    Reason.OTHER_STACK: "measured only: its baselines were recorded with another software stack",
    Reason.STALE_DEFINITION: "not comparable: the case's definition has changed since its baseline",
    Reason.NOT_RECORDED: "not comparable: the baseline does not have it",
    Reason.NOT_MEASURED: "the baseline has it and this run does not",
    Reason.NOT_RUN: "planned, but no trial came back",
    Reason.CASE_FAILED: "could not be measured",
    Reason.ACCEPTED: "worse, as accepted",
    Reason.CONFIRMED: "beyond the threshold side by side with the base, by more than chance explains",
    Reason.ACQUITTED: "side by side with the base, a change that matters is excluded",
    Reason.UNPAIRED: "worse than what is stored, and no pair with the base came back",
    Reason.UNSETTLED: "side by side with the base, the pairs of the budget did not settle it",
    Reason.BASE_FAILED: "measured only: the base could not be measured",
}


_BEYOND = frozenset({Reason.BEYOND_BAR, Reason.CONFIRMED})


def describe_finding(metric: Metric, finding: Finding, threshold: Threshold | None) -> str:
    """One sentence: values and change, then the reason, then the remark."""
    move = _describe_values(metric, finding)
    because = REASONS[finding.reason]
    if finding.reason in _BEYOND and threshold is not None:
        because = because.replace("the threshold", describe_threshold(metric, threshold), 1)
    if finding.reason is Reason.UNSETTLED and finding.change and SPECS[metric].family is Family.NOISY:
        because += f", where {100 * finding.change.detectable:.1f} % would have been seen"
    remark = f" ({finding.remark})" if finding.remark else ""
    return f"{move}{because}{remark}."


def describe_failure(failure: CaseFailure) -> str:
    """One sentence on where and how a case failed."""
    return f"Trial {failure.trial} failed at {failure.stage} ({failure.kind.value}): {failure.message}"


def describe_threshold(metric: Metric, threshold: Threshold) -> str:
    """The threshold in words: ``the threshold of 5 % and 20 us``."""
    parts = []
    if threshold.relative:
        parts.append(f"{100 * threshold.relative:.3g} %")
    if threshold.absolute:
        parts.append(format_value(metric, threshold.absolute))
    return f"the threshold of {' and '.join(parts)}" if parts else "no change at all"


def format_value(metric: Metric, value: float) -> str:
    """A value with a sensible unit and three digits."""
    unit = SPECS[metric].unit
    if unit == "s":
        return _format_seconds(value)
    if unit == "bytes":
        return f"{value / _MIB:.4g} MiB"
    if unit == "ratio":
        return f"{value:.3g}x"
    return f"{value:,.0f}" if unit == "count" else f"{value:.3g}"


def format_change(metric: Metric, change: Change) -> str:
    """A change in words: ``31 % worse (26 % to 36 %)``, counts and log2 units as they are."""
    family = SPECS[metric].family
    if family is Family.EXACT:
        return f"{change.centre:+.0f}"
    if family is Family.LOG2:
        return f"{change.centre:+.2f}"
    word = "worse" if change.centre > 0 else "better"
    interval = f"{100 * change.low:+.1f} % to {100 * change.high:+.1f} %"
    return f"{abs(100 * change.centre):.1f} % {word} (interval {interval}, + is worse)"


def format_allowance(metric: Metric, allowance: float) -> str:
    """An allowance in words: ``33 %``, counts and log2 units as they are."""
    if SPECS[metric].family in {Family.EXACT, Family.LOG2}:
        return f"{allowance:g}"
    return f"{100 * allowance:g} %"


def format_percent(fraction: float) -> str:
    """A signed fraction in percent with one digit."""
    return f"{round(100 * fraction, 1) + 0.0:+.1f} %"  # + 0.0 makes minus zero a plain one


def _format_seconds(seconds: float) -> str:
    if abs(seconds) >= 1:
        return f"{seconds:.3g} s"
    if abs(seconds) >= _MS:
        return f"{1e3 * seconds:.3g} ms"
    return f"{1e6 * seconds:.3g} us"


def _describe_values(metric: Metric, finding: Finding) -> str:
    after = format_value(metric, finding.candidate.centre) if finding.candidate else ""
    before = format_value(metric, finding.baseline.centre) if finding.baseline else ""
    if not (before and after):
        return f"{after or before}: " if after or before else ""
    if finding.change is None or finding.reason is Reason.EXACT_EQUAL:
        return f"{before} -> {after}: "
    return f"{before} -> {after}, {format_change(metric, finding.change)}: "
