"""The noise of pairs of one program with itself, and what is wrong with them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import pytest

from gate.calibration import Flaw, Instability
from gate.decide.pair_noise import (
    PairSeries,
    gather_pair_series,
    list_pair_instabilities,
    measure_pair_noise,
)
from gate.records import Metric, Policy, Run

Make = Callable[..., Run]


def gather(make_pairs: Make, policy: Policy, changes: Sequence[float]) -> PairSeries:
    """Pairs whose cold compile times differ by these logarithms."""
    (series,) = gather_pair_series(make_pairs(Metric.COLD_COMPILE_TIME, 10.0, changes), policy)
    return series


def list_flaws(series: PairSeries) -> list[Flaw]:
    return [found.flaw for found in list_pair_instabilities(series)]


def test_noise_is_the_deviation_of_log_ratios(make_pairs: Make, policy: Policy) -> None:
    """Four pairs that differ by -1, 0, 1 and 2 %: their sample deviation, and their mean as the bias."""
    changes = (-0.01, 0.0, 0.01, 0.02)
    noise = measure_pair_noise(gather(make_pairs, policy, changes))
    assert noise.pairs == 4
    assert pytest.approx(statistics.stdev(changes)) == noise.noise
    assert pytest.approx(math.expm1(0.005)) == noise.bias


def test_noisier_pairs_settle_less(make_pairs: Make, policy: Policy) -> None:
    """Ten times the spread raises the smallest change that the last look settles."""
    changes = (-0.01, 0.0, 0.01, 0.0, 0.005)
    quiet, noisy = (
        measure_pair_noise(gather(make_pairs, policy, [factor * one for one in changes]))
        for factor in (1, 10)
    )
    assert quiet.detectable < noisy.detectable


def test_centred_pairs_have_no_flaw(make_pairs: Make, policy: Policy) -> None:
    """Pairs that differ by 1 % either way."""
    assert list_flaws(gather(make_pairs, policy, (-0.01, 0.01) * 4)) == []


def test_bias_is_named(make_pairs: Make, policy: Policy) -> None:
    """Eight pairs in which head takes 65 % longer, though it is the same program."""
    series = gather(make_pairs, policy, [0.50 + 0.001 * (index % 3) for index in range(8)])
    (found,) = list_pair_instabilities(series)
    assert found == Instability(
        case_id="m/x",
        metric=Metric.COLD_COMPILE_TIME,
        flaw=Flaw.BIASED_PAIRS,
        sentence="Of 8 pairs with itself, head is +65.0 % off.",
    )


def test_pairs_too_noisy_to_settle_anything_are_named(make_pairs: Make, policy: Policy) -> None:
    """Pairs that differ by half either way."""
    assert list_flaws(gather(make_pairs, policy, (-0.5, 0.5) * 4)) == [Flaw.TOO_NOISY]


def test_the_biased_pairs_of_a_control_decide_nothing(make_pairs: Make, policy: Policy) -> None:
    """Eager latency is a control: nothing is called unstable for it."""
    run = make_pairs(Metric.EAGER_LATENCY, 0.01, [0.3] * 8)
    assert [found for one in gather_pair_series(run, policy) for found in list_pair_instabilities(one)] == []
