"""The shapes of models and tests, in gate.yml and in registry files.

What they become is in :mod:`gate.registry`. The texts below the keys are described in :mod:`gate.entry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from gate.contradictions import DEFAULT_SIZE, check_model
from gate.entry import Entry
from gate.key_types import Backend, Factory, Name, Node, Seconds, Tag, Version
from gate.limits import NotEmpty
from gate.records import DEFAULT_BACKEND, DType, Mode, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseEntry(Entry):
    """One case of a model, or one for each combination where keys hold lists."""

    size: Annotated[Name | tuple[Name, ...], NotEmpty(what="one size or more")] = DEFAULT_SIZE
    """A name under `sizes`; where the model has no `sizes`, any name. Part of the case's id.

    Example: [smoke, full]
    """
    task: Annotated[Task | tuple[Task, ...], NotEmpty(what="one task or more")] = Task.INFERENCE
    """What one call does. A training step needs a `loss` in the workload.

    Example: [inference, training]
    """
    dtype: Annotated[DType | tuple[DType, ...], NotEmpty(what="one dtype or more")] = DType.FLOAT32
    """The floating-point type of parameters and inputs. The gate casts both.

    Example: bfloat16
    """
    mode: Annotated[Mode | tuple[Mode, ...], NotEmpty(what="one mode or more")] = Mode.DEFAULT
    """The `mode` of `torch.compile`. The backends `eager` and `aot_eager` take neither mode nor options.

    Example: [default, reduce-overhead]
    """
    fullgraph: bool = False
    """The `fullgraph` of `torch.compile`: with it a case that breaks the graph fails.

    Example: true
    """
    backend: Annotated[Backend | tuple[Backend, ...], NotEmpty(what="one backend or more")] = DEFAULT_BACKEND
    """The `backend` of `torch.compile`: `inductor`, `aot_eager`, `eager`, or one that you have installed.

    Example: aot_eager
    """
    options: Mapping[str, object] = field(default_factory=dict)
    """The `options` of `torch.compile`. It takes options or a `mode`, not both.

    Example: {max_autotune: true}
    """
    tags: tuple[Tag, ...] = ()
    """Names to select the case by, as in `--select tag:smoke`. One case may have several.

    Example: [smoke, nightly]
    """
    expected_s: Seconds = 30.0
    """Seconds that one trial takes. Only estimates of the time left and the division over machines use it.

    Example: 25
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEntry(Entry):
    """A model: who builds it, with which arguments, and the cases to make of it."""

    name: Name
    """The first part of its cases' ids. Baselines are found by it: another name makes another case.

    Example: mixer
    """
    factory: Factory
    """The function that builds model and inputs and returns a `gate.Workload`. Its module is imported from
    the directory of gate.yml, by the processes that measure and by nobody else.

    Example: mixer.bench:build
    """
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Keyword arguments of the factory, for every size.

    Example: {width: 256, depth: 2}
    """
    sizes: Mapping[Name, Mapping[str, object]] = field(default_factory=dict)
    """What each size adds to the arguments. A small one for every pull request and a full one for the
    night can then be told apart by their cases' tags.

    Example: {smoke: {batch: 8}, full: {batch: 1024}}
    """
    dynamic: bool | None = None
    """The `dynamic` of `torch.compile`, for all cases of the model. Left out, torch decides.

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

    name: Name
    """The first part of its case's id, `NAME/test`.

    Example: smoothing
    """
    node: Node
    """The test, as pytest names it, from the directory of gate.yml.

    Example: tests/perf/test_smoothing.py::test_smoothing
    """
    task: Task = Task.INFERENCE
    """What one call does.

    Example: training
    """
    dtype: DType = DType.FLOAT32
    """The floating-point type of parameters and inputs. The gate casts both.

    Example: bfloat16
    """
    tags: tuple[Tag, ...] = ()
    """Names to select the case by, as in `--select tag:smoke`.

    Example: [smoke]
    """
    expected_s: Seconds = 30.0
    """Seconds that one trial takes. Only estimates of the time left and the division over machines use it.

    Example: 20
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
