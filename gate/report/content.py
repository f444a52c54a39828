"""From a verdict to what is shown, strongest first; pure.

Changed comparisons become rows by case, and similar cases one block. Unchanged ones are counted; what could
not be judged is summed up by reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.devices import TARGET_KIND
from gate.metrics import SPECS
from gate.records.codes import Code
from gate.records.shown import Shown
from gate.records.verdict import JUDGED, RED, Comparison, MachineShift, Outcome, Status, SuiteRow, Verdict
from gate.report.case_blocks import LEAST_SHOWN, SHOWN, Block, count_causes, make_blocks
from gate.report.clean import ABSENT, MAX_SENTENCE, clean_line
from gate.report.comparison_rows import STATUS_ORDER
from gate.report.footer import Cell, list_footer, make_figures, write_subject
from gate.report.words.comparisons import find_largest, render_noticed
from gate.report.words.facts import write_notes
from gate.report.words.headline import LIKELY, name_case, write_doubt, write_headline, write_why
from gate.report.words.steps import NextStep, write_steps
from gate.report.words.templates import describe_move, name_metric, name_status
from gate.units import format_count, format_noun, format_percent, format_ratio, format_seconds

OUTCOME_KINDS: Mapping[Outcome, str] = {
    Outcome.PASS: "good",
    Outcome.REGRESSION: "bad",
    Outcome.INCOMPLETE: "bad",
    Outcome.INCONCLUSIVE: "unsure",
    Outcome.NOTHING_COMPARED: "bad",  # it fails the check under any --fail-on
}
_IN_PAIRS = "the same for base and head, which were measured side by side"
MAX_STEP = 1200  # characters: a command that names some twenty cases stays whole
# The suite's summary: means by family and mode, modes, scopes.
_NEVER = "never"
MIN_CASES = 2  # a mean of one case is the case's own figures
_MEANS = ("speedup", "cold compile", "warm compile", "memory", "pays back")


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    title: str  # "" where the text has none
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1  # columns of words, which come first; the others are numbers
    meaning: str = ""

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.header[self.words :]


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    outcome: Outcome
    headline: str  # what came out
    subject: str  # of what and when
    unchanged: str  # how large a change may be there; "" where nothing is unchanged
    why: str  # "" where there is nothing to explain
    counts: tuple[tuple[Status, int], ...]  # deciding comparisons, strongest first
    blocks: tuple[Block, ...]
    figures: Mapping[str, tuple[Cell, ...]]  # by case
    scope: tuple[tuple[str, str], ...]  # what was judged, the machine's share
    notes: tuple[str, ...]
    next_steps: tuple[NextStep, ...]
    causes: tuple[str, ...]  # that are shown once for many cases
    footer: tuple[tuple[str, str], ...]
    summary: tuple[Section, ...] = ()  # of the suite: means, modes, scopes


def make_report(verdict: Verdict, *, everything: bool = False, most: int | None = None) -> Report:
    """``everything`` shows unchanged comparisons too; only the first ``most`` cases are shown one by one."""
    written = write_steps(verdict)
    steps = tuple(
        NextStep(text=clean_line(step.text, MAX_STEP), command=clean_line(step.command, MAX_STEP))
        for step in written
    )
    blocks = make_blocks(verdict, everything=everything, most=most)
    if not everything:  # a command that is a step is not shown twice
        commands = {step.command for step in steps}
        blocks = tuple(replace(block, command="") if block.command in commands else block for block in blocks)
    shared = count_causes(blocks)
    doubt = write_doubt(verdict) if verdict.outcome is Outcome.INCONCLUSIVE else ""
    sentences = write_headline(verdict), write_why(verdict), doubt
    headline, why, doubt = (clean_line(sentence, MAX_SENTENCE) for sentence in sentences)
    noted, notes = _split_notes(verdict)
    why, causes = _split_causes(why, (*noted, *(shared or filter(None, [doubt]))))
    return Report(
        outcome=verdict.outcome,
        headline=headline,
        why=why,
        causes=causes,
        blocks=blocks,
        notes=notes,
        next_steps=steps,
        unchanged=_describe_unchanged(verdict),
        counts=count_statuses(verdict),
        scope=list_scope(verdict),
        summary=list_sections(verdict),
        subject=write_subject(verdict),
        figures=make_figures(verdict),
        footer=list_footer(verdict),
    )


def count_statuses(verdict: Verdict | Shown) -> tuple[tuple[Status, int], ...]:
    statuses = [comparison.status for comparison in verdict.comparisons if comparison.decides]
    return tuple((status, statuses.count(status)) for status in STATUS_ORDER if status in statuses)


def render_counts(counts: Sequence[tuple[Status, int]]) -> str:
    """``2 regressed, 93 unchanged``."""
    named: dict[str, int] = {}
    for status, count in counts:
        named[name_status(status)] = named.get(name_status(status), 0) + count
    return ", ".join(f"{count:,} {name}" for name, count in named.items()) or "nothing compared"


def _describe_unchanged(verdict: Verdict) -> str:
    quiet = [
        comparison
        for comparison in verdict.comparisons
        if comparison.decides and comparison.status is Status.UNCHANGED
    ]
    largest = find_largest(quiet)
    if largest is None:
        return ""
    where = name_case(largest.case_id, verdict)
    text = f"largest unchanged: {name_metric(largest.metric)} {describe_move(largest)} in {where}"
    seen = f"; from {noticed} on it would have been noticed" if (noticed := render_noticed(largest)) else ""
    return clean_line(f"{text}{seen}", MAX_SENTENCE)


def _split_causes(why: str, causes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Why it came out so, and what else many cases share; a sentence that is both comes once."""
    cause = why.removeprefix(LIKELY).rstrip(".").lower()
    same = [sentence for sentence in causes if cause and sentence.lower().startswith(cause)]
    return (same or [why])[0], tuple(sentence for sentence in causes if sentence not in same)


