"""What a page tells of one case: its rows, why, both sides of everything, and code that differs; pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.records import CacheUse, CaseEvidence, Comparison, GraphBreak, KernelChange, Metric, Status
from gate.report.blocks import SHOWN
from gate.report.clean import clean_line, clean_lines
from gate.report.page.charts import Drawing
from gate.report.page.plots import PhaseRow, Plot, draw_change, list_plots, plot_pairs, plot_phases
from gate.report.rows import MAX_SENTENCE, RANK
from gate.report.view import Block, CaseLine, Cell, Row, list_parts, list_sides
from gate.report.words.causes import describe_recompile
from gate.report.words.measuring import describe_measuring
from gate.report.words.pages import STATUS_CLASSES
from gate.report.words.steps import write_tlparse
from gate.report.words.templates import describe_change, name_metric, name_status

_MAX_LINES = 400  # of a kernel's difference
_MAX_TOLD = 80  # characters beside a case's name
_MAX_ITEMS = 20  # graph breaks, or reasons to recompile
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A kernel on both sides: lines, each with what it is."""

    name: str
    lines: tuple[tuple[str, str], ...]  # "added", "removed" or "same", and the line
    is_cut: bool = False  # more may differ


@dataclass(frozen=True, kw_only=True, slots=True)
class Break:
    """A graph break with the user's stack."""

    reason: str
    location: str
    stack: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseView:
    """All that is shown of one case."""

    anchor: str
    block: Block  # its rows are those with news
    kind: str
    status: str
    told: str  # the largest change, or what became of the case
    severity: float | None  # of it, to sort by
    drawing: Drawing | None
    cells: tuple[Cell, ...]  # main figures, as the report's columns
    numbers: tuple[float | None, ...]  # the same, to sort by
    others: tuple[Row, ...]
    plots: tuple[tuple[str, tuple[Plot, ...]], ...] = ()
    order: Plot | None = None
    phases: tuple[Plot, tuple[PhaseRow, ...]] | None = None
    parts: tuple[tuple[str, str, str], ...] = ()
    differences: tuple[Difference, ...] = ()
    more_kernels: int = 0
    breaks: tuple[Break, ...] = ()
    recompiles: tuple[str, ...] = ()
    caches: tuple[tuple[str, ...], ...] = ()
    traces: tuple[str, ...] = ()  # commands that read them, from where the page lies
    unknown: tuple[str, ...] = ()
    evidence: bool = False  # whether anything was kept to be shown


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCase:
    """What there is of one case: what is told of it, its main figures, its comparisons and both sides."""

    block: Block
    line: CaseLine
    comparisons: Sequence[Comparison] = ()
    evidence: CaseEvidence | None = None
    columns: Sequence[Metric] = ()  # of ``line``


def make_case(found: ShownCase, anchor: str) -> CaseView:
    """Make the view of a case that is linked to as ``anchor``."""
    block, leading = found.block, find_leading(found.comparisons)
    view = CaseView(
        anchor=anchor,
        block=replace(block, rows=tuple(row for row in block.rows if row.status in SHOWN)),
        kind=STATUS_CLASSES[block.status],
        status=name_status(block.status),
        told=_tell(block, leading),
        severity=leading.severity if leading else None,
        drawing=draw_change(leading) if leading else None,
        cells=found.line.cells,
        numbers=tuple(_find_number(found.comparisons, metric) for metric in found.columns),
        others=tuple(map(_shorten, (row for row in block.rows if row.status not in SHOWN))),
    )
    return _add_evidence(view, found, found.evidence) if found.evidence else view


def _add_evidence(view: CaseView, found: ShownCase, evidence: CaseEvidence) -> CaseView:
    after = evidence.after
    return replace(
        view,
        evidence=True,
        plots=list_plots(found.comparisons, evidence),
        order=plot_pairs(found.comparisons, evidence),
        phases=plot_phases(evidence),
        parts=tuple(list_parts(evidence)),
        differences=tuple(_compare_code(one) for one in evidence.kernels if one.before or one.after),
        more_kernels=evidence.more_kernels,
        breaks=tuple(map(_make_break, after.graph_breaks[:_MAX_ITEMS])),
        recompiles=tuple(
            clean_line(describe_recompile(one), MAX_SENTENCE) for one in after.recompile_reasons[:_MAX_ITEMS]
        ),
        caches=tuple(list_sides(evidence, lambda side: side.caches, _describe_use)),
        traces=tuple(_write_tlparse(trace) for side in evidence.sides for trace in side.traces),
        unknown=tuple(clean_line(describe_measuring(one), MAX_SENTENCE) for one in after.unknown),
    )


def _write_tlparse(trace: str) -> str:
    return clean_line(write_tlparse(trace), MAX_SENTENCE)


def find_leading(comparisons: Sequence[Comparison]) -> Comparison | None:
    """Find the comparison that stands for a case: the gravest, or where nothing moved its latency."""

    def order(one: Comparison) -> tuple[object, ...]:
        own = one.metric is not Metric.COMPILED_LATENCY
        return not one.decides, RANK[one.status], -abs(one.severity), own

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


def _tell(block: Block, leading: Comparison | None) -> str:
    if block.failures:
        return clean_line(block.failures[0], _MAX_TOLD)
    if leading is None or leading.change is None:
        return clean_line(block.rows[0].sentence, _MAX_TOLD) if block.rows else ""
    if leading.status is Status.UNCHANGED:
        return ""
    return f"{name_metric(leading.metric)} {describe_change(leading.metric, leading.change.centre)}"


def _find_number(comparisons: Iterable[Comparison], metric: Metric) -> float | None:
    return next((one.candidate.centre for one in comparisons if one.metric is metric and one.candidate), None)


def _compare_code(kernel: KernelChange) -> Difference:
    """Lines that both sides have, and those that only one has."""
    before, after = (clean_lines(source, _MAX_LINES) for source in (kernel.before, kernel.after))
    lines = list(difflib.unified_diff(before, after, lineterm=""))[2:]
    kinds = {"+": "added", "-": "removed"}
    shown = tuple((kinds.get(line[:1], "same"), line) for line in lines[:_MAX_LINES])
    is_cut = kernel.is_cut or len(lines) > len(shown)
    return Difference(name=clean_line(kernel.name, MAX_SENTENCE), lines=shown, is_cut=is_cut)


def _make_break(one: GraphBreak) -> Break:
    stack = (f"{frame.location} in {frame.function}: {frame.code}" for frame in one.stack)
    return Break(
        reason=clean_line(one.reason, MAX_SENTENCE),
        location=clean_line(one.location),
        stack=tuple(clean_line(line, MAX_SENTENCE) for line in stack),
    )


def _describe_use(use: CacheUse) -> str:
    return f"{use.hits:,} / {use.misses:,}"
