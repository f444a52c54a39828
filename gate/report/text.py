"""The report for a terminal or a log: what changed first, the cause below it, what to do next last."""

import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TextIO

from gate.records.verdict import Status, Verdict
from gate.report.case_blocks import Block
from gate.report.clean import ABSENT, WIDTH, align_columns, bind_units, count_columns, read_style, write_text
from gate.report.comparison_rows import STATUS_KINDS, Row
from gate.report.content import OUTCOME_KINDS, Report, make_report, render_counts
from gate.report.footer import COLUMNS, Cell, list_marks
from gate.report.words.steps import NextStep
from gate.report.words.templates import name_status
from gate.units import join_some

MIN_WIDTH = 60  # status, metric and change need it; on a narrower terminal lines wrap
MAX_BLOCKS = 20  # cases shown one by one: more do not fit a mind; the rest is named
MAX_CASE_LINES = 24  # lines of the table of main figures
_MAX_NAMED = 6  # cases of a group that are spelled out
_GAP = 2  # columns between two cells
_INDENT = "  "  # of a row; its sentence stands twice as deep

# ANSI codes of colours, by what a reader does about it.
_STYLES = {"bad": "1;31", "unsure": "1;33", "other": "34", "good": "1;32", "same": "2"}
_BOLD, _DIM, _RED = "1", "2", "31"
# How wide a value may be, by the width there is: what is wider stands below its row, and the columns stay.
_VALUE_WIDTHS = ((100, 18), (80, 10), (0, 0))
_VALUES = ("before", "after")
_CELLS = ("label", "metric", *_VALUES, "change")
_TITLES: Mapping[str, str] = {"label": "", "after": "head"}  # where they are not the column's own name
_FIGURES = tuple(COLUMNS.values())


class Detail(StrEnum):
    VERDICT = "verdict"  # the headline, the counts and what to do next
    CHANGED = "changed"
    EVERYTHING = "everything"  # unchanged and not deciding comparisons too, nothing cut short


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lines:
    width: int
    colour: bool
    shown: list[str] = field(default_factory=list)

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and style and text else text

    def add(self, text: str = "", style: str = "") -> None:
        self.shown.append(self.paint(text.rstrip(), style))

    def wrap(self, text: str, style: str = "", *, indent: str = "") -> None:
        for line in self._part(text, len(indent)):
            self.shown.append(indent + self.paint(line, style))

    def add_labelled(self, label: str, text: str, *, indent: str = "", style: str = _DIM) -> None:
        start = f"{indent}{label:5}  "
        for number, line in enumerate(self._part(text, len(start))):
            self.shown.append((" " * len(start) if number else self.paint(start, style)) + line)

    def _part(self, text: str, used: int) -> list[str]:
        lines = textwrap.wrap(bind_units(text), self.width - used, break_on_hyphens=False) or [""]
        return [line.replace("\u00a0", " ") for line in lines]


def render_text(
    verdict: Verdict, *, width: int = WIDTH, colour: bool = False, detail: Detail = Detail.CHANGED
) -> str:
    everything = detail is Detail.EVERYTHING
    report = make_report(verdict, everything=everything)
    lines = _Lines(width=max(width, MIN_WIDTH), colour=colour)
    lines.add_labelled(report.outcome.value, report.headline, style=_STYLES[OUTCOME_KINDS[report.outcome]])
    if report.why:
        lines.add_labelled("why", report.why)
    for cause in report.causes:
        lines.add_labelled("why", cause)
    _add_steps(lines, report.next_steps[:1])
    lines.add()
    lines.wrap(render_counts(report.counts), _DIM)
    for text in filter(None, (report.unchanged, report.subject)):
        lines.wrap(text, _DIM)
    if detail is not Detail.VERDICT:
        _add_blocks(lines, report, everything=everything)
        _add_figures(lines, report, everything=everything)
        lines.add()
        for label, text in (*report.scope, *report.footer):
            lines.add_labelled(f"{label:9}", text)
        if report.notes:
            lines.add()
        for note in report.notes:
            lines.add_labelled("note", note)
    if report.next_steps[1:]:
        lines.add()
        _add_steps(lines, report.next_steps[1:])
    return "\n".join(lines.shown) + "\n"


def print_text(verdict: Verdict, *, verbose: bool = False, stream: TextIO | None = None) -> None:
    target = stream or sys.stdout
    detail = Detail.EVERYTHING if verbose else Detail.CHANGED
    width, colour = read_style(target)
    write_text(target, render_text(verdict, width=width, colour=colour, detail=detail))


def _add_steps(lines: _Lines, steps: Iterable[NextStep]) -> None:
    """A command is never wrapped."""
    for step in steps:
        is_short = len(f"next   {step.text} {step.command}") <= lines.width
        if step.text:
            lines.add_labelled("next", f"{step.text} {step.command if is_short else ''}", style=_BOLD)
        if step.command and not (step.text and is_short):
            lines.add(f"         {step.command}")


def _add_blocks(lines: _Lines, report: Report, *, everything: bool) -> None:
    limit = len(report.blocks) if everything else MAX_BLOCKS
    blocks = report.blocks if everything else tuple(map(_drop_doubts, report.blocks[:limit]))
    rows = [row for block in blocks for row in block.rows]
    fitted = _fit_cells(rows, lines.width)
    head, *texts = _align_rows(fitted)
    if any(row.change for row in fitted):
        lines.add()
        lines.add(head, _DIM)
    drawn = iter(zip(fitted, texts, strict=True))
    for block in blocks:
        lines.add()
        lines.add(block.title, _BOLD)
        for row in block.rows:
            style = _STYLES[STATUS_KINDS[row.status]] if row.decides else _DIM
            cells, text = next(drawn)
            lines.shown.append(text.replace(row.label, lines.paint(row.label, style), 1))
            if details := _list_details(row, cells):
                lines.wrap(details, "" if row.decides else _DIM, indent=2 * _INDENT)
        _add_more(lines, block)
    if len(report.blocks) > limit:
        lines.add()
        lines.wrap(f"and {len(report.blocks) - limit} more: show them with -v, or see verdict.json")


