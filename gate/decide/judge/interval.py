"""One interval for each noisy metric: by how much head is slower, at least and at most.

Changes are ln(candidate / baseline), + is worse; where higher is better the ratio is turned around. The
*edge* is the smallest log change that matters.
"""

import math
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Self

from gate.decide.constants import CLEAR_CONFIDENCE, INTERVAL_CONFIDENCE, POOLING_LOSS, WIDEST
from gate.decide.evidence.pairs import Paired
from gate.decide.stats import (
    LogArms,
    Variance,
    compute_hodges_lehmann,
    compute_logs,
    compute_t_quantile,
    compute_winsorized_variance,
    count_winsorized_df,
    pool_variances,
)
from gate.metrics import SPECS
from gate.records.cases import Metric, Threshold
from gate.records.verdict import Change, Reason, Status

# An interval wider than this factor shows nothing, and is drawn as wide as this: the
# logarithm of a bound that two pairs leave may be in the hundreds, which no number holds.
LARGEST_FACTOR = 1e6

# As many degrees of freedom as make Student's t normal to three digits.
_KNOWN_DF = 1000.0

Ruling = tuple[Status, Reason]
WORSE: Ruling = (Status.REGRESSED, Reason.BEYOND_BAR)
BETTER: Ruling = (Status.IMPROVED, Reason.BEYOND_BAR)
UNCHANGED: Ruling = (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
UNSETTLED: Ruling = (Status.INCONCLUSIVE, Reason.UNSETTLED)


class Level(Enum):
    CLEAR = auto()  # surely below the edge
    OPEN = auto()
    BEYOND = auto()  # surely beyond it


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    change: float  # natural logarithm, + is worse
    error: float  # standard error of the change
    df: float  # degrees of freedom of that
    noise: Variance  # between trials or pairs, of logarithms, moderated
    baseline: float  # geometric mean of trials, robust one of pairs, in the metric's unit
    candidate: float  # likewise, as it was measured
    trials: int
    baseline_trials: int
    own_noise: Variance | None = None  # of pairs, without a prior

    def mirror(self) -> Self:
        return replace(self, change=-self.change)

    def extend(self, pairs: int) -> Self:
        now, then = count_winsorized_df(self.trials), count_winsorized_df(pairs)
        return replace(
            self,
            trials=pairs,
            error=compute_pooled_error(self.noise, pairs),
            df=self.df + (then - now),
            noise=replace(self.noise, df=self.noise.df + (then - now)),
            own_noise=replace(self.own_noise, df=self.own_noise.df * then / now) if self.own_noise else None,
        )

    def compute_margin(self, p: float) -> float:
        """By how much the bound with probability ``p`` is above the estimate."""
        return compute_t_quantile(p, self.df) * self.error

    def compute_bound(self, p: float) -> float:
        """The true change is below this with probability ``p``."""
        return self.change + self.compute_margin(p)

    def make_change(self, detectable: float) -> Change:
        """Fractions, with a two-sided interval."""
        half = self.compute_margin(1 - (1 - INTERVAL_CONFIDENCE) / 2)
        return Change(
            centre=to_fraction(self.change),
            low=to_fraction(self.change - half),
            high=to_fraction(self.change + half),
            detectable=detectable,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """The smallest change that matters, and how sure it must be."""

    alpha: float  # one-sided, after division over comparisons and looks
    threshold: Threshold
    edges: float = 1.0  # UNCHANGED is surely below so many edges, and estimated below one

    def compute_log_edge(self, reading: Reading) -> float:
        return math.log1p(compute_edge(self.threshold, reading.baseline))

    def is_exceeded_by(self, reading: Reading) -> bool:
        return reading.change > self.compute_log_edge(reading)

    def classify(self, reading: Reading) -> Level:
        """An interval that reaches further above its middle than WIDEST edges is low by luck: not clear."""
        edge = self.compute_log_edge(reading)
        if reading.compute_bound(self.alpha) > edge:
            return Level.BEYOND
        high = reading.compute_bound(CLEAR_CONFIDENCE)
        is_clear = (
            high < self.edges * edge and high - reading.change < WIDEST * edge and reading.change < edge
        )
        return Level.CLEAR if is_clear else Level.OPEN

    def compute_detectable(self, reading: Reading) -> float:
        """Smallest true change, as a fraction, that is surely not UNCHANGED, at INTERVAL_CONFIDENCE."""
        edge = self.compute_log_edge(reading)
        clear, seen = map(reading.compute_margin, (CLEAR_CONFIDENCE, INTERVAL_CONFIDENCE))
        return to_fraction(min(self.edges * edge - clear, edge) + seen)


def read_stored(metric: Metric, arms: LogArms, prior: Variance, session: Variance, shift: float) -> Reading:
    """Compare the log means of a run and its baseline, less the machine's ``shift``.

    The standard error is sqrt(s^2 (1/R + 1/K) + ``session``), s^2 moderated by ``prior``. Its degrees of
    freedom are Satterthwaite's (1946). More trials of one session do not average ``session`` away.
    """
    noise = pool_variances(arms.variance, prior)
    direction = -1.0 if SPECS[metric].higher_is_better else 1.0
    sampling = noise.value * (1 / arms.after_trials + 1 / arms.before_trials)
    return Reading(
        change=direction * (arms.after - arms.before) - shift,
        error=math.sqrt(sampling + session.value),
        df=_join_df(Variance(value=sampling, df=noise.df), session),
        noise=noise,
        baseline=math.exp(arms.before),
        candidate=math.exp(arms.after),
        trials=arms.after_trials,
        baseline_trials=arms.before_trials,
    )


def _join_df(*parts: Variance) -> float:
    """Degrees of freedom of a sum of variances, to two digits, so that quantiles can be cached."""
    whole = sum(part.value for part in parts)
    unknown = sum(part.value**2 / part.df for part in parts) / whole**2 if whole else 0.0
    return float(f"{1 / max(unknown, 1 / _KNOWN_DF):.2g}")


def read_pairs(paired: Paired, prior: Variance, twin: Paired | None = None) -> Reading:
    """Pool the changes; the standard error is s sqrt(POOLING_LOSS / P), s^2 moderated.

    Both sides' values are pooled the same way, so that they agree with the change. ``twin`` is another
    program that the same blocks timed, and that varies likewise.
    """
    count = len(paired.changes)
    own_noise = compute_winsorized_variance(paired.changes)
    noise = pool_variances(own_noise, prior)
    # A quieter twin does not lower the noise.
    both = pool_variances(own_noise, compute_winsorized_variance(twin.changes)) if twin else own_noise
    return Reading(
        change=compute_hodges_lehmann(paired.changes),
        error=compute_pooled_error(noise, count),
        df=noise.df,
        noise=noise,
        baseline=math.exp(compute_hodges_lehmann(compute_logs(paired.base))),
        candidate=math.exp(compute_hodges_lehmann(compute_logs(paired.head))),
        trials=count,
        baseline_trials=count,
        own_noise=max(own_noise, both, key=lambda variance: variance.value) if own_noise.df else None,
    )


def compute_edge(threshold: Threshold, baseline: float) -> float:
    """The smallest fraction of a positive ``baseline`` that exceeds both parts of the threshold."""
    return max(threshold.relative, threshold.absolute / baseline)


def to_fraction(change: float) -> float:
    """LARGEST_FACTOR at most."""
    return math.expm1(min(change, math.log(LARGEST_FACTOR)))


def compute_pooled_error(noise: Variance, pairs: int) -> float:
    return math.sqrt(noise.value * POOLING_LOSS / pairs)
