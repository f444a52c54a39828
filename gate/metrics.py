"""What each metric is: unit, better direction, scope, role, noise family and default threshold.

One row a metric. The README's table is generated from here, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gate.limits import Range
from gate.records import Metric, Threshold

MIB = 1024 * 1024


class Scope(StrEnum):
    """Where a stored value may be compared."""

    HOST = "host"  # only within one environment id
    STACK = "stack"  # wherever software stack and kind of device match: of a GPU, its capability


class Role(StrEnum):
    """What a metric may do to the verdict."""

    DECIDES = "decides"
    CONTROL = "control"  # tells the machine's share; never fails
    ADVISORY = "advisory"  # judged and shown; never fails
    EXPLAINS = "explains"  # evidence only


class Family(StrEnum):
    """How a metric varies, which decides how it is compared."""

    NOISY = "noisy"  # ratio scale, log-normal between trials
    NEARLY_EXACT = "nearly_exact"  # ratio scale, noise well below its threshold
    EXACT = "exact"  # an integer that is the same in every trial
    LOG2 = "log2"  # already a log ratio; compared by difference


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSpec:
    """One metric's fixed properties."""

    metric: Metric
    unit: str  # "s", "bytes", "count", "ratio", "log2", "fraction"
    higher_is_better: bool
    scope: Scope
    role: Role
    family: Family
    threshold: Threshold  # against a stored baseline
    side_by_side: Threshold  # against the base in pairs on one machine
    title: str
    same_codegen: bool = False  # needs the same instruction set and thread count as well

    @property
    def domain(self) -> Range:
        """The values that a measurement can give."""
        return _DOMAINS[self.family]


# A log2 ratio of two errors in float64, whose exponents are from -1074 to 1023, is within these.
_MAX_LOG2 = 2100.0
_NOT_NEGATIVE = Range(minimum=0)
_DOMAINS: Mapping[Family, Range] = {
    Family.NOISY: _NOT_NEGATIVE,
    Family.NEARLY_EXACT: _NOT_NEGATIVE,
    Family.EXACT: Range(noun="a whole number", minimum=0, whole=True),
    Family.LOG2: Range(minimum=-_MAX_LOG2, maximum=_MAX_LOG2),
}


def _spec(
    metric: Metric,
    unit: str,
    scope: Scope,
    kind: tuple[Role, Family],
    threshold: tuple[float, float],
) -> MetricSpec:
    against_baseline = Threshold(relative=threshold[0], absolute=threshold[1])
    return MetricSpec(
        metric=metric,
        unit=unit,
        higher_is_better=metric in _HIGHER_IS_BETTER,
        scope=scope,
        role=kind[0],
        family=kind[1],
        threshold=against_baseline,
        side_by_side=_SIDE_BY_SIDE.get(metric, against_baseline),
        title=_TITLES[metric],
        same_codegen=metric in _SAME_CODEGEN,
    )


# A pair cancels the sitting of the machine, so warm times are held to less than against a stored
# baseline: what a change of 5 % must exceed by two standard errors to be caught in 16 pairs.
_LIVE_LATENCY = Threshold(relative=0.03, absolute=20e-6)
_SIDE_BY_SIDE: Mapping[Metric, Threshold] = {
    Metric.WARM_SPEEDUP: Threshold(relative=0.03, absolute=0.0),
    Metric.COMPILED_LATENCY: _LIVE_LATENCY,
    Metric.EAGER_LATENCY: _LIVE_LATENCY,
}
_HIGHER_IS_BETTER = {Metric.WARM_SPEEDUP, Metric.DEVICE_UTILIZATION}
# These count what code generation did, which follows the vector width and the thread count, and on a GPU
# its model: it decides what is tuned, and libraries choose by it how many kernels a product takes.
_SAME_CODEGEN = {Metric.COMPILE_CALLS, Metric.GENERATED_KERNELS, Metric.LAUNCHES}

