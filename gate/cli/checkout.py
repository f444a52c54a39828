"""What a job has cloned: where the repository begins, and the commit that the job is about."""

from __future__ import annotations

from pathlib import Path

from gate.errors import UsageError
from gate.files.untrusted import format_value
from gate.git import find_checkout
from gate.github.context import is_sha

_HEAD_FIX = (
    "Pass the output `head-sha` of the step with `mode: authorize-command`, or what `git rev-parse` prints."
)


def find_workspace_checkout(directory: Path, workspace: Path) -> Path:
    """Find the top of the clone that ``directory`` lies in, or ``workspace`` where there is none.

    ``actions/checkout`` with ``path:`` clones to below the workspace. git itself is not asked: a trusted
    job needs none, and without git that action downloads the files alone.
    """
    return find_checkout(directory) or workspace.resolve()


def to_repository_path(path: Path, top: Path) -> str:
    """Write a path as git does, from the top of the repository; empty where it lies elsewhere."""
    absolute = path.resolve()
    is_inside = absolute != top and absolute.is_relative_to(top)
    return absolute.relative_to(top).as_posix() if is_inside else ""


def check_head_sha(text: str) -> None:
    """Check the value of ``--head-sha``.

    Raises:
        UsageError: It is no whole commit id.
    """
    if not is_sha(text):
        problem = (
            f"--head-sha: expected a whole commit id, 40 digits of 0-9 and a-f, got {format_value(text)}"
        )
        raise UsageError(problem, _HEAD_FIX)
