"""Charts of pages, as SVG: two sides as points, intervals; pure.

Base is drawn hollow and head filled, so that both differ without colour.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from gate.metrics import SPECS, Unit
from gate.records.cases import Metric
from gate.records.verdict import Estimate
from gate.sizes import KIB

BEFORE, HEAD = "before", "head"
CHART_WIDTH = 320  # of a chart, in CSS pixels: as wide as a phone, so that its text keeps its size there
MOST_TICKS = 4  # of a chart as wide as a phone
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_LARGEST = 1e100  # beyond it there is no span to compute with, and nothing that was measured
_MARGIN = 0.06  # of the span, so that no mark lies on the edge
Write = Callable[[float], str]  # a value with its unit, for an axis or a hint
_LEFT = 58.0  # of the plot: room for a lane's name
_RIGHT = 8.0
_LANE = 30.0  # height of a lane
_BARS = 36.0  # height of a name and its two bars
_AXIS = 22.0  # height of an axis and its marks
_SPREAD = 4.0  # points of a lane are moved up and down by so much, so that equal ones are seen
_POINT = 3.2
_INTERVAL = (96.0, 16.0)
_MOST_LIMITS = 4.0  # thresholds: a change beyond is an arrow at the edge


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """One SVG image. ``label`` is for a screen reader; "" for an ornament.

    Colours and strokes are the style sheet's, by class.
    """

    label: str
    height: float
    width: float = CHART_WIDTH
    kind: str = "chart"
    _parts: list[ET.Element] = field(default_factory=list, init=False, repr=False)

    def add(
        self,
        name: str,
        kind: str,
        *,
        text: str = "",
        hint: str = "",
        link: str = "",
        **attributes: str | float,
    ) -> None:
        """A pointer over it shows ``hint``, a click opens ``link``."""
        shown = {key: value if isinstance(value, str) else _write(value) for key, value in attributes.items()}
        element = ET.Element(name, {"class": kind, **shown})
        element.text = text or None
        if hint:
            ET.SubElement(element, "title").text = hint
        if link:
            anchor = ET.Element("a", {"href": link})
            anchor.append(element)
            element = anchor
        self._parts.append(element)

    def add_line(self, kind: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.add("line", kind, x1=start[0], y1=start[1], x2=end[0], y2=end[1])

    def __html__(self) -> str:
        """Texts and attributes are escaped here."""
        size = f"0 0 {_write(self.width)} {_write(self.height)}"
        roles = {"role": "img", "aria-label": self.label} if self.label else {"aria-hidden": "true"}
        root = ET.Element("svg", {"class": self.kind, "viewBox": size, **roles})
        root.extend(self._parts)
        return ET.tostring(root, encoding="unicode").replace(" />", "/>")  # of no text: ">" is escaped there


@dataclass(frozen=True, kw_only=True, slots=True)
class Plot:
    title: str
    drawing: Drawing
    note: str = ""
    kind: str = "same"  # of the remark


def join_points(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    steps = (f"{'L' if index else 'M'}{_write(x)} {_write(y)}" for index, (x, y) in enumerate(points))
    return "".join(steps) + ("Z" if closed else "")


def _write(value: float) -> str:
    """To a tenth of a pixel: what the eye can see, in few characters."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Linear; ``start`` may be right of, or below, ``end``."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """A value beyond the scale lies on its edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def make_scale(values: Iterable[float], start: float, end: float, *, least_span: float = 0.0) -> Scale:
    """All finite ``values`` fit on it with a margin; it is at least ``least_span`` wide."""
    finite = [value for value in values if abs(value) < _LARGEST] or [0.0]
    low, high = min(finite), max(finite)
    lacking = max(least_span, abs(high) * 1e-6, 1e-12) - (high - low)
    if lacking > 0:
        low, high = low - lacking / 2, high + lacking / 2
    margin = (high - low) * _MARGIN
    return Scale(low=low - margin, high=high + margin, start=start, end=end)


def list_ticks(scale: Scale, unit: float = 1.0) -> tuple[float, ...]:
    """Round values, MOST_TICKS at most; round in multiples of ``unit``."""
    rough = (scale.high - scale.low) / unit / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in _NICE if nice * power >= rough * (1 - 1e-9))
    first = math.ceil(scale.low / unit / step - 1e-9)
    last = math.floor(scale.high / unit / step + 1e-9)
    return tuple(index * step * unit for index in range(first, last + 1))


def choose_axis_unit(metric: Metric, values: Iterable[float]) -> float:
    """Sizes are round in their own unit."""
    if SPECS[metric].unit is not Unit.BYTES:
        return 1.0
    largest = max(map(abs, values), default=0.0)
    return float(KIB ** int(math.log(largest, KIB))) if largest >= KIB else 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    name: str  # BEFORE or HEAD
    values: Sequence[float]
    estimate: Estimate | None = None

    @property
    def extent(self) -> list[float]:
        estimate = self.estimate
        bounds = (estimate.centre, estimate.low, estimate.high) if estimate else ()
        return [*self.values, *(value for value in bounds if value is not None)]


def draw_strip(
    label: str, lanes: Sequence[Lane], write: Write, *, limit: float | None = None, unit: float = 1.0
) -> Drawing:
    """Points, an interval as a bar and a centre as a line on each side.

    ``limit`` is the value beyond which a change counts; ``unit`` is what the axis counts in.
    """
    shown = [value for lane in lanes for value in lane.extent] + ([] if limit is None else [limit])
    bottom = _LANE * len(lanes) + 4
    scale = make_scale(
        shown, _LEFT, CHART_WIDTH - _RIGHT, least_span=0.01 * max(map(abs, shown), default=0.0)
    )
    drawing = Drawing(label=label, height=bottom + _AXIS)
    _draw_axis(drawing, scale, bottom, write, unit)
    if limit is not None:
        x = scale.place(limit)
        drawing.add_line("limit", (x, 0), (x, bottom))
    for index, lane in enumerate(lanes):
        _draw_lane(drawing, lane, scale, _LANE * (index + 0.5) + 2, write)
    return drawing


def draw_bars(label: str, rows: Sequence[tuple[str, float, float]], write: Write) -> Drawing:
    """A name above two bars, its values before and of head; all from 0."""
    most = max(max(before, after) for _, before, after in rows)
    scale = Scale(low=0.0, high=most or 1.0, start=0.0, end=CHART_WIDTH)
    drawing = Drawing(label=label, height=_BARS * len(rows))
    for number, (name, *values) in enumerate(rows):
        top = _BARS * number + 12
        drawing.add("text", "lane first", x=0, y=top, text=name)
        for line, (side, value) in enumerate(zip((BEFORE, HEAD), values, strict=True)):
            hint, width = f"{side}: {write(value)}", max(scale.place(value), 1.0)
            drawing.add("rect", f"span {side}", hint=hint, x=0, y=top + 4 + 8 * line, width=width, height=7)
    return drawing


def _draw_lane(drawing: Drawing, lane: Lane, scale: Scale, middle: float, write: Write) -> None:
    drawing.add("text", "lane", x=_LEFT - 8, y=middle + 4, text=lane.name)
    estimate = lane.estimate
    if estimate and estimate.low is not None and estimate.high is not None:
        left, right = scale.place(estimate.low), scale.place(estimate.high)
        drawing.add("rect", f"span {lane.name}", x=left, y=middle - 8, width=max(right - left, 1), height=16)
    if lane.values:
        # All points as one path, whose stroke is as wide as they are: it takes a tenth of the room.
        dots = "".join(
            f"M{_write(scale.place(value))} {_write(middle + _SPREAD * (index % 3 - 1))}h0"
            for index, value in enumerate(lane.values)
        )
        hint = f"{lane.name}: {', '.join(map(write, lane.values))}"
        drawing.add("path", f"dots {lane.name}", d=dots, hint=hint)
        if lane.name == BEFORE:
            drawing.add("path", "holes", d=dots)
    if estimate:
        centre = scale.place(estimate.centre)
        drawing.add_line(f"centre {lane.name}", (centre, middle - 11), (centre, middle + 11))


def _draw_axis(drawing: Drawing, scale: Scale, bottom: float, write: Write, unit: float = 1.0) -> None:
    for value in list_ticks(scale, unit=unit):
        x = scale.place(value)
        drawing.add_line("grid", (x, 0), (x, bottom))
        # What would run out of the picture stands within it.
        side = " last" if x > drawing.width - 24 else ""
        left = min(x, drawing.width - 1) if side else x
        drawing.add("text", f"tick{side}", x=left, y=bottom + 15, text=write(value))
    drawing.add_line("axis", (scale.start, bottom), (scale.end, bottom))


def draw_interval(label: str, ends: tuple[float, float, float], kind: str) -> Drawing:
    """For a table's cell: ``ends`` are low, centre and high, in thresholds, with lines at 0 and 1."""
    width, height = _INTERVAL
    drawing = Drawing(label=label, width=width, height=height, kind="small")
    scale = make_scale((-_MOST_LIMITS, _MOST_LIMITS), 2, width - 2)
    for value, name in ((0.0, "axis"), (1.0, "limit")):
        drawing.add_line(name, (scale.place(value), 0), (scale.place(value), height))
    left, centre, right = map(scale.place, ends)
    middle = height / 2
    drawing.add_line(f"whisker {kind}", (left, middle), (max(right, left + 0.5), middle))
    if abs(ends[1]) <= _MOST_LIMITS:
        drawing.add("circle", f"point {kind}", cx=centre, cy=middle, r=_POINT)
        return drawing
    back = centre - math.copysign(2 * _POINT, ends[1])  # an arrow: it is further on
    tip = [(back, middle - _POINT), (centre, middle), (back, middle + _POINT)]
    drawing.add("path", f"point {kind}", d=join_points(tip, closed=True))
    return drawing
