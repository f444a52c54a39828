"""What a worker imported: of which checkout, which files differ, which were changed meanwhile; torch-free."""

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
from gate.measure.checkout import has_module, is_below, is_project_file, list_layouts
from gate.measure.packages import list_installed, list_owners, list_packages, name_package
from gate.records.protocol import BUILD_SCRIPTS, WorkerRequest

_TRACKED = ("ls-files", "--cached", "--others", "--exclude-standard")  # what git has, or would add
_GATE = Path(__file__).resolve().parents[1]
# What extensions are built from.
_NATIVE = (
    ".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hip",
    ".pyx", ".pxd", ".rs", ".f90",
)  # fmt: skip
_BUILDS = BUILD_SCRIPTS | {"CMakeLists.txt", "meson.build"}
# A build writes them anew, versioneer's for one: another one in a copy is no other code.
_OF_BUILD = frozenset(("_version.py", "version.py", "__version__.py"))
_GITLINK = "160000"  # the mode of a submodule among git's entries
_GIT_LIMIT_S = 120.0  # a large tree on a cold disk

# Files of modules that a server has imported and looked at, and when they were written: in every process that
# it forks the modules stay what they are, whatever becomes of the files.
_LOOKED_AT: dict[Path, int] = {}
# Directories that are no package: a module in one is called by its name alone.
_DISTRIBUTIONS = frozenset({"src", "lib", "python", "site-packages", "dist-packages"})
# What runs a case, and is not measured.
_RUNNERS = {"compile-gate", "iniconfig", "nvidia-ml-py", "pluggy", "psutil", "py-cpuinfo", "pygments"}
_RUNNERS |= {"pytest", "pytest-benchmark"}


def check_imports(request: WorkerRequest) -> None:
    """Check that nothing of the project ran that the arm's checkout has otherwise.

    It may have come by an import hook, or from an installed copy. Both arms share extension modules, which
    must not differ in what they may be built from. A submodule that is not checked out is compared by its
    commit.

    Raises:
        UsageError: A module did; it names the first.
    """
    if not request.checkout:
        directory = Path(request.directory).resolve()
        _check_installed(find_checkout(directory) or directory)
        return
    origin, checkout = Path(request.origin).resolve(), Path(request.checkout).resolve()
    tops = _list_tops(origin)
    imported = [(name, path) for name, path in _list_imported() if not is_below(path, checkout)]
    absent: list[tuple[str, Path, Path]] = []
    for name, path in imported:
        twins = tuple(_find_twins(name, path, origin, tops))
        is_source = path.suffix == ".py"
        difference = next(
            (f"another {twin}" for twin in twins if is_source and _is_another(path, checkout / twin)), ""
        )
        if not difference and is_source and is_below(path, origin) and _is_elsewhere(name, path, request):
            difference = f"{name} elsewhere"
        if difference:
            raise UsageError(
                f"{name} is imported from {path}, and the arm's checkout has {difference}",
                "Uninstall the project, and set PYTHONPATH to the directory of its packages.",
            )
        absent += [(name, path, twin) for twin in twins if not (checkout / twin).is_file()]
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
    directories: dict[str, Path] = {}
    for name, module in list(sys.modules.items()):
        # Not getattr: a module that loads its parts lazily would load one.
        source = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(source, str):
            continue
        directory, file = os.path.split(source)
        if directory not in directories:
            directories[directory] = Path(directory).resolve()
        path = directories[directory] / file
        yield name, path.resolve() if path.is_symlink() else path


def _check_installed(top: Path) -> None:
    """Check that no copy was measured that pip installed from this checkout before a file was changed."""
    tops = _list_tops(top)
    modules = [(name, path) for name, path in _list_imported() if name.partition(".")[0] in tops]
    copies = [
        (name, path, top / copied)
        for name, path in modules
        if path.suffix == ".py" and path.name not in _OF_BUILD and not is_below(path, _GATE)
        if not is_project_file(path, str(top))
        for copied in _list_copied(name, path, tops)
    ]
    stale = [(name, path, twin) for name, path, twin in copies if _is_another(path, twin)]
    installed = list_installed(top) if stale else frozenset()
    for name, path, twin in stale:
        if name.partition(".")[0] in installed:
            raise UsageError(
                f"{name} is imported from {path}, a copy that was installed before {twin} was changed",
                "Install the project editable: pip install -e .",
            )


