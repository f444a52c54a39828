"""The parts of a call that only some kinds of cases have, side by side; pure."""

from __future__ import annotations

from gate.records import CaseEvidence
from gate.report.clean import clean_line
from gate.report.view import ABSENT
from gate.units import render_seconds


def list_parts(shown: CaseEvidence) -> list[tuple[str, str, str]]:
    """List each part with its seconds before and now, in the order in which they ran."""
    after, before = shown.after.parts_s, shown.before.parts_s if shown.before else {}
    return [
        (clean_line(name), _render(before.get(name)), _render(after.get(name)))
        for name in dict.fromkeys((*after, *before))
    ]


def _render(seconds: float | None) -> str:
    return ABSENT if seconds is None else render_seconds(seconds)
