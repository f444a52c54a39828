"""The tables of a suite's summary: means by family and mode, modes, scopes, and published figures; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gate.records import Metric, Verdict
from gate.report.clean import clean_line
from gate.report.published import PUBLISHED
from gate.report.view import ABSENT, Section, keep_filled
from gate.report.words import suite as words
from gate.units import render_ratio, render_seconds

MIN_CASES = 2  # a mean of one case is the case's own figures
_MEANS = ("speedup", "cold compile", "warm compile", "memory", "pays back")
_ALL = "all"


def list_totals(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return a labelled line for each task and mode of which several cases were measured."""
    rows = verdict.summary.rows
    return tuple(
        ("suite", words.describe_total(row)) for row in rows if not row.family and row.cases >= MIN_CASES
    )


def list_sections(verdict: Verdict) -> tuple[Section, ...]:
    """Return the tables that there is something to say in."""
    return keep_filled(
        _make_suite(verdict), _make_modes(verdict), _make_scopes(verdict), _make_published(verdict)
    )


def _make_suite(verdict: Verdict) -> Section:
    measured = sum(row.cases for row in verdict.summary.rows if not row.family)
    return Section(
        title=words.SUITE_TITLE,
        header=("task", "mode", "family", "cases", *_MEANS),
        rows=tuple(_list_means(verdict)) if measured >= MIN_CASES else (),
        right=frozenset({"cases", *_MEANS}),
        meaning=words.SUITE_MEANING,
    )


def _list_means(verdict: Verdict) -> Iterator[tuple[str, ...]]:
    for row in verdict.summary.rows:
        yield (
            row.task.value,
            row.mode.value,
            clean_line(row.family) or _ALL,
            str(row.cases),
            _tell(render_ratio, row.speedup),
            _tell(render_seconds, row.cold_compile_s),
            _tell(render_seconds, row.warm_compile_s),
            _tell(render_ratio, row.memory_ratio),
            words.describe_break_even(row),
        )


def _tell(render: Callable[[float], str], value: float | None) -> str:
    return ABSENT if value is None else render(value)


def _make_modes(verdict: Verdict) -> Section:
    means = ("cold compile", "one call", "pays back over eager", "over default")
    rows = [
        (
            clean_line(row.case_id),
            render_seconds(row.cold_compile_s),
            render_seconds(row.compiled_s),
            words.describe_calls(row.break_even_calls),
            words.describe_calls(row.over_default_calls)
            if row.default_id not in {"", row.case_id}
            else ABSENT,
        )
        for row in verdict.summary.modes
    ]
    return Section(
        title=words.MODES_TITLE,
        header=("case", *means),
        rows=tuple(rows),
        right=frozenset(means),
        meaning=words.MODES_MEANING,
    )


def _make_scopes(verdict: Verdict) -> Section:
    figures = ("cold compile", "of the whole model's", "speedup")
    rows = [
        (
            clean_line(row.case_id),
            render_seconds(row.cold_compile_s),
            ABSENT if row.case_id == row.whole_id else render_ratio(row.cold_ratio),
            render_ratio(row.speedup),
        )
        for row in verdict.summary.scopes
    ]
    return Section(
        title=words.SCOPES_TITLE,
        header=("case", *figures),
        rows=tuple(rows),
        right=frozenset(figures),
        meaning=words.SCOPES_MEANING,
    )


def _make_published(verdict: Verdict) -> Section:
    speedups = {
        one.case_id: one.candidate.centre
        for one in verdict.comparisons
        if one.metric is Metric.WARM_SPEEDUP and one.candidate
    }
    rows = [
        (
            f"{figure.model}, batch {figure.batch}",
            render_ratio(figure.speedup),
            f"{figure.source.hardware}, torch {figure.source.torch}",
            figure.source.address,
            clean_line(case.id),
            render_ratio(speedups[case.id]),
        )
        for figure in PUBLISHED
        for case in verdict.cases
        if (case.model, case.size, case.task, case.mode)
        == (figure.model, figure.size, figure.task, figure.mode)
        and case.id in speedups
    ]
    return Section(
        title=words.PUBLISHED_TITLE,
        header=("published", "theirs", "measured on", "source", "case", "ours"),
        rows=tuple(rows),
        right=frozenset({"theirs", "ours"}),
        meaning=words.PUBLISHED_MEANING,
    )
