"""What a worker imported: of which checkout, which files differ, which were changed meanwhile; torch-free.

A run says of which commit it is, and what is changed there. A file that somebody saves meanwhile makes
some of its processes another program's.
"""

import filecmp
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from gate.errors import UsageError
from gate.files.disk import read_written_ns
from gate.git import DIFF, ask_git, find_checkout, is_true, read_git
from gate.measure.checkout import has_module, is_project_file, lies_below, list_layouts
from gate.measure.packages import list_installed, list_owners, list_packages, name_package
from gate.records.protocol import BUILD_SCRIPTS, WorkerRequest

_KNOWN = ("ls-files", "--cached", "--others", "--exclude-standard")  # what git has, or would add
_OWN_PLACE = Path(__file__).resolve().parents[1]
# What extensions are built from.
_NATIVE = (
    ".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hip",
    ".pyx", ".pxd", ".rs", ".f90",
)  # fmt: skip
_BUILDS = BUILD_SCRIPTS | {"CMakeLists.txt", "meson.build"}
# A build writes them anew, versioneer's for one: that a copy has another says nothing of the code.
_OF_BUILD = frozenset(("_version.py", "version.py", "__version__.py"))
_GITLINK = "160000"  # the mode of a submodule among git's entries
_GIT_LIMIT_S = 120.0  # a large tree on a cold disk

# Files of modules that a server has imported and looked at, and when they were written: in every process that
# it forks the modules stay what they are, whatever becomes of the files.
_LOOKED_AT: dict[Path, int] = {}


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
        directory = Path(request.directory).resolve()
        _check_installed(find_checkout(directory) or directory)
        return
    origin, checkout = Path(request.origin).resolve(), Path(request.checkout).resolve()
    tops = _list_tops(origin)
    imported = [(name, place) for name, place in _list_imported() if not lies_below(place, checkout)]
    absent: list[tuple[str, Path, Path]] = []
    for name, place in imported:
        twins = tuple(_find_twins(name, place, origin, tops))
        is_source = place.suffix == ".py"
        other = next(
            (f"another {one}" for one in twins if is_source and _is_another(place, checkout / one)), ""
        )
        if not other and is_source and lies_below(place, origin) and _is_elsewhere(name, place, request):
            other = f"{name} elsewhere"
        if other:
            raise UsageError(
                f"{name} is imported from {place}, and the arm's checkout has {other}",
                "Uninstall the project, and set PYTHONPATH to the directory of its packages.",
            )
        absent += [(name, place, one) for one in twins if not (checkout / one).is_file()]
    _check_submodules(absent, origin, checkout)
    source = _find_native_change(origin, checkout)
    built = _list_built(imported, origin, tops) if source else []
    if built:
        raise UsageError(
            f"{built[0]} is an extension of the project, and the arm's checkout has another {source}",
            "Build each side in an interpreter of its own, and run: compile-gate ab --base-python A"
            " --head-python B",
        )


def _list_imported() -> Iterator[tuple[str, Path]]:
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


def _check_installed(top: Path) -> None:
    """Check that no copy was measured that pip installed from this checkout before a file was changed."""
    tops = _list_tops(top)
    found = [(name, place) for name, place in _list_imported() if name.partition(".")[0] in tops]
    copies = [
        (name, place, top / copied)
        for name, place in found
        if place.suffix == ".py" and place.name not in _OF_BUILD and not lies_below(place, _OWN_PLACE)
        if not is_project_file(place, str(top))
        for copied in _list_copied(name, place, tops)
    ]
    others = [(name, place, twin) for name, place, twin in copies if _is_another(place, twin)]
    installed = list_installed(top) if others else frozenset()
    for name, place, twin in others:
        if name.partition(".")[0] in installed:
            raise UsageError(
                f"{name} is imported from {place}, a copy that was installed before {twin} was changed",
                "Install the project editable: pip install -e .",
            )


def _is_same_file(place: Path, twin: Path) -> bool:
    """Whether both are there and say the same."""
    try:
        return filecmp.cmp(place, twin, shallow=False)
    except OSError:
        return False


def _is_another(place: Path, twin: Path) -> bool:
    """Whether a file is there and says something else; one that is not may be in no commit at all."""
    return twin.is_file() and not _is_same_file(place, twin)


