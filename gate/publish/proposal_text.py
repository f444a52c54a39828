"""The words of a proposal of baselines: what moved, what moved the wrong way, and the question why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gate.metrics import SPECS
from gate.publish.proposal_changes import (
    Move,
    Replacement,
    describe_rest,
    list_growths,
    list_moves,
    list_replacements,
)
from gate.records import Baseline, Fact, Metric
from gate.report.markdown import escape_code, escape_text
from gate.report.words.notes import write_note
from gate.report.words.setbacks import describe_move, describe_setback
from gate.store.baselines import Proposal, ProposalKind, Setback
from gate.units import count_noun, render_percent, render_value

_MAX_ROWS = 60  # of each table: enough to read, and the rest is in the files
MAX_PROPOSAL_BYTES = 60_000  # GitHub takes 65,536 characters


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalText:
    """All that the words are made from: codes, ids, numbers and a reason, nothing else of who measured."""

    proposals: tuple[Proposal, ...]
    old: tuple[Baseline, ...]
    head_sha: str
    run_url: str
    environment_id: str
    directory: str
    is_known: bool  # whether the branch has baselines of this environment
    reason: str
    pr_number: int = 0
    notes: tuple[Fact, ...] = ()  # on the machine that measured

    @property
    def setbacks(self) -> tuple[Setback, ...]:
        """All that would move the wrong way."""
        return tuple(setback for proposal in self.proposals for setback in proposal.setbacks)


def render_title(*texts: ProposalText) -> str:
    """Render the pull request's title."""
    count = sum(len(text.proposals) for text in texts)
    places = dict.fromkeys(text.environment_id for text in texts)
    where = f"{len(places)} environments" if len(places) > 1 else next(iter(places))
    return f"Refresh {count_noun(count, 'baseline')} of {where}"


def render_message(text: ProposalText) -> str:
    """Render the commit's message."""
    lines = [render_title(text), "", f"Measured at {text.head_sha} by {text.run_url}"]
    if text.setbacks:
        lines += [
            "",
            "Moved the wrong way:",
            *(f"- {describe_setback(setback)}" for setback in text.setbacks[:_MAX_ROWS]),
        ]
    if text.reason:
        lines += ["", f"Reason: {text.reason}"]
    return "\n".join(lines) + "\n"


_NEW_ENVIRONMENT = (
    "The branch has no baselines of this environment, so there is nothing to hold these against. Look whether"
    " it is the machine and the stack that you expect: the files name them."
)
_ENDING = (
    "Merging this makes the new values what later changes are judged by. It was made on the tip of the"
    " branch, and touches only baselines."
)


def render_proposal(*texts: ProposalText) -> str:
    """Render the pull request's text: what each run proposes for one commit, the newest first."""
    sections = [*(section for text in texts for section in _list_sections(text)), _ENDING]
    while len("\n\n".join(sections).encode()) > MAX_PROPOSAL_BYTES:
        longest = max(range(1, len(sections)), key=lambda index: len(sections[index]))
        sections[longest] = "*Too long to be shown here: see the files.*"
    return "\n\n".join(section for section in sections if section) + "\n"


def _list_sections(text: ProposalText) -> list[str]:
    counts = {kind: sum(item.kind is kind for item in text.proposals) for kind in ProposalKind}
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    asked = f" for #{text.pr_number}" if text.pr_number else ""
    origin = f"measured at {text.head_sha} by [this run]({text.run_url}){asked}"
    changed = list_replacements(text.proposals, text.old, ProposalKind.CHANGED)
    redefined = list_replacements(text.proposals, text.old, ProposalKind.REDEFINED)
    moves, rest = list_moves(changed), _render_rest([*changed, *redefined])
    return [
        f"Baselines of `{text.environment_id}` in {escape_code(text.directory)}, {origin}: {summary}.",
        "\n".join(f"- {escape_text(write_note(note))}" for note in text.notes),
        "" if text.is_known else _NEW_ENVIRONMENT,
        _render_setbacks(text),
        _render_growths(list_growths([*changed, *redefined])),
        _render_redefined(redefined),
        _fold(len(moves), "What moved: {} value", _render_moves(moves)),
        _fold(len(rest), "What else changed: {} case", _cut(rest, "- and {} more, in the files")),
        _render_new(text),
    ]


