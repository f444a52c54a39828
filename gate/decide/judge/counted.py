"""Judges what is counted: counters, amounts of memory and Python calls, which repeat, or flicker.

What flickers is one value in some processes and another one in the rest, whatever the code is. Only trials
that nothing changed show it: those that are stored, and the base's in pairs.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from gate.decide.constants import LOOKS, REPEATED_VALUES, SETTLING_PAIRS
from gate.decide.evidence.values import Question
from gate.decide.judge.interval import BETTER, CLEAR, OPEN, WORSE, Ruling
from gate.metrics import SPECS, Family, Role
from gate.records.cases import Metric
from gate.records.verdict import Change, Comparison, Status

_COUNTED = (Family.EXACT, Family.NEARLY_EXACT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    """How a metric repeated in trials that nothing changed, over cases."""

    agreed: int = 0  # values that others of their case are within the threshold of
    differs: bool = False  # those of a case differ by more

    def join(self, other: "Repeats") -> "Repeats":
        """Both together."""
        return Repeats(agreed=self.agreed + other.agreed, differs=self.differs or other.differs)


NO_REPEATS = Repeats()


def count_repeats(questions: Iterable[Question]) -> dict[Metric, Repeats]:
    """Count how often each metric repeated in what these questions compare with."""
    found: dict[Metric, Repeats] = {}
    for one in questions:
        if one.spec.family in _COUNTED:
            differs = max(one.before) - min(one.before) > _compute_tolerance(one)
            agreed = 0 if differs or len(one.before) == 1 else len(one.before)
            repeats = Repeats(agreed=agreed, differs=differs)
            found[one.metric] = found.get(one.metric, NO_REPEATS).join(repeats)
    return found


def find_flickering(
    repeats: Mapping[Metric, Repeats], presumed: Collection[Metric] = ()
) -> frozenset[Metric]:
    """Find what differed where nothing changed, and what is ``presumed`` to until enough values agreed."""
    unknown = {one for one in presumed if one in repeats and repeats[one].agreed < REPEATED_VALUES}
    return frozenset({metric for metric, one in repeats.items() if one.differs} | unknown)


def count_chances(flickering: Collection[Metric]) -> int:
    """Count the metrics that convict a case by themselves, of those that flicker."""
    specs = [SPECS[metric] for metric in flickering]
    return sum(one.role is Role.DECIDES and one.follows is None for one in specs)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountRules:
    """What judging a count needs from all the cases."""

    alpha: float = 0.0  # one-sided, of each that flickers
    flickering: frozenset[Metric] = frozenset()
    shown: frozenset[Metric] = frozenset()  # those of them that nobody only presumes to


NO_COUNT_RULES = CountRules()


def judge_counted(question: Question, rules: CountRules) -> Comparison:
    """Judge a counter or an amount: more is worse, and every value of head counts against every stored one.

    Noise is far below what counts, so that nothing is left to chance while each arm agrees with itself. What
    flickers is certain by as many values as the error budget asks for, and clear where a value of head is as
    low as any before.
    """
    before, after, tolerance = question.before, question.after, _compute_tolerance(question)
    low, high = min(after) - max(before), max(after) - min(before)
    status, reason = _rule_counted(before, after, tolerance)
    if question.metric in rules.flickering:
        status, reason = _rule_flickering(before, after, tolerance, rules.alpha)
        if (status, reason) == CLEAR and question.metric in rules.shown and len(before) < SETTLING_PAIRS:
            status, reason = OPEN  # before may have been the higher one by luck
    if question.spec.role is Role.EXPLAINS and status is not Status.INCONCLUSIVE:
        status = Status.UNCHANGED
    is_ratio = question.spec.is_ratio
    scale = (median(before) or 1.0) if is_ratio else 1.0
    noticed = tolerance + max(before) - min(before)
    change = Change(
        centre=(median(after) - median(before)) / scale,
        low=low / scale,
        high=high / scale,
        detectable=(noticed if is_ratio else max(1.0, noticed)) / scale,
    )
    return question.find(status, reason, change)


def _rule_counted(before: Sequence[float], after: Sequence[float], tolerance: float) -> Ruling:
    low, high = min(after) - max(before), max(after) - min(before)
    if low > tolerance:
        return WORSE
    if high < -tolerance:
        return BETTER
    return CLEAR if high <= tolerance else OPEN


def _rule_flickering(
    before: Sequence[float], after: Sequence[float], tolerance: float, alpha: float
) -> Ruling:
    steady = _rule_counted(before, after, tolerance)
    if steady in (WORSE, BETTER) and compute_apart_p(len(before), len(after)) <= alpha:
        return steady
    if steady not in (OPEN, WORSE):
        return CLEAR
    is_more = median(after) - median(before) > tolerance
    if is_more and compute_rank_p(tuple(before), tuple(after)) <= alpha / len(LOOKS):
        return WORSE
    is_known = len(before) >= SETTLING_PAIRS  # how low it goes
    return CLEAR if is_known and min(after) - min(before) <= tolerance else OPEN


def compute_apart_p(before: int, after: int) -> float:
    """How likely so many values of head are all the higher of two that a count flickers between.

    And all before the lower, at most: by whichever rate makes that likeliest. As more values come this can
    only happen first once, whatever the number of looks.
    """
    total = before + after
    return (before / total) ** before * (after / total) ** after


@lru_cache(maxsize=1024)
def compute_rank_p(before: tuple[float, ...], after: tuple[float, ...]) -> float:
    """One-sided p of the rank sum of ``after``, exact for equal values, too (Wilcoxon 1945)."""
    ordered = sorted((*before, *after))
    doubled = {value: bisect_left(ordered, value) + bisect_right(ordered, value) + 1 for value in ordered}
    ways = [Counter({0: 1}), *(Counter[int]() for _ in after)]  # by the number of values, and their rank sum
    for value in ordered:
        for size in range(len(after), 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + doubled[value]] += count
    reached = sum(doubled[value] for value in after)
    as_high = sum(count for total, count in ways[-1].items() if total >= reached)
    return as_high / math.comb(len(ordered), len(after))


def count_needed_pairs(alpha: float) -> int:
    """The fewest pairs that convict what flickers."""
    return next(pairs for pairs in range(1, 100) if compute_apart_p(pairs, pairs) <= alpha)


def _compute_tolerance(question: Question) -> float:
    return max(question.threshold.relative * median(question.before), question.threshold.absolute)
