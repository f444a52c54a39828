"""The report for a terminal or a log: what changed first, the cause below it, what to do next last."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from io import StringIO
from typing import TextIO

from rich.console import Console, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gate.records import Outcome, Status, Verdict
from gate.report.content import make_report, render_counts
from gate.report.footer import MARKS, list_marks
from gate.report.terminal import WIDTH, find_style, write_text
from gate.report.view import (
    ABSENT,
    OUTCOME_KINDS,
    STATUS_KINDS,
    Block,
    CaseLine,
    NextStep,
    Report,
    Row,
    name_before,
)

MIN_WIDTH = 60  # status, metric and change need it; on a narrower terminal lines wrap
MAX_BLOCKS = 20  # cases shown one by one: more do not fit a mind; the rest is named
MAX_CASE_LINES = 24  # lines of the table of main figures
_GAP = 2  # columns between two cells
INDENT = 2

# By what a reader does about it.
_STYLES = {"bad": "bold red", "unsure": "bold yellow", "other": "blue", "good": "green", "same": "dim"}
OUTCOME_STYLES: Mapping[Outcome, str] = {
    **{outcome: _STYLES[kind] for outcome, kind in OUTCOME_KINDS.items()},
    Outcome.PASS: "bold green",
}
STATUS_STYLES: Mapping[Status, str] = {
    **{status: _STYLES[kind] for status, kind in STATUS_KINDS.items()},
    Status.ACCEPTED: "cyan",
}
_COLUMNS = ("label", "metric", "before", "after", "change", "interval")
_ALL_COLUMNS = (*_COLUMNS, "limit")  # where unchanged rows have no sentence to say it
_TITLES: Mapping[str, str] = {"label": "", "after": "head"}  # where they are not the column's own name
# Columns that give way on a narrow terminal, the first to go first: their words go below the row.
_YIELDING = ("limit", "interval", "before", "after")
_WORDS = frozenset({"label", "metric", "change", "limit"})  # columns that are set to the left
_MAX_NAMED = 6  # cases of a group that are spelled out
_LABEL_WIDTH = 5  # of "next", "note", "why" and "rerun"
_DIM = "dim"


class Detail(StrEnum):
    """How much a text report shows."""

    VERDICT = "verdict"  # the headline, the counts and what to do next
    CHANGED = "changed"
    EVERYTHING = "everything"  # unchanged and not deciding comparisons too, nothing cut short


def render_text(
    verdict: Verdict, *, width: int = WIDTH, colour: bool = False, detail: Detail = Detail.CHANGED
) -> str:
    """Return the report as text of ``width`` columns, with ANSI colours if asked for."""
    everything = detail is Detail.EVERYTHING
    report = make_report(verdict, everything=everything)
    outcome = (report.outcome.value, OUTCOME_STYLES[report.outcome])
    parts: list[RenderableType] = [Text.assemble(outcome, (f"  {report.headline}", "bold"))]
    width = max(width, MIN_WIDTH)
    parts += [_make_item("why", report.why, indent=0)] if report.why else []
    parts += _make_steps(report.next_steps[:1], width)
    parts += [_make_item("why", cause, indent=0) for cause in report.causes]
    parts += [Text(), Text(render_counts(report.counts), style=_DIM)]
    if detail is not Detail.VERDICT:
        limit = len(report.blocks) if everything else MAX_BLOCKS
        columns = _ALL_COLUMNS if everything else _COLUMNS
        blocks = report.blocks if everything else tuple(map(_drop_doubts, report.blocks))
        parts += _make_blocks(blocks[:limit], columns, width)
        if len(report.blocks) > limit:
            parts += [
                Text(),
                Text(f"and {len(report.blocks) - limit} more: show them with -v, or see verdict.json"),
            ]
        parts += _make_figures(report, width, everything=everything)
        parts += _make_pairs((*report.scope, *report.footer))
        parts += [Text()] if report.notes else []
        parts += [_make_item("note", note, indent=0) for note in report.notes]
    parts += [Text()] if report.next_steps[1:] else []
    parts += _make_steps(report.next_steps[1:], width)
    return _render_parts(parts, width=width, colour=colour)


def print_text(verdict: Verdict, *, verbose: bool = False, stream: TextIO | None = None) -> None:
    """Print the report to ``stream`` (standard output): as wide as the terminal, coloured if it can."""
    target = stream or sys.stdout
    detail = Detail.EVERYTHING if verbose else Detail.CHANGED
    width, colour = find_style(target)
    write_text(target, render_text(verdict, width=width, colour=colour, detail=detail))


def _render_parts(parts: Sequence[RenderableType], *, width: int, colour: bool) -> str:
    """Lay out rich renderables; no markup, emoji or highlighting is read into their text."""
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _make_blocks(shown: Sequence[Block], columns: Sequence[str], width: int) -> Iterator[RenderableType]:
    rows = [row for block in shown for row in block.rows]
    titles = {name: _TITLES.get(name, name) for name in columns} | {"before": name_before(rows)}
    layout = _choose_layout(rows, titles, width)
    if "change" in layout:
        yield Text()
        yield _make_grid([(titles[name], _DIM) for name in layout], layout)
    for block in shown:
        yield Text()
        yield Text(block.title, style="bold", no_wrap=True)
        yield from _make_block(block, layout)


def _drop_doubts(block: Block) -> Block:
    """Leave the numbers of what could not be decided: why is said once, above, and in full with -v."""
    alone = not block.members
    rows = (
        replace(row, sentence="", limit="") if alone and row.status is Status.INCONCLUSIVE else row
        for row in block.rows
    )
    causes = () if block.status is Status.INCONCLUSIVE else block.causes
    return replace(block, rows=tuple(rows), causes=causes)


def _make_block(block: Block, layout: Mapping[str, int]) -> Iterator[RenderableType]:
    for row in block.rows:
        strong = STATUS_STYLES[row.status] if row.decides else _DIM
        styles = {"label": strong, "change": strong}
        plain = "" if row.decides else _DIM
        yield _make_grid([(getattr(row, name), styles.get(name, plain)) for name in layout], layout)
        if details := _list_details(row, layout):
            yield _indent(Text(details, style=plain), 2 * INDENT)
    if block.members:
        yield _indent(Text(_name_members(block)), 2 * INDENT)
    for failure in block.failures:
        yield _indent(Text(failure, style="red"), 2 * INDENT)
    for line in block.log_tail:
        yield Text(f"{' ' * 2 * INDENT}| {line}", style=_DIM, no_wrap=True)
    for log in block.logs:
        yield Text(f"{' ' * INDENT}log    {log}", style=_DIM, no_wrap=True)
    for cause in block.causes:
        yield _make_item("why", cause)
    if block.command:
        yield Text(f"{' ' * INDENT}rerun  {block.command}", style=_DIM, no_wrap=True)


def _name_members(block: Block) -> str:
    named = ", ".join(f"{one.case_id} {one.change}".strip() for one in block.members[:_MAX_NAMED])
    rest = len(block.members) - _MAX_NAMED
    metric = f"{block.rows[0].metric}: " if len(block.rows) > 1 else ""
    return f"{metric}{named} and {rest:,} more: -v lists them." if rest > 0 else f"{metric}{named}."


def _choose_layout(rows: Sequence[Row], titles: Mapping[str, str], width: int) -> Mapping[str, int]:
    """Columns and their widths: what does not fit goes below the row."""
    used = [name for name in titles if any(getattr(row, name) for row in rows)]
    layout = {name: max(len(titles[name]), *(len(getattr(row, name)) for row in rows)) for name in used}
    for name in _YIELDING:
        if name in layout and INDENT + sum(layout.values()) + _GAP * (len(layout) - 1) > width:
            del layout[name]
    if "change" in layout and INDENT + sum(layout.values()) + _GAP * (len(layout) - 1) > width:
        layout["change"] = 0  # it wraps where all else has given way: its words are the news
    return layout


def _list_details(row: Row, layout: Mapping[str, int]) -> str:
    """The sentence of what is not unchanged, and whatever has no column."""
    details = [row.sentence] if row.sentence and not row.is_plain else []
    if row.before and "before" not in layout:
        details.insert(0, f"{row.before} -> {row.after}.")
    return " ".join([*details, *row.describe_bounds(layout)])


def _make_grid(cells: Sequence[tuple[str, str]], layout: Mapping[str, int]) -> Padding:
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for name, column_width in layout.items():
        justify: JustifyMethod = "left" if name in _WORDS else "right"
        grid.add_column(justify=justify, min_width=column_width or None, overflow="fold")
    grid.add_row(*(Text(text, style=style) for text, style in cells))
    return _indent(grid, INDENT)


def _make_figures(report: Report, width: int, *, everything: bool) -> Iterator[RenderableType]:
    measured = [line for line in report.case_lines if any(cell.status for cell in line.cells)]
    shown = measured if everything else measured[:MAX_CASE_LINES]
    if not shown:
        return
    columns = _choose_columns(report.columns, shown, width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style=_DIM)
    table.add_column("case", vertical="bottom", no_wrap=True, overflow="ellipsis")
    for column in columns:
        title = report.columns[column].replace(" ", "  \n")
        table.add_column(f"{title}  ", justify="right", vertical="bottom", no_wrap=True)
    for line in shown:
        table.add_row(Text(line.case_id), *(_make_cell(line, column) for column in columns))
    yield Text()
    yield table
    more = [f"and {len(measured) - len(shown)} more cases"] if len(measured) > len(shown) else []
    legend = ", ".join([*more, *(f"{mark} {meaning}" for mark, meaning in list_marks(shown))])
    if legend:
        yield Text(legend, style=_DIM)


def _choose_columns(titles: Sequence[str], lines: Sequence[CaseLine], width: int) -> list[int]:
    used = max(len(line.case_id) for line in lines)
    filled = [
        index
        for index in range(len(titles))
        if any(line.cells[index].status is not None or line.cells[index].text != ABSENT for line in lines)
    ]
    chosen: list[int] = []
    for index in filled:
        texts = (*titles[index].split(), *(line.cells[index].text for line in lines))
        used += _GAP + 2 + max(map(len, texts))
        if used > width and chosen:
            break
        chosen.append(index)
    return chosen


def _make_cell(line: CaseLine, column: int) -> Text:
    cell = line.cells[column]
    if cell.status is None or cell.status not in MARKS:
        return Text(f"{cell.text}  ")
    return Text(f"{cell.text} {MARKS[cell.status][0]}", style=STATUS_STYLES[cell.status])


def _make_pairs(pairs: Sequence[tuple[str, str]]) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(style=_DIM, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in pairs:
        grid.add_row(Text(label), Text(text))
    yield Text()
    yield grid


def _make_steps(steps: Sequence[NextStep], width: int) -> Iterator[RenderableType]:
    """One line a step where it fits; else its command on a line of its own, never wrapped."""
    for step in steps:
        line = f"{step.text} {step.command}".strip()
        if step.text and (not step.command or len(line) + _LABEL_WIDTH + _GAP <= width):
            yield _make_item("next", line, indent=0)
        else:
            if step.text:
                yield _make_item("next", step.text, indent=0)
            yield Text(f"{' ' * (_LABEL_WIDTH + _GAP + INDENT)}{step.command}", no_wrap=True)


def _make_item(label: str, text: str, *, indent: int = INDENT) -> Padding:
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(min_width=_LABEL_WIDTH, no_wrap=True, style="bold" if label == "next" else _DIM)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label), Text(text))
    return _indent(grid, indent)


def _indent(part: RenderableType, columns: int) -> Padding:
    return Padding(part, (0, 0, 0, columns), expand=False)
