"""Screening of the noisy metrics: how large a change is, how sure, and whether it is suspect.

All changes here are natural logarithms of candidate over baseline with + worse; for a metric where
higher is better the ratio is turned around. What this module calls SUSPECT or CONVICTED is worth
the time of a side-by-side run, whose rule for its own readings is in :mod:`gate.decide.judge.confirm`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from gate.decide.constants import (
    BLIND_THRESHOLDS,
    CLEAR_CONFIDENCE,
    DETECTABLE_FRACTION,
    DETECTABLE_THRESHOLDS,
    INTERVAL_CONFIDENCE,
    LARGEST_FACTOR,
    SESSION_SD,
    SUSPECT_CHANGE,
    SUSPECT_P,
)
from gate.decide.stats.moments import LogArms, Variance, moderate_variance
from gate.decide.stats.student import compute_t_quantile
from gate.metrics import SPECS
from gate.records import Change, Metric, Threshold


class Level(IntEnum):
    """How much a change looks like one."""

    CLEAR = 0
    SUSPECT = 1
    CONVICTED = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Candidate against baseline for one noisy metric of one case."""

    metric: Metric
    change: float  # natural logarithm, + is worse
    error: float  # standard error of the change
    df: float
    noise: Variance  # between trials, of logarithms, moderated
    baseline: float  # geometric mean, in the metric's unit
    direction: float  # the candidate's value is baseline * exp(direction * change)
    trials: int
    baseline_trials: int
    own: Variance | None = None  # of pairs: the noise by the case's own alone, whatever is assumed
    ranked: tuple[float, ...] = ()  # the changes of pairs, once there are so many that their ranks count


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """What a change must reach."""

    alpha: float  # one-sided, after division over comparisons and looks
    threshold: Threshold


def read_change(metric: Metric, arms: LogArms, prior: Variance) -> Reading:
    """Compare the log means of both arms.

    The standard error is sqrt(s^2 (1/R + 1/K) + SESSION_SD^2), s^2 moderated by ``prior``.
    """
    noise = moderate_variance(arms.variance, prior)
    direction = -1.0 if SPECS[metric].higher_is_better else 1.0
    sampling = noise.value * (1 / arms.after_trials + 1 / arms.before_trials)
    return Reading(
        metric=metric,
        change=direction * (arms.after - arms.before),
        error=math.sqrt(sampling + SESSION_SD**2),
        df=noise.df,
        noise=noise,
        baseline=math.exp(arms.before),
        direction=direction,
        trials=arms.after_trials,
        baseline_trials=arms.before_trials,
    )


def mirror_reading(reading: Reading) -> Reading:
    """The same reading with better and worse exchanged, so that one rule serves both."""
    return replace(
        reading,
        change=-reading.change,
        direction=-reading.direction,
        ranked=tuple(-change for change in reading.ranked),
    )


def is_beyond(reading: Reading, bar: Bar, shift: float = 0.0, thresholds: float = 1.0) -> bool:
    """Whether the change, less the machine's ``shift``, surely exceeds so many thresholds.

    Its one-sided lower bound at ``bar.alpha`` must be above the relative threshold, and its
    estimate above the absolute one.
    """
    change = reading.change - shift
    lower = change + compute_t_quantile(bar.alpha, reading.df) * reading.error
    relevant = compute_absolute(reading, change) > bar.threshold.absolute
    return lower > math.log1p(thresholds * bar.threshold.relative) and change > 0 and relevant


def is_estimated_beyond(reading: Reading, bar: Bar, shift: float = 0.0) -> bool:
    """Whether the estimate alone, less the machine's ``shift``, exceeds the threshold's both parts."""
    change = reading.change - shift
    relevant = compute_absolute(reading, change) > bar.threshold.absolute
    return change > math.log1p(bar.threshold.relative) and relevant


def screen_change(reading: Reading, bar: Bar, shift: float = 0.0) -> Level:
    """Level of the change once the machine's ``shift`` is taken away."""
    if is_beyond(reading, bar, shift):
        return Level.CONVICTED
    change = reading.change - shift
    sure = change > compute_t_quantile(1 - SUSPECT_P, reading.df) * reading.error
    upper = change + compute_t_quantile(CLEAR_CONFIDENCE, reading.df) * reading.error
    if change > math.log1p(SUSPECT_CHANGE) and sure and upper > compute_log_edge(reading, bar):
        return Level.SUSPECT
    return Level.CLEAR


def is_significant(reading: Reading) -> bool:
    """Whether the interval that is shown excludes no change at all."""
    return abs(reading.change) > _compute_interval_half(reading)


def compute_absolute(reading: Reading, change: float) -> float:
    """What a log change is in the metric's unit."""
    return abs(reading.baseline * math.expm1(reading.direction * change))


def compute_detectable(reading: Reading, bar: Bar) -> float:
    """Smallest true change, as a fraction, that would have been at least SUSPECT in 95 % of cases.

    A change is noticed when its estimate exceeds each of: the SUSPECT_CHANGE, t(.75) standard
    errors, and the threshold less t(.95) standard errors; a true change t(.95) above that is.
    """
    margin = compute_t_quantile(CLEAR_CONFIDENCE, reading.df) * reading.error
    noticed = max(
        math.log1p(SUSPECT_CHANGE),
        compute_t_quantile(1 - SUSPECT_P, reading.df) * reading.error,
        compute_log_edge(reading, bar) - margin,
    )
    return to_fraction(noticed + margin)


def is_too_noisy(detectable: float, threshold: Threshold, baseline: float) -> bool:
    """Whether even a change far beyond the threshold could have gone unseen."""
    edge = compute_edge(threshold, baseline)
    return detectable > max(DETECTABLE_THRESHOLDS * edge, DETECTABLE_FRACTION)


def is_blind(detectable: float, threshold: Threshold, baseline: float) -> bool:
    """Whether a change that is worth a side-by-side run could have gone unseen."""
    return detectable > BLIND_THRESHOLDS * compute_edge(threshold, baseline)


def is_doubtful(reading: Reading, bar: Bar, shifts: Iterable[float]) -> bool:
    """Whether a change may be there: in some view of the machine, or because it could have gone unseen."""
    blind = is_blind(compute_detectable(reading, bar), bar.threshold, reading.baseline)
    return blind or any(screen_change(reading, bar, shift) > Level.CLEAR for shift in (0.0, *shifts))


def compute_edge(threshold: Threshold, baseline: float) -> float:
    """The smallest fraction of a positive ``baseline`` that exceeds both parts of the threshold."""
    return max(threshold.relative, threshold.absolute / baseline)


def compute_log_edge(reading: Reading, bar: Bar) -> float:
    """The smallest log change that matters."""
    return math.log1p(compute_edge(bar.threshold, reading.baseline))


def make_change(reading: Reading, detectable: float) -> Change:
    """The change as fractions with its two-sided interval; + is worse."""
    half = _compute_interval_half(reading)
    return Change(
        centre=to_fraction(reading.change),
        low=to_fraction(reading.change - half),
        high=to_fraction(reading.change + half),
        detectable=detectable,
    )


def to_fraction(change: float) -> float:
    """What a log change is as a fraction, LARGEST_FACTOR at most."""
    return math.expm1(min(change, math.log(LARGEST_FACTOR)))


def _compute_interval_half(reading: Reading) -> float:
    return compute_t_quantile(1 - (1 - INTERVAL_CONFIDENCE) / 2, reading.df) * reading.error
