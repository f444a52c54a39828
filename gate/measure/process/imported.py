"""Which of the project's files a worker imported, and which were changed meanwhile; torch-free.

A run says of which commit it is, and what is changed there. A file that somebody saves meanwhile makes
some of its processes another program's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from gate.errors import UsageError
from gate.files.disk import read_written_ns
from gate.git import ask_git
from gate.measure.process.checkout import OF_BUILD, is_project_file, is_same_file, lies_below, list_imported
from gate.records.protocol import WorkerRequest

_KNOWN = ("ls-files", "--cached", "--others", "--exclude-standard")  # what git has, or would add

# Files of modules that a server has imported and looked at, and when they were written: in every process that
# it forks the modules stay what they are, whatever becomes of the files.
_LOOKED_AT: dict[Path, int] = {}


def check_edits(request: WorkerRequest) -> None:
    """Check that nothing imported since the last look was written after the run began.

    Raises:
        UsageError: A file of the working tree was, and git has it or would add it.
    """
    tree = request.tree
    if tree is None:
        return
    top = Path(tree.top)
    found = {place for _, place in list_imported() if lies_below(place, top) and place not in _LOOKED_AT}
    # Code that the compiler generates is imported as well, from where this run keeps its files.
    kept = (Path(tempfile.gettempdir()).resolve(), Path(request.result).resolve().parent)
    scratch = [place for place in kept if lies_below(place, top)]
    written = {
        place: read_written_ns(place)
        for place in sorted(found)
        if place.suffix == ".py"
        and place.name not in OF_BUILD
        and not any(lies_below(place, one) for one in scratch)
    }
    _LOOKED_AT.update(written)
    later = [str(place) for place, when_ns in written.items() if when_ns > tree.newest_ns]
    own = [place for place in later if is_project_file(Path(place), tree.top)]
    known = ask_git(top, *_KNOWN, "--", *own).said.splitlines() if own else []
    if known:
        raise UsageError(
            f"{known[0]} was changed while it was measured",
            "Measure again and leave the files alone meanwhile, or measure commits:"
            " compile-gate ab BASE HEAD",
        )


def has_moved_on() -> bool:
    """Whether a file was written since a server imported it: then the file is not what runs here."""
    return any(read_written_ns(place) != when_ns for place, when_ns in _LOOKED_AT.items())


# Directories that are no package: a module in one is called by its name alone.
_DISTRIBUTIONS = frozenset({"src", "lib", "python", "site-packages", "dist-packages"})


def list_changed_imports(request: WorkerRequest) -> tuple[str, ...] | None:
    """List the imported files of head's checkout that the base lacks or has otherwise, relative to its top.

    A changed file counts as well where a module elsewhere looks like an installed copy of it: then what runs
    is not what the checkout has, and of head or of the base.
    ``None`` where it is unknown: there is no checkout to compare with, a user's own test is run, whose
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
    """What a file is called and its directory, where that is a package, unlike ``site-packages``."""
    return tuple(part for part in parts[-2:] if part not in _DISTRIBUTIONS)


def _list_ends(name: str) -> tuple[tuple[str, ...], ...]:
    """What the installed copy of a file may be called: as in its package, or alone."""
    parts = Path(name).parts
    return _name_end(parts), parts[-1:]
