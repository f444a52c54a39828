"""What is measured: a case and what it is made of, which cases a pattern means, and records by case."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from gate.records.bounds import NotNegative


class Task(StrEnum):
    """What one call of the workload does."""

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
    """Floating-point type of parameters and floating-point inputs."""

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
_TUNED_OPTIONS = frozenset(("max_autotune", "max_autotune_gemm", "max_autotune_pointwise"))
DEFAULT_BACKEND = "inductor"  # torch.compile's


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
    needs: tuple[
        str, ...
    ] = ()  # packages, by the names that pip installs them by; torch is taken for granted
    definition: str = ""  # hash of all that defines the workload; a changed definition is stale
    is_removed: bool = False  # judged by the base's rules, and the change's own no longer have it so

    @property
    def program(self) -> tuple[str, str, str]:
        """What is run: trials are of the same where this is equal. A definition leaves out where it is."""
        return self.definition, self.factory, self.node

    @property
    def is_tuned(self) -> bool:
        """Whether torch is asked to try kernels of its own for products and convolutions, by timing them."""
        return self.mode in _TUNED_MODES or self.sets_any(_TUNED_OPTIONS)

    def sets_any(self, names: Collection[str]) -> bool:
        """Whether one of these options of torch.compile is set; torch takes dashes as well."""
        chosen = {name.replace("-", "_") for name, value in self.options.items() if value}
        return not chosen.isdisjoint(names)


Key = TypeVar("Key")
Value = TypeVar("Value")


class _OfCase(Protocol):
    @property
    def case_id(self) -> str: ...


Record = TypeVar("Record", bound=_OfCase)


def group_by(values: Iterable[Value], find_key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Values by their key, in their order."""
    grouped: dict[Key, list[Value]] = {}
    for value in values:
        grouped.setdefault(find_key(value), []).append(value)
    return grouped


def group_cases(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by case id, in their order."""
    return group_by(records, lambda record: record.case_id)


def collect_columns(tables: Iterable[Mapping[Key, Value]]) -> dict[Key, tuple[Value, ...]]:
    """What tables hold under each key, in the order of the tables that have it."""
    columns: dict[Key, list[Value]] = {}
    for table in tables:
        for key, value in table.items():
            columns.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in columns.items()}


# ``tag:smoke,!bert/*,resnet50``: which cases somebody means, wherever cases are named.
TAG = "tag:"


def split_pattern(pattern: str) -> tuple[list[str], list[str]]:
    """Split a pattern into the terms that remove cases and those that name them."""
    terms = [term.strip() for term in pattern.split(",") if term.strip()]
    removed = [term[1:].strip() for term in terms if term.startswith("!")]
    return removed, [term for term in terms if not term.startswith("!")]


def fits_pattern(pattern: str, case_id: str, tags: Collection[str] = ()) -> bool:
    """Whether a pattern means the case of this id and these tags.

    Its terms are ids, model names, globs over ids and ``tag:NAME``, joined by commas. What any ``!term``
    fits is removed, wherever it stands; with nothing but such terms, they remove from all cases.
    """
    removed, named = split_pattern(pattern)
    is_named = any(fits_term(term, case_id, tags) for term in named) if named else bool(removed)
    return is_named and not any(fits_term(term, case_id, tags) for term in removed)


def fits_term(term: str, case_id: str, tags: Collection[str] = ()) -> bool:
    """Whether one term, without its ``!``, fits the case."""
    if term.startswith(TAG):
        return term.removeprefix(TAG) in tags
    return term in {case_id, case_id.partition("/")[0]} or fnmatchcase(case_id, term)
