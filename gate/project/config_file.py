"""Where ``gate.yml`` is looked for where nobody names it."""

from __future__ import annotations

import os
from pathlib import Path

from gate.errors import FileError
from gate.files.untrusted import is_present

DEFAULT_FILE = "gate.yml"
_MISNAMED_FILE = "gate.yaml"
_TOP_MARK = ".git"


def find_config() -> Path | None:
    """Find the nearest ``gate.yml``: here, or above as far as the top of the repository.

    The path is relative; outside of repositories the root of the file system is the top. A link that
    leads nowhere is found, and reading it is an error.

    Raises:
        FileError: There is a ``gate.yaml`` in its place, or this directory may not be looked into.
    """
    here = Path.cwd()
    for place in (here, *here.parents):
        if place != here and not os.access(place, os.X_OK):
            return None  # what may not be looked into is nobody's project here
        path = Path(os.path.relpath(place, here))
        if is_present(path / DEFAULT_FILE):
            return path / DEFAULT_FILE
        if is_present(path / _MISNAMED_FILE):
            problem = f"is not read: the file is called {DEFAULT_FILE}"
            raise FileError(str(path / _MISNAMED_FILE), "", problem, "Rename it, or name it with --config.")
        if is_present(path / _TOP_MARK):
            return None
    return None
