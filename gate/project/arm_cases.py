"""The cases that each arm of a side-by-side run defines, wherever the change has moved their models."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gate.errors import FileError
from gate.installation import MODELS, choose_models
from gate.project.cases import is_reference
from gate.project.config import DEFAULT_FILE, Config, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases, find_cases
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact, name_words


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    config: Config
    cases: tuple[Case, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Followed:
    """The base's configuration with each model where the change has it.

    ``moved`` are those that are elsewhere now, ``removed`` the cases that the change dropped or redefined.
    """

    config: Config
    moved: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def follow_moves(base: Rules, change: Rules) -> Followed:
    """Follow factories and tests that the change moves, and nothing else of it.

    A model is the same where one of its cases has the same definition.
    """
    definitions = {case.id: case.definition for case in change.cases}
    kept = [case for case in base.cases if definitions.get(case.id) == case.definition]
    homes = _map_homes(change.config)
    wanted = {case.model for case in kept}
    now = {name: home for name, home in homes.items() if name in wanted}
    before = _map_homes(base.config)
    config = replace(
        base.config,
        models=tuple(
            replace(entry, factory=now.get(entry.name, entry.factory)) for entry in base.config.models
        ),
        tests=tuple(replace(entry, node=now.get(entry.name, entry.node)) for entry in base.config.tests),
    )
    return Followed(
        config=config,
        moved=tuple(
            f"{name}: {home}, now {now[name]}" for name, home in before.items() if now.get(name, home) != home
        ),
        removed=tuple(case.id for case in base.cases if definitions.get(case.id) != case.definition),
    )


def _map_homes(config: Config) -> dict[str, str]:
    models = {entry.name: entry.factory for entry in config.models}
    return models | {entry.name: entry.node for entry in config.tests}


def mark_removed(cases: Iterable[Case], removed: Iterable[str]) -> tuple[Case, ...]:
    gone = set(removed)
    return tuple(replace(case, is_removed=True) if case.id in gone else case for case in cases)


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseCases:
    cases: tuple[Case, ...]
    notes: tuple[Fact, ...] = ()


def load_base_cases(config: Config, cases: tuple[Case, ...], directory: Path) -> BaseCases:
    """Load the cases that the base defines, for a run of head's ``cases``.

    They come from the ``gate.yml`` in ``directory``, the counterpart of head's: those that head runs or
    selects. Without one the base gets head's cases. With one that cannot be used it has only the installed
    gate's reference models; where these are under test, its own (:func:`gate.installation.choose_models`). A
    configuration that was taken from a commit defines the same cases for both: only their places are the
    base's.
    """
    models = choose_models(config.directory, directory)
    path = find_arm_config(config, directory)
    if config.commit and models == MODELS:
        return BaseCases(cases=_place_cases(cases, path))
    if path is None:
        kept = tuple(case for case in cases if models == MODELS or not is_reference(case))
        notes = () if all(map(is_reference, kept)) else (Fact(code=Code.BASE_UNCONFIGURED),)
        return BaseCases(cases=kept, notes=notes)
    try:
        base = _load_arm(path)
        defined = load_cases(base, models)
    except FileError as error:
        problem = str(error.what).replace(f"{directory}/", "")
        return BaseCases(
            # Those that both sides have from the gate; none where the base has models of its own.
            cases=tuple(filter(is_reference, cases)) if models == MODELS else (),
            notes=(Fact(code=Code.BASE_MISCONFIGURED, names=name_words(problem=problem)),),
        )
    wanted = {case.id for case in (*cases, *_find_selected(config, base, defined))}
    return BaseCases(cases=tuple(case for case in defined if case.id in wanted))


def _place_cases(cases: tuple[Case, ...], path: Path | None) -> tuple[Case, ...]:
    try:
        defined = load_cases(_load_arm(path)) if path else ()
    except FileError:
        return cases
    homes = {(case.id, case.definition): (case.factory, case.node) for case in defined}
    placed = [homes.get((case.id, case.definition), (case.factory, case.node)) for case in cases]
    return tuple(
        replace(case, factory=factory, node=node) for case, (factory, node) in zip(cases, placed, strict=True)
    )


def load_head_cases(config: Config, cases: tuple[Case, ...], directory: Path) -> tuple[Case, ...]:
    """Load the cases of a head that is not the working tree; its code is in ``directory``.

    ``cases``, those of the working tree, are head's where it has no configuration.

    Raises:
        UsageError: Head's configuration cannot be used, or has nothing that is selected.
    """
    path = find_arm_config(config, directory)
    if path is None:
        return cases
    head = _load_arm(path)
    defined = load_cases(head, choose_models(config.directory, directory))
    return choose_cases(_select_as(config, head), defined).cases


def _load_arm(path: Path) -> Config:
    """Without thresholds and limits: an entry of these that fits no case is no fault here."""
    return replace(load_config(path), overrides=(), limits=(), quarantine=())


def find_arm_config(config: Config, directory: Path) -> Path | None:
    names = (Path(config.source).name, DEFAULT_FILE)
    return next((path for name in names if (path := directory / name).is_file()), None)


def _find_selected(config: Config, base: Config, defined: tuple[Case, ...]) -> tuple[Case, ...]:
    asked = _select_as(config, base)
    if not defined:  # its first model is what head adds
        return ()
    return find_cases(defined, asked.select) if asked.select else choose_cases(asked, defined).cases


def _select_as(config: Config, arm: Config) -> Config:
    return replace(arm, select=config.select if "select" in config.origins else "", origins=config.origins)
