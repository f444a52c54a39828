"""A series over its runs: a line in a band of intervals, its steps, and upgrades of the stack. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gate.records.history import HistoryHead
from gate.report.page.drawing import Drawing
from gate.report.page.scale import Scale, list_ticks, make_scale
from gate.report.trend.changes import TrendStep
from gate.report.trend.series import Track, TrendSeries

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 720.0, 190.0, 76.0, 10.0, 22.0
_MOST = 360  # points of a line: two pixels each; more are drawn as their mean, in a band of all of them
_DATES = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """What to draw: a series, with what is told of it."""

    title: str
    note: str
    series: TrendSeries
    write: Callable[[float], str]
    steps: Sequence[TrendStep] = ()
    unit: float = 1.0  # what its axis counts in
    is_whole: bool = False  # there is nothing between two whole numbers


def draw_trend(curve: Curve, track: Track) -> Drawing:
    """Draw a series over the runs of its machine, from the first to the last of them."""
    heads = track.heads
    drawing = Drawing(label=curve.title, width=_WIDTH, height=_HEIGHT, kind="chart wide")
    places = make_scale([0, max(len(heads) - 1, 1)], _LEFT, _WIDTH - _RIGHT)
    points = _thin(curve.series)
    shown = [value for _, _, low, high in points for value in (low, high)]
    scale = make_scale(shown, _HEIGHT - _BOTTOM, 6, least_span=0.02 * max(map(abs, shown)))
    for value in _list_marks(scale, curve):
        drawing.add_line("grid", (_LEFT, scale.place(value)), (_WIDTH - _RIGHT, scale.place(value)))
        drawing.add_text("lane", (_LEFT - 6, scale.place(value) + 4), curve.write(value))
    for run, told in track.upgrades.items():
        place = places.place(run)
        drawing.add_box("upgrade", (place - 1, 4), (2, _HEIGHT - _BOTTOM - 4), told)
    band = [(places.place(run), scale.place(high)) for run, _, _, high in points]
    band += [(places.place(run), scale.place(low)) for run, _, low, _ in reversed(points)]
    drawing.add_path("band", band, closed=True)
    drawing.add_path("curve", [(places.place(run), scale.place(centre)) for run, centre, _, _ in points])
    for step in curve.steps:
        place = places.place(curve.series.runs[step.position])
        drawing.add_line(f"step {step.kind}", (place, 4), (place, _HEIGHT - _BOTTOM))
    _add_dates(drawing, places, heads)
    return drawing


def _list_marks(scale: Scale, curve: Curve) -> Sequence[float]:
    marks = list_ticks(scale, unit=curve.unit)
    return [value for value in marks if value.is_integer()] if curve.is_whole else marks


def _add_dates(drawing: Drawing, places: Scale, heads: Sequence[HistoryHead]) -> None:
    """Say when some of the runs were: the day; with the time where days are few, or the time alone."""
    days = len({head.created[:10] for head in heads})
    shown = slice(11, 16) if days == 1 else slice(0, 10) if days >= _DATES else slice(5, 16)
    count = min(_DATES, len(heads))
    for number in range(count):
        run = number * (len(heads) - 1) // max(count - 1, 1)
        side = " last" if number == count - 1 and count > 1 else ""
        text = heads[run].created[shown].replace("T", " ")
        drawing.add_text(f"tick{side}", (places.place(run), _HEIGHT - 6), text)


def _thin(series: TrendSeries) -> list[tuple[float, float, float, float]]:
    """The points to draw: run, centre, low and high."""
    size = -(-len(series.runs) // _MOST)
    points = []
    for start in range(0, len(series.runs), size):
        part = slice(start, start + size)
        runs, centres = series.runs[part], series.centres[part]
        points.append(
            (
                sum(runs) / len(runs),
                sum(centres) / len(centres),
                min(series.lows[part]),
                max(series.highs[part]),
            )
        )
    return points
