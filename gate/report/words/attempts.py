"""What the gate said of a planted fault, and what of its test is not good enough, in words."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import Code
from gate.records.selftest import Attempt, Complaint, FaultScore
from gate.report.words.comparisons import describe_comparison
from gate.report.words.templates import fill

_TEMPLATES: Mapping[Code, str] = {
    Code.TEXT: "{text}",
    Code.ARM_FAILED: "{arm} failed at {stage}: {message}",
    Code.FAILURE_TOLD: "{kind} at {stage}: {message}",
    Code.FAILURE_UNTOLD: "no failure of kind {kind} was told of",
    Code.NOT_JUDGED: "{metric_ids} was not judged",
}
_COMPLAINTS: Mapping[Complaint, str] = {
    Complaint.UNTRIED: "it could not be tried: every attempt failed",
    Complaint.ALARMS: "{score.false_alarms} of {score.tried} harmless changes turned red",
    Complaint.MISSES: "{score.missed} of {score.tried} were missed",
    Complaint.FEW_CAUGHT: "only {score.caught} of {score.tried} were caught",
}


def describe_opinion(attempt: Attempt) -> str:
    """Describe what the gate said of a fault; ``""`` where it had nothing to say."""
    if attempt.comparison:
        return describe_comparison(attempt.comparison)
    told = attempt.told
    return fill(_TEMPLATES[told.code], told, metric_ids=", ".join(told.metrics)) if told else ""


def describe_complaint(score: FaultScore) -> str:
    """Describe what is not good enough; ``""`` where nothing is."""
    return _COMPLAINTS[score.complaint].format(score=score) if score.complaint else ""
