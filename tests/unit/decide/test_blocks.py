"""Blocks of a live pair: disturbances from outside are left out, an arm's own are not."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.evidence.pairs import Pair, collect_paired, compare_latency
from gate.records.cases import Metric
from gate.records.run import Pairing, Trial

LATENCY = Metric.COMPILED_LATENCY


def make_arm(whole: Sequence[float], undisturbed: Sequence[float] = ()) -> Trial:
    return Trial(
        case_id="a/x",
        index=1,
        pairing=Pairing.LIVE,
        samples={LATENCY: tuple(whole)},
        undisturbed_s={LATENCY: tuple(undisturbed)} if undisturbed else {},
    )


def disturb(calm: Sequence[float], seed: int) -> list[float]:
    """Blocks take up to three times as long, at random."""
    generator = random.Random(seed)  # noqa: S311 - not a secret
    return [seconds * generator.uniform(1.0, 3.0) for seconds in calm]


def test_what_other_programs_took_is_left_out() -> None:
    """Blocks of 10 ms, at random 1 to 3 times as long, still show that head is 10 % slower."""
    base, head = [0.010] * 20, [0.011] * 20
    sides = make_arm(disturb(base, 1), base), make_arm(disturb(head, 2), head)
    assert compare_latency(*sides, LATENCY) == pytest.approx(math.log(1.1))
    paired = collect_paired([Pair(base=sides[0], head=sides[1])])
    assert paired[LATENCY].changes[0] == pytest.approx(math.log(1.1))


def test_estimate_by_hand() -> None:
    """Changes of 0, 0, 0, 0, 0.3 and 0.6 have 21 means: ten are 0, the eleventh is 0.15."""
    base = [1.0] * 6
    head = [math.exp(change) for change in (0.0, 0.0, 0.0, 0.0, 0.3, 0.6)]
    assert compare_latency(make_arm(base, base), make_arm(head, head), LATENCY) == pytest.approx(0.15)


def test_blocks_without_an_undisturbed_call_are_no_pairs() -> None:
    """Two blocks of each arm are left out; the other six pairs are 20 % slower."""
    base, head = [1.0] * 10, [1.2] * 10
    base[0] = base[1] = head[2] = head[3] = 0.0
    assert compare_latency(make_arm([2.0] * 10, base), make_arm([2.4] * 10, head), LATENCY) == pytest.approx(
        math.log(1.2)
    )


def test_an_arm_that_disturbs_itself_is_not_excused() -> None:
    """Blocks that wait for head's own threads count, and show half more time."""
    calm = [1.0] * 30
    noisy = [1.0 + 0.002 * (index % 3) for index in range(30)]
    of_head = [1.5 + 0.01 * (index % 5) for index in range(30)]
    paired = collect_paired([Pair(base=make_arm(noisy, calm), head=make_arm(of_head, calm))])
    assert paired[LATENCY].changes[0] == pytest.approx(math.log(1.52), abs=0.01)


@pytest.mark.parametrize(("pairs", "expected"), [(1, 0.0), (3, math.log(1.5) / 2)])
def test_an_arm_that_disturbs_itself_now_and_then_shows_over_all_pairs(pairs: int, expected: float) -> None:
    """In every other super-block head takes half longer and has no undisturbed call.

    That is two blocks or none in ten super-blocks: one pair may be chance, (2 + 0) / 2 = 1 where the standard
    error is a third; three pairs are not.
    """
    base = make_arm([1.0] * 20, [1.0] * 20)
    head = make_arm([1.5, 1.5, 1.0, 1.0] * 5, [0.0, 0.0, 1.0, 1.0] * 5)
    paired = collect_paired([Pair(base=base, head=head)] * pairs)
    assert list(paired[LATENCY].changes) == [pytest.approx(expected)] * pairs


def test_arms_that_lose_as_many_blocks_are_disturbed_alike() -> None:
    """In every other super-block each arm loses one block, in which head takes twice as long."""
    cost = (2.002, 2.002, 2.002, 2.002, 1.998, 1.998, 1.998, 1.998) * 8
    base = make_arm(cost, [0.0, 1.0, 1.0, 1.0] * 16)
    head = make_arm([2.2, 4.4, 2.2, 2.2] * 16, [1.1, 0.0, 1.1, 1.1] * 16)
    paired = collect_paired([Pair(base=base, head=head)])
    assert paired[LATENCY].changes[0] == pytest.approx(math.log(1.1))


