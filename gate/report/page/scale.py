"""From values to places in a chart, and where its axis is marked; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MOST_TICKS = 4  # of a chart as wide as a phone
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_LARGEST = 1e100  # beyond it there is no span to compute with, and nothing that was measured
_MARGIN = 0.06  # of the span, so that no mark lies on the edge


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """A linear scale; ``start`` may be right of, or below, ``end``."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Where a value lies; one beyond the scale lies on its edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def make_scale(
    values: Iterable[float], start: float, end: float, *, least_span: float = 0.0, from_zero: bool = False
) -> Scale:
    """Make a scale that all finite ``values`` fit on with a margin, at least ``least_span`` wide."""
    finite = [value for value in values if abs(value) < _LARGEST] or [0.0]
    low, high = min(finite), max(finite)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    lacking = max(least_span, abs(high) * 1e-6, 1e-12) - (high - low)
    if lacking > 0:
        low, high = (low, high + lacking) if from_zero else (low - lacking / 2, high + lacking / 2)
    margin = (high - low) * _MARGIN
    return Scale(low=low - (0 if from_zero and not low else margin), high=high + margin, start=start, end=end)


def list_ticks(scale: Scale, unit: float = 1.0) -> tuple[float, ...]:
    """List round values on a scale, MOST_TICKS at most; round in multiples of ``unit``."""
    rough = (scale.high - scale.low) / unit / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in _NICE if nice * power >= rough * (1 - 1e-9))
    first = math.ceil(scale.low / unit / step - 1e-9)
    last = math.floor(scale.high / unit / step + 1e-9)
    return tuple(index * step * unit for index in range(first, last + 1))
