"""Lines of a history become series, and where these changed (ruptures' exact search for steps, PELT, in C).

ruptures was chosen over otava by planted steps: see benchmarks/trend_steps.py and docs/trend.md.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean, geometric_mean, median, median_low

from gate.errors import UsageError
from gate.metrics import SPECS, Family
from gate.records.cases import Metric, collect_columns
from gate.store.history import HistoryHead, HistoryKind, HistoryLine

RECENT = 2000  # runs that are shown one by one: two months of forty a day, five years of nights
_START = 5  # values of a series for its beginning: one may be an outlier
# Each further step must pay for 3 ln(n) of squared noise: of 365 unchanged runs, nearly none does.
PENALTY = 3.0
FEWEST = 4  # runs on both sides of a step: less is an outlier, or not yet known
_CLIP = 8.0  # units of noise: one run that went wrong must not be two steps
_NORMAL = 1.4826  # of a median absolute deviation, to the standard deviation of normal noise
_FIX = "Install it: pip install 'ruptures>=1.1.9'. It brings numpy and scipy, and leaves torch as it is."


@dataclass(kw_only=True, slots=True)
class TrendSeries:
    runs: array[int] = field(default_factory=lambda: array("l"))
    centres: array[float] = field(default_factory=lambda: array("d"))
    lows: array[float] = field(default_factory=lambda: array("d"))
    highs: array[float] = field(default_factory=lambda: array("d"))

    def add(self, run: int, figures: Sequence[float]) -> None:
        self.runs.append(run)
        self.centres.append(figures[0])
        self.lows.append(figures[1] if len(figures) > 1 else figures[0])
        self.highs.append(figures[-1])

    @property
    def is_constant(self) -> bool:
        return min(self.centres) == max(self.centres)


Table = Mapping[tuple[str, Metric], TrendSeries]


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    machine: str
    heads: tuple[HistoryHead, ...]
    values: Table
    creep: Table
    upgrades: Mapping[int, str]  # of the stack, by the number of the run that was the first with it
    runs: int  # that all of it is of
    old: int = 0  # so many of the first heads stand for a day each

    def average_cases(self, metric: Metric) -> TrendSeries:
        """Geometric means of the cases, each as a share of where it began; empty without any.

        Only of ratio metrics, and of cases whose values are all above 0.
        """
        of_metric = (series for (_, name), series in self.values.items() if name is metric)
        positive = (series for series in of_metric if min(series.centres) > 0)
        return _average(map(_list_shares, positive), geometric_mean)

    def average_creep(self, metric: Metric) -> TrendSeries:
        """Against the anchor, + is worse."""
        of_metric = (series for (_, name), series in self.creep.items() if name is metric)
        return _average((dict(zip(series.runs, series.centres, strict=True)) for series in of_metric), fmean)


def make_tracks(lines: Iterable[HistoryLine], recent: int = RECENT) -> tuple[Track, ...]:
    """By machine and host, the one with the newest run first.

    Older runs become one a day while they are read: years of them would not fit into memory.
    """
    days: dict[str, _Days] = {}
    for line in lines:
        # What times are comparable on: ``cuda: NVIDIA H200, 2 threads on amd-epyc-9654-1a2b3c4d``.
        host = f" on {line.head.host}" if line.head.host else ""
        days.setdefault(f"{line.head.machine}{host}", _Days(recent)).add(line)
    tracks = [_make_track(machine, mine) for machine, mine in days.items()]
    return tuple(sorted(tracks, key=lambda track: track.heads[-1].created, reverse=True))


class _Days:
    def __init__(self, recent: int) -> None:
        self.count = 0
        self._recent = recent
        self._runs: list[HistoryLine] = []
        self._days: dict[tuple[str, bool], list[HistoryLine]] = {}

    def add(self, line: HistoryLine) -> None:
        self.count += 1
        self._runs.append(line)
        if len(self._runs) >= 2 * self._recent:
            self._put_together()

    def list_runs(self) -> tuple[list[HistoryLine], int]:
        """In the order of time; and how many of the first stand for a day."""
        self._put_together()
        days = sorted((_take_medians(runs) for runs in self._days.values()), key=_get_time)
        return [*days, *self._runs], len(days)

    def _put_together(self) -> None:
        self._runs.sort(key=_get_time)
        old = self._runs[: -self._recent]
        del self._runs[: -self._recent]
        for line in old:
            day = line.head.created[:10], line.head.kind is HistoryKind.ANCHOR
            self._days.setdefault(day, []).append(line)
        newest = old[-1].head.created[:10] if old else ""
        for day, runs in self._days.items():
            if day[0] < newest and len(runs) > 1:
                self._days[day] = [_take_medians(runs)]


def _get_time(line: HistoryLine) -> tuple[str, str]:
    return line.head.created, line.head.id


def _take_medians(runs: Sequence[HistoryLine]) -> HistoryLine:
    """The figures of the middle run of each metric."""
    if len(runs) == 1:
        return runs[0]
    medians = {
        case_id: {metric: median_low(figures) for metric, figures in collect_columns(tables).items()}
        for case_id, tables in collect_columns(line.cases for line in runs).items()
    }
    return HistoryLine(head=max(runs, key=_get_time).head, cases=medians)


def _make_track(machine: str, days: _Days) -> Track:
    lines, old = days.list_runs()
    values: dict[tuple[str, Metric], TrendSeries] = {}
    creep: dict[tuple[str, Metric], TrendSeries] = {}
    anchors = [line.head.anchor for line in lines if line.head.kind is HistoryKind.ANCHOR]
    for number, line in enumerate(lines):
        if line.head.anchor not in {"", *anchors[-1:]}:
            continue  # a change since another commit: its fall would look like a gain
        table = creep if line.head.kind is HistoryKind.ANCHOR else values
        for case_id, figures in line.cases.items():
            for metric, numbers in figures.items():
                table.setdefault((case_id, metric), TrendSeries()).add(number, numbers)
    heads = tuple(line.head for line in lines)
    return Track(
        machine=machine,
        heads=heads,
        values=values,
        creep=creep,
        upgrades=list_upgrades(heads),
        runs=days.count,
        old=old,
    )


def _list_shares(series: TrendSeries) -> dict[int, float]:
    start = median(series.centres[:_START])
    return {run: centre / start for run, centre in zip(series.runs, series.centres, strict=True)}


def _average(
    cases: Iterable[Mapping[int, float]], average: Callable[[Sequence[float]], float]
) -> TrendSeries:
    by_run, mean = collect_columns(cases), TrendSeries()
    for run in sorted(by_run):
        mean.add(run, (average(by_run[run]),))
    return mean


def list_upgrades(heads: Sequence[HistoryHead]) -> Mapping[int, str]:
    upgrades: dict[int, str] = {}
    for number, (before, after) in enumerate(pairwise(heads), start=1):
        versions = (("torch", before.torch, after.torch), ("driver", before.driver, after.driver))
        changes = [f"{name} {old or 'none'} to {new or 'none'}" for name, old, new in versions if old != new]
        if changes:
            upgrades[number] = ", ".join(changes)
    return upgrades


@dataclass(frozen=True, kw_only=True, slots=True)
class TrendStep:
    position: int  # in the series
    worse: float  # fraction, or units for counters and drift; negative is better
    kind: str = "plain"  # bad or good; plain of what follows another metric


def find_steps(metric: Metric, values: Sequence[float], old: int = 0) -> tuple[TrendStep, ...]:
    """The first ``old`` values are medians of days.

    A change below half the threshold is no step: it would come every night. An exact metric's move always
    is.

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
    cuts = _search_parts(scaled, math.log1p(least) if is_log else least, old)
    parts = [scaled[start:end] for start, end in pairwise((0, *cuts, len(values)))]
    steps = []
    for position, (before, after) in zip(cuts, pairwise(parts), strict=True):
        moved = fmean(after) - fmean(before)
        change = math.expm1(moved) if is_log else moved
        worse = -change if spec.higher_is_better else change
        if abs(worse) >= least and _differ(before, after):
            steps.append(TrendStep(position=position, worse=worse))
    return tuple(steps)


