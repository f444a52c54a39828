"""What was found of each assumption, the lines that carry it, and the table of it. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_LABEL_CHARS = 8  # of the longest outcome, and a space


class AssumptionStatus(StrEnum):
    """What an answer means for what was assumed."""

    PROVED = "PROVED"
    REFUTED = "REFUTED"
    TOLD = "TOLD"  # a number for a person to look at: there is no range for it, or not on this device
    UNASKED = "UNASKED"  # there was no time, or the question itself failed


@dataclass(frozen=True, kw_only=True, slots=True)
class AssumptionResult:
    """One answer, or a part of one; ``name`` and ``assumed`` are filled in by who asked."""

    outcome: AssumptionStatus
    found: str
    expected: str = ""
    name: str = ""
    assumed: str = ""


# Cards that ranges were estimated for, by a part of their names, and their memory's speed beside an
# H100's. Other boards have less of everything.
_MEMORY_SPEEDS = {"H100 80GB HBM3": 1.0, "H200": 1.4}

Answer = AssumptionResult | Mapping[str, AssumptionResult]  # in parts, by what they are of


def expect_range(value: float, low: float, high: float, unit: str = "") -> AssumptionResult:
    """Hold a number against a range, both ends included."""
    outcome = AssumptionStatus.PROVED if low <= value <= high else AssumptionStatus.REFUTED
    return AssumptionResult(
        outcome=outcome, found=f"{value:.4g} {unit}".strip(), expected=f"{low:g} to {high:g}"
    )


def find_memory_speed(model: str) -> float:
    """Find how many times an H100's memory a card's is as fast; 0 for a card that nobody has estimated."""
    return next((factor for name, factor in _MEMORY_SPEEDS.items() if name in model), 0.0)


def claim(holds: bool, found: object) -> AssumptionResult:
    """Say whether something is so, and what was seen."""
    return AssumptionResult(
        outcome=AssumptionStatus.PROVED if holds else AssumptionStatus.REFUTED, found=str(found)
    )


def tell(found: object) -> AssumptionResult:
    """Say what was seen, for a person to judge."""
    return AssumptionResult(outcome=AssumptionStatus.TOLD, found=str(found))


def render_results(findings: Iterable[AssumptionResult]) -> str:
    """Render one line a finding."""
    return "".join(f"{_render(one)}\n" for one in findings)


def _render(finding: AssumptionResult) -> str:
    expected = f" (expected {finding.expected})" if finding.expected else ""
    told = f"{finding.outcome:<{_LABEL_CHARS}} {finding.name}: {finding.found}{expected}"
    if finding.outcome is not AssumptionStatus.REFUTED:
        return told
    return f"{told}\n{'':<{_LABEL_CHARS}} assumed: {finding.assumed}"


def count_outcomes(findings: Sequence[AssumptionResult]) -> str:
    """Count the outcomes in a line."""
    counts = {outcome: sum(one.outcome is outcome for one in findings) for outcome in AssumptionStatus}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


FINDINGS_FILE = "findings.jsonl"
PLANNED, ASKED, ANSWERED, ENDED = "planned", "asked", "answered", "ended"
