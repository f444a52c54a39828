"""Between what ``bisect`` searches, and for which metric: as named on the command line."""

from __future__ import annotations

import hashlib
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from gate.errors import UsageError
from gate.lab.arms.bisection import count_between
from gate.metrics import SPECS, Role
from gate.records import Metric
from gate.revisions import Revision, describe_resolved_commit, find_page, resolve_ancestor, resolve_ref

_POINT_CHARS = 12  # of a commit, in the name of its directory


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
        return count_between(self.directory, self.good, self.bad)

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


def parse_metric(name: str | None) -> Metric | None:
    """Read the metric that is named.

    Raises:
        UsageError: It is none that decides.
    """
    if name is None:
        return None
    known = {str(metric): metric for metric in SPECS if SPECS[metric].role is Role.DECIDES}
    if name not in known:
        raise UsageError(f"METRIC: {name!r} is no metric that decides", f"Name one of {', '.join(known)}.")
    return known[name]


def _resolve_good(directory: Path, name: str, bad: Revision) -> Revision:
    good = resolve_ancestor(directory, name, bad.commit)
    if good.commit == bad.commit:
        raise UsageError(
            f"--good and --bad are the same commit: {bad.label}", "Name an older one with --good."
        )
    return good
