from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.constants import MAX_PRIOR_DF, MIN_PRIOR_DF, NOISE_FLOOR, PRIOR_DF, PRIOR_SD
from gate.decide.stats.moments import (
    Variance,
    compute_geometric_median,
    compute_prior,
    compute_variance,
    moderate_variance,
    pool_variances,
    summarize_logs,
)

POSITIVE = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def test_geometric_median_takes_the_root_of_the_middle_two() -> None:
    """Between 2 and 8 the geometric middle is 4, whatever lies outside."""
    assert compute_geometric_median([100.0, 2.0, 8.0, 1.0]) == 4.0


def test_variance_of_one_value_is_unknown() -> None:
    """One value has no degree of freedom."""
    assert Variance(value=0.0, df=0.0) == compute_variance([3.0])


def test_variance_by_hand() -> None:
    """1, 2, 3, 4: squares 2.25 + 0.25 + 0.25 + 2.25 over three."""
    assert Variance(value=5 / 3, df=3.0) == compute_variance([1.0, 2.0, 3.0, 4.0])


def test_pooled_variance_weighs_by_degrees_of_freedom() -> None:
    """(4 x 1 + 1 x 6) / 5 = 2."""
    assert Variance(value=2.0, df=5.0) == pool_variances(
        Variance(value=1.0, df=4.0), Variance(value=6.0, df=1.0)
    )


def test_prior_of_few_cases_is_the_documented_assumption() -> None:
    """Three cases are too few to learn from."""
    known = [Variance(value=1e-6, df=4.0)] * 3
    assert Variance(value=PRIOR_SD**2, df=PRIOR_DF) == compute_prior(known)


def test_prior_of_equal_cases_is_their_value_with_most_weight() -> None:
    """Cases that agree better than chance get the largest weight that is allowed."""
    prior = compute_prior([Variance(value=4e-4, df=4.0)] * 8)
    assert prior.df == MAX_PRIOR_DF
    # E[ln s2] is digamma(2) - ln 2 = -0.2704 below ln sigma2 for 4 degrees of freedom.
    assert pytest.approx(4e-4 * math.exp(0.27036), rel=1e-4) == prior.value


def test_prior_recovers_what_cases_were_drawn_from() -> None:
    """From 2,000 cases of SD 2 % that differ like a scaled inverse chi-square with 6 df, both come back."""
    rng = random.Random(5)  # noqa: S311 - repeatable, not secret
    variances = []
    for _ in range(2000):
        sigma2 = 4e-4 * 6 / rng.gammavariate(3.0, 2.0)
        variances.append(Variance(value=sigma2 * rng.gammavariate(2.0, 2.0) / 4, df=4.0))
    prior = compute_prior(variances)
    assert pytest.approx(6.0, rel=0.2) == prior.df
    assert pytest.approx(4e-4, rel=0.1) == prior.value


def test_moderation_by_hand_and_floor() -> None:
    """(4 x 1e-4 + 4 x 9e-4) / 8 = 5e-4; and nothing is quieter than the floor."""
    moderated = moderate_variance(Variance(value=1e-4, df=4.0), Variance(value=9e-4, df=4.0))
    assert pytest.approx(5e-4) == moderated.value
    assert moderated.df == 8.0
    still = moderate_variance(Variance(value=0.0, df=4.0), Variance(value=0.0, df=4.0))
    assert still.value == NOISE_FLOOR**2


@given(own=st.floats(0, 1), prior=st.floats(1e-4, 1), df=st.floats(0, 20))
def test_moderation_stays_between_own_and_prior(own: float, prior: float, df: float) -> None:
    """A moderated variance lies between the case's own and the prior's (and not below the floor)."""
    value = moderate_variance(Variance(value=own, df=df), Variance(value=prior, df=4.0)).value
    assert min(own, prior) - 1e-12 <= value <= max(own, prior, NOISE_FLOOR**2) + 1e-12


def test_logs_of_a_value_that_has_none() -> None:
    """Zero and less have no logarithm, so there is nothing to compare."""
    assert summarize_logs([1.0, 0.0], [1.0]) is None


@given(before=POSITIVE, after=POSITIVE, factor=st.floats(0.01, 100))
def test_log_arms_do_not_depend_on_the_unit(before: list[float], after: list[float], factor: float) -> None:
    """In other units the difference of the means and the variance are the same."""
    first = summarize_logs(before, after)
    second = summarize_logs([factor * v for v in before], [factor * v for v in after])
    assert first is not None
    assert second is not None
    assert pytest.approx(first.after - first.before, abs=1e-9) == second.after - second.before
    assert pytest.approx(first.variance.value, abs=1e-9) == second.variance.value


def test_prior_of_cases_that_have_nothing_in_common_keeps_two_degrees_of_freedom() -> None:
    """Eight quiet cases and three whose processes differ threefold: the moment estimate alone says 0.59."""
    quiet = [Variance(value=6.4e-5 * (1 + 0.3 * step), df=2.0) for step in range(8)]
    prior = compute_prior([*quiet, *[Variance(value=0.4, df=2.0)] * 3])
    assert prior.df == MIN_PRIOR_DF
    # E[ln s2] of 2 degrees of freedom is digamma(1) = -0.57722 below ln sigma2, and digamma(d0 / 2) the same.
    logs = [math.log(6.4e-5 * (1 + 0.3 * step)) for step in range(8)] + [math.log(0.4)] * 3
    assert pytest.approx(math.exp(sum(logs) / 11), rel=1e-4) == prior.value
