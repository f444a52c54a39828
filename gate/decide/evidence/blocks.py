"""A latency of a live pair, block by block, without what other programs took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from gate.decide.constants import ALIKE_COST, ALIKE_ERRORS, MIN_UNDISTURBED
from gate.decide.evidence.values import PAIRS_IN_SUPER_BLOCK, compute_speedup
from gate.decide.stats.moments import compute_hodges_lehmann
from gate.records import Metric, Trial

Arms = tuple[Sequence[float], Sequence[float]]  # seconds of a call in each block, base's and head's


def compare_latency(base: Trial, head: Trial, metric: Metric) -> float | None:
    """Log change of a latency, block ``i`` of head against that of base; ``None`` where there is none.

    Of the calls during which no thread waited for a processor, where both arms watched and enough are left:
    what other programs took is no property of either arm. The estimate is Hodges and Lehmann's. Where one
    arm is disturbed more than the other, its own threads may be what disturbs it, and all calls count.
    """
    whole = base.samples.get(metric, ()), head.samples.get(metric, ())
    # Blocks that a recompile spoilt are left out of one arm only: what is left is no pairs then.
    if len(whole[0]) != len(whole[1]):
        return None
    undisturbed = base.undisturbed_s.get(metric, ()), head.undisturbed_s.get(metric, ())
    changes = _list_changes(undisturbed)
    is_watched = len(undisturbed[0]) == len(undisturbed[1]) == len(whole[0])
    if is_watched and len(changes) >= MIN_UNDISTURBED and _is_alike(whole, undisturbed):
        return compute_hodges_lehmann(changes)
    ratio = compute_speedup(*whole)
    return -math.log(ratio) if ratio is not None and 0 < ratio < math.inf else None


def _list_changes(undisturbed: Arms) -> list[float]:
    # A difference of logarithms, since a ratio of what somebody has edited may be no number.
    return [
        math.log(head) - math.log(base)
        for base, head in zip(*undisturbed, strict=False)
        if base > 0 and head > 0
    ]


def _is_alike(whole: Arms, undisturbed: Arms) -> bool:
    """Whether both arms were disturbed alike: in as many blocks all the time, and at the same cost.

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
    return _is_about_nothing(lost, 0.0) and _is_about_nothing(costs, ALIKE_COST)


def _is_about_nothing(values: Sequence[float], negligible: float) -> bool:
    """Whether a mean is as near to zero as its standard error says, or as is ``negligible``."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return False
    return abs(fmean(values)) <= max(negligible, ALIKE_ERRORS * stdev(values) / math.sqrt(len(values)))
