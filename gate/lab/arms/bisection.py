"""``git bisect`` in a worktree of its own: the user's checkout, index and any bisection of theirs stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gate.check.bisect import Candidates
from gate.errors import MachineError
from gate.git import ask_git, describe_refusal
from gate.lab.arms.worktree import open_worktree, remove_leftover_worktrees
from gate.lab.host.scratch import open_scratch
from gate.records.bisection import Mark
from gate.revisions import find_top

_FIRST = re.compile(r"^# first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_LIMIT_S = 600.0  # of the largest histories


@dataclass(frozen=True, kw_only=True, slots=True)
class GitSearch:
    """A bisection that git drives. Its state is the worktree's own, as git keeps it for each worktree."""

    worktree: Path

    def find_next(self) -> str | Candidates:
        """The commit that git asks about, or its answer.

        Raises:
            MachineError, UsageError: git does not answer.
        """
        log = self._ask("log")
        if found := _FIRST.findall(log):
            return (found[-1],)
        if possible := _POSSIBLE.findall(log):
            return tuple(dict.fromkeys(possible))
        answer = ask_git(self.worktree, "rev-parse", "--verify", "BISECT_HEAD")
        if not answer.is_good:
            raise describe_refusal(self.worktree, answer, "bisect")
        return answer.said

    def mark(self, point: str, mark: Mark) -> None:
        """Tell git what a commit is."""
        self._ask(mark, point)

    def start(self, good: str, bad: str) -> None:
        """Begin between two commits, checking nothing out."""
        self._ask("start", "--no-checkout", bad, good)

    def _ask(self, *arguments: str) -> str:
        answer = ask_git(self.worktree, "bisect", *arguments, limit_s=_LIMIT_S)
        # git ends with 2 where only commits are left that were skipped: its log says which.
        if not answer.is_good and answer.status != 2:  # noqa: PLR2004
            raise describe_refusal(self.worktree, answer, "bisect")
        return answer.said


@contextmanager
def open_git_search(directory: Path, good: str, bad: str) -> Iterator[GitSearch]:
    """Begin a bisection of the repository around ``directory``; nothing of it is left at the end.

    Raises:
        MachineError, UsageError: git cannot make the worktree, or refuses the ends.
    """
    top = find_top(directory)
    remove_leftover_worktrees(top)
    with open_scratch() as scratch, open_worktree(top, good, scratch / "bisection") as worktree:
        search = GitSearch(worktree=worktree)
        search.start(good, bad)
        yield search


def count_between(directory: Path, good: str, bad: str) -> int:
    """Count the commits that a bisection may have to ask about: those of bad that good lacks, less bad.

    Raises:
        MachineError: git does not tell.
    """
    answer = ask_git(directory, "rev-list", "--count", f"{good}..{bad}", limit_s=_LIMIT_S)
    if not answer.is_good or not answer.said.isdecimal():
        raise MachineError(f"git cannot count the commits: {answer.complaint}", "Run `git fsck`.")
    return max(int(answer.said) - 1, 0)
