"""What is asked of a run: cases, metrics, patterns that mean cases, and all that decides besides the data."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Protocol, TypeVar

from gate.records.bounds import Date, NotNegative, Text

_TUNED_OPTIONS = frozenset(("max_autotune", "max_autotune_gemm", "max_autotune_pointwise"))
DEFAULT_BACKEND = "inductor"  # torch.compile's
Key = TypeVar("Key")
Value = TypeVar("Value")
# ``tag:smoke,!bert/*,resnet50``: which cases somebody means, wherever cases are named.
TAG = "tag:"


class Task(StrEnum):
    INFERENCE = "inference"
    TRAINING = "training"


class Kind(StrEnum):
    """How a case is called and what is seen of it: its row is in :mod:`gate.kinds`."""

    CALL = "call"
    SHAPES = "shapes"
    EXPORT = "export"
    CACHE = "cache"
    DATA = "data"
    SERVING = "serving"
    DISTRIBUTED = "distributed"
    SCOPE = "scope"
    ONNX = "onnx"


class DType(StrEnum):
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class Mode(StrEnum):
    """The ``mode`` argument of ``torch.compile``."""

    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE = "max-autotune"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"


# The modes and the options of torch.compile that ask for tuned kernels.
_TUNED_MODES = frozenset((Mode.MAX_AUTOTUNE, Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One model x task x dtype x size x mode, the unit that is measured and judged.

    Exactly one of ``factory`` (``package.module:function``) and ``node`` (a pytest node id of a
    user's own ``compile_benchmark`` test) is non-empty.
    """

    id: str  # "bert/inference-float32-smoke-default": model, slash, the rest
    model: str
    factory: str = ""
    node: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)
    pytest_args: tuple[str, ...] = ()  # with a node only
    task: Task = Task.INFERENCE
    dtype: DType = DType.FLOAT32
    size: str = "smoke"
    mode: Mode = Mode.DEFAULT
    dynamic: bool | None = None
    fullgraph: bool = False
    backend: str = DEFAULT_BACKEND
    options: Mapping[str, object] = field(default_factory=dict)  # of torch.compile
    kind: Kind = Kind.CALL
    settings: Mapping[str, object] = field(default_factory=dict)  # of the kind, but for its defaults
    tags: tuple[str, ...] = ()
    expected_s: NotNegative = 30.0  # one trial on the reference machine, about: for time left and limits
    gpu_memory_gib: NotNegative = 0.0  # that a trial needs at least; 0: not known
    needs: tuple[str, ...] = ()  # packages, by pip's names; torch is taken for granted
    definition: str = ""  # hash of all that defines the workload; a changed definition is stale
    is_removed: bool = False  # judged by the base's rules, and the change's own no longer have it so

    @property
    def program(self) -> tuple[str, str, str]:
        """Equal for trials of the same program: a definition leaves out where it is."""
        return self.definition, self.factory, self.node

    @property
    def is_tuned(self) -> bool:
        """Whether torch times kernels of its own for products and convolutions."""
        return self.mode in _TUNED_MODES or self.sets_any(_TUNED_OPTIONS)

    def sets_any(self, names: Collection[str]) -> bool:
        """Torch takes dashes as well."""
        chosen = {name.replace("-", "_") for name, value in self.options.items() if value}
        return not chosen.isdisjoint(names)


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
    LAYOUT_DIFFERENCES = "layout_differences"
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


class _OfCase(Protocol):
    @property
    def case_id(self) -> str: ...


Record = TypeVar("Record", bound=_OfCase)


def group_by(values: Iterable[Value], find_key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """In the order of the values."""
    grouped: dict[Key, list[Value]] = defaultdict(list)
    for value in values:
        grouped[find_key(value)].append(value)
    return dict(grouped)


def group_cases(records: Iterable[Record]) -> dict[str, list[Record]]:
    return group_by(records, attrgetter("case_id"))


def collect_columns(tables: Iterable[Mapping[Key, Value]]) -> dict[Key, tuple[Value, ...]]:
    """The values under each key, in the order of the tables that have it."""
    columns: dict[Key, list[Value]] = defaultdict(list)
    for table in tables:
        for key, value in table.items():
            columns[key].append(value)
    return {key: tuple(values) for key, values in columns.items()}


def split_pattern(pattern: str) -> tuple[list[str], list[str]]:
    """Terms that remove cases, and terms that name them."""
    terms = [term.strip() for term in pattern.split(",") if term.strip()]
    removed = [term[1:].strip() for term in terms if term.startswith("!")]
    return removed, [term for term in terms if not term.startswith("!")]


def fits_pattern(pattern: str, case_id: str, tags: Collection[str] = ()) -> bool:
    """Terms are ids, model names, globs over ids and ``tag:NAME``, joined by commas.

    What any ``!term`` fits is removed; with such terms alone, from all cases.
    """
    removed, named = split_pattern(pattern)
    is_named = any(fits_term(term, case_id, tags) for term in named) if named else bool(removed)
    return is_named and not any(fits_term(term, case_id, tags) for term in removed)


def fits_term(term: str, case_id: str, tags: Collection[str] = ()) -> bool:
    """``term`` without its ``!``."""
    if term.startswith(TAG):
        return term.removeprefix(TAG) in tags
    return term in {case_id, case_id.partition("/")[0]} or fnmatchcase(case_id, term)


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
class Quarantine:
    """An unstable case, or one metric of it: still measured, still shown, not deciding until a date."""

    case: Text
    metric: Metric | None = None
    owner: Text
    reason: Text
    expires: Date


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
    times_judged: int = 1  # of this run's data: the budget is divided by it
    has_anchor: bool = False  # whether there is a release anchor to compare head with
    days: Mapping[str, Mapping[Metric, tuple[float, ...]]] = field(  # what other days of this machine
        default_factory=dict  # measured of each case, one value a day: how sessions differ
    )
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by case id, where a pattern names one

    def fits(self, pattern: str, case_id: str) -> bool:
        return fits_pattern(pattern, case_id, self.tags.get(case_id, ()))
