"""What each metric is: one complete row a metric, and every grouping of metrics that follows from the rows.

A new metric is a row here and the place that measures it: docs/adding-a-metric.md. The row of the compiled
latency has every property; the others begin with a kind of metric that has them all, and say what is
otherwise. The README's table is generated from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from gate.records import CauseKind, Metric, Threshold
from gate.records.bounds import Range
from gate.records.faults import FaultKind

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


class Unit(StrEnum):
    """What a value is counted in; :mod:`gate.units` writes each of them."""

    SECONDS = "s"
    BYTES = "bytes"
    COUNT = "count"
    RATIO = "ratio"
    LOG2 = "log2"
    FRACTION = "fraction"
    JOULES = "J"


class Source(StrEnum):
    """Which process of a trial measures a metric."""

    COLD = "cold"  # the first, on empty caches
    WARM = "warm"  # the second, on the caches of the first; it is believed where both report something
    DERIVED = "derived"  # none: it is computed from others


class Timing(StrEnum):
    """How a metric is timed, and so which pairs carry it."""

    BLOCKS = "blocks"  # block by block in turn with the other arm: every pair carries it
    FIRST_CALL = "first call"  # of a process: a pair that compiles carries it, and it wants corroboration
    NONE = "none"  # not by the clock, or not to compare: a pair that compiles carries it


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSpec:
    """One metric's fixed properties: what number it is, how it is judged and measured, what it proves."""

    metric: Metric
    column: str  # heads its column in tables of figures; "" where it has none
    title: str  # what it is, in words

    unit: Unit  # what a value is counted in
    family: Family  # how it varies
    worse: str  # what a reader is told of a change for the worse
    better: str
    higher_is_better: bool

    scope: Scope  # where a stored value may be compared
    same_codegen: bool  # only with the same instruction set and thread count as well
    role: Role  # what it may do to the verdict
    threshold: Threshold  # the smallest change that counts against a stored baseline
    side_by_side: Threshold  # the smallest that counts against the base in pairs on one machine
    follows: Metric | None  # without which it convicts nobody: of a ratio, what it is a ratio of

    source: Source
    timing: Timing
    is_gpu_only: bool  # there is none on a CPU
    parts: tuple[Metric, ...]  # what it is computed from

    is_trace: bool  # a change shows that a compile did other work
    causes: tuple[CauseKind, ...]  # are looked for only where this, or another that names them, has changed
    planted: tuple[FaultKind, ...]  # faults of selftest that are measured in it

    @property
    def is_ratio(self) -> bool:
        """Whether it is on a ratio scale, so that its changes are fractions."""
        return self.family in {Family.NOISY, Family.NEARLY_EXACT}

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
_OF_A_RATE = (CauseKind.SAME_CODE, CauseKind.TUNING, CauseKind.EAGER, CauseKind.KERNELS, CauseKind.BOUND)
_OF_A_COMPILE = (CauseKind.COMPILE_PHASE,)

# A pair cancels the sitting of the machine, so warm times are held to less than against a stored
# baseline: what a change of 5 % must exceed by two standard errors to be caught in 16 pairs. The latency
# floor of 20 us is a few times the cost of one Python call; the compile floors are below what a person
# waiting would notice. The memory floor is above one and a half times the largest jump that an unchanged
# case made in 80 stored trials on CPUs, 3.7 MiB, since the high-water mark of a process includes what
# its allocator happens to hold. docs/decision.md has more on each.
_COMPILED = MetricSpec(
    metric=Metric.COMPILED_LATENCY,
    column="compiled",
    title="one warm compiled call",
    unit=Unit.SECONDS,
    family=Family.NOISY,
    worse="slower",
    better="faster",
    higher_is_better=False,
    scope=Scope.HOST,
    same_codegen=False,
    role=Role.DECIDES,
    threshold=Threshold(relative=0.05, absolute=20e-6),
    side_by_side=Threshold(relative=0.03, absolute=20e-6),
    follows=None,
    source=Source.COLD,
    timing=Timing.BLOCKS,
    is_gpu_only=False,
    parts=(),
    is_trace=False,
    causes=_OF_A_RATE,
    planted=(FaultKind.SLOWDOWN,),
)


def _limit(spec: MetricSpec, relative: float, absolute: float = 0.0) -> MetricSpec:
    """Hold a metric to the same change against a stored baseline and side by side."""
    threshold = Threshold(relative=relative, absolute=absolute)
    return replace(spec, threshold=threshold, side_by_side=threshold)


