import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from gate.decide.stats import compute_incomplete_beta, compute_t_quantile, compute_t_upper

EXACT = 1e-9


@pytest.mark.parametrize("df", [0.5, 1.0, 2.0, 3.7, 8.0, 26.0, 1e4])
@pytest.mark.parametrize("p", [1e-10, 1e-5, 3e-4, 0.025, 0.25, 0.5, 0.75, 0.95, 0.9999])
def test_quantile_agrees_with_scipy(p: float, df: float) -> None:
    """Quantiles of Student's t agree with scipy's to nine digits, tails and fractional df included."""
    assert pytest.approx(stats.t.ppf(p, df), rel=EXACT, abs=EXACT) == compute_t_quantile(p, df)


def test_quantile_of_a_printed_table() -> None:
    """The 97.5 % quantile with 4 degrees of freedom is 2.776."""
    assert round(compute_t_quantile(0.975, 4.0), 3) == 2.776


@given(t=st.floats(-50, 50), df=st.floats(0.5, 1e4))
def test_upper_tail_agrees_with_scipy(t: float, df: float) -> None:
    """The upper tail agrees with scipy's to nine digits, and both tails sum to one."""
    assert pytest.approx(stats.t.sf(t, df), abs=EXACT) == compute_t_upper(t, df)
    assert pytest.approx(1.0, abs=EXACT) == compute_t_upper(-t, df) + compute_t_upper(t, df)


@given(p=st.floats(1e-8, 0.5, exclude_max=True), df=st.floats(0.5, 1e4))
def test_quantile_is_symmetric_and_inverts_the_cdf(p: float, df: float) -> None:
    """Quantiles of p and 1 - p are opposite, and the cdf inverts them."""
    t = compute_t_quantile(p, df)
    assert t < 0
    assert pytest.approx(p, rel=1e-6) == compute_t_upper(-t, df)
    assert pytest.approx(-t, rel=1e-6, abs=1e-6) == compute_t_quantile(1 - p, df)


@given(x=st.floats(0, 1), a=st.floats(0.1, 200), b=st.floats(0.1, 200))
def test_incomplete_beta_agrees_with_scipy(x: float, a: float, b: float) -> None:
    """The regularized incomplete beta function agrees with scipy's to nine digits."""
    assert pytest.approx(special.betainc(a, b, x), abs=EXACT) == compute_incomplete_beta(x, a, b)


@pytest.mark.parametrize(("x", "expected"), [(-0.5, 0.0), (0.0, 0.0), (1.0, 1.0), (1.5, 1.0)])
def test_incomplete_beta_at_its_ends(x: float, expected: float) -> None:
    """It is 0 at 0 and 1 at 1, where the continued fraction is undefined."""
    assert compute_incomplete_beta(x, 2.0, 3.0) == expected


@pytest.mark.parametrize("df", [0.5, 4.0])
def test_the_median_is_zero(df: float) -> None:
    assert compute_t_quantile(0.5, df) == 0.0
