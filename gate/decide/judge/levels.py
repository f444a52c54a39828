"""Tells which of two known levels a commit is at: the good end's or the bad end's.

Between levels that are known the fewest pairs tell which one it is by Wald's sequential test of likelihoods
(1945): after each pair the likelihood at one level over that at the other is held against fixed odds. The
noise is not known, so a pair is weighed by a t density, whose tails bound what a single one can say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gate.decide.constants import (
    LEVEL_NOISE_MARGIN,
    LEVEL_ODDS,
    LEVEL_PRECISION,
    LEVEL_TAIL_DF,
    MAX_LEVEL_PAIRS,
    MIN_PAIRS,
    PAIR_PRIOR_DF,
    PROCESSOR_PAIR_SD,
)
from gate.decide.evidence.pairs import Paired
from gate.decide.judge.confirm import read_pairs
from gate.decide.judge.paired_case import assume_sd
from gate.decide.judge.sides import CasePairs
from gate.decide.stats.moments import Variance
from gate.records import Metric
from gate.records.bisection import Mark

_BOUND = math.log(LEVEL_ODDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels:
    """Where the ends are on the logarithmic scale: the good one at 0, the bad one above it."""

    bad: float
    error: float  # standard error of ``bad``
    noise: Variance  # of a pair

    @property
    def is_known(self) -> bool:
        """Whether the bad level is known well enough to hold others against it."""
        return self.error <= LEVEL_PRECISION * self.bad


def find_series(side: CasePairs, metric: Metric) -> Paired | None:
    """The changes that a noisy metric is told by: of a cold compile the CPU time, where it is known."""
    if metric is Metric.COLD_COMPILE_TIME and side.processor is not None:
        return side.processor
    return side.paired.get(metric)


def measure_levels(side: CasePairs, metric: Metric) -> Levels | None:
    """Both levels by the pairs of the bad end with the good one; ``None`` where it is not above."""
    paired = find_series(side, metric)
    if paired is None:
        return None
    is_processor = paired is side.processor
    sd = PROCESSOR_PAIR_SD if is_processor else assume_sd(metric, paired.is_live)
    reading = read_pairs(paired, Variance(value=sd**2, df=PAIR_PRIOR_DF))
    if reading.change <= 0:
        return None
    return Levels(bad=reading.change, error=reading.error, noise=reading.noise)


def tell_level(paired: Paired, levels: Levels) -> Mark | None:
    """Which level these pairs are at; ``None`` asks for another pair, and SKIP gives up.

    One pair says nothing of its own noise, so it tells nothing.
    """
    count = len(paired.changes)
    if count < MIN_PAIRS:
        return None
    weight = _weigh(paired.changes, levels.bad, read_pairs(paired, levels.noise).noise)
    if abs(weight) >= _BOUND:
        return Mark.BAD if weight > 0 else Mark.GOOD
    return Mark.SKIP if count >= MAX_LEVEL_PAIRS else None


def expect_pairs(levels: Levels) -> int:
    """How many pairs tell a step, typically: those that lie at a level itself, but for their noise.

    Half as many again where noise is what takes more than MIN_PAIRS.
    """
    each = _weigh((levels.bad,), levels.bad, levels.noise)
    pairs = math.ceil(_BOUND / each)
    if pairs <= MIN_PAIRS:
        return MIN_PAIRS
    return min(math.ceil(1.5 * pairs), MAX_LEVEL_PAIRS)


def _weigh(changes: Sequence[float], bad: float, noise: Variance) -> float:
    """Logarithm of how many times as likely these changes are at the bad level as at the good one."""
    scale = LEVEL_TAIL_DF * noise.value * (1 + LEVEL_NOISE_MARGIN / math.sqrt(noise.df))
    return (
        (LEVEL_TAIL_DF + 1)
        / 2
        * math.fsum(
            math.log1p(change**2 / scale) - math.log1p((change - bad) ** 2 / scale) for change in changes
        )
    )
