"""The words of a proposal of baselines: what moved, what moved the wrong way, and the question why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from gate.baseline import Proposal, ProposalKind, Setback
from gate.metrics import SPECS, Role
from gate.records import Baseline, Metric
from gate.report.markdown import escape_code, escape_text
from gate.units import render_value

MAX_ROWS = 60  # of each table: enough to read, and the rest is in the files
MAX_BODY_BYTES = 60_000  # GitHub takes 65,536 characters
_SMALLEST = 0.005  # changes below half a percent are not worth a row


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalText:
    """All that the words are made from; ids, numbers and a reason, nothing else of the measured side."""

    proposals: tuple[Proposal, ...]
    old: tuple[Baseline, ...]
    head_sha: str
    run_url: str
    environment_id: str
    reason: str
    pr_number: int = 0

    @property
    def setbacks(self) -> tuple[Setback, ...]:
        """All that would move the wrong way."""
        return tuple(setback for proposal in self.proposals for setback in proposal.setbacks)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Move:
    case_id: str
    metric: Metric
    old: float
    new: float
    is_worse: bool


def render_title(text: ProposalText) -> str:
    """Render the pull request's title."""
    return f"Refresh {_count(len(text.proposals), 'baseline')} of {text.environment_id}"


def render_message(text: ProposalText) -> str:
    """Render the commit's message."""
    lines = [render_title(text), "", f"Measured at {text.head_sha} by {text.run_url}"]
    if text.setbacks:
        lines += [
            "",
            "Moved the wrong way:",
            *(f"- {_name(setback)}" for setback in text.setbacks[:MAX_ROWS]),
        ]
    if text.reason:
        lines += ["", f"Reason: {text.reason}"]
    return "\n".join(lines) + "\n"


def render_body(text: ProposalText) -> str:
    """Render the pull request's text."""
    counts = {kind: sum(item.kind is kind for item in text.proposals) for kind in ProposalKind}
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    asked = f" for #{text.pr_number}" if text.pr_number else ""
    origin = f"measured at {text.head_sha} by [this run]({text.run_url}){asked}"
    sections = [
        f"Baselines of `{text.environment_id}`, {origin}: {summary}.",
        _render_setbacks(text),
        _render_moves(text),
        _render_new(text),
        "Merging this makes the new values what later changes are judged by. It touches only baselines.",
    ]
    while len("\n\n".join(sections).encode()) > MAX_BODY_BYTES:
        longest = max(range(1, len(sections)), key=lambda index: len(sections[index]))
        sections[longest] = "*Too long to be shown here: see the files.*"
    return "\n\n".join(section for section in sections if section) + "\n"


def _render_setbacks(text: ProposalText) -> str:
    if not text.setbacks:
        return ""
    many = _count(len(text.setbacks), "metric")
    title = f"### {many} moved the wrong way"
    shown, rest = text.setbacks[:MAX_ROWS], len(text.setbacks) - MAX_ROWS
    more = [f"- [ ] and {rest} more, in the files"] if rest > 0 else []
    if text.reason:
        rows = [f"- {_name_code(setback)}" for setback in shown] + [line.replace("[ ] ", "") for line in more]
        return "\n".join([title, "", f"The reason given: {escape_text(text.reason)}", "", *rows])
    ask = (
        "A baseline that is recorded over a regression hides it. **Write down why each of these is right**"
        " before merging, or close this and look for the cause:"
    )
    return "\n".join([title, "", ask, "", *(f"- [ ] {_name_code(item)}: *why?*" for item in shown), *more])


def _name_code(setback: Setback) -> str:
    return (
        f"{escape_code(setback.case_id)} `{setback.metric}` {_move(setback.metric, setback.old, setback.new)}"
    )


def _name(setback: Setback) -> str:
    return f"{setback.case_id} {setback.metric} {_move(setback.metric, setback.old, setback.new)}"


def _move(metric: Metric, old: float, new: float) -> str:
    """Say a setback's move; equal values are how one says that the metric is no longer measured."""
    return f"{render_value(metric, old)} -> {'not measured' if old == new else render_value(metric, new)}"


def _render_moves(text: ProposalText) -> str:
    moves = list(_list_moves(text))
    if not moves:
        return ""
    rows = [
        f"| {escape_code(move.case_id)} | `{move.metric}` | {render_value(move.metric, move.old)} |"
        f" {render_value(move.metric, move.new)} | {'worse' if move.is_worse else 'better'} |"
        for move in moves[:MAX_ROWS]
    ]
    if len(moves) > MAX_ROWS:
        rows.append(f"| and {len(moves) - MAX_ROWS} more, in the files | | | | |")
    head = ["| case | metric | stored | new | |", "| --- | --- | ---: | ---: | --- |"]
    summary = f"<summary>What moved: {_count(len(moves), 'value')}</summary>"
    return "\n".join(["<details>", summary, "", *head, *rows, "", "</details>"])


def _list_moves(text: ProposalText) -> Iterator[_Move]:
    """List deciding metrics whose median moved, of cases whose definition is what it was."""
    before = {item.case_id: item for item in text.old}
    for proposal in text.proposals:
        if proposal.kind is not ProposalKind.CHANGED:
            continue
        case_id = proposal.baseline.case_id
        old = before[case_id]
        for metric in Metric:
            spec = SPECS[metric]
            values = proposal.baseline.trials.get(metric), old.trials.get(metric)
            if spec.role is not Role.DECIDES or not values[0] or not values[1]:
                continue
            new_value, old_value = median(values[0]), median(values[1])
            if abs(new_value - old_value) > _SMALLEST * abs(old_value):
                is_worse = (new_value < old_value) is spec.higher_is_better
                yield _Move(case_id=case_id, metric=metric, old=old_value, new=new_value, is_worse=is_worse)


def _render_new(text: ProposalText) -> str:
    lines = []
    for kind, words in (
        (ProposalKind.NEW, "recorded for the first time"),
        (ProposalKind.REDEFINED, "defined anew, so the stored values meant something else"),
    ):
        names = [item.baseline.case_id for item in text.proposals if item.kind is kind]
        if names:
            shown = ", ".join(escape_code(name) for name in names[:MAX_ROWS])
            rest = f" and {len(names) - MAX_ROWS} more" if len(names) > MAX_ROWS else ""
            lines.append(f"{_count(len(names), 'case').capitalize()} {words}: {shown}{rest}.")
    return "\n\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
