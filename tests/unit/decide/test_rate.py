"""Exact intervals of how often something happens."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gate.decide.stats import compute_rate


def test_never_in_a_thousand() -> None:
    """0 of 1,000 excludes more than 1 - 0.025^(1/1000) = 0.368 %."""
    rate = compute_rate(0, 1000)
    assert (rate.hits, rate.of, rate.low) == (0, 1000, 0.0)
    assert pytest.approx(1 - math.exp(math.log(0.025) / 1000)) == rate.high


@given(of=st.integers(1, 5000), share=st.floats(0, 1))
def test_agrees_with_scipy(of: int, share: float) -> None:
    """Both bounds are scipy's quantiles of a beta distribution."""
    hits = round(share * of)
    rate = compute_rate(hits, of)
    if hits:
        assert pytest.approx(stats.beta.ppf(0.025, hits, of - hits + 1), abs=1e-9) == rate.low
    if hits < of:
        assert pytest.approx(stats.beta.ppf(0.975, hits + 1, of - hits), abs=1e-9) == rate.high
    assert rate.low <= hits / of <= rate.high


@given(of=st.integers(1, 500), share=st.floats(0, 1))
def test_is_symmetric(of: int, share: float) -> None:
    """Hits and misses exchanged exchange the bounds."""
    hits = round(share * of)
    rate, rest = compute_rate(hits, of), compute_rate(of - hits, of)
    assert pytest.approx(1 - rest.high) == rate.low
    assert pytest.approx(1 - rest.low) == rate.high
