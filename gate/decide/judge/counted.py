"""Judges counts: counters, amounts of memory and Python calls, which repeat exactly, or flicker.

What flickers has one value in some processes and another one in the rest, whatever the code is. Only trials
of unchanged code show it: those that are stored, and the base's in pairs.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from statistics import median

from gate.decide.constants import LOOKS, REPEATED_VALUES, SETTLING_PAIRS
from gate.decide.evidence.gather import Question
from gate.decide.judge.comparison import answer_question
from gate.decide.judge.interval import BETTER, UNCHANGED, UNSETTLED, WORSE, Ruling
from gate.metrics import SPECS, Family, Role
from gate.records.cases import Metric
from gate.records.verdict import Change, Comparison, Status

_COUNTED = (Family.EXACT, Family.NEARLY_EXACT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    agreed: int = 0  # values within the threshold of the others of their case
    differs: bool = False  # values of some case differ by more

    def join(self, other: "Repeats") -> "Repeats":
        return Repeats(agreed=self.agreed + other.agreed, differs=self.differs or other.differs)


NO_REPEATS = Repeats()


def count_repeats(questions: Iterable[Question]) -> dict[Metric, Repeats]:
    repeats: dict[Metric, Repeats] = {}
    for question in questions:
        if question.spec.family in _COUNTED:
            differs = max(question.before) - min(question.before) > _compute_tolerance(question)
            agreed = 0 if differs or len(question.before) == 1 else len(question.before)
            sample = Repeats(agreed=agreed, differs=differs)
            repeats[question.metric] = repeats.get(question.metric, NO_REPEATS).join(sample)
    return repeats


def find_flickering(
    repeats: Mapping[Metric, Repeats], presumed: Collection[Metric] = ()
) -> frozenset[Metric]:
    """What differed in unchanged code, and what is ``presumed`` to until REPEATED_VALUES agreed."""
    unknown = {
        metric for metric in presumed if metric in repeats and repeats[metric].agreed < REPEATED_VALUES
    }
    return frozenset({metric for metric, sample in repeats.items() if sample.differs} | unknown)


def count_chances(flickering: Collection[Metric]) -> int:
    specs = [SPECS[metric] for metric in flickering]
    return sum(spec.role is Role.DECIDES and spec.follows is None for spec in specs)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountRules:
    alpha: float = 0.0  # one-sided, of each that flickers
    flickering: frozenset[Metric] = frozenset()
    varied: frozenset[Metric] = frozenset()  # those that were seen to, not presumed to


NO_COUNT_RULES = CountRules()


def judge_counted(question: Question, rules: CountRules) -> Comparison:
    """More is worse, and every value of head must differ from every one before, unless it flickers."""
    before, after, tolerance = question.before, question.after, _compute_tolerance(question)
    low, high = min(after) - max(before), max(after) - min(before)
    status, reason = _rule_counted(before, after, tolerance)
    if question.metric in rules.flickering:
        status, reason = _rule_flickering(before, after, tolerance, rules.alpha)
        if (status, reason) == UNCHANGED and question.metric in rules.varied and len(before) < SETTLING_PAIRS:
            status, reason = UNSETTLED  # before may have been the higher one by luck
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
    return answer_question(question, (status, reason), change=change)


def _rule_counted(before: Sequence[float], after: Sequence[float], tolerance: float) -> Ruling:
    low, high = min(after) - max(before), max(after) - min(before)
    if low > tolerance:
        return WORSE
    if high < -tolerance:
        return BETTER
    return UNCHANGED if high <= tolerance else UNSETTLED


def _rule_flickering(
    before: Sequence[float], after: Sequence[float], tolerance: float, alpha: float
) -> Ruling:
    steady = _rule_counted(before, after, tolerance)
    if steady in (WORSE, BETTER) and compute_apart_p(len(before), len(after)) <= alpha:
        return steady
    if steady not in (UNSETTLED, WORSE):
        return UNCHANGED
    is_more = median(after) - median(before) > tolerance
    if is_more and compute_rank_p(tuple(before), tuple(after)) <= alpha / len(LOOKS):
        return WORSE
    is_known = len(before) >= SETTLING_PAIRS  # how low it goes
    return UNCHANGED if is_known and min(after) - min(before) <= tolerance else UNSETTLED


def compute_apart_p(before: int, after: int) -> float:
    """Probability, at most, that of two flickering values all before are the lower and all after the higher.

    It needs no correction for looks: the first value of head can be higher than all before only once.
    """
    total = before + after
    return (before / total) ** before * (after / total) ** after


@lru_cache(maxsize=1024)
def compute_rank_p(before: tuple[float, ...], after: tuple[float, ...]) -> float:
    """One-sided p of the rank sum of ``after``, exact with ties (Wilcoxon 1945)."""
    ordered = sorted((*before, *after))
    # Twice each value's rank, less one: all sums of as many ranks are lower by as much.
    doubled = {value: bisect_left(ordered, value) + bisect_right(ordered, value) for value in ordered}
    ways = [Counter({0: 1}), *(Counter[int]() for _ in after)]  # by the number of values, and their rank sum
    for value in ordered:
        for size in range(len(after), 0, -1):
            for total, number in ways[size - 1].items():
                ways[size][total + doubled[value]] += number
    reached = sum(doubled[value] for value in after)
    as_high = sum(number for total, number in ways[-1].items() if total >= reached)
    return as_high / math.comb(len(ordered), len(after))


def count_needed_pairs(alpha: float) -> int:
    return next(pairs for pairs in count(1) if compute_apart_p(pairs, pairs) <= alpha)


def _compute_tolerance(question: Question) -> float:
    return max(question.threshold.relative * median(question.before), question.threshold.absolute)