def _split_notes(verdict: Verdict) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Notes about the time, and about the machine where it may be a cause; and the others."""
    deciding = [comparison for comparison in verdict.comparisons if comparison.decides]
    red = {comparison.case_id for comparison in deciding if comparison.status in RED}
    shown = red or {comparison.case_id for comparison in deciding if comparison.status in SHOWN}
    causes = (cause for cause in verdict.causes if cause.case_id in shown and cause.weight >= LEAST_SHOWN)
    first = {Code.TIME_UP} | {cause.fact.code for cause in causes if cause.fact.code is Code.MACHINE_CHANGED}
    parts: tuple[list[str], list[str]] = ([], [])
    for fact, note in zip(verdict.notes, write_notes(verdict), strict=True):
        parts[fact.code not in first].append(clean_line(note, MAX_SENTENCE))
    return tuple(parts[0]), tuple(parts[1])


def list_scope(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    deciding = [comparison for comparison in verdict.comparisons if comparison.decides]
    judged = [comparison for comparison in deciding if comparison.status in JUDGED]
    measured = [
        comparison for comparison in deciding if comparison.status not in JUDGED and comparison.candidate
    ]
    # Where everything was judged, names would only repeat docs/metrics.md; why something was only
    # measured, with its names, is in the verdict's notes.
    lines = [("judged", _describe_group(judged, named=bool(measured)))]
    if measured:
        lines.append(("measured", f"{_describe_group(measured, named=False)}, not judged"))
    is_machine_noted = any(fact.code is Code.MACHINE_CHANGED for fact in verdict.notes)
    if is_machine_noted or verdict.environment.device_kind == TARGET_KIND:  # where nothing was timed
        return tuple(lines)
    stored = any(comparison.baseline and not comparison.pairs for comparison in verdict.comparisons)
    is_paired = not stored and any(comparison.pairs for comparison in judged)
    share = _IN_PAIRS if is_paired else describe_machine(verdict.machine)
    return (*lines, ("machine", share)) if share else tuple(lines)


def describe_machine(shift: MachineShift) -> str:
    """``""`` where that is unknown."""
    parts = []
    if shift.known:
        parts.append(f"fixed test programs {format_percent(shift.canary)}")
    if shift.suite:
        parts.append(f"eager {format_percent(shift.suite)}")
    return f"{', '.join(parts)} since the baselines (+ is slower)" if parts else ""


def _describe_group(group: Sequence[Comparison], *, named: bool) -> str:
    if not group:
        return "nothing"
    metrics = {comparison.metric for comparison in group}
    cases = {comparison.case_id for comparison in group}
    size = f"{format_noun(len(metrics), 'metric')} of {format_noun(len(cases), 'case')}"
    names = ", ".join(name_metric(metric) for metric in SPECS if metric in metrics)
    return f"{size}: {names}" if named else size


def describe_break_even(row: SuiteRow) -> str:
    if row.break_even_calls is None:
        return _NEVER if row.never_paid else ABSENT
    calls = format_count(round(row.break_even_calls))
    return f"{calls} ({row.never_paid} {_NEVER})" if row.never_paid else calls


def describe_calls(calls: float | None) -> str:
    return _NEVER if calls is None else format_count(round(calls))


def list_sections(verdict: Verdict) -> tuple[Section, ...]:
    made = (_make_suite(verdict), _make_modes(verdict), _make_scopes(verdict))
    return tuple(section for section in made if section.rows)


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
        words=3,
        meaning=(
            "Plain calls compiled by Inductor, each case with equal weight. For information. Pays back: after"
            " how many calls the compile time is earned back, for cases where it ever is."
        ),
    )


def _list_means(row: SuiteRow) -> tuple[str, ...]:
    return (
        _render_known(format_ratio, row.speedup),
        _render_known(format_seconds, row.cold_compile_s),
        _render_known(format_seconds, row.warm_compile_s),
        _render_known(format_ratio, row.memory_ratio),
        describe_break_even(row),
    )


def _render_known(render: Callable[[float], str], value: float | None) -> str:
    return ABSENT if value is None else render(value)


def _make_modes(verdict: Verdict) -> Section:
    rows = [
        (
            clean_line(row.case_id),
            format_seconds(row.cold_compile_s),
            format_seconds(row.compiled_s),
            describe_calls(row.break_even_calls),
            describe_calls(row.over_default_calls) if row.default_id not in {"", row.case_id} else ABSENT,
        )
        for row in verdict.summary.modes
    ]
    return Section(
        title="Modes: which pays back after how many calls",
        header=("case", "cold compile", "one call", "pays back over eager", "over default"),
        rows=tuple(rows),
        meaning=(
            "Cold compile divided by the seconds that a call saves over eager; and the extra compile time"
            " over mode default divided by the extra seconds saved."
        ),
    )


def _make_scopes(verdict: Verdict) -> Section:
    rows = [
        (
            clean_line(row.case_id),
            format_seconds(row.cold_compile_s),
            ABSENT if row.case_id == row.whole_id else format_ratio(row.cold_ratio),
            format_ratio(row.speedup),
        )
        for row in verdict.summary.scopes
    ]
    return Section(
        title="Scopes: what compiling a part of a model saves",
        header=("case", "cold compile", "of the whole model's", "speedup"),
        rows=tuple(rows),
        meaning=(
            "Cold compile divided by that of the whole model, and the speedup over eager. The ratio decides"
            " nothing; the times do."
        ),
    )
