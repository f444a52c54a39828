"""How often something happens, with an interval that holds for small counts too."""

from __future__ import annotations

from gate.decide.constants import INTERVAL_CONFIDENCE
from gate.decide.stats.student import compute_incomplete_beta
from gate.records.calibration import Rate

_BISECTIONS = 60  # halvings of [0, 1]: below the rounding of a fraction


def compute_rate(hits: int, of: int) -> Rate:
    """The exact interval of Clopper and Pearson (1934) for ``hits`` among ``of`` trials, ``of`` > 0."""
    tail = (1.0 - INTERVAL_CONFIDENCE) / 2.0
    low = 0.0 if hits == 0 else _find_quantile(tail, hits, of - hits + 1)
    high = 1.0 if hits == of else _find_quantile(1.0 - tail, hits + 1, of - hits)
    return Rate(hits=hits, of=of, low=low, high=high)


def _find_quantile(p: float, a: int, b: int) -> float:
    """The x with I_x(a, b) = ``p``, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if compute_incomplete_beta(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