def _is_same_file(path: Path, twin: Path) -> bool:
    try:
        return filecmp.cmp(path, twin, shallow=False)
    except OSError:
        return False


def _is_another(path: Path, twin: Path) -> bool:
    """Whether a file is there and differs; one that is not there may be in no commit at all."""
    return twin.is_file() and not _is_same_file(path, twin)


def _is_elsewhere(name: str, path: Path, request: WorkerRequest) -> bool:
    if "." in name or not is_project_file(path, request.origin):
        return False
    checkout = Path(request.checkout)
    twin = checkout / path.relative_to(Path(request.origin).resolve())
    return not twin.exists() and has_module(checkout, name)


def _check_submodules(absent: Sequence[tuple[str, Path, Path]], origin: Path, checkout: Path) -> None:
    """Check that what ran of a submodule is the arm's, by its commit.

    ``absent`` are a module's name, its path, and which file it is of the user's checkout, relative to its
    top.

    Raises:
        UsageError: It has another commit there, none, or was changed; it names the first module.
    """
    if not absent or find_checkout(origin) == find_checkout(checkout):  # one checkout has one submodule
        return
    here, there = _list_submodules(origin), _list_submodules(checkout)
    links = here.keys() | there.keys()
    in_links = [
        (name, path, link) for name, path, twin in absent for link in links if twin.is_relative_to(link)
    ]
    same = {
        link
        for link in {link for *_, link in in_links}
        if here.get(link) == there.get(link) and _is_clean(origin, link)
    }
    for name, path, link in in_links:
        if link not in same:
            raise UsageError(
                f"{name} is imported from {path}, and the arm's checkout has another submodule {link}",
                "Clone the base with its submodules (git clone --recurse-submodules), and compare with"
                " that directory: compile-gate ab DIR",
            )


def _list_submodules(top: Path) -> dict[str, str]:
    """Map the path of each submodule of a checkout to its commit; empty outside of git."""
    if find_checkout(top) is None:
        return {}
    listing = os.fsdecode(read_git(top, "ls-files", "--stage", "-z", limit_s=_GIT_LIMIT_S))
    entries = (entry.partition("\t") for entry in listing.split("\0"))
    return {path: stage.split()[1] for stage, _, path in entries if stage.startswith(_GITLINK)}


def _is_clean(top: Path, submodule: str) -> bool:
    return is_true(top, *DIFF, "--quiet", "--", submodule, limit_s=_GIT_LIMIT_S)


def _find_native_change(origin: Path, checkout: Path) -> Path | None:
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
    """List the extension modules, and the libraries of operators, that were built from the project."""
    modules = [(name, path) for name, path in imported if path.name.endswith(tuple(EXTENSION_SUFFIXES))]
    binaries = [*modules, *((path.name, path) for path in _list_loaded())]
    installed = list_installed(origin) if binaries else frozenset()
    packages = {name: path for name, path in imported if path.name == "__init__.py"}
    copied = {name for name, path in packages.items() if next(_find_twins(name, path, origin, tops), None)}
    homes = [path.parent for name, path in packages.items() if name in installed | copied]
    return [
        name
        for name, path in binaries
        if is_project_file(path, str(origin))
        or name.partition(".")[0] in installed
        or any(map(path.is_relative_to, homes))
    ]


def _list_loaded() -> list[Path]:
    ops = getattr(sys.modules.get("torch"), "ops", None)
    return [Path(path).resolve() for path in getattr(ops, "loaded_libraries", ())]


