"""What a report says, before any format: every string is ready to be laid out and escaped."""

from __future__ import annotations

from dataclasses import dataclass

from gate.records import Outcome, Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One comparison, or several of a case that share one fate and have no numbers."""

    status: Status
    label: str  # the status, in lower-case brackets where the metric does not decide
    metric: str
    baseline: str = ""
    candidate: str = ""
    change: str = ""
    interval: str = ""
    threshold: str = ""
    sentence: str = ""
    decides: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One case with something to say: its rows, why, and how to see it again."""

    case_id: str
    status: Status  # the strongest of its rows
    rows: tuple[Row, ...]
    failures: tuple[str, ...]
    log_tail: tuple[str, ...]
    logs: tuple[str, ...]  # paths, one of each failed process
    causes: tuple[str, ...]
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One measured value and the status of its comparison."""

    text: str
    status: Status | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseLine:
    """The main figures of one case, in the order of ``Report.columns``."""

    case_id: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One thing to do next; ``command`` is empty where it is not a command."""

    text: str
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All that every format shows of a verdict."""

    outcome: Outcome
    headline: str
    counts: tuple[tuple[Status, int], ...]  # deciding comparisons, strongest first
    blocks: tuple[Block, ...]
    columns: tuple[str, ...]
    case_lines: tuple[CaseLine, ...]
    scope: tuple[tuple[str, str], ...]  # what was judged, the machine's share
    notes: tuple[str, ...]
    next_steps: tuple[Step, ...]
    footer: tuple[tuple[str, str], ...]
