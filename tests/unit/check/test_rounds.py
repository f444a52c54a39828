"""When a pair has enough rounds, so that another pair is worth more."""

import math

import pytest

from gate.check import schedule
from gate.check.schedule import _list_changes, compute_error, has_enough_rounds
from gate.decide.constants import LIVE_PAIR_SD, MIN_SUPER_BLOCKS, PROCESS_SD


def make_blocks(changes: list[float]) -> tuple[list[float], list[float]]:
    """Blocks of a steady base, and of a head whose compiled blocks change by these logarithms."""
    base, head = [], []
    for index, change in enumerate(changes):
        outer, inner = (1.0, math.exp(change)) if index % 2 == 0 else (math.exp(change), 1.0)
        base += [1.0] * 4
        head += [outer, inner, inner, outer]
    return base, head


def decide(changes: list[float], opened_s: float = 8.0, rounds_s: float = 4.0) -> bool:
    """Whether blocks with these changes of super-blocks, of a hundred planned, are enough."""
    base, head = make_blocks(changes)
    return has_enough_rounds(base, head, wanted=100, opened_s=opened_s, rounds_s=rounds_s)


def test_few_super_blocks_never_suffice() -> None:
    """Four equal super-blocks are not enough."""
    assert not decide([0.0] * (MIN_SUPER_BLOCKS - 1))
    assert decide([0.0] * MIN_SUPER_BLOCKS)


def make_steps(step: float) -> list[float]:
    """Ten changes around 0, ``step`` apart. Their standard error is 1.094 ``step``.

    Of ten, the outermost on each side counts as the next: 4 of 3.5, 2 of 2.5, of 1.5 and of 0.5 steps.
    Their squares are 66.5, over 10 - 1 - 3 degrees of freedom 11.08; times 1.08 / 10 that is 1.197, or
    1.094 squared.
    """
    return [step * (rank - 4.5) for rank in (0, 9, 1, 8, 2, 7, 3, 6, 4, 5)]


def test_error_of_ten_changes() -> None:
    """The error is 1.094 steps, and an outlier instead of the outermost changes nothing."""
    steps = make_steps(0.01)
    assert compute_error(steps) == pytest.approx(0.01094, rel=1e-3)
    assert compute_error([3.0 if step == max(steps) else step for step in steps]) == compute_error(steps)


@pytest.mark.parametrize(
    ("step", "enough"),
    [
        # Ten super-blocks of 0.4 s, another pair costs 8 s: sqrt(20 * 10) = 14.142 times the error over 0.012
        # super-blocks are wanted. Ten are: up to an error of 0.008485, of steps of 0.007755.
        (0.0077, True),
        (0.0078, False),
    ],
)
def test_number_follows_from_cost_and_variance(step: float, enough: bool) -> None:
    assert decide(make_steps(step)) is enough


def test_expensive_pairs_need_more_rounds() -> None:
    """Rounds that are enough where a pair takes 8 s are not where it takes 80 s."""
    changes = make_steps(0.004)
    assert decide(changes, opened_s=8.0)
    assert not decide(changes, opened_s=80.0)


@pytest.mark.parametrize(("error", "enough"), [(LIVE_PAIR_SD, True), (1.01 * LIVE_PAIR_SD, False)])
def test_planned_rounds_are_enough_up_to_the_assumed_error(
    monkeypatch: pytest.MonkeyPatch, error: float, *, enough: bool
) -> None:
    """That itself is still precise enough."""
    monkeypatch.setattr(schedule, "compute_error", lambda _: error)
    base, head = make_blocks([0.0] * 8)
    assert has_enough_rounds(base, head, wanted=8, opened_s=math.inf, rounds_s=4.0) is enough


@pytest.mark.parametrize(("opened_s", "enough"), [(3.99, True), (4.0, True), (4.01, False)])
def test_rounds_are_enough_where_another_pair_gains_as_much(
    monkeypatch: pytest.MonkeyPatch, opened_s: float, *, enough: bool
) -> None:
    """Eight super-blocks in 4 s, with the error that processes have: another pair of 4 s is no worse."""
    monkeypatch.setattr(schedule, "compute_error", lambda _: PROCESS_SD)
    assert decide([0.0] * 8, opened_s=opened_s) is enough


def test_noise_of_eager_counts_as_well() -> None:
    """A pair whose eager blocks vary goes on."""
    base, compiled = make_blocks(make_steps(0.02))
    eager = [time_s for start in range(0, 40, 4) for time_s in _swap(compiled[start : start + 4])]
    assert not has_enough_rounds(base, eager, wanted=100, opened_s=8.0, rounds_s=4.0)


@pytest.mark.parametrize(("step", "enough"), [(0.0146, True), (0.0147, False)])
def test_planned_rounds_are_enough_at_the_assumed_precision(step: float, enough: bool) -> None:
    """Ten super-blocks with an error of 1.6 %, by steps of 1.462 %, are enough."""
    base, head = make_blocks(make_steps(step))
    assert has_enough_rounds(base, head, wanted=10, opened_s=math.inf, rounds_s=4.0) is enough
    assert not has_enough_rounds(base, head, wanted=11, opened_s=math.inf, rounds_s=4.0)


def test_a_super_block_counts_where_both_sides_have_an_undisturbed_pair() -> None:
    """A super-block counts with one of two pairs of compiled blocks left, and not with none."""
    base, head = make_blocks([0.0] * 10)
    head[1] = base[8] = 0.0
    assert has_enough_rounds(base, head, wanted=10, opened_s=math.inf, rounds_s=4.0)
    head[4] = base[7] = 0.0
    assert not has_enough_rounds(base, head, wanted=10, opened_s=math.inf, rounds_s=4.0)
    assert has_enough_rounds(base, head, wanted=9, opened_s=math.inf, rounds_s=4.0)


def test_a_super_block_has_a_change_of_each_side() -> None:
    """The mean of its two blocks' logarithms, eager's outside in the first one and inside in the second."""
    base = [1.0, 10.0, 20.0, 2.0, 10.0, 1.0, 2.0, 20.0]
    changes = [0.1, 0.3, 0.5, 0.3, -0.2, 0.7, 0.9, 0.0]
    head = [time_s * math.exp(change) for time_s, change in zip(base, changes, strict=True)]
    eager, compiled = _list_changes(base, head)
    assert eager == pytest.approx([0.2, 0.8])
    assert compiled == pytest.approx([0.4, -0.1])
    base[0] = head[2] = head[4] = base[7] = 0.0  # disturbed
    eager, compiled = _list_changes(base, head)
    assert eager == pytest.approx([0.3, 0.8])
    assert compiled == pytest.approx([0.3])


def _swap(blocks: list[float]) -> list[float]:
    outer, inner, _, _ = blocks
    return [inner, outer, outer, inner]


def test_an_infinite_cost_needs_all_rounds() -> None:
    """With an infinite cost not even equal blocks are enough."""
    assert not decide([0.0] * 20, opened_s=math.inf)