@pytest.mark.parametrize(("blocks", "expected"), [(2, 1.5), (4, 1.2)])
def test_two_super_blocks_show_that_arms_are_disturbed_alike(blocks: int, expected: float) -> None:
    """Of one nobody knows what is chance: its blocks count as a whole."""
    base = make_arm((2.0, 2.0, 3.0, 3.0)[:blocks], [1.0] * blocks)
    head = make_arm((3.0, 3.0, 3.0, 3.0)[:blocks], [1.2] * blocks)
    paired = collect_paired([Pair(base=base, head=head)])
    assert paired[LATENCY].changes[0] == pytest.approx(math.log(expected))


def test_a_program_that_disturbs_one_arm_for_a_while_is_left_out() -> None:
    """Eight disturbed blocks in a row of head and two of base are four draws, not ten."""
    base, head = [1.0] * 40, [1.1] * 40
    head[10:18] = [0.0] * 8
    base[30:32] = [0.0] * 2
    change = compare_latency(make_arm([2.0] * 40, base), make_arm([2.2] * 40, head), LATENCY)
    assert change == pytest.approx(math.log(1.1))


def test_an_arm_that_never_runs_undisturbed_is_not_excused() -> None:
    """Blocks count where half of head's and none of base's have no undisturbed call."""
    calm = [1.0] * 30
    of_head, left = [2.0] * 30, [1.0, 0.0] * 15
    paired = collect_paired([Pair(base=make_arm(calm, calm), head=make_arm(of_head, left))])
    assert paired[LATENCY].changes[0] == pytest.approx(math.log(2.0))


def test_arms_of_which_one_was_not_watched_are_compared_whole() -> None:
    """Blocks are compared whole if an older run recorded no disturbances."""
    calm = [1.0] * 10
    assert compare_latency(make_arm([2.0] * 10, calm), make_arm([3.0] * 10), LATENCY) == pytest.approx(
        math.log(1.5)
    )


def test_a_file_with_other_numbers_of_blocks_is_compared_whole() -> None:
    """Blocks are compared whole if their numbers do not match."""
    change = compare_latency(make_arm([2.0] * 10, [1.0] * 9), make_arm([3.0] * 10, [1.0] * 9), LATENCY)
    assert change == pytest.approx(math.log(1.5))


@pytest.mark.parametrize("whole", [0.0, 1e-300, 1e300])
def test_times_that_nobody_measured_are_no_crash(whole: float) -> None:
    """Any non-negative times of an edited file give a number or nothing."""
    base, head = make_arm([whole] * 10, [1e300] * 10), make_arm([1.0] * 10, [1e-300] * 10)
    for change in (compare_latency(base, head, LATENCY), compare_latency(head, base, LATENCY)):
        assert change is None or math.isfinite(change)


@pytest.mark.parametrize(("base_s", "head_s"), [(1e300, 1e-300), (1e-300, 1e300)])
def test_a_ratio_that_is_no_number_is_no_change(base_s: float, head_s: float) -> None:
    """Neither infinity nor zero has a logarithm."""
    assert compare_latency(make_arm([base_s] * 2), make_arm([head_s] * 2), LATENCY) is None


def test_blocks_that_one_arm_lost_are_not_compared() -> None:
    """Super-blocks that a recompile removed from one arm are not compared."""
    assert compare_latency(make_arm([1.0] * 4), make_arm([1.0] * 2), LATENCY) is None


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=6, max_size=30))
def test_exchanging_the_arms_turns_the_change_around(blocks: list[tuple[float, float]]) -> None:
    """Exchanged arms change the sign only."""
    base, head = (make_arm(times, times) for times in zip(*blocks, strict=True))
    there, back = compare_latency(base, head, LATENCY), compare_latency(head, base, LATENCY)
    assert there is not None
    assert back == pytest.approx(-there, abs=1e-9)
