"""Drawings: SVG elements with classes, coloured by the page's style sheet, with text that is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

CHART_WIDTH = 320  # of a chart, in CSS pixels: as wide as a phone, so that its text keeps its size there


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """One SVG image. ``label`` is what it says to whoever cannot see it; "" of an ornament.

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
        told = {"role": "img", "aria-label": self.label} if self.label else {"aria-hidden": "true"}
        root = ET.Element("svg", {"class": self.kind, "viewBox": size, **told})
        root.extend(self._parts)
        return ET.tostring(root, encoding="unicode")

    def _add(self, name: str, kind: str, attributes: dict[str, str]) -> ET.Element:
        element = ET.Element(name, {"class": kind, **attributes})
        self._parts.append(element)
        return element


def _hint(element: ET.Element, text: str) -> None:
    if text:
        ET.SubElement(element, "title").text = text


def _write(value: float) -> str:
    """A place with a tenth of a pixel: what the eye tells apart, in few characters."""
    return f"{value:.1f}".removesuffix(".0")
