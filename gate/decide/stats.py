"""Statistics of small samples, without numpy or scipy: moments, Student's t, estimates and rates."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from statistics import NormalDist, fmean, median

from gate.decide.constants import (
    INTERVAL_CONFIDENCE,
    LEARNED_DF,
    MEDIAN_EFFICIENCY,
    MIN_LEARNED_DF,
    PAIRS_PER_STRAY,
    PRIOR_DF,
    PRIOR_SD,
)
from gate.metrics import SPECS, Family
from gate.records.cases import Metric
from gate.records.studies import Rate
from gate.records.verdict import Estimate

_TINY = 1e-300
_CONVERGED = 1e-15
_MAX_TERMS = 10_000
_NEARLY = 1e-9  # of a value: a step of Newton's method that moves it by less is the last
_HALVINGS = 60  # of what holds a quantile: below the rounding of a fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class Variance:
    """``df`` are degrees of freedom; 0 means that nothing was estimated."""

    value: float
    df: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LogArms:
    before: float  # mean of the logarithms
    after: float
    variance: Variance  # between trials, within both arms, each about its own mean
    before_trials: int
    after_trials: int


def compute_hodges_lehmann(values: Sequence[float]) -> float:
    """Median of the means of all pairs of values, each value with itself as well (Hodges and Lehmann 1963).

    Nearly as precise as the mean of normal values, and hardly moved by a stray value.
    """
    return median([0.5 * (first + second) for first, second in combinations_with_replacement(values, 2)])


def compute_variance(values: Sequence[float]) -> Variance:
    """Unbiased variance; a single value has variance 0 with 0 degrees of freedom."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return Variance(value=0.0, df=0.0)
    mean = fmean(values)
    squares = math.fsum([(value - mean) ** 2 for value in values])
    return Variance(value=squares / (len(values) - 1), df=float(len(values) - 1))


def compute_winsorized_variance(values: Sequence[float]) -> Variance:
    """The lowest and highest values, one in PAIRS_PER_STRAY on each side, are replaced by their neighbours.

    For normal values the sum of squares over n - 1 - 3 cut is then unbiased to 2 %, with about that many
    degrees of freedom (simulated, 8 to 16 values, one cut on each side).
    """
    ordered, cut = sorted(values), len(values) // PAIRS_PER_STRAY
    low, high = ordered[cut], ordered[-1 - cut]
    winsorized = compute_variance([min(max(value, low), high) for value in values])
    df = count_winsorized_df(len(values))
    return Variance(value=winsorized.value * winsorized.df / df if df else 0.0, df=df)


