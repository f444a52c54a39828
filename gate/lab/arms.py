"""What is under test: a directory that measured code is imported from, and an interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

from gate.errors import UsageError
from gate.records import Arm

HEAD = "head"


def make_working_tree_arm(directory: Path, python: str = sys.executable) -> Arm:
    """Make the arm of the code as it lies in ``directory``.

    Raises:
        UsageError: There is no such directory.
    """
    if not directory.is_dir():
        raise UsageError(
            f"{directory} is not a directory", "Give the directory that the models are imported from."
        )
    return Arm(name=HEAD, python=python, directory=str(directory.resolve()))
