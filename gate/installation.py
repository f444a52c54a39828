"""This installation, as other processes find it: the package alone, and what it needs.

pyproject.toml has the same oldest releases, and a test compares: a copy of the package needs them too.
"""

import filecmp
import functools
import re
import shutil
from importlib import metadata
from pathlib import Path

# Names a directory of our own dependencies, which `gate` appends to the search path as it is imported.
PACKAGES_VARIABLE = "COMPILE_GATE_PACKAGES"
_PACKAGE = Path(__file__).resolve().parent

MODELS = _PACKAGE / "models"  # the reference models, and their registry
# What to do about what a compile needs besides.
COMPILER_FIX = "Install a C++ compiler (g++), or set CXX."
HEADERS_FIX = "Install the headers of Python (python3-dev)."
PATH_FIX = "Install torch into an environment without blanks or quotes in its path."
_SPLITTING = frozenset(" \t\n'\"\\")  # Inductor takes its C++ commands apart as a shell would
OLDEST_PYTHON = "3.11"
OLDEST_TORCH = "2.11"  # the oldest whose internals the measuring code has been checked against
# What the gate itself imports. An environment that has an older one cannot be used as it is.
OLDEST_PACKAGES = {
    "argcomplete": "3.4",
    "jinja2": "3.1",
    "jsonschema": "4.10",
    "nvidia-ml-py": "11.525",
    "packaging": "23.0",
    "psutil": "5.9",
    "pytest": "8.0",
    "pytest-benchmark": "5.0",
    "pyyaml": "6.0",
    "requests": "2.32",
    "rich": "13.0",
    "urllib3": "2.2",
}


def is_one_word(path: str) -> bool:
    return _SPLITTING.isdisjoint(path)


@functools.cache
def find_url(name: str) -> str:
    """Empty where this installation is no release."""
    try:
        urls = metadata.metadata("compile-gate").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        urls = []
    return next((url.removeprefix(f"{name}, ") for url in urls if url.startswith(f"{name}, ")), "")


def name_page(page: str) -> str:
    """Its URL where this installation is a release, else its file."""
    site = find_url("Documentation")
    return f"{site}{page}/" if site else f"docs/{page}.md of compile-gate"


def copy_package(directory: Path) -> Path:
    """With bytecode: to compile it anew takes half a second."""
    if not directory.is_dir():
        # Another process may be writing bytecode: what is half written has a longer name, and goes.
        shutil.copytree(_PACKAGE, directory / "gate", ignore=shutil.ignore_patterns("*.pyc.*"))
    return directory


def choose_models(directory: Path, state: Path) -> Path:
    """Choose the models of ``state``, another state of the code in ``directory``.

    They are this installation's. But where it was made of ``directory``, each state has its own: then models
    are under test themselves.
    """
    ours, theirs = (top / _PACKAGE.name / MODELS.name for top in (directory, state))
    return theirs if theirs.is_dir() and ours.is_dir() and _are_alike(ours, MODELS) else MODELS


def _are_alike(directory: Path, other: Path) -> bool:
    compared = filecmp.dircmp(directory, other)
    return not (compared.left_only or compared.right_only or compared.diff_files or compared.funny_files)


def find_release(package: str) -> str:
    """Empty where this interpreter lacks the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def is_installed(package: str) -> bool:
    return bool(find_release(package))


def is_older(release: str, oldest: str) -> bool:
    """Only leading numbers count."""
    return _parse_release(release) < _parse_release(oldest)


def _parse_release(text: str) -> tuple[int, ...]:
    leading = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()
