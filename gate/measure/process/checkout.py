"""Which checkout measured code is imported from; torch-free.

A project under test is often installed editable: the interpreter's search path names places in the
user's checkout. In an arm that is another checkout those places must be the other's, or both arms would
measure the same code and every regression would pass.
"""

from __future__ import annotations

import filecmp
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gate.errors import UsageError
from gate.files.entry import REFERENCE_PACKAGE
from gate.git import find_checkout, is_true, read_git
from gate.records.protocol import BUILD_SCRIPTS, WorkerRequest

_OWN_PACKAGE = "gate"
_OWN_PLACE = Path(__file__).resolve().parents[2]

# Where a checkout's projects are, that pip installs: at its top, or two directories below it.
_PROJECTS = tuple(f"{depth}{file}" for depth in ("*/", "*/*/") for file in ("pyproject.toml", "setup.py"))
# What extensions are built from.
_NATIVE = (
    *(".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hip"),
    *(".pyx", ".pxd", ".rs", ".f90"),
)
_BUILDS = BUILD_SCRIPTS | {"CMakeLists.txt", "meson.build"}
# A build writes them anew, versioneer's for one: that a copy has another says nothing of the code.
OF_BUILD = frozenset(("_version.py", "version.py", "__version__.py"))
_LAYOUTS = ("", "src", "lib", "python")  # where a project keeps its packages
_GITLINK = "160000"  # the mode of a submodule among git's entries
_GIT_LIMIT_S = 120.0  # a large tree on a cold disk


def set_search_path(request: WorkerRequest) -> None:
    """Make ``sys.path`` that of the request's arm."""
    if request.checkout:
        sys.path[:] = [_move(entry, request) for entry in sys.path]
    if request.directory not in sys.path:
        sys.path.append(request.directory)  # last: measured code must not shadow the gate
    if request.models:
        take_models(request.models)


def take_models(place: str) -> None:
    """Import the reference models from another place than this installation's own."""
    importlib.import_module(REFERENCE_PACKAGE).__path__ = [place]


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
    """Check that nothing of the project ran that the arm's checkout has otherwise.

    It may have come past the search path: through an import hook, or as an installed copy of the user's
    checkout. An extension module is built, and the interpreter has one for both arms: where what it may be
    built from differs, it is one arm's. A submodule need not be checked out in the arm's checkout: there its
    commit says. Of the user's own checkout a copy may be installed that is older than what lies there.

    Raises:
        UsageError: A module did; it names the first.
    """
    if not request.checkout:
        _check_installed(Path(request.directory).resolve())
        return
    origin, checkout = Path(request.origin).resolve(), Path(request.checkout).resolve()
    tops = _list_tops(origin)
    imported = [(name, place) for name, place in list_imported() if not lies_below(place, checkout)]
    absent: list[tuple[str, Path, Path]] = []
    for name, place in imported:
        twins = tuple(_find_twins(name, place, origin, tops))
        other = next((f"another {one}" for one in twins if _is_another(place, checkout / one)), "")
        if not other and lies_below(place, origin) and _is_elsewhere(name, place, request):
            other = f"{name} elsewhere"
        if other:
            raise UsageError(
                f"{name} is imported from {place}, and the arm's checkout has {other}",
                "Uninstall the project, and set PYTHONPATH to the directory of its packages.",
            )
        absent += [
            (name, place, one)
            for one in (*twins, *_find_own(place, origin))
            if not (checkout / one).is_file()
        ]
    _check_submodules(absent, origin, checkout)
    source = _find_native_change(origin, checkout)
    built = _list_built(imported, origin, tops) if source else []
    if built:
        raise UsageError(
            f"{built[0]} is an extension of the project, and the arm's checkout has another {source}",
            "Build each side in an interpreter of its own, and run: compile-gate ab --base-python A"
            " --head-python B",
        )


