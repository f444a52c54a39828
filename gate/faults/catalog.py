"""The known faults: what each is, how large, and what the gate must say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from gate.errors import UsageError
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


EXACTLY = Demand(catch=1.0, miss=0.0)
# What must not be red may be so with the probability that a whole verdict allows itself.
HARMLESS = Demand(false_alarm=0.01)
UNASKED = Demand()
_SEEN = Demand(catch=0.95, miss=0.0)
_MOSTLY_SEEN = Demand(catch=0.80, miss=0.05)
# Slowdowns, the surest first. A GPU's times repeat better, so smaller ones are asked for there.
_SLOWDOWNS: Mapping[str, Mapping[float, Demand]] = {
    "cpu": {0.30: _SEEN, 0.10: _SEEN, 0.05: _MOSTLY_SEEN, 0.03: UNASKED, 0.02: UNASKED},
    "cuda": {0.30: _SEEN, 0.10: _SEEN, 0.05: _SEEN, 0.03: _MOSTLY_SEEN, 0.02: UNASKED},
}
_COLD_COMPILE_SIZE = 0.15  # one and a half thresholds, where pairs vary by 2 to 4 %
_EAGER_SIZE = 0.20  # several thresholds of the speedup
_MEMORY_SIZES = (0.02, 0.10)  # below the threshold, and beyond it
_QUICK_SIZE = 0.30
# The same program behind the same wrapping: what every other fault is held against.
NOTHING = Fault(kind=FaultKind.NOTHING, method=Method.PAIRS, demand=HARMLESS)
_EXACT = Fault(kind=FaultKind.NOTHING, method=Method.ONCE, demand=EXACTLY)


def list_faults(device_kind: str, *, quick: bool = False) -> tuple[Fault, ...]:
    """List the faults for a ``cpu`` or a ``cuda`` device in the order in which they are worth a try.

    ``quick`` leaves out all that takes many pairs but nothing and the largest slowdown.
    """
    timed = _list_timed(device_kind)
    if quick:
        timed = tuple(one for one in timed if one.kind is FaultKind.NOTHING or one.size == _QUICK_SIZE)
    return (*_list_exact(), *timed)


def choose_faults(faults: Sequence[Fault], patterns: str) -> tuple[Fault, ...]:
    """Choose by name: patterns as of a shell, joined by commas. Nothing at all is always tried, as a measure.

    Raises:
        UsageError: A pattern fits no fault.
    """
    wanted = [pattern.strip() for pattern in patterns.split(",")]
    for pattern in wanted:
        if not any(fnmatchcase(fault.name, pattern) for fault in faults):
            names = ", ".join(fault.name for fault in faults)
            raise UsageError(f"--faults: no fault is called {pattern!r}", f"Choose among {names}.")
    return tuple(
        fault
        for fault in faults
        if fault == NOTHING or any(fnmatchcase(fault.name, pattern) for pattern in wanted)
    )


def _list_exact() -> tuple[Fault, ...]:
    metrics = {
        FaultKind.GRAPH_BREAK: Metric.GRAPH_BREAKS,
        FaultKind.RECOMPILE: Metric.RECOMPILES,
        FaultKind.LOST_CACHE: Metric.CACHE_MISSES,
        FaultKind.LOW_PRECISION: Metric.DRIFT,
        FaultKind.WRONG_EPS: Metric.DRIFT_FLOAT32,
    }
    failures = {
        FaultKind.VANISHED: FailureKind.ERROR,
        FaultKind.CRASH: FailureKind.CRASH,
        FaultKind.HANG: FailureKind.HANG,
        FaultKind.NOT_A_NUMBER: FailureKind.NOT_FINITE,
    }
    return (
        *(replace(_EXACT, kind=kind, failure=failure) for kind, failure in failures.items()),
        *(replace(_EXACT, kind=kind, metric=metric) for kind, metric in metrics.items()),
        *(
            replace(_EXACT, kind=FaultKind.MEMORY, size=size, metric=Metric.PEAK_MEMORY)
            for size in _MEMORY_SIZES
        ),
    )


def _list_timed(device_kind: str) -> tuple[Fault, ...]:
    asked = {size: demand for size, demand in _SLOWDOWNS[device_kind].items() if demand is not UNASKED}
    unasked = {size: demand for size, demand in _SLOWDOWNS[device_kind].items() if demand is UNASKED}
    return (
        NOTHING,
        *(_make_slowdown(size, demand) for size, demand in asked.items()),
        _make_timed(FaultKind.COLD_COMPILE, _COLD_COMPILE_SIZE, _MOSTLY_SEEN, Metric.COLD_COMPILE_TIME),
        _make_timed(FaultKind.EAGER_FASTER, _EAGER_SIZE, HARMLESS),
        *(_make_slowdown(size, demand) for size, demand in unasked.items()),
    )


def _make_slowdown(size: float, demand: Demand) -> Fault:
    return _make_timed(FaultKind.SLOWDOWN, size, demand, Metric.COMPILED_LATENCY)


def _make_timed(kind: FaultKind, size: float, demand: Demand, metric: Metric | None = None) -> Fault:
    return Fault(kind=kind, method=Method.PAIRS, demand=demand, size=size, metric=metric)
