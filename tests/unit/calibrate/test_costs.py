"""What other thresholds would cost."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from gate.calibrate.calibrate import THRESHOLDS, compute_suspicion, list_costs
from gate.calibrate.noise import gather_series
from gate.decide.judge.interval import Bar, Level, Reading, find_level
from gate.decide.stats import Variance
from gate.records import Metric, Policy, Run, Threshold
from gate.records.studies import Effort

Make = Callable[..., Run]


def make_reading(change: float, error: float) -> Reading:
    return Reading(
        metric=Metric.COLD_COMPILE_TIME,
        change=change,
        error=error,
        df=20.0,
        noise=Variance(value=error**2, df=20.0),
        baseline=10.0,
        candidate=0.01,
        trials=1,
        baseline_trials=5,
    )


@pytest.mark.parametrize("relative", [0.01, 0.05, 0.10])
@pytest.mark.parametrize("error", [0.01, 0.03])
def test_suspicion_is_how_often_the_screen_suspects(relative: float, error: float) -> None:
    """The probability by formula agrees with 4,000 unchanged readings put through the screen."""
    rng = random.Random(5)  # noqa: S311 - repeatable, not secret
    threshold = Threshold(relative=relative, absolute=0.0)
    bar = Bar(alpha=1e-9, threshold=threshold)

    def draw_t() -> float:
        return rng.gauss(0, 1) / math.sqrt(rng.gammavariate(10.0, 0.1))

    levels = [find_level(make_reading(error * draw_t(), error), bar) for _ in range(4000)]
    seen = sum(level is not Level.CLEAR for level in levels) / len(levels)
    assert pytest.approx(seen, abs=0.02) == compute_suspicion(make_reading(0.0, error), threshold)


def test_lower_thresholds_cost_more(draw: Make, policy: Policy, effort: Effort) -> None:
    """From 15 % down to 1 % suspicions, and cases in which the change would be missed, only grow."""
    costs = list_costs(gather_series(draw(cases=6, trials=8, noise=0.02), policy), effort)
    of_cold = [cost for cost in costs if cost.metric is Metric.COLD_COMPILE_TIME]
    assert [cost.relative for cost in of_cold] == list(THRESHOLDS)
    assert [cost.relative for cost in of_cold if cost.in_force] == [0.10]
    for lower, higher in itertools.pairwise(of_cold):
        assert lower.suspected >= higher.suspected
        assert lower.below_floor >= higher.below_floor
    assert (of_cold[0].below_floor, of_cold[-1].below_floor) == (6, 0)


def test_one_trial_costs_nothing(make: Make, policy: Policy, effort: Effort) -> None:
    """A single trial knows no noise, so nothing is said."""
    assert list_costs(gather_series(make({Metric.COLD_COMPILE_TIME: (10.0,)}), policy), effort) == ()
