"""The charts of one case: both sides of each metric, phases of the compile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Family, Role, Unit, select_metrics
from gate.records import CaseEvidence, Comparison, Metric, Status
from gate.report.case import OWN_PHASES, list_phases
from gate.report.page.charts import (
    ChartBar,
    Drawing,
    Interval,
    Lane,
    Write,
    draw_interval,
    draw_stack,
    draw_strip,
)
from gate.report.view import AGAINST_BASE, AGAINST_BASELINE
from gate.report.words.comparisons import exceeds_limit
from gate.report.words.moves import describe_move
from gate.report.words.pages import STATUS_CLASSES, describe_plot, name_phase
from gate.report.words.templates import name_metric
from gate.units import KIBI, render_seconds, render_threshold, render_value

HEAD = "head"
_MAX_POINTS = 60  # of one side, the latest: more hide each other
_MOST_LIMITS = 4.0  # a change beyond so many limits is drawn at the edge


def _select_drawn(worse: str) -> tuple[Metric, ...]:
    """The metrics that vary, are judged, and are called this when they got worse."""
    drawn = select_metrics(lambda spec: spec.role is not Role.EXPLAINS and spec.family is not Family.EXACT)
    return tuple(metric for metric in drawn if SPECS[metric].worse == worse and metric not in COMPILE_TIMES)


# What is drawn of a case, by what a reader asks; counts that moved stand in its table.
_GROUPS: Mapping[str, tuple[Metric, ...]] = {
    "Speed": tuple(dict.fromkeys((*LATENCIES, *_select_drawn("slower")))),
    "Compile time": COMPILE_TIMES,
    "Memory": _select_drawn("larger"),
    "Accuracy": _select_drawn("less exact"),
}
_COLOURS = {name: number for number, name in enumerate(OWN_PHASES)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plot:
    """A chart with its title and a remark."""

    title: str
    drawing: Drawing
    note: str = ""
    kind: str = "same"  # of the remark


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotGroup:
    """Charts that answer one question; without news they are folded."""

    title: str
    plots: tuple[Plot, ...]

    @property
    def has_news(self) -> bool:
        """Whether any of them changed, or could not be decided."""
        return any(one.kind != "same" for one in self.plots)


def list_plots(comparisons: Sequence[Comparison], evidence: CaseEvidence) -> tuple[PlotGroup, ...]:
    """Draw both sides of each metric that has values, in groups with a title."""
    rows = {one.metric: one for one in comparisons}
    groups = (
        (
            title,
            [
                _plot_metric(rows[metric], evidence)
                for metric in metrics
                if metric in rows and evidence.after.values.get(metric)
            ],
        )
        for title, metrics in _GROUPS.items()
    )
    return tuple(PlotGroup(title=title, plots=tuple(plots)) for title, plots in groups if plots)


def _plot_metric(one: Comparison, evidence: CaseEvidence) -> Plot:
    metric, write = one.metric, _make_writer(one.metric)
    before, after = (side.values.get(metric, ()) for side in evidence.sides)
    lanes = [_make_lane(HEAD, HEAD, after, one)]
    if before or one.baseline:
        lanes.insert(
            0, _make_lane(AGAINST_BASE if one.pairs else AGAINST_BASELINE, AGAINST_BASE, before, one)
        )
    drawing = draw_strip(
        describe_plot(one, len(before), len(after)),
        lanes,
        write,
        limit=find_limit(one),
        unit=_find_unit(lanes, one),
    )
    return Plot(
        title=name_metric(metric),
        drawing=drawing,
        note=_describe_note(one),
        kind=STATUS_CLASSES[one.status],
    )


def _describe_note(one: Comparison) -> str:
    """The change, and of one that looks large and counts for nothing, why."""
    move, bar = describe_move(one), one.threshold
    is_small = one.status is Status.UNCHANGED and one.change and one.change.centre and not exceeds_limit(one)
    return f"{move}, below the limit of {render_threshold(one.metric, bar)}" if is_small and bar else move


def _make_lane(name: str, kind: str, values: Sequence[float], one: Comparison) -> Lane:
    estimate = one.candidate if kind == HEAD else one.baseline
    shown = tuple(value for value in values[-_MAX_POINTS:] if math.isfinite(value))
    if estimate is None:
        return Lane(name=name, kind=kind, values=shown)
    return Lane(
        name=name, kind=kind, values=shown, centre=estimate.centre, low=estimate.low, high=estimate.high
    )


def _make_writer(metric: Metric) -> Write:
    if SPECS[metric].family is Family.LOG2:
        return lambda value: f"{value:+.2f}"  # its factor would not fit below an axis
    return lambda value: render_value(metric, value)


def _find_unit(lanes: Iterable[Lane], one: Comparison) -> float:
    return find_axis_unit(one.metric, (value for lane in lanes for value in lane.values))


def find_axis_unit(metric: Metric, values: Iterable[float]) -> float:
    """What an axis counts in: sizes are round in their own unit."""
    if SPECS[metric].unit is not Unit.BYTES:
        return 1.0
    largest = max(map(abs, values), default=0.0)
    return float(KIBI ** int(math.log(largest, KIBI))) if largest >= KIBI else 1.0


def find_limit(one: Comparison) -> float | None:
    """Find the value beyond which a change counts; ``None`` where it is compared with nothing."""
    bar, before = one.threshold, one.baseline
    if bar is None or before is None or not (bar.relative or bar.absolute):
        return None
    spec = SPECS[one.metric]
    allowed = (
        bar.absolute if spec.family is Family.LOG2 else max(bar.relative * abs(before.centre), bar.absolute)
    )
    return before.centre - allowed if spec.higher_is_better else before.centre + allowed


def plot_phases(
    comparisons: Sequence[Comparison], evidence: CaseEvidence
) -> tuple[Plot, tuple[Drawing, ...]] | None:
    """Draw the phases of a cold compile on both sides, and the colour of each; ``None`` without any."""
    sides = [(HEAD, evidence.after.phases_s)]
    if evidence.before and evidence.before.phases_s:
        has_pairs = any(one.pairs for one in comparisons)
        sides.insert(0, (AGAINST_BASE if has_pairs else AGAINST_BASELINE, evidence.before.phases_s))
    names = list_phases(evidence)
    if not names:
        return None
    bars = [
        ChartBar(
            name=side,
            parts=tuple((_COLOURS[name], phases_s.get(name, 0.0), name_phase(name)) for name in names),
        )
        for side, phases_s in sides
    ]
    totals = ", ".join(f"{side} {render_seconds(sum(phases_s.values()))}" for side, phases_s in sides)
    drawing = draw_stack(f"phases of a cold compile: {totals}", bars, render_seconds)
    return Plot(title="By each phase itself", drawing=drawing), tuple(map(_draw_colour, names))


def _draw_colour(phase: str) -> Drawing:
    colour = Drawing(label="", width=8, height=8, kind="swatch")
    colour.add_box(f"part-{_COLOURS[phase]}", (0, 0), (8, 8))
    return colour


def draw_change(one: Comparison) -> Drawing | None:
    """Draw a change with its interval, in limits; ``None`` where it has no limit or nothing changed."""
    bar, change = one.threshold, one.change
    limit = (bar.relative or bar.absolute) if bar else 0.0
    if change is None or not limit:
        return None
    centre, low, high = (
        min(max(value / limit, -_MOST_LIMITS), _MOST_LIMITS)
        for value in (change.centre, change.low, change.high)
    )
    label = f"{name_metric(one.metric)} {describe_move(one)}"
    interval = Interval(centre=centre, low=low, high=high, kind=STATUS_CLASSES[one.status])
    return draw_interval(label, interval, (-_MOST_LIMITS, _MOST_LIMITS), (0.0, 1.0))
