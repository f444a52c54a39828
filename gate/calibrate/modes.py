"""Whether values fall into two groups rather than one.

The statistic is the share of the variance that the best division into two groups explains, the
percentage points of which Engelman and Hartigan gave for normal samples (*Percentage points of a
test for clusters*, JASA 64, 1969). It needs no permutations: for one normal group it tends to 2/pi,
and what chance adds in a small sample falls with its root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from gate.records.calibration import Modes

# In fewer values than this two groups cannot be told from chance.
MIN_VALUES = 8
# A group is at least this share of the values: a few stragglers, and the long tail that times have,
# are no second mode.
SMALLEST_GROUP = 0.2
# One normal group, halved at its middle: the means of the halves are sqrt(2/pi) deviations off.
NORMAL_SHARE = 2.0 / math.pi
# Simulated with 40,000 normal samples of each size from 8 to 200: with this times 1/sqrt(n) added, at
# most 1 in 100 is called two groups. Samples with an exponential tail are called so no more often.
CHANCE_SHARE = 0.9


def find_modes(logs: Sequence[float]) -> Modes | None:
    """Divide logarithms into the two groups that explain most; ``None`` with fewer than MIN_VALUES."""
    count = len(logs)
    if count < MIN_VALUES:
        return None
    ordered = sorted(logs)
    smallest = math.ceil(SMALLEST_GROUP * count)
    cut = max(range(smallest, count - smallest + 1), key=lambda size: _compute_between(ordered, size))
    mean = fmean(ordered)
    total = math.fsum([(value - mean) ** 2 for value in ordered])
    share = min(1.0, _compute_between(ordered, cut) / total) if total > 0 else 0.0
    return Modes(
        share=share,
        apart=math.expm1(fmean(ordered[cut:]) - fmean(ordered[:cut])),
        are_two=share > NORMAL_SHARE + CHANCE_SHARE / math.sqrt(count),
    )


def _compute_between(ordered: Sequence[float], cut: int) -> float:
    """Sum of squares between the first ``cut`` values and the rest."""
    gap = fmean(ordered[cut:]) - fmean(ordered[:cut])
    return cut * (len(ordered) - cut) / len(ordered) * gap * gap
