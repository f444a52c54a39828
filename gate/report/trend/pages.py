"""The pages of a history: the suite, and one for each case; each is a file that loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gate.metrics import SPECS, Role, select_metrics
from gate.records import Metric
from gate.records.history import HistoryHead
from gate.report.page.layout import render_page
from gate.report.trend.changes import TrendStep, find_steps
from gate.report.trend.chart import Curve, draw_trend
from gate.report.trend.series import (
    Track,
    TrendSeries,
    average_cases,
    average_creep,
    list_upgrades,
)
from gate.report.words.terms import describe_change, name_metric
from gate.units import render_percent, render_value

_SHORT = 7  # characters of a commit
_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A text that leads somewhere; nowhere without an address."""

    text: str
    address: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldStep:
    """A step as a row: when, where, by how much, between which commits, and what else changed."""

    created: str
    case_id: str
    page: str
    metric: str
    kind: str  # bad or good
    change: str
    commits: Link
    run: Link
    upgrade: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TrendPlot:
    """A chart with its title."""

    title: str
    note: str
    drawing: object


def render_pages(
    track: Track, prefix: str, repository: str, others: Sequence[Link]
) -> Iterator[tuple[str, str]]:
    """Render the pages of one machine as names with texts; ``prefix`` tells machines apart.

    ``repository`` is ``owner/name`` on GitHub, or empty; ``others`` lead to the other machines.
    """
    upgrades, names = list_upgrades(track.heads), _name_pages(track, prefix)
    told: list[ToldStep] = []
    for case_id, name in names.items():
        plots, still, steps = _draw_case(track, case_id, upgrades)
        rows = [_tell_step(track, (case_id, metric), step, (name, repository)) for metric, step in steps]
        told += rows
        yield (
            name,
            render_page(
                "trend_case.html",
                title=f"{case_id} - compile-gate trend",
                case_id=case_id,
                machine=track.machine,
                home=f"{prefix}.html",
                plots=plots,
                still=still,
                steps=sorted(rows, key=lambda row: row.created, reverse=True),
            ),
        )
    yield (
        f"{prefix}.html",
        render_page(
            "trend.html",
            title="compile-gate trend",
            machine=track.machine,
            runs=len(track.heads),
            first=track.heads[0].created[:10],
            last=_link_run(track.heads[-1]),
            cases=[Link(text=case_id, address=name) for case_id, name in names.items()],
            plots=list(_draw_suite(track, upgrades)),
            steps=sorted(told, key=lambda row: row.created, reverse=True),
            upgrades=[(track.heads[run].created[:10], text) for run, text in upgrades.items()],
            others=others,
        ),
    )


def _name_pages(track: Track, prefix: str) -> Mapping[str, str]:
    cases = sorted({case_id for case_id, _ in (*track.values, *track.creep)})
    return {
        case_id: f"{prefix}-{number}-{_SLUG.sub('-', case_id.lower()).strip('-')[:80]}.html"
        for number, case_id in enumerate(cases, start=1)
    }


def _draw_suite(track: Track, upgrades: Mapping[int, str]) -> Iterator[TrendPlot]:
    for metric in select_metrics(lambda spec: spec.is_ratio and spec.role is not Role.EXPLAINS):
        mean, creep = average_cases(track, metric), average_creep(track, metric)
        for title, series, write in (
            (name_metric(metric), mean, lambda value: render_percent(value - 1)),
            (f"{name_metric(metric)} against the release anchor", creep, render_percent),
        ):
            if series.runs and not series.is_constant:
                steps = find_steps(metric, series.centres) if series is mean else ()
                curve = Curve(label=title, series=series, write=write, steps=steps, upgrades=upgrades)
                note = "geometric mean of all cases since the first runs" if series is mean else "+ is worse"
                yield TrendPlot(title=title, note=note, drawing=draw_trend(curve, track.heads))


def _draw_case(
    track: Track, case_id: str, upgrades: Mapping[int, str]
) -> tuple[list[TrendPlot], list[tuple[str, str]], list[tuple[Metric, TrendStep]]]:
    """Draw what moved; what never did is a value, and all steps."""
    plots, still, found = [], [], []
    for metric in SPECS:
        series = track.values.get((case_id, metric))
        if series is None:
            continue
        if series.is_constant:
            still.append((name_metric(metric), render_value(metric, series.centres[0])))
            continue
        steps = find_steps(metric, series.centres)
        found += [(metric, step) for step in steps]
        plots.append(_plot(track, metric, (series, steps), upgrades))
        if creep := track.creep.get((case_id, metric)):
            plots.append(_plot_creep(track, metric, creep, upgrades))
    return plots, still, found


def _plot(
    track: Track, metric: Metric, told: tuple[TrendSeries, Sequence[TrendStep]], upgrades: Mapping[int, str]
) -> TrendPlot:
    title = name_metric(metric)
    curve = Curve(
        label=title,
        series=told[0],
        write=lambda value: render_value(metric, value),
        steps=told[1],
        upgrades=upgrades,
    )
    better = "higher is better" if SPECS[metric].higher_is_better else "lower is better"
    return TrendPlot(title=title, note=better, drawing=draw_trend(curve, track.heads))


def _plot_creep(track: Track, metric: Metric, series: TrendSeries, upgrades: Mapping[int, str]) -> TrendPlot:
    title = f"{name_metric(metric)} against the release anchor"
    curve = Curve(
        label=title,
        series=series,
        write=render_percent if SPECS[metric].is_ratio else lambda value: f"{value:+g}",
        upgrades=upgrades,
    )
    return TrendPlot(title=title, note="+ is worse", drawing=draw_trend(curve, track.heads))


def _tell_step(track: Track, place: tuple[str, Metric], step: TrendStep, where: tuple[str, str]) -> ToldStep:
    (case_id, metric), (page, repository) = place, where
    runs = track.values[place].runs
    before, after = track.heads[runs[step.position - 1]], track.heads[runs[step.position]]
    upgrades = list_upgrades((before, after))
    return ToldStep(
        created=after.created,
        case_id=case_id,
        page=page,
        metric=name_metric(metric),
        kind="bad" if step.worse > 0 else "good",
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
    safe = head.run_url if head.run_url.startswith("https://") else ""
    return Link(text=head.created[:16].replace("T", " "), address=safe)
