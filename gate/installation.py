"""This installation, as other processes find it: the package alone, in front of their own packages."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

# Names a directory of our own dependencies, which `gate` appends to the search path as it is imported.
PACKAGES_VARIABLE = "COMPILE_GATE_PACKAGES"
_PACKAGE = Path(__file__).resolve().parent

MODELS = _PACKAGE / "models"  # the reference models, and their registry


def copy_package(directory: Path) -> Path:
    """Copy the package ``gate`` to where nothing else lies, once, and return that directory."""
    if not directory.is_dir():
        shutil.copytree(_PACKAGE, directory / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    return directory


def find_models(directory: Path, place: Path) -> Path:
    """Find the reference models of the code in ``place``, which is another state of that in ``directory``.

    They are this installation's for every state. But where this one was made of ``directory``, they are under
    test themselves: then each state has its own.
    """
    own, other = (one / _PACKAGE.name / MODELS.name for one in (directory, place))
    return other if other.is_dir() and own.is_dir() and _are_alike(own, MODELS) else MODELS


def _are_alike(directory: Path, other: Path) -> bool:
    """Whether two directories hold the same files, as far as they are code."""
    compared = filecmp.dircmp(directory, other)
    return not (compared.left_only or compared.right_only or compared.diff_files or compared.funny_files)
