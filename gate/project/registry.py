"""Models and tests -> cases: the reference registry, the user's registry files and ``gate.yml``.

``tag:smoke,!bert/*,resnet50/*`` selects some, and where nothing is named there is a default.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from gate.errors import FileError, UsageError, join_errors
from gate.files.untrusted import MAX_INVALID, find_nearest
from gate.files.yaml_in import load_yaml
from gate.installation import MODELS
from gate.project.cases import find_module, is_reference, make_cases
from gate.project.config import Config
from gate.project.entries import GateFile
from gate.project.model_entries import ModelEntry, RegistryFile, TestEntry
from gate.records.cases import TAG, Case, fits_pattern, fits_term, split_pattern

_NAMED = 8  # names in a suggestion: what fits on a line


def select_cases(cases: tuple[Case, ...], selection: str) -> tuple[Case, ...]:
    """Select the cases that a pattern means (``fits_pattern``), in the order of ``cases``.

    Raises:
        UsageError: A term matches nothing, or nothing is left.
    """
    removed, named = split_pattern(selection)
    if not removed and not named:
        raise UsageError("the selection is empty", "Name cases, as in --select tag:smoke.")
    for term in (*removed, *named):
        if not any(fits_term(term, case.id, case.tags) for case in cases):
            raise _describe_unknown(cases, term)
    selected = find_cases(cases, selection)
    if not selected:
        raise UsageError(
            f"the selection {selection!r} leaves no case", "List what there is with `compile-gate models`."
        )
    return selected


def find_cases(cases: tuple[Case, ...], selection: str) -> tuple[Case, ...]:
    """Find what a selection means, though some of its terms may match none of these cases."""
    return tuple(case for case in cases if fits_pattern(selection, case.id, case.tags))


def _describe_unknown(cases: tuple[Case, ...], term: str) -> UsageError:
    if not term.removeprefix(TAG):
        return UsageError("a term of the selection is empty", "Name something behind `!` and `tag:`.")
    model = term.partition("/")[0]
    models = sorted({case.model for case in cases})
    if term.startswith(TAG):
        tags = sorted({tag for case in cases for tag in case.tags})
        problem = f"no case has the tag {term.removeprefix(TAG)!r}"
        return _suggest(problem, term, [TAG + tag for tag in tags])
    if model in models:
        return _suggest(f"no case matches {term!r}", term, [case.id for case in cases if case.model == model])
    return _suggest(f"no model matches {term!r}", model, models)


def _suggest(problem: str, name: str, known: list[str]) -> UsageError:
    """Suggest the nearest of the known names; where none is near, some that there are."""
    if nearest := find_nearest(name, known):
        return UsageError(problem, f"Did you mean {nearest!r}?")
    if not known:
        return UsageError(problem, "No case has any tag: name cases or models instead.")
    others = " and others" if len(known) > _NAMED else ""
    return UsageError(problem, f"There are {', '.join(known[:_NAMED])}{others}: see `compile-gate models`.")


DEFAULT_TAG = "smoke"  # of the reference models, and of projects that follow the example
_DEFAULT_SELECTION = f"tag:{DEFAULT_TAG}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The selected cases, and the selection: what gate.yml says, or what its default came to."""

    cases: tuple[Case, ...]
    selection: str
    note: str = ""  # where the default is another than the usual one


def choose_cases(config: Config, cases: tuple[Case, ...]) -> Choice:
    """Choose among all the cases of a configuration those that it selects.

    Raises:
        FileError: There is no case, or ``select`` of gate.yml matches nothing.
        UsageError: ``--select`` does.
    """
    if not cases:
        fix = "List a model under `models:`, or remove `reference_models: false`."
        raise FileError(config.locate("reference_models"), "reference_models", "leaves no case", fix)
    if not config.select:
        return _choose_default(config, cases)
    try:
        return Choice(cases=select_cases(cases, config.select), selection=config.select)
    except UsageError as error:
        if "select" not in config.origins or config.is_option("select"):
            raise
        raise FileError(config.locate("select"), "select", error.what, error.fix) from None


def _choose_default(config: Config, cases: tuple[Case, ...]) -> Choice:
    """Choose the cases with the usual tag; all of one's own where none of those has it.

    Who lists a model and no tag means it to be measured: to leave it out would be a green check of
    the reference models alone.
    """
    own = [case for case in cases if not (config.reference_models and is_reference(case))]
    if not own or any(DEFAULT_TAG in case.tags for case in own):
        return Choice(cases=select_cases(cases, _DEFAULT_SELECTION), selection=_DEFAULT_SELECTION)
    usual = find_cases(cases, _DEFAULT_SELECTION)  # reference models
    terms = [_DEFAULT_SELECTION] if usual else []
    chosen = {case.id for case in (*usual, *own)}
    selection = ",".join((*terms, *dict.fromkeys(case.model for case in own)))
    note = (
        f"measuring all of your cases ({len(own)}):"
        f" none has the tag {DEFAULT_TAG!r}, the default of `select` in gate.yml"
    )
    return Choice(cases=tuple(case for case in cases if case.id in chosen), selection=selection, note=note)


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
