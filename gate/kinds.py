"""What each kind of case is: one row a kind, known without torch.

A new kind is a row here, a class in :mod:`gate.measure.kinds`, and its settings in the schema of gate.yml:
docs/registry.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from gate.records.cases import Case, DType, Kind, Metric, Task

T = TypeVar("T")
_OF_DYNAMO = frozenset(
    {
        Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.UNIQUE_GRAPHS,
        Metric.EAGER_FALLBACKS, Metric.CAPTURED_OPS, Metric.GUARDS,
    }
)  # fmt: skip
_REQUESTS = frozenset({Metric.FIRST_REQUEST, Metric.REQUEST_P50, Metric.REQUEST_P95, Metric.REQUEST_P99})
_INFERENCE = frozenset({Task.INFERENCE})
# What is exported is one graph of fixed sizes, and its compiler is given no options.
_OF_COMPILE = frozenset({"mode", "backend", "options", "dynamic"})
# Tags of the registry that name what a workload is an example of: rows of its summary. A case of none
# stands under its model.
WORKLOAD_FAMILIES = frozenset(
    {
        "cnn", "transformer", "llm", "diffusion", "recurrent", "train", "physics", "functions",
        "custom", "shapes", "breaks", "modes", "backends", "quantization", "export", "caches",
        "data", "serving", "distributed", "scope",
    }
)  # fmt: skip


class Dims(StrEnum):
    """How ``torch.compile`` is to take sizes that vary: its ``dynamic``, or ``mark_dynamic``."""

    AUTOMATIC = "automatic"  # compiled for the first shape, then once for all
    STATIC = "static"  # compiled for each shape
    DYNAMIC = "dynamic"  # for all from the start
    MARKED = "marked"  # for all in the dimensions that vary, each marked


class Part(StrEnum):
    """How much of a model is compiled, and how often."""

    BLOCKS = "blocks"  # each block of its lists by itself, the rest eagerly
    REGIONS = "regions"  # all of it, the code of blocks that are alike once
    HOTTEST = "hottest"  # the one submodule with the most floating-point operations


class Strategy(StrEnum):
    """How a model is spread over processes."""

    DDP = "ddp"  # each has all of it: DistributedDataParallel
    FSDP2 = "fsdp2"  # each has a part of every tensor: fully_shard


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    title: str
    default: object = None  # None: it must be given


@dataclass(frozen=True, kw_only=True, slots=True)
class KindSpec:
    kind: Kind
    title: str  # what one call is
    settings: Mapping[str, Setting]
    adds: frozenset[Metric]  # that no other kind of case has, unless it says so too
    lacks: frozenset[Metric]  # of those that every case has
    tasks: frozenset[Task]
    dtypes: frozenset[DType]
    ignores: frozenset[str]  # keys of a case, and of its model, that torch.compile alone listens to
    needs: tuple[str, ...]  # packages, by the names that pip installs them by
    is_file: bool  # a second process finds its code by a file's name, whatever model it is given
    on_target: bool  # can be compiled for a GPU that is not there


_VARIES = Setting(
    title="arguments of the factory that vary, each with one value a shape, all lists of one length",
)

_CALL = KindSpec(
    kind=Kind.CALL,
    title="one call of the model, or one training step",
    settings={},
    adds=frozenset(),
    lacks=frozenset(),
    tasks=frozenset(Task),
    dtypes=frozenset(DType),
    ignores=frozenset(),
    needs=(),
    is_file=False,
    on_target=True,
)
_ON_DEVICE = replace(_CALL, on_target=False)
_ROWS = (
    _CALL,
    replace(
        _CALL,
        kind=Kind.SHAPES,
        title="one pass over a fixed list of shapes, a call each",
        settings={
            "vary": _VARIES,
            "dims": Setting(title="how sizes that vary are compiled", default=Dims.AUTOMATIC),
        },
        ignores=frozenset({"dynamic"}),  # that is what `dims` says
    ),
    replace(
        _ON_DEVICE,
        kind=Kind.EXPORT,
        is_file=True,
        title="one call of the package that torch.export and AOTInductor built;"
        " a cold compile builds it, a warm one loads it",
        adds=frozenset({Metric.PACKAGE_BYTES}),
        # The package is one graph by construction: there is no second one, and nothing to fall back to.
        lacks=_OF_DYNAMO | {Metric.COMPILE_CALLS},
        tasks=_INFERENCE,
        ignores=_OF_COMPILE,
    ),
    replace(
        _ON_DEVICE,
        kind=Kind.CACHE,
        title="one call of the model; the second process finds the one file of"
        " torch.compiler.save_cache_artifacts and no cache directory",
        adds=frozenset({Metric.PACKAGE_BYTES}),
    ),
    replace(
        _ON_DEVICE,
        kind=Kind.DATA,
        title="an epoch through a DataLoader, a call or a training step each batch",
        settings={
            "batches": Setting(
                title="batches of an epoch",
                default=8,
            ),
            "workers": Setting(title="processes that load; with 0 the measuring one does", default=2),
        },
        adds=frozenset({Metric.DATA_RATIO}),
    ),
    replace(
        _ON_DEVICE,
        kind=Kind.SERVING,
        title="one call of the model; then requests at fixed times, timed one by one",
        settings={
            "interval_s": Setting(title="seconds between two arrivals", default=0.02),
            "requests": Setting(
                title="requests after each other",
                default=200,
            ),
        },
        adds=_REQUESTS,
        tasks=_INFERENCE,
    ),
    replace(
        _ON_DEVICE,
        kind=Kind.DISTRIBUTED,
        title="one training step of two processes, each with a batch of its own, over gloo or NCCL",
        settings={
            "strategy": Setting(title="how the model is spread", default=Strategy.DDP),
            # torch refuses less: the first bucket, of 1 MiB, is to be the smallest.
            "bucket_mib": Setting(
                title="MiB of gradients that ddp reduces at once",
                default=25.0,
            ),
        },
        adds=frozenset({Metric.BUCKETS}),
        tasks=frozenset({Task.TRAINING}),
        # Drift of a coarser type is measured in a float32 copy as well, which would have to be spread too.
        dtypes=frozenset({DType.FLOAT32}),
    ),
    replace(
        _ON_DEVICE,
        kind=Kind.SCOPE,
        title="one call of the model, of which only a part is compiled",
        settings={
            "part": Setting(title="what is compiled", default=Part.BLOCKS),
        },
    ),
    replace(
        _ON_DEVICE,
        kind=Kind.ONNX,
        is_file=True,
        title="one call of the model in onnxruntime; a cold compile exports it to ONNX, a warm one loads it",
        adds=frozenset({Metric.PACKAGE_BYTES}),
        lacks=_OF_DYNAMO | {Metric.COMPILE_CALLS},
        tasks=_INFERENCE,
        dtypes=frozenset({DType.FLOAT32}),  # numpy, through which tensors go, has no bfloat16
        ignores=_OF_COMPILE,
        needs=("onnx", "onnxscript", "onnxruntime"),
    ),
)
KIND_SPECS: Mapping[Kind, KindSpec] = {spec.kind: spec for spec in _ROWS}
# What only cases of some kinds have.
SPECIAL = frozenset(metric for spec in KIND_SPECS.values() for metric in spec.adds)


def has_metric(case: Case, metric: Metric) -> bool:
    spec = KIND_SPECS[case.kind]
    return metric in spec.adds if metric in SPECIAL else metric not in spec.lacks


def get_setting(case: Case, name: str, make: Callable[[Any], T]) -> T:
    """The case's own or the default, as ``make`` converts it."""
    return make(case.settings.get(name, KIND_SPECS[case.kind].settings[name].default))


def name_family(case: Case) -> str:
    """The first tag that is a family, or the model."""
    return next((tag for tag in case.tags if tag in WORKLOAD_FAMILIES), case.model)
