"""From a verdict to what is shown, strongest first; pure.

Changed comparisons become rows, grouped by case, and cases that say the same are one; unchanged ones are
counted; what could not be judged is summed up by reason, with its values in the table of main figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate.metrics import SPECS
from gate.records import JUDGED, RED, Code, Comparison, MachineShift, Outcome, Status, Verdict
from gate.records.targets import TARGET_KIND
from gate.report.blocks import LEAST_SHOWN, SHOWN, count_causes, make_blocks
from gate.report.clean import clean_line
from gate.report.footer import list_footer, make_case_lines
from gate.report.rows import MAX_SENTENCE, STATUS_ORDER
from gate.report.suite import list_sections, list_totals
from gate.report.view import NextStep, Report
from gate.report.words.headline import LIKELY, write_doubt, write_headline, write_why
from gate.report.words.notes import write_notes
from gate.report.words.steps import write_steps
from gate.report.words.templates import name_metric, name_status
from gate.units import count_noun, render_percent

_MACHINE = "machine"  # a line that a cause or a note makes superfluous
_IN_PAIRS = "the same for base and head, which were measured side by side"
MAX_STEP = 1200  # characters: a command that names some twenty cases stays whole


def make_report(verdict: Verdict, *, everything: bool = False, most: int | None = None) -> Report:
    """Return what a report of ``verdict`` says; ``everything`` shows unchanged comparisons too.

    Only the first ``most`` cases are shown one by one, if that is said.
    """
    blocks = make_blocks(verdict, everything=everything, most=most)
    noted, notes = _part_notes(verdict)
    doubt = write_doubt(verdict) if verdict.outcome is Outcome.INCONCLUSIVE else ""
    shared = count_causes(blocks) or tuple(filter(None, [clean_line(doubt, MAX_SENTENCE)]))
    why, causes = _part_why(verdict, (*noted, *shared))
    is_machine_noted = any(fact.code is Code.MACHINE_CHANGED for fact in verdict.notes)
    return Report(
        outcome=verdict.outcome,
        headline=clean_line(write_headline(verdict), MAX_SENTENCE),
        why=why,
        counts=count_statuses(verdict),
        blocks=blocks,
        case_lines=make_case_lines(verdict),
        scope=(
            *(line for line in list_scope(verdict) if line[0] != _MACHINE or not is_machine_noted),
            *list_totals(verdict),
        ),
        notes=notes,
        next_steps=tuple(
            NextStep(text=clean_line(step.text, MAX_STEP), command=clean_line(step.command, MAX_STEP))
            for step in write_steps(verdict)
        ),
        causes=causes,
        footer=list_footer(verdict),
        summary=list_sections(verdict),
    )


def count_statuses(verdict: Verdict) -> tuple[tuple[Status, int], ...]:
    """Count the deciding comparisons by status, strongest first; absent statuses are left out."""
    statuses = [comparison.status for comparison in verdict.comparisons if comparison.decides]
    return tuple((status, statuses.count(status)) for status in STATUS_ORDER if status in statuses)


def render_counts(counts: Sequence[tuple[Status, int]]) -> str:
    """Return the counts as a sentence part: ``2 regressed, 93 unchanged``."""
    named: dict[str, int] = {}
    for status, count in counts:
        named[name_status(status)] = named.get(name_status(status), 0) + count
    return ", ".join(f"{count:,} {name}" for name, count in named.items()) or "nothing compared"


def _part_why(verdict: Verdict, causes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Why it came out so, and what else many cases share: what is both is said once, with their number."""
    why = clean_line(write_why(verdict), MAX_SENTENCE)
    cause = why.removeprefix(LIKELY).rstrip(".").lower()
    same = [one for one in causes if cause and one.lower().startswith(cause)]
    return (same or [why])[0], tuple(one for one in causes if one not in same)


def _part_notes(verdict: Verdict) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of the time, and of the machine where it may be a cause of something; and the others."""
    deciding = [one for one in verdict.comparisons if one.decides]
    red = {one.case_id for one in deciding if one.status in RED}
    shown = red or {one.case_id for one in deciding if one.status in SHOWN}
    causes = (one for one in verdict.causes if one.case_id in shown and one.weight >= LEAST_SHOWN)
    first = {Code.TIME_UP} | {one.fact.code for one in causes if one.fact.code is Code.MACHINE_CHANGED}
    parts: tuple[list[str], list[str]] = ([], [])
    for fact, note in zip(verdict.notes, write_notes(verdict), strict=True):
        parts[fact.code not in first].append(clean_line(note, MAX_SENTENCE))
    return tuple(parts[0]), tuple(parts[1])


def list_scope(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return labelled lines: what was judged, what only measured, and the machine's share."""
    deciding = [comparison for comparison in verdict.comparisons if comparison.decides]
    judged = [comparison for comparison in deciding if comparison.status in JUDGED]
    measured = [one for one in deciding if one.status not in JUDGED and one.candidate]
    # Where everything was judged, names would only repeat docs/metrics.md; why something was only
    # measured, with its names, is in the verdict's notes.
    lines = [("judged", _describe_group(judged, named=bool(measured)))]
    if measured:
        lines.append(("measured", f"{_describe_group(measured, named=False)}, not judged"))
    if verdict.environment.device_kind == TARGET_KIND:  # nothing was timed
        return tuple(lines)
    stored = any(one.baseline and not one.pairs for one in verdict.comparisons)
    is_paired = not stored and any(one.pairs for one in judged)
    return (*lines, (_MACHINE, _IN_PAIRS if is_paired else describe_machine(verdict.machine)))


def describe_machine(shift: MachineShift) -> str:
    """Say how much of any change in time is the machine's own."""
    parts = []
    if shift.known:
        parts.append(f"fixed test programs {render_percent(shift.canary)}")
    if shift.suite:
        parts.append(f"eager {render_percent(shift.suite)}")
    if not parts:
        return "cannot be separated out: no baseline from this machine"
    return f"{', '.join(parts)} since the baselines (+ is slower)"


def _describe_group(group: Sequence[Comparison], *, named: bool) -> str:
    if not group:
        return "nothing"
    metrics = {comparison.metric for comparison in group}
    cases = {comparison.case_id for comparison in group}
    size = f"{count_noun(len(metrics), 'metric')} of {count_noun(len(cases), 'case')}"
    names = ", ".join(name_metric(metric) for metric in SPECS if metric in metrics)
    return f"{size}: {names}" if named else size
