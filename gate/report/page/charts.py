"""The kinds of charts, as SVG: two sides as points, stacked bars, intervals; pure.

Base is drawn hollow and head filled, so that both differ without colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

CHART_WIDTH = 320  # of a chart, in CSS pixels: as wide as a phone, so that its text keeps its size there


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """One SVG image. ``label`` is its text for a screen reader; "" of an ornament.

    Marks are drawn in their order. Colours, fonts and strokes are the style sheet's, by class.
    """

    label: str
    height: float
    width: float = CHART_WIDTH
    kind: str = "chart"
    _parts: list[ET.Element] = field(default_factory=list, init=False, repr=False)

    def add_line(self, kind: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Add a line from one place to another."""
        places = zip(("x1", "y1", "x2", "y2"), (*start, *end), strict=True)
        self._add("line", kind, {name: _write(value) for name, value in places})

    def add_box(
        self, kind: str, corner: tuple[float, float], size: tuple[float, float], hint: str = ""
    ) -> None:
        """Add a rectangle by its upper left corner, its width and its height."""
        places = zip(("x", "y", "width", "height"), (*corner, *size), strict=True)
        _hint(self._add("rect", kind, {name: _write(value) for name, value in places}), hint)

    def add_point(self, kind: str, place: tuple[float, float], radius: float, hint: str = "") -> None:
        """Add a point."""
        places = zip(("cx", "cy", "r"), (*place, radius), strict=True)
        _hint(self._add("circle", kind, {name: _write(value) for name, value in places}), hint)

    def add_path(self, kind: str, places: Sequence[tuple[float, float]], *, closed: bool = False) -> None:
        """Add a line through places, or the area that it encloses."""
        steps = [f"{'L' if index else 'M'}{_write(x)} {_write(y)}" for index, (x, y) in enumerate(places)]
        self._add("path", kind, {"d": "".join(steps) + ("Z" if closed else "")})

    def add_dots(self, kind: str, places: Iterable[tuple[float, float]], hint: str = "") -> None:
        """Add many points as one mark, which takes a tenth of the room; their size is its stroke's width."""
        drawn = "".join(f"M{_write(x)} {_write(y)}h0" for x, y in places)
        _hint(self._add("path", kind, {"d": drawn}), hint)

    def add_text(self, kind: str, place: tuple[float, float], text: str) -> None:
        """Add a line of text; its class says on which side of the place it stands."""
        self._add("text", kind, {"x": _write(place[0]), "y": _write(place[1])}).text = text

    def __html__(self) -> str:
        """Write it as SVG within HTML; texts and attributes are escaped here."""
        size = f"0 0 {_write(self.width)} {_write(self.height)}"
        attributes = {"role": "img", "aria-label": self.label} if self.label else {"aria-hidden": "true"}
        root = ET.Element("svg", {"class": self.kind, "viewBox": size, **attributes})
        root.extend(self._parts)
        return ET.tostring(root, encoding="unicode").replace(" />", "/>")  # of no text: ">" is escaped there

    def _add(self, name: str, kind: str, attributes: dict[str, str]) -> ET.Element:
        element = ET.Element(name, {"class": kind, **attributes})
        self._parts.append(element)
        return element


def _hint(element: ET.Element, text: str) -> None:
    if text:
        ET.SubElement(element, "title").text = text


def _write(value: float) -> str:
    """A place with a tenth of a pixel: what the eye can see, in few characters."""
    return f"{value:.1f}".removesuffix(".0")


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


Write = Callable[[float], str]  # a value with its unit, for an axis or a hint

