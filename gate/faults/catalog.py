"""The known faults: what each is, how large, and what the gate must say of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records import FailureKind, Metric


class FaultKind(StrEnum):
    """What is planted. All but the last two change one program only, compiled unless told otherwise."""

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
    VANISHED = "vanished"  # the head lacks the case


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
    def is_harmless(self) -> bool:
        """Whether the gate must not turn red: nothing got worse."""
        return self.metric is None and self.failure is None and self.kind is not FaultKind.VANISHED

    @property
    def is_in_base(self) -> bool:
        """Whether it is planted in the base, so that the head looks better."""
        return self.kind is FaultKind.EAGER_FASTER


EXACTLY = Demand(catch=1.0, miss=0.0)
# What must not be red, may be with the probability that a whole verdict allows itself.
HARMLESS = Demand(false_alarm=0.01)
UNASKED = Demand()
# On a GPU, whose timing repeats better, smaller slowdowns are asked for.
_SLOWDOWNS = {
    "cpu": {0.02: UNASKED, 0.03: UNASKED, 0.05: Demand(catch=0.80, miss=0.05)},
    "cuda": {0.02: UNASKED, 0.03: Demand(catch=0.80, miss=0.05), 0.05: Demand(catch=0.95, miss=0.01)},
}
_LARGE_SLOWDOWNS = {0.10: Demand(catch=0.95, miss=0.0), 0.30: Demand(catch=0.95, miss=0.0)}
# Three thresholds away from a whole one; noise of compile time is 2 to 4 %.
_COLD_COMPILE = {0.15: Demand(catch=0.80, miss=0.05)}


def list_faults(device_kind: str) -> tuple[Fault, ...]:
    """List all faults for a ``cpu`` or a ``cuda`` device, the cheapest and surest first."""
    return (*_list_exact(), *_list_timed(device_kind))


def _list_exact() -> tuple[Fault, ...]:
    metrics = {
        FaultKind.GRAPH_BREAK: Metric.GRAPH_BREAKS,
        FaultKind.RECOMPILE: Metric.RECOMPILES,
        FaultKind.LOST_CACHE: Metric.CACHE_MISSES,
        FaultKind.LOW_PRECISION: Metric.DRIFT,
        FaultKind.WRONG_EPS: Metric.DRIFT_FLOAT32,
    }
    failures = {
        FaultKind.CRASH: FailureKind.CRASH,
        FaultKind.HANG: FailureKind.HANG,
        FaultKind.NOT_A_NUMBER: FailureKind.NOT_FINITE,
        FaultKind.VANISHED: None,
    }
    return (
        *(_make_exact(kind, failure=failure) for kind, failure in failures.items()),
        *(_make_exact(kind, metric=metric) for kind, metric in metrics.items()),
        *(_make_exact(FaultKind.MEMORY, metric=Metric.PEAK_MEMORY, size=size) for size in (0.02, 0.10)),
    )


def _make_exact(
    kind: FaultKind, *, metric: Metric | None = None, failure: FailureKind | None = None, size: float = 0.0
) -> Fault:
    return Fault(kind=kind, method=Method.ONCE, demand=EXACTLY, size=size, metric=metric, failure=failure)


def _list_timed(device_kind: str) -> tuple[Fault, ...]:
    slowdowns = {**_SLOWDOWNS[device_kind], **_LARGE_SLOWDOWNS}
    latency, compile_time = Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME
    return (
        _make_timed(FaultKind.NOTHING, 0.0, HARMLESS),
        *(_make_timed(FaultKind.SLOWDOWN, size, asked, latency) for size, asked in slowdowns.items()),
        *(
            _make_timed(FaultKind.COLD_COMPILE, size, asked, compile_time)
            for size, asked in _COLD_COMPILE.items()
        ),
        _make_timed(FaultKind.EAGER_FASTER, 0.20, HARMLESS),
    )


def _make_timed(kind: FaultKind, size: float, demand: Demand, metric: Metric | None = None) -> Fault:
    return Fault(kind=kind, method=Method.PAIRS, demand=demand, size=size, metric=metric)
