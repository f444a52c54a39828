"""What differs between two definitions of a case, or two tables of settings."""

from collections.abc import Mapping

from gate.records.cases import Case

# The keys of gate.yml that make a definition.
_PLAIN = ("factory", "node", "task", "dtype", "size", "mode", "dynamic", "fullgraph", "backend", "kind")

_NESTED = ("arguments", "options", "settings")


def compare_definitions(before: Case, after: Case) -> dict[str, tuple[str, str]]:
    """By key of gate.yml; empty if only the source of a reference model differs."""
    changes = compare_items(
        *({key: _write(getattr(case, key)) for key in _PLAIN} for case in (before, after))
    )
    for key in _NESTED:
        old, new = getattr(before, key), getattr(after, key)
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                changes[f"{key}.{name}"] = (_write(old.get(name)), _write(new.get(name)))
    return changes


def compare_items(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {key: (old, after[key]) for key, old in before.items() if key in after and after[key] != old}


def compare_all(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What one side lacks is ``default`` there."""
    names = dict.fromkeys((*before, *after))
    sides = {name: (before.get(name, "default"), after.get(name, "default")) for name in names}
    return {name: values for name, values in sides.items() if values[0] != values[1]}


def _write(value: object) -> str:
    return "none" if value is None or value == "" else str(value)