_TITLES: Mapping[Metric, str] = {
    Metric.WARM_SPEEDUP: "eager / compiled latency, both warm",
    Metric.COMPILED_LATENCY: "one warm compiled call",
    Metric.EAGER_LATENCY: "one warm eager call",
    Metric.COLD_COMPILE_TIME: "first compiled call, caches empty, less a steady call",
    Metric.WARM_COMPILE_TIME: "first compiled call of a second process, caches full, less a steady call",
    Metric.PEAK_MEMORY: "peak memory of a warm compiled call, resident tensors included",
    Metric.MEMORY_RATIO: "peak memory, compiled / eager",
    Metric.COMPILE_PEAK_MEMORY: "peak memory while compiling",
    Metric.DRIFT: "log2 of compiled's RMSE against fp64 over eager's own, worst output or gradient",
    Metric.DRIFT_FLOAT32: "the same with the case run in float32, TF32 off",
    Metric.GRAPH_BREAKS: "graph breaks",
    Metric.RECOMPILES: "recompiles",
    Metric.UNIQUE_GRAPHS: "graphs captured",
    Metric.EAGER_FALLBACKS: "frames that were not compiled at all",
    Metric.CUDAGRAPH_SKIPS: "CUDA graphs skipped",
    Metric.CUDAGRAPH_PARTITIONS: "pieces that graphs were cut into for CUDA graphs",
    Metric.LAUNCHES: "launches by the host in one warm compiled call, a CUDA graph being one; GPU only",
    Metric.CUDAGRAPH_LAUNCHES: "CUDA graphs launched in one warm compiled call; GPU only",
    Metric.CACHE_MISSES: "compile-cache misses of the second process",
    Metric.COMPILE_CALLS: "Python calls during a compile without graph caches",
    Metric.CAPTURED_OPS: "operations captured in graphs",
    Metric.GENERATED_KERNELS: "kernels generated",
    Metric.GUARDS: "guards",
    Metric.BREAK_EVEN_CALLS: "calls after which a cold compile has paid for itself",
    Metric.DEVICE_UTILIZATION: "share of wall time in which the device ran kernels",
}

_NOISY_DECIDES = (Role.DECIDES, Family.NOISY)
_EXACT_DECIDES = (Role.DECIDES, Family.EXACT)
_EXACT_EXPLAINS = (Role.EXPLAINS, Family.EXACT)

# Thresholds: method 2.4, 3 and 5.3 as told in docs/decision.md. The latency floor of 20 us is a few
# times the cost of one Python call; the compile floors are below what a person waiting would notice.
# The memory floor is above one and a half times the largest jump that an unchanged case made in 80 stored
# trials on CPUs, 3.7 MiB: the high-water mark of a process includes what its allocator happens to hold.
SPECS: Mapping[Metric, MetricSpec] = {
    spec.metric: spec
    for spec in (
        _spec(Metric.WARM_SPEEDUP, "ratio", Scope.HOST, _NOISY_DECIDES, (0.05, 0.0)),
        _spec(Metric.COMPILED_LATENCY, "s", Scope.HOST, _NOISY_DECIDES, (0.05, 20e-6)),
        _spec(Metric.EAGER_LATENCY, "s", Scope.HOST, (Role.CONTROL, Family.NOISY), (0.05, 20e-6)),
        _spec(Metric.COLD_COMPILE_TIME, "s", Scope.HOST, _NOISY_DECIDES, (0.10, 0.5)),
        _spec(Metric.WARM_COMPILE_TIME, "s", Scope.HOST, _NOISY_DECIDES, (0.15, 0.3)),
        _spec(Metric.PEAK_MEMORY, "bytes", Scope.STACK, (Role.DECIDES, Family.NEARLY_EXACT), (0.03, 6 * MIB)),
        _spec(Metric.MEMORY_RATIO, "ratio", Scope.STACK, (Role.DECIDES, Family.NEARLY_EXACT), (0.05, 0.0)),
        _spec(
            Metric.COMPILE_PEAK_MEMORY, "bytes", Scope.STACK, (Role.ADVISORY, Family.NOISY), (0.10, 20 * MIB)
        ),
        _spec(Metric.DRIFT, "log2", Scope.STACK, (Role.DECIDES, Family.LOG2), (0.0, 0.58)),
        _spec(Metric.DRIFT_FLOAT32, "log2", Scope.STACK, (Role.DECIDES, Family.LOG2), (0.0, 0.58)),
        _spec(Metric.GRAPH_BREAKS, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.RECOMPILES, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.UNIQUE_GRAPHS, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.EAGER_FALLBACKS, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.CUDAGRAPH_SKIPS, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.CUDAGRAPH_PARTITIONS, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.LAUNCHES, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.CUDAGRAPH_LAUNCHES, "count", Scope.STACK, _EXACT_EXPLAINS, (0.0, 0.0)),
        _spec(Metric.CACHE_MISSES, "count", Scope.STACK, _EXACT_DECIDES, (0.0, 0.0)),
        _spec(Metric.COMPILE_CALLS, "count", Scope.STACK, (Role.DECIDES, Family.NEARLY_EXACT), (0.05, 0.0)),
        _spec(Metric.CAPTURED_OPS, "count", Scope.STACK, _EXACT_EXPLAINS, (0.0, 0.0)),
        _spec(Metric.GENERATED_KERNELS, "count", Scope.STACK, _EXACT_EXPLAINS, (0.0, 0.0)),
        _spec(Metric.GUARDS, "count", Scope.STACK, _EXACT_EXPLAINS, (0.0, 0.0)),
        _spec(Metric.BREAK_EVEN_CALLS, "count", Scope.HOST, (Role.ADVISORY, Family.NOISY), (0.20, 0.0)),
        _spec(Metric.DEVICE_UTILIZATION, "fraction", Scope.HOST, (Role.ADVISORY, Family.NOISY), (0.05, 0.0)),
    )
}
