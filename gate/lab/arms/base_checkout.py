"""A checkout of the base commit that serves both its rules and its code."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.lab.arms.submodules import fill_submodules
from gate.lab.arms.worktrees import open_worktree, remove_leftover_worktrees
from gate.lab.host.scratch import open_scratch
from gate.revisions import get_top
from gate.store.rules import BaseTree


@contextmanager
def open_base_tree(directory: Path, sha: str) -> Iterator[BaseTree]:
    """Check a commit out of the repository around ``directory``.

    Raises:
        UsageError: There is no repository, or it lacks content of the commit.
        MachineError: git cannot check it out.
    """
    top = get_top(directory)
    remove_leftover_worktrees(top)
    with open_scratch() as scratch, open_worktree(top, sha, scratch / "base") as tree:
        yield BaseTree(sha=sha, tree=tree.resolve(), top=top, empty=fill_submodules(top, tree))
