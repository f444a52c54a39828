"""Signed ranks: the exact distribution of their sum, and the bounds that follow from it."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from gate.decide.stats.ranks import (
    compute_rank_bound,
    compute_rank_interval,
    count_rank_sums,
    list_walsh_means,
)

VALUES = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=12)


def test_rank_sums_by_hand() -> None:
    """Of 1, 2 and 3 the sets are {}, 1, 2, 3 and 12, 13, 23, 123: only a sum of 3 comes twice."""
    assert count_rank_sums(3) == (1, 1, 1, 2, 1, 1, 1)
    assert count_rank_sums(0) == (1,)


@pytest.mark.parametrize("number", [1, 4, 7, 10])
def test_rank_sums_are_those_of_all_sets(number: int) -> None:
    """Every one of the 2^n sets of ranks is counted once, by its sum."""
    counted = [0] * (number * (number + 1) // 2 + 1)
    for taken in product((0, 1), repeat=number):
        counted[sum(rank for rank, is_in in enumerate(taken, 1) if is_in)] += 1
    assert count_rank_sums(number) == tuple(counted)


def test_walsh_means_by_hand() -> None:
    """0, 1 and 8, each with itself and each other."""
    assert list_walsh_means([8.0, 0.0, 1.0]) == [0.0, 0.5, 1.0, 4.0, 4.5, 8.0]


def test_bound_by_hand() -> None:
    """The smallest of five is above the centre in 1 of 32: a bound at 5 %, and at 3 % there is none.

    At 10 % it is the third Walsh mean, for 3 of 32 sets of ranks have a sum of 2 at most.
    """
    values = [2.0, 0.0, 8.0, 4.0, 16.0]
    assert list_walsh_means(values)[:3] == [0.0, 1.0, 2.0]
    assert compute_rank_bound(values, 0.05) == 0.0
    assert compute_rank_bound(values, 0.03) == -math.inf
    assert compute_rank_bound(values, 0.10) == 2.0


def test_interval_by_hand() -> None:
    """The largest means of two of the same five are 16, 12, 10, 9 and 8: at 10 % the third ends it."""
    assert compute_rank_interval([2.0, 0.0, 8.0, 4.0, 16.0], 0.10) == (2.0, 10.0)


def test_no_value_has_no_bound() -> None:
    """Nothing is known of nothing."""
    assert compute_rank_bound([], 0.05) == -math.inf
    assert compute_rank_interval([], 0.05) == (-math.inf, math.inf)


@pytest.mark.parametrize("p", [0.05, 0.0025, 0.0002])
def test_bound_excludes_what_the_test_rejects(p: float) -> None:
    """For 200 samples the bound is above zero exactly where Wilcoxon's exact test says so."""
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret
    for _ in range(200):
        values = [rng.gauss(0.6, 1) for _ in range(16)]
        rejected = wilcoxon(values, alternative="greater", method="exact").pvalue <= p
        assert (compute_rank_bound(values, p) > 0) == rejected


@given(sizes=VALUES, p=st.sampled_from([0.001, 0.02, 0.05, 0.2]))
def test_bound_is_above_the_centre_no_oftener_than_promised(sizes: list[float], p: float) -> None:
    """Of all ways to give values signs at most a share ``p`` is bounded above zero, with ties and zeros."""
    sizes = sizes[:8]
    signs = list(product((-1.0, 1.0), repeat=len(sizes)))
    drawn = ([sign * size for sign, size in zip(way, sizes, strict=True)] for way in signs)
    assert sum(compute_rank_bound(values, p) > 0 for values in drawn) <= p * len(signs)


@given(values=VALUES, shift=st.floats(-1.0, 1.0))
def test_bound_moves_with_the_values(values: list[float], shift: float) -> None:
    """All values larger by so much, the bound larger by as much."""
    moved = compute_rank_bound([value + shift for value in values], 0.1)
    assert moved == pytest.approx(compute_rank_bound(values, 0.1) + shift, abs=1e-9)