def _is_elsewhere(name: str, place: Path, request: WorkerRequest) -> bool:
    """Whether a package lies elsewhere in the arm's checkout than the user's, which was imported.

    What it holds besides may be in no commit at all, as a file that a build has written.
    """
    if "." in name or not is_project_file(place, request.origin):
        return False
    checkout = Path(request.checkout)
    twin = checkout / place.relative_to(Path(request.origin).resolve())
    return not twin.exists() and has_module(checkout, name)


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
    return is_true(top, *DIFF, "--quiet", "--", submodule, limit_s=_GIT_LIMIT_S)


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
    installed = list_installed(origin) if found else frozenset()
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


def _find_twins(name: str, place: Path, origin: Path, tops: Mapping[str, Sequence[Path]]) -> Iterator[Path]:
    """Find which files of the user's checkout a module is, or is a copy of, relative to its top."""
    if lies_below(place, _OWN_PLACE):
        return
    if lies_below(place, origin) and is_project_file(place, str(origin)):
        yield place.relative_to(origin)
    if place.suffix == ".py" and name.partition(".")[0] not in sys.stdlib_module_names:
        yield from (one for one in _list_copied(name, place, tops) if _is_same_file(place, origin / one))


def _list_copied(name: str, place: Path, tops: Mapping[str, Sequence[Path]]) -> Iterator[Path]:
    """List which files of a checkout a module may be a copy of, by its name; relative to its top."""
    package = name if place.name == "__init__.py" else name.rpartition(".")[0]
    for layout in tops.get(name.partition(".")[0], ()):
        yield layout.joinpath(*filter(None, package.split(".")), place.name)


def _list_tops(origin: Path) -> Mapping[str, Sequence[Path]]:
    tops: dict[str, list[Path]] = {}
    for layout in list_layouts(origin):
        for entry in layout.iterdir() if layout.is_dir() else ():
            tops.setdefault(entry.name.removesuffix(".py"), []).append(layout.relative_to(origin))
    return tops


def check_edits(request: WorkerRequest) -> None:
    """Check that nothing imported since the last look was written after the run began.

    Raises:
        UsageError: A file of the working tree was, and git has it or would add it.
    """
    tree = request.tree
    if tree is None:
        return
    top = Path(tree.top)
    found = {place for _, place in _list_imported() if lies_below(place, top) and place not in _LOOKED_AT}
    # Code that the compiler generates is imported as well, from where this run keeps its files.
    kept = (Path(tempfile.gettempdir()).resolve(), Path(request.result).resolve().parent)
    scratch = [place for place in kept if lies_below(place, top)]
    written = {
        place: read_written_ns(place)
        for place in sorted(found)
        if place.suffix == ".py"
        and place.name not in _OF_BUILD
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
    imported = {place for _, place in _list_imported()}
    parents = {place.parent for place in imported}
    own = {parent for parent in parents if is_project_file(parent, checkouts.head)}
    inside = {place for place in imported if place.parent in own}
    copied = {_name_end(place.parts) for place in imported - inside}
    names = {str(place.relative_to(top)) for place in inside}
    differing = {name for name in names if not _is_same_file(top / name, base / name)}
    copies = {name for name in checkouts.changed if not copied.isdisjoint(_list_ends(name))}
    # Written as UTF-8, which a file's name need not be.
    return tuple(sorted(name.encode(errors="replace").decode() for name in differing | copies))


# What runs a case, and is not measured.
_RUNNERS = {"compile-gate", "iniconfig", "nvidia-ml-py", "pluggy", "psutil", "py-cpuinfo", "pygments"}
_RUNNERS |= {"pytest", "pytest-benchmark"}


def list_imported_packages(request: WorkerRequest) -> dict[str, str]:
    """List the packages that were imported, with their versions; not the project, whose copies differ."""
    top = Path(request.origin or find_checkout(Path(request.directory)) or request.directory).resolve()
    try:
        own, owners = {*_list_tops(top), *list_installed(top)}, list_owners()
        tops = {name.partition(".")[0] for name in list(sys.modules)} - own
        names = {name_package(owner) for name in tops for owner in owners.get(name, ())} - _RUNNERS
        return {name: version for name, version in list_packages().items() if name in names}
    except (OSError, ValueError, ImportError):  # files of a package are broken
        return {}


def _name_end(parts: Sequence[str]) -> tuple[str, ...]:
    """What a file is called and its directory, where that is a package, unlike ``site-packages``."""
    return tuple(part for part in parts[-2:] if part not in _DISTRIBUTIONS)


def _list_ends(name: str) -> tuple[tuple[str, ...], ...]:
    """What the installed copy of a file may be called: as in its package, or alone."""
    parts = Path(name).parts
    return _name_end(parts), parts[-1:]
