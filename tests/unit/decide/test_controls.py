"""What else could explain a change, where the ratio to eager is not known."""

from __future__ import annotations

import pytest

from gate.decide.judge.controls import Controls, is_shared
from gate.decide.judge.screen import Reading
from gate.decide.stats.moments import Variance
from gate.records import Metric


def make_reading(metric: Metric, change: float) -> Reading:
    return Reading(
        metric=metric,
        change=change,
        error=0.01,
        df=20.0,
        noise=Variance(value=0.01**2, df=20.0),
        baseline=0.010,
        direction=1.0,
        trials=3,
        baseline_trials=5,
    )


@pytest.mark.parametrize(("eager", "expected"), [(0.049, False), (0.05, True)])
def test_without_a_ratio_half_of_the_change_in_eager_makes_it_shared(eager: float, expected: bool) -> None:
    """Compiled is 10 % slower in logarithms; eager, in the same processes, by half of that or less."""
    controls = Controls(eager=make_reading(Metric.EAGER_LATENCY, eager))
    assert is_shared(make_reading(Metric.COMPILED_LATENCY, 0.1), controls) is expected
