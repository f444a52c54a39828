import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.constants import LEARNED_DF
from gate.decide.stats import (
    ASSUMED,
    NOTHING_KNOWN,
    Variance,
    compute_hodges_lehmann,
    compute_median_without,
    compute_priors,
    compute_variance,
    compute_winsorized_variance,
    pool_variances,
    summarize_logs,
)

POSITIVE = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def test_variance_of_one_value_is_unknown() -> None:
    """One value has 0 degrees of freedom."""
    assert Variance(value=0.0, df=0.0) == compute_variance([3.0])


def test_variance_by_hand() -> None:
    """1, 2, 3, 4: squares 2.25 + 0.25 + 0.25 + 2.25 over three."""
    assert Variance(value=5 / 3, df=3.0) == compute_variance([1.0, 2.0, 3.0, 4.0])


def test_pooled_variance_weighs_by_degrees_of_freedom() -> None:
    """(4 x 1 + 1 x 6) / 5 = 2; of what nobody knows nothing is known."""
    assert pool_variances(NOTHING_KNOWN, NOTHING_KNOWN) == NOTHING_KNOWN
    assert Variance(value=2.0, df=5.0) == pool_variances(
        Variance(value=1.0, df=4.0), Variance(value=6.0, df=1.0)
    )


@pytest.mark.parametrize(
    ("variances", "df", "expected"),
    [
        pytest.param((1.0,), 7.0, ASSUMED, id="seven degrees of freedom"),
        pytest.param((1.0,), 8.0, Variance(value=1 / (35 / 36) ** 3, df=4.0), id="eight"),
        pytest.param((1.0, 3.0, 2.0), 4.0, Variance(value=2 / (17 / 18) ** 3, df=6.0), id="three cases"),
        pytest.param((1.0,) * 11, 4.0, Variance(value=1 / (17 / 18) ** 3, df=LEARNED_DF), id="eleven cases"),
        pytest.param((1.0,) * 8, 1.0, Variance(value=1 / (7 / 9) ** 3, df=4.0), id="of two trials each"),
        pytest.param((1.0,) * 4, 0.0, ASSUMED, id="cases of one trial"),
    ],
)
def test_prior_by_hand(variances: Sequence[float], df: float, expected: Variance) -> None:
    """The other cases' median over (1 - 2 / (9 df))^3, with half of their df, at least 8."""
    by_case = {str(number): Variance(value=value, df=df) for number, value in enumerate(variances)}
    prior = compute_priors({**by_case, "own": Variance(value=9.0, df=20.0)})["own"]
    assert (prior.value, prior.df) == (pytest.approx(expected.value), expected.df)


@pytest.mark.parametrize(
    ("ordered", "value", "expected"),
    [
        ((1.0, 2.0, 4.0, 8.0), None, 3.0),
        ((1.0, 2.0, 4.0), None, 2.0),
        ((1.0, 2.0, 4.0, 8.0), 1.0, 4.0),
        ((1.0, 2.0, 4.0, 8.0), 2.0, 4.0),
        ((1.0, 2.0, 4.0, 8.0), 4.0, 2.0),
        ((1.0, 2.0, 4.0, 8.0), 8.0, 2.0),
        ((1.0, 2.0, 4.0), 1.0, 3.0),
        ((1.0, 2.0, 4.0), 2.0, 2.5),
        ((1.0, 2.0, 4.0), 4.0, 1.5),
        ((1.0, 2.0), 1.0, 2.0),
        ((1.0, 2.0), 2.0, 1.0),
    ],
)
def test_median_of_the_others_by_hand(
    ordered: tuple[float, ...], value: float | None, expected: float
) -> None:
    """Of an even number the mean of the middle two."""
    assert compute_median_without(ordered, value) == expected


@pytest.mark.parametrize("df", [2, 4, 9])
def test_prior_recovers_what_cases_were_drawn_from(df: int) -> None:
    """The prior of 2,000 cases of SD 2 % is within 6 % of their variance."""
    rng = random.Random(5)  # noqa: S311 - repeatable, not secret
    drawn = [4e-4 * rng.gammavariate(df / 2, 2.0) / df for _ in range(2000)]
    by_case = {str(number): Variance(value=value, df=float(df)) for number, value in enumerate(drawn)}
    prior = compute_priors({**by_case, "own": NOTHING_KNOWN})["own"]
    assert prior.value == pytest.approx(4e-4, rel=0.06)


