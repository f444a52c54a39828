"""A proposal of baselines in words: what moved, what moved the wrong way, and the question why; pure.

A baseline can become useless while its median stays: noisier, or redefined. So that is listed, too.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median, stdev

from gate.metrics import SPECS, Family, Role
from gate.records.cases import Metric
from gate.records.facts import Fact
from gate.records.run import Setback
from gate.report.markdown import escape_code, escape_text, fold, join_parts, render_table
from gate.report.words.facts import write_note
from gate.report.words.steps import describe_setback
from gate.report.words.templates import describe_values
from gate.store.baselines import Proposal, ProposalKind
from gate.units import format_noun, format_percent, format_value, join_some

SMALLEST_MOVE = 0.005  # changes below half a percent are not worth a row
# Noise of a few trials doubles by chance; below these it hides nothing that a threshold would show.
NOISE_FACTOR = 2.0
SMALLEST_NOISE = {Family.NOISY: 0.01, Family.NEARLY_EXACT: 0.005, Family.LOG2: 0.1, Family.EXACT: 0.0}
_NAMED = 6  # metrics named of one case
_MAX_ROWS = 60  # of each table: enough to read, and the rest is in the files
MAX_PROPOSAL_BYTES = 60_000  # GitHub takes 65,536 characters
_NEW_ENVIRONMENT = (
    "The branch has no baselines of this environment, so these cannot be compared. Check that the files name"
    " the machine and the stack that you expect."
)
_ENDING = (
    "After merging, later changes are compared with these values. It was made on the tip of the branch,"
    " and touches only baselines."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A deciding metric whose median moved, or whose noise grew."""

    case_id: str
    metric: Metric
    old: float
    new: float

    @property
    def is_worse(self) -> bool:
        return (self.new < self.old) is SPECS[self.metric].higher_is_better


def list_moves(proposals: Iterable[Proposal]) -> list[Move]:
    return [
        move
        for proposal in proposals
        for move in _compare(proposal, lambda _, values: median(values))
        if abs(move.new - move.old) > SMALLEST_MOVE * abs(move.old)
    ]


def list_growths(proposals: Iterable[Proposal]) -> list[Move]:
    return [
        growth
        for proposal in proposals
        for growth in _compare(proposal, compute_scatter)
        if growth.new > SMALLEST_NOISE[SPECS[growth.metric].family]
        and growth.new >= NOISE_FACTOR * growth.old
    ]


def _compare(proposal: Proposal, compute: Callable[[Metric, Sequence[float]], float]) -> Iterator[Move]:
    stored = proposal.old.trials if proposal.old else {}
    for metric in Metric:
        old, new = stored.get(metric), proposal.baseline.trials.get(metric)
        if SPECS[metric].role is Role.DECIDES and old and new:
            values = {"old": compute(metric, old), "new": compute(metric, new)}
            yield Move(case_id=proposal.baseline.case_id, metric=metric, **values)


def compute_scatter(metric: Metric, values: Sequence[float]) -> float:
    """Compute a standard deviation: a fraction of the value, of log2 values in their unit.

    Of counters it is the difference between the largest and the smallest.
    """
    family = SPECS[metric].family
    if family is Family.EXACT or len(values) < 2:  # noqa: PLR2004 - one value does not scatter
        return max(values) - min(values)
    if family is Family.LOG2:
        return stdev(values)
    if min(values) > 0:
        return stdev(map(math.log, values))
    return stdev(values) / abs(median(values)) if median(values) else math.inf


def describe_losses(proposal: Proposal) -> str:
    """Later changes are judged by less."""
    old, new = proposal.old, proposal.baseline
    if old is None:
        return ""
    before, after = (max(map(len, baseline.trials.values()), default=0) for baseline in (old, new))
    fewer = [f"{after} trials instead of {before}"] if after < before else []
    gone = [metric for metric in Metric if metric in old.trials.keys() - new.trials.keys()]
    return "; ".join([*fewer, *([f"no longer measured: {join_some(gone, _NAMED)}"] if gone else [])])


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalText:
    """Codes, ids, numbers and a reason; nothing else of who measured."""

    proposals: tuple[Proposal, ...]
    head_sha: str
    run_url: str
    environment_id: str
    directory: str
    is_known: bool  # whether the branch has baselines of this environment
    reason: str = ""
    pr_number: int = 0
    notes: tuple[Fact, ...] = ()  # on the machine that measured

    def list_of(self, *kinds: ProposalKind) -> list[Proposal]:
        return [proposal for proposal in self.proposals if proposal.kind in kinds]

    @property
    def setbacks(self) -> tuple[Setback, ...]:
        return tuple(setback for proposal in self.proposals for setback in proposal.setbacks)


def render_title(*texts: ProposalText) -> str:
    count = sum(len(text.proposals) for text in texts)
    environments = dict.fromkeys(text.environment_id for text in texts)
    where = f"{len(environments)} environments" if len(environments) > 1 else next(iter(environments))
    return f"Refresh {format_noun(count, 'baseline')} of {where}"


def name_measured(head_sha: str) -> str:
    """How the proposals of a commit are recognised."""
    return f"\nMeasured at {head_sha} by "


def render_message(text: ProposalText) -> str:
    lines = [render_title(text), f"{name_measured(text.head_sha)}{text.run_url}"]
    if text.setbacks:
        lines += [
            "",
            "Moved the wrong way:",
            *(f"- {describe_setback(setback)}" for setback in text.setbacks[:_MAX_ROWS]),
        ]
    if text.reason:
        lines += ["", f"Reason: {text.reason}"]
    return "\n".join(lines) + "\n"


