"""The noise of pairs of one program with itself, and their flaws."""

import math
import statistics
from collections.abc import Sequence

import pytest

from gate.calibrate.noise import PairSeries, gather_pair_series, list_pair_instabilities, measure_pair_noise
from gate.records.cases import Metric
from gate.records.studies import Flaw
from gate.report.studies import describe_instability
from tests.make import POLICY

from .drawn import make_paired_run


def gather(changes: Sequence[float]) -> PairSeries:
    """Pairs whose cold compile times differ by these logarithms."""
    (series,) = gather_pair_series(make_paired_run(Metric.COLD_COMPILE_TIME, 10.0, changes), POLICY)
    return series


def list_flaws(series: PairSeries) -> list[Flaw]:
    return [instability.flaw for instability in list_pair_instabilities(series)]


def test_noise_is_the_deviation_of_log_ratios() -> None:
    """Four pairs of -1, 0, 1 and 2 % have their sample deviation, and their mean as bias."""
    changes = (-0.01, 0.0, 0.01, 0.02)
    noise = measure_pair_noise(gather(changes))
    assert noise.pairs == 4
    assert pytest.approx(statistics.stdev(changes)) == noise.noise
    assert pytest.approx(math.expm1(0.005)) == noise.bias


def test_centred_pairs_have_no_flaw() -> None:
    """Pairs that differ by 1 % either way are stable."""
    assert list_flaws(gather((-0.01, 0.01) * 4)) == []


def test_bias_is_named() -> None:
    """Head takes 65 % longer in eight pairs of one program."""
    series = gather([0.50 + 0.001 * (index % 3) for index in range(8)])
    (instability,) = list_pair_instabilities(series)
    assert (instability.metric, instability.flaw) == (Metric.COLD_COMPILE_TIME, Flaw.BIASED_PAIRS)
    assert describe_instability(instability) == "In 8 pairs with itself, head differs by +65.0 %."


def test_bias_must_be_certain_to_either_side() -> None:
    """Bias needs p < 0.001, half of it on each side.

    Six pairs, 9 df with the prior: one-sided p of 0.001 is at t = 4.30, and of 0.0005 at 4.78.
    """
    spread = (-0.045, -0.027, -0.009, 0.009, 0.027, 0.045)
    error = gather(spread).reading.error
    for t, is_biased in ((4.5, False), (5.0, True), (-4.5, False), (-5.0, True)):
        series = gather([change + t * error for change in spread])
        assert (Flaw.BIASED_PAIRS in list_flaws(series)) == is_biased


def test_last_look_counts_what_winsorizing_takes() -> None:
    """Of sixteen pairs one on each side is winsorized: 12 degrees of freedom, not 15."""
    series = gather((-0.01, 0.0, 0.01, 0.0, 0.005, -0.005))
    last = series.reading.extend(16)
    assert last.noise.df == series.reading.noise.df - 5 + 12
    assert last.error == pytest.approx(series.reading.error * math.sqrt(6 / 16))


def test_pairs_too_noisy_to_settle_anything_are_named() -> None:
    """Pairs that differ by half either way are named."""
    assert list_flaws(gather((-0.5, 0.5) * 4)) == [Flaw.TOO_NOISY]


def test_the_biased_pairs_of_a_control_decide_nothing() -> None:
    """Biased eager latency makes no case unstable."""
    run = make_paired_run(Metric.EAGER_LATENCY, 0.01, [0.3] * 8)
    assert [
        instability
        for series in gather_pair_series(run, POLICY)
        for instability in list_pair_instabilities(series)
    ] == []
