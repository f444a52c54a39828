"""Draw the README's picture of `trend` from generated data: python tools/draw_trend_example.py."""

from __future__ import annotations

import math
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gate.records import Metric
from gate.records.history import HistoryHead, HistoryKind, HistoryLine
from gate.report.page import layout
from gate.report.trend.changes import find_steps
from gate.report.trend.chart import Curve, draw_trend
from gate.report.trend.series import make_tracks
from gate.units import render_value

OUT = Path(__file__).resolve().parent.parent / "docs" / "images" / "trend.svg"
METRIC, CASE = Metric.COMPILED_LATENCY, "bert/inference-float32-smoke-default"
NIGHTS, STEP, UPGRADE, SD = 300, 190, 90, 0.02
_DRAWN = "grid|axis|tick|lane|curve|band|upgrade|step"  # classes of what is drawn
_TITLE = "generated data: compiled latency over 300 nights, a step of +6 %, an upgrade of torch"


def main() -> int:
    """Draw 300 nights of 2 % noise: 4 % faster with a new torch, 6 % slower by a later commit."""
    rng, begun = random.Random(7), datetime(2026, 1, 5, 3, tzinfo=UTC)  # noqa: S311 - noise
    lines = []
    for night in range(NIGHTS):
        level = 0.0121 * (0.96 if night >= UPGRADE else 1) * (1.06 if night >= STEP else 1)
        centre = level * math.exp(rng.gauss(0, SD))
        head = HistoryHead(
            id=f"{night:016x}",
            kind=HistoryKind.CHECK,
            created=(begun + timedelta(days=night)).isoformat(timespec="seconds"),
            machine="generated",
            torch="2.13.0" if night >= UPGRADE else "2.12.0",
        )
        figures = (centre, centre * 0.985, centre * 1.015)
        lines.append(HistoryLine(head=head, cases={CASE: {METRIC: figures}}))
    (track,) = make_tracks(lines)
    series = track.values[CASE, METRIC]
    curve = Curve(
        title=_TITLE,
        note="",
        series=series,
        write=lambda value: render_value(METRIC, value),
        steps=find_steps(METRIC, series.centres),
    )
    svg = draw_trend(curve, track).__html__()
    style = _load_style()
    opened = svg.index(">") + 1
    root = svg[:opened].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    title = f'<text class="note" x="70" y="-8">{_TITLE}</text>'
    box = root.replace('viewBox="0 0 720 190"', 'viewBox="0 -26 720 216"')  # room for the title
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f"{box}<style>{style}</style>{title}{svg[opened:]}\n", encoding="utf-8")
    return 0


def _load_style() -> str:
    """What the page's style sheet says of colours and of charts on a screen."""
    sheet = (Path(layout.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    sheet = sheet.partition("@media print")[0] + sheet[sheet.index("/* Values over the runs") :]
    colours = re.findall(
        r"^:root \{[^}]*\}|@media \(prefers-color-scheme: dark\) \{\s*:root \{[^}]*\}\s*\}",
        sheet,
        re.MULTILINE,
    )
    charts = re.findall(rf"[^{{}}\n]*\.(?:{_DRAWN})\b[^{{}}]*\{{[^}}]*\}}", sheet)
    own = "svg { background: var(--page); font: 11px sans-serif; } .note { fill: var(--text); }"
    return "\n".join([*colours, *charts, own])


if __name__ == "__main__":
    raise SystemExit(main())