def render_proposal(*texts: ProposalText) -> str:
    """``texts`` are of one commit, the newest first."""
    sections = [*(section for text in texts for section in _list_sections(text)), _ENDING]
    while len("\n\n".join(sections).encode()) > MAX_PROPOSAL_BYTES:
        longest = max(range(1, len(sections)), key=lambda index: len(sections[index]))
        sections[longest] = "*Too long to be shown here: see the files.*"
    return "\n\n".join(section for section in sections if section) + "\n"


def _list_sections(text: ProposalText) -> list[str]:
    counts = ((len(text.list_of(kind)), kind) for kind in ProposalKind)
    summary = ", ".join(f"{count} {kind}" for count, kind in counts if count)
    asked = f" for #{text.pr_number}" if text.pr_number else ""
    origin = f"measured at {text.head_sha} by [this run]({text.run_url}){asked}"
    stored = text.list_of(ProposalKind.CHANGED, ProposalKind.REDEFINED)
    moves = list_moves(text.list_of(ProposalKind.CHANGED))
    return [
        f"Baselines of `{text.environment_id}` in {escape_code(text.directory)}, {origin}: {summary}.",
        "\n".join(f"- {escape_text(write_note(note))}" for note in text.notes),
        "" if text.is_known else _NEW_ENVIRONMENT,
        _render_setbacks(text),
        _render_growths(list_growths(stored)),
        _render_losses(stored),
        _render_redefined(text.list_of(ProposalKind.REDEFINED)),
        fold(f"What moved: {format_noun(len(moves), 'value')}", _render_moves(moves)) if moves else "",
        _render_new(text),
    ]


def _render_setbacks(text: ProposalText) -> str:
    if not text.setbacks:
        return ""
    many = format_noun(len(text.setbacks), "metric")
    title = f"### {many} moved the wrong way"
    box, why, opening = "", "", f"The reason given: {escape_text(text.reason)}"
    if not text.reason:
        box, why = "[ ] ", ": *why?*"
        opening = (
            "A baseline recorded over a regression hides it. **Write down why each of these is right**"
            " before merging, or close this and find the cause:"
        )
    rows = _cut(
        [f"- {box}{_name_code(setback)}{why}" for setback in text.setbacks],
        f"- {box}and {{}} more, in the files",
    )
    return "\n".join([title, "", opening, "", *rows])


def _name_code(setback: Setback) -> str:
    move = describe_values(setback.metric, setback.old, setback.new)
    return f"{escape_code(setback.case_id)} `{setback.metric}` {move}"


def _render_growths(growths: Sequence[Move]) -> str:
    if not growths:
        return ""
    verb = "scatters" if len(growths) == 1 else "scatter"
    title = f"### {format_noun(len(growths), 'metric')} {verb} more than before"
    why = (
        "Recorded noise hides smaller changes of these metrics. If the model does not explain it,"
        " measure again on a quieter machine."
    )
    rows = [
        (move, _render_noise(move.metric, move.old), _render_noise(move.metric, move.new)) for move in growths
    ]
    return join_parts((title, why, _render_table(("stored noise", "new noise"), rows)))


def _render_noise(metric: Metric, noise: float) -> str:
    if not SPECS[metric].is_ratio:
        return f"{noise:.3g} {SPECS[metric].unit}"
    return format_percent(noise, signed=False) if math.isfinite(noise) else "not finite"


def _render_redefined(proposals: Sequence[Proposal]) -> str:
    if not proposals:
        return ""
    names = _cut([escape_code(proposal.baseline.case_id) for proposal in proposals], "and {} more")
    moves = list_moves(proposals)
    verb = "is" if len(proposals) == 1 else "are"
    title = f"### {format_noun(len(proposals), 'case')} {verb} redefined on this branch"
    why = f"The stored values had another definition. Check that it explains what moved: {', '.join(names)}."
    return join_parts((title, why, _render_moves(moves) or "No median moved."))


def _render_moves(moves: Sequence[Move]) -> str:
    rows = [
        (
            move,
            format_value(move.metric, move.old),
            format_value(move.metric, move.new),
            "worse" if move.is_worse else "better",
        )
        for move in moves
    ]
    return _render_table(("stored", "new", ""), rows)


def _render_table(names: Sequence[str], rows: Sequence[tuple[Move, *tuple[str, ...]]]) -> str:
    shown = [(escape_code(move.case_id), f"`{move.metric}`", *cells) for move, *cells in rows[:_MAX_ROWS]]
    left = len(rows) - _MAX_ROWS
    more = f"... and {left} more, in the files" if left > 0 else ""
    return render_table(("case", "metric", *names), names, shown, more) if rows else ""


def _render_losses(proposals: Iterable[Proposal]) -> str:
    described = [(proposal.baseline.case_id, describe_losses(proposal)) for proposal in proposals]
    lines = [f"- {escape_code(case_id)}: {text}" for case_id, text in described if text]
    body = "\n".join(_cut(lines, "- and {} more, in the files"))
    return f"### {format_noun(len(lines), 'case')} measured less than before\n\n{body}" if lines else ""


def _render_new(text: ProposalText) -> str:
    names = [escape_code(proposal.baseline.case_id) for proposal in text.list_of(ProposalKind.NEW)]
    if not names:
        return ""
    many = format_noun(len(names), "case").capitalize()
    return f"{many} recorded for the first time: {', '.join(_cut(names, 'and {} more'))}."


def _cut(lines: list[str], rest: str) -> list[str]:
    """Keep the first lines; ``rest`` counts the others."""
    return lines if len(lines) <= _MAX_ROWS else [*lines[:_MAX_ROWS], rest.format(len(lines) - _MAX_ROWS)]
