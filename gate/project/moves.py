"""Where a change's own configuration has the cases that the base's defines: moved, or gone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gate.project.config import Config
from gate.records import Case


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
        removed=_list_removed(base.cases, kept),
    )


def _list_places(config: Config) -> dict[str, str]:
    models = {one.name: one.factory for one in config.models}
    return models | {one.name: one.node for one in config.tests}


def _list_removed(cases: Iterable[Case], kept: Iterable[Case]) -> tuple[str, ...]:
    left = {case.id for case in kept}
    return tuple(case.id for case in cases if case.id not in left)


def mark_removed(cases: Iterable[Case], removed: Iterable[str]) -> tuple[Case, ...]:
    """Mark the cases that the change no longer has: one that cannot be run is no failure then."""
    gone = set(removed)
    return tuple(replace(case, is_removed=True) if case.id in gone else case for case in cases)


def move_back(cases: Iterable[Case], defined: Iterable[Case]) -> tuple[Case, ...]:
    """Put each case where the base has it, for the base's side: ``defined`` is what the base itself says."""
    places = {case.id: case for case in defined}
    return tuple(
        replace(case, factory=place.factory, node=place.node)
        if (place := places.get(case.id)) and place.definition == case.definition
        else case
        for case in cases
    )
