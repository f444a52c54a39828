"""The shapes of models and tests, in gate.yml and in registry files.

They become cases in :mod:`gate.project.registry`; :mod:`gate.files.entry` has the texts below the keys.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from gate.files.entry import REFERENCE_PACKAGE, Backend, Factory, Identifier, Node, Package, Tag, Version
from gate.files.structure import fit
from gate.files.untrusted import InvalidValue, ValidationError, Values, format_value, suggest_nearest
from gate.kinds import KIND_SPECS, KindSpec
from gate.records.bounds import Entry, NotEmpty, NotNegative, Seconds, Text
from gate.records.cases import DEFAULT_BACKEND, DType, Kind, Mode, Task

DEFAULT_SIZE = "smoke"
# They take neither mode nor options: torch._dynamo.backends.common.
_DEAF_BACKENDS = {"eager", "aot_eager"}


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

    @staticmethod
    def find_contradictions(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
        """Cases must be of the model's sizes and of what their kinds listen to; `gate` is taken."""
        del wrong
        package = values.get("factory", "").partition(":")[0]
        if f"{package}.".startswith("gate.") and not package.startswith(f"{REFERENCE_PACKAGE}."):
            problem = "a factory cannot be imported from the package `gate`: that is compile-gate's own name"
            fix = "Rename your package, or put the factory, and what it imports, in one of another name."
            yield InvalidValue(problem=problem, fix=fix, path=[".factory"])
        for index, case in enumerate(values.get("cases", ())):
            path = [f"[{index}]", ".cases"]
            yield from _check_sizes(list_values(case.size), values.get("sizes", {}), path)
            yield from _check_ignored(case, path)
            yield from _check_kind(case, path, dynamic=values.get("dynamic"))


_T = TypeVar("_T")


def list_values(written: _T | tuple[_T, ...]) -> tuple[_T, ...]:
    """List what stands behind a key that takes one value or several."""
    return written if isinstance(written, tuple) else (written,)


def _check_sizes(sizes: tuple[str, ...], known: Collection[str], path: list[str]) -> Iterator[InvalidValue]:
    for size in sizes:
        if known and size not in known:
            fix = suggest_nearest(size, known, f"Sizes of this model: {', '.join(known)}.")
            suffix = ", the default" if size == DEFAULT_SIZE else ""
            yield InvalidValue(problem=f"unknown size {size!r}{suffix}", fix=fix, path=[".size", *path])


def _check_ignored(case: CaseEntry, path: list[str]) -> Iterator[InvalidValue]:
    """Refuse what nobody takes notice of: the case would measure something else than its id says."""
    modes = [mode for mode in list_values(case.mode) if mode is not Mode.DEFAULT]
    backends = [backend for backend in list_values(case.backend) if backend != DEFAULT_BACKEND]
    given = [
        key for key, found in (("mode", modes), ("backend", backends), ("options", case.options)) if found
    ]
    if case.options and modes:
        problem = f"cannot be combined with the mode {str(modes[0])!r}: torch.compile takes one of the two"
        fix = "Remove one; torch._inductor.list_mode_options() shows which options a mode stands for."
        yield InvalidValue(problem=problem, fix=fix, path=[".options", *path])
    for backend in (one for one in backends if one in _DEAF_BACKENDS):
        for key in (key for key in given if key != "backend"):
            problem = f"the backend {backend!r} ignores `{key}`, as torch's own other than inductor do"
            fix = f"Remove it, or measure that backend in a case of its own, without `{key}`."
            yield InvalidValue(problem=problem, fix=fix, path=[f".{key}", *path])
    for key in (key for key in given if key in KIND_SPECS[case.kind].ignores):
        fix = f"Remove it, or measure it in a case of another kind, as `{Kind.CALL}` is."
        yield InvalidValue(problem=f"the kind {case.kind} ignores `{key}`", fix=fix, path=[f".{key}", *path])


def _check_kind(case: CaseEntry, path: list[str], *, dynamic: bool | None) -> Iterator[InvalidValue]:
    """Check that the kind measures the case's tasks and has its settings, and listens to its model."""
    spec = KIND_SPECS[case.kind]
    for key, known in (("task", spec.tasks), ("dtype", spec.dtypes)):
        for word in (word for word in list_values(getattr(case, key)) if word not in known):
            problem, fix = f"the kind {spec.kind} measures no {word}", f"Write {' or '.join(sorted(known))}."
            yield InvalidValue(problem=problem, fix=fix, path=[f".{key}", *path])
    if dynamic is not None and "dynamic" in spec.ignores:
        problem = f"the kind {spec.kind} ignores the model's `dynamic`"
        fix = "Measure it in a model of another name, without `dynamic`."
        yield InvalidValue(problem=problem, fix=fix, path=[".kind", *path])
    for name, value in case.settings.items():
        yield from _check_setting(spec, name, value, [f".{name}", ".settings", *path])
    for name, setting in spec.settings.items():
        if name not in case.settings and setting.default is None:
            problem = f"a case of the kind {spec.kind} needs the setting {name!r}"
            yield InvalidValue(problem=problem, fix=f"Write it: {setting.title}.", path=[".kind", *path])


def _check_setting(spec: KindSpec, name: str, value: object, place: list[str]) -> Iterator[InvalidValue]:
    if name not in spec.settings:
        listed = f"Settings of this kind: {', '.join(spec.settings)}." if spec.settings else "It has none."
        problem = f"the kind {spec.kind} has no setting {format_value(name)}"
        yield InvalidValue(problem=problem, fix=suggest_nearest(name, spec.settings, listed), path=place)
        return
    try:
        decoded = fit(spec.settings[name].takes, value)
    except ValidationError as error:
        for invalid in error.found:
            invalid.path += place
            invalid.says_little = False  # no key around it says more
        yield from error.found
    else:
        if spec.kind is Kind.SHAPES and name == "vary":
            yield from _check_lengths([len(one) for one in decoded.values()], place)


def _check_lengths(lengths: list[int], place: list[str]) -> Iterator[InvalidValue]:
    """Lists that vary together have one length, of two values at least."""
    if len(set(lengths)) > 1:
        fix = "Write one value of each argument a shape: {batch: [4, 8], sequence: [64, 32]}."
        yield InvalidValue(problem="its lists are not of one length", fix=fix, path=place)
    elif lengths[0] < 2:  # noqa: PLR2004 - one shape does not vary
        yield InvalidValue(
            problem="has one shape, which does not vary", fix="List two values or more.", path=place
        )


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
