"""What a page shows of one case: its rows, why, charts, and the view of both sides; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.metrics import SPECS
from gate.records import CaseEvidence, Comparison, Metric, Status
from gate.report.blocks import SHOWN
from gate.report.case import CaseView, make_view
from gate.report.clean import clean_line
from gate.report.page.charts import Drawing
from gate.report.page.plots import Plot, PlotGroup, draw_change, list_plots, plot_phases
from gate.report.rows import RANK, make_row
from gate.report.view import Block, CaseLine, Cell, Row
from gate.report.words.pages import STATUS_CLASSES
from gate.report.words.templates import name_metric, name_status

_MAX_HEADLINE = 160  # characters beside a case's name
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCase:
    """All that a page shows of one case."""

    anchor: str
    address: str  # where its section is: in this page or in one of its own; "" where there is none
    block: Block  # its rows are those with news
    kind: str
    status: str
    headline: str  # the metric that changed most, or what became of the case
    values: str  # of that metric, before and after
    change: str
    severity: float | None  # of it, to sort by
    drawing: Drawing | None
    cells: tuple[Cell, ...]  # main figures, as the report's columns
    numbers: tuple[float | None, ...]  # the same, to sort by
    others: tuple[Row, ...]
    plots: tuple[PlotGroup, ...] = ()
    phases: tuple[Plot, tuple[Drawing, ...]] | None = None  # a chart, and the colour of each row of the view
    view: CaseView | None = None  # of what was kept of both sides


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCase:
    """One case: its headline, its main figures, its comparisons and both sides."""

    block: Block
    line: CaseLine
    comparisons: Sequence[Comparison] = ()
    evidence: CaseEvidence | None = None
    columns: Sequence[Metric] = ()  # of ``line``


def make_case(found: ShownCase, anchor: str, address: str = "") -> PageCase:
    """Make what a page shows of a case that is linked to as ``anchor``, here or at another address."""
    block, leading = found.block, find_leading(found.comparisons)
    has_moved = leading is not None and leading.change and leading.status is not Status.UNCHANGED
    row = make_row([leading]) if leading and has_moved and not block.failures else None
    case = PageCase(
        anchor=anchor,
        address=address or f"#{anchor}",
        block=replace(block, rows=tuple(row for row in block.rows if row.status in SHOWN)),
        kind=STATUS_CLASSES[block.status],
        status=name_status(block.status),
        headline=_choose_headline(block, leading),
        values=f"{row.before} \N{RIGHTWARDS ARROW} {row.after}" if row else "",
        change=row.change if row else "",
        severity=leading.severity if leading else None,
        drawing=draw_change(leading) if leading else None,
        cells=found.line.cells,
        numbers=tuple(_find_number(found.comparisons, metric) for metric in found.columns),
        others=tuple(map(_shorten, (row for row in block.rows if row.status not in SHOWN))),
    )
    evidence = found.evidence
    if evidence is None:
        return case
    return replace(
        case,
        plots=list_plots(found.comparisons, evidence),
        phases=plot_phases(found.comparisons, evidence),
        view=make_view(evidence),
    )


def find_leading(comparisons: Sequence[Comparison]) -> Comparison | None:
    """Find the comparison that stands for a case: the gravest, or where nothing moved its latency."""

    def order(one: Comparison) -> tuple[object, ...]:
        own = one.metric is not Metric.COMPILED_LATENCY
        follows = SPECS[one.metric].follows is not None
        return not one.decides, RANK[one.status], follows, -abs(one.severity), own

    return min(comparisons, key=order, default=None)


def make_anchors(case_ids: Iterable[str]) -> Mapping[str, str]:
    """Make a name for each case that a link can lead to: of plain characters, and no two alike."""
    anchors: dict[str, str] = {}
    used: set[str] = set()
    for case_id in case_ids:
        plain = f"case-{_NOT_IN_A_NAME.sub('-', case_id)[:120].strip('-')}"
        name, number = plain, 1
        while name in used:
            number += 1
            name = f"{plain}-{number}"
        used.add(name)
        anchors[case_id] = name
    return anchors


def _shorten(row: Row) -> Row:
    """What is unchanged needs no sentence beside its numbers."""
    return replace(row, sentence="") if row.is_plain else row


def _choose_headline(block: Block, leading: Comparison | None) -> str:
    if block.failures:
        return clean_line(block.failures[0], _MAX_HEADLINE)
    if leading is None or leading.change is None:
        return clean_line(block.rows[0].sentence, _MAX_HEADLINE) if block.rows else ""
    if leading.status is Status.UNCHANGED:
        return ""
    return name_metric(leading.metric)


def _find_number(comparisons: Iterable[Comparison], metric: Metric) -> float | None:
    return next((one.candidate.centre for one in comparisons if one.metric is metric and one.candidate), None)
