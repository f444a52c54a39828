"""Judges a noisy metric by side-by-side pairs: confirmed, acquitted or unsettled.

The pairs were run to confirm, so the bar is another than the screen's: the lower bound must be above
no change, and the estimate above the threshold. No sitting stands between the arms.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from itertools import groupby

from gate.decide.constants import CLEAR_CONFIDENCE, MAX_FURTHER_PAIRS, MIN_PAIRS, PAIRS_PER_STRAY
from gate.decide.pairs import Paired
from gate.decide.screen import (
    Bar,
    Reading,
    compute_log_edge,
    is_estimated_beyond,
    mirror_reading,
    to_fraction,
)
from gate.decide.stats import (
    Variance,
    compute_hodges_lehmann,
    compute_logs,
    compute_mean,
    compute_winsorized_variance,
    count_winsorized_df,
    moderate_variance,
)
from gate.decide.student import compute_t_quantile
from gate.metrics import SPECS
from gate.records import Reason, Status

# Variance of the Hodges-Lehmann estimate of normal values over that of their mean: the largest at any look.
# Simulated, +-0.003: 1.02 of 3, 1.08 of 6, 1.07 of 10 and 1.06 of 16 values (1.10 of 4), and pi / 3 of many;
# Park, Kim and Wang 2022 tabulate it.
POOLING_LOSS = 1.08


def read_pairs(paired: Paired, prior: Variance) -> Reading:
    """Pool the pairs' changes robustly; the standard error is s sqrt(POOLING_LOSS / P), s^2 moderated."""
    count = len(paired.changes)
    noise = moderate_variance(compute_winsorized_variance(paired.changes, count // PAIRS_PER_STRAY), prior)
    return Reading(
        metric=paired.metric,
        change=compute_hodges_lehmann(paired.changes),
        error=_compute_error(noise, count),
        df=noise.df,
        noise=noise,
        baseline=math.exp(compute_mean(compute_logs(paired.base))),
        direction=-1.0 if SPECS[paired.metric].higher_is_better else 1.0,
        trials=count,
        baseline_trials=count,
    )


def decide_pairs(reading: Reading, bar: Bar) -> tuple[Status, Reason]:
    """Status of a metric by its pairs alone; before the last look, UNSETTLED asks for more of them."""
    if is_confirmed(reading, bar):
        return Status.REGRESSED, Reason.CONFIRMED
    if is_confirmed(mirror_reading(reading), bar):
        return Status.IMPROVED, Reason.CONFIRMED
    if is_excluded(reading, bar):
        return Status.UNCHANGED, Reason.ACQUITTED
    return Status.INCONCLUSIVE, Reason.UNSETTLED


def is_confirmed(reading: Reading, bar: Bar) -> bool:
    """Whether a worsening is certain within the error budget and estimated beyond the threshold."""
    if reading.trials < MIN_PAIRS:
        return False
    lower = reading.change + compute_t_quantile(bar.alpha, reading.df) * reading.error
    return lower > 0 and is_estimated_beyond(reading, bar)


def is_excluded(reading: Reading, bar: Bar) -> bool:
    """Whether a worsening that matters is excluded with CLEAR_CONFIDENCE.

    One pair says nothing of its own noise, so it excludes nothing.
    """
    if reading.trials < MIN_PAIRS:
        return False
    upper = reading.change + compute_t_quantile(CLEAR_CONFIDENCE, reading.df) * reading.error
    return upper < compute_log_edge(reading, bar)


def compute_pair_detectable(reading: Reading, bar: Bar) -> float:
    """Smallest true change, as a fraction, that would have been confirmed in 95 % of cases.

    A change is confirmed when its estimate exceeds the threshold and t(1 - alpha) standard errors;
    a true change t(.95) standard errors above that does.
    """
    needed = max(compute_log_edge(reading, bar), -compute_t_quantile(bar.alpha, reading.df) * reading.error)
    return to_fraction(needed + compute_t_quantile(CLEAR_CONFIDENCE, reading.df) * reading.error)


def compute_further_pairs(reading: Reading, bar: Bar) -> int | None:
    """Fewest pairs that would settle it if estimate and noise stayed; ``None`` beyond MAX_FURTHER_PAIRS.

    A pair more is more certainty, but where it makes winsorizing take more degrees of freedom away: so
    each stretch between such numbers is searched by itself.
    """
    numbers = range(reading.trials + 1, reading.trials + MAX_FURTHER_PAIRS + 1)

    def is_settled(pairs: int) -> bool:
        return decide_pairs(extend_reading(reading, pairs), bar)[0] is not Status.INCONCLUSIVE

    for _, stretch in groupby(numbers, key=lambda pairs: pairs // PAIRS_PER_STRAY):
        within = list(stretch)
        if is_settled(within[-1]):
            return within[bisect_left(within, True, key=is_settled)] - reading.trials
    return None


def extend_reading(reading: Reading, pairs: int) -> Reading:
    """The same estimate and noise, of so many pairs."""
    gained = _count_df(pairs) - _count_df(reading.trials)
    error = _compute_error(reading.noise, pairs)
    return replace(reading, trials=pairs, df=max(1.0, reading.df + gained), error=error)


def _count_df(pairs: int) -> float:
    return count_winsorized_df(pairs, pairs // PAIRS_PER_STRAY)


def _compute_error(noise: Variance, pairs: int) -> float:
    return math.sqrt(noise.value * POOLING_LOSS / pairs)
