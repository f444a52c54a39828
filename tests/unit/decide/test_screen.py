from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.judge.screen import (
    Bar,
    Level,
    Reading,
    compute_detectable,
    is_beyond,
    is_too_noisy,
    make_change,
    mirror_reading,
    read_change,
    screen_change,
)
from gate.decide.stats.moments import Variance, summarize_logs
from gate.records import Metric, Threshold

BAR = Bar(alpha=0.001, threshold=Threshold(relative=0.05, absolute=0.0))
PRIOR = Variance(value=0.02**2, df=4.0)
LATENCY = Metric.COMPILED_LATENCY
TIMES = st.lists(st.floats(1e-3, 1e-1), min_size=3, max_size=6)


def read(
    before: Sequence[float],
    after: Sequence[float],
    metric: Metric = LATENCY,
    prior: Variance = PRIOR,
) -> Reading:
    arms = summarize_logs(before, after)
    assert arms is not None
    return read_change(metric, arms, prior)


def make_reading(change: float, error: float = 0.02, df: float = 10.0, baseline: float = 0.01) -> Reading:
    return Reading(
        metric=LATENCY,
        change=change,
        error=error,
        df=df,
        noise=Variance(value=error**2, df=df),
        baseline=baseline,
        direction=1.0,
        trials=3,
        baseline_trials=5,
    )


def test_reading_by_hand() -> None:
    """Five equal trials at 10 ms, three at 13 ms: ln 1.3, s2 = 4 x 4e-4 / 10, plus the sitting's 1 %."""
    reading = read([0.010] * 5, [0.013] * 3)
    assert pytest.approx(math.log(1.3)) == reading.change
    assert reading.df == 10.0
    assert pytest.approx(math.sqrt(1.6e-4 * (1 / 3 + 1 / 5) + 1e-4)) == reading.error


def test_lower_speedup_is_worse() -> None:
    """A speedup that falls from 2x to 1x is ln 2 worse, told as 100 %."""
    reading = read([2.0] * 5, [1.0] * 3, metric=Metric.WARM_SPEEDUP)
    assert pytest.approx(math.log(2)) == reading.change
    assert pytest.approx(1.0) == make_change(reading, 0.1).centre


def test_conviction_needs_its_lower_bound_beyond_the_threshold() -> None:
    """t(.999, 10 df) = 4.144: at 2 % error the bound reaches ln 1.05 at a change of .1317."""
    edge = math.log(1.05) + 4.143700 * 0.02
    assert not is_beyond(make_reading(edge - 1e-4), BAR)
    assert is_beyond(make_reading(edge + 1e-4), BAR)


def test_conviction_needs_the_absolute_threshold_too() -> None:
    """Twice as slow by 10 us is below a floor of 20 us."""
    bar = Bar(alpha=0.001, threshold=Threshold(relative=0.05, absolute=20e-6))
    assert not is_beyond(make_reading(math.log(2), baseline=10e-6), bar)
    assert is_beyond(make_reading(math.log(2), baseline=30e-6), bar)


def test_shift_of_the_machine_is_taken_away() -> None:
    """30 % slower on a machine that is 30 % slower is nothing."""
    reading = make_reading(math.log(1.3))
    assert screen_change(reading, BAR) is Level.CONVICTED
    assert screen_change(reading, BAR, math.log(1.3)) is Level.CLEAR


def test_suspicion_by_hand() -> None:
    """t(.75, 10 df) = 0.700: at 2 % error a change is suspect from 1.4 %, and t(.95) takes it beyond 5 %."""
    assert screen_change(make_reading(0.0139), BAR) is Level.CLEAR
    assert screen_change(make_reading(0.0141), BAR) is Level.SUSPECT


def test_sure_but_small_change_is_clear() -> None:
    """3 % with an error of 0.5 % surely stays below the threshold of 5 %."""
    assert screen_change(make_reading(0.03, error=0.005), BAR) is Level.CLEAR


def test_no_change_below_one_percent_is_suspect() -> None:
    """However sharp the measurement, 0.9 % is not looked at, even under a threshold of 0.5 %."""
    bar = Bar(alpha=0.001, threshold=Threshold(relative=0.005, absolute=0.0))
    assert screen_change(make_reading(0.009, error=0.002), bar) is Level.CLEAR


def test_detectable_change_by_hand() -> None:
    """At 2 % error: noticed from max(1 %, 1.4 %, 4.88 - 3.62 %) = 1.4 %, plus t(.95) = 1.812 errors."""
    expected = math.expm1(0.699812 * 0.02 + 1.812461 * 0.02)
    assert pytest.approx(expected, rel=1e-5) == compute_detectable(make_reading(0.0), BAR)


