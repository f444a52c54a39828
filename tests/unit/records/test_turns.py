"""The lines between the lab and the two workers of a pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.files.messages import read_line, write_line
from gate.records.protocol import BlockSize, Offer, RoundPlan, Side, agree_on_sizes

NUMBERS = st.integers(0, 10**6)
SIZES = st.fixed_dictionaries({side: st.builds(BlockSize, timed=NUMBERS, led=NUMBERS) for side in Side})
SECONDS = st.floats(0, 1e6)


@given(st.builds(Offer, super_block_s=SECONDS, sizes=SIZES))
def test_offer_survives_the_line(offer: Offer) -> None:
    """To the last digit."""
    assert read_line(Offer, "ready", write_line("ready", offer)) == offer


@given(st.builds(RoundPlan, super_blocks=NUMBERS, sizes=SIZES))
def test_plan_survives_the_line(plan: RoundPlan) -> None:
    assert read_line(RoundPlan, "rounds", write_line("rounds", plan)) == plan


@given(SECONDS)
def test_turn_survives_the_line(seconds: float) -> None:
    """A block's seconds arrive as they were timed."""
    assert read_line(float, "turn", write_line("turn", seconds)) == seconds


@pytest.mark.parametrize("line", ["", "turn", "turn soon", "turn 1 2", "turn NaN", "turn {}", "ready 0.5"])
def test_another_line_is_none(line: str) -> None:
    """Anything but ``turn`` and a time means that the worker is gone."""
    assert read_line(float, "turn", line) is None


def test_arms_agree_on_the_longer_blocks() -> None:
    """An arm that was disturbed as it sized its blocks runs no fewer calls than the other."""
    disturbed = Offer(super_block_s=0.2, sizes=make_sizes(eager=(1, 0), compiled=(6, 1)))
    other = Offer(super_block_s=0.2, sizes=make_sizes(eager=(3, 1), compiled=(5, 2)))
    agreed = make_sizes(eager=(3, 1), compiled=(6, 2))
    assert agree_on_sizes(disturbed, other) == agreed
    assert agree_on_sizes(other, disturbed) == agreed


def make_sizes(*, eager: tuple[int, int], compiled: tuple[int, int]) -> dict[Side, BlockSize]:
    """Blocks of so many calls: timed ones, and those that lead in."""
    sides = zip(Side, (eager, compiled), strict=True)
    return {side: BlockSize(timed=timed, led=led) for side, (timed, led) in sides}
