"""Where the repository begins that a job has cloned: GitHub and git name files from there."""

from __future__ import annotations

from pathlib import Path


def find_checkout(directory: Path, workspace: Path) -> Path:
    """Find the top of the clone that ``directory`` lies in, or ``workspace`` where there is none.

    ``actions/checkout`` with ``path:`` clones to below the workspace. git itself is not asked: a trusted
    job needs none, and without git that action downloads the files alone.
    """
    start = directory.resolve()
    above = (path for path in (start, *start.parents) if (path / ".git").exists())
    return next(above, workspace.resolve())


def to_repository_path(path: Path, top: Path) -> str:
    """Write a path as git does, from the top of the repository; empty where it lies elsewhere."""
    absolute = path.resolve()
    is_inside = absolute != top and absolute.is_relative_to(top)
    return absolute.relative_to(top).as_posix() if is_inside else ""
