"""The shapes of models and tests, in gate.yml and in registry files.

They become cases in :mod:`gate.project.registry`; :mod:`gate.files.entry` has the texts below the keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from gate.files.entry import (
    Backend,
    Factory,
    Identifier,
    Node,
    Package,
    Tag,
    Version,
)
from gate.project.contradictions import DEFAULT_SIZE, check_model
from gate.records import DEFAULT_BACKEND, DType, Kind, Mode, Task
from gate.records.bounds import Entry, NotEmpty, NotNegative, Seconds, Text


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseEntry(Entry):
    """One case of a model, or one for each combination where keys hold lists."""

    size: Annotated[Identifier | tuple[Identifier, ...], NotEmpty(what="one size or more")] = DEFAULT_SIZE
    """A name under `sizes`; any name if the model has no `sizes`. Part of the case's id.

    Example: [smoke, full]
    """
    task: Annotated[Task | tuple[Task, ...], NotEmpty(what="one task or more")] = Task.INFERENCE
    """What one call does. A training step needs a `loss` in the workload.

    Example: [inference, training]
    """
    dtype: Annotated[DType | tuple[DType, ...], NotEmpty(what="one dtype or more")] = DType.FLOAT32
    """The floating-point type of parameters and inputs. Both are cast.

    Example: bfloat16
    """
    mode: Annotated[Mode | tuple[Mode, ...], NotEmpty(what="one mode or more")] = Mode.DEFAULT
    """The `mode` of `torch.compile`. The backends `eager` and `aot_eager` take neither mode nor options.

    Example: [default, reduce-overhead]
    """
    fullgraph: bool = False
    """The `fullgraph` of `torch.compile`: a graph break then fails the case.

    Example: true
    """
    backend: Annotated[Backend | tuple[Backend, ...], NotEmpty(what="one backend or more")] = DEFAULT_BACKEND
    """The `backend` of `torch.compile`: `inductor`, `aot_eager`, `eager`, or one that you installed.

    Example: aot_eager
    """
    options: Mapping[str, object] = field(default_factory=dict)
    """The `options` of `torch.compile`. Not together with a `mode`.

    Example: {max_autotune: true}
    """
    kind: Kind = Kind.CALL
    """What one call of the case is: [kinds](registry.md#kinds).

    Example: shapes
    """
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of the `kind`.

    Example: {vary: {sequence: [32, 64, 96]}, dims: marked}
    """
    needs: tuple[Package, ...] = ()
    """Further packages that this case needs. If one is missing, `plan` and `doctor` say so.

    Example: [torchao]
    """
    tags: tuple[Tag, ...] = ()
    """Names to select the case by, as in `--select tag:smoke`.

    Example: [smoke, nightly]
    """
    expected_s: Seconds = 30.0
    """Seconds that one trial takes, roughly. Used for time estimates, shards and default time limits.

    Example: 25
    """
    gpu_memory_gib: NotNegative = 0.0
    """GiB of a GPU's memory that a trial needs: weights, gradients, optimizer state, and a float32 copy for
    its backward. On a smaller GPU the case is UNAVAILABLE.

    Example: 22
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEntry(Entry):
    """A model: who builds it, with which arguments, and the cases to make of it."""

    name: Identifier
    """The first part of its cases' ids. Another name makes another case, without baselines.

    Example: mixer
    """
    factory: Factory
    """The function that builds model and inputs and returns a `gate.Workload`. Its module is imported from
    the directory of gate.yml, only by processes that measure.

    Example: mixer.bench:build
    """
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Keyword arguments of the factory, for every size.

    Example: {width: 256, depth: 2}
    """
    sizes: Mapping[Identifier, Mapping[str, object]] = field(default_factory=dict)
    """What each size adds to the arguments. Use tags to select a small one for pull requests and a full one
    for the night.

    Example: {smoke: {batch: 8}, full: {batch: 1024}}
    """
    needs: tuple[Package, ...] = ()
    """Packages that every case of the model needs, by their names in pip.

    Example: [transformers]
    """
    dynamic: bool | None = None
    """The `dynamic` of `torch.compile`, for all cases of the model. By default torch decides.

    Example: true
    """
    cases: Annotated[tuple[CaseEntry, ...], NotEmpty(what="a list of at least one case")]
    """What is measured of the model. `{}` is a case with all defaults.

    Example: [{size: [smoke, full], dtype: bfloat16, tags: [smoke]}]
    """

    find_contradictions = staticmethod(check_model)


@dataclass(frozen=True, kw_only=True, slots=True)
class TestEntry(Entry):
    """A test of your own that calls the `compile_benchmark` fixture."""

    __test__ = False  # pytest must not collect it

    name: Identifier
    """The first part of its case's id, `NAME/test`.

    Example: smoothing
    """
    node: Node
    """The test's pytest id, from the directory of gate.yml. For a parametrized test with its parameters,
    `test_x.py::test_y[8]`.

    Example: tests/perf/test_smoothing.py::test_smoothing
    """
    args: tuple[Text, ...] = ()
    """Options of pytest that the test needs. Of `addopts` only plugins and imports apply.

    Example: [--runslow]
    """
    task: Task = Task.INFERENCE
    """What one call does.

    Example: training
    """
    dtype: DType = DType.FLOAT32
    """The floating-point type of parameters and inputs. Both are cast.

    Example: bfloat16
    """
    tags: tuple[Tag, ...] = ()
    """Names to select the case by, as in `--select tag:smoke`.

    Example: [smoke]
    """
    expected_s: Seconds = 30.0
    """Seconds that one trial takes, roughly. Used for time estimates, shards and default time limits.

    Example: 20
    """
    gpu_memory_gib: NotNegative = 0.0
    """GiB of a GPU's memory that a trial needs: weights, gradients, optimizer state, and a float32 copy for
    its backward. On a smaller GPU the case is UNAVAILABLE.

    Example: 22
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryFile(Entry):
    """A registry file: models and tests, for lists that are too long for gate.yml."""

    version: Version
    """The version of this file's format.

    Example: 1
    """
    models: tuple[ModelEntry, ...] = ()
    """Your models.

    Example: [{name: mixer, factory: "mixer.bench:build", cases: [{}]}]
    """
    tests: tuple[TestEntry, ...] = ()
    """Your own tests that use the `compile_benchmark` fixture.

    Example: [{name: smoothing, node: "tests/perf/test_smoothing.py::test_smoothing"}]
    """