def _add_more(lines: _Lines, block: Block) -> None:
    if block.members:
        lines.wrap(_name_members(block), indent=2 * _INDENT)
    for failure in block.failures:
        lines.wrap(failure, _RED, indent=2 * _INDENT)
    for line in block.log_tail:
        lines.add(f"{2 * _INDENT}| {line}", _DIM)
    for log in block.logs:
        lines.add(f"{_INDENT}log    {log}", _DIM)
    for cause in block.causes:
        lines.add_labelled("why", cause, indent=_INDENT)
    if block.command:
        lines.add(f"{_INDENT}rerun  {block.command}", _DIM)


def _drop_doubts(block: Block) -> Block:
    """Why is shown once, above, and in full with -v."""
    alone = not block.members
    rows = tuple(
        replace(row, sentence="") if alone and row.status is Status.INCONCLUSIVE else row
        for row in block.rows
    )
    if block.status is Status.INCONCLUSIVE:  # the next steps name all of them at once
        return replace(block, rows=rows, causes=(), command="")
    return replace(block, rows=rows)


def _name_members(block: Block) -> str:
    named = join_some([f"{member.case_id} {member.change}".strip() for member in block.members], _MAX_NAMED)
    metric = f"{block.rows[0].metric}: " if len(block.rows) > 1 else ""
    return f"{metric}{named}{': -v lists them' if len(block.members) > _MAX_NAMED else ''}."


def _fit_cells(rows: Sequence[Row], width: int) -> list[Row]:
    """Empty the cells that are too wide."""
    widest = next(value for least, value in _VALUE_WIDTHS if width >= least)
    suffix = f" ({name_status(Status.INCONCLUSIVE)})"  # by the label, too
    fitted = [replace(row, change=row.change.removesuffix(suffix)) for row in rows]
    fitted = [
        replace(row, before="", after="")
        if any(count_columns(getattr(row, name)) > widest for name in _VALUES)
        else row
        for row in fitted
    ]
    bare = _align_rows([replace(row, change="." if row.change else "") for row in fitted])[1:]
    left = width + 1 - max(map(count_columns, bare), default=0)
    return [replace(row, change="") if count_columns(row.change) > left else row for row in fitted]


def _align_rows(rows: Sequence[Row]) -> list[str]:
    has_values = any(row.before or row.after for row in rows)
    used = [
        name for name in _CELLS if (name in _VALUES and has_values) or any(getattr(row, name) for row in rows)
    ]
    cells = [
        [_TITLES.get(name, name) for name in used],
        *([getattr(row, name) for name in used] for row in rows),
    ]
    right = {number for number, name in enumerate(used) if name in _VALUES}
    return [f"{_INDENT}{line}" for line in align_columns(cells, right)]


def _list_details(row: Row, cells: Row) -> str:
    has_cells = cells.before or cells.after
    values = "" if has_cells else " -> ".join(filter(None, (row.before, row.after)))
    change = "" if cells.change else row.change
    numbers = ", ".join(filter(None, (values, change)))
    return " ".join(filter(None, (f"{numbers}." if numbers else "", row.sentence)))


def _add_figures(lines: _Lines, report: Report, *, everything: bool) -> None:
    measured = [name for name, cells in report.figures.items() if any(cell.status for cell in cells)]
    shown = {name: report.figures[name] for name in (measured if everything else measured[:MAX_CASE_LINES])}
    if not shown:
        return
    lines.add()
    _add_figure_rows(lines, shown)
    left = len(measured) - len(shown)
    legend = [f"{mark} {meaning}" for mark, meaning in list_marks(shown.values())]
    if legend := ([f"and {left} more cases"] if left else []) + legend:
        lines.wrap(", ".join(legend), _DIM)


def _add_figure_rows(lines: _Lines, figures: Mapping[str, Sequence[Cell]]) -> None:
    """A column's title may take two lines."""
    columns = _choose_columns(figures, lines.width)
    titles = [_FIGURES[column].rpartition(" ") for column in columns]
    above = [["", *(f"{word}  " for word, _, _ in titles)]] if any(word for word, _, _ in titles) else []
    rows = [*above, ["case", *(f"{name}  " for _, _, name in titles)]]
    for name, cells in figures.items():
        rows.append([name, *(f"{cells[column].text} {cells[column].mark or ' '}" for column in columns)])
    for number, text in enumerate(align_columns(rows, range(1, len(columns) + 1))):
        lines.add(text, _DIM if number <= len(above) else "")


def _choose_columns(figures: Mapping[str, Sequence[Cell]], width: int) -> list[int]:
    used = max(map(count_columns, figures))
    chosen: list[int] = []
    for index, title in enumerate(_FIGURES):
        cells = [row[index] for row in figures.values()]
        if all(cell.status is None and cell.text == ABSENT for cell in cells):
            continue
        used += _GAP + 2 + max(map(len, (*title.split(), *(cell.text for cell in cells))))
        if used > width and chosen:
            break
        chosen.append(index)
    return chosen
