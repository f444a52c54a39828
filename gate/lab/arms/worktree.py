"""Checkouts that the tool makes of other commits: linked worktrees in a scratch directory.

They are registered with the user's repository, so they are taken off its list at the end, and those
of runs that were killed by the next run. Nobody else's worktree is ever touched: ours lie directly in
a scratch directory, and only those of owners that are no more count as left behind.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.errors import MachineError
from gate.git import ask_git
from gate.lab.host.scratch import is_abandoned, is_scratch_name, remove_leftovers
from gate.lab.workers.process import defer_interrupts

_CHECKOUT_LIMIT_S = 1800.0  # the largest repositories, with large files to fetch
_ENTRY = "worktree "  # of `git worktree list --porcelain`


@contextmanager
def open_worktree(top: Path, commit: str, path: Path) -> Iterator[Path]:
    """Check ``commit`` of the repository at ``top`` out into ``path``; it is gone at the end.

    Raises:
        MachineError: git cannot check it out.
    """
    try:
        _add_worktree(top, commit, path)
        yield path
    finally:
        with defer_interrupts():
            remove_worktree(top, path)


def remove_worktree(top: Path, path: Path) -> None:
    """Remove a worktree with all that is in it and take it off the repository's list."""
    # Twice: the first force is for files that came in, the second for a checkout that was cut short.
    ask_git(top, "worktree", "remove", "--force", "--force", str(path), limit_s=_CHECKOUT_LIMIT_S)
    shutil.rmtree(path, ignore_errors=True)  # where git gave up


def remove_leftover_worktrees(top: Path) -> None:
    """Take the worktrees of runs that were killed off the list of the repository at ``top``."""
    for path in list_worktrees(top):
        scratch = path.parent
        if not is_scratch_name(scratch.name):
            continue
        if not scratch.exists():  # another run has removed the directory, or the machine was restarted
            remove_worktree(top, path)
        elif is_abandoned(scratch):
            remove_worktree(top, path)
            remove_leftovers(scratch.parent)


def list_worktrees(top: Path) -> tuple[Path, ...]:
    """List the linked worktrees of the repository at ``top``, those without a directory included."""
    listed = ask_git(top, "worktree", "list", "--porcelain").said.splitlines()
    paths = [Path(line.removeprefix(_ENTRY)) for line in listed if line.startswith(_ENTRY)]
    return tuple(paths[1:])  # the first is the main one


def _add_worktree(top: Path, commit: str, path: Path) -> None:
    answer = ask_git(
        top,
        *("worktree", "add", "--detach", "--force", str(path), commit),
        limit_s=_CHECKOUT_LIMIT_S,
    )
    if not answer.is_good:
        raise MachineError(
            f"git cannot check {commit[:10]} out: {answer.complaint}",
            "Free some space if the disk is full; else check the repository: `git fsck`.",
        )
