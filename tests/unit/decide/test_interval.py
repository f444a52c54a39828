"""The interval of a noisy metric, and its level."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.judge.interval import Bar, Level, Reading, read_stored
from gate.decide.judge.machine import SESSION
from gate.decide.stats import Variance, summarize_logs
from gate.records.cases import Metric, Threshold

BAR = Bar(alpha=0.001, threshold=Threshold(relative=0.05, absolute=0.0))
EDGE = math.log(1.05)
PRIOR = Variance(value=0.02**2, df=4.0)
LATENCY = Metric.COMPILED_LATENCY
TIMES = st.lists(st.floats(1e-3, 1e-1), min_size=3, max_size=6)
CLEAR, OPEN, BEYOND = Level
T90, T95, T975, T999 = 1.372184, 1.812461, 2.228139, 4.143700  # of 10 degrees of freedom


def read(
    before: Sequence[float], after: Sequence[float], metric: Metric = LATENCY, shift: float = 0.0
) -> Reading:
    arms = summarize_logs(before, after)
    assert arms is not None
    return read_stored(metric, arms, PRIOR, SESSION, shift)


def make_reading(change: float, error: float = 0.02, df: float = 10.0, baseline: float = 0.01) -> Reading:
    return Reading(
        change=change,
        error=error,
        df=df,
        noise=Variance(value=error**2, df=df),
        baseline=baseline,
        candidate=0.01,
        trials=3,
        baseline_trials=5,
    )


def test_reading_by_hand() -> None:
    """Five equal trials at 10 ms, three at 13 ms: ln 1.3, s2 = 4 x 4e-4 / 10, plus the session's 1 %."""
    reading = read([0.010] * 5, [0.013] * 3)
    assert reading.change == pytest.approx(math.log(1.3))
    assert reading.noise.df == 10.0
    assert reading.error == pytest.approx(math.sqrt(1.6e-4 * (1 / 3 + 1 / 5) + 1e-4))


def test_shift_of_the_machine_is_taken_away() -> None:
    """30 % slower on a machine that is 30 % slower is no change."""
    assert read([0.010] * 5, [0.013] * 3, shift=math.log(1.3)).change == pytest.approx(0.0)


def test_a_change_of_exactly_the_edge_is_not_beyond_it() -> None:
    """The next larger number is."""
    edge = BAR.compute_log_edge(make_reading(0.0))
    assert edge == pytest.approx(EDGE)
    changes = (edge, math.nextafter(edge, 1.0))
    assert [BAR.is_exceeded_by(make_reading(change)) for change in changes] == [False, True]


def test_lower_speedup_is_worse() -> None:
    """A speedup from 2x to 1x is ln 2 worse, shown as 100 %."""
    reading = read([2.0] * 5, [1.0] * 3, metric=Metric.WARM_SPEEDUP)
    assert reading.change == pytest.approx(math.log(2))
    assert reading.make_change(0.1).centre == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("edges", "error", "change", "level"),
    [
        pytest.param(1.0, 0.02, EDGE + T999 * 0.02 + 1e-4, BEYOND, id="lower bound beyond the edge"),
        pytest.param(1.0, 0.02, EDGE + T999 * 0.02 - 1e-4, OPEN, id="lower bound at the edge"),
        pytest.param(1.0, 0.02, EDGE - T90 * 0.02 + 1e-4, OPEN, id="upper bound at the edge"),
        pytest.param(1.0, 0.02, EDGE - T90 * 0.02 - 1e-4, CLEAR, id="upper bound below the edge"),
        pytest.param(0.7, 0.02, 0.7 * EDGE - T90 * 0.02 + 1e-4, OPEN, id="upper bound at 0.7 edges"),
        pytest.param(0.7, 0.02, 0.7 * EDGE - T90 * 0.02 - 1e-4, CLEAR, id="upper bound below 0.7 edges"),
        pytest.param(1.5, 0.02, 1.5 * EDGE - T90 * 0.02 + 1e-4, OPEN, id="upper bound at 1.5 edges"),
        pytest.param(1.5, 0.02, 1.5 * EDGE - T90 * 0.02 - 1e-4, CLEAR, id="upper bound below 1.5 edges"),
        pytest.param(1.5, 0.005, EDGE + 1e-4, OPEN, id="estimated beyond one edge"),
        pytest.param(1.5, 0.005, EDGE - 1e-4, CLEAR, id="estimated below one edge"),
        pytest.param(1.0, 2 * EDGE / T90 + 1e-4, -1.0, OPEN, id="low by luck: two edges wide"),
        pytest.param(1.0, 2 * EDGE / T90 - 1e-4, -1.0, CLEAR, id="narrower than two edges"),
    ],
)
def test_level_by_hand(edges: float, error: float, change: float, level: Level) -> None:
    """The edge is ln 1.05, the lower bound t(.999) = 4.144 errors below, the upper t(.90) = 1.372 above."""
    assert replace(BAR, edges=edges).classify(make_reading(change, error)) is level


