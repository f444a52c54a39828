"""What a page shows of one case: its rows, why, charts of both sides, and the view of both sides; pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Family, Role, Unit, select_metrics
from gate.records import CaseEvidence, Comparison, Estimate, Metric, Status
from gate.report.blocks import SHOWN, order_comparison
from gate.report.clean import clean_line
from gate.report.explain import CaseView, make_view
from gate.report.page.charts import (
    BEFORE,
    HEAD,
    Drawing,
    Lane,
    Write,
    draw_interval,
    draw_strip,
)
from gate.report.rows import make_row
from gate.report.view import STATUS_KINDS, Block, Cell, Row
from gate.report.words.comparisons import exceeds_limit
from gate.report.words.templates import describe_move, name_metric
from gate.units import KIBI, count_noun, render_threshold, render_value

_MAX_HEADLINE = 160  # characters beside a case's name
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_POINTS = 60  # of one side, the latest: more hide each other


@dataclass(frozen=True, kw_only=True, slots=True)
class Plot:
    """A chart with its title and a remark."""

    title: str
    drawing: Drawing
    note: str = ""
    kind: str = "same"  # of the remark


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCase:
    """All that a page shows of one case."""

    anchor: str
    address: str  # where its section is: in this page or in one of its own; "" where there is none
    block: Block  # its rows are those with news
    kind: str
    headline: str  # the metric that changed most, or what became of the case
    values: str  # of that metric, before and after
    change: str
    severity: float | None  # of it, to sort by
    drawing: Drawing | None
    cells: tuple[Cell, ...]  # main figures, as the report's columns
    others: tuple[Row, ...]
    plots: Mapping[str, tuple[Plot, ...]] = field(default_factory=dict)  # by what a reader asks
    view: CaseView | None = None  # of what was kept of both sides


def make_case(
    anchor: str,
    block: Block,
    cells: tuple[Cell, ...],
    comparisons: Sequence[Comparison],
    evidence: CaseEvidence | None = None,
) -> PageCase:
    """Make what the page that a case is in shows of it; ``anchor`` is the name that a link has for it."""
    leading = min(comparisons, key=order_comparison, default=None)
    has_moved = leading is not None and leading.change and leading.status is not Status.UNCHANGED
    row = make_row([leading]) if leading and has_moved and not block.failures else None
    return PageCase(
        anchor=anchor,
        address=f"#{anchor}",
        block=replace(block, rows=tuple(row for row in block.rows if row.status in SHOWN)),
        kind=STATUS_KINDS[block.status],
        headline=_choose_headline(block, leading),
        values=f"{row.before} \N{RIGHTWARDS ARROW} {row.after}" if row else "",
        change=row.change if row else "",
        severity=leading.severity if leading else None,
        drawing=draw_change(leading) if leading else None,
        cells=cells,
        others=tuple(row for row in block.rows if row.status not in SHOWN),
        plots=list_plots(comparisons, evidence) if evidence else {},
        view=make_view(evidence) if evidence else None,
    )


def make_anchors(case_ids: Iterable[str]) -> Mapping[str, str]:
    """Make a name for each case that a link can lead to: of plain characters, and no two alike."""
    anchors: dict[str, str] = {}
    used: set[str] = set()
    for case_id in case_ids:
        plain = f"case-{_NOT_IN_A_NAME.sub('-', case_id)[:120].strip('-')}"
        name, number = plain, 1
        while name in used:
            number += 1
            name = f"{plain}-{number}"
        used.add(name)
        anchors[case_id] = name
    return anchors


def _choose_headline(block: Block, leading: Comparison | None) -> str:
    if block.failures:
        return clean_line(block.failures[0], _MAX_HEADLINE)
    if leading is None or leading.change is None:
        return clean_line(block.rows[0].sentence, _MAX_HEADLINE) if block.rows else ""
    if leading.status is Status.UNCHANGED:
        return ""
    return name_metric(leading.metric)


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


def list_plots(comparisons: Sequence[Comparison], evidence: CaseEvidence) -> Mapping[str, tuple[Plot, ...]]:
    """Draw both sides of each metric that has values, by the question that they answer."""
    rows = {one.metric: one for one in comparisons if evidence.after.values.get(one.metric)}
    groups = {
        title: tuple(_plot_metric(rows[metric], evidence) for metric in metrics if metric in rows)
        for title, metrics in _GROUPS.items()
    }
    return {title: plots for title, plots in groups.items() if plots}


def _plot_metric(one: Comparison, evidence: CaseEvidence) -> Plot:
    metric, write = one.metric, _make_writer(one.metric)
    before, after = (side.values.get(metric, ()) for side in evidence.sides)
    lanes = [_make_lane(HEAD, after, one.candidate)]
    if before or one.baseline:
        lanes.insert(0, _make_lane(BEFORE, before, one.baseline))
    drawing = draw_strip(
        _describe_plot(one, len(before), len(after)),
        lanes,
        write,
        limit=find_limit(one),
        unit=find_axis_unit(metric, (value for lane in lanes for value in lane.values)),
    )
    return Plot(
        title=name_metric(metric),
        drawing=drawing,
        note=_describe_note(one),
        kind=STATUS_KINDS[one.status],
    )


def _describe_plot(one: Comparison, before: int, after: int) -> str:
    """Describe it for a screen reader; the numbers stand in the table."""
    sides = [f"{count_noun(after, 'value')} of head"] + ([f"{before} of the side before"] if before else [])
    bar = one.threshold
    counts = f", a change counts beyond {render_threshold(one.metric, bar)}" if bar else ""
    return f"{name_metric(one.metric)}: {' and '.join(sides)}{counts}"


def _describe_note(one: Comparison) -> str:
    """The change, and of one that looks large and counts for nothing, why."""
    move, bar = describe_move(one), one.threshold
    is_small = one.status is Status.UNCHANGED and one.change and one.change.centre and not exceeds_limit(one)
    return f"{move}, below the limit of {render_threshold(one.metric, bar)}" if is_small and bar else move


def _make_lane(name: str, values: Sequence[float], estimate: Estimate | None) -> Lane:
    shown = tuple(value for value in values[-_MAX_POINTS:] if math.isfinite(value))
    return Lane(name=name, values=shown, estimate=estimate)


def _make_writer(metric: Metric) -> Write:
    if SPECS[metric].family is Family.LOG2:
        return lambda value: f"{value:+.2f}"  # its factor would not fit below an axis
    return lambda value: render_value(metric, value)


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


def draw_change(one: Comparison) -> Drawing | None:
    """Draw a change with its interval, in limits; ``None`` where it has no limit or nothing changed."""
    bar, change = one.threshold, one.change
    limit = (bar.relative or bar.absolute) if bar else 0.0
    if change is None or not limit:
        return None
    label = f"{name_metric(one.metric)} {describe_move(one)}"
    places = (change.low / limit, change.centre / limit, change.high / limit)
    return draw_interval(label, places, STATUS_KINDS[one.status])