# Kinds of metric: each is what the rows that begin with it have in common.
_RATE = replace(_COMPILED, column="", title="", planted=())  # timed block by block
_TIME = replace(_RATE, timing=Timing.NONE, causes=())
_MEMORY = replace(
    _TIME,
    unit=Unit.BYTES,
    family=Family.NEARLY_EXACT,
    worse="larger",
    better="smaller",
    scope=Scope.STACK,
    source=Source.WARM,
)
_DRIFT = _limit(
    replace(_MEMORY, unit=Unit.LOG2, family=Family.LOG2, worse="less exact", better="more exact"), 0.0, 0.58
)
_COUNTER = _limit(  # any change counts
    replace(_TIME, unit=Unit.COUNT, family=Family.EXACT, worse="more", better="fewer", scope=Scope.STACK), 0.0
)
_EVIDENCE = replace(_COUNTER, role=Role.EXPLAINS)
_ON_GPU = replace(_COUNTER, is_gpu_only=True)
_ON_TARGET = replace(_ON_GPU, same_codegen=True)  # of which only the code is known
_BYTES_ON_TARGET = replace(_ON_TARGET, unit=Unit.BYTES, worse="larger", better="smaller")
# Single calls and requests are few and stray far. Calls hold the waiting for the device that blocks share:
# they tell spread, and decide nothing; a limit of gate.yml lets requests decide.
_SINGLE = _limit(replace(_TIME, role=Role.ADVISORY), 0.10, 50e-6)

