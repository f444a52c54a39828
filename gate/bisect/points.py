"""Between which points to search, and ``git bisect`` in a worktree of its own.

The user's checkout, index and any bisection of theirs stay.
"""

from __future__ import annotations

import hashlib
import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gate.bisect.search import Candidates
from gate.errors import MachineError, UsageError
from gate.git import ask_git, describe_refusal
from gate.lab.arms.worktree import open_worktree, remove_leftover_worktrees
from gate.lab.host.scratch import open_scratch
from gate.records.studies import Mark
from gate.revisions import (
    Revision,
    describe_resolved_commit,
    find_page,
    find_top,
    resolve_ancestor,
    resolve_ref,
)

_POINT_CHARS = 12  # of a commit, in the name of its directory
_FIRST = re.compile(r"^# first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_LIMIT_S = 600.0  # of the largest histories


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """Between what to search: both ends, and all points where they are a list of interpreters."""

    directory: Path  # of gate.yml in the working tree
    good: str
    bad: str
    pythons: tuple[str, ...] = ()
    labels: tuple[str, str] = ("", "")

    @property
    def noun(self) -> str:
        """What a point is."""
        return "interpreter" if self.pythons else "commit"

    def count_between(self) -> int:
        """Count the points that are neither end."""
        if self.pythons:
            return len(self.pythons) - 2
        return _count_between(self.directory, self.good, self.bad)

    def name_directory(self, point: str) -> str:
        """Where the files of a point go: whatever else the list names, an interpreter's are its own."""
        name = hashlib.sha256(point.encode()).hexdigest() if self.pythons else point
        return f"{'python-' if self.pythons else ''}{name[:_POINT_CHARS]}"

    def describe(self, point: str) -> str:
        """A point for a reader: a commit by its short id and its subject."""
        return point if self.pythons else describe_resolved_commit(self.directory, point)

    def find_page(self, point: str) -> str:
        """The address of a commit on GitHub; empty where there is none."""
        return "" if self.pythons else find_page(self.directory, point)

    def find_before(self, first: str) -> str:
        """The point before that one."""
        if self.pythons:
            return self.pythons[self.pythons.index(first) - 1]
        return resolve_ref(self.directory, f"{first}^").commit


def find_ends(options: Namespace, directory: Path) -> Ends:
    """Read the ends.

    Raises:
        UsageError: Neither or both kinds are named; or good is no ancestor of bad, or the same.
    """
    if options.pythons:
        if options.good or options.bad:
            what = "--pythons: the first is good and the last is bad, so --good and --bad say it twice"
            raise UsageError(what, "Leave them out.")
        names = tuple(options.pythons)
        if len(names) < 2 or len(set(names)) < len(names):  # noqa: PLR2004 - two ends
            raise UsageError("--pythons names no list", "Name two interpreters or more, each once, in order.")
        labels = (names[0], names[-1])
        return Ends(directory=directory, good=names[0], bad=names[-1], pythons=names, labels=labels)
    if not options.good:
        raise UsageError(
            "nothing says what is good", "Name a commit with --good, or interpreters with --pythons."
        )
    bad = resolve_ref(directory, options.bad or "HEAD")
    good = _resolve_good(directory, options.good, bad)
    return Ends(directory=directory, good=good.commit, bad=bad.commit, labels=(good.label, bad.label))


def _resolve_good(directory: Path, name: str, bad: Revision) -> Revision:
    good = resolve_ancestor(directory, name, bad.commit)
    if good.commit == bad.commit:
        raise UsageError(
            f"--good and --bad are the same commit: {bad.label}", "Name an older one with --good."
        )
    return good


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


def _count_between(directory: Path, good: str, bad: str) -> int:
    """Count the commits that a bisection may have to ask about: those of bad that good lacks, less bad.

    Raises:
        MachineError: git does not answer.
    """
    answer = ask_git(directory, "rev-list", "--count", f"{good}..{bad}", limit_s=_LIMIT_S)
    if not answer.is_good or not answer.said.isdecimal():
        raise MachineError(f"git cannot count the commits: {answer.complaint}", "Run `git fsck`.")
    return max(int(answer.said) - 1, 0)
