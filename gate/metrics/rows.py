"""One row a metric: times, amounts and counts."""

from dataclasses import replace

from gate.metrics.spec import (
    ADVISORY,
    BYTES_ON_TARGET,
    COMPILED,
    COUNTER,
    DRIFT,
    EVIDENCE,
    MEMORY,
    OF_A_COMPILE,
    ON_GPU,
    ON_TARGET,
    RATE,
    SIGNATURE,
    SIGNATURE_EVIDENCE,
    SINGLE,
    TIME,
    Family,
    Role,
    Source,
    Timing,
    Unit,
    limit,
)
from gate.records.cases import Metric, Threshold
from gate.records.studies import FaultKind
from gate.records.verdict import CauseKind
from gate.sizes import KIB, MIB

ROWS = (
    # Times.
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
        title="first compiled call with empty caches, minus one warm call",
        timing=Timing.FIRST_CALL,
        causes=OF_A_COMPILE,
        planted=(FaultKind.COLD_COMPILE,),
    ),
    replace(
        limit(TIME, 0.15, 0.3),
        metric=Metric.WARM_COMPILE_TIME,
        column="warm compile",
        title="first compiled call of a second process with full caches, minus one warm call",
        source=Source.WARM,
        timing=Timing.FIRST_CALL,
        causes=(*OF_A_COMPILE, CauseKind.CACHE),
    ),
    replace(
        limit(ADVISORY, 0.20),
        metric=Metric.BREAK_EVEN_CALLS,
        title="calls after which a cold compile has paid for itself",
        unit=Unit.COUNT,
        worse="more",
        better="fewer",
        source=Source.DERIVED,
        parts=(Metric.COLD_COMPILE_TIME, Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY),
    ),
    replace(
        limit(ADVISORY, 0.05),
        metric=Metric.DEVICE_UTILIZATION,
        title="share of wall time in which the device ran kernels",
        unit=Unit.FRACTION,
        worse="worse",
        better="better",
        higher_is_better=True,
        is_gpu_only=True,
    ),
    replace(
        ADVISORY,
        metric=Metric.DEVICE_TIME,
        title="time of the device's kernels and copies in one warm compiled call; GPU only",
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
    # A stalled loader makes the call longer, which compiled latency decides by; this shows whose time it is.
    replace(
        limit(ADVISORY, 0.10),
        metric=Metric.DATA_RATIO,
        title="an epoch through the DataLoader / the same batches already in memory; kind data",
        unit=Unit.RATIO,
    ),
    *(
        replace(
            SINGLE,
            metric=metric,
            title=f"{which} of requests at fixed times, from its arrival; kind serving",
        )
        for metric, which in (
            (Metric.FIRST_REQUEST, "the first"),
            (Metric.REQUEST_P50, "median"),
            (Metric.REQUEST_P95, "95th percentile"),
            (Metric.REQUEST_P99, "99th percentile"),
        )
    ),
    # Amounts.
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
    # Where nothing is kept this is 0, so a change is in bytes. Less than 1 KiB, of which a million calls
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
        # An optimizer that divides by its moments makes steps of noise where a gradient is zero.
        role=Role.ADVISORY,
    ),
    replace(
        limit(ADVISORY, 0.10),  # twice what two seconds of a counter that moves ten times a second resolve
        metric=Metric.ENERGY,
        title="energy of one warm compiled call, by the board's counter; GPU only",
        unit=Unit.JOULES,
        worse="more",
        better="less",
        is_gpu_only=True,
    ),
    replace(
        limit(MEMORY, 0.05, 64 * KIB),
        metric=Metric.PACKAGE_BYTES,
        title="size of the exported package, or of the saved cache artifacts; kinds export and cache",
        source=Source.COLD,
    ),
    # Counts.
    replace(
        COUNTER,
        metric=Metric.LAYOUT_DIFFERENCES,
        title="outputs in other strides, memory or containers than eager's; state that one side keeps",
        source=Source.WARM,
        causes=(CauseKind.LAYOUT,),
    ),
    replace(SIGNATURE, metric=Metric.GRAPH_BREAKS, title="graph breaks", planted=(FaultKind.GRAPH_BREAK,)),
    replace(
        SIGNATURE,
        metric=Metric.RECOMPILES,
        title="recompiles",
        causes=(CauseKind.RECOMPILE,),
        planted=(FaultKind.RECOMPILE,),
    ),
    replace(SIGNATURE, metric=Metric.UNIQUE_GRAPHS, title="graphs captured", causes=(CauseKind.RECOMPILE,)),
    replace(COUNTER, metric=Metric.EAGER_FALLBACKS, title="frames that were not compiled at all"),
    replace(COUNTER, metric=Metric.CUDAGRAPH_SKIPS, title="CUDA graphs skipped"),
    replace(
        ON_GPU,
        metric=Metric.CUDAGRAPH_PARTITIONS,
        title="pieces that graphs were cut into for CUDA graphs",
    ),
    replace(
        ON_GPU,
        metric=Metric.LAUNCHES,
        stands_for=(Metric.COMPILED_LATENCY,),
        title="launches by the host in one warm compiled call, a CUDA graph being one; GPU only",
        same_codegen=True,
    ),
    replace(
        ON_GPU,
        metric=Metric.CUDAGRAPH_LAUNCHES,
        title="CUDA graphs launched in one warm compiled call; GPU only",
        role=Role.EXPLAINS,
    ),
    replace(
        SIGNATURE,
        metric=Metric.CACHE_MISSES,
        stands_for=(Metric.WARM_COMPILE_TIME,),
        title="compile-cache misses of the second process",
        source=Source.WARM,
        causes=(CauseKind.CACHE,),
        planted=(FaultKind.LOST_CACHE,),
    ),
    replace(
        limit(COUNTER, 0.05),
        metric=Metric.COMPILE_CALLS,
        title="Python calls during a compile without graph caches",
        family=Family.NEARLY_EXACT,
        same_codegen=True,
        stands_for=(Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME),
        source=Source.WARM,
        causes=OF_A_COMPILE,
    ),
    replace(SIGNATURE_EVIDENCE, metric=Metric.CAPTURED_OPS, title="operations captured in graphs"),
    replace(
        SIGNATURE_EVIDENCE, metric=Metric.GENERATED_KERNELS, title="kernels generated", same_codegen=True
    ),
    replace(SIGNATURE_EVIDENCE, metric=Metric.GUARDS, title="guards"),
    replace(
        ON_TARGET,
        metric=Metric.CODE_LAUNCHES,
        title="launches in the generated code: its kernels and library calls; target only",
        is_compile_signature=True,
    ),
    replace(
        ON_TARGET,
        metric=Metric.TRITON_CONFIGS,
        title="configurations that kernels were compiled in; target only",
        role=Role.EXPLAINS,
        is_compile_signature=True,
    ),
    replace(
        ON_TARGET,
        metric=Metric.REGISTERS,
        title="registers of a thread, summed over all binaries; target only",
        role=Role.EXPLAINS,
    ),
    replace(
        BYTES_ON_TARGET,
        metric=Metric.SHARED_MEMORY,
        title="shared memory of a block, summed over all binaries; target only",
        role=Role.EXPLAINS,
    ),
    replace(
        BYTES_ON_TARGET,
        metric=Metric.STACK_MEMORY,
        title="memory of a thread for its stack and spilled registers, each kernel's least; target only",
    ),
    replace(
        BYTES_ON_TARGET,
        metric=Metric.CUBIN_BYTES,
        title="size of all binaries; target only",
        role=Role.EXPLAINS,
    ),
    replace(
        ON_GPU,
        metric=Metric.COPIES,
        title="copies that the host asks for in one warm compiled call; GPU only",
        role=Role.EXPLAINS,
    ),
    replace(
        EVIDENCE,
        metric=Metric.FLOPS,
        title="floating-point operations of one eager call, in matrix products, convolutions and attention",
    ),
    replace(
        COUNTER,
        metric=Metric.BUCKETS,
        title="groups of parameters whose gradients are reduced together; kind distributed",
    ),
)
