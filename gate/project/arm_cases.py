"""The cases that each arm of a side-by-side run defines, wherever the change has moved their models."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gate.errors import FileError
from gate.installation import MODELS, find_models
from gate.project.cases import is_reference
from gate.project.config import DEFAULT_FILE, Config, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases, find_cases
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact, name_words


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """A configuration and all of its cases."""

    config: Config
    cases: tuple[Case, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Followed:
    """The base's configuration with each model where the change has it.

    ``moved`` names those that are elsewhere now; ``removed`` are the cases that the change no longer has, or
    defines otherwise.
    """

    config: Config
    moved: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def follow_moves(base: Rules, change: Rules) -> Followed:
    """Follow factories and tests that the change moves, and nothing else of what it says.

    Neither configuration has registry files. A model is the same where one of its cases has the same
    definition on both sides.
    """
    definitions = {case.id: case.definition for case in change.cases}
    kept = [case for case in base.cases if definitions.get(case.id) == case.definition]
    places = _list_places(change.config)
    wanted = {case.model for case in kept}
    now = {name: place for name, place in places.items() if name in wanted}
    before = _list_places(base.config)
    config = replace(
        base.config,
        models=tuple(replace(one, factory=now.get(one.name, one.factory)) for one in base.config.models),
        tests=tuple(replace(one, node=now.get(one.name, one.node)) for one in base.config.tests),
    )
    return Followed(
        config=config,
        moved=tuple(
            f"{name}: {place}, now {now[name]}"
            for name, place in before.items()
            if now.get(name, place) != place
        ),
        removed=tuple(case.id for case in base.cases if definitions.get(case.id) != case.definition),
    )


def _list_places(config: Config) -> dict[str, str]:
    models = {one.name: one.factory for one in config.models}
    return models | {one.name: one.node for one in config.tests}


def mark_removed(cases: Iterable[Case], removed: Iterable[str]) -> tuple[Case, ...]:
    """Mark the cases that the change no longer has: one that cannot be run is no failure then."""
    gone = set(removed)
    return tuple(replace(case, is_removed=True) if case.id in gone else case for case in cases)


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseCases:
    """The base's cases of a run, and what a reader must know of how they were found."""

    cases: tuple[Case, ...]
    notes: tuple[Fact, ...] = ()


def load_base_cases(config: Config, cases: tuple[Case, ...], directory: Path) -> BaseCases:
    """Load the cases that the base defines, for a run of head's ``cases``.

    The rule: what the base measures is what the base's own ``gate.yml`` and registries say, read from
    ``directory``, which stands for the directory of head's ``config``. Of these, the cases that head
    runs and those that head's selection names; a case that only one side has is not compared. Where
    the base has no configuration, head's stands for it. Where it has one that cannot be used (invalid, of a
    newer version, a registry missing), the reference models come from the installed gate for both sides and
    keep head's definition, and every other case is absent in the base. Where the reference models are under
    test themselves, the base has its own (:func:`gate.installation.find_models`). Device, threads, sampling
    and thresholds are head's for both sides. A configuration that was taken from a commit already defines the
    same cases for both; only where they are is the base's own to say.
    """
    models = find_models(config.directory, directory)
    path = find_config(config, directory)
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
    """Put each case where the base's own configuration has it; one that cannot be used moves nothing."""
    try:
        defined = load_cases(_load_arm(path)) if path else ()
    except FileError:
        return cases
    places = {(one.id, one.definition): one for one in defined}
    placed = [(case, places.get((case.id, case.definition), case)) for case in cases]
    return tuple(replace(case, factory=place.factory, node=place.node) for case, place in placed)


def load_head_cases(config: Config, cases: tuple[Case, ...], directory: Path) -> tuple[Case, ...]:
    """Load the cases that a head which is not the working tree defines; its code is in ``directory``.

    ``cases`` are those of the working tree's ``config``, which stand where head has no configuration.
    What is selected, how it is measured and by which thresholds it is judged is ``config``'s.

    Raises:
        UsageError: Head's configuration cannot be used, or has nothing that is selected.
    """
    path = find_config(config, directory)
    if path is None:
        return cases
    head = _load_arm(path)
    defined = load_cases(head, find_models(config.directory, directory))
    return choose_cases(_select_as(config, head), defined).cases


def _load_arm(path: Path) -> Config:
    """Load an arm's configuration without what judges: an entry of it that fits no case is no fault here."""
    return replace(load_config(path), overrides=(), limits=(), quarantine=())


def find_config(config: Config, directory: Path) -> Path | None:
    """Find the configuration of the directory that stands for that of ``config``."""
    names = (Path(config.source).name, DEFAULT_FILE)
    return next((path for name in names if (path := directory / name).is_file()), None)


def _find_selected(config: Config, base: Config, defined: tuple[Case, ...]) -> tuple[Case, ...]:
    """Find what head's selection names among the base's cases; it may name what the base lacks."""
    asked = _select_as(config, base)
    if not defined:  # its first model is what head adds
        return ()
    return find_cases(defined, asked.select) if asked.select else choose_cases(asked, defined).cases


def _select_as(config: Config, other: Config) -> Config:
    """Let another configuration select as ``config`` does; where that says nothing, by the default."""
    return replace(other, select=config.select if "select" in config.origins else "", origins=config.origins)
