"""Worktrees: checkouts of other commits, registered with the user's repository.

Those of killed runs are removed by the next run on that host. Nobody else's is touched: ours lie directly in
a scratch directory of this host, whose owner must have ended.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.errors import MachineError
from gate.git import MissingContentError, ask_git, is_partial
from gate.lab.host.scratch import is_abandoned, is_scratch_name, remove_leftovers
from gate.lab.workers.process import defer_interrupts

_CHECKOUT_LIMIT_S = 1800.0  # the largest repositories, with large files to fetch
_ENTRY = "worktree "  # of `git worktree list --porcelain`


@contextmanager
def open_worktree(top: Path, commit: str, path: Path) -> Iterator[Path]:
    """Check ``commit`` of the repository at ``top`` out into ``path``.

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
    # Twice: the first force is for files that came in, the second for a checkout that was cut short.
    ask_git(top, "worktree", "remove", "--force", "--force", str(path), limit_s=_CHECKOUT_LIMIT_S)
    shutil.rmtree(path, ignore_errors=True)  # where git gave up


def remove_leftover_worktrees(top: Path) -> None:
    for path in list_worktrees(top):
        scratch = path.parent
        is_gone = not scratch.exists()  # another run has removed it, or the machine was restarted
        if is_scratch_name(scratch.name) and (is_gone or is_abandoned(scratch)):
            remove_worktree(top, path)
            remove_leftovers(scratch.parent)


def list_worktrees(top: Path) -> tuple[Path, ...]:
    listed = ask_git(top, "worktree", "list", "--porcelain").said.splitlines()
    paths = [Path(line.removeprefix(_ENTRY)) for line in listed if line.startswith(_ENTRY)]
    return tuple(paths[1:])  # the first is the main one


def _add_worktree(top: Path, commit: str, path: Path) -> None:
    # A sparse clone hands its patterns on: what it leaves out may be the rules.
    whole = ("-c", "core.sparseCheckout=false")
    answer = ask_git(
        top, *whole, "worktree", "add", "--detach", "--force", str(path), commit, limit_s=_CHECKOUT_LIMIT_S
    )
    if not answer.is_good and is_partial(top):
        raise MissingContentError(commit, answer.complaint)
    if not answer.is_good:
        raise MachineError(
            f"git cannot check {commit[:10]} out: {answer.complaint}",
            "Free some space if the disk is full. If .git is read-only, clone it to where you may write, or"
            " measure without a base: --no-base. Else check the repository: `git fsck`.",
        )
