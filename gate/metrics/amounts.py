"""The metrics of memory, drift, energy and files."""

from __future__ import annotations

from dataclasses import replace

from gate.metrics.bases import DRIFT, MEMORY, TIME, limit
from gate.metrics.spec import Family, Role, Source, Unit
from gate.records import CauseKind, Metric
from gate.records.faults import FaultKind

MIB = 1024 * 1024

ROWS = (
    # The floor is above one and a half times the largest jump that an unchanged case made in 80 stored trials
    # on CPUs, 3.7 MiB, since the high-water mark of a process includes what its allocator happens to hold.
    replace(
        limit(MEMORY, 0.03, 6 * MIB),
        metric=Metric.PEAK_MEMORY,
        column="peak memory",
        title="peak memory of a warm compiled call, resident tensors included",
        planted=(FaultKind.MEMORY,),
    ),
    replace(
        limit(MEMORY, 0.05),
        metric=Metric.MEMORY_RATIO,
        title="peak memory, compiled / eager",
        unit=Unit.RATIO,
        follows=Metric.PEAK_MEMORY,
    ),
    # Where nothing is kept this is 0, so a change is told in bytes. Less than 1 KiB, of which a million calls
    # keep 1 GB, counts as nothing.
    replace(
        limit(MEMORY, 0.0, 1024),
        metric=Metric.MEMORY_GROWTH,
        title="memory that each further warm compiled call keeps",
        family=Family.EXACT,
        worse="more",
        better="less",
        causes=(CauseKind.KEPT,),
    ),
    replace(
        limit(MEMORY, 0.10, 20 * MIB),
        metric=Metric.COMPILE_PEAK_MEMORY,
        title="peak memory while compiling",
        family=Family.NOISY,
        role=Role.ADVISORY,
        source=Source.COLD,
    ),
    replace(
        DRIFT,
        metric=Metric.DRIFT,
        column="drift",
        title="log2 of compiled's RMSE against fp64 over eager's own, worst output or gradient",
        planted=(FaultKind.LOW_PRECISION,),
    ),
    replace(
        DRIFT,
        metric=Metric.DRIFT_FLOAT32,
        title="the same with the case run in float32, TF32 off",
        planted=(FaultKind.WRONG_EPS,),
    ),
    replace(
        DRIFT,
        metric=Metric.DRIFT_STEPS,
        title="the same of how far parameters moved in 10 steps; plain training with an optimizer",
        # An optimizer that divides by its moments makes steps of noise where a gradient is none.
        role=Role.ADVISORY,
    ),
    replace(
        limit(TIME, 0.10),  # twice what two seconds of a counter that moves ten times a second resolve
        metric=Metric.ENERGY,
        title="energy of one warm compiled call, by the board's counter; GPU only",
        unit=Unit.JOULES,
        worse="more",
        better="less",
        role=Role.ADVISORY,
        is_gpu_only=True,
    ),
    replace(
        limit(MEMORY, 0.05, 64 * 1024),
        metric=Metric.PACKAGE_BYTES,
        title="size of the exported package, or of the saved cache artifacts; kinds export and cache",
        source=Source.COLD,
    ),
)
