"""What rows begin with: that of the compiled latency, which is complete, and kinds of metric made of it."""

from __future__ import annotations

from dataclasses import replace

from gate.metrics.spec import Family, MetricSpec, Role, Scope, Source, Timing, Unit
from gate.records import CauseKind, Metric, Threshold
from gate.records.faults import FaultKind

OF_A_RATE = (
    *(CauseKind.SAME_CODE, CauseKind.TUNING, CauseKind.GUARDS),
    *(CauseKind.EAGER, CauseKind.KERNELS, CauseKind.BOUND),
)
OF_A_COMPILE = (CauseKind.COMPILE_PHASE, CauseKind.GUARDS)

# A pair cancels the sitting of the machine, so warm times are held to less than against a stored
# baseline: what a change of 5 % must exceed by two standard errors to be caught in 16 pairs. The latency
# floor of 20 us is a few times the cost of one Python call. docs/decision.md has more on each threshold.
COMPILED = MetricSpec(
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
    causes=OF_A_RATE,
    planted=(FaultKind.SLOWDOWN,),
)


def limit(spec: MetricSpec, relative: float, absolute: float = 0.0) -> MetricSpec:
    """Hold a metric to the same change against a stored baseline and side by side."""
    threshold = Threshold(relative=relative, absolute=absolute)
    return replace(spec, threshold=threshold, side_by_side=threshold)


# Kinds of metric: each is what the rows that begin with it have in common.
RATE = replace(COMPILED, column="", title="", planted=())  # timed block by block
TIME = replace(RATE, timing=Timing.NONE, causes=())
MEMORY = replace(
    TIME,
    unit=Unit.BYTES,
    family=Family.NEARLY_EXACT,
    worse="larger",
    better="smaller",
    scope=Scope.STACK,
    source=Source.WARM,
)
DRIFT = limit(
    replace(MEMORY, unit=Unit.LOG2, family=Family.LOG2, worse="less exact", better="more exact"), 0.0, 0.58
)
COUNTER = limit(  # any change counts
    replace(TIME, unit=Unit.COUNT, family=Family.EXACT, worse="more", better="fewer", scope=Scope.STACK), 0.0
)
EVIDENCE = replace(COUNTER, role=Role.EXPLAINS)
ON_GPU = replace(COUNTER, is_gpu_only=True)
ON_TARGET = replace(ON_GPU, same_codegen=True)  # of which only the code is known
BYTES_ON_TARGET = replace(ON_TARGET, unit=Unit.BYTES, worse="larger", better="smaller")
# Single calls and requests are few and stray far. Calls hold the waiting for the device that blocks share:
# they tell spread, and decide nothing; a limit of gate.yml lets requests decide.
SINGLE = limit(replace(TIME, role=Role.ADVISORY), 0.10, 50e-6)