_ROWS = (
    replace(
        _RATE,
        metric=Metric.WARM_SPEEDUP,
        column="speedup",
        title="eager / compiled latency, both warm",
        unit=Unit.RATIO,
        higher_is_better=True,
        threshold=Threshold(relative=0.05, absolute=0.0),
        side_by_side=Threshold(relative=0.03, absolute=0.0),
        follows=Metric.COMPILED_LATENCY,
        source=Source.DERIVED,
        parts=(Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY),
    ),
    _COMPILED,
    replace(
        _RATE,
        metric=Metric.EAGER_LATENCY,
        column="eager",
        title="one warm eager call",
        role=Role.CONTROL,
        causes=(),
        planted=(FaultKind.EAGER_FASTER,),
    ),
    replace(
        _limit(_TIME, 0.10, 0.5),
        metric=Metric.COLD_COMPILE_TIME,
        column="cold compile",
        title="first compiled call, caches empty, less a steady call",
        timing=Timing.FIRST_CALL,
        causes=_OF_A_COMPILE,
        planted=(FaultKind.COLD_COMPILE,),
    ),
    replace(
        _limit(_TIME, 0.15, 0.3),
        metric=Metric.WARM_COMPILE_TIME,
        column="warm compile",
        title="first compiled call of a second process, caches full, less a steady call",
        source=Source.WARM,
        timing=Timing.FIRST_CALL,
        causes=(*_OF_A_COMPILE, CauseKind.CACHE),
    ),
    replace(
        _limit(_MEMORY, 0.03, 6 * MIB),
        metric=Metric.PEAK_MEMORY,
        column="peak memory",
        title="peak memory of a warm compiled call, resident tensors included",
        planted=(FaultKind.MEMORY,),
    ),
    replace(
        _limit(_MEMORY, 0.05),
        metric=Metric.MEMORY_RATIO,
        title="peak memory, compiled / eager",
        unit=Unit.RATIO,
        follows=Metric.PEAK_MEMORY,
    ),
    replace(
        _limit(_MEMORY, 0.10, 20 * MIB),
        metric=Metric.COMPILE_PEAK_MEMORY,
        title="peak memory while compiling",
        family=Family.NOISY,
        role=Role.ADVISORY,
        source=Source.COLD,
    ),
    replace(
        _DRIFT,
        metric=Metric.DRIFT,
        column="drift",
        title="log2 of compiled's RMSE against fp64 over eager's own, worst output or gradient",
        planted=(FaultKind.LOW_PRECISION,),
    ),
    replace(
        _DRIFT,
        metric=Metric.DRIFT_FLOAT32,
        title="the same with the case run in float32, TF32 off",
        planted=(FaultKind.WRONG_EPS,),
    ),
    replace(
        _DRIFT,
        metric=Metric.DRIFT_STEPS,
        title="the same of how far parameters moved in 10 steps; plain training with an optimizer",
        # An optimizer that divides by its moments makes steps of noise where a gradient is none.
        role=Role.ADVISORY,
    ),
    replace(
        _COUNTER,
        metric=Metric.GRAPH_BREAKS,
        title="graph breaks",
        is_trace=True,
        planted=(FaultKind.GRAPH_BREAK,),
    ),
    replace(
        _COUNTER,
        metric=Metric.RECOMPILES,
        title="recompiles",
        is_trace=True,
        causes=(CauseKind.RECOMPILE,),
        planted=(FaultKind.RECOMPILE,),
    ),
    replace(
        _COUNTER,
        metric=Metric.UNIQUE_GRAPHS,
        title="graphs captured",
        is_trace=True,
        causes=(CauseKind.RECOMPILE,),
    ),
    replace(_COUNTER, metric=Metric.EAGER_FALLBACKS, title="frames that were not compiled at all"),
    replace(_COUNTER, metric=Metric.CUDAGRAPH_SKIPS, title="CUDA graphs skipped"),
    replace(
        _ON_GPU,
        metric=Metric.CUDAGRAPH_PARTITIONS,
        title="pieces that graphs were cut into for CUDA graphs",
    ),
    replace(
        _ON_GPU,
        metric=Metric.LAUNCHES,
        title="launches by the host in one warm compiled call, a CUDA graph being one; GPU only",
        same_codegen=True,
    ),
    replace(
        _ON_GPU,
        metric=Metric.CUDAGRAPH_LAUNCHES,
        title="CUDA graphs launched in one warm compiled call; GPU only",
        role=Role.EXPLAINS,
    ),
    replace(
        _COUNTER,
        metric=Metric.CACHE_MISSES,
        title="compile-cache misses of the second process",
        source=Source.WARM,
        is_trace=True,
        causes=(CauseKind.CACHE,),
        planted=(FaultKind.LOST_CACHE,),
    ),
    replace(
        _limit(_COUNTER, 0.05),
        metric=Metric.COMPILE_CALLS,
        title="Python calls during a compile without graph caches",
        family=Family.NEARLY_EXACT,
        same_codegen=True,
        source=Source.WARM,
        causes=_OF_A_COMPILE,
    ),
    replace(_EVIDENCE, metric=Metric.CAPTURED_OPS, title="operations captured in graphs", is_trace=True),
    replace(
        _EVIDENCE,
        metric=Metric.GENERATED_KERNELS,
        title="kernels generated",
        same_codegen=True,
        is_trace=True,
    ),
    replace(_EVIDENCE, metric=Metric.GUARDS, title="guards", is_trace=True),
    replace(
        _ON_TARGET,
        metric=Metric.CODE_LAUNCHES,
        title="launches in the generated code: its kernels and library calls; target only",
        is_trace=True,
    ),
    replace(
        _ON_TARGET,
        metric=Metric.TRITON_CONFIGS,
        title="configurations that kernels were compiled in; target only",
        role=Role.EXPLAINS,
        is_trace=True,
    ),
    replace(
        _ON_TARGET,
        metric=Metric.REGISTERS,
        title="registers of a thread, summed over all binaries; target only",
        role=Role.EXPLAINS,
    ),
    replace(
        _BYTES_ON_TARGET,
        metric=Metric.SHARED_MEMORY,
        title="shared memory of a block, summed over all binaries; target only",
        role=Role.EXPLAINS,
    ),
    replace(
        _BYTES_ON_TARGET,
        metric=Metric.STACK_MEMORY,
        title="memory of a thread for its stack and spilled registers, each kernel's least; target only",
    ),
    replace(
        _BYTES_ON_TARGET,
        metric=Metric.CUBIN_BYTES,
        title="size of all binaries; target only",
        role=Role.EXPLAINS,
    ),
    replace(
        _limit(_TIME, 0.20),
        metric=Metric.BREAK_EVEN_CALLS,
        title="calls after which a cold compile has paid for itself",
        unit=Unit.COUNT,
        worse="more",
        better="fewer",
        role=Role.ADVISORY,
        source=Source.DERIVED,
        parts=(Metric.COLD_COMPILE_TIME, Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY),
    ),
    replace(
        _limit(_TIME, 0.05),
        metric=Metric.DEVICE_UTILIZATION,
        title="share of wall time in which the device ran kernels",
        unit=Unit.FRACTION,
        worse="worse",
        better="better",
        higher_is_better=True,
        role=Role.ADVISORY,
        is_gpu_only=True,
    ),
    replace(
        _TIME,
        metric=Metric.DEVICE_TIME,
        title="time of the device's kernels and copies in one warm compiled call; GPU only",
        role=Role.ADVISORY,
        is_gpu_only=True,
    ),
    replace(
        _ON_GPU,
        metric=Metric.COPIES,
        title="copies that the host asks for in one warm compiled call; GPU only",
        role=Role.EXPLAINS,
    ),
    replace(
        _EVIDENCE,
        metric=Metric.FLOPS,
        title="floating-point operations of one eager call, in products, convolutions and attention",
    ),
    replace(
        _limit(_TIME, 0.10),  # twice what two seconds of a counter that moves ten times a second resolve
        metric=Metric.ENERGY,
        title="energy of one warm compiled call, by the board's counter; GPU only",
        unit=Unit.JOULES,
        worse="more",
        better="fewer",
        role=Role.ADVISORY,
        is_gpu_only=True,
    ),
    *(
        replace(
            _SINGLE,
            metric=metric,
            title=f"{share} of 100 single warm compiled calls, each waited for; GPU only",
            is_gpu_only=True,
        )
        for metric, share in (
            (Metric.CALL_P50, "median"),
            (Metric.CALL_P95, "95th percentile"),
            (Metric.CALL_P99, "99th percentile"),
        )
    ),
    # What only cases of some kinds have: gate.kinds says which.
    replace(
        _limit(_MEMORY, 0.05, 64 * 1024),
        metric=Metric.PACKAGE_BYTES,
        title="size of the exported package, or of the saved cache artifacts; kinds export and cache",
        source=Source.COLD,
    ),
    # A stalled loader makes the call longer, which compiled latency decides by; this says whose time it is.
    replace(
        _limit(_TIME, 0.10),
        metric=Metric.DATA_RATIO,
        title="an epoch through the DataLoader / the same batches out of memory; kind data",
        unit=Unit.RATIO,
        role=Role.ADVISORY,
    ),
    replace(
        _COUNTER,
        metric=Metric.BUCKETS,
        title="groups of parameters whose gradients are reduced together; kind distributed",
    ),
    *(
        replace(
            _SINGLE,
            metric=metric,
            title=f"{told} of requests at fixed times, from its arrival; kind serving",
        )
        for metric, told in (
            (Metric.FIRST_REQUEST, "the first"),
            (Metric.REQUEST_P50, "median"),
            (Metric.REQUEST_P95, "95th percentile"),
            (Metric.REQUEST_P99, "99th percentile"),
        )
    ),
)
SPECS: Mapping[Metric, MetricSpec] = {spec.metric: spec for spec in _ROWS}


