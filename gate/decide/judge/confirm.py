"""Judges a noisy metric by side-by-side pairs: confirmed, acquitted or unsettled.

The pairs were run to confirm, so the bar is another than the screen's: the lower bound must be above
no change, and the estimate above the threshold. No sitting stands between the arms.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from itertools import groupby
from statistics import fmean

from gate.decide.constants import (
    CLEAR_CONFIDENCE,
    INTERVAL_CONFIDENCE,
    LOOKS,
    MAX_FURTHER_PAIRS,
    MIN_PAIRS,
    OWN_NOISE_P,
    PAIRS_PER_STRAY,
)
from gate.decide.evidence.pairs import Paired
from gate.decide.judge.screen import (
    Bar,
    Reading,
    compute_log_edge,
    is_estimated_beyond,
    make_change,
    mirror_reading,
    to_fraction,
)
from gate.decide.stats.moments import (
    Variance,
    compute_hodges_lehmann,
    compute_logs,
    compute_winsorized_variance,
    count_winsorized_df,
    moderate_variance,
)
from gate.decide.stats.ranks import compute_rank_bound, compute_rank_interval
from gate.decide.stats.student import compute_t_quantile
from gate.metrics import SPECS
from gate.records import Change, Reason, Status

# Variance of the Hodges-Lehmann estimate of normal values over that of their mean: the largest at any look.
# Simulated, +-0.003: 1.02 of 3, 1.08 of 6, 1.07 of 10 and 1.06 of 16 values (1.10 of 4), and pi / 3 of many;
# Park, Kim and Wang 2022 tabulate it.
POOLING_LOSS = 1.08
# How often a change that matters may be excluded.
_MISS = 1 - CLEAR_CONFIDENCE


def read_pairs(paired: Paired, prior: Variance, twin: Paired | None = None) -> Reading:
    """Pool the pairs' changes robustly; the standard error is s sqrt(POOLING_LOSS / P), s^2 moderated.

    ``twin`` is another program that the same blocks timed, and that varies as this one does.
    """
    count = len(paired.changes)
    own = _measure_noise(paired)
    noise = moderate_variance(own, prior)
    return Reading(
        metric=paired.metric,
        change=compute_hodges_lehmann(paired.changes),
        error=_compute_error(noise, count),
        df=noise.df,
        noise=noise,
        baseline=math.exp(fmean(compute_logs(paired.base))),
        direction=-1.0 if SPECS[paired.metric].higher_is_better else 1.0,
        trials=count,
        baseline_trials=count,
        own=_join_twin(own, _measure_noise(twin)) if twin is not None and own.df else None,
        ranked=tuple(paired.changes) if count >= LOOKS[-1] else (),
    )


def decide_pairs(reading: Reading, bar: Bar) -> tuple[Status, Reason]:
    """Status of a metric by its pairs alone; before the last look, UNSETTLED asks for more of them."""
    if is_confirmed(reading, bar):
        return Status.REGRESSED, Reason.CONFIRMED
    if reading.change < 0 and is_confirmed(mirror_reading(reading), bar):
        return Status.IMPROVED, Reason.CONFIRMED
    if is_excluded(reading, bar):
        return Status.UNCHANGED, Reason.ACQUITTED
    return Status.INCONCLUSIVE, Reason.UNSETTLED


def is_confirmed(reading: Reading, bar: Bar) -> bool:
    """Whether a worsening is certain within the error budget and estimated beyond the threshold.

    Certain by the noise, with what others teach of it and by the case's own alone, or by the ranks.
    """
    if reading.trials < MIN_PAIRS or not is_estimated_beyond(reading, bar):
        return False
    by_noise = _bound_by_noise(reading, bar.alpha) > 0 and _bound_by_own(reading) > 0
    return by_noise or compute_rank_bound(reading.ranked, bar.alpha) > 0


def is_excluded(reading: Reading, bar: Bar) -> bool:
    """Whether a worsening that matters is excluded with CLEAR_CONFIDENCE, by the noise or by the ranks.

    One pair says nothing of its own noise, so it excludes nothing.
    """
    if reading.trials < MIN_PAIRS:
        return False
    by_noise = reading.change + compute_t_quantile(CLEAR_CONFIDENCE, reading.df) * reading.error
    by_ranks = -compute_rank_bound([-change for change in reading.ranked], _MISS)
    return min(by_noise, by_ranks) < compute_log_edge(reading, bar)


def make_pair_change(reading: Reading, bar: Bar, detectable: float) -> Change:
    """The change as fractions with its interval: that of the ranks where they alone settle it.

    One pair says nothing of its own noise, so it has none.
    """
    change = make_change(reading, detectable)
    if reading.trials < MIN_PAIRS:
        return replace(change, low=change.centre, high=change.centre)
    if not _is_settled_by_ranks(reading, bar):
        return change
    tail = (1 - INTERVAL_CONFIDENCE) / 2
    low, high = compute_rank_interval(reading.ranked, tail)
    return replace(change, low=to_fraction(low), high=to_fraction(high))


def compute_pair_detectable(reading: Reading, bar: Bar) -> float:
    """Smallest true change, as a fraction, that would have been confirmed in 95 % of cases.

    A change is confirmed when its estimate exceeds the threshold and is as far from no change as its
    lower bound is below it; a true change above that by what CLEAR_CONFIDENCE leaves to chance is. One
    pair confirms nothing, however large it is.
    """
    if reading.trials < MIN_PAIRS:
        return to_fraction(math.inf)
    if _is_settled_by_ranks(reading, bar):
        needed, margin = (reading.change - compute_rank_bound(reading.ranked, p) for p in (bar.alpha, _MISS))
    else:
        needed = reading.change - min(_bound_by_noise(reading, bar.alpha), _bound_by_own(reading))
        margin = reading.change - _bound_by_noise(reading, _MISS)
    return to_fraction(max(compute_log_edge(reading, bar), needed) + margin)


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
    """The same estimate and noise, of so many pairs; nobody knows how those will rank."""
    gained = _count_df(pairs) - _count_df(reading.trials)
    own = reading.own
    if own is not None:
        own = replace(own, df=own.df * _count_df(pairs) / _count_df(reading.trials))
    error = _compute_error(reading.noise, pairs)
    return replace(reading, trials=pairs, df=max(1.0, reading.df + gained), error=error, own=own, ranked=())


def _is_settled_by_ranks(reading: Reading, bar: Bar) -> bool:
    """Whether the noise alone leaves it open."""
    if not reading.ranked:
        return False
    by_noise = replace(reading, ranked=())
    unsettled = (Status.INCONCLUSIVE, Reason.UNSETTLED)
    return decide_pairs(by_noise, bar) == unsettled != decide_pairs(reading, bar)


def _measure_noise(paired: Paired) -> Variance:
    return compute_winsorized_variance(paired.changes, len(paired.changes) // PAIRS_PER_STRAY)


def _join_twin(own: Variance, twin: Variance) -> Variance:
    """What both say of the noise, and no less than the case's own pairs: a twin may be a quiet one."""
    both = moderate_variance(own, twin)
    return replace(both, value=max(both.value, own.value))


def _bound_by_noise(reading: Reading, p: float) -> float:
    """What the true change is below with probability ``p``."""
    return reading.change + compute_t_quantile(p, reading.df) * reading.error


def _bound_by_own(reading: Reading) -> float:
    """The same with OWN_NOISE_P by the case's own noise alone; nothing is asked where no twin shares it."""
    if reading.own is None:
        return math.inf
    error = _compute_error(reading.own, reading.trials)
    return reading.change + compute_t_quantile(OWN_NOISE_P, reading.own.df) * error


def _count_df(pairs: int) -> float:
    return count_winsorized_df(pairs, pairs // PAIRS_PER_STRAY)


def _compute_error(noise: Variance, pairs: int) -> float:
    return math.sqrt(noise.value * POOLING_LOSS / pairs)
