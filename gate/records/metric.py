"""The names of what is measured, and how much of a change matters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records.bounds import NotNegative


class Metric(StrEnum):
    """What is measured; units, scope and role of each are in :mod:`gate.metrics`."""

    WARM_SPEEDUP = "warm_speedup"
    COMPILED_LATENCY = "compiled_latency"
    EAGER_LATENCY = "eager_latency"
    COLD_COMPILE_TIME = "cold_compile_time"
    WARM_COMPILE_TIME = "warm_compile_time"
    PEAK_MEMORY = "peak_memory"
    MEMORY_RATIO = "memory_ratio"
    MEMORY_GROWTH = "memory_growth"
    COMPILE_PEAK_MEMORY = "compile_peak_memory"
    DRIFT = "drift"
    DRIFT_FLOAT32 = "drift_float32"
    DRIFT_STEPS = "drift_steps"
    GRAPH_BREAKS = "graph_breaks"
    RECOMPILES = "recompiles"
    UNIQUE_GRAPHS = "unique_graphs"
    EAGER_FALLBACKS = "eager_fallbacks"
    CUDAGRAPH_SKIPS = "cudagraph_skips"
    CUDAGRAPH_PARTITIONS = "cudagraph_partitions"
    LAUNCHES = "launches"
    CUDAGRAPH_LAUNCHES = "cudagraph_launches"
    CACHE_MISSES = "cache_misses"
    COMPILE_CALLS = "compile_calls"
    CAPTURED_OPS = "captured_ops"
    GENERATED_KERNELS = "generated_kernels"
    GUARDS = "guards"
    CODE_LAUNCHES = "code_launches"
    TRITON_CONFIGS = "triton_configs"
    REGISTERS = "registers"
    SHARED_MEMORY = "shared_memory"
    STACK_MEMORY = "stack_memory"
    CUBIN_BYTES = "cubin_bytes"
    BREAK_EVEN_CALLS = "break_even_calls"
    DEVICE_UTILIZATION = "device_utilization"
    DEVICE_TIME = "device_time"
    COPIES = "copies"
    FLOPS = "flops"
    ENERGY = "energy"
    CALL_P50 = "call_p50"
    CALL_P95 = "call_p95"
    CALL_P99 = "call_p99"
    PACKAGE_BYTES = "package_bytes"
    DATA_RATIO = "data_ratio"
    BUCKETS = "buckets"
    FIRST_REQUEST = "first_request"
    REQUEST_P50 = "request_p50"
    REQUEST_P95 = "request_p95"
    REQUEST_P99 = "request_p99"


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """The smallest change that is worth a human: both parts must be exceeded."""

    relative: NotNegative  # fraction of the baseline
    absolute: NotNegative  # in the metric's unit
