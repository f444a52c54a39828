"""What a calibration and a selftest found, in words: why a case is unstable, what was said of a fault."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import Code
from gate.records.calibration import Instability
from gate.records.selftest import Attempt, Complaint, FaultScore
from gate.report.words.comparisons import describe_comparison
from gate.report.words.failures import describe_quoted
from gate.report.words.templates import fill
from gate.units import render_value

_TEMPLATES: Mapping[Code, str] = {
    Code.FAILURE: "Trial {trial} of {arm} failed at {stage} ({kind}): {failure}",
    Code.VALUES_RANGE: "{trials} trials of one program range from {lowest} to {highest}.",
    Code.TWO_GROUPS: "Trials fall into two groups that are {apart:digit} apart.",
    Code.BLOCKS_SPLIT: "In {split} of {trials} trials the blocks fall into two groups.",
    Code.TRIALS_VARY: (
        "Even {trials} trials, the most of a check, could miss a change below {unseen:share}."
    ),
    Code.PAIRS_BIASED: "In {pairs} pairs with itself, head differs by {change:signed_digit}.",
    Code.PAIRS_VARY: "{pairs} pairs, the most of a check, settle nothing below {unseen:share}.",
    Code.FAILURE_UNTOLD: "no failure of kind {kind} was reported",
    Code.NOT_JUDGED: "{metric_ids} was not judged",
}
_COMPLAINTS: Mapping[Complaint, str] = {
    Complaint.UNTRIED: "it could not be tried: every attempt failed",
    Complaint.ALARMS: "{score.false_alarms} of {score.tried} harmless changes turned red",
    Complaint.MISSES: "{score.missed} of {score.tried} were missed",
    Complaint.FEW_CAUGHT: "only {score.caught} of {score.tried} were caught",
}


def describe_instability(found: Instability) -> str:
    """Describe what was found; values are written in the metric's unit."""
    bounds = {"lowest": "low", "highest": "high"}
    values = {
        place: render_value(found.metric, found.fact.numbers[name])
        for place, name in bounds.items()
        if name in found.fact.numbers
    }
    return fill(_TEMPLATES[found.fact.code], found.fact, failure=describe_quoted(found.fact), **values)


def describe_opinion(attempt: Attempt) -> str:
    """Describe what the gate said of a fault; ``""`` where it had nothing to say."""
    if attempt.comparison:
        return describe_comparison(attempt.comparison)
    if attempt.fact is None:
        return ""
    fact, metric_ids = attempt.fact, ", ".join(attempt.fact.metrics)
    return fill(_TEMPLATES[fact.code], fact, metric_ids=metric_ids, failure=describe_quoted(fact))


def describe_complaint(score: FaultScore) -> str:
    """Describe what is not good enough; ``""`` where nothing is."""
    return _COMPLAINTS[score.complaint].format(score=score) if score.complaint else ""


def describe_open(score: FaultScore) -> str:
    """Describe that a fault which must be caught stayed open; ``""`` where it did not."""
    return f"0 of {score.tried} were caught, which may be chance" if score.is_open else ""
