"""Both sides' values as lines of text: each trial a dot on one common scale."""

from __future__ import annotations

from collections.abc import Sequence

from gate.records import Metric
from gate.units import render_value

_DOTS = ".:*#"  # one value in a column, two, three, and more
_LABEL = 6


def draw_strips(metric: Metric, before: Sequence[float], after: Sequence[float], width: int) -> list[str]:
    """Draw a line of each side, and below them the ends of the scale; nothing where nothing is known."""
    low, high = min((*before, *after), default=0.0), max((*before, *after), default=0.0)
    if not (before or after):
        return []
    columns = max(10, width - _LABEL - 4)
    sides = (("before", before), ("after", after))
    lines = [f"{label:<{_LABEL}} |{_draw(values, low, high, columns)}|" for label, values in sides if values]
    ends = render_value(metric, low), render_value(metric, high)
    gap = max(1, columns - len(ends[0]) - len(ends[1]))
    return [*lines, f"{'':<{_LABEL}}  {ends[0]}{' ' * gap}{ends[1] if high > low else ''}".rstrip()]


def _draw(values: Sequence[float], low: float, high: float, columns: int) -> str:
    counts = [0] * columns
    for value in values:
        place = (value - low) / (high - low) if high > low else 0.5
        counts[min(columns - 1, int(place * columns))] += 1
    return "".join(_DOTS[min(count, len(_DOTS)) - 1] if count else " " for count in counts)
