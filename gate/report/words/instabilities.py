"""Why a case is called unstable, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import Code
from gate.records.calibration import Instability
from gate.report.words.templates import fill
from gate.units import render_value

_TEMPLATES: Mapping[Code, str] = {
    Code.TEXT: "{text}",
    Code.TRIAL_FAILED: "Trial {trial} failed at {stage}: {message}",
    Code.VALUES_RANGE: "{trials} trials of one program range from {lowest} to {highest}.",
    Code.TWO_GROUPS: "Trials fall into two groups that are {apart:digit} apart.",
    Code.BLOCKS_SPLIT: "In {split} of {trials} trials the blocks fall into two groups.",
    Code.TRIALS_VARY: (
        "Trials vary by {noise:digit}: a change below {unseen:share} could go unseen in {trials} trials."
    ),
    Code.PAIRS_BIASED: "Of {pairs} pairs with itself, head is {change:signed_digit} off.",
    Code.PAIRS_VARY: "Pairs vary by {noise:digit}: {pairs} of them settle nothing below {unseen:share}.",
}


def describe_instability(found: Instability) -> str:
    """Describe what was found; values are written in the metric's unit."""
    bounds = {"lowest": "low", "highest": "high"}
    values = {
        place: render_value(found.metric, found.told.numbers[name])
        for place, name in bounds.items()
        if name in found.told.numbers
    }
    return fill(_TEMPLATES[found.told.code], found.told, **values)