def test_detectable_change_is_detected_as_often_as_it_says() -> None:
    """Of 4,000 estimates around the detectable change about 95 % are suspect or convicted."""
    rng = random.Random(4)  # noqa: S311 - repeatable, not secret
    error = 0.02
    true = math.log1p(compute_detectable(make_reading(0.0, error, 1e6), BAR))
    noticed = sum(
        screen_change(make_reading(rng.gauss(true, error), error, 1e6), BAR) > Level.CLEAR
        for _ in range(4000)
    )
    assert pytest.approx(0.95, abs=0.012) == noticed / 4000


def test_too_noisy_is_three_thresholds_or_fifteen_percent() -> None:
    """The larger of both counts; a threshold of 0.2 s is 10 % of 2 s."""
    assert not is_too_noisy(0.29, Threshold(relative=0.05, absolute=0.2), 2.0)
    assert is_too_noisy(0.31, Threshold(relative=0.05, absolute=0.2), 2.0)
    assert not is_too_noisy(0.149, Threshold(relative=0.02, absolute=0.0), 1.0)
    assert is_too_noisy(0.151, Threshold(relative=0.02, absolute=0.0), 1.0)
    assert not is_too_noisy(0.29, Threshold(relative=0.10, absolute=0.0), 1.0)
    assert is_too_noisy(0.31, Threshold(relative=0.10, absolute=0.0), 1.0)


@given(before=TIMES, after=TIMES)
def test_exchanging_the_arms_turns_the_change_around(before: list[float], after: list[float]) -> None:
    """What is so much worse one way is so much better the other, with the same error."""
    there, back = read(before, after), read(after, before)
    assert pytest.approx(there.change, abs=1e-12) == -back.change
    assert pytest.approx(there.error) == back.error


@given(before=TIMES, after=TIMES, factor=st.floats(0.01, 100))
def test_readings_do_not_depend_on_the_unit(before: list[float], after: list[float], factor: float) -> None:
    """Milliseconds and seconds read the same change, error and level."""
    first = read(before, after)
    second = read([factor * v for v in before], [factor * v for v in after])
    assert pytest.approx(first.change, abs=1e-9) == second.change
    assert pytest.approx(first.error, abs=1e-9) == second.error


@given(change=st.floats(-1, 1), more=st.floats(0, 1), error=st.floats(0.005, 0.2))
def test_worse_is_never_less_suspect(change: float, more: float, error: float) -> None:
    """The level does not fall as the change grows, unless the bar is all that keeps it."""
    low = screen_change(make_reading(change, error), BAR)
    high = screen_change(make_reading(change + more, error), BAR)
    assert low <= high


@given(change=st.floats(-1, 1), error=st.floats(0.005, 0.2))
def test_mirrored_reading_is_its_own_mirror(change: float, error: float) -> None:
    """Mirrored twice it is the same, and no change is beyond the bar both ways."""
    reading = make_reading(change, error)
    assert reading == mirror_reading(mirror_reading(reading))
    assert not (is_beyond(reading, BAR) and is_beyond(mirror_reading(reading), BAR))


@given(change=st.floats(-1, 1), loose=st.floats(0.001, 0.4), tight=st.floats(1e-6, 1e-3))
def test_smaller_error_budget_convicts_no_more(change: float, loose: float, tight: float) -> None:
    """Whatever a tight budget convicts, a loose one does."""
    strict = Bar(alpha=tight, threshold=BAR.threshold)
    lax = Bar(alpha=loose, threshold=BAR.threshold)
    reading = make_reading(change)
    assert is_beyond(reading, lax) or not is_beyond(reading, strict)


def test_null_changes_are_convicted_no_more_than_the_budget_allows() -> None:
    """With no threshold at all, 3,000 null comparisons at alpha 2 % convict about 2 % or fewer."""
    rng = random.Random(6)  # noqa: S311 - repeatable, not secret
    bar = Bar(alpha=0.02, threshold=Threshold(relative=0.0, absolute=0.0))
    convicted = 0
    for _ in range(3000):
        before = [math.exp(rng.gauss(0, 0.02)) for _ in range(5)]
        after = [math.exp(rng.gauss(0, 0.02)) for _ in range(3)]
        convicted += is_beyond(read(before, after), bar)
    assert convicted / 3000 <= 0.025
