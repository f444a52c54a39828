"""What is measured: a case, and what it is made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
