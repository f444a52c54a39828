"""When a pair has run enough rounds: another pair tells more a second then."""

from __future__ import annotations

import math

import pytest

from gate.check.pair_rounds import MIN_SUPER_BLOCKS, has_enough_rounds


def make_blocks(changes: list[float]) -> tuple[list[float], list[float]]:
    """Blocks of a base that never varies, and of a head whose compiled ones change by so much (logarithm)."""
    base, head = [], []
    for index, change in enumerate(changes):
        outer, inner = (1.0, math.exp(change)) if index % 2 == 0 else (math.exp(change), 1.0)
        base += [1.0] * 4
        head += [outer, inner, inner, outer]
    return base, head


def decide(changes: list[float], opened_s: float = 8.0, rounds_s: float = 4.0) -> bool:
    """Ask of blocks with these changes of a super-block."""
    base, head = make_blocks(changes)
    return has_enough_rounds(base, head, opened_s=opened_s, rounds_s=rounds_s)


def test_few_super_blocks_never_suffice() -> None:
    """Four equal super-blocks do not tell how much a fifth differs."""
    assert not decide([0.0] * (MIN_SUPER_BLOCKS - 1))
    assert decide([0.0] * MIN_SUPER_BLOCKS)


@pytest.mark.parametrize(
    ("deviation", "enough"),
    [
        # Ten super-blocks of 0.4 s, another pair costs 8 s: sqrt(20 * pi / 2) = 5.605 times the deviation
        # over 0.012 super-blocks are wanted. Ten are: up to a deviation of 0.02141.
        (0.0213, True),
        (0.0215, False),
    ],
)
def test_number_follows_from_cost_and_variance(deviation: float, enough: bool) -> None:
    """Worked out by hand; changes of plus and minus d, five each, deviate by d * sqrt(10 / 9)."""
    change = deviation / math.sqrt(10 / 9)
    assert decide([change, -change] * 5) is enough


def test_dear_pairs_deserve_more_rounds() -> None:
    """What suffices where another pair takes 8 s does not where it takes 80 s."""
    changes = [0.01, -0.01] * 5
    assert decide(changes, opened_s=8.0)
    assert not decide(changes, opened_s=80.0)


def test_noise_of_eager_counts_as_well() -> None:
    """Eager speaks for the machine: a pair whose eager blocks vary goes on."""
    base, compiled = make_blocks([0.05, -0.05] * 5)
    eager = [time_s for start in range(0, 40, 4) for time_s in _swap(compiled[start : start + 4])]
    assert not has_enough_rounds(base, eager, opened_s=8.0, rounds_s=4.0)


def _swap(blocks: list[float]) -> list[float]:
    outer, inner, _, _ = blocks
    return [inner, outer, outer, inner]


def test_number_without_end_is_asked_for_by_an_infinite_cost() -> None:
    """Where nothing is to end early, not even equal blocks do."""
    assert not decide([0.0] * 20, opened_s=math.inf)
