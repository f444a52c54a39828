"""A suite's summary: means by family and mode, modes, scopes, and what others have published; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gate.records import Metric, Mode, Task, Verdict
from gate.records.verdict import SuiteRow
from gate.report.clean import clean_line
from gate.report.view import ABSENT, Section, keep_filled
from gate.units import count_noun, render_count, render_ratio, render_seconds, render_value


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One inference of a model, eager and compiled. ``size`` is that of the registry that means the same."""

    model: str
    size: str
    batch: int
    eager_ms: float
    compiled_ms: float


# The data behind https://huggingface.co/docs/transformers/perf_torch_compile, which says: torch 2.0.1, mode
# ``default``, the mean of 300 inferences of one image. It does not state the floating-point type.
_SOURCE = "https://huggingface.co/datasets/stevhliu/compile-benchmarks/blob/main/a100-benchmarks.csv"
_MEASURED_ON = "NVIDIA A100, torch 2.0.1"
_PUBLISHED = (
    PublishedFigure("resnet50_batches", "batch1", 1, 6.531, 4.124),
    PublishedFigure("resnet50_batches", "batch16", 16, 7.018, 5.024),
    # The registry's own batch is 64: the nearest that was published.
    PublishedFigure("vit", "full", 16, 40.944, 40.01),
    PublishedFigure("convnext", "full", 16, 82.258, 75.561),
)
_NEVER = "never"


def describe_break_even(row: SuiteRow, noun: str = "") -> str:
    """The calls of those that ever pay back, with a noun if asked for, and how many never do."""
    if row.break_even_calls is None:
        return _NEVER if row.never_paid else ABSENT
    calls = f"{render_count(round(row.break_even_calls))}{noun}"
    return f"{calls} ({row.never_paid} {_NEVER})" if row.never_paid else calls


def describe_calls(calls: float | None) -> str:
    """Calls until something has paid, or that it never does."""
    return _NEVER if calls is None else render_value(Metric.BREAK_EVEN_CALLS, round(calls))


MIN_CASES = 2  # a mean of one case is the case's own figures
_PAYS = "pays back"
_MEANS = ("speedup", "cold compile", "warm compile", "memory", _PAYS)


def list_totals(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return a labelled line for each task and mode of which several cases were measured."""
    whole = (row for row in verdict.summary.rows if not row.family and row.cases >= MIN_CASES)
    return tuple(("suite", _describe_total(row)) for row in whole)


def _describe_total(row: SuiteRow) -> str:
    *figures, _ = _list_means(row)
    means = [f"{name} {text}" for name, text in zip(_MEANS, figures, strict=False) if text != ABSENT]
    paid = describe_break_even(row, " calls")
    if paid != ABSENT:
        means.append(f"{_NEVER} {_PAYS}" if paid == _NEVER else f"{_PAYS} after {paid}")
    cases = count_noun(row.cases, "case")
    return f"{row.task.value}, {row.mode.value}: {', '.join(means)} (geometric means of {cases})"


def list_sections(verdict: Verdict) -> tuple[Section, ...]:
    """Return the tables that there is something to say in."""
    return keep_filled(
        _make_suite(verdict), _make_modes(verdict), _make_scopes(verdict), _make_published(verdict)
    )


def _make_suite(verdict: Verdict) -> Section:
    measured = sum(row.cases for row in verdict.summary.rows if not row.family)
    rows = (
        (row.task.value, row.mode.value, clean_line(row.family) or "all", str(row.cases), *_list_means(row))
        for row in verdict.summary.rows
    )
    return Section(
        title="The suite, geometric means",
        header=("task", "mode", "family", "cases", *_MEANS),
        rows=tuple(rows) if measured >= MIN_CASES else (),
        right=frozenset({"cases", *_MEANS}),
        meaning=(
            "Plain calls compiled by Inductor, each case with equal weight. Decides nothing. Pays back: calls"
            " after which a cold compile is saved, for cases where it ever is."
        ),
    )


def _list_means(row: SuiteRow) -> tuple[str, ...]:
    return (
        _tell(render_ratio, row.speedup),
        _tell(render_seconds, row.cold_compile_s),
        _tell(render_seconds, row.warm_compile_s),
        _tell(render_ratio, row.memory_ratio),
        describe_break_even(row),
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
            describe_calls(row.break_even_calls),
            describe_calls(row.over_default_calls) if row.default_id not in {"", row.case_id} else ABSENT,
        )
        for row in verdict.summary.modes
    ]
    return Section(
        title="Modes: which pays back after how many calls",
        header=("case", *means),
        rows=tuple(rows),
        right=frozenset(means),
        meaning=(
            "Cold compile divided by the seconds that a call saves over eager; and the extra compile time"
            " over mode default divided by the extra seconds saved."
        ),
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
        title="Scopes: what compiling a part of a model saves",
        header=("case", *figures),
        rows=tuple(rows),
        right=frozenset(figures),
        meaning=(
            "Cold compile divided by that of the whole model, and the speedup over eager. The ratio decides"
            " nothing; the times do."
        ),
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
            render_ratio(figure.eager_ms / figure.compiled_ms),
            _MEASURED_ON,
            _SOURCE,
            clean_line(case.id),
            render_ratio(speedups[case.id]),
        )
        for figure in _PUBLISHED
        for case in verdict.cases
        if (case.model, case.size, case.task, case.mode)
        == (figure.model, figure.size, Task.INFERENCE, Mode.DEFAULT)
        and case.id in speedups
    ]
    return Section(
        title="Published results for comparison",
        header=("published", "theirs", "measured on", "source", "case", "ours"),
        rows=tuple(rows),
        right=frozenset({"theirs", "ours"}),
        meaning="Another machine, torch and harness: only for the order of magnitude.",
    )
