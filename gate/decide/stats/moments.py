"""Medians, log means and moderated variances of small samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_high, median_low

from gate.decide.constants import (
    MAX_PRIOR_DF,
    MIN_CASES_FOR_PRIOR,
    MIN_PRIOR_DF,
    NOISE_FLOOR,
    PRIOR_DF,
    PRIOR_SD,
)
from gate.decide.stats.ranks import list_walsh_means
from gate.decide.stats.student import compute_digamma, compute_inverse_trigamma, compute_trigamma


@dataclass(frozen=True, kw_only=True, slots=True)
class Variance:
    """A variance and the degrees of freedom it was estimated with; ``df`` 0 means not at all."""

    value: float
    df: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LogArms:
    """Baseline and candidate on the logarithmic scale."""

    before: float  # mean of the logarithms
    after: float
    variance: Variance  # between trials, within both arms, each about its own mean
    before_trials: int
    after_trials: int


def compute_geometric_median(values: Sequence[float]) -> float:
    """Exp of the median of the logarithms of at least one positive value."""
    return math.sqrt(median_low(values) * median_high(values))


def compute_hodges_lehmann(values: Sequence[float]) -> float:
    """Median of the means of all pairs of at least one value, each with itself as well.

    Nearly as precise as the mean where the noise is normal, and hardly moved by a stray value
    (Hodges and Lehmann 1963).
    """
    return median(list_walsh_means(values))


def compute_variance(values: Sequence[float]) -> Variance:
    """Unbiased variance; of a single value it is 0 with 0 degrees of freedom."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return Variance(value=0.0, df=0.0)
    mean = fmean(values)
    squares = math.fsum([(value - mean) ** 2 for value in values])
    return Variance(value=squares / (len(values) - 1), df=float(len(values) - 1))


def compute_winsorized_variance(values: Sequence[float], cut: int) -> Variance:
    """Variance of normal values of which up to ``cut`` on each side, a tenth of them at most, may be strays.

    The ``cut`` lowest and highest count as the nearest of the others. For normal values the squares over
    n - 1 - 3 cut are then unbiased to 2 %, and as certain as so many degrees of freedom to 5 %
    (simulated, 8 to 16 values with one cut on each side). With ``cut`` 0 it is the sample variance.
    """
    ordered = sorted(values)
    low, high = ordered[cut], ordered[-1 - cut]
    winsorized = compute_variance([min(max(value, low), high) for value in values])
    df = count_winsorized_df(len(values), cut)
    return Variance(value=winsorized.value * winsorized.df / df if df else 0.0, df=df)


def count_winsorized_df(number: int, cut: int) -> float:
    """Degrees of freedom of so many values of which ``cut`` on each side are winsorized."""
    return number - 1.0 - 3.0 * cut


def compute_logs(values: Sequence[float]) -> tuple[float, ...]:
    """Natural logarithms of positive values."""
    return tuple(map(math.log, values))


def pool_variances(*variances: Variance) -> Variance:
    """Variance within samples, each about its own mean."""
    df = sum(one.df for one in variances)
    return Variance(value=sum(one.value * one.df for one in variances) / df if df else 0.0, df=df)


def summarize_logs(before: Sequence[float], after: Sequence[float]) -> LogArms | None:
    """Log means and variance of two arms; ``None`` where a value is not positive, so has no logarithm."""
    if min(before) <= 0 or min(after) <= 0:
        return None
    logs_before, logs_after = compute_logs(before), compute_logs(after)
    return LogArms(
        before=fmean(logs_before),
        after=fmean(logs_after),
        variance=pool_variances(compute_variance(logs_before), compute_variance(logs_after)),
        before_trials=len(before),
        after_trials=len(after),
    )


# What is believed of the noise between trials where there are too few cases to learn from.
ASSUMED = Variance(value=PRIOR_SD**2, df=PRIOR_DF)


def compute_prior(variances: Sequence[Variance], assumed: Variance = ASSUMED) -> Variance:
    """What the cases of one metric say about the variance of any of them.

    limma's moment estimate (Smyth 2004, section 6.2): with e = ln s2 - digamma(df/2) + ln(df/2),
    trigamma(d0/2) = var(e) - mean(trigamma(df/2)) and ln s0^2 = mean(e) + digamma(d0/2) - ln(d0/2).
    Where the cases vary no more than chance would have them, d0 has no upper bound but ours.
    With too few cases it is what is ``assumed`` instead.
    """
    known = [variance for variance in variances if variance.df > 0]
    if len(known) < MIN_CASES_FOR_PRIOR:
        return assumed
    logs = [
        math.log(max(one.value, NOISE_FLOOR**2)) - compute_digamma(one.df / 2) + math.log(one.df / 2)
        for one in known
    ]
    centre = fmean(logs)
    excess = compute_variance(logs).value - fmean([compute_trigamma(one.df / 2) for one in known])
    if excess <= 0:
        return Variance(value=math.exp(centre), df=MAX_PRIOR_DF)
    df = min(max(2.0 * compute_inverse_trigamma(excess), MIN_PRIOR_DF), MAX_PRIOR_DF)
    value = math.exp(centre + compute_digamma(df / 2) - math.log(df / 2))
    return Variance(value=value, df=df)


def moderate_variance(own: Variance, prior: Variance) -> Variance:
    """Shrink a case's variance towards the prior: (d0 s0^2 + df s^2) / (d0 + df), never below the floor."""
    pooled = pool_variances(own, prior)
    return Variance(value=max(pooled.value, NOISE_FLOOR**2), df=pooled.df)