def _render_setbacks(text: ProposalText) -> str:
    if not text.setbacks:
        return ""
    many = count_noun(len(text.setbacks), "metric")
    title = f"### {many} moved the wrong way"
    shown, rest = text.setbacks[:_MAX_ROWS], len(text.setbacks) - _MAX_ROWS
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
    move = describe_move(setback.metric, setback.old, setback.new)
    return f"{escape_code(setback.case_id)} `{setback.metric}` {move}"


def _render_growths(growths: Sequence[Move]) -> str:
    if not growths:
        return ""
    rows = [
        f"| {escape_code(one.case_id)} | `{one.metric}` | {_render_noise(one.metric, one.old)} |"
        f" {_render_noise(one.metric, one.new)} |"
        for one in growths
    ]
    verb = "scatters" if len(rows) == 1 else "scatter"
    title = f"### {count_noun(len(rows), 'metric')} {verb} more than before"
    why = (
        "Noise that is recorded hides what is smaller: later changes of these metrics pass unseen. Where"
        " nothing about the model explains it, measure again on a quieter machine."
    )
    head = ["| case | metric | stored noise | new noise |", "| --- | --- | ---: | ---: |"]
    return "\n".join([title, "", why, "", *head, *_cut(rows, "| and {} more, in the files | | | |")])


def _render_noise(metric: Metric, noise: float) -> str:
    if not SPECS[metric].is_ratio:
        return f"{noise:.3g} {SPECS[metric].unit}"
    return render_percent(noise, signed=False)


def _render_redefined(pairs: Sequence[Replacement]) -> str:
    if not pairs:
        return ""
    names = _cut([escape_code(pair.new.case_id) for pair in pairs], "and {} more")
    moves = list_moves(pairs)
    verb = "is" if len(pairs) == 1 else "are"
    title = f"### {count_noun(len(pairs), 'case')} {verb} defined anew on this branch"
    why = (
        "The stored values meant something else, so nothing is asked about them. Look whether the change of"
        f" definition explains what moved: {', '.join(names)}."
    )
    rows = _render_moves(moves) if moves else ["No median moved."]
    return "\n".join([title, "", why, "", *rows])


def _fold(count: int, what: str, lines: Sequence[str]) -> str:
    """Fold lines that list ``count`` things below a summary that says so."""
    if not count:
        return ""
    title = what.format(count) + ("" if count == 1 else "s")
    return "\n".join(["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"])


def _render_moves(moves: Sequence[Move]) -> list[str]:
    rows = [
        f"| {escape_code(move.case_id)} | `{move.metric}` | {render_value(move.metric, move.old)} |"
        f" {render_value(move.metric, move.new)} | {'worse' if move.is_worse else 'better'} |"
        for move in moves
    ]
    head = ["| case | metric | stored | new | |", "| --- | --- | ---: | ---: | --- |"]
    return [*head, *_cut(rows, "| and {} more, in the files | | | | |")]


def _render_rest(pairs: Iterable[Replacement]) -> list[str]:
    described = [(pair.new.case_id, describe_rest(pair)) for pair in pairs]
    return [f"- {escape_code(case_id)}: {escape_text(rest)}" for case_id, rest in described if rest]


def _render_new(text: ProposalText) -> str:
    names = [escape_code(item.baseline.case_id) for item in text.proposals if item.kind is ProposalKind.NEW]
    if not names:
        return ""
    many = count_noun(len(names), "case").capitalize()
    return f"{many} recorded for the first time: {', '.join(_cut(names, 'and {} more'))}."


def _cut(lines: list[str], rest: str) -> list[str]:
    """Keep the first lines, and say of how many more there are in the words of ``rest``."""
    return lines if len(lines) <= _MAX_ROWS else [*lines[:_MAX_ROWS], rest.format(len(lines) - _MAX_ROWS)]
