"""Drawings are SVG with a label and escaped text."""

import re
from xml.etree import ElementTree as ET

from gate.records.verdict import Estimate
from gate.report.charts import BEFORE, HEAD, Drawing, Lane, draw_interval, draw_strip

HOSTILE = "</svg><script>alert(1)</script>\" onload='x"


def parse(drawing: Drawing) -> ET.Element:
    return ET.fromstring(drawing.__html__())  # noqa: S314 - what is parsed was just written here


def test_hostile_text() -> None:
    """Text, hint and label keep what they were given, without markup."""
    drawing = Drawing(label=HOSTILE, height=10)
    drawing.add("text", "lane", x=1, y=2, text=HOSTILE)
    drawing.add("circle", "point", cx=1, cy=2, r=3, hint=HOSTILE)

    svg = parse(drawing)

    assert svg.attrib["aria-label"] == HOSTILE
    assert [element.tag for element in svg.iter()] == ["svg", "text", "circle", "title"]
    assert [svg.findtext("text"), svg.findtext("circle/title")] == [HOSTILE, HOSTILE]


def test_ornament() -> None:
    """An ornament is hidden from screen readers."""
    svg = parse(Drawing(label="", height=8))

    assert svg.attrib["aria-hidden"] == "true"
    assert "role" not in svg.attrib


def test_strip() -> None:
    """A strip has one point a value, hollow for base and filled for head, and a line at the limit."""
    lanes = (
        Lane(
            name=BEFORE, values=(1.0, 1.2), estimate=Estimate(centre=1.1, low=1.0, high=1.2, noise=0.0, n=2)
        ),
        Lane(name=HEAD, values=(2.0,), estimate=Estimate(centre=2.0, low=None, high=None, noise=None, n=1)),
    )

    svg = parse(draw_strip("latency", lanes, str, limit=1.3))

    dots = {path.attrib["class"]: path for path in svg.iter("path")}
    assert list(dots) == ["dots before", "holes", "dots head"]
    assert [dots[kind].findtext("title") for kind in ("dots before", "dots head")] == [
        "before: 1.0, 1.2",
        "head: 2.0",
    ]
    base, head = (re.findall(r"M([0-9.]+) ", dots[kind].attrib["d"]) for kind in ("dots before", "dots head"))
    limit = float(svg.findall("line[@class='limit']")[0].attrib["x1"])
    assert float(base[0]) < float(base[1]) < limit < float(head[0])


def test_interval() -> None:
    """An interval spans from its low to its high end, with its centre."""
    svg = parse(draw_interval("change", (0.1, 0.2, 0.3), "bad"))

    line = svg.findall("line[@class='whisker bad']")[0].attrib
    assert float(line["x1"]) < float(svg.findall("circle")[0].attrib["cx"]) < float(line["x2"])
