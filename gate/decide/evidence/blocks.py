"""A latency of a live pair, block by block, without what other programs took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

from gate.decide.constants import ALIKE_COST, ALIKE_ERRORS, MIN_UNDISTURBED
from gate.decide.evidence.values import PAIRS_IN_SUPER_BLOCK, compute_speedup
from gate.decide.stats.moments import compute_hodges_lehmann
from gate.records import Metric, Trial

Arms = tuple[Sequence[float], Sequence[float]]  # seconds of a call in each block, base's and head's


def compare_latency(base: Trial, head: Trial, metric: Metric, *, leaves_out: bool = True) -> float | None:
    """Log change of a latency, block ``i`` of head against that of base; ``None`` where there is none.

    Of the calls during which no thread waited for a processor, where that ``leaves_out`` nothing of an arm's
    own, both arms watched and enough are left: what other programs took is no property of either arm. The
    estimate is Hodges and Lehmann's. Where one arm is disturbed more than the other, its own threads may be
    what disturbs it, and all calls count.
    """
    whole, undisturbed = _take_arms(base, head, metric)
    # Blocks that a recompile spoilt are left out of one arm only: what is left is no pairs then.
    if len(whole[0]) != len(whole[1]):
        return None
    changes = _list_changes(undisturbed)
    is_enough = leaves_out and _is_watched(whole, undisturbed) and len(changes) >= MIN_UNDISTURBED
    if is_enough and _is_alike(*_compare_disturbances(whole, undisturbed)):
        return compute_hodges_lehmann(changes)
    ratio = compute_speedup(*whole)
    return -math.log(ratio) if ratio is not None and 0 < ratio < math.inf else None


def are_disturbed_alike(pairs: Iterable[tuple[Trial, Trial]], metric: Metric) -> bool:
    """Whether both arms were disturbed alike over all pairs of a case, base's trial and head's.

    One pair tells too little of an arm whose own threads run now and then.
    """
    lost: list[float] = []
    costs: list[float] = []
    for base, head in pairs:
        whole, undisturbed = _take_arms(base, head, metric)
        if _is_watched(whole, undisturbed):
            more = _compare_disturbances(whole, undisturbed)
            lost, costs = lost + more[0], costs + more[1]
    return _is_alike(lost, costs)


def _take_arms(base: Trial, head: Trial, metric: Metric) -> tuple[Arms, Arms]:
    """The times of all calls and those of undisturbed ones."""
    whole = base.samples.get(metric, ()), head.samples.get(metric, ())
    return whole, (base.undisturbed_s.get(metric, ()), head.undisturbed_s.get(metric, ()))


def _is_watched(whole: Arms, undisturbed: Arms) -> bool:
    return len(whole[0]) == len(whole[1]) == len(undisturbed[0]) == len(undisturbed[1])


def _list_changes(undisturbed: Arms) -> list[float]:
    # A difference of logarithms, since a ratio of what somebody has edited may be no number.
    return [
        math.log(head) - math.log(base)
        for base, head in zip(*undisturbed, strict=False)
        if base > 0 and head > 0
    ]


def _compare_disturbances(whole: Arms, undisturbed: Arms) -> tuple[list[float], list[float]]:
    """How many more blocks base lost than head in each super-block, and how much more they cost head (log).

    What disturbs lasts for several blocks, so these are no draws of their own. Super-blocks are, nearly: they
    last longer than the slices for which other programs keep a core.
    """
    lost: list[float] = []
    costs: list[float] = []
    for start in range(0, len(whole[0]), PAIRS_IN_SUPER_BLOCK):
        end = start + PAIRS_IN_SUPER_BLOCK
        blocks = list(zip(*(times[start:end] for times in (*whole, *undisturbed)), strict=True))
        lost.append(sum((base == 0) - (head == 0) for _, _, base, head in blocks))
        known = [
            math.log(all_head) - math.log(head) - math.log(all_base) + math.log(base)
            for all_base, all_head, base, head in blocks
            if min(all_base, all_head, base, head) > 0
        ]
        costs += [fmean(known)] if known else []
    return lost, costs


def _is_alike(lost: Sequence[float], costs: Sequence[float]) -> bool:
    """Whether both arms were disturbed alike: in as many blocks all the time, and at the same cost."""
    return _is_about_nothing(lost, 0.0) and _is_about_nothing(costs, ALIKE_COST)


def _is_about_nothing(values: Sequence[float], negligible: float) -> bool:
    """Whether a mean is as near to zero as its standard error says, or as is ``negligible``."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return False
    return abs(fmean(values)) <= max(negligible, ALIKE_ERRORS * stdev(values) / math.sqrt(len(values)))
