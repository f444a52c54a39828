"""A metric's value in one arm, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from gate.decide.constants import INTERVAL_CONFIDENCE
from gate.decide.stats.moments import Variance, compute_logs, compute_variance
from gate.decide.stats.student import compute_t_quantile
from gate.metrics import SPECS, Family
from gate.records import Estimate, Metric


def estimate_metric(metric: Metric, values: Sequence[float]) -> Estimate:
    """Estimate a metric from one value a trial (at least one value), in the metric's unit.

    Noisy metrics: geometric mean and t interval on the logarithms; drift: the same without
    logarithms; the rest: median and range. A single value has no interval.
    """
    family = SPECS[metric].family
    if family is Family.LOG2:
        return _estimate_mean(fmean(values), compute_variance(values), len(values))
    if family is Family.NOISY and min(values) > 0:
        logs = compute_logs(values)
        return estimate_log_mean(fmean(logs), compute_variance(logs), len(logs))
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


def estimate_log_mean(mean: float, variance: Variance, n: int) -> Estimate:
    """Geometric mean with its interval, from the mean of ``n`` logarithms and their variance."""
    logs = _estimate_mean(mean, variance, n)
    low, high = (None if bound is None else math.exp(bound) for bound in (logs.low, logs.high))
    return replace(logs, centre=math.exp(mean), low=low, high=high)


def _estimate_mean(mean: float, variance: Variance, n: int) -> Estimate:
    """The mean of ``n`` values with its t interval, which is unknown where the variance is."""
    if variance.df <= 0:
        return Estimate(centre=mean, low=None, high=None, noise=None, n=n)
    tail = (1.0 - INTERVAL_CONFIDENCE) / 2.0
    half = -compute_t_quantile(tail, variance.df) * math.sqrt(variance.value / n)
    return Estimate(centre=mean, low=mean - half, high=mean + half, noise=math.sqrt(variance.value), n=n)
