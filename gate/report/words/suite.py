"""The words of a suite's summary: one sentence of the whole, and what its tables mean."""

from __future__ import annotations

from gate.records import Metric
from gate.records.summary import SuiteRow
from gate.report.view import ABSENT
from gate.units import count_noun, render_count, render_ratio, render_seconds, render_value

SUITE_TITLE = "The suite in geometric means"
SUITE_MEANING = (
    "Of plain calls compiled by Inductor, each case as much as any other; decides nothing. Pays back: calls"
    " after which a cold compile has been saved, of the cases that ever do."
)
MODES_TITLE = "Modes: which pays back after how many calls"
MODES_MEANING = (
    "Cold compile over the seconds that a call saves: against eager, and what the compile takes more than in"
    " the mode default against what a call then saves more."
)
SCOPES_TITLE = "Scopes: what compiling a part of a model saves"
SCOPES_MEANING = (
    "Cold compile over that of the whole model, and what a call still gains over eager; decides nothing, the"
    " times themselves do."
)
PUBLISHED_TITLE = "Beside published figures, which are other people's"
PUBLISHED_MEANING = "Another machine, torch and harness: to see the order of magnitude, and not compared."
NEVER = "never"


def describe_total(row: SuiteRow) -> str:
    """Say what all cases of a task and mode came to."""
    means = [
        f"{render_ratio(row.speedup)} as fast as eager" if row.speedup else "",
        f"cold compile {render_seconds(row.cold_compile_s)}" if row.cold_compile_s else "",
        f"warm {render_seconds(row.warm_compile_s)}" if row.warm_compile_s else "",
        f"memory {render_ratio(row.memory_ratio)}" if row.memory_ratio else "",
        _describe_payback(row),
    ]
    told = ", ".join(one for one in means if one)
    return f"{row.task.value}, {row.mode.value}: {told} (geometric means of {count_noun(row.cases, 'case')})"


def _describe_payback(row: SuiteRow) -> str:
    if row.break_even_calls is None:
        return "never pays back" if row.never_paid else ""
    never = f" ({row.never_paid} {NEVER})" if row.never_paid else ""
    return f"pays back after {render_count(round(row.break_even_calls))} calls{never}"


def describe_break_even(row: SuiteRow) -> str:
    """The calls of those that ever pay back, and how many never do."""
    if row.break_even_calls is None:
        return NEVER if row.never_paid else ABSENT
    calls = render_count(round(row.break_even_calls))
    return f"{calls} ({row.never_paid} {NEVER})" if row.never_paid else calls


def describe_calls(calls: float | None) -> str:
    """Calls until something has paid, or that it never does."""
    return NEVER if calls is None else render_value(Metric.BREAK_EVEN_CALLS, round(calls))
