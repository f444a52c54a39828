"""Models and tests -> cases: the reference registry, the user's registry files and ``gate.yml``.

``tag:smoke,!bert/*,resnet50/*`` selects some, and where nothing is named there is a default.
"""

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
    """A model or a test, its key in its file, and what finds the file and line of a key."""

    entry: ModelEntry | TestEntry
    key: str
    locate: Callable[[str], str]
    is_reference: bool = False

    def refuse(self, key: str, problem: str, fix: str) -> FileError:
        """Make the error of a key below this entry."""
        path = self.key + key
        return FileError(self.locate(path), path, problem, fix)


def load_cases(config: Config, models: Path = MODELS) -> tuple[Case, ...]:
    """Load all cases: the reference models, the registry files, then those of ``gate.yml``.

    ``models`` holds the reference models. Nothing is imported: a factory that does not exist is found by the
    worker.

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
    own = _list_entries(config.models, config.tests, config.locate)
    return [*_load_registries(config, models), *own]


def check_factories(config: Config, cases: Iterable[Case]) -> None:
    """Check, before a lock is waited for, that there are the modules that build the working tree's ``cases``.

    Nothing is imported. A change may have moved those of a commit's configuration.

    Raises:
        FileError: Some are not there; their keys are named.
    """
    wanted = {case.model for case in cases if not (config.commit or is_reference(case))}
    entries = [one for one in _load_entries(config, MODELS) if one.entry.name in wanted]
    _raise_any(error for one in entries for error in _find_absent(one, config.directory))


def _find_absent(one: _Entry, directory: Path) -> Iterator[FileError]:
    if isinstance(one.entry, ModelEntry):
        module = one.entry.factory.partition(":")[0]
        if find_module(module, [str(directory.resolve()), *sys.path]) is None:
            problem = f"there is no module {module!r} in {directory.resolve()}, and none is installed"
            yield one.refuse(".factory", problem, "Check its spelling; it is package.module:function.")


def fold_registries(config: Config) -> Config:
    """Make the same configuration without registry files: their models and tests are its own.

    Raises:
        FileError: A registry file cannot be used.
    """
    entries = [one.entry for one in _load_registries(replace(config, reference_models=False), MODELS)]
    models = (*(one for one in entries if isinstance(one, ModelEntry)), *config.models)
    tests = (*(one for one in entries if isinstance(one, TestEntry)), *config.tests)
    return replace(config, registry=(), models=models, tests=tests)


def _raise_any(errors: Iterable[FileError]) -> None:
    """Raise the first errors there are, as one; no more of them are looked for."""
    if found := list(islice(errors, MAX_INVALID)):
        raise join_errors(found)


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
            found = _list_entries(file.models, file.tests, document.locate)
            entries += (replace(entry, is_reference=path == reference) for entry in found)
    _raise_any(errors)
    return entries


def _blame_name(config: Config, key: str, path: Path, error: FileError) -> FileError:
    """Blame the key that names a registry file where that is missing, or another kind of file."""
    errors = {one.key: one for one in (error, *error.others) if isinstance(one, FileError)}
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
    """Find names that are taken: a name is the first part of its cases' ids."""
    first: dict[str, _Entry] = {}
    for entry in entries:
        other = first.setdefault(entry.entry.name, entry)
        if other is not entry:
            problem = f"the name {entry.entry.name!r} is taken by {other.locate(other.key)}"
            way = ", or leave the reference models out with `reference_models: false`"
            yield entry.refuse(".name", problem, f"Rename one of the two{way if other.is_reference else ''}.")


def _add_cases(entry: _Entry, models: Path, cases: dict[str, Case]) -> Iterator[FileError]:
    try:
        for key, case in make_cases(entry.entry, models):
            if case.id in cases:
                yield entry.refuse(key, f"makes the case {case.id!r} twice", "Remove one of the two.")
            cases[case.id] = case
    except LookupError as error:
        yield entry.refuse(".factory", str(error), "Check the module's name.")


def _find_idle_patterns(config: Config, cases: dict[str, Case]) -> Iterator[FileError]:
    """Find patterns of gate.yml of which a part matches no case: else it would do nothing, unnoticed."""
    for key in ("overrides", "limits", "quarantine"):
        for index, entry in enumerate(getattr(config, key)):
            try:
                select_cases(tuple(cases.values()), entry.case)
            except UsageError as error:
                place = f"{key}[{index}].case"
                yield FileError(config.locate(place), place, error.what, error.fix)