def test_a_few_wild_cases_do_not_move_the_prior() -> None:
    """Three of eleven cases differ threefold and do not move the median."""
    quiet = Variance(value=4e-4, df=2.0)
    calm = {str(number): quiet for number in range(9)}
    wild = {f"wild {number}": Variance(value=0.4, df=2.0) for number in range(3)}
    assert compute_priors({**calm, **wild})["0"].value == compute_priors(calm)["0"].value


def test_trials_are_assumed_to_vary_by_three_percent() -> None:
    """Where nothing is known, as surely as five trials tell."""
    (prior,) = compute_priors({"own": NOTHING_KNOWN}).values()
    assert (prior.value, prior.df) == (pytest.approx(0.0009), 4.0)


def test_the_assumed_noise_is_the_callers() -> None:
    """The assumed noise is the caller's."""
    assumed = Variance(value=0.04, df=3.0)
    assert compute_priors({"own": Variance(value=1.0, df=9.0)}, assumed) == {"own": assumed}


@pytest.mark.parametrize(("df", "expected"), [(3.0, ASSUMED), (4.0, NOTHING_KNOWN)])
def test_a_case_with_enough_values_needs_no_assumption(df: float, expected: Variance) -> None:
    """A case with as many df as would be assumed needs no other case."""
    assert compute_priors({"own": Variance(value=1.0, df=df)}, trusts_own=True) == {"own": expected}


def test_moderation_by_hand() -> None:
    """(4 x 1e-4 + 4 x 9e-4) / 8 = 5e-4."""
    moderated = pool_variances(Variance(value=1e-4, df=4.0), Variance(value=9e-4, df=4.0))
    assert pytest.approx(5e-4) == moderated.value
    assert moderated.df == 8.0


def test_hodges_lehmann_by_hand() -> None:
    """Of 0, 1, 8 the means are 0, 0.5, 4, 1, 4.5, 8, their median 2.5; one outlier of ten moves nothing."""
    assert compute_hodges_lehmann([0.0, 1.0, 8.0]) == 2.5
    assert compute_hodges_lehmann([0.0] * 9 + [0.3]) == 0.0


def test_winsorized_variance_by_hand() -> None:
    """-50, 0, 1, 2, 2, 2, 2, 3, 4, 90: the ends count as 0 and 4, squares of 18 about 2, over 10 - 1 - 3.

    Winsorizing nothing, 0, 1 and 8 have the squares 9 + 4 + 25 about 3, over 2; one value has no variance.
    """
    values = [2.0, 90.0, 0.0, 2.0, 1.0, 3.0, 2.0, 4.0, 2.0, -50.0]
    assert compute_winsorized_variance(values) == Variance(value=3.0, df=6.0)
    assert compute_winsorized_variance([0.0, 1.0, 8.0]) == Variance(value=19.0, df=2.0)
    assert compute_winsorized_variance([7.0]) == Variance(value=0.0, df=0.0)


@given(measured=st.floats(0, 1), prior=st.floats(1e-4, 1), df=st.floats(0, 20))
def test_moderation_stays_between_own_and_prior(measured: float, prior: float, df: float) -> None:
    """A moderated variance lies between the case's own and the prior's."""
    value = pool_variances(Variance(value=measured, df=df), Variance(value=prior, df=4.0)).value
    assert min(measured, prior) - 1e-12 <= value <= max(measured, prior) + 1e-12


def test_logs_of_a_value_that_has_none() -> None:
    """Zero and less have no logarithm."""
    assert summarize_logs([1.0, 0.0], [1.0]) is None


@given(before=POSITIVE, after=POSITIVE, factor=st.floats(0.01, 100))
def test_log_arms_do_not_depend_on_the_unit(before: list[float], after: list[float], factor: float) -> None:
    """Difference and variance are the same in any unit."""
    first = summarize_logs(before, after)
    second = summarize_logs([factor * v for v in before], [factor * v for v in after])
    assert first is not None
    assert second is not None
    assert pytest.approx(first.after - first.before, abs=1e-9) == second.after - second.before
    assert pytest.approx(first.variance.value, abs=1e-9) == second.variance.value
