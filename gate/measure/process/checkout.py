"""Which checkout measured code is imported from; torch-free.

A project under test is often installed editable: the interpreter's search path names places in the
user's checkout. In an arm that is another checkout those places must be the other's, or both arms would
measure the same code and every regression would pass.
"""

from __future__ import annotations

import filecmp
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from gate.errors import UsageError
from gate.records.protocol import WorkerRequest

_OWN_PACKAGE = "gate"
_OWN_PLACE = Path(__file__).resolve().parents[2]

# Where a checkout's projects are, that pip installs: at its top, or two directories below it.
_PROJECTS = tuple(f"{depth}{file}" for depth in ("*/", "*/*/") for file in ("pyproject.toml", "setup.py"))
_LAYOUTS = ("", "src", "lib", "python")  # where a project keeps its packages


def set_search_path(request: WorkerRequest) -> None:
    """Make ``sys.path`` that of the request's arm."""
    if request.checkout:
        sys.path[:] = [_move(entry, request) for entry in sys.path]
    if request.directory not in sys.path:
        sys.path.append(request.directory)  # last: measured code must not shadow the gate


def check_source(factory: str, request: WorkerRequest) -> None:
    """Check that a factory's package comes from the arm's checkout, if the project under test has it.

    A user's own test has no factory (``""``): pytest collects it from the arm's directory.

    Raises:
        UsageError: It would be imported from the user's own checkout, or from an installed copy.
    """
    name = factory.partition(":")[0].partition(".")[0]
    if not request.checkout or name in ("", _OWN_PACKAGE):
        return
    places = _list_places(importlib.util.find_spec(name))
    if not places or any(place.is_relative_to(request.checkout) for place in places):
        return
    is_ours = any(is_project_file(place, request.origin) for place in places)
    if is_ours or _has_module(Path(request.checkout), name):
        raise UsageError(
            f"{name} is imported from {places[0]} and not from the arm's checkout: "
            "install the project editable (pip install -e), or uninstall it and set PYTHONPATH",
            "Install the project editable, or uninstall it and set PYTHONPATH.",
        )


def check_imports(request: WorkerRequest) -> None:
    """Check that no Python of the project ran that the arm's checkout has otherwise.

    It may have come past the search path: through an import hook, or as an installed copy of the user's
    checkout. Extension modules are built, so no checkout has them, and nothing is known of those.

    Raises:
        UsageError: A module did; it names the first.
    """
    if not request.checkout:
        return
    origin, checkout = Path(request.origin).resolve(), Path(request.checkout).resolve()
    tops = _list_tops(origin)
    for name, place in list_imported():
        within = _find_in_project(name, place, origin, tops)
        if within is None or place.is_relative_to(checkout) or is_same_file(place, checkout / within):
            continue
        raise UsageError(
            f"{name} is imported from {place}, and the arm's checkout has another {within}",
            "Install the project editable, or uninstall it and set PYTHONPATH.",
        )


def list_imported() -> Iterator[tuple[str, Path]]:
    """The names and resolved files of all imported modules: thousands, so each directory once."""
    directories: dict[str, Path] = {}
    for name, module in list(sys.modules.items()):
        # Not getattr: a module that loads its parts lazily would load one.
        place = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(place, str):
            continue
        directory, file = os.path.split(place)
        if directory not in directories:
            directories[directory] = Path(directory).resolve()
        found = directories[directory] / file
        yield name, found.resolve() if found.is_symlink() else found


def is_same_file(place: Path, twin: Path) -> bool:
    """Whether both are there and say the same."""
    try:
        return filecmp.cmp(place, twin, shallow=False)
    except OSError:
        return False


def _find_in_project(name: str, place: Path, origin: Path, tops: Mapping[str, Sequence[Path]]) -> Path | None:
    """Which file of the user's checkout a module is, or is a copy of, relative to its top."""
    top = name.partition(".")[0]
    if place.suffix != ".py" or place.is_relative_to(_OWN_PLACE) or top in sys.stdlib_module_names:
        return None
    if is_project_file(place, str(origin)):
        return place.relative_to(origin)
    package = name if place.name == "__init__.py" else name.rpartition(".")[0]
    places = [layout.joinpath(*filter(None, package.split(".")), place.name) for layout in tops.get(top, ())]
    return next((one for one in places if is_same_file(place, origin / one)), None)


def _list_tops(origin: Path) -> Mapping[str, Sequence[Path]]:
    """Where a checkout has modules and packages, by their names; relative to its top."""
    tops: dict[str, list[Path]] = {}
    for layout in _list_layouts(origin):
        for entry in layout.iterdir() if layout.is_dir() else ():
            tops.setdefault(entry.name.removesuffix(".py"), []).append(layout.relative_to(origin))
    return tops


def _move(entry: str, request: WorkerRequest) -> str:
    """Find the place of the arm's checkout that a place of the user's checkout stands for."""
    if not is_project_file(Path(entry), request.origin):
        return entry
    moved = Path(request.checkout) / Path(entry).resolve().relative_to(Path(request.origin).resolve())
    return str(moved) if moved.exists() else entry


def is_project_file(place: Path, origin: str) -> bool:
    """Whether a place lies in the checkout ``origin``; an environment that is kept there is not code."""
    resolved = place.resolve()
    return resolved.is_relative_to(Path(origin).resolve()) and not any(
        place.is_relative_to(prefix) or resolved.is_relative_to(prefix)
        for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}
    )


def _has_module(checkout: Path, name: str) -> bool:
    """Whether a checkout has a module, where it is imported from or where it would be installed from."""
    inside = [entry for entry in sys.path if Path(entry).is_relative_to(checkout)]
    if PathFinder.find_spec(name, inside) is not None:
        return True
    found = PathFinder.find_spec(name, [str(layout) for layout in _list_layouts(checkout)])
    return found is not None and found.origin is not None  # a directory of that name alone is no package


def _list_layouts(checkout: Path) -> list[Path]:
    """Where a checkout may keep packages that pip installs, whether or not they are there."""
    projects = {place.parent for pattern in _PROJECTS for place in checkout.glob(pattern)}
    return [project / layout for project in (checkout, *projects) for layout in _LAYOUTS]


def _list_places(spec: ModuleSpec | None) -> list[Path]:
    if spec is None:  # it fails where it is imported, and says so
        return []
    found = [spec.origin] if spec.has_location and spec.origin else []
    return [Path(place).resolve() for place in (*found, *(spec.submodule_search_locations or ()))]
