"""The pages of a history: the suite, and one for each case with its chart; each file loads nothing."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from statistics import fmean

from gate.metrics import SPECS, Role, Unit, select_metrics
from gate.records.cases import Metric
from gate.report.charts import Drawing, Plot, Scale, choose_axis_unit, join_points, list_ticks, make_scale
from gate.report.pages import clean_link, render_page
from gate.report.trend import FEWEST, Track, TrendSeries, TrendStep, list_upgrades, mark_steps
from gate.report.words.templates import describe_change, name_metric
from gate.store.history import HistoryHead
from gate.units import format_noun, format_percent, format_value

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 720.0, 190.0, 76.0, 10.0, 22.0
_MOST = 360  # points of a line: two pixels each; more are drawn as their mean, in a band of all of them
_DATES, _POINTS = 4, 60  # of a curve: dates below it, and the newest runs, which are links
# Of the overview of cases: what it shows, since when, and points of a small line.
_LEADING, _DAYS, _SPARK = Metric.COMPILED_LATENCY, (7, 30), 96
_SHORT = 7  # characters of a commit
_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    title: str
    note: str
    series: TrendSeries
    write: Callable[[float], str]
    steps: Sequence[TrendStep] = ()
    unit: float = 1.0  # what its axis counts in
    is_whole: bool = False  # there is nothing between two whole numbers


def _plot(curve: Curve, track: Track) -> Plot:
    heads = track.heads
    drawing = Drawing(label=curve.title, width=_WIDTH, height=_HEIGHT, kind="chart wide")
    runs = make_scale([0, max(len(heads) - 1, 1)], _LEFT, _WIDTH - _RIGHT)
    points = _thin(curve.series)
    shown = [value for _, _, low, high in points for value in (low, high)]
    scale = make_scale(shown, _HEIGHT - _BOTTOM, 6, least_span=0.02 * max(map(abs, shown)))
    marks = list_ticks(scale, unit=curve.unit)
    for value in (mark for mark in marks if mark.is_integer() or not curve.is_whole):
        drawing.add_line("grid", (_LEFT, scale.place(value)), (_WIDTH - _RIGHT, scale.place(value)))
        drawing.add("text", "lane", x=_LEFT - 6, y=scale.place(value) + 4, text=curve.write(value))
    for run, text in track.upgrades.items():
        left, height = runs.place(run) - 1, _HEIGHT - _BOTTOM - 4
        drawing.add("rect", "upgrade", x=left, y=4, width=2, height=height, hint=text)
    band = [(runs.place(run), scale.place(high)) for run, _, _, high in points]
    band += [(runs.place(run), scale.place(low)) for run, _, low, _ in reversed(points)]
    drawing.add("path", "band", d=join_points(band, closed=True))
    centres = [(runs.place(run), scale.place(centre)) for run, centre, _, _ in points]
    drawing.add("path", "curve", d=join_points(centres))
    for run, value in zip(curve.series.runs[-_POINTS:], curve.series.centres[-_POINTS:], strict=True):
        hint = f"{heads[run].commit[:_SHORT]} {heads[run].created[:10]}: {curve.write(value)}"
        link, x, y = clean_link(heads[run].run_url), runs.place(run), scale.place(value)
        drawing.add("circle", "dot", hint=hint, link=link, cx=x, cy=y, r=3.0)
    for step in curve.steps:
        x = runs.place(curve.series.runs[step.position])
        drawing.add_line(f"step {step.kind}", (x, 4), (x, _HEIGHT - _BOTTOM))
    _add_dates(drawing, runs, heads)
    return Plot(title=curve.title, drawing=drawing, note=curve.note, kind="note")


def _add_dates(drawing: Drawing, runs: Scale, heads: Sequence[HistoryHead]) -> None:
    days = len({head.created[:10] for head in heads})
    shown = slice(11, 16) if days == 1 else slice(0, 10) if days >= _DATES else slice(5, 16)
    count = min(_DATES, len(heads))
    for number in range(count):
        run = number * (len(heads) - 1) // max(count - 1, 1)
        side = " last" if number == count - 1 and count > 1 else ""
        text = heads[run].created[shown].replace("T", " ")
        drawing.add("text", f"tick{side}", x=runs.place(run), y=_HEIGHT - 6, text=text)


def _thin(series: TrendSeries) -> list[tuple[float, float, float, float]]:
    """Run, centre, low and high."""
    size = -(-len(series.runs) // _MOST)
    parts = [slice(start, start + size) for start in range(0, len(series.runs), size)]
    return [
        (
            fmean(series.runs[part]),
            fmean(series.centres[part]),
            min(series.lows[part]),
            max(series.highs[part]),
        )
        for part in parts
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    text: str
    address: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseRow:
    link: Link
    now: str = ""
    changes: tuple[str, ...] = ("",) * len(_DAYS)
    line: Drawing | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    created: str
    case_id: str
    page: str
    metric: str
    kind: str  # bad, good or plain
    change: str
    commits: Link
    run: Link
    upgrade: str


def render_pages(
    track: Track, prefix: str, repository: str, others: Sequence[Link]
) -> Iterator[tuple[str, str]]:
    """``prefix`` differs between machines, ``others`` lead to them; ``repository`` is "owner/name" or ""."""
    names = _name_pages(track, prefix)
    all_steps: list[StepRow] = []
    for case_id, name in names.items():
        curves, still, steps = _trace_case(track, case_id)
        rows = [
            _make_row(track, (case_id, metric), step, page=name, repository=repository)
            for metric, step in steps
        ]
        all_steps += rows
        yield (
            name,
            render_page(
                "trend_case.html",
                title=f"{case_id} - compile-gate trend",
                case_id=case_id,
                machine=track.machine,
                home=f"{prefix}.html",
                plots=[_plot(curve, track) for curve in curves],
                still=still,
                steps=sorted(rows, key=lambda row: row.created, reverse=True),
                **_count_runs(series for (key, _), series in track.values.items() if key == case_id),
            ),
        )
    yield (
        f"{prefix}.html",
        render_page(
            "trend.html",
            title="compile-gate trend",
            machine=track.machine,
            runs=format_noun(track.runs, "run"),
            recent=track.heads[track.old].created[:10] if track.old else "",
            first=track.heads[0].created[:10],
            last=_link_run(track.heads[-1]),
            days=_DAYS,
            cases=[_make_case_row(track, case_id, name) for case_id, name in names.items()],
            plots=[_plot(curve, track) for curve in _list_suite(track)],
            steps=sorted(all_steps, key=lambda row: row.created, reverse=True),
            upgrades=[(track.heads[run].created[:10], text) for run, text in track.upgrades.items()],
            others=others,
            **_count_runs(track.values.values()),
        ),
    )


def _make_case_row(track: Track, case_id: str, page: str) -> CaseRow:
    series = track.values.get((case_id, _LEADING))
    if series is None:
        return CaseRow(link=Link(text=case_id, address=page))
    days = [track.heads[run].created[:10] for run in series.runs]
    changes = []
    for count in _DAYS:
        index = bisect_right(days, _go_back(days[-1], count)) - 1
        earlier = series.centres[index]
        # A run of months before says nothing of this week.
        is_known = index >= 0 and days[index] >= _go_back(days[-1], 2 * count) and earlier > 0
        changes.append(describe_change(_LEADING, series.centres[-1] / earlier - 1) if is_known else "")
    shown = series.centres[-_SPARK:]
    line = Drawing(label="", width=_SPARK, height=16, kind="small chart")
    scale = make_scale(shown, 15, 1, least_span=0.02 * max(shown))
    line.add("path", "curve", d=join_points([(x, scale.place(value)) for x, value in enumerate(shown)]))
    now = format_value(_LEADING, series.centres[-1])
    return CaseRow(link=Link(text=case_id, address=page), now=now, changes=tuple(changes), line=line)


def _go_back(day: str, count: int) -> str:
    return (date.fromisoformat(day or "1970-01-01") - timedelta(days=count)).isoformat()


def render_badge(track: Track) -> str:
    """For shields.io."""
    since = _go_back(track.heads[-1].created[:10], _DAYS[0])
    begin = sum(head.created[:10] <= since for head in track.heads)
    leading = [series for (_, metric), series in track.values.items() if metric is _LEADING]
    current = [series for series in leading if series.runs[-1] >= begin]
    worse = sum(
        any(
            step.worse > 0 and series.runs[step.position] >= begin
            for step in mark_steps(_LEADING, series, track.old)
        )
        for series in current
    )
    message = f"{worse} of {format_noun(len(current), 'case')} slower in {_DAYS[0]} days"
    color = "orange" if worse else "brightgreen"
    return json.dumps({"schemaVersion": 1, "label": "torch.compile", "message": message, "color": color})


def _count_runs(series: Iterable[TrendSeries]) -> dict[str, int]:
    """``fewest`` is 0 where there are enough runs for a step."""
    runs = max((len(table.runs) for table in series), default=0)
    return {"is_single": runs == 1, "fewest": FEWEST if runs < 2 * FEWEST else 0}


def _name_pages(track: Track, prefix: str) -> Mapping[str, str]:
    cases = sorted({case_id for case_id, _ in (*track.values, *track.creep)})
    return {
        case_id: f"{prefix}-{number}-{_SLUG.sub('-', case_id.lower()).strip('-')[:80]}.html"
        for number, case_id in enumerate(cases, start=1)
    }


def _list_suite(track: Track) -> Iterator[Curve]:
    for metric in select_metrics(lambda spec: spec.is_ratio and spec.role is not Role.EXPLAINS):
        mean, creep = track.average_cases(metric), track.average_creep(metric)
        if mean.runs and not mean.is_constant:
            yield Curve(
                title=name_metric(metric),
                note="geometric mean of all cases since the first runs",
                series=mean,
                write=lambda value: format_percent(value - 1),
                steps=mark_steps(metric, mean, track.old),
            )
        if creep.runs and not creep.is_constant:
            yield _trace_creep(metric, creep)


def _trace_case(
    track: Track, case_id: str
) -> tuple[list[Curve], list[tuple[str, str]], list[tuple[Metric, TrendStep]]]:
    """Curves of what moved; values that never moved; and all steps."""
    curves, still, all_steps = [], [], []
    for metric in SPECS:
        series, creep = (table.get((case_id, metric)) for table in (track.values, track.creep))
        if series and not series.is_constant:
            steps = mark_steps(metric, series, track.old)
            all_steps += [(metric, step) for step in steps]
            curves.append(_trace_values(metric, series, steps))
        elif series and len(series.runs) > 1:
            still.append((name_metric(metric), format_value(metric, series.centres[0])))
        if creep and any(creep.centres):
            curves.append(_trace_creep(metric, creep))
    return curves, still, all_steps


def _trace_values(metric: Metric, series: TrendSeries, steps: Sequence[TrendStep]) -> Curve:
    spec = SPECS[metric]
    return Curve(
        title=name_metric(metric),
        note="higher is better" if spec.higher_is_better else "lower is better",
        series=series,
        write=partial(format_value, metric),
        steps=steps,
        unit=choose_axis_unit(metric, series.centres),
        is_whole=spec.unit is Unit.COUNT,
    )


def _trace_creep(metric: Metric, series: TrendSeries) -> Curve:
    title = f"{name_metric(metric)} against the release anchor"
    write = format_percent if SPECS[metric].is_ratio else "{:+g}".format
    return Curve(title=title, note="+ is worse", series=series, write=write)


def _make_row(
    track: Track, key: tuple[str, Metric], step: TrendStep, *, page: str, repository: str
) -> StepRow:
    case_id, metric = key
    runs = track.values[key].runs
    before, after = track.heads[runs[step.position - 1]], track.heads[runs[step.position]]
    upgrades = list_upgrades((before, after))
    return StepRow(
        created=after.created,
        case_id=case_id,
        page=page,
        metric=name_metric(metric),
        kind=step.kind,
        change=describe_change(metric, step.worse),
        commits=_link_commits(before, after, repository),
        run=_link_run(after),
        upgrade=upgrades.get(1, ""),
    )


def _link_commits(before: HistoryHead, after: HistoryHead, repository: str) -> Link:
    names = [head.commit[:_SHORT] for head in (before, after)]
    if not all(names):
        return Link(text="commits unknown")
    if before.commit == after.commit:
        return Link(text=f"no change of code: {names[1]}")
    page = f"https://github.com/{repository}/compare/{before.commit}...{after.commit}" if repository else ""
    return Link(text="...".join(names), address=page)


def _link_run(head: HistoryHead) -> Link:
    return Link(text=head.created[:16].replace("T", " "), address=clean_link(head.run_url))
