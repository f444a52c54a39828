"""This installation, as other processes find it: the package alone, in front of their own packages."""

from __future__ import annotations

import shutil
from pathlib import Path

# Names a directory of our own dependencies, which `gate` appends to the search path as it is imported.
PACKAGES_VARIABLE = "COMPILE_GATE_PACKAGES"
_PACKAGE = Path(__file__).resolve().parent


def copy_package(directory: Path) -> Path:
    """Copy the package ``gate`` to where nothing else lies, once, and return that directory."""
    if not directory.is_dir():
        shutil.copytree(_PACKAGE, directory / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    return directory
