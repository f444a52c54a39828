"""The report for a pull request: headline, table of what changed, then the rest folded away.

All strings from elsewhere go through :func:`escape_text` or :func:`escape_code`; rows are capped.
"""

import html
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.records.verdict import RED, Status, Verdict
from gate.report.case_blocks import Block, Member
from gate.report.comparison_rows import Row
from gate.report.content import MAX_STEP, OUTCOME_KINDS, Report, make_report, render_counts
from gate.report.footer import COLUMNS, Cell, list_marks
from gate.report.words.templates import name_status
from gate.units import format_noun

# A comment on GitHub holds 65,536 characters; other text may share it.
MAX_COMMENT = 60_000
MAX_OPEN = 3  # cases whose causes are readable without a click
_CUT = "..."
_SIDES = ("before", "head")
_MAX_ITEMS = 20
MAX_CHARS = 300  # of one escaped string before it is escaped
GOOD = "\N{WHITE HEAVY CHECK MARK}"
BAD = "\N{CROSS MARK}"
UNSURE = "\N{WARNING SIGN}\ufe0f"
_SIGNS = {"good": GOOD, "bad": BAD, "unsure": UNSURE}
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
_ISSUE = re.compile(r"(?i)(?<![a-z0-9])(GH-)(?=[0-9])")  # GitHub's other way to write #12
_PLAIN_CODE = re.compile(r"[A-Za-z0-9 ._/:+*?=,'\"%()\[\]{}-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    rows: int = 40
    blocks: int = 12
    members: int = 60  # cases of a group, by name
    case_lines: int = 60
    counts: bool = True
    footer: bool = True  # how it was measured
    is_local: bool = True  # for who has the machine: commands that measure a case again


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportFrame:
    heading: str = ""  # instead of the outcome; the headline follows below
    sign: str = ""  # instead of the outcome's own
    counts: tuple[tuple[Status, int], ...] = ()  # instead of those of what is shown
    origin: str = ""  # instead of the report's own commits and time
    preface: str = ""  # a paragraph below the heading
    steps: Sequence[str] | None = None  # what to do next


FULL = Layout()
PLAIN = ReportFrame()


def escape_text(text: str) -> str:
    """No markup, mention, link, table cell or HTML is left."""
    escaped = _SPECIAL.sub(lambda match: _ENTITIES[match[0]], _cut(text))
    escaped = _EDGE_UNDERSCORE.sub("&#95;", escaped)
    escaped = _ISSUE.sub(r"\1&#8203;", escaped)
    return _LINK.sub(lambda match: f"&#{ord(match[0])};", escaped)


def escape_code(text: str, limit: int = MAX_CHARS) -> str:
    """Inline code; with odd characters, HTML code of entities only."""
    text = _cut(text, limit).strip()
    if _PLAIN_CODE.fullmatch(text):
        return f"`{text}`"
    return f"<code>{_escape_all(text)}</code>"


def _cut(text: str, limit: int = MAX_CHARS) -> str:
    return text if len(text) <= limit else f"{text[: limit - len(_CUT)]}{_CUT}"


def render_markdown(verdict: Verdict, layout: Layout = FULL, frame: ReportFrame = PLAIN) -> str:
    report = make_report(verdict)
    decided, undecided = _split_blocks(report.blocks)  # undecided ones are folded away: most need no action
    steps = [
        f"{escape_text(step.text)} {escape_code(step.command, MAX_STEP) if step.command else ''}".strip()
        for step in report.next_steps
    ]
    first, later = (steps[:1], steps[1:]) if frame.steps is None else (frame.steps, [])
    sign, headline = frame.sign or _SIGNS[OUTCOME_KINDS[report.outcome]], escape_text(report.headline)
    heading = [frame.heading, headline] if frame.heading else [f"{report.outcome.value}: {headline}"]
    sections = [
        f"## {sign} {heading[0]}",
        *heading[1:],
        f"<sub>{frame.origin or escape_text(report.subject)}</sub>",
        frame.preface,
        escape_text(report.why),
        _render_list("Why", [escape_text(cause) for cause in report.causes]),
        _render_list("Next", first),
        f"**{render_counts(frame.counts or report.counts)}**" if layout.counts else "",
        escape_text(report.unchanged) if layout.counts else "",
        *_render_changes(decided, layout),
        fold("Inconclusive", join_parts(_render_changes(undecided, layout))) if undecided else "",
        _render_list("Other steps", later),
        _render_list("Notes", [escape_text(note) for note in report.notes]),
        _render_figures(report, layout),
        _render_origin(report) if layout.footer else "",
    ]
    return _join_sections([section for section in sections if section])


def _join_sections(sections: list[str]) -> str:
    left_out = ""
    while sum(map(len, sections)) > MAX_COMMENT and len(sections) > 1:
        sections.pop()
        left_out = "... the rest is in `verdict.json`"
    return "\n\n".join([*sections, *([left_out] if left_out else [])])[:MAX_COMMENT] + "\n"


def _split_blocks(blocks: Iterable[Block]) -> tuple[list[Block], list[Block]]:
    """A case may have both."""
    decided: list[Block] = []
    undecided: list[Block] = []
    for block in blocks:
        if block.status is not Status.INCONCLUSIVE:
            decided.append(block)
            continue
        rows = tuple(row for row in block.rows if row.decides and row.status is not Status.INCONCLUSIVE)
        if rows:
            named = tuple(Member(case_id=member.case_id) for member in block.members)
            decided.append(
                replace(block, status=rows[0].status, rows=rows, members=named, causes=(), command="")
            )
        undecided.append(replace(block, rows=tuple(row for row in block.rows if row not in rows)))
    return decided, undecided


def _render_changes(blocks: Sequence[Block], layout: Layout) -> list[str]:
    rows = [
        _list_cells(block, row, is_first=not index)
        for block in blocks
        for index, row in enumerate(block.rows)
    ]
    more = _render_more(len(rows) - layout.rows, "row")
    table = render_table(("case", "metric", *_SIDES, "change"), _SIDES, rows[: layout.rows], more)
    return [table if rows else "", *_render_blocks(blocks, layout)]


def render_table(
    header: Sequence[str], right: Collection[str], rows: Iterable[Iterable[str]], more: str = ""
) -> str:
    """Of Markdown cells; the columns named in ``right`` are set to the right. ``more`` follows the table."""
    rule = ["---:" if name in right else "---" for name in header]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))
    return f"{table}\n\n{more}" if more else table


