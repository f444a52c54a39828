import math
import random
from dataclasses import replace

import pytest

from gate.decide.stats import Variance, estimate_mean, estimate_metric
from gate.records.cases import Metric
from gate.records.verdict import Estimate


def test_noisy_estimate_by_hand() -> None:
    """1 and 4: geometric mean 2, SD of the logs ln 4 / sqrt 2, interval t(1 df) = 12.706 wide."""
    estimate = estimate_metric(Metric.COMPILED_LATENCY, [1.0, 4.0])
    sd = math.log(4) / math.sqrt(2)
    half = 12.7062047 * sd / math.sqrt(2)
    assert pytest.approx(2.0) == estimate.centre
    assert pytest.approx(sd) == estimate.noise
    assert pytest.approx(2.0 * math.exp(half)) == estimate.high
    assert pytest.approx(2.0 * math.exp(-half)) == estimate.low


@pytest.mark.parametrize(
    "metric", [Metric.COMPILED_LATENCY, Metric.DRIFT, Metric.GRAPH_BREAKS, Metric.PEAK_MEMORY]
)
def test_single_value_has_no_interval(metric: Metric) -> None:
    """One trial has a value and no interval."""
    estimate = estimate_metric(metric, [2.0])
    assert pytest.approx(2.0) == estimate.centre
    assert replace(estimate, centre=2.0) == Estimate(centre=2.0, low=None, high=None, noise=None, n=1)


def test_single_value_has_the_interval_of_a_known_noise() -> None:
    """An assumed noise gives one trial an interval: t(4 df) = 2.776 errors."""
    mean = estimate_mean(math.log(2.0), Variance(value=1e-4, df=4.0), 1, of_logs=True)
    assert pytest.approx(2.0 * math.exp(2.776445 * 0.01), rel=1e-6) == mean.high


def test_counter_estimate_is_median_and_range() -> None:
    """A counter's estimate is its median and range."""
    estimate = estimate_metric(Metric.GRAPH_BREAKS, [0.0, 3.0, 1.0])
    assert (estimate.centre, estimate.low, estimate.high, estimate.n) == (1.0, 0.0, 3.0, 3)


@pytest.mark.parametrize(
    ("metric", "values", "noise"),
    [
        (Metric.GRAPH_BREAKS, [1.0, 3.0, 2.0], 1.0),
        (Metric.PEAK_MEMORY, [1e8, 1.21e8, 1.1e8], math.log(1.1)),
        (Metric.GRAPH_BREAKS, [2.0, 2.0], 0.0),
    ],
)
def test_noise_is_of_counts_or_of_logarithms_of_sizes(
    metric: Metric, values: list[float], noise: float
) -> None:
    """The standard deviation of 1, 2, 3 is 1; sizes in steps of 10 % differ by ln 1.1, equals by nothing."""
    assert estimate_metric(metric, values).noise == pytest.approx(noise)


def test_drift_estimate_is_linear() -> None:
    """Drift is a logarithm already and may be negative."""
    estimate = estimate_metric(Metric.DRIFT, [-0.3, -0.5])
    assert pytest.approx(-0.4) == estimate.centre
    assert pytest.approx(math.sqrt(0.02)) == estimate.noise


def test_value_of_zero_has_an_estimate_without_logarithms() -> None:
    """A zero is estimated without logarithms."""
    assert estimate_metric(Metric.DEVICE_UTILIZATION, [0.0, 0.5]).centre == 0.25


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Of 2,000 intervals from five log-normal trials about 95 % hold the true centre."""
    rng = random.Random(3)  # noqa: S311 - repeatable, not secret
    covered = 0
    for _ in range(2000):
        estimate = estimate_metric(
            Metric.COMPILED_LATENCY, [0.01 * math.exp(rng.gauss(0, 0.03)) for _ in range(5)]
        )
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 0.01 <= estimate.high
    assert pytest.approx(0.95, abs=0.015) == covered / 2000
