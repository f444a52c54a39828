"""The report for a pull request: headline, table of what changed, then the rest folded away.

Nothing in it can become markup: every string that comes from elsewhere goes through
:func:`escape_text` or :func:`escape_code`, and rows are capped so that it fits into a comment.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from gate.records import Outcome, Status, Verdict
from gate.report.rows import MARKS, list_marks, make_report, render_counts
from gate.report.view import Block, CaseLine, Report, Row

# A comment on GitHub holds 65,536 characters; other text may share it.
MAX_COMMENT = 60_000
# Caps that keep a report with many rows to a screen or two.
MAX_ROWS = 40
MAX_BLOCKS = 12
MAX_CASE_LINES = 60
MAX_OPEN = 3  # cases whose causes are readable without a click
MAX_ITEMS = 20
MAX_CHARS = 300  # of one escaped string before it is escaped

OUTCOME_SIGNS: Mapping[Outcome, str] = {
    Outcome.PASS: "\N{WHITE HEAVY CHECK MARK}",
    Outcome.REGRESSION: "\N{CROSS MARK}",
    Outcome.INCOMPLETE: "\N{CROSS MARK}",
    Outcome.INCONCLUSIVE: "\N{WARNING SIGN}\ufe0f",
    Outcome.NOTHING_COMPARED: "\N{WARNING SIGN}\ufe0f",
}
_OPENED = frozenset({Status.REGRESSED, Status.FAILED, Status.MISSING})
_COLUMNS = ("status", "case", "metric", "baseline", "candidate", "change", "interval", "limit")
_ALIGNMENT = "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
# Characters that begin or end some markup, as entities: an entity is never markup itself. "@" and
# "#" also get a zero-width space behind them, because GitHub looks for mentions after decoding.
_ENTITIES: Mapping[str, str] = {
    **{character: f"&#{ord(character)};" for character in "\\`*[]{}|~!$^"},
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "@": "@&#8203;",
    "#": "#&#8203;",
}
_SPECIAL = re.compile("[" + re.escape("".join(_ENTITIES)) + "]")
_EDGE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINK = re.compile(r"(?i)(?<=https):|(?<=http):|(?<=ftp):|(?<=mailto):|(?<=www)\.")
_PLAIN_CODE = re.compile(r"[A-Za-z0-9 ._/:+*?=,'\"%()\[\]{}-]+")


def escape_text(text: str) -> str:
    """Return ``text`` so that Markdown shows it as it is: no markup, mention, link, table cell or HTML."""
    escaped = _SPECIAL.sub(lambda match: _ENTITIES[match[0]], text[:MAX_CHARS])
    escaped = _EDGE_UNDERSCORE.sub("&#95;", escaped)
    return _LINK.sub(lambda match: f"&#{ord(match[0])};", escaped)


def escape_code(text: str, limit: int = MAX_CHARS) -> str:
    """Return ``text`` as inline code; with odd characters, as HTML code of entities only."""
    text = text[:limit].strip()
    if _PLAIN_CODE.fullmatch(text):
        return f"`{text}`"
    return f"<code>{_escape_all(text)}</code>"


def render_markdown(verdict: Verdict) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    report = make_report(verdict)
    opened = [block.case_id for block in report.blocks if block.status in _OPENED][:MAX_OPEN]
    sections = [
        f"## {OUTCOME_SIGNS[report.outcome]} {report.outcome.value}: {escape_text(report.headline)}",
        f"**{render_counts(report.counts)}**",
        _render_changes(report.blocks),
        *(_render_block(block, opened=block.case_id in opened) for block in report.blocks[:MAX_BLOCKS]),
        _render_more(len(report.blocks) - MAX_BLOCKS, "case"),
        _render_list("Next", [_render_step(step.text, step.command) for step in report.next_steps]),
        _render_list("Notes", [escape_text(note) for note in report.notes]),
        _render_figures(report),
        _render_pairs((*report.scope, *report.footer)),
    ]
    return _join_sections([section for section in sections if section])


def _join_sections(sections: list[str]) -> str:
    """Join the sections; the last ones give way if a hostile verdict makes them too long."""
    left_out = ""
    while sum(map(len, sections)) > MAX_COMMENT and len(sections) > 1:
        sections.pop()
        left_out = "... the rest is in `verdict.json`"
    return "\n\n".join([*sections, *([left_out] if left_out else [])])[:MAX_COMMENT] + "\n"


def _render_changes(blocks: Sequence[Block]) -> str:
    rows = [(block, row) for block in blocks for row in block.rows]
    if not rows:
        return ""
    shown = [_render_row(block, row) for block, row in rows[:MAX_ROWS]]
    table = "\n".join([_join_cells(_COLUMNS), _ALIGNMENT, *shown])
    more = _render_more(len(rows) - MAX_ROWS, "row")
    return f"{table}\n\n{more}" if more else table


def _render_row(block: Block, row: Row) -> str:
    label = f"**{row.label}**" if row.decides and row.status is not Status.UNCHANGED else row.label
    numbers = (row.baseline, row.candidate, row.change, row.interval, row.threshold)
    cells = (label, escape_code(block.case_id), escape_code(row.metric), *map(escape_text, numbers))
    return _join_cells(cells)


def _join_cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_block(block: Block, *, opened: bool) -> str:
    """Sentences, causes and the command of one case, folded away below the table or opened."""
    lines = [
        f"- {escape_code(row.metric)}: {escape_text(row.sentence)}" for row in block.rows if row.sentence
    ]
    lines += [f"- {escape_text(failure)}" for failure in block.failures[:MAX_ITEMS]]
    lines += [f"- log: {escape_code(log)}" for log in block.logs[:MAX_ITEMS]]
    lines += [f"- why: {escape_text(cause)}" for cause in block.causes]
    lines += [f"- run again: {escape_code(block.command)}"] if block.command else []
    log = [_render_log(block.log_tail)] if block.log_tail else []
    title = f"{block.status.value}: <code>{_escape_all(block.case_id[:MAX_CHARS])}</code>"
    return _fold(title, "\n\n".join(["\n".join(lines), *log]), opened=opened) if lines or log else ""


def _render_log(lines: Sequence[str]) -> str:
    # <pre> of entities: a fence could be closed by a log that holds one.
    text = "\n".join(line[:MAX_CHARS] for line in lines)
    return f"<pre>{_escape_all(text)}</pre>"


def _render_figures(report: Report) -> str:
    lines = [line for line in report.case_lines if any(cell.status for cell in line.cells)]
    if not lines:
        return ""
    shown = lines[:MAX_CASE_LINES]
    head = [_join_cells(("case", *report.columns)), f"| --- |{' ---: |' * len(report.columns)}"]
    table = "\n".join([*head, *map(_render_case_line, shown)])
    legend = _render_legend(shown)
    more = _render_more(len(lines) - len(shown), "case")
    return _fold("Measured", "\n\n".join(part for part in (table, legend, more) if part))


def _render_case_line(line: CaseLine) -> str:
    cells = (f"{escape_text(cell.text)}{_find_mark(cell.status)}" for cell in line.cells)
    return _join_cells((escape_code(line.case_id), *cells))


def _find_mark(status: Status | None) -> str:
    return f" <sup>{escape_text(MARKS[status][0])}</sup>" if status is not None and status in MARKS else ""


def _render_legend(lines: Sequence[CaseLine]) -> str:
    return ", ".join(f"<sup>{escape_text(mark)}</sup> {meaning}" for mark, meaning in list_marks(lines))


def _render_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    return _fold(
        "How it was measured", "\n".join(f"- **{label}** {escape_text(text)}" for label, text in pairs)
    )


def _render_step(text: str, command: str) -> str:
    return f"{escape_text(text)} {escape_code(command, 1200) if command else ''}".strip()


def _render_list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    more = [_render_more(len(items) - MAX_ITEMS, "line")] if len(items) > MAX_ITEMS else []
    return "\n".join([f"**{title}**", "", *(f"- {item}" for item in (*items[:MAX_ITEMS], *more))])


def _render_more(number: int, word: str) -> str:
    return (
        f"... and {number:,} more {word}{'' if number == 1 else 's'}, in `verdict.json`" if number > 0 else ""
    )


def _fold(title: str, body: str, *, opened: bool = False) -> str:
    return f"<details{' open' if opened else ''}><summary>{title}</summary>\n\n{body}\n\n</details>"


def _escape_all(text: str) -> str:
    """Escape for HTML and for the Markdown that is still read inside it."""
    escaped = html.escape(text, quote=False)
    return re.sub(r"[\\`*_\[\]{}|~!$^@#:]", lambda match: f"&#{ord(match[0])};", escaped)