def _list_cells(block: Block, row: Row, *, is_first: bool) -> tuple[str, ...]:
    title = block.title if block.members else escape_code(block.title)
    case = title if is_first else ""
    text = escape_text(row.change or row.label)
    is_news = row.decides and row.status in RED
    change = f"**{text}**" if is_news else text if row.decides else f"{text}, does not decide"
    return case, row.metric, escape_text(row.before), escape_text(row.after), change


def _render_blocks(blocks: Sequence[Block], layout: Layout) -> list[str]:
    if not layout.blocks:
        return []
    opened = [block for block in blocks if block.status in RED and not block.members][:MAX_OPEN]
    folds = [_render_block(block, layout, opened=block in opened) for block in blocks[: layout.blocks]]
    return [*folds, _render_more(len(blocks) - layout.blocks, "case")]


def _render_block(block: Block, layout: Layout, *, opened: bool) -> str:
    lines = [f"- {row.metric}: {escape_text(row.sentence)}" for row in block.rows if row.sentence]
    lines += [f"- {escape_text(failure)}" for failure in block.failures[:_MAX_ITEMS]]
    lines += [f"- log: {escape_code(log)}" for log in block.logs[:_MAX_ITEMS]]
    lines += [f"- why: {escape_text(cause)}" for cause in block.causes]
    lines += [f"- run again: {escape_code(block.command)}"] if block.command and layout.is_local else []
    # <pre> of entities: a fence could be closed by a log that holds one.
    log = "\n".join(map(_cut, block.log_tail))
    title = block.title if block.members else f"<code>{_escape_all(_cut(block.title))}</code>"
    parts = [
        "\n".join(lines),
        _render_members(block, layout),
        f"<pre>{_escape_all(log)}</pre>" if log else "",
    ]
    body = join_parts(parts)
    return fold(f"{title}: {_summarize(block)}", body, opened=opened) if body else ""


def _summarize(block: Block) -> str:
    title = name_status(block.status)
    if block.rows and (change := block.rows[0].change):
        row, has_number = block.rows[0], any(character.isdigit() for character in change)
        move = change if has_number else f"{row.before} -> {row.after} ({change})"
        title = escape_text(f"{row.metric} {move}")
    more = sum(row.decides and row.status is block.status for row in block.rows[1:])
    return f"{title}, and {format_noun(more, 'more metric')}" if more else title


def _render_members(block: Block, layout: Layout) -> str:
    members = block.members
    if not members:
        return ""
    rows = [
        (escape_code(member.case_id), *map(escape_text, (member.before, member.after, member.change)))
        for member in members[: layout.members]
    ]
    more = _render_more(len(members) - layout.members, "case")
    return render_table(("case", *_SIDES, "change"), _SIDES, rows, more)


def _render_figures(report: Report, layout: Layout) -> str:
    measured = [name for name, cells in report.figures.items() if any(cell.status for cell in cells)]
    if not measured or not layout.case_lines:
        return ""
    shown = {name: report.figures[name] for name in measured[: layout.case_lines]}
    rows = ((escape_code(name), *map(_render_cell, cells)) for name, cells in shown.items())
    table = render_table(("case", *COLUMNS.values()), COLUMNS.values(), rows)
    marks = list_marks(shown.values())
    legend = ", ".join(f"<sup>{escape_text(mark)}</sup> {meaning}" for mark, meaning in marks)
    more = _render_more(len(measured) - len(shown), "case")
    return fold("Measured values", join_parts((table, legend, more)))


def _render_cell(cell: Cell) -> str:
    return escape_text(cell.text) + (f" <sup>{escape_text(cell.mark)}</sup>" if cell.mark else "")


def _render_origin(report: Report) -> str:
    lines = (f"- **{label}** {escape_text(text)}" for label, text in (*report.scope, *report.footer))
    return fold("How it was measured", "\n".join(lines))


def _render_list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    shown = filter(None, (*items[:_MAX_ITEMS], _render_more(len(items) - _MAX_ITEMS, "line")))
    return "\n".join([f"**{title}**", "", *(f"- {item}" for item in shown)])


def _render_more(number: int, word: str) -> str:
    return f"... and {format_noun(number, f'more {word}')}, in `verdict.json`" if number > 0 else ""


def join_parts(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def fold(title: str, body: str, *, opened: bool = False) -> str:
    """The title is HTML."""
    return f"<details{' open' if opened else ''}><summary>{title}</summary>\n\n{body}\n\n</details>"


def _escape_all(text: str) -> str:
    """For HTML and for the Markdown that is still read inside it."""
    escaped = html.escape(text, quote=False)
    return re.sub(r"[\\`*_\[\]{}|~!$^@#:]", lambda match: f"&#{ord(match[0])};", escaped)
