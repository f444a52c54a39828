"""What a case is defined by, on both sides: one that is defined otherwise is another program."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import Case, Run

# What stands in a definition, by the key of gate.yml that says so.
_PLAIN = ("factory", "node", "task", "dtype", "size", "mode", "dynamic", "fullgraph", "backend", "kind")
_NESTED = ("arguments", "options", "settings")


def find_base_case(case: Case, run: Run) -> Case | None:
    """Find the case as the run's base defines it, if otherwise: by its id, or a case that became this one.

    An id names most of what defines a case. So one that only head has, and one that only the base has, are
    the same case where they are the only such ones of their model.
    """
    if run.base is None:
        return None
    bases = {one.id: one for one in run.base.cases}
    same = bases.get(case.id)
    if same is not None:
        return same if same.definition != case.definition else None
    planned = {one.id for one in run.cases}
    gone = [one for one in run.base.cases if one.model == case.model and one.id not in planned]
    new = [one for one in run.cases if one.model == case.model and one.id not in bases]
    return gone[0] if len(gone) == len(new) == 1 else None


def compare_definitions(before: Case, after: Case) -> dict[str, tuple[str, str]]:
    """What differs, by key, before and after; empty where it is the source of a reference model."""
    changes = compare_items(*({key: _write(getattr(one, key)) for key in _PLAIN} for one in (before, after)))
    for key in _NESTED:
        old, new = getattr(before, key), getattr(after, key)
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                changes[f"{key}.{name}"] = (_write(old.get(name)), _write(new.get(name)))
    return changes


def compare_items(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What both sides tell and tell differently."""
    return {key: (old, after[key]) for key, old in before.items() if key in after and after[key] != old}


def _write(value: object) -> str:
    return "none" if value is None or value == "" else str(value)
