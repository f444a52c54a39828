"""Which of the project's files a worker has imported and the base has otherwise; torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gate.measure.process.checkout import is_project_file, is_same_file, list_imported
from gate.measure.process.edits import has_moved_on
from gate.records.protocol import WorkerRequest

# Directories that are no package: a module in one is called by its name alone.
_DISTRIBUTIONS = frozenset({"src", "lib", "python", "site-packages", "dist-packages"})


def list_changed_imports(request: WorkerRequest) -> tuple[str, ...] | None:
    """List the imported files of head's checkout that the base lacks or has otherwise, relative to its top.

    A changed file counts as well where a module elsewhere looks like an installed copy of it: then what runs
    is not what the checkout has, and of head or of the base.
    ``None`` where nobody can tell: there is no checkout to compare with, a user's own test is run, whose
    conftest files pytest need not leave among the imported modules, or a file is no longer what was imported.
    """
    checkouts, case = request.checkouts, request.case
    if checkouts is None or case is None or not case.factory or has_moved_on():
        return None
    top, base = Path(checkouts.head).resolve(), Path(checkouts.base)
    imported = {place for _, place in list_imported()}
    parents = {place.parent for place in imported}
    own = {parent for parent in parents if is_project_file(parent, checkouts.head)}
    inside = {place for place in imported if place.parent in own}
    copied = {_name_end(place.parts) for place in imported - inside}
    differing = {
        name for place in inside if not is_same_file(top / (name := str(place.relative_to(top))), base / name)
    }
    copies = {name for name in checkouts.changed if not copied.isdisjoint(_list_ends(name))}
    # Written as UTF-8, which a file's name need not be.
    return tuple(sorted(name.encode(errors="replace").decode() for name in differing | copies))


def _name_end(parts: Sequence[str]) -> tuple[str, ...]:
    """What a file is called and its directory, where that is a package: ``site-packages`` is none."""
    return tuple(part for part in parts[-2:] if part not in _DISTRIBUTIONS)


def _list_ends(name: str) -> tuple[tuple[str, ...], ...]:
    """What the installed copy of a file may be called: as in its package, or alone."""
    parts = Path(name).parts
    return _name_end(parts), parts[-1:]
