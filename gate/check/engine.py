"""What stands between a fleet and its lanes: one slot goes out, what came of it comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gate.records import CaseFailure, Fact, Metric, Place, Run, Trial
from gate.records.bounds import Natural


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One slot: the next trial of a case, or its next pair.

    ``run`` is cut to the case; its ``wall_s`` is how long the whole run has lasted.
    """

    run: Run
    metrics: tuple[Metric, ...]
    index: Natural  # of the trial or pair
    paired: bool = False
    unchanged_code: bool = False  # of a pair: as in :class:`gate.check.Need`
    limit_s: float | None = None  # a trial ends by then, in seconds of the run
    repeats: bool = False  # whether a disturbed trial is measured once more


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What came of a unit; nothing where it would not have ended in time."""

    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # as in ``Run``
    notes: tuple[Fact, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a lane came back with: a part, or nothing more than why it is lost."""

    lane: str
    part: Part | None = None
    why: str = ""


class Engine(Protocol):
    """Runs lanes somewhere. A lane has one unit at a time."""

    def list_lanes(self) -> Mapping[str, Place]:
        """The lanes that were opened, by the names of their places; lost ones too."""
        ...

    def submit(self, lane: str, unit: Unit) -> None:
        """Give a lane its next unit."""
        ...

    def wait(self, limit_s: float) -> Answer | None:
        """Wait for the next answer of any lane; ``None`` where none came within ``limit_s`` seconds."""
        ...