_LEFT = 58.0  # of the plot: room for a lane's name
_RIGHT = 8.0
_LANE = 30.0  # height of a lane
_AXIS = 22.0  # height of an axis and its marks
_SPREAD = 4.0  # points of a lane are moved up and down by so much, so that equal ones are seen
_POINT = 3.2
_BAR = 18.0
_GAP = 1.0  # between two parts of a bar
_INTERVAL = (96.0, 16.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """One side of a strip: its points in their order, and an estimate of what they have in common."""

    name: str
    kind: str  # "base" or "head"
    values: Sequence[float]
    centre: float | None = None
    low: float | None = None
    high: float | None = None


def draw_strip(
    label: str, lanes: Sequence[Lane], write: Write, *, limit: float | None = None, unit: float = 1.0
) -> Drawing:
    """Draw each side's values as points on one scale, its interval as a bar and its centre as a line.

    ``limit`` is the value beyond which a change counts; ``unit`` is what the axis counts in.
    """
    shown = [value for lane in lanes for value in _list_values(lane)] + ([] if limit is None else [limit])
    bottom = _LANE * len(lanes) + 4
    scale = make_scale(
        shown, _LEFT, CHART_WIDTH - _RIGHT, least_span=0.01 * max(map(abs, shown), default=0.0)
    )
    drawing = Drawing(label=label, height=bottom + _AXIS)
    _draw_axis(drawing, scale, bottom, write, unit)
    if limit is not None:
        place = scale.place(limit)
        drawing.add_line("limit", (place, 0), (place, bottom))
    for index, lane in enumerate(lanes):
        _draw_lane(drawing, lane, scale, _LANE * (index + 0.5) + 2, write)
    return drawing


def _list_values(lane: Lane) -> list[float]:
    bounds = (lane.centre, lane.low, lane.high)
    return [*lane.values, *(value for value in bounds if value is not None)]


def _draw_lane(drawing: Drawing, lane: Lane, scale: Scale, middle: float, write: Write) -> None:
    drawing.add_text("lane", (_LEFT - 8, middle + 4), lane.name)
    if lane.low is not None and lane.high is not None:
        left, right = scale.place(lane.low), scale.place(lane.high)
        drawing.add_box(f"span {lane.kind}", (left, middle - 8), (max(right - left, 1), 16))
    places = [
        (scale.place(value), middle + _SPREAD * (index % 3 - 1)) for index, value in enumerate(lane.values)
    ]
    if places:
        drawing.add_dots(f"dots {lane.kind}", places, f"{lane.name}: {', '.join(map(write, lane.values))}")
    if lane.kind == "base" and places:
        drawing.add_dots("holes", places)
    if lane.centre is not None:
        centre = scale.place(lane.centre)
        drawing.add_line(f"centre {lane.kind}", (centre, middle - 11), (centre, middle + 11))


def _draw_axis(drawing: Drawing, scale: Scale, bottom: float, write: Write, unit: float = 1.0) -> None:
    for value in list_ticks(scale, unit=unit):
        place = scale.place(value)
        drawing.add_line("grid", (place, 0), (place, bottom))
        # What would run out of the picture stands within it.
        side = " last" if place > drawing.width - 24 else ""
        drawing.add_text(
            f"tick{side}", (min(place, drawing.width - 1) if side else place, bottom + 15), write(value)
        )
    drawing.add_line("axis", (scale.start, bottom), (scale.end, bottom))


@dataclass(frozen=True, kw_only=True, slots=True)
class ChartBar:
    """A bar of parts: each a colour's number, its size and what it is called."""

    name: str
    parts: Sequence[tuple[int, float, str]]


def draw_stack(label: str, bars: Sequence[ChartBar], write: Write) -> Drawing:
    """Draw bars of parts that add up, on one scale from zero."""
    bottom = (_BAR + 10) * len(bars) + 4
    totals = [sum(size for _, size, _ in bar.parts) for bar in bars]
    scale = make_scale(totals, _LEFT, CHART_WIDTH - _RIGHT, from_zero=True)
    drawing = Drawing(label=label, height=bottom + _AXIS)
    _draw_axis(drawing, scale, bottom, write)
    for index, bar in enumerate(bars):
        top, reached = (_BAR + 10) * index + 6, 0.0
        drawing.add_text("lane", (_LEFT - 8, top + _BAR / 2 + 4), bar.name)
        for colour, size, name in bar.parts:
            left, right = scale.place(reached), scale.place(reached + size)
            reached += size
            width = max(right - left - _GAP, 0.3)
            drawing.add_box(f"part-{colour}", (left, top), (width, _BAR), f"{name}: {write(size)}")
    return drawing


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A value with its interval."""

    centre: float
    low: float
    high: float
    kind: str = "head"


def draw_interval(label: str, one: Interval, bounds: Iterable[float], marks: Sequence[float] = ()) -> Drawing:
    """Draw a small interval for a table's cell, on a scale that spans ``bounds``; ``marks`` are lines."""
    width, height = _INTERVAL
    drawing = Drawing(label=label, width=width, height=height, kind="small")
    scale = make_scale(bounds, 2, width - 2)
    for index, value in enumerate(marks):
        drawing.add_line(
            "axis" if not index else "limit", (scale.place(value), 0), (scale.place(value), height)
        )
    left, right, middle = scale.place(one.low), scale.place(one.high), height / 2
    drawing.add_line(f"whisker {one.kind}", (left, middle), (max(right, left + 0.5), middle))
    drawing.add_point(f"point {one.kind}", (scale.place(one.centre), middle), _POINT)
    return drawing
