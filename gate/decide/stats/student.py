"""Student's t, without numpy or scipy."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_CONVERGED = 1e-16
_MAX_TERMS = 10_000
_MAX_STEPS = 200
# Newton's steps double their digits, so the step after one this small is below rounding.
_RELATIVE_STEP = 1e-12


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
        if abs(c * d - 1.0) < _CONVERGED * 10:
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
    """The t with P(T <= t) = ``p``, for 0 < p < 1."""
    if p == 0.5:  # noqa: PLR2004 - the median of a symmetric distribution
        return 0.0
    if p < 0.5:  # noqa: PLR2004 - see above
        return -_find_t(p, df)
    return _find_t(1.0 - p, df)


def _find_t(tail: float, df: float) -> float:
    """The t > 0 with P(T > t) = ``tail`` < 1/2: Newton's steps on the log tail, kept in a bracket."""
    low, high = 0.0, 1.0
    while compute_t_upper(high, df) > tail:
        low, high = high, high * 2.0
    t = 0.5 * (low + high)
    for _ in range(_MAX_STEPS):  # pragma: no branch - ended, should rounding keep it from converging
        upper = compute_t_upper(t, df)
        low, high = (t, high) if upper > tail else (low, t)
        step = t + math.log(upper / tail) * upper / _compute_t_density(t, df)
        step = step if low < step < high else 0.5 * (low + high)
        is_close = abs(step - t) <= _RELATIVE_STEP * t
        t = step
        if is_close:
            break
    return t


def _compute_t_density(t: float, df: float) -> float:
    log_scale = math.lgamma((df + 1.0) / 2.0) - math.lgamma(df / 2.0) - 0.5 * math.log(df * math.pi)
    return math.exp(log_scale - 0.5 * (df + 1.0) * math.log1p(t * t / df))
