"""Noise between and within trials, detectable changes, and unstable cases."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.calibrate.noise import gather_series, is_too_noisy, list_blocks, list_instabilities, measure_noise
from gate.decide.constants import SESSION_SD
from gate.decide.judge.interval import Bar
from gate.decide.stats import compute_t_quantile
from gate.records.cases import Case, Metric, Threshold
from gate.records.run import Pairing, Run, Trial
from gate.records.studies import Effort, Flaw, MetricNoise
from gate.report.studies import describe_instability
from tests.make import POLICY, make_failure, make_run
from tests.unit.decide.test_interval import make_reading

from .drawn import EFFORT, draw_run, run_cases

BLOCKS = (0.010, 0.011, 0.010, 0.012)


EMPTY = make_run(cases=(Case(id="a", model="a", factory="m:f", definition="d"),))


def measure(run: Run, metric: Metric, effort: Effort = EFFORT) -> MetricNoise:
    (series,) = (series for series in gather_series(run, POLICY) if series.metric is metric)
    return measure_noise(series, effort)


def list_flaws(run: Run) -> list[tuple[Metric, Flaw]]:
    instabilities = list_instabilities(gather_series(run, POLICY), run.failures, EFFORT)
    return [(instability.metric, instability.flaw) for instability in instabilities]


def test_between_is_the_deviation_of_logarithms() -> None:
    """Trials of 10, 11 and 12 s have the deviation of their logarithms."""
    noise = measure(run_cases({Metric.COLD_COMPILE_TIME: (10.0, 11.0, 12.0)}), Metric.COLD_COMPILE_TIME)
    logs = [math.log(value) for value in (10.0, 11.0, 12.0)]
    assert pytest.approx(statistics.stdev(logs)) == noise.between
    assert pytest.approx(math.exp(statistics.mean(logs))) == noise.centre
    assert (noise.trials, noise.within) == (3, 0.0)


def test_within_pools_the_blocks_of_each_trial() -> None:
    """Two trials with the same four blocks, one twice as slow, have the spread about their own means."""
    run = run_cases({Metric.COMPILED_LATENCY: (1.0, 1.0)})
    blocks = (BLOCKS, tuple(2 * block for block in BLOCKS))
    trials = tuple(
        replace(trial, samples={Metric.COMPILED_LATENCY: values})
        for trial, values in zip(run.trials, blocks, strict=True)
    )
    noise = measure(replace(run, trials=trials), Metric.COMPILED_LATENCY)
    assert pytest.approx(statistics.stdev(math.log(block) for block in BLOCKS)) == noise.within


def test_blocks_of_the_speedup_are_super_blocks() -> None:
    """Two super-blocks of 2x and 3x."""
    samples = {
        Metric.EAGER_LATENCY: (2.0, 2.0, 6.0, 6.0),
        Metric.COMPILED_LATENCY: (1.0, 1.0, 2.0, 2.0),
    }
    blocks = list_blocks(Trial(case_id="a", index=1, samples=samples), Metric.WARM_SPEEDUP)
    assert pytest.approx((math.log(2), math.log(3))) == blocks


def test_trials_of_pairs_are_left_out() -> None:
    run = run_cases({Metric.COLD_COMPILE_TIME: (10.0, 11.0, 99.0)})
    paired = replace(run.trials[2], pairing=Pairing.LIVE)
    run = replace(run, trials=(*run.trials[:2], paired))
    assert measure(run, Metric.COLD_COMPILE_TIME).trials == 2


@pytest.mark.parametrize("edges", [0.7, 1.0, 1.5])
def test_too_noisy_is_what_leaves_no_change_at_all_open(edges: float) -> None:
    """From an error whose t(.90) = 1.372 times is so many edges on; the estimate does not count."""
    bar = Bar(alpha=0.001, threshold=Threshold(relative=0.05, absolute=0.0), edges=edges)
    error = edges * math.log(1.05) / compute_t_quantile(0.90, 10.0)
    assert not is_too_noisy(make_reading(0.3, error - 1e-5), bar)
    assert is_too_noisy(make_reading(-0.3, error + 1e-5), bar)


def test_detectable_by_hand() -> None:
    """One case, two trials 2 % apart, with the prior of few cases."""
    run = run_cases({Metric.COLD_COMPILE_TIME: (100.0, 102.0)})
    noise = measure(run, Metric.COLD_COMPILE_TIME)
    within, df = math.log(1.02) ** 2 / 2, 4.0 + 4.0  # prior of 4, and 5 + 1 trials less 2
    variance = (within * 4.0 + 0.03**2 * 4.0) / df
    error = math.sqrt(variance * (1 + 1 / 5) + SESSION_SD**2)
    floor = math.expm1((compute_t_quantile(0.95, df) + compute_t_quantile(0.90, df)) * error)
    assert noise.detectable == pytest.approx(max(0.10, floor))


def test_one_trial_knows_no_noise() -> None:
    """Of one trial noise and detectable change are unknown."""
    noise = measure(run_cases({Metric.COLD_COMPILE_TIME: (100.0,)}), Metric.COLD_COMPILE_TIME)
    assert noise.detectable is None


@given(factor=st.floats(1.0, 20.0), values=st.lists(st.floats(9.0, 11.0), min_size=3, max_size=9))
def test_more_noise_hides_more(factor: float, values: list[float]) -> None:
    """A wider spread never lowers the detectable change, and units do not matter."""
    centre = math.exp(statistics.mean(map(math.log, values)))
    wider = [centre * (value / centre) ** factor for value in values]

    def compute_detectable(series: Sequence[float]) -> float:
        trials = tuple(
            Trial(case_id="a", index=index, samples={Metric.COLD_COMPILE_TIME: (value,)})
            for index, value in enumerate(series)
        )
        noise = measure(replace(EMPTY, trials=trials), Metric.COLD_COMPILE_TIME)
        assert noise.detectable is not None
        return noise.detectable

    floor = compute_detectable(values)
    assert compute_detectable(wider) >= floor * (1 - 1e-9)
    assert pytest.approx(floor) == compute_detectable([1000 * value for value in values])


def test_a_steady_case_has_no_flaw() -> None:
    """Six cases that vary by 1 % are stable."""
    assert list_flaws(draw_run(cases=6, trials=10, noise=0.01)) == []


def test_noise_beyond_judging_is_named() -> None:
    """Trials that vary by a third hide changes of 30 %."""
    values = [8.0, 12.0, 9.0, 16.0, 7.0]
    assert list_flaws(run_cases({Metric.COLD_COMPILE_TIME: values})) == [
        (Metric.COLD_COMPILE_TIME, Flaw.TOO_NOISY)
    ]


def test_a_counter_that_differs_is_named() -> None:
    """Two recompiles in one of three trials are named; a metric that only explains is not."""
    run = run_cases({Metric.RECOMPILES: (0.0, 2.0, 0.0), Metric.GUARDS: (5.0, 6.0, 5.0)})
    (instability,) = list_instabilities(gather_series(run, POLICY), (), EFFORT)
    assert (instability.metric, instability.flaw) == (Metric.RECOMPILES, Flaw.UNREPEATABLE)
    assert describe_instability(instability) == "3 trials of one program range from 0 to 2."


def test_a_failure_is_named() -> None:
    """A case that crashed in one trial is unstable."""
    failure = make_failure("m0/x", trial=2)
    run = replace(run_cases({Metric.RECOMPILES: (0.0,)}), failures=(failure,))
    assert list_flaws(run) == [(Metric.COMPILED_LATENCY, Flaw.FAILED)]


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        (Metric.GRAPH_BREAKS, (1.0, 1.0, 1.0), 1.0),  # one more count, whatever the threshold
        (Metric.PEAK_MEMORY, (100e6, 101e6, 100e6), 0.07291456),  # a range of 1 MB and 6 MiB
        (Metric.COLD_COMPILE_TIME, (0.0, 1.0, 1.0), None),  # no ratio to a time of zero
    ],
)
def test_what_is_noticed_without_a_noise(
    metric: Metric, values: tuple[float, ...], expected: float | None
) -> None:
    """Exact metrics have their own rule; without a ratio nothing is known."""
    effort = Effort(baseline_trials=5, trials=1, max_trials=3, requests=1)
    noise = measure(run_cases({metric: values}), metric, effort)
    assert noise.detectable == pytest.approx(expected)


def test_drift_is_noticed_by_its_own_rule() -> None:
    """Two equal trials have the least error that is assumed, above the threshold."""
    noise = measure(run_cases({Metric.DRIFT: (0.5, 0.5)}), Metric.DRIFT)
    assert noise.detectable is not None
    assert noise.detectable > POLICY.thresholds[Metric.DRIFT].absolute
