"""The pages of a history: the suite, and one for each case; each is a file that loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from gate.metrics import SPECS, Role, Unit, select_metrics
from gate.records import Metric
from gate.records.history import HistoryHead
from gate.report.page.layout import render_page
from gate.report.page.plots import find_axis_unit
from gate.report.trend.changes import TrendStep, mark_steps
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
    kind: str  # bad, good or plain
    change: str
    commits: Link
    run: Link
    upgrade: str


def render_pages(
    track: Track, prefix: str, repository: str, others: Sequence[Link]
) -> Iterator[tuple[str, str]]:
    """Render the pages of one machine as names with texts; ``prefix`` tells machines apart.

    ``repository`` is ``owner/name`` on GitHub, or empty; ``others`` lead to the other machines.
    """
    names = _name_pages(track, prefix)
    told: list[ToldStep] = []
    for case_id, name in names.items():
        curves, still, steps = _trace_case(track, case_id)
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
                plots=[(curve, draw_trend(curve, track)) for curve in curves],
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
            plots=[(curve, draw_trend(curve, track)) for curve in _list_suite(track)],
            steps=sorted(told, key=lambda row: row.created, reverse=True),
            upgrades=[(track.heads[run].created[:10], text) for run, text in track.upgrades.items()],
            others=others,
        ),
    )


def _name_pages(track: Track, prefix: str) -> Mapping[str, str]:
    cases = sorted({case_id for case_id, _ in (*track.values, *track.creep)})
    return {
        case_id: f"{prefix}-{number}-{_SLUG.sub('-', case_id.lower()).strip('-')[:80]}.html"
        for number, case_id in enumerate(cases, start=1)
    }


def _list_suite(track: Track) -> Iterator[Curve]:
    for metric in select_metrics(lambda spec: spec.is_ratio and spec.role is not Role.EXPLAINS):
        mean, creep = average_cases(track, metric), average_creep(track, metric)
        follows = SPECS[metric].follows
        if mean.runs and not mean.is_constant:
            yield Curve(
                title=name_metric(metric),
                note="geometric mean of all cases since the first runs",
                series=mean,
                write=lambda value: render_percent(value - 1),
                steps=mark_steps(metric, mean, average_cases(track, follows) if follows else None),
            )
        if creep.runs and not creep.is_constant:
            yield _trace_creep(metric, creep)


def _trace_case(
    track: Track, case_id: str
) -> tuple[list[Curve], list[tuple[str, str]], list[tuple[Metric, TrendStep]]]:
    """Trace what moved, or is not as at the anchor; what never moved is a value; and all steps."""
    curves, still, found = [], [], []
    for metric in SPECS:
        series, creep = (table.get((case_id, metric)) for table in (track.values, track.creep))
        if series and series.is_constant:
            still.append((name_metric(metric), render_value(metric, series.centres[0])))
        elif series:
            follows = SPECS[metric].follows
            steps = mark_steps(metric, series, track.values.get((case_id, follows)) if follows else None)
            found += [(metric, step) for step in steps]
            curves.append(_trace_values(metric, series, steps))
        if creep and any(creep.centres):
            curves.append(_trace_creep(metric, creep))
    return curves, still, found


def _trace_values(metric: Metric, series: TrendSeries, steps: Sequence[TrendStep]) -> Curve:
    spec = SPECS[metric]
    return Curve(
        title=name_metric(metric),
        note="higher is better" if spec.higher_is_better else "lower is better",
        series=series,
        write=partial(render_value, metric),
        steps=steps,
        unit=find_axis_unit(metric, series.centres),
        is_whole=spec.unit is Unit.COUNT,
    )


def _trace_creep(metric: Metric, series: TrendSeries) -> Curve:
    title = f"{name_metric(metric)} against the release anchor"
    write = render_percent if SPECS[metric].is_ratio else "{:+g}".format
    return Curve(title=title, note="+ is worse", series=series, write=write)


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
    safe = head.run_url if head.run_url.startswith("https://") else ""
    return Link(text=head.created[:16].replace("T", " "), address=safe)
