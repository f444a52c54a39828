"""What the gate's test of itself found: which planted faults it caught, and how often it was wrong.

Records of ``out/selftest.json``, like those of :mod:`gate.records`: frozen, torch-free, fractions
everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records import Comparison, Environment, Fact, Metric, Provenance
from gate.records.calibration import Rate
from gate.records.faults import Demand, FaultKind


class Complaint(StrEnum):
    """What is not good enough, and no chance: only what the counts cannot be explained away by."""

    UNTRIED = "untried"  # every attempt failed
    ALARMS = "alarms"  # harmless changes turned red
    MISSES = "misses"
    FEW_CAUGHT = "few_caught"


class Result(StrEnum):
    """What the gate made of one planted fault."""

    CAUGHT = "caught"
    INCONCLUSIVE = "inconclusive"
    MISSED = "missed"
    QUIET = "quiet"  # harmless, and not red
    FALSE_ALARM = "false_alarm"  # harmless, and red
    BROKEN = "broken"  # the trial itself failed: nothing is known


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One fault planted into one case, measured and judged once."""

    kind: FaultKind
    size: float  # as the fault's catalogue entry says, a fraction
    case_id: str
    result: Result
    planted: float  # what it came to: a fraction of the base's value, 0 where there is none
    is_asked: bool  # whether the gate has to catch it, by the thresholds in force
    comparison: Comparison | None = None  # what the gate said, where it judged the fault's metric
    told: Fact | None = None  # where it did not
    metric: Metric | None = None
    change: float | None = None  # of that metric as judged, + is worse
    trials: int = 0  # of the head; as many of the base were beside them
    wall_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultScore:
    """All attempts of one fault of one size."""

    kind: FaultKind
    size: float
    planted: float  # mean over the attempts
    demand: Demand
    is_asked: bool
    tried: int  # without those that were broken
    caught: int
    inconclusive: int
    missed: int
    false_alarms: int
    rate: Rate | None  # of catching it, or of false alarms where it is harmless; None if never tried
    wall_s: float
    complaint: Complaint | None = None  # why the gate failed its test here

    @property
    def is_open(self) -> bool:
        """Whether it must be caught and never was, in so few attempts that chance explains it."""
        return self.is_asked and self.demand.catch > 0 and not self.caught and self.complaint is None


@dataclass(frozen=True, kw_only=True, slots=True)
class SelftestReport:
    """A whole test of the gate by itself. It passed when no score has a complaint and none is open."""

    environment: Environment
    provenance: Provenance
    case_ids: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    scores: tuple[FaultScore, ...]
    untried: tuple[str, ...]  # faults for which there was no time
    wall_s: float
