"""Which of two known levels a commit is at: the good end's or the bad end's.

By Wald's sequential test of likelihoods (1945), which needs the fewest pairs. The noise is not known, so a
pair is weighed by a t density, whose tails limit the weight of a single one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gate.decide.constants import MIN_PAIRS
from gate.decide.evidence.pairs import Paired
from gate.decide.judge.interval import read_pairs
from gate.decide.judge.pairs import ASSUMED_PROCESSOR, CasePairs, assume_noise
from gate.decide.stats import Variance
from gate.records.cases import Metric
from gate.records.studies import Mark

# A step is decided once its pairs are this many times as likely at one end's level as at the other's. By
# Wald's bound a step is then wrong at most once in 200, so one of 40 bisections of five steps.
LEVEL_ODDS = 200.0
# Degrees of freedom of the t density that a pair is weighed by: with so few a stray pair weighs no more than
# one that is where it should be. With 8, half as many again of simulated bisections went wrong.
LEVEL_TAIL_DF = 4.0
# A step's noise counts as 1 + 3 / sqrt(df) times its estimate: of few pairs it is as often too small as too
# large, and a step that it is too small for is wrong. Without it 4 to 9 of 100 simulated bisections of 10 %
# with pairs that vary by 4.8 % had a wrong step, and with it 2.
LEVEL_NOISE_MARGIN = 3.0
# The ends get pairs until the standard error of their distance is this share of it, or they have the most: an
# error of the level is one of every step.
LEVEL_PRECISION = 0.125
# Where the last of the LOOKS leaves the ends open, or what was found, they get up to so many pairs: the whole
# search rests on them, and ends that are wrongly taken to differ lead to no answer, not to a wrong one.
MAX_END_PAIRS = 32
# A step that so many pairs leave open lies between the levels, or is too noisy: it is skipped.
MAX_LEVEL_PAIRS = 24

_BOUND = math.log(LEVEL_ODDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels:
    """On the logarithmic scale: the good one at 0, the bad one above it."""

    bad: float
    error: float  # standard error of ``bad``
    noise: Variance  # of a pair

    @property
    def is_known(self) -> bool:
        """Precisely enough to compare others with it."""
        return self.error <= LEVEL_PRECISION * self.bad


def choose_series(side: CasePairs, metric: Metric) -> Paired | None:
    """Of a cold compile the CPU time, where it is known."""
    if metric is Metric.COLD_COMPILE_TIME and side.processor is not None:
        return side.processor
    return side.paired.get(metric)


def measure_levels(side: CasePairs, metric: Metric) -> Levels | None:
    """From the pairs of the bad end with the good one; ``None`` where it is not above."""
    paired = choose_series(side, metric)
    if paired is None:
        return None
    is_processor = paired is side.processor
    reading = read_pairs(paired, ASSUMED_PROCESSOR if is_processor else assume_noise(metric, paired.is_live))
    if reading.change <= 0:
        return None
    return Levels(bad=reading.change, error=reading.error, noise=reading.noise)


def classify_level(paired: Paired, levels: Levels) -> Mark | None:
    """``None`` asks for another pair, and SKIP gives up."""
    count = len(paired.changes)
    if count < MIN_PAIRS:
        return None
    weight = _weigh(paired.changes, levels.bad, read_pairs(paired, levels.noise).noise)
    if abs(weight) >= _BOUND:
        return Mark.BAD if weight > 0 else Mark.GOOD
    return Mark.SKIP if count >= MAX_LEVEL_PAIRS else None


def expect_pairs(levels: Levels) -> int:
    """At a level and without their noise; half as many again where that takes more than MIN_PAIRS."""
    each = _weigh((levels.bad,), levels.bad, levels.noise)
    pairs = math.ceil(_BOUND / each)
    if pairs <= MIN_PAIRS:
        return MIN_PAIRS
    return min(math.ceil(1.5 * pairs), MAX_LEVEL_PAIRS)


def _weigh(changes: Sequence[float], bad: float, noise: Variance) -> float:
    """Logarithm of the likelihood of these changes at the bad level over that at the good one."""
    scale = LEVEL_TAIL_DF * noise.value * (1 + LEVEL_NOISE_MARGIN / math.sqrt(noise.df))
    return (
        (LEVEL_TAIL_DF + 1)
        / 2
        * math.fsum(
            math.log1p(change**2 / scale) - math.log1p((change - bad) ** 2 / scale) for change in changes
        )
    )
