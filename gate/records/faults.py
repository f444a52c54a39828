"""What a planted fault is, how large, and what the gate must say of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records import FailureKind, Metric


class FaultKind(StrEnum):
    """What is planted: into the head, and but for the last three into compiled code alone, unless told."""

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
