"""The table of main figures: a line a case, with marks for what changed; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gate.metrics import SPECS, Role
from gate.records import Comparison, Metric, Status, Verdict
from gate.records.groups import group_cases
from gate.report.clean import clean_line
from gate.report.view import ABSENT, CaseLine, Cell
from gate.units import render_value

# What decides comes first; the rest says what it is to be held against.
COLUMNS: Mapping[Metric, str] = {
    metric: SPECS[metric].column
    for metric in sorted(SPECS, key=lambda metric: SPECS[metric].role is not Role.DECIDES)
    if SPECS[metric].column
}
# Marks beside the figures, so that they read the same without colour.
MARKS: Mapping[Status, tuple[str, str]] = {
    Status.REGRESSED: ("!", "regressed"),
    Status.INCONCLUSIVE: ("?", "could not tell"),
    Status.ACCEPTED: ("a", "accepted"),
    Status.IMPROVED: ("+", "improved"),
    Status.NEW: ("*", "not judged"),
    Status.NOT_COMPARABLE: ("*", "not judged"),
}


def make_case_lines(verdict: Verdict) -> tuple[CaseLine, ...]:
    """Return a line for each case of the verdict."""
    comparisons = group_cases(verdict.comparisons)
    case_ids = dict.fromkeys((*(case.id for case in verdict.cases), *comparisons))
    return tuple(
        CaseLine(case_id=clean_line(case_id), cells=_make_cells(comparisons.get(case_id, ())))
        for case_id in case_ids
    )


def list_marks(lines: Sequence[CaseLine]) -> tuple[tuple[str, str], ...]:
    """Return the marks that ``lines`` use with their meanings."""
    present = {cell.status for line in lines for cell in line.cells}
    return tuple(dict.fromkeys(mark for status, mark in MARKS.items() if status in present))


def _make_cells(comparisons: Sequence[Comparison]) -> tuple[Cell, ...]:
    by_metric = {comparison.metric: comparison for comparison in comparisons}
    return tuple(_make_cell(by_metric.get(metric)) for metric in COLUMNS)


def _make_cell(comparison: Comparison | None) -> Cell:
    if comparison is None or comparison.candidate is None:
        return Cell(text=ABSENT)
    text = render_value(comparison.metric, comparison.candidate.centre)
    return Cell(text=text, status=comparison.status if comparison.decides else None)
