"""The order of blocks, their size, and the way back to samples."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.measure.rounds import compute_block_calls, make_schedule, size_block, split_times
from gate.records.protocol import MIN_SUPER_BLOCKS, BlockSize, Sampling, Side, compute_super_blocks

E, C = Side.EAGER, Side.COMPILED


def test_super_blocks_alternate() -> None:
    """The first super-block is E C C E, the next C E E C, and so on."""
    assert (E, C, C, E, C, E, E, C, E, C, C, E) == make_schedule(3)


@given(super_blocks=st.integers(1, 40), slope=st.floats(-1, 1))
def test_linear_drift_cancels(super_blocks: int, slope: float) -> None:
    """A machine that slows down linearly slows both sides by the same amount on average."""
    schedule = make_schedule(super_blocks)
    durations = [100 + slope * index for index in range(len(schedule))]
    times = split_times(schedule, durations, {E: 1, C: 1})
    assert sum(times[E]) == pytest.approx(sum(times[C]))


def test_times_are_per_call_and_paired() -> None:
    """Durations are divided by the calls of their side, once, and keep the order of their pairs."""
    times = split_times(make_schedule(2), [8, 3, 6, 4, 9, 12, 16, 15], {E: 4, C: 3})
    assert (2.0, 1.0, 3.0, 4.0) == times[E]
    assert (1.0, 2.0, 3.0, 5.0) == times[C]


def test_spoilt_super_block_is_left_out() -> None:
    """A block during which something was compiled takes its super-block with it."""
    times = split_times(make_schedule(2), [1, 99, 2, 3, 4, 5, 6, 7], {E: 1, C: 1}, frozenset({1}))
    assert (5.0, 6.0) == times[E]
    assert (4.0, 7.0) == times[C]


def test_all_spoilt_is_better_than_nothing() -> None:
    """When every super-block is spoilt, all are kept."""
    times = split_times(make_schedule(1), [1, 2, 3, 4], {E: 1, C: 1}, frozenset({0}))
    assert (1.0, 4.0) == times[E]


def test_missing_durations_are_refused() -> None:
    """Times that do not fit the schedule would be given to the wrong side."""
    with pytest.raises(ValueError, match="shorter"):
        split_times(make_schedule(1), [1, 2, 3], {E: 1, C: 1})


@pytest.mark.parametrize(
    ("calls", "elapsed_s", "expected"),
    [
        pytest.param(1, 0.004, 3, id="rounded up"),
        pytest.param(2, 0.004, 5, id="from several calls"),
        pytest.param(1, 0.5, 1, id="at least one"),
        pytest.param(1, 1e-9, 1000, id="at most the maximum"),
        pytest.param(1, 0.0, 1000, id="too fast for the clock"),
    ],
)
def test_block_size(calls: int, elapsed_s: float, expected: int) -> None:
    """A block holds the smallest number of calls that lasts 10 ms."""
    assert expected == compute_block_calls(calls, elapsed_s, Sampling(block_s=0.01))


@pytest.mark.parametrize(
    ("timed", "elapsed_s", "led"),
    [
        pytest.param(100, 0.010, 50, id="of 0.1 ms: 5 ms of them"),
        pytest.param(4, 0.012, 2, id="of 3 ms: the first two are slow"),
        pytest.param(1, 0.010, 1, id="of 10 ms"),
        pytest.param(1, 0.030, 0, id="as long as no lead is worth"),
        pytest.param(1000, 0.001, 1000, id="so short that a block is shorter than its lead should be"),
    ],
)
def test_calls_that_lead_a_block_in(timed: int, elapsed_s: float, led: int) -> None:
    """5 ms of untimed calls before a block; none where a call takes 30 ms or more."""
    assert size_block(timed, elapsed_s) == BlockSize(timed=timed, led=led)


@pytest.mark.parametrize(
    ("super_block_s", "expected"),
    [
        pytest.param(0.1, 100, id="all fit"),
        pytest.param(0.5, 40, id="as many as fit"),
        pytest.param(2.1, 9, id="none that is cut"),
        pytest.param(30.0, MIN_SUPER_BLOCKS, id="never fewer than the least"),
        pytest.param(0.0, 100, id="too fast for the clock"),
    ],
)
def test_slow_cases_get_fewer_super_blocks(super_block_s: float, expected: int) -> None:
    """The rounds stay within their time, as far as a median allows."""
    assert expected == compute_super_blocks(super_block_s, Sampling(super_blocks=100, max_rounds_s=20))


def test_shortened_sampling_has_three_super_blocks_whatever_they_take() -> None:
    """In a pair, too, which may have more of them than a trial."""
    shortened = Sampling(super_blocks=15, drift_seeds=4).shorten()
    assert compute_super_blocks(0.001, shortened) == 3
    assert compute_super_blocks(0.001, replace(shortened, super_blocks=100)) == 3
    # What a run has sampled is kept with it, and decides which runs are joined.
    assert shortened == Sampling(super_blocks=3, max_rounds_s=1e-9, drift_seeds=4)
