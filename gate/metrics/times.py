"""The metrics that a clock tells: calls, compiles and requests, and ratios of them."""

from __future__ import annotations

from dataclasses import replace

from gate.metrics.bases import COMPILED, OF_A_COMPILE, RATE, SINGLE, TIME, limit
from gate.metrics.spec import Role, Source, Timing, Unit
from gate.records import CauseKind, Metric, Threshold
from gate.records.faults import FaultKind

ROWS = (
    replace(
        RATE,
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
    COMPILED,
    replace(
        RATE,
        metric=Metric.EAGER_LATENCY,
        column="eager",
        title="one warm eager call",
        role=Role.CONTROL,
        causes=(),
        planted=(FaultKind.EAGER_FASTER,),
    ),
    # The floors of compiles are below what a person waiting would notice.
    replace(
        limit(TIME, 0.10, 0.5),
        metric=Metric.COLD_COMPILE_TIME,
        column="cold compile",
        title="first compiled call, caches empty, less a steady call",
        timing=Timing.FIRST_CALL,
        causes=OF_A_COMPILE,
        planted=(FaultKind.COLD_COMPILE,),
    ),
    replace(
        limit(TIME, 0.15, 0.3),
        metric=Metric.WARM_COMPILE_TIME,
        column="warm compile",
        title="first compiled call of a second process, caches full, less a steady call",
        source=Source.WARM,
        timing=Timing.FIRST_CALL,
        causes=(*OF_A_COMPILE, CauseKind.CACHE),
    ),
    replace(
        limit(TIME, 0.20),
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
        limit(TIME, 0.05),
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
        TIME,
        metric=Metric.DEVICE_TIME,
        title="time of the device's kernels and copies in one warm compiled call; GPU only",
        role=Role.ADVISORY,
        is_gpu_only=True,
    ),
    *(
        replace(
            SINGLE,
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
    # A stalled loader makes the call longer, which compiled latency decides by; this says whose time it is.
    replace(
        limit(TIME, 0.10),
        metric=Metric.DATA_RATIO,
        title="an epoch through the DataLoader / the same batches already in memory; kind data",
        unit=Unit.RATIO,
        role=Role.ADVISORY,
    ),
    *(
        replace(
            SINGLE,
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
