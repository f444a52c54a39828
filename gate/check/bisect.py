"""Finding the first of many points at which a metric is worse: what each point is, and how many to ask. Pure.

A point is a commit or an interpreter. Each is held against the good end in pairs, which tell whether it is at
the good end's level or at the bad end's; what was found is held against what is before it by the rules of
every other comparison but for one number: the threshold is half of what the bad end is worse by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gate.decide import Suspect
from gate.metrics import NOISY_DECIDING, SPECS, Family
from gate.records import JUDGED, MAYBE_WORSE, Comparison, Metric, Override, Policy, Status
from gate.records.bisection import Mark

_REASON = "half of what the bad end is worse by"
_GOOD = JUDGED - MAYBE_WORSE


# How a search ended: the first bad point, or those that it may be where some could not be told.
Candidates = tuple[str, ...]


class Search(Protocol):
    """Gives the points to ask about, one after the other: real ``git bisect``, or a list."""

    def find_next(self) -> str | Candidates:
        """The point to ask about next, or the end."""
        ...

    def mark(self, point: str, mark: Mark) -> None:
        """Say what the point is that was asked about."""
        ...


@dataclass(kw_only=True)
class ListSearch:
    """Searches a list whose first point is good and whose last one is bad."""

    points: Sequence[str]
    marks: dict[str, Mark] = field(default_factory=dict)

    def find_next(self) -> str | Candidates:
        """The middle of what is left; beside it, where that could not be told."""
        low, high = self._find_ends()
        left = [point for point in self.points[low + 1 : high] if point not in self.marks]
        if left:
            return left[(len(left) - 1) // 2]
        return tuple(self.points[low + 1 : high + 1])

    def mark(self, point: str, mark: Mark) -> None:
        """Remember it."""
        self.marks[point] = mark

    def _find_ends(self) -> tuple[int, int]:
        """The places of the first bad point, and of the last good one before it."""
        found = [self.marks.get(point) for point in self.points]
        high = next((place for place, mark in enumerate(found) if mark is Mark.BAD), len(found) - 1)
        return max((place for place in range(high) if found[place] is Mark.GOOD), default=0), high


def search_first(
    search: Search, ask: Callable[[str], Mark | None], known: Mapping[str, Mark]
) -> Candidates | None:
    """Ask about one point after the other until the search ends; ``known`` ones are not asked about again.

    ``None`` where ``ask`` gave no answer: its time was up.
    """
    while isinstance(point := search.find_next(), str):
        mark = known[point] if point in known else ask(point)
        if mark is None:
            return None
        search.mark(point, mark)
    return point


def count_steps(between: int) -> int:
    """The most points that have to be asked about, of so many that are neither end."""
    return math.ceil(math.log2(between + 1))


def read_mark(row: Comparison | None) -> Mark:
    """What a point is, by the comparison with the good end: SKIP where that does not tell.

    Drift can be beyond its limit where the good end has none: that tells nothing of the commits in between.
    """
    if row is None or row.baseline is None:
        return Mark.SKIP
    if row.status is Status.REGRESSED:
        return Mark.BAD
    return Mark.GOOD if row.status in _GOOD else Mark.SKIP


def choose_metric(rows: Iterable[Comparison]) -> Comparison | None:
    """The regression to look for where no metric is named; ``None`` where nothing regressed.

    A counter, which takes no statistics; else what is most beyond its threshold.
    """
    regressed = [row for row in rows if row.decides and row.status is Status.REGRESSED]
    exact = [row for row in regressed if SPECS[row.metric].family is Family.EXACT]
    leading = [row for row in regressed if SPECS[row.metric].follows is None]
    return max(exact or leading or regressed, key=lambda row: row.severity, default=None)


def make_suspect(case_id: str, metric: Metric | None) -> Suspect:
    """What pairs must measure for one metric: itself, and what it follows; all where none is named."""
    if metric is None:
        return Suspect(case_id=case_id, metrics=NOISY_DECIDING)
    leader = SPECS[metric].follows
    return Suspect(case_id=case_id, metrics=(metric,) if leader is None else (metric, leader))


def split_difference(policy: Policy, row: Comparison) -> Policy:
    """Move the threshold of the metric to half of what this comparison of the bad end says.

    Counters have none: any change of them counts. A threshold is never made smaller.
    """
    spec = SPECS[row.metric]
    if spec.family is Family.EXACT or row.change is None or row.threshold is None:
        return policy
    half, relative = row.change.centre / 2, row.threshold.relative
    part = {"absolute": max(half, row.threshold.absolute)}
    if spec.family is not Family.LOG2:
        part = {"relative": max(half, relative)}
    metrics = {row.metric, spec.follows} - {None}
    more = tuple(
        Override(case=row.case_id, metric=metric, reason=_REASON, **part) for metric in metrics if metric
    )
    return replace(policy, overrides=(*policy.overrides, *more))