def test_twice_as_slow_by_ten_microseconds_is_below_a_floor_of_twenty() -> None:
    """The absolute threshold is three times 10 us, and two thirds of 30 us."""
    bar = Bar(alpha=0.001, threshold=Threshold(relative=0.05, absolute=20e-6))
    assert bar.classify(make_reading(math.log(2), baseline=10e-6)) is CLEAR
    assert bar.classify(make_reading(math.log(2), baseline=30e-6)) is BEYOND


@pytest.mark.parametrize(
    ("edges", "error", "largest"),
    [(0.7, 0.02, 0.7 * EDGE - T90 * 0.02), (1.0, 0.02, EDGE - T90 * 0.02), (1.5, 0.015, EDGE)],
)
def test_detectable_change_by_hand(edges: float, error: float, largest: float) -> None:
    """The largest estimate that clears, and t(.95) = 1.812 errors above it."""
    detectable = replace(BAR, edges=edges).compute_detectable(make_reading(0.0, error))
    assert detectable == pytest.approx(math.expm1(largest + T95 * error), rel=1e-5)


@pytest.mark.parametrize("edges", [0.7, 1.0, 1.5])
def test_detectable_change_is_detected_as_often_as_it_says(edges: float) -> None:
    """95 % of 4,000 estimates around the detectable change are not cleared."""
    rng = random.Random(4)  # noqa: S311 - repeatable, not secret
    error, bar = 0.01, replace(BAR, edges=edges)
    true = math.log1p(bar.compute_detectable(make_reading(0.0, error, 1e6)))
    drawn = (make_reading(rng.gauss(true, error), error, 1e6) for _ in range(4000))
    assert sum(bar.classify(reading) is not CLEAR for reading in drawn) / 4000 == pytest.approx(
        0.95, abs=0.012
    )


def test_interval_by_hand() -> None:
    """t(.975) = 2.228 errors to each side, and never wider than a number can hold."""
    shown = make_reading(0.05).make_change(0.1)
    expected = [math.expm1(0.05 + side * T975 * 0.02) for side in (-1, 0, 1)]
    assert [shown.low, shown.centre, shown.high] == pytest.approx(expected)
    assert make_reading(0.05, error=1e4).make_change(0.1).high == pytest.approx(999_999)


@given(before=TIMES, after=TIMES, factor=st.floats(0.01, 100))
def test_a_reading_depends_on_the_ratio_alone(before: list[float], after: list[float], factor: float) -> None:
    """Exchanged arms change the sign only, and units change nothing."""
    there, back = read(before, after), read(after, before)
    scaled = read([factor * v for v in before], [factor * v for v in after])
    assert there.change == pytest.approx(-back.change, abs=1e-12)
    assert there.change == pytest.approx(scaled.change, abs=1e-9)
    assert (there.error, there.error) == pytest.approx((back.error, scaled.error))


@given(
    change=st.floats(-1, 1),
    more=st.floats(0, 1),
    error=st.floats(0.005, 0.2),
    edges=st.sampled_from([0.7, 1.0, 1.5]),
)
def test_worse_never_lies_lower(change: float, more: float, error: float, edges: float) -> None:
    """The level does not fall with a larger change, nor rise with a smaller error budget."""
    bar, ranks = replace(BAR, edges=edges), {CLEAR: 0, OPEN: 1, BEYOND: 2}
    rank = ranks[bar.classify(make_reading(change, error))]
    assert ranks[bar.classify(make_reading(change + more, error))] >= rank
    assert ranks[replace(bar, alpha=1e-6).classify(make_reading(change, error))] <= rank


@given(change=st.floats(-1, 1), error=st.floats(0.005, 0.2))
def test_mirrored_reading_is_its_own_mirror(change: float, error: float) -> None:
    """A reading mirrored twice is the same, and not both directions are beyond the edge."""
    reading = make_reading(change, error)
    assert reading.mirror().mirror() == reading
    assert {BAR.classify(reading), BAR.classify(reading.mirror())} != {BEYOND}


def test_null_changes_are_beyond_no_more_often_than_the_budget_allows() -> None:
    """Without a threshold 3,000 null comparisons at alpha 2 % convict about 2 % or fewer."""
    rng = random.Random(6)  # noqa: S311 - repeatable, not secret
    bar = Bar(alpha=0.02, threshold=Threshold(relative=0.0, absolute=0.0))
    beyond = 0
    for _ in range(3000):
        before, after = ([math.exp(rng.gauss(0, 0.02)) for _ in range(count)] for count in (5, 3))
        beyond += bar.classify(read(before, after)) is BEYOND
    assert beyond / 3000 <= 0.025
