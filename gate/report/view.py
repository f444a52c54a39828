"""What a report says, before any format: every string is ready to be laid out and escaped."""

from collections.abc import Mapping
from dataclasses import dataclass

from gate.records import Outcome, Status

ABSENT = "-"
# By what a reader does about it: the colour and sign of a badge.
STATUS_KINDS: Mapping[Status, str] = {
    Status.REGRESSED: "bad",
    Status.FAILED: "bad",
    Status.MISSING: "bad",
    Status.INCONCLUSIVE: "unsure",
    Status.ACCEPTED: "other",
    Status.NEW: "other",
    Status.NOT_COMPARABLE: "other",
    Status.IMPROVED: "good",
    Status.UNCHANGED: "same",
}
OUTCOME_KINDS: Mapping[Outcome, str] = {
    Outcome.PASS: "good",
    Outcome.REGRESSION: "bad",
    Outcome.INCOMPLETE: "bad",
    Outcome.INCONCLUSIVE: "unsure",
    Outcome.NOTHING_COMPARED: "bad",  # it fails the check, whatever --fail-on says
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One comparison, or several of a case that share one fate and have no numbers."""

    status: Status
    label: str  # the status, in lower-case brackets where the metric does not decide
    metric: str
    before: str = ""
    after: str = ""
    change: str = ""  # with a word: "+30.6 % (slower)"
    interval: str = ""  # of the change; only where all is shown of a case
    limit: str = ""  # beyond which the change counts; there, too
    sentence: str = ""  # "" where the numbers say it all
    decides: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One case of several that are shown as one: its id and its first row's numbers."""

    case_id: str
    before: str = ""
    after: str = ""
    change: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One case with something to say, or several that say the same: rows, why, and how to see it again."""

    title: str  # the case id, or "60 cases"
    status: Status  # the strongest of its rows
    rows: tuple[Row, ...]
    failures: tuple[str, ...]
    log_tail: tuple[str, ...]
    logs: tuple[str, ...]  # paths, one of each failed process
    causes: tuple[str, ...]
    members: tuple[Member, ...] = ()  # of several cases
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One measured value and the status of its comparison."""

    text: str
    status: Status | None = None
    mark: str = ""  # that says the status beside the text
    value: float | None = None  # to sort by


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseLine:
    """The main figures of one case, in the order of ``footer.COLUMNS``."""

    case_id: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """One thing to do next; ``command`` is empty where it is not a command."""

    text: str
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A table with what its columns mean, for a text or a page."""

    title: str  # "" where the text has none
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1  # columns of words, which come first; the others are numbers
    meaning: str = ""

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers, which are set to the right."""
        return self.header[self.words :]


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All that every format shows of a verdict."""

    outcome: Outcome
    headline: str  # what came out
    why: str  # "" where there is nothing to explain
    counts: tuple[tuple[Status, int], ...]  # deciding comparisons, strongest first
    blocks: tuple[Block, ...]
    case_lines: tuple[CaseLine, ...]
    scope: tuple[tuple[str, str], ...]  # what was judged, the machine's share
    notes: tuple[str, ...]
    next_steps: tuple[NextStep, ...]
    causes: tuple[str, ...]  # that are shown once for many cases
    footer: tuple[tuple[str, str], ...]
    summary: tuple[Section, ...] = ()  # of the suite: means, modes, scopes
