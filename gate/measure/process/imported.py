"""Which of the project's files a worker has imported and the base has otherwise; torch-free."""

from __future__ import annotations

import filecmp
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gate.measure.process.checkout import is_project_file
from gate.records.protocol import WorkerRequest

# Directories that are no package: a module in one is called by its name alone.
_DISTRIBUTIONS = frozenset({"src", "lib", "python", "site-packages", "dist-packages"})


def list_changed_imports(request: WorkerRequest) -> tuple[str, ...] | None:
    """List the imported files of head's checkout that the base lacks or has otherwise, relative to its top.

    A changed file counts as well where a module elsewhere looks like an installed copy of it: then what runs
    is not what the checkout has, and of head or of the base.
    ``None`` where nobody can tell: there is no checkout to compare with, or a user's own test is run, whose
    conftest files pytest need not leave among the imported modules.
    """
    checkouts, case = request.checkouts, request.case
    if checkouts is None or case is None or not case.factory:
        return None
    top, base = Path(checkouts.head).resolve(), Path(checkouts.base)
    imported = set(_list_places())
    parents = {place.parent for place in imported}
    own = {parent for parent in parents if is_project_file(parent, checkouts.head)}
    inside = {place for place in imported if place.parent in own}
    copied = {_name_end(place.parts) for place in imported - inside}
    differing = {
        name for place in inside if not _is_same(top / (name := str(place.relative_to(top))), base / name)
    }
    copies = {name for name in checkouts.changed if not copied.isdisjoint(_list_ends(name))}
    # Written as UTF-8, which a file's name need not be.
    return tuple(sorted(name.encode(errors="replace").decode() for name in differing | copies))


def _list_places() -> Iterator[Path]:
    """The files of all imported modules, resolved: thousands of files, so their directories once."""
    directories: dict[str, Path] = {}
    for module in list(sys.modules.values()):
        # Not getattr: a module that loads its parts lazily would load one.
        place = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(place, str):
            continue
        directory, name = os.path.split(place)
        if directory not in directories:
            directories[directory] = Path(directory).resolve()
        found = directories[directory] / name
        yield found.resolve() if found.is_symlink() else found


def _name_end(parts: Sequence[str]) -> tuple[str, ...]:
    """What a file is called and its directory, where that is a package: ``site-packages`` is none."""
    return tuple(part for part in parts[-2:] if part not in _DISTRIBUTIONS)


def _list_ends(name: str) -> tuple[tuple[str, ...], ...]:
    """What the installed copy of a file may be called: as in its package, or alone."""
    parts = Path(name).parts
    return _name_end(parts), parts[-1:]


def _is_same(place: Path, twin: Path) -> bool:
    try:
        return filecmp.cmp(place, twin, shallow=False)
    except OSError:  # the base has no such file
        return False
