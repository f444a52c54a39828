"""The gate's test of itself: what a planted fault is, which ones were caught, and how often it was wrong.

Records of ``out/selftest.json``, like those of :mod:`gate.records`: frozen, torch-free, fractions
everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records import Comparison, Environment, Fact, FailureKind, Metric, Provenance
from gate.records.calibration import Rate


class FaultKind(StrEnum):
    """What is planted: into the head, and into compiled code alone, except the last three or where noted."""

    NOTHING = "nothing"  # the same program behind the same wrapping
    SLOWDOWN = "slowdown"  # every compiled call takes longer
    EAGER_FASTER = "eager_faster"  # every eager call of the base takes longer than the head's
    COLD_COMPILE = "cold_compile"  # more work while tracing
    MEMORY = "memory"  # a buffer that lives as long as the forward
    GRAPH_BREAK = "graph_break"
    RECOMPILE = "recompile"  # a guard that fails at every call
    LOW_PRECISION = "low_precision"  # outputs rounded to the next coarser type
    WRONG_EPS = "wrong_eps"  # outputs normalized with another epsilon
    LOST_CACHE = "lost_cache"  # a constant in the graph that is another in every process
    NOT_A_NUMBER = "not_a_number"
    CRASH = "crash"  # os.abort() in the first call
    HANG = "hang"  # the first call never returns
    VANISHED = "vanished"  # the head has no such factory any more


class Method(StrEnum):
    """How a fault is tried."""

    ONCE = "once"  # one trial of the head against the base's trials: nothing is left to chance
    PAIRS = "pairs"  # live pairs, as many as the decision asks for


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What is asked of the gate over many tries: rates as fractions."""

    catch: float = 0.0  # at least this share caught
    miss: float = 1.0  # at most this share missed; what is neither is inconclusive
    false_alarm: float = 1.0  # at most this share red, of a fault that must not be


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One fault of one size. ``size`` is a fraction of the base's value, 0 where there is none."""

    kind: FaultKind
    method: Method
    demand: Demand
    size: float = 0.0
    metric: Metric | None = None  # where it must show
    failure: FailureKind | None = None  # how the case must fail

    @property
    def name(self) -> str:
        """What ``--faults`` calls it: ``graph_break``, ``slowdown-5%``."""
        return f"{self.kind.value}-{100 * self.size:.0f}%" if self.size else self.kind.value

    @property
    def is_harmless(self) -> bool:
        """Whether the gate must not turn red: nothing got worse."""
        return self.metric is None and self.failure is None

    @property
    def is_in_base(self) -> bool:
        """Whether it is planted in the base, so that the head looks better."""
        return self.kind is FaultKind.EAGER_FASTER


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
    fact: Fact | None = None  # where it did not
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