def _check_installed(directory: Path) -> None:
    """Check that no copy was measured that pip installed from this checkout and that is not what lies there.

    Raises:
        UsageError: A module was; it names the first.
    """
    top = next((place for place in (directory, *directory.parents) if (place / ".git").exists()), directory)
    tops = _list_tops(top)
    found = [(name, place) for name, place in list_imported() if name.partition(".")[0] in tops]
    copies = [
        (name, place, top / copied)
        for name, place in found
        if place.suffix == ".py" and place.name not in OF_BUILD and not lies_below(place, _OWN_PLACE)
        if not is_project_file(place, str(top))
        for copied in _list_copied(name, place, tops)
    ]
    others = [(name, place, twin) for name, place, twin in copies if _is_another(place, twin)]
    installed = _list_installed(top) if others else frozenset()
    for name, place, twin in others:
        if name.partition(".")[0] in installed:
            raise UsageError(
                f"{name} is imported from {place}, a copy that was installed before {twin} was changed",
                "Install the project editable: pip install -e .",
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


def lies_below(place: Path, top: Path) -> bool:
    """Whether a place lies in a directory, by their text: this is asked of thousands of modules."""
    return str(place).startswith(f"{top}{os.sep}")


def is_same_file(place: Path, twin: Path) -> bool:
    """Whether both are there and say the same."""
    try:
        return filecmp.cmp(place, twin, shallow=False)
    except OSError:
        return False


def _is_another(place: Path, twin: Path) -> bool:
    """Whether a file is there and says something else; one that is not may be in no commit at all."""
    return twin.is_file() and not is_same_file(place, twin)


def _is_elsewhere(name: str, place: Path, request: WorkerRequest) -> bool:
    """Whether a package lies elsewhere in the arm's checkout than the user's, which was imported.

    What it holds besides may be in no commit at all, as a file that a build has written.
    """
    if "." in name or place.suffix != ".py" or not is_project_file(place, request.origin):
        return False
    checkout = Path(request.checkout)
    twin = checkout / place.relative_to(Path(request.origin).resolve())
    return not twin.exists() and _has_module(checkout, name)


def _find_own(place: Path, origin: Path) -> Iterator[Path]:
    """Find which file of the user's checkout a module of any kind is, relative to its top."""
    if (
        lies_below(place, origin)
        and not lies_below(place, _OWN_PLACE)
        and is_project_file(place, str(origin))
    ):
        yield place.relative_to(origin)


def _check_submodules(absent: Sequence[tuple[str, Path, Path]], origin: Path, checkout: Path) -> None:
    """Check that what ran of a submodule is the arm's, by its commit: ``absent`` files have no others.

    Each is a module's name, its place, and which file it is of the user's checkout, relative to its top.

    Raises:
        UsageError: It has another commit there, none, or was changed; it names the first module.
    """
    if not absent or find_checkout(origin) == find_checkout(checkout):  # one checkout has one submodule
        return
    own, others = _list_submodules(origin), _list_submodules(checkout)
    links = own.keys() | others.keys()
    found = [(name, place, link) for name, place, one in absent for link in links if one.is_relative_to(link)]
    same = {
        link
        for link in {link for *_, link in found}
        if own.get(link) == others.get(link) and _is_clean(origin, link)
    }
    for name, place, link in found:
        if link not in same:
            raise UsageError(
                f"{name} is imported from {place}, and the arm's checkout has another submodule {link}",
                "Clone the base with its submodules (git clone --recurse-submodules), and compare with"
                " that directory: compile-gate ab DIR",
            )


def _list_submodules(top: Path) -> dict[str, str]:
    """The commit of each submodule of a checkout, by its path; empty outside of git."""
    if find_checkout(top) is None:
        return {}
    listing = os.fsdecode(read_git(top, "ls-files", "--stage", "-z", limit_s=_GIT_LIMIT_S))
    entries = (entry.partition("\t") for entry in listing.split("\0"))
    return {path: stage.split()[1] for stage, _, path in entries if stage.startswith(_GITLINK)}


def _is_clean(top: Path, submodule: str) -> bool:
    """Whether a submodule lies there as the checkout's index says; new files may be what a build has left."""
    asked = ("diff", "--quiet", "--no-ext-diff", "--ignore-submodules=untracked", "--", submodule)
    return is_true(top, *asked, limit_s=_GIT_LIMIT_S)


def _find_native_change(origin: Path, checkout: Path) -> Path | None:
    """Find a file that extensions may be built from and that differs, relative to the checkout's top."""
    for directory, below, files in os.walk(checkout):
        if "pyvenv.cfg" in files:  # an environment that is kept there is not code
            below.clear()
            continue
        below[:] = [name for name in below if name != ".git"]
        for name in files:
            if name.endswith(_NATIVE) or name in _BUILDS:
                within = Path(directory, name).relative_to(checkout)
                if _is_another(origin / within, checkout / within):
                    return within
    return None


def _list_built(
    imported: Sequence[tuple[str, Path]], origin: Path, tops: Mapping[str, Sequence[Path]]
) -> list[str]:
    """List the extension modules, and the libraries of operators, that were built from the project.

    Those lie below it, were installed from it, or lie in a copy of one of its packages: a directory that is
    called as a library is, as ``triton`` may be, makes none of that library's.
    """
    modules = [(name, place) for name, place in imported if place.name.endswith(tuple(EXTENSION_SUFFIXES))]
    found = [*modules, *((place.name, place) for place in _list_loaded())]
    installed = _list_installed(origin) if found else frozenset()
    packages = {name: place for name, place in imported if place.name == "__init__.py"}
    copied = {name for name, place in packages.items() if next(_find_twins(name, place, origin, tops), None)}
    homes = [place.parent for name, place in packages.items() if name in installed | copied]
    return [
        name
        for name, place in found
        if is_project_file(place, str(origin))
        or name.partition(".")[0] in installed
        or any(map(place.is_relative_to, homes))
    ]


def _list_loaded() -> list[Path]:
    """The libraries that ``torch.ops.load_library`` has loaded: no module names them."""
    ops = getattr(sys.modules.get("torch"), "ops", None)
    return [Path(place).resolve() for place in getattr(ops, "loaded_libraries", ())]


def _list_installed(origin: Path) -> frozenset[str]:
    """The modules and packages of what pip installed from the checkout."""
    known = metadata.packages_distributions()
    return frozenset(top for top, names in known.items() if any(_is_from(name, origin) for name in names))


def _is_from(distribution: str, origin: Path) -> bool:
    """Whether a distribution was installed from below ``origin``: PEP 610 has where it says so."""
    record = json.loads(metadata.distribution(distribution).read_text("direct_url.json") or "{}")
    place = urlsplit(record.get("url", ""))
    return place.scheme == "file" and Path(unquote(place.path)).is_relative_to(origin)


def _find_twins(name: str, place: Path, origin: Path, tops: Mapping[str, Sequence[Path]]) -> Iterator[Path]:
    """Find which files of the user's checkout a module is, or is a copy of, relative to its top."""
    top = name.partition(".")[0]
    if place.suffix != ".py" or lies_below(place, _OWN_PLACE) or top in sys.stdlib_module_names:
        return
    yield from _find_own(place, origin)
    yield from (one for one in _list_copied(name, place, tops) if is_same_file(place, origin / one))


def _list_copied(name: str, place: Path, tops: Mapping[str, Sequence[Path]]) -> Iterator[Path]:
    """List which files of a checkout a module may be a copy of, by its name; relative to its top."""
    package = name if place.name == "__init__.py" else name.rpartition(".")[0]
    for layout in tops.get(name.partition(".")[0], ()):
        yield layout.joinpath(*filter(None, package.split(".")), place.name)


def _list_tops(origin: Path) -> Mapping[str, Sequence[Path]]:
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
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    if any(lies_below(place, Path(prefix)) for prefix in prefixes):
        return False
    resolved = place.resolve()
    within = resolved.is_relative_to(Path(origin).resolve())
    return within and not any(map(resolved.is_relative_to, prefixes))


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
