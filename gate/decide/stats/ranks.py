"""Wilcoxon's signed ranks: exact bounds of the centre of symmetric values, however noisy they are.

Nothing is assumed of the values but that each lies as likely above the centre as below it by the same
amount. Changes of unchanged code are such: either arm could have been called head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, combinations_with_replacement


@lru_cache(maxsize=64)
def count_rank_sums(number: int) -> tuple[int, ...]:
    """How many of the 2^``number`` sets of the ranks 1 to ``number`` have each sum, from 0 on."""
    counts = [1]
    for rank in range(1, number + 1):
        without, with_it = [*counts, *[0] * rank], [*[0] * rank, *counts]
        counts = [one + other for one, other in zip(without, with_it, strict=True)]
    return tuple(counts)


def list_walsh_means(values: Sequence[float]) -> list[float]:
    """The means of all pairs of values, each with itself as well, in ascending order."""
    return sorted(0.5 * (one + other) for one, other in combinations_with_replacement(values, 2))


def compute_rank_bound(values: Sequence[float], p: float) -> float:
    """A lower bound of the centre that is too high with probability ``p`` at most; -inf where none is.

    The ranks of the values above a centre sum up to the number of Walsh means above it (Tukey 1949), so
    the bound is one of these. Ties only make it more careful.
    """
    return compute_rank_interval(values, p)[0]


def compute_rank_interval(values: Sequence[float], p: float) -> tuple[float, float]:
    """Bounds of the centre on both sides, each as :func:`compute_rank_bound`'s."""
    excluded = _count_excluded(len(values), p)
    if not excluded:
        return -math.inf, math.inf
    means = list_walsh_means(values)
    return means[excluded - 1], means[-excluded]


@lru_cache(maxsize=4096)
def _count_excluded(number: int, p: float) -> int:
    """Which Walsh mean from below is the bound: it is above the centre where fewer than so many are below."""
    sums = accumulate(count_rank_sums(number))
    return sum(ways <= p * 2**number for ways in sums)
