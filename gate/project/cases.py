"""The cases that an entry of a registry makes."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from gate.files.entry import REFERENCE_PACKAGE
from gate.project.model_entries import CaseEntry, ModelEntry, TestEntry, list_values
from gate.records.cases import DEFAULT_BACKEND, Case, DType, Kind, Mode, Task

_DEFINITION_CHARS = 16  # 64 bits: definitions are compared within one case only
# Options in a case's id are readable up to this length and while they are a file name; then a digest.
_READABLE_OPTIONS = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_DIGEST_CHARS = 8  # distinct within one model only
_Axes = tuple[str, Task, DType, Mode, str]  # size first, backend last


def is_reference(case: Case) -> bool:
    return case.factory.startswith(f"{REFERENCE_PACKAGE}.")


def make_cases(entry: ModelEntry | TestEntry, models: Path) -> Iterator[tuple[str, Case]]:
    """Make an entry's cases, each with its key below the entry.

    Raises:
        LookupError: The factory is in a module that the reference models, in ``models``, do not have.
    """
    if isinstance(entry, TestEntry):
        yield "", _make_test_case(entry)
        return
    source_digest = _compute_source_digest(entry.factory, models)
    for index, case in enumerate(entry.cases):
        for axes in product(
            list_values(case.size),
            list_values(case.task),
            list_values(case.dtype),
            list_values(case.mode),
            list_values(case.backend),
        ):
            yield f".cases[{index}]", _make_model_case(entry, case, axes, source_digest)


def _make_test_case(entry: TestEntry) -> Case:
    definition: dict[str, object] = {"task": entry.task, "dtype": entry.dtype}
    definition |= {"args": entry.args} if entry.args else {}
    return Case(
        id=f"{entry.name}/test",
        model=entry.name,
        node=entry.node,
        pytest_args=entry.args,
        task=entry.task,
        dtype=entry.dtype,
        tags=entry.tags,
        expected_s=entry.expected_s,
        gpu_memory_gib=entry.gpu_memory_gib,
        definition=_compute_digest(definition),
    )


def _make_model_case(entry: ModelEntry, case: CaseEntry, axes: _Axes, source_digest: str) -> Case:
    size, task, dtype, mode, backend = axes
    arguments = {**entry.arguments, **entry.sizes.get(size, {})}
    # Only where it is not the default: what is recorded of other cases keeps its id and its definition.
    unusual: dict[str, object] = {"fullgraph": True} if case.fullgraph else {}
    unusual |= {"backend": backend} if backend != DEFAULT_BACKEND else {}
    unusual |= {"options": dict(case.options)} if case.options else {}
    unusual |= {"kind": case.kind, "settings": dict(case.settings)} if case.kind is not Kind.CALL else {}
    # Where one's own model is built is left out, as its source is: a factory that moves stays the same case.
    source: dict[str, object] = {}
    if source_digest:
        source = {"factory": entry.factory, "source": source_digest}
    definition = {
        **source,
        "arguments": arguments,
        "task": task,
        "dtype": dtype,
        "mode": mode,
        "dynamic": entry.dynamic,
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
        kind=case.kind,
        settings=case.settings,
        tags=case.tags,
        expected_s=case.expected_s,
        gpu_memory_gib=case.gpu_memory_gib,
        needs=tuple(dict.fromkeys((*entry.needs, *case.needs))),
        definition=_compute_digest(definition),
    )


def _name_rest(entry: ModelEntry, case: CaseEntry, backend: str) -> str:
    parts = ["dynamic"] if entry.dynamic else []
    parts += ["fullgraph"] if case.fullgraph else []
    parts += [backend] if backend != DEFAULT_BACKEND else []
    parts += [_name_options(case.options)] if case.options else []
    parts += [case.kind, *_name_settings(case.settings)] if case.kind is not Kind.CALL else []
    return "".join(f"-{part}" for part in parts)


def _name_options(options: Mapping[str, object]) -> str:
    words = {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()}
    named = "-".join(f"{key}-{words[key]}" for key in sorted(words))
    return (
        named if _READABLE_OPTIONS.fullmatch(named) else f"options-{_compute_digest(options)[:_DIGEST_CHARS]}"
    )


def _name_settings(settings: Mapping[str, object]) -> list[str]:
    """Only words are in an id; numbers and lists are in the definition."""
    return [value for _, value in sorted(settings.items()) if isinstance(value, str)]


def _compute_digest(definition: Mapping[str, object]) -> str:
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:_DEFINITION_CHARS]


def find_module(module: str, search: Sequence[str]) -> ModuleSpec | None:
    """Without importing it or its packages."""
    top, *inner = module.split(".")
    spec = PathFinder.find_spec(top, search) or find_spec(top)  # an editable installation has its own finder
    for part in inner:
        spec = PathFinder.find_spec(part, (spec and spec.submodule_search_locations) or [])
    return spec


def _compute_source_digest(factory: str, models: Path) -> str:
    """Hash a reference model's module; ``""`` for others.

    A user's module is not hashed: it may import anything, and its commit is in the provenance.
    """
    module = factory.partition(":")[0]
    if not module.startswith(REFERENCE_PACKAGE + "."):
        return ""
    spec = find_module(module.removeprefix(f"{REFERENCE_PACKAGE}."), [str(models)])
    if spec is None or spec.origin is None:
        raise LookupError(f"there is no module {module!r} among the reference models")
    source = Path(spec.origin).read_bytes().replace(b"\r\n", b"\n")
    return hashlib.sha256(source).hexdigest()