def _differ(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether FEWEST values of each part are nearer to its own median than to the other's.

    The search cuts FEWEST values off where the last one alone is another, and so before the change.
    """
    old, new = median(before), median(after)
    is_new = [[abs(value - new) < abs(value - old) for value in part] for part in (before, after)]
    return min(is_new[0].count(False), is_new[1].count(True)) >= FEWEST


def mark_steps(metric: Metric, series: TrendSeries, old: int = 0) -> tuple[TrendStep, ...]:
    """Steps that are bad or good. A ratio's step stays plain: it follows another metric, which has steps."""
    steps = find_steps(metric, series.centres, bisect_left(series.runs, old))
    if SPECS[metric].follows is not None:
        return steps
    return tuple(replace(step, kind="bad" if step.worse > 0 else "good") for step in steps)


def _list_moves(metric: Metric, values: Sequence[float]) -> Iterator[TrendStep]:
    """A single run that differs from equal neighbours is no move."""
    starts = [index for index in range(len(values)) if not index or values[index] != values[index - 1]]
    levels = [(start, values[start]) for start in starts]
    for before, (start, after) in pairwise(_drop_blips(levels)):
        worse = before[1] - after if SPECS[metric].higher_is_better else after - before[1]
        yield TrendStep(position=start, worse=worse)


def _drop_blips(levels: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    kept: list[tuple[int, float]] = []
    for level in levels:
        is_back = len(kept) > 1 and kept[-2][1] == level[1] and level[0] - kept[-1][0] == 1
        if is_back:
            kept.pop()
        else:
            kept.append(level)
    return kept


def _search_parts(values: Sequence[float], least: float, old: int) -> list[int]:
    """Days are less noisy than runs; the parts overlap by what a step needs."""
    positions: set[int] = set()
    for start, end in ((0, old), (max(0, old - 2 * FEWEST), len(values))):
        part = values[start:end]
        if len(part) >= 2 * FEWEST and min(part) < max(part):
            positions.update(start + step for step in _search(part, least))
    return sorted(positions)


def _search(values: Sequence[float], least: float) -> list[int]:
    """In units of the noise between neighbours, which no step inflates; no step below ``least``."""
    try:
        import numpy as np  # noqa: PLC0415 - an extra
        import ruptures  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(f"trend needs ruptures, which cannot be imported: {error}", _FIX) from error
    series = np.asarray(values, dtype=float)
    moves = np.diff(series)
    noise = float(np.median(np.abs(moves - np.median(moves)))) * _NORMAL / math.sqrt(2)
    # Where most neighbours are equal any move that is reported is large, whatever other moves there were.
    noise = noise or (least or float(np.max(np.abs(moves)))) / _CLIP
    scaled = (series - np.median(series)) / noise
    # Single outliers are pulled to within _CLIP of the median around them.
    padded = np.pad(scaled, FEWEST, mode="edge")
    around = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * FEWEST + 1), axis=1)
    tame = np.clip(scaled, around - _CLIP / 2, around + _CLIP / 2)
    search = ruptures.KernelCPD(kernel="linear", min_size=FEWEST, jump=1)
    ends = search.fit_predict(tame.reshape(-1, 1), pen=PENALTY * math.log(len(values)))
    return [int(end) for end in ends[:-1]]
