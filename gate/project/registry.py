"""Models and tests -> cases: the reference registry, the user's registry files and ``gate.yml``."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from gate.errors import FileError, UsageError, join_errors
from gate.files.invalid import MAX_INVALID
from gate.files.yaml_in import load_yaml
from gate.installation import MODELS
from gate.project.cases import find_module, is_reference, make_cases
from gate.project.config import Config
from gate.project.entries import GateFile
from gate.project.model_entries import ModelEntry, RegistryFile, TestEntry
from gate.project.selection import select_cases
from gate.records.cases import Case

_REGISTRY_KEYS = RegistryFile.__dataclass_fields__.keys()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    entry: ModelEntry | TestEntry
    key: str
    locate: Callable[[str], str]
    is_reference: bool = False

    def refuse(self, key: str, problem: str, fix: str) -> FileError:
        path = self.key + key
        return FileError(self.locate(path), path, problem, fix)


def load_cases(config: Config, models: Path = MODELS) -> tuple[Case, ...]:
    """Load the cases of the reference models, in ``models``, of registry files and of ``gate.yml``.

    Nothing is imported.

    Raises:
        FileError: Unusable files, duplicate models or cases, a pattern of gate.yml that matches no case. All
            mistakes of one kind are reported at once.
    """
    entries = _load_entries(config, models)
    _raise_any(_find_duplicates(entries))
    cases: dict[str, Case] = {}
    _raise_any(error for entry in entries for error in _add_cases(entry, models, cases))
    _raise_any(_find_idle_patterns(config, cases))
    return tuple(cases.values())


def _load_entries(config: Config, models: Path) -> list[_Entry]:
    entries = _list_entries(config.models, config.tests, config.locate)
    return [*_load_registries(config, models), *entries]


def check_factories(config: Config, cases: Iterable[Case]) -> None:
    """Check that the modules of the working tree's ``cases`` exist; nothing is imported.

    A change may have moved those of a commit's configuration, which are not checked.

    Raises:
        FileError: Some are not there; their keys are named.
    """
    wanted = {case.model for case in cases if not (config.commit or is_reference(case))}
    entries = [entry for entry in _load_entries(config, MODELS) if entry.entry.name in wanted]
    _raise_any(error for entry in entries for error in _find_absent(entry, config.directory))


def _find_absent(entry: _Entry, directory: Path) -> Iterator[FileError]:
    if isinstance(entry.entry, ModelEntry):
        module = entry.entry.factory.partition(":")[0]
        if find_module(module, [str(directory.resolve()), *sys.path]) is None:
            problem = f"there is no module {module!r} in {directory.resolve()}, and none is installed"
            yield entry.refuse(".factory", problem, "Check its spelling; it is package.module:function.")


def fold_registries(config: Config) -> Config:
    """Make the registry files' models and tests the configuration's own.

    Raises:
        FileError: A registry file cannot be used.
    """
    entries = [entry.entry for entry in _load_registries(replace(config, reference_models=False), MODELS)]
    models = (*(entry for entry in entries if isinstance(entry, ModelEntry)), *config.models)
    tests = (*(entry for entry in entries if isinstance(entry, TestEntry)), *config.tests)
    return replace(config, registry=(), models=models, tests=tests)


def _raise_any(errors: Iterable[FileError]) -> None:
    if first := list(islice(errors, MAX_INVALID)):
        raise join_errors(first)


def _load_registries(config: Config, models: Path) -> list[_Entry]:
    reference = models / "registry.yml"
    entries: list[_Entry] = []
    errors: list[FileError] = []
    files = {"": reference} if config.reference_models else {}
    files |= {f"registry[{index}]": path for index, path in enumerate(config.registry)}
    for key, path in files.items():
        try:
            file, document = load_yaml(RegistryFile, path)
        except FileError as error:
            errors.append(_blame_name(config, key, path, error))
        else:
            loaded = _list_entries(file.models, file.tests, document.locate)
            entries += (replace(entry, is_reference=path == reference) for entry in loaded)
    _raise_any(errors)
    return entries


def _blame_name(config: Config, key: str, path: Path, error: FileError) -> FileError:
    """Where a registry file is missing, or another kind of file, its name in gate.yml is wrong."""
    errors = {part.key: part for part in (error, *error.others) if isinstance(part, FileError)}
    if key and error.file == str(path) and not error.key:
        return FileError(config.locate(key), key, f"{path} {error.problem}", error.fix)
    if foreign := sorted(errors.keys() & GateFile.__dataclass_fields__.keys() - _REGISTRY_KEYS):
        problem = f"{path} is no registry file: only a gate.yml has the key {foreign[0]!r}"
        fix = "Name a file that holds `version`, `models` and `tests` alone."
        return FileError(config.locate(key), key, problem, fix)
    return error


def _list_entries(
    models: tuple[ModelEntry, ...], tests: tuple[TestEntry, ...], locate: Callable[[str], str]
) -> Iterator[_Entry]:
    for index, model in enumerate(models):
        yield _Entry(entry=model, key=f"models[{index}]", locate=locate)
    for index, test in enumerate(tests):
        yield _Entry(entry=test, key=f"tests[{index}]", locate=locate)


def _find_duplicates(entries: list[_Entry]) -> Iterator[FileError]:
    first: dict[str, _Entry] = {}
    for entry in entries:
        namesake = first.setdefault(entry.entry.name, entry)
        if namesake is not entry:
            problem = f"the name {entry.entry.name!r} is taken by {namesake.locate(namesake.key)}"
            way = ", or leave the reference models out with `reference_models: false`"
            yield entry.refuse(
                ".name", problem, f"Rename one of the two{way if namesake.is_reference else ''}."
            )


def _add_cases(entry: _Entry, models: Path, cases: dict[str, Case]) -> Iterator[FileError]:
    try:
        for key, case in make_cases(entry.entry, models):
            if case.id in cases:
                yield entry.refuse(key, f"makes the case {case.id!r} twice", "Remove one of the two.")
            cases[case.id] = case
    except LookupError as error:
        yield entry.refuse(".factory", str(error), "Check the module's name.")


def _find_idle_patterns(config: Config, cases: dict[str, Case]) -> Iterator[FileError]:
    for key in ("overrides", "limits", "quarantine"):
        for index, entry in enumerate(getattr(config, key)):
            try:
                select_cases(tuple(cases.values()), entry.case)
            except UsageError as error:
                path = f"{key}[{index}].case"
                yield FileError(config.locate(path), path, error.what, error.fix)
