"""Lines of a history become series: one for each case and metric, in the order of time. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, geometric_mean, median

from gate.records import Metric
from gate.records.groups import collect_columns
from gate.records.history import HistoryHead, HistoryKind, HistoryLine

_START = 5  # values of a series that say where it began: one may be an outlier


@dataclass(kw_only=True, slots=True)
class TrendSeries:
    """The figures of one case and metric: the numbers of its runs, and centre, low and high of each."""

    runs: array[int] = field(default_factory=lambda: array("l"))
    centres: array[float] = field(default_factory=lambda: array("d"))
    lows: array[float] = field(default_factory=lambda: array("d"))
    highs: array[float] = field(default_factory=lambda: array("d"))

    def add(self, run: int, figures: Sequence[float]) -> None:
        """Add the figures of one run; what has no interval is a point."""
        self.runs.append(run)
        self.centres.append(figures[0])
        self.lows.append(figures[1] if len(figures) > 1 else figures[0])
        self.highs.append(figures[-1])

    @property
    def is_constant(self) -> bool:
        """Whether it never moved: there is nothing to draw."""
        return min(self.centres) == max(self.centres)


Table = Mapping[tuple[str, Metric], TrendSeries]


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """All runs of one machine: the heads in the order of time, the series, and those against the anchor."""

    machine: str
    heads: tuple[HistoryHead, ...]
    values: Table
    creep: Table
    upgrades: Mapping[int, str]  # of the stack, by the number of the run that was the first with it


def make_tracks(lines: Iterable[HistoryLine]) -> tuple[Track, ...]:
    """Make a track of each machine on each host, the one with the newest run first."""
    found: dict[str, list[HistoryLine]] = {}
    for line in lines:
        found.setdefault(_name_machine(line.head), []).append(line)
    tracks = [_make_track(machine, mine) for machine, mine in found.items()]
    return tuple(sorted(tracks, key=lambda track: track.heads[-1].created, reverse=True))


def _name_machine(head: HistoryHead) -> str:
    """Name what times are comparable on: ``cuda: NVIDIA H200, 2 threads on amd-epyc-9654-1a2b3c4d``."""
    return f"{head.machine} on {head.host}" if head.host else head.machine


def _make_track(machine: str, lines: list[HistoryLine]) -> Track:
    lines.sort(key=lambda line: (line.head.created, line.head.id))
    values: dict[tuple[str, Metric], TrendSeries] = {}
    creep: dict[tuple[str, Metric], TrendSeries] = {}
    for number, line in enumerate(lines):
        table = creep if line.head.kind is HistoryKind.ANCHOR else values
        for case_id, figures in line.cases.items():
            for metric, numbers in figures.items():
                table.setdefault((case_id, metric), TrendSeries()).add(number, numbers)
    heads = tuple(line.head for line in lines)
    return Track(machine=machine, heads=heads, values=values, creep=creep, upgrades=list_upgrades(heads))


def average_cases(track: Track, metric: Metric) -> TrendSeries:
    """The suite: the geometric mean over the cases of each run, each as a share of where it began.

    Only of metrics on a ratio scale, and of cases whose values are all above 0; a case that a run lacks does
    not count in it. An empty series where there is none.
    """
    own = (series for (_, name), series in track.values.items() if name is metric)
    return _average(map(_list_shares, (one for one in own if min(one.centres) > 0)), geometric_mean)


def _list_shares(series: TrendSeries) -> dict[int, float]:
    """The values of each run as shares of where the series began."""
    start = median(series.centres[:_START])
    return {run: centre / start for run, centre in zip(series.runs, series.centres, strict=True)}


def average_creep(track: Track, metric: Metric) -> TrendSeries:
    """The suite against the anchor: the mean change of the cases of each such run, + is worse."""
    own = (series for (_, name), series in track.creep.items() if name is metric)
    return _average((dict(zip(one.runs, one.centres, strict=True)) for one in own), fmean)


def _average(
    cases: Iterable[Mapping[int, float]], average: Callable[[Sequence[float]], float]
) -> TrendSeries:
    """The average of the cases of each run, by its number."""
    found, mean = collect_columns(cases), TrendSeries()
    for run in sorted(found):
        mean.add(run, (average(found[run]),))
    return mean


def list_upgrades(heads: Sequence[HistoryHead]) -> Mapping[int, str]:
    """The runs at which torch or the driver was another than in the run before, and what changed."""
    found: dict[int, str] = {}
    for number, (before, after) in enumerate(pairwise(heads), start=1):
        told = [
            f"{name} {old or 'none'} to {new or 'none'}"
            for name, old, new in (
                ("torch", before.torch, after.torch),
                ("driver", before.driver, after.driver),
            )
            if old != new
        ]
        if told:
            found[number] = ", ".join(told)
    return found
