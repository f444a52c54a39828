"""The shapes of models and tests, in gate.yml and in registry files."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, TypeVar

from gate.files.entry import REFERENCE_PACKAGE
from gate.files.invalid import InvalidValue, suggest_nearest
from gate.kinds import KIND_SPECS
from gate.records.cases import DEFAULT_BACKEND, DType, Kind, Mode, Task

DEFAULT_SIZE = "smoke"
# They take neither mode nor options: torch._dynamo.backends.common.
_DEAF_BACKENDS = {"eager", "aot_eager"}


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseEntry:
    size: str | tuple[str, ...] = DEFAULT_SIZE
    task: Task | tuple[Task, ...] = Task.INFERENCE
    dtype: DType | tuple[DType, ...] = DType.FLOAT32
    mode: Mode | tuple[Mode, ...] = Mode.DEFAULT
    fullgraph: bool = False
    backend: str | tuple[str, ...] = DEFAULT_BACKEND
    options: Mapping[str, object] = field(default_factory=dict)
    kind: Kind = Kind.CALL
    settings: Mapping[str, object] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    expected_s: float = 30.0
    gpu_memory_gib: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEntry:
    name: str
    factory: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    dynamic: bool | None = None
    cases: tuple[CaseEntry, ...]

    def find_contradictions(self, left_out: Collection[str]) -> Iterator[InvalidValue]:
        del left_out
        package = self.factory.partition(":")[0]
        if f"{package}.".startswith("gate.") and not package.startswith(f"{REFERENCE_PACKAGE}."):
            problem = "a factory cannot be imported from the package `gate`: that is compile-gate's own name"
            fix = "Rename your package, or put the factory, and what it imports, in one of another name."
            yield InvalidValue(key=".factory", problem=problem, fix=fix)
        for index, case in enumerate(self.cases):
            key = f".cases[{index}]"
            yield from _check_sizes(list_values(case.size), self.sizes, key)
            yield from _check_ignored(case, key)
            yield from _check_kind(case, key, dynamic=self.dynamic)


_T = TypeVar("_T")


def list_values(written: _T | tuple[_T, ...]) -> tuple[_T, ...]:
    return written if isinstance(written, tuple) else (written,)


def _check_sizes(sizes: tuple[str, ...], known: Collection[str], key: str) -> Iterator[InvalidValue]:
    for size in sizes:
        if known and size not in known:
            fix = suggest_nearest(size, known, f"Sizes of this model: {', '.join(known)}.")
            suffix = ", the default" if size == DEFAULT_SIZE else ""
            yield InvalidValue(key=f"{key}.size", problem=f"unknown size {size!r}{suffix}", fix=fix)


def _check_ignored(case: CaseEntry, key: str) -> Iterator[InvalidValue]:
    modes = [mode for mode in list_values(case.mode) if mode is not Mode.DEFAULT]
    backends = [backend for backend in list_values(case.backend) if backend != DEFAULT_BACKEND]
    written = {"mode": modes, "backend": backends, "options": case.options}
    given = [name for name, values in written.items() if values]
    if case.options and modes:
        problem = f"cannot be combined with the mode {str(modes[0])!r}: torch.compile takes one of the two"
        fix = "Remove one; torch._inductor.list_mode_options() shows which options a mode stands for."
        yield InvalidValue(key=f"{key}.options", problem=problem, fix=fix)
    for backend, name in product(backends, given):
        if backend in _DEAF_BACKENDS and name != "backend":
            problem = f"the backend {backend!r} ignores `{name}`, as torch's own other than inductor do"
            fix = f"Remove it, or measure that backend in a case of its own, without `{name}`."
            yield InvalidValue(key=f"{key}.{name}", problem=problem, fix=fix)
    for name in given:
        if name in KIND_SPECS[case.kind].ignores:
            problem = f"the kind {case.kind} ignores `{name}`"
            fix = f"Remove it, or measure it in a case of another kind, as `{Kind.CALL}` is."
            yield InvalidValue(key=f"{key}.{name}", problem=problem, fix=fix)


def _check_kind(case: CaseEntry, key: str, *, dynamic: bool | None) -> Iterator[InvalidValue]:
    spec = KIND_SPECS[case.kind]
    for name, known in (("task", spec.tasks), ("dtype", spec.dtypes)):
        for word in (word for word in list_values(getattr(case, name)) if word not in known):
            problem, fix = f"the kind {spec.kind} measures no {word}", f"Write {' or '.join(sorted(known))}."
            yield InvalidValue(key=f"{key}.{name}", problem=problem, fix=fix)
    if dynamic is not None and "dynamic" in spec.ignores:
        problem = f"the kind {spec.kind} ignores the model's `dynamic`"
        fix = "Measure it in a model of another name, without `dynamic`."
        yield InvalidValue(key=f"{key}.kind", problem=problem, fix=fix)
    for name, setting in spec.settings.items():
        if name not in case.settings and setting.default is None:
            problem = f"a case of the kind {spec.kind} needs the setting {name!r}"
            yield InvalidValue(key=f"{key}.kind", problem=problem, fix=f"Write it: {setting.title}.")
    varied = case.settings.get("vary")
    if isinstance(varied, Mapping):  # by the schema of the kind that has it
        yield from _check_lengths({len(values) for values in varied.values()}, f"{key}.settings.vary")


def _check_lengths(lengths: Collection[int], key: str) -> Iterator[InvalidValue]:
    """Lists that vary together have one length, of two values at least."""
    if len(lengths) > 1:
        fix = "Write one value of each argument a shape: {batch: [4, 8], sequence: [64, 32]}."
        yield InvalidValue(key=key, problem="its lists are not of one length", fix=fix)
    elif min(lengths) < 2:  # noqa: PLR2004 - one shape does not vary
        problem = "has one shape, which does not vary"
        yield InvalidValue(key=key, problem=problem, fix="List two values or more.")


@dataclass(frozen=True, kw_only=True, slots=True)
class TestEntry:
    __test__ = False  # pytest must not collect it

    name: str
    node: str
    args: tuple[str, ...] = ()
    task: Task = Task.INFERENCE
    dtype: DType = DType.FLOAT32
    tags: tuple[str, ...] = ()
    expected_s: float = 30.0
    gpu_memory_gib: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryFile:
    SCHEMA: ClassVar[str] = "registry"

    version: int
    models: tuple[ModelEntry, ...] = ()
    tests: tuple[TestEntry, ...] = ()
