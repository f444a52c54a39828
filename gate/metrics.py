"""What each metric is: one complete row a metric, and every grouping of metrics that follows from the rows.

A new metric is a row here and the place that measures it: docs/adding-a-metric.md. No property has a
default, so that none can be forgotten. The README's table is generated from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from gate.records import CauseKind, Metric, Threshold
from gate.records.faults import FaultKind
from gate.records.limits import Range

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
class Quantity:
    """What kind of number it is. ``worse`` and ``better`` are what a reader is told of its changes."""

    unit: Unit
    family: Family
    worse: str
    better: str
    higher_is_better: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Judging:
    """How it is judged."""

    scope: Scope
    same_codegen: bool  # needs the same instruction set and thread count as well
    role: Role
    threshold: Threshold  # against a stored baseline
    side_by_side: Threshold  # against the base in pairs on one machine
    follows: Metric | None  # without which it convicts nobody: of a ratio, what it is a ratio of


@dataclass(frozen=True, kw_only=True, slots=True)
class Measuring:
    """How it is measured."""

    source: Source
    timing: Timing
    is_gpu_only: bool  # there is none on a CPU
    parts: tuple[Metric, ...]  # what it is computed from


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnostics:
    """What it proves beside its own value."""

    is_trace: bool  # a change shows that a compile did other work
    causes: tuple[CauseKind, ...]  # are looked for only where this, or another that names them, has changed
    planted: tuple[FaultKind, ...]  # faults of selftest that are measured in it


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSpec:
    """One metric's fixed properties."""

    metric: Metric
    column: str  # heads its column in tables of figures; "" where it has none
    title: str  # what it is, in words
    quantity: Quantity
    judging: Judging
    measuring: Measuring
    evidence: Diagnostics

    @property
    def unit(self) -> Unit:
        """What a value is counted in."""
        return self.quantity.unit

    @property
    def family(self) -> Family:
        """How it varies."""
        return self.quantity.family

    @property
    def is_ratio(self) -> bool:
        """Whether it is on a ratio scale, so that its changes are fractions."""
        return self.family in {Family.NOISY, Family.NEARLY_EXACT}

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value is the better one."""
        return self.quantity.higher_is_better

    @property
    def scope(self) -> Scope:
        """Where a stored value may be compared."""
        return self.judging.scope

    @property
    def same_codegen(self) -> bool:
        """Whether it needs the same instruction set and thread count as well."""
        return self.judging.same_codegen

    @property
    def role(self) -> Role:
        """What it may do to the verdict."""
        return self.judging.role

    @property
    def threshold(self) -> Threshold:
        """The smallest change that counts against a stored baseline."""
        return self.judging.threshold

    @property
    def side_by_side(self) -> Threshold:
        """The smallest change that counts in pairs."""
        return self.judging.side_by_side

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


def _quantity(unit: Unit, family: Family, words: tuple[str, str], *, higher: bool = False) -> Quantity:
    worse, better = words
    return Quantity(unit=unit, family=family, worse=worse, better=better, higher_is_better=higher)


_PACE, _SIZE, _NUMBER = ("slower", "faster"), ("larger", "smaller"), ("more", "fewer")
_TIME = _quantity(Unit.SECONDS, Family.NOISY, _PACE)
_SPEED = _quantity(Unit.RATIO, Family.NOISY, _PACE, higher=True)
_MEMORY = _quantity(Unit.BYTES, Family.NEARLY_EXACT, _SIZE)
_MEMORY_PEAK = _quantity(Unit.BYTES, Family.NOISY, _SIZE)
_SIZES = _quantity(Unit.RATIO, Family.NEARLY_EXACT, _SIZE)
_COUNT = _quantity(Unit.COUNT, Family.EXACT, _NUMBER)
_BYTES = _quantity(Unit.BYTES, Family.EXACT, _SIZE)
_CALLS = _quantity(Unit.COUNT, Family.NEARLY_EXACT, _NUMBER)
_NOISY_COUNT = _quantity(Unit.COUNT, Family.NOISY, _NUMBER)
_ERROR = _quantity(Unit.LOG2, Family.LOG2, ("less exact", "more exact"))
_ENERGY = _quantity(Unit.JOULES, Family.NOISY, _NUMBER)
_SHARE = _quantity(Unit.FRACTION, Family.NOISY, ("worse", "better"), higher=True)


def _judge(
    scope: Scope, role: Role, stored: tuple[float, float], side_by_side: tuple[float, float] | None = None
) -> Judging:
    """Thresholds are the relative and the absolute part; side by side as against a baseline if not given."""
    beside = side_by_side or stored
    return Judging(
        scope=scope,
        same_codegen=False,
        role=role,
        threshold=Threshold(relative=stored[0], absolute=stored[1]),
        side_by_side=Threshold(relative=beside[0], absolute=beside[1]),
        follows=None,
    )


# A pair cancels the sitting of the machine, so warm times are held to less than against a stored
# baseline: what a change of 5 % must exceed by two standard errors to be caught in 16 pairs. The latency
# floor of 20 us is a few times the cost of one Python call; the compile floors are below what a person
# waiting would notice. The memory floor is above one and a half times the largest jump that an unchanged
# case made in 80 stored trials on CPUs, 3.7 MiB, since the high-water mark of a process includes what
# its allocator happens to hold. docs/decision.md has more on each.
_LATENCY = ((0.05, 20e-6), (0.03, 20e-6))
_ANY_CHANGE = _judge(Scope.STACK, Role.DECIDES, (0.0, 0.0))
_UNJUDGED = _judge(Scope.STACK, Role.EXPLAINS, (0.0, 0.0))
_DRIFT = _judge(Scope.STACK, Role.DECIDES, (0.0, 0.58))

_COLD = Measuring(source=Source.COLD, timing=Timing.NONE, is_gpu_only=False, parts=())
_WARM = replace(_COLD, source=Source.WARM)
_BLOCKS = replace(_COLD, timing=Timing.BLOCKS)
_ON_GPU = replace(_COLD, is_gpu_only=True)
_ON_TARGET = _ON_GPU  # of which only the code is known


def _prove(
    causes: tuple[CauseKind, ...] = (), planted: tuple[FaultKind, ...] = (), *, is_trace: bool = False
) -> Diagnostics:
    return Diagnostics(is_trace=is_trace, causes=causes, planted=planted)


_NOTHING, _TRACE = _prove(), _prove(is_trace=True)
_OF_A_RATE = (CauseKind.SAME_CODE, CauseKind.TUNING, CauseKind.EAGER, CauseKind.KERNELS, CauseKind.BOUND)
_OF_A_COMPILE = (CauseKind.COMPILE_PHASE,)


def _row(
    metric: Metric, told: tuple[str, str], kind: tuple[Quantity, Judging], how: Measuring, proves: Diagnostics
) -> MetricSpec:
    column, title = told
    quantity, judging = kind
    return MetricSpec(
        metric=metric,
        column=column,
        title=title,
        quantity=quantity,
        judging=judging,
        measuring=how,
        evidence=proves,
    )


_ROWS = (
    _row(
        Metric.WARM_SPEEDUP,
        ("speedup", "eager / compiled latency, both warm"),
        (
            _SPEED,
            replace(
                _judge(Scope.HOST, Role.DECIDES, (0.05, 0.0), (0.03, 0.0)), follows=Metric.COMPILED_LATENCY
            ),
        ),
        replace(_BLOCKS, source=Source.DERIVED, parts=(Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY)),
        _prove(_OF_A_RATE),
    ),
    _row(
        Metric.COMPILED_LATENCY,
        ("compiled", "one warm compiled call"),
        (_TIME, _judge(Scope.HOST, Role.DECIDES, *_LATENCY)),
        _BLOCKS,
        _prove(_OF_A_RATE, (FaultKind.SLOWDOWN,)),
    ),
    _row(
        Metric.EAGER_LATENCY,
        ("eager", "one warm eager call"),
        (_TIME, _judge(Scope.HOST, Role.CONTROL, *_LATENCY)),
        _BLOCKS,
        _prove((), (FaultKind.EAGER_FASTER,)),
    ),
    _row(
        Metric.COLD_COMPILE_TIME,
        ("cold compile", "first compiled call, caches empty, less a steady call"),
        (_TIME, _judge(Scope.HOST, Role.DECIDES, (0.10, 0.5))),
        replace(_COLD, timing=Timing.FIRST_CALL),
        _prove(_OF_A_COMPILE, (FaultKind.COLD_COMPILE,)),
    ),
    _row(
        Metric.WARM_COMPILE_TIME,
        ("warm compile", "first compiled call of a second process, caches full, less a steady call"),
        (_TIME, _judge(Scope.HOST, Role.DECIDES, (0.15, 0.3))),
        replace(_WARM, timing=Timing.FIRST_CALL),
        _prove((*_OF_A_COMPILE, CauseKind.CACHE)),
    ),
    _row(
        Metric.PEAK_MEMORY,
        ("peak memory", "peak memory of a warm compiled call, resident tensors included"),
        (_MEMORY, _judge(Scope.STACK, Role.DECIDES, (0.03, 6 * MIB))),
        _WARM,
        _prove((), (FaultKind.MEMORY,)),
    ),
    _row(
        Metric.MEMORY_RATIO,
        ("", "peak memory, compiled / eager"),
        (_SIZES, replace(_judge(Scope.STACK, Role.DECIDES, (0.05, 0.0)), follows=Metric.PEAK_MEMORY)),
        _WARM,
        _NOTHING,
    ),
    _row(
        Metric.COMPILE_PEAK_MEMORY,
        ("", "peak memory while compiling"),
        (_MEMORY_PEAK, _judge(Scope.STACK, Role.ADVISORY, (0.10, 20 * MIB))),
        _COLD,
        _NOTHING,
    ),
    _row(
        Metric.DRIFT,
        ("drift", "log2 of compiled's RMSE against fp64 over eager's own, worst output or gradient"),
        (_ERROR, _DRIFT),
        _WARM,
        _prove((), (FaultKind.LOW_PRECISION,)),
    ),
    _row(
        Metric.DRIFT_FLOAT32,
        ("", "the same with the case run in float32, TF32 off"),
        (_ERROR, _DRIFT),
        _WARM,
        _prove((), (FaultKind.WRONG_EPS,)),
    ),
    _row(
        Metric.DRIFT_STEPS,
        ("", "the same of how far parameters moved in 10 steps; plain training with an optimizer"),
        # Advisory: an optimizer that divides by its moments makes steps of noise where a gradient is none.
        (_ERROR, replace(_DRIFT, role=Role.ADVISORY)),
        _WARM,
        _NOTHING,
    ),
    _row(
        Metric.GRAPH_BREAKS,
        ("", "graph breaks"),
        (_COUNT, _ANY_CHANGE),
        _COLD,
        _prove((), (FaultKind.GRAPH_BREAK,), is_trace=True),
    ),
    _row(
        Metric.RECOMPILES,
        ("", "recompiles"),
        (_COUNT, _ANY_CHANGE),
        _COLD,
        _prove((CauseKind.RECOMPILE,), (FaultKind.RECOMPILE,), is_trace=True),
    ),
    _row(
        Metric.UNIQUE_GRAPHS,
        ("", "graphs captured"),
        (_COUNT, _ANY_CHANGE),
        _COLD,
        _prove((CauseKind.RECOMPILE,), is_trace=True),
    ),
    _row(
        Metric.EAGER_FALLBACKS,
        ("", "frames that were not compiled at all"),
        (_COUNT, _ANY_CHANGE),
        _COLD,
        _NOTHING,
    ),
    _row(Metric.CUDAGRAPH_SKIPS, ("", "CUDA graphs skipped"), (_COUNT, _ANY_CHANGE), _COLD, _NOTHING),
    _row(
        Metric.CUDAGRAPH_PARTITIONS,
        ("", "pieces that graphs were cut into for CUDA graphs"),
        (_COUNT, _ANY_CHANGE),
        _ON_GPU,
        _NOTHING,
    ),
    _row(
        Metric.LAUNCHES,
        ("", "launches by the host in one warm compiled call, a CUDA graph being one; GPU only"),
        (_COUNT, replace(_ANY_CHANGE, same_codegen=True)),
        _ON_GPU,
        _NOTHING,
    ),
    _row(
        Metric.CUDAGRAPH_LAUNCHES,
        ("", "CUDA graphs launched in one warm compiled call; GPU only"),
        (_COUNT, _UNJUDGED),
        _ON_GPU,
        _NOTHING,
    ),
    _row(
        Metric.CACHE_MISSES,
        ("", "compile-cache misses of the second process"),
        (_COUNT, _ANY_CHANGE),
        _WARM,
        _prove((CauseKind.CACHE,), (FaultKind.LOST_CACHE,), is_trace=True),
    ),
    _row(
        Metric.COMPILE_CALLS,
        ("", "Python calls during a compile without graph caches"),
        (_CALLS, replace(_judge(Scope.STACK, Role.DECIDES, (0.05, 0.0)), same_codegen=True)),
        _WARM,
        _prove(_OF_A_COMPILE),
    ),
    _row(Metric.CAPTURED_OPS, ("", "operations captured in graphs"), (_COUNT, _UNJUDGED), _COLD, _TRACE),
    _row(
        Metric.GENERATED_KERNELS,
        ("", "kernels generated"),
        (_COUNT, replace(_UNJUDGED, same_codegen=True)),
        _COLD,
        _TRACE,
    ),
    _row(Metric.GUARDS, ("", "guards"), (_COUNT, _UNJUDGED), _COLD, _TRACE),
    _row(
        Metric.CODE_LAUNCHES,
        ("", "launches in the generated code: its kernels and library calls; target only"),
        (_COUNT, replace(_ANY_CHANGE, same_codegen=True)),
        _ON_TARGET,
        _TRACE,
    ),
    _row(
        Metric.TRITON_CONFIGS,
        ("", "configurations that kernels were compiled in; target only"),
        (_COUNT, replace(_UNJUDGED, same_codegen=True)),
        _ON_TARGET,
        _TRACE,
    ),
    _row(
        Metric.REGISTERS,
        ("", "registers of a thread, summed over all binaries; target only"),
        (_COUNT, replace(_UNJUDGED, same_codegen=True)),
        _ON_TARGET,
        _NOTHING,
    ),
    _row(
        Metric.SHARED_MEMORY,
        ("", "shared memory of a block, summed over all binaries; target only"),
        (_BYTES, replace(_UNJUDGED, same_codegen=True)),
        _ON_TARGET,
        _NOTHING,
    ),
    _row(
        Metric.STACK_MEMORY,
        ("", "memory of a thread for its stack and spilled registers, each kernel's least; target only"),
        (_BYTES, replace(_ANY_CHANGE, same_codegen=True)),
        _ON_TARGET,
        _NOTHING,
    ),
    _row(
        Metric.CUBIN_BYTES,
        ("", "size of all binaries; target only"),
        (_BYTES, replace(_UNJUDGED, same_codegen=True)),
        _ON_TARGET,
        _NOTHING,
    ),
    _row(
        Metric.BREAK_EVEN_CALLS,
        ("", "calls after which a cold compile has paid for itself"),
        (_NOISY_COUNT, _judge(Scope.HOST, Role.ADVISORY, (0.20, 0.0))),
        replace(
            _COLD,
            source=Source.DERIVED,
            parts=(Metric.COLD_COMPILE_TIME, Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY),
        ),
        _NOTHING,
    ),
    _row(
        Metric.DEVICE_UTILIZATION,
        ("", "share of wall time in which the device ran kernels"),
        (_SHARE, _judge(Scope.HOST, Role.ADVISORY, (0.05, 0.0))),
        _ON_GPU,
        _NOTHING,
    ),
    _row(
        Metric.DEVICE_TIME,
        ("", "time of the device's kernels and copies in one warm compiled call; GPU only"),
        (_TIME, _judge(Scope.HOST, Role.ADVISORY, *_LATENCY)),
        _ON_GPU,
        _NOTHING,
    ),
    _row(
        Metric.COPIES,
        ("", "copies that the host asks for in one warm compiled call; GPU only"),
        (_COUNT, _UNJUDGED),
        _ON_GPU,
        _NOTHING,
    ),
    _row(
        Metric.FLOPS,
        ("", "floating-point operations of one eager call, in products, convolutions and attention"),
        (_COUNT, _UNJUDGED),
        _COLD,
        _NOTHING,
    ),
    # Twice what two seconds of a counter that moves ten times a second resolve.
    _row(
        Metric.ENERGY,
        ("", "energy of one warm compiled call, by the board's counter; GPU only"),
        (_ENERGY, _judge(Scope.HOST, Role.ADVISORY, (0.10, 0.0))),
        _ON_GPU,
        _NOTHING,
    ),
    # Single calls hold the waiting for the device that blocks share: they tell spread, and decide nothing.
    *(
        _row(
            metric,
            ("", f"{share} of 100 single warm compiled calls, each waited for; GPU only"),
            (_TIME, _judge(Scope.HOST, Role.ADVISORY, (0.10, 50e-6))),
            _ON_GPU,
            _NOTHING,
        )
        for metric, share in (
            (Metric.CALL_P50, "median"),
            (Metric.CALL_P95, "95th percentile"),
            (Metric.CALL_P99, "99th percentile"),
        )
    ),
    # What only cases of some kinds have: gate.kinds says which.
    _row(
        Metric.PACKAGE_BYTES,
        ("", "size of the exported package, or of the saved cache artifacts; kinds export and cache"),
        (_MEMORY, _judge(Scope.STACK, Role.DECIDES, (0.05, 64 * 1024))),
        _COLD,
        _NOTHING,
    ),
    # A stalled loader makes the call longer, which compiled latency decides by; this says whose time it is.
    _row(
        Metric.DATA_RATIO,
        ("", "an epoch through the DataLoader / the same batches out of memory; kind data"),
        (_quantity(Unit.RATIO, Family.NOISY, _PACE), _judge(Scope.HOST, Role.ADVISORY, (0.10, 0.0))),
        _COLD,
        _NOTHING,
    ),
    _row(
        Metric.BUCKETS,
        ("", "groups of parameters whose gradients are reduced together; kind distributed"),
        (_COUNT, _ANY_CHANGE),
        _COLD,
        _NOTHING,
    ),
    # Single requests are few and stray far: a limit of gate.yml lets them decide.
    *(
        _row(
            metric,
            ("", f"{told} of requests at fixed times, from its arrival; kind serving"),
            (_TIME, _judge(Scope.HOST, Role.ADVISORY, (0.10, 50e-6))),
            _COLD,
            _NOTHING,
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
INTERLEAVED = select_metrics(lambda spec: spec.measuring.timing is Timing.BLOCKS)
LATENCIES = select_metrics(
    lambda spec: spec.measuring.timing is Timing.BLOCKS and spec.measuring.source is not Source.DERIVED
)
COMPILE_TIMES = select_metrics(lambda spec: spec.measuring.timing is Timing.FIRST_CALL)
# What only a second process on full caches knows.
OF_WARM = select_metrics(lambda spec: spec.measuring.source is Source.WARM)
# Counters of what was captured, generated, guarded and fetched from caches.
TRACES = select_metrics(lambda spec: spec.evidence.is_trace)
# The noisy metrics that can fail a verdict; those that do so by themselves lead.
NOISY_DECIDING = select_metrics(lambda spec: spec.role is Role.DECIDES and spec.family is Family.NOISY)
LEADING = tuple(metric for metric in NOISY_DECIDING if SPECS[metric].judging.follows is None)


def explained_by(cause: CauseKind) -> frozenset[Metric]:
    """The metrics whose change is looked into for this cause."""
    return frozenset(select_metrics(lambda spec: cause in spec.evidence.causes))


def find_planted(kind: FaultKind) -> Metric | None:
    """The metric that a fault is measured in; ``None`` for one that makes the case fail, or is none."""
    return next(iter(select_metrics(lambda spec: kind in spec.evidence.planted)), None)


def list_watching(metric: Metric) -> tuple[Metric, ...]:
    """The noisy metrics that decide over ``metric``: itself, what is computed of it, and what leads that."""
    near = {metric, *select_metrics(lambda spec: metric in spec.measuring.parts)}
    near |= {SPECS[one].judging.follows or one for one in near}
    return tuple(one for one in NOISY_DECIDING if one in near)