def select_metrics(fits: Callable[[MetricSpec], bool]) -> tuple[Metric, ...]:
    """Select the metrics whose rows fit, in the order of the table."""
    return tuple(metric for metric, spec in SPECS.items() if fits(spec))


# What a live pair times block by block, and so what every pair carries; of it, what the clock itself tells.
INTERLEAVED = select_metrics(lambda spec: spec.timing is Timing.BLOCKS)
LATENCIES = select_metrics(lambda spec: spec.timing is Timing.BLOCKS and spec.source is not Source.DERIVED)
COMPILE_TIMES = select_metrics(lambda spec: spec.timing is Timing.FIRST_CALL)
# What only a second process on full caches knows.
OF_WARM = select_metrics(lambda spec: spec.source is Source.WARM)
# Counters of what was captured, generated, guarded and fetched from caches.
TRACES = select_metrics(lambda spec: spec.is_trace)
# The noisy metrics that can fail a verdict; those that do so by themselves lead.
NOISY_DECIDING = select_metrics(lambda spec: spec.role is Role.DECIDES and spec.family is Family.NOISY)
LEADING = tuple(metric for metric in NOISY_DECIDING if SPECS[metric].follows is None)


def explained_by(cause: CauseKind) -> frozenset[Metric]:
    """The metrics whose change is looked into for this cause."""
    return frozenset(select_metrics(lambda spec: cause in spec.causes))


def find_planted(kind: FaultKind) -> Metric | None:
    """The metric that a fault is measured in; ``None`` for one that makes the case fail, or is none."""
    return next(iter(select_metrics(lambda spec: kind in spec.planted)), None)


def list_watching(metric: Metric) -> tuple[Metric, ...]:
    """The noisy metrics that decide over ``metric``: itself, what is computed of it, and what leads that."""
    near = {metric, *select_metrics(lambda spec: metric in spec.parts)}
    near |= {SPECS[one].follows or one for one in near}
    return tuple(one for one in NOISY_DECIDING if one in near)
