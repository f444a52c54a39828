"""The names of what is measured, and all that decides besides the data: thresholds, limits, acceptances."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gate.records.bounds import Date, Entry, NotNegative, Text
from gate.records.cases import fits_pattern


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """A change that somebody took responsibility for, until a date: a standing one, or of one commit.

    A standing one is of the baseline, whatever made it worse. One of a commit is of what that changes.
    """

    case: str  # as in ``fits_pattern``; of one commit: an id
    metric: Metric | None = None  # None: that the case has no baseline to compare with
    allowance: float = 0.0  # fraction (log2 units for drift, count for counters)
    reason: str
    author: str
    expires: str  # ISO date; the day itself still counts
    environment: str = "*"  # id or glob: where it counts
    commit: str = ""  # that it is for, and no other; empty: a standing one
    gate: str = ""  # of one commit: whose verdict it is; a standing one is of the gate that reads it


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine(Entry):
    """An unstable case, or one metric of it: still measured, still shown, not deciding until a date."""

    case: Text
    """The cases, named as in `select`. Each part must match at least one.

    Example: "bert/*"
    """
    metric: Metric | None = None
    """The metric that does not decide. Without it the whole case does not, its failures included.

    Example: compiled_latency
    """
    owner: Text
    """Who looks after it.

    Example: compiler-team
    """
    reason: Text
    """Why it cannot decide. `compile-gate calibrate` names cases that are unstable on your machine.

    Example: "two speeds, see #12"
    """
    expires: Date
    """The last day of the quarantine.

    Example: 2027-03-31
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """Other parts of a threshold for some cases and one metric, with the reason they exist."""

    case: str  # as in ``fits_pattern``
    metric: Metric
    reason: str
    relative: float | None = None  # None: as for the other cases
    absolute: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AbsoluteLimit:
    """A value that a metric may not be worse than, whatever is stored, in the metric's unit."""

    case: str  # as in ``fits_pattern``
    metric: Metric
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """Everything that decides besides the data."""

    thresholds: Mapping[Metric, Threshold]
    overrides: tuple[Override, ...] = ()
    limits: tuple[AbsoluteLimit, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    commits: tuple[str, ...] = ()  # that are judged, where each may have acceptances: a merge queue's several
    gate: str = ""  # which judges, as acceptances name it; empty where that is not known
    elsewhere: tuple[Acceptance, ...] = ()  # of a commit that is judged, for another gate or environment
    quarantine: tuple[Quarantine, ...] = ()
    today: str = ""  # ISO date: the decision has no clock of its own
    error_budget: float = 0.01  # false alarms a verdict, over all cases and metrics
    looks: int = 1  # how often this run's data were judged: the budget is divided by it
    has_anchor: bool = False  # whether there is a release anchor to compare head with
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by case id, where a pattern names one

    def fits(self, pattern: str, case_id: str) -> bool:
        """Whether the pattern of an entry means this case."""
        return fits_pattern(pattern, case_id, self.tags.get(case_id, ()))
