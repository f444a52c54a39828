"""Where a series changed: ruptures' exact search for steps (PELT, in C), on a scale on which noise is 1.

ruptures was chosen over otava by planted steps: see benchmarks/trend_steps.py and docs/trend.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from gate.errors import UsageError
from gate.metrics import SPECS, Family
from gate.records import Metric
from gate.report.trend.series import TrendSeries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Each further step must pay for 3 ln(n) of squared noise: of 365 unchanged runs, nearly none does.
PENALTY = 3.0
FEWEST = 4  # runs on both sides of a step: less is an outlier, or not yet known
_CLIP = 8.0  # units of noise: one run that went wrong must not be two steps
_NORMAL = 1.4826  # of a median absolute deviation, to the standard deviation of normal noise
_FIX = "Install it: pip install 'ruptures>=1.1.9'. It brings numpy and scipy, and leaves torch as it is."


@dataclass(frozen=True, kw_only=True, slots=True)
class TrendStep:
    """A place where the level changed: the first of the new values, and by how much it is worse."""

    position: int  # in the series
    before: float  # geometric or arithmetic mean of the values since the step before
    after: float
    worse: float  # fraction, or units for counters and drift; negative is better
    kind: str = "plain"  # bad or good; of a ratio only where compiled's part of it moved so too


def find_steps(metric: Metric, values: Sequence[float]) -> tuple[TrendStep, ...]:
    """Find the steps of a series.

    A change smaller than half the metric's own threshold is none: it would be told of every night. What is
    exact has no noise: wherever it moves is a step, in the newest run as well.

    Raises:
        UsageError: ruptures is not installed.
    """
    if SPECS[metric].family is Family.EXACT:
        return tuple(_list_moves(metric, values))
    if len(values) < 2 * FEWEST or min(values) == max(values):
        return ()
    spec = SPECS[metric]
    is_log = spec.is_ratio and min(values) > 0
    scaled = [math.log(value) for value in values] if is_log else list(values)
    least = (spec.threshold.relative if is_log else spec.threshold.absolute) / 2
    ends = [0, *_search(scaled, math.log1p(least) if is_log else least), len(values)]
    means = [sum(scaled[a:b]) / (b - a) for a, b in pairwise(ends)]
    found = []
    for position, before, after in zip(ends[1:-1], means, means[1:], strict=False):
        change = math.expm1(after - before) if is_log else after - before
        worse = -change if spec.higher_is_better else change
        if abs(worse) >= least:
            undo = math.exp if is_log else float
            found.append(TrendStep(position=position, before=undo(before), after=undo(after), worse=worse))
    return tuple(found)


def mark_steps(
    metric: Metric, series: TrendSeries, leader: TrendSeries | None = None
) -> tuple[TrendStep, ...]:
    """Find the steps of a series, and call each bad or good.

    Where the series follows another, the ``leader``, that must have moved by half its threshold too, over as
    many runs: compiled over eager memory falls, and gets no better, where eager needs more.
    """
    return tuple(
        replace(step, kind="bad" if step.worse > 0 else "good")
        if leader is None or _moves_along(metric, series, step, leader)
        else step
        for step in find_steps(metric, series.centres)
    )


def _moves_along(metric: Metric, series: TrendSeries, step: TrendStep, leader: TrendSeries) -> bool:
    known = dict(zip(leader.runs, leader.centres, strict=True))
    start = max(0, step.position - FEWEST)
    sides = series.runs[start : step.position], series.runs[step.position : step.position + FEWEST]
    before, after = ([known[run] for run in side if run in known] for side in sides)
    follows = SPECS[metric].follows
    if not before or not after or follows is None or min(*before, *after) <= 0:
        return True
    change = median(after) / median(before) - 1
    worse = -change if SPECS[follows].higher_is_better else change
    return abs(worse) >= SPECS[follows].threshold.relative / 2 and worse * step.worse > 0


def _list_moves(metric: Metric, values: Sequence[float]) -> Iterator[TrendStep]:
    """Each move of an exact value, but for a single run that differs from equal ones on both sides."""
    levels = [(start, values[start]) for start in _list_starts(values)]
    for before, (start, after) in pairwise(_drop_blips(levels)):
        worse = before[1] - after if SPECS[metric].higher_is_better else after - before[1]
        yield TrendStep(position=start, before=before[1], after=after, worse=worse)


def _list_starts(values: Sequence[float]) -> list[int]:
    return [index for index in range(len(values)) if not index or values[index] != values[index - 1]]


def _drop_blips(levels: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    kept: list[tuple[int, float]] = []
    for level in levels:
        is_back = len(kept) > 1 and kept[-2][1] == level[1] and level[0] - kept[-1][0] == 1
        if is_back:
            kept.pop()
        else:
            kept.append(level)
    return kept


def _search(values: Sequence[float], least: float) -> list[int]:
    """Search for steps in units of the noise between neighbours, which no step inflates.

    ``least`` is the smallest step that is told, on the scale of ``values``.
    """
    try:
        import numpy as np  # noqa: PLC0415 - an extra
        import ruptures  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(f"trend needs ruptures, which cannot be imported: {error}", _FIX) from error
    series = np.asarray(values, dtype=float)
    moves = np.diff(series)
    noise = float(np.median(np.abs(moves - np.median(moves)))) * _NORMAL / math.sqrt(2)
    # Where most neighbours are equal any move that is told is large, whatever other moves there were.
    noise = noise or (least or float(np.max(np.abs(moves)))) / _CLIP
    scaled = _tame((series - np.median(series)) / noise)
    search = ruptures.KernelCPD(kernel="linear", min_size=FEWEST, jump=1)
    ends = search.fit_predict(scaled.reshape(-1, 1), pen=PENALTY * math.log(len(values)))
    return [int(end) for end in ends[:-1]]


def _tame(scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pull single outliers to within CLIP of the median around them."""
    import numpy as np  # noqa: PLC0415 - an extra

    width = 2 * FEWEST + 1
    padded = np.pad(scaled, FEWEST, mode="edge")
    around = np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)
    return np.clip(scaled, around - _CLIP / 2, around + _CLIP / 2)
