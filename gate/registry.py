"""Models and tests -> cases: the reference registry, the user's registry files and ``gate.yml``."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.machinery import PathFinder
from itertools import product
from pathlib import Path
from typing import NamedTuple

from gate.config import Config
from gate.errors import FileError
from gate.misfits import find_nearest
from gate.model_entries import CaseEntry, ModelEntry, RegistryFile, TestEntry
from gate.records import DEFAULT_BACKEND, Case, DType, Mode, Task
from gate.selection import select_cases
from gate.yaml_border import load_yaml

__all__ = ["load_cases", "select_cases"]

_DEFINITION_CHARS = 16  # 64 bits: definitions are compared within one case only
REFERENCE_PACKAGE = "gate.models"
# Options in a case's id are readable up to this length and while they are a file name; then a digest.
_READABLE_OPTIONS = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_DIGEST_CHARS = 8  # told apart within one model only


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """A model or a test, and where it is written."""

    entry: ModelEntry | TestEntry
    file: str
    key: str


class _Axes(NamedTuple):
    """What a case entry may hold a list of."""

    size: str
    task: Task
    dtype: DType
    mode: Mode
    backend: str


def load_cases(config: Config) -> tuple[Case, ...]:
    """Load all cases: the reference models, the registry files, then those of ``gate.yml``.

    Nothing is imported: a factory that does not exist is found by the worker.

    Raises:
        FileError: An unusable file, a duplicate model or case, a glob of gate.yml that matches no case.
    """
    entries = [*_load_registries(config), *_list_own_entries(config)]
    _check_names(entries)
    cases: dict[str, Case] = {}
    for entry in entries:
        for case in _make_cases(entry):
            if case.id in cases:
                problem = f"makes the case {case.id!r} twice"
                raise FileError(entry.file, entry.key, problem, "Remove one of the two.")
            cases[case.id] = case
    _check_globs("overrides", [override.case for override in config.overrides], config, cases)
    _check_globs("quarantine", [entry.case for entry in config.quarantine], config, cases)
    return tuple(cases.values())


def _load_registries(config: Config) -> Iterator[_Entry]:
    reference = Path(str(importlib.resources.files("gate"))) / "models" / "registry.yml"
    for path in ((reference,) if config.reference_models else ()) + config.registry:
        file, document = load_yaml(RegistryFile, path)
        for key, entry in _list_entries(file.models, file.tests):
            yield _Entry(entry=entry, file=f"{path}:{document.find_line(key)}", key=key)


def _list_own_entries(config: Config) -> Iterator[_Entry]:
    for key, entry in _list_entries(config.models, config.tests):
        yield _Entry(entry=entry, file=config.origins.get(key, config.source), key=key)


def _list_entries(
    models: tuple[ModelEntry, ...], tests: tuple[TestEntry, ...]
) -> Iterator[tuple[str, ModelEntry | TestEntry]]:
    yield from ((f"models[{index}]", model) for index, model in enumerate(models))
    yield from ((f"tests[{index}]", test) for index, test in enumerate(tests))


def _check_names(entries: list[_Entry]) -> None:
    seen: dict[str, _Entry] = {}
    for entry in entries:
        name = entry.entry.name
        if name in seen:
            problem = f"the name {name!r} is taken by {seen[name].file}"
            fix = "Rename one of the two, or leave the reference models out with 'reference_models: false'."
            raise FileError(entry.file, f"{entry.key}.name", problem, fix)
        seen[name] = entry


def _check_globs(name: str, globs: list[str], config: Config, cases: dict[str, Case]) -> None:
    """Check that every glob of a list in gate.yml matches a case: else it does nothing, unnoticed."""
    for index, glob in enumerate(globs):
        if not any(fnmatchcase(case_id, glob) for case_id in cases):
            key = f"{name}[{index}].case"
            nearest = find_nearest(glob, cases)
            fix = f"Did you mean {nearest!r}?" if nearest else "List the cases with `compile-gate models`."
            file = config.origins.get(key, config.source)
            raise FileError(file, key, f"{glob!r} matches no case", fix)


def _make_cases(entry: _Entry) -> Iterator[Case]:
    if isinstance(entry.entry, TestEntry):
        yield _make_test_case(entry.entry)
        return
    source_digest = _compute_source_digest(entry, entry.entry.factory)
    for case in entry.entry.cases:
        for axes in _expand_axes(case):
            yield _make_model_case(entry.entry, case, axes, source_digest)


def _expand_axes(case: CaseEntry) -> Iterator[_Axes]:
    sizes = case.size if isinstance(case.size, tuple) else (case.size,)
    tasks = case.task if isinstance(case.task, tuple) else (case.task,)
    dtypes = case.dtype if isinstance(case.dtype, tuple) else (case.dtype,)
    modes = case.mode if isinstance(case.mode, tuple) else (case.mode,)
    backends = case.backend if isinstance(case.backend, tuple) else (case.backend,)
    return (_Axes(*values) for values in product(sizes, tasks, dtypes, modes, backends))


def _make_test_case(entry: TestEntry) -> Case:
    definition = {"node": entry.node, "task": entry.task, "dtype": entry.dtype}
    return Case(
        id=f"{entry.name}/test",
        model=entry.name,
        node=entry.node,
        task=entry.task,
        dtype=entry.dtype,
        tags=entry.tags,
        expected_s=entry.expected_s,
        definition=_compute_digest(definition),
    )


def _make_model_case(entry: ModelEntry, case: CaseEntry, axes: _Axes, source_digest: str) -> Case:
    size, task, dtype, mode, backend = axes
    arguments = {**entry.arguments, **entry.sizes.get(size, {})}
    # Only where it is not the default: what is recorded of other cases keeps its id and its definition.
    unusual: dict[str, object] = {"fullgraph": True} if case.fullgraph else {}
    unusual |= {"backend": backend} if backend != DEFAULT_BACKEND else {}
    unusual |= {"options": dict(case.options)} if case.options else {}
    definition = {
        "factory": entry.factory,
        "arguments": arguments,
        "task": task,
        "dtype": dtype,
        "mode": mode,
        "dynamic": entry.dynamic,
        "source": source_digest,
        **unusual,
    }
    return Case(
        id=f"{entry.name}/{task}-{dtype}-{size}-{mode}{_name_rest(entry, case, backend)}",
        model=entry.name,
        factory=entry.factory,
        arguments=arguments,
        task=task,
        dtype=dtype,
        size=size,
        mode=mode,
        dynamic=entry.dynamic,
        fullgraph=case.fullgraph,
        backend=backend,
        options=case.options,
        tags=case.tags,
        expected_s=case.expected_s,
        definition=_compute_digest(definition),
    )


def _name_rest(entry: ModelEntry, case: CaseEntry, backend: str) -> str:
    """The end of a case's id: what is not torch.compile's default, each with a hyphen before it."""
    parts = ["dynamic"] if entry.dynamic else []
    parts += ["fullgraph"] if case.fullgraph else []
    parts += [backend] if backend != DEFAULT_BACKEND else []
    parts += [_name_options(case.options)] if case.options else []
    return "".join(f"-{part}" for part in parts)


def _name_options(options: Mapping[str, object]) -> str:
    """Name options: ``max_autotune-true``."""
    named = "-".join(f"{key}-{_name_value(options[key])}" for key in sorted(options))
    return (
        named if _READABLE_OPTIONS.fullmatch(named) else f"options-{_compute_digest(options)[:_DIGEST_CHARS]}"
    )


def _name_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _compute_digest(definition: Mapping[str, object]) -> str:
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:_DEFINITION_CHARS]


def _compute_source_digest(entry: _Entry, factory: str) -> str:
    """Hash the source of a reference model's module, found without importing it; ``""`` for others.

    A user's module is not hashed: it may import anything, and its commit is in the provenance.
    """
    module = factory.partition(":")[0]
    if not module.startswith(REFERENCE_PACKAGE + "."):
        return ""
    search = [str(importlib.resources.files("gate"))]
    spec = None
    for part in module.split(".")[1:]:
        spec = PathFinder.find_spec(part, search)
        search = list((spec and spec.submodule_search_locations) or [])
    if spec is None or spec.origin is None:
        problem = f"there is no module {module!r} among the reference models"
        raise FileError(entry.file, f"{entry.key}.factory", problem, "Check the module's name.")
    source = Path(spec.origin).read_bytes().replace(b"\r\n", b"\n")
    return hashlib.sha256(source).hexdigest()
