"""Between which points to search, and which of them are next. git ranks commits, as ``git bisect`` does."""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gate.bisect.search import rank_list
from gate.errors import UsageError
from gate.git import read_git
from gate.revisions import describe_resolved_commit, resolve_ancestor, resolve_ref

_POINT_CHARS = 12  # of a commit, in the name of its directory
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

    def list_after_good(self) -> Sequence[str]:
        """List all points after the good end, in their order; the bad end is the last."""
        if self.pythons:
            return self.pythons[1:]
        return self._list_commits("--reverse", [self.good], self.bad)

    def rank(self, good: Sequence[str], bad: str) -> Sequence[str]:
        """Rank what may be the first bad point; see :data:`gate.bisect.search.RankPoints`."""
        if self.pythons:
            return rank_list(self.pythons, good, bad)
        return self._list_commits("--bisect-all", good, bad)

    def _list_commits(self, how: str, good: Sequence[str], bad: str) -> list[str]:
        said = read_git(self.directory, "rev-list", how, bad, "--not", *good, limit_s=_LIMIT_S)
        return [line.split()[0] for line in said.decode().splitlines()]

    def name_directory(self, point: str) -> str:
        """Where the files of a point go: whatever else the list names, an interpreter's are its own."""
        name = hashlib.sha256(point.encode()).hexdigest() if self.pythons else point
        return f"{'python-' if self.pythons else ''}{name[:_POINT_CHARS]}"

    def describe(self, point: str) -> str:
        """A point for a reader: a commit by its short id and its subject."""
        return point if self.pythons else describe_resolved_commit(self.directory, point)

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
    good = resolve_ancestor(directory, options.good, bad.commit)
    if good.commit == bad.commit:
        raise UsageError(
            f"--good and --bad are the same commit: {bad.label}", "Name an older one with --good."
        )
    return Ends(directory=directory, good=good.commit, bad=bad.commit, labels=(good.label, bad.label))