def _find_twins(name: str, path: Path, origin: Path, tops: Mapping[str, Sequence[Path]]) -> Iterator[Path]:
    if is_below(path, _GATE):
        return
    if is_below(path, origin) and is_project_file(path, str(origin)):
        yield path.relative_to(origin)
    if path.suffix == ".py" and name.partition(".")[0] not in sys.stdlib_module_names:
        yield from (twin for twin in _list_copied(name, path, tops) if _is_same_file(path, origin / twin))


def _list_copied(name: str, path: Path, tops: Mapping[str, Sequence[Path]]) -> Iterator[Path]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for layout in tops.get(name.partition(".")[0], ()):
        yield layout.joinpath(*filter(None, package.split(".")), path.name)


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
    paths = {path for _, path in _list_imported() if is_below(path, top) and path not in _LOOKED_AT}
    # Code that the compiler generates is imported as well, from where this run keeps its files.
    kept = (Path(tempfile.gettempdir()).resolve(), Path(request.result).resolve().parent)
    scratch = [path for path in kept if is_below(path, top)]
    written = {
        path: read_written_ns(path)
        for path in sorted(paths)
        if path.suffix == ".py"
        and path.name not in _OF_BUILD
        and not any(is_below(path, directory) for directory in scratch)
    }
    _LOOKED_AT.update(written)
    later = [str(path) for path, when_ns in written.items() if when_ns > tree.newest_ns]
    in_project = [path for path in later if is_project_file(Path(path), tree.top)]
    changed = ask_git(top, *_TRACKED, "--", *in_project).said.splitlines() if in_project else []
    if changed:
        raise UsageError(
            f"{changed[0]} was changed while it was measured",
            "Measure again and leave the files alone meanwhile, or measure commits:"
            " compile-gate ab BASE HEAD",
        )


def has_moved_on() -> bool:
    return any(read_written_ns(path) != when_ns for path, when_ns in _LOOKED_AT.items())


def list_changed_imports(request: WorkerRequest) -> tuple[str, ...] | None:
    """List the imported files of head's checkout that the base lacks or has otherwise, relative to its top.

    Also changed files of which a module elsewhere looks like an installed copy. ``None`` where it is unknown:
    there is no base, a user's own test is run, or a file is no longer what was imported.
    """
    checkouts, case = request.checkouts, request.case
    if checkouts is None or case is None or not case.factory or has_moved_on():
        return None
    top, base = Path(checkouts.head).resolve(), Path(checkouts.base)
    imported = {path for _, path in _list_imported()}
    parents = {path.parent for path in imported}
    directories = {parent for parent in parents if is_project_file(parent, checkouts.head)}
    inside = {path for path in imported if path.parent in directories}
    copied = {_name_end(path.parts) for path in imported - inside}
    names = {str(path.relative_to(top)) for path in inside}
    differing = {name for name in names if not _is_same_file(top / name, base / name)}
    copies = {name for name in checkouts.changed if not copied.isdisjoint(_list_ends(name))}
    # Written as UTF-8, which a file's name need not be.
    return tuple(sorted(name.encode(errors="replace").decode() for name in differing | copies))


def list_imported_packages(request: WorkerRequest) -> dict[str, str]:
    top = Path(request.origin or find_checkout(Path(request.directory)) or request.directory).resolve()
    try:
        projects, owners = {*_list_tops(top), *list_installed(top)}, list_owners()
        tops = {name.partition(".")[0] for name in list(sys.modules)} - projects
        names = {name_package(owner) for name in tops for owner in owners.get(name, ())} - _RUNNERS
        return {name: version for name, version in list_packages().items() if name in names}
    except (OSError, ValueError, ImportError):  # files of a package are broken
        return {}


def _name_end(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for part in parts[-2:] if part not in _DISTRIBUTIONS)


def _list_ends(name: str) -> tuple[tuple[str, ...], ...]:
    parts = Path(name).parts
    return _name_end(parts), parts[-1:]
