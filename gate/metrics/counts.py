"""The metrics that are counted: of graphs, generated code, launches and operations."""

from __future__ import annotations

from dataclasses import replace

from gate.metrics.bases import BYTES_ON_TARGET, COUNTER, EVIDENCE, OF_A_COMPILE, ON_GPU, ON_TARGET, limit
from gate.metrics.spec import Family, Role, Source
from gate.records import CauseKind, Metric
from gate.records.faults import FaultKind

ROWS = (
    replace(
        COUNTER,
        metric=Metric.GRAPH_BREAKS,
        title="graph breaks",
        is_trace=True,
        planted=(FaultKind.GRAPH_BREAK,),
    ),
    replace(
        COUNTER,
        metric=Metric.RECOMPILES,
        title="recompiles",
        is_trace=True,
        causes=(CauseKind.RECOMPILE,),
        planted=(FaultKind.RECOMPILE,),
    ),
    replace(
        COUNTER,
        metric=Metric.UNIQUE_GRAPHS,
        title="graphs captured",
        is_trace=True,
        causes=(CauseKind.RECOMPILE,),
    ),
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
        COUNTER,
        metric=Metric.CACHE_MISSES,
        title="compile-cache misses of the second process",
        source=Source.WARM,
        is_trace=True,
        causes=(CauseKind.CACHE,),
        planted=(FaultKind.LOST_CACHE,),
    ),
    replace(
        limit(COUNTER, 0.05),
        metric=Metric.COMPILE_CALLS,
        title="Python calls during a compile without graph caches",
        family=Family.NEARLY_EXACT,
        same_codegen=True,
        source=Source.WARM,
        causes=OF_A_COMPILE,
    ),
    replace(EVIDENCE, metric=Metric.CAPTURED_OPS, title="operations captured in graphs", is_trace=True),
    replace(
        EVIDENCE,
        metric=Metric.GENERATED_KERNELS,
        title="kernels generated",
        same_codegen=True,
        is_trace=True,
    ),
    replace(EVIDENCE, metric=Metric.GUARDS, title="guards", is_trace=True),
    replace(
        ON_TARGET,
        metric=Metric.CODE_LAUNCHES,
        title="launches in the generated code: its kernels and library calls; target only",
        is_trace=True,
    ),
    replace(
        ON_TARGET,
        metric=Metric.TRITON_CONFIGS,
        title="configurations that kernels were compiled in; target only",
        role=Role.EXPLAINS,
        is_trace=True,
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