def count_winsorized_df(number: int) -> float:
    return number - 1.0 - 3.0 * (number // PAIRS_PER_STRAY)


def compute_logs(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(map(math.log, values))


def pool_variances(*variances: Variance) -> Variance:
    """The mean, weighted by degrees of freedom; pooled with a prior a variance shrinks towards that."""
    df = sum(variance.df for variance in variances)
    return Variance(
        value=sum(variance.value * variance.df for variance in variances) / df if df else 0.0, df=df
    )


def summarize_logs(before: Sequence[float], after: Sequence[float]) -> LogArms | None:
    """``None`` where a value is not positive, so has no logarithm."""
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


# Noise between trials where there are too few cases to learn from.
ASSUMED = Variance(value=PRIOR_SD**2, df=PRIOR_DF)
NOTHING_KNOWN = Variance(value=0.0, df=0.0)


def compute_priors(
    variances: Mapping[str, Variance], assumed: Variance = ASSUMED, *, trusts_own: bool = False
) -> dict[str, Variance]:
    """The noise that each case may assume, learned from the metric's other cases.

    It is the median of their variances, each divided by the bias of a median, (1 - 2 / (9 df))^3 (Wilson and
    Hilferty 1931). With fewer than MIN_LEARNED_DF degrees of freedom it is ``assumed``, or nothing for a case
    that ``trusts_own`` and has as many degrees of freedom.
    """
    unbiased = {
        case_id: variance.value / (1 - 2 / (9 * variance.df)) ** 3
        for case_id, variance in variances.items()
        if variance.df > 0
    }
    ordered = sorted(unbiased.values())
    all_df = sum(variance.df for variance in variances.values())
    priors = {}
    for case_id, variance in variances.items():
        df = all_df - variance.df
        if df >= MIN_LEARNED_DF:
            others = compute_median_without(ordered, unbiased.get(case_id))
            priors[case_id] = Variance(value=others, df=min(LEARNED_DF, MEDIAN_EFFICIENCY * df))
        else:
            priors[case_id] = NOTHING_KNOWN if trusts_own and variance.df >= assumed.df else assumed
    return priors


def compute_median_without(ordered: Sequence[float], value: float | None) -> float:
    """The median of sorted values without ``value``, which is one of them, or with all."""
    left = len(ordered) - (value is not None)
    gap = left if value is None else bisect_left(ordered, value)
    low, high = (ordered[index + (index >= gap)] for index in ((left - 1) // 2, left // 2))
    return (low + high) / 2


def compute_incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularized incomplete beta function I_x(a, b), for 0 <= x <= 1 and positive a, b."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # The fraction converges quickly left of the mean; right of it the symmetric one does.
    if x < (a + 1.0) / (a + b + 2.0):
        return math.exp(log_front) * _compute_beta_fraction(x, a, b) / a
    return 1.0 - math.exp(log_front) * _compute_beta_fraction(1.0 - x, b, a) / b


def _compute_beta_fraction(x: float, a: float, b: float) -> float:
    """Continued fraction of the incomplete beta function by Lentz's method (DLMF 8.17.22)."""
    c = 1.0
    d = 1.0 / _keep_from_zero(1.0 - (a + b) * x / (a + 1.0))
    total = d
    for m in range(1, _MAX_TERMS):  # pragma: no branch - ended, should rounding keep it from converging
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _keep_from_zero(1.0 + term * d)
            c = _keep_from_zero(1.0 + term / c)
            total *= c * d
        if abs(c * d - 1.0) < _CONVERGED:
            break
    return total


def _keep_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def compute_t_upper(t: float, df: float) -> float:
    """P(T > t) for Student's t with ``df`` > 0 degrees of freedom."""
    square = t * t
    if square < min(df, 1.0):  # the other form rounds a small t away, and this one a small tail
        tail = 0.5 - 0.5 * compute_incomplete_beta(square / (df + square), 0.5, df / 2.0)
    else:
        tail = 0.5 * compute_incomplete_beta(df / (df + square), df / 2.0, 0.5)
    return tail if t >= 0 else 1.0 - tail


@lru_cache(maxsize=4096)
def compute_t_quantile(p: float, df: float) -> float:
    """The t with P(T <= t) = ``p``, for 0 < p < 1; infinite ``df`` means the normal distribution."""
    if math.isinf(df):
        return NormalDist().inv_cdf(p)
    if p == 0.5:  # noqa: PLR2004 - the median of a symmetric distribution
        return 0.0
    if p > 0.5:  # noqa: PLR2004 - see above
        return -compute_t_quantile(1.0 - p, df)
    low, high = 0.0, 1.0
    while compute_t_upper(high, df) > p:
        low, high = high, 2.0 * high
    t, step = 0.5 * (low + high), math.inf
    while abs(step) > _NEARLY * t:  # Newton's, on the logarithm of the tail
        tail = compute_t_upper(t, df)
        newton = math.log(tail / p) * tail / _compute_t_density(t, df)
        step = min(max(t + newton, low), high) - t
        t += step
    return -t


def _compute_t_density(t: float, df: float) -> float:
    log_front = math.lgamma((df + 1.0) / 2.0) - math.lgamma(df / 2.0)
    return math.exp(log_front - (df + 1.0) / 2.0 * math.log1p(t * t / df)) / math.sqrt(df * math.pi)


def _halve(high: float, is_beyond: Callable[[float], bool]) -> float:
    """The least value between 0 and ``high`` that is beyond, by bisection."""
    low = 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return 0.5 * (low + high)


def compute_rate(hits: int, of: int) -> Rate:
    """The exact interval of Clopper and Pearson (1934) for ``hits`` among ``of`` trials, ``of`` > 0."""
    tail = (1.0 - INTERVAL_CONFIDENCE) / 2.0
    low = 0.0 if hits == 0 else _compute_beta_quantile(tail, hits, of - hits + 1)
    high = 1.0 if hits == of else _compute_beta_quantile(1.0 - tail, hits + 1, of - hits)
    return Rate(hits=hits, of=of, low=low, high=high)


def _compute_beta_quantile(p: float, a: int, b: int) -> float:
    return _halve(1.0, lambda x: compute_incomplete_beta(x, a, b) >= p)


def estimate_metric(metric: Metric, values: Sequence[float]) -> Estimate:
    """Estimate a metric, in its unit, from one value a trial (at least one).

    Noisy metrics: geometric mean and t interval on the logarithms; drift: the same without logarithms; the
    rest: median and range. A single value has no interval.
    """
    family = SPECS[metric].family
    if family is Family.LOG2:
        return estimate_mean(fmean(values), compute_variance(values), len(values))
    if family is Family.NOISY and min(values) > 0:
        logs = compute_logs(values)
        return estimate_mean(fmean(logs), compute_variance(logs), len(logs), of_logs=True)
    low, high = min(values), max(values)
    if len(values) == 1:
        return Estimate(centre=low, low=None, high=None, noise=None, n=1)
    if low == high:
        return Estimate(centre=low, low=low, high=high, noise=0.0, n=len(values))
    scaled = compute_logs(values) if family is not Family.EXACT and low > 0 else values
    return Estimate(
        centre=median(values),
        low=low,
        high=high,
        noise=math.sqrt(compute_variance(scaled).value),
        n=len(values),
    )


def estimate_mean(mean: float, variance: Variance, n: int, *, of_logs: bool = False) -> Estimate:
    """The mean of ``n`` values with its t interval, which is unknown where the variance is.

    ``of_logs``: the values are logarithms, and the estimate is their geometric mean.
    """
    scale = math.exp if of_logs else float
    if variance.df <= 0:
        return Estimate(centre=scale(mean), low=None, high=None, noise=None, n=n)
    tail = (1.0 - INTERVAL_CONFIDENCE) / 2.0
    half = -compute_t_quantile(tail, variance.df) * math.sqrt(variance.value / n)
    noise = math.sqrt(variance.value)
    return Estimate(centre=scale(mean), low=scale(mean - half), high=scale(mean + half), noise=noise, n=n)
