"""Which checkout measured code is imported from; torch-free."""

import importlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from gate.errors import UsageError
from gate.files.entry import REFERENCE_PACKAGE
from gate.records.protocol import WorkerRequest

_OWN_PACKAGE = "gate"

# Where a checkout's projects are, that pip installs: at its top, or two directories below it.
_PROJECTS = tuple(f"{depth}{file}" for depth in ("*/", "*/*/") for file in ("pyproject.toml", "setup.py"))
_LAYOUTS = ("", "src", "lib", "python")  # where a project keeps its packages


def set_search_path(request: WorkerRequest) -> None:
    if request.checkout:
        sys.path[:] = [_move(entry, request) for entry in sys.path]
    if request.directory not in sys.path:
        sys.path.append(request.directory)  # last: measured code must not shadow the gate
    if request.models:
        take_models(request.models)


def take_models(path: str) -> None:
    importlib.import_module(REFERENCE_PACKAGE).__path__ = [path]


def check_source(factory: str, request: WorkerRequest) -> None:
    """Check that a factory's package comes from the arm's checkout, if the project under test has it.

    Raises:
        UsageError: It would be imported from the user's own checkout, or from an installed copy.
    """
    name = factory.partition(":")[0].partition(".")[0]
    if not request.checkout or name in ("", _OWN_PACKAGE):
        return
    paths = _list_paths(importlib.util.find_spec(name))
    if not paths or any(path.is_relative_to(request.checkout) for path in paths):
        return
    is_ours = any(is_project_file(path, request.origin) for path in paths)
    if is_ours or has_module(Path(request.checkout), name):
        raise UsageError(
            f"{name} is imported from {paths[0]} and not from the arm's checkout: "
            "install the project editable (pip install -e), or uninstall it and set PYTHONPATH",
            "Install the project editable, or uninstall it and set PYTHONPATH.",
        )


def is_below(path: Path, top: Path) -> bool:
    """Compare as text: this is asked of thousands of modules."""
    return str(path).startswith(f"{top}{os.sep}")


def _move(entry: str, request: WorkerRequest) -> str:
    """Replace a path of the user's checkout by that of the arm's, if it exists there."""
    if not is_project_file(Path(entry), request.origin):
        return entry
    moved = Path(request.checkout) / Path(entry).resolve().relative_to(Path(request.origin).resolve())
    return str(moved) if moved.exists() else entry


def is_project_file(path: Path, origin: str) -> bool:
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    if any(is_below(path, Path(prefix)) for prefix in prefixes):
        return False
    resolved = path.resolve()
    within = resolved.is_relative_to(Path(origin).resolve())
    return within and not any(map(resolved.is_relative_to, prefixes))


def has_module(checkout: Path, name: str) -> bool:
    inside = [entry for entry in sys.path if Path(entry).is_relative_to(checkout)]
    if PathFinder.find_spec(name, inside) is not None:
        return True
    spec = PathFinder.find_spec(name, [str(layout) for layout in list_layouts(checkout)])
    return spec is not None and spec.origin is not None  # a directory of that name alone is no package


def list_layouts(checkout: Path) -> list[Path]:
    projects = {file.parent for pattern in _PROJECTS for file in checkout.glob(pattern)}
    return [project / layout for project in (checkout, *projects) for layout in _LAYOUTS]


def _list_paths(spec: ModuleSpec | None) -> list[Path]:
    if spec is None:  # its import fails, and reports that
        return []
    origins = [spec.origin] if spec.has_location and spec.origin else []
    return [Path(path).resolve() for path in (*origins, *(spec.submodule_search_locations or ()))]
