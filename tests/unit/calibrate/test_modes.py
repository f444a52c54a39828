"""Two groups or one."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.calibrate.noise import find_gap

LOGS = st.lists(st.floats(-3, 3), min_size=8, max_size=40)


def test_two_groups_by_hand() -> None:
    """Four values about 0 and four about ln 1.1: the upper ones are a tenth higher."""
    low = [-0.001, 0.001, -0.001, 0.001]
    assert find_gap([*low, *(value + math.log(1.1) for value in low)]) == pytest.approx(0.1)


def test_few_values_say_nothing() -> None:
    """Of seven values nothing is said, however far apart."""
    assert find_gap([0.0] * 4 + [1.0] * 3) is None


def test_equal_values_are_one_group() -> None:
    """Without any variance there is nothing to explain."""
    assert find_gap([0.5] * 8) is None


def test_a_straggler_is_no_group() -> None:
    """One slow trial among nine: a group holds at least a fifth of the values."""
    assert find_gap([0.0, 0.01, 0.0, 0.01, 0.0, 0.01, 0.0, 0.01, 0.3]) is None


@pytest.mark.parametrize("size", [8, 12, 20, 30, 60])
@pytest.mark.parametrize("tail", [0.0, 1.0], ids=["normal", "long tail"])
def test_chance_is_seldom_called_two(size: int, tail: float) -> None:
    """Of 1,000 samples of one group, normal or with a long tail, at most 1.8 % are called two."""
    rng = random.Random(size)  # noqa: S311 - repeatable, not secret
    samples = ([rng.gauss(0, 1) + tail * rng.expovariate(1) for _ in range(size)] for _ in range(1000))
    called = sum(find_gap(sample) is not None for sample in samples)
    assert called <= 18


def test_groups_far_apart_are_found() -> None:
    """Of 200 samples of twelve, half of them eight deviations higher, at least 190 are called two."""
    rng = random.Random(3)  # noqa: S311 - repeatable, not secret
    samples = ([rng.gauss(8 * (number % 2), 1) for number in range(12)] for _ in range(200))
    assert sum(find_gap(sample) is not None for sample in samples) >= 190


@given(logs=LOGS, factor=st.floats(0.1, 10), shift=st.floats(-5, 5), rng=st.randoms())
def test_order_and_place_do_not_matter(
    logs: list[float], factor: float, shift: float, rng: random.Random
) -> None:
    """The groups are those of any order of the values, in any unit, and further apart where all is."""
    moved = [factor * value + shift for value in logs]
    rng.shuffle(moved)
    here, there = find_gap(logs), find_gap(moved)
    if here is not None and there is not None:
        assert math.log1p(there) == pytest.approx(factor * math.log1p(here), abs=1e-6)
