"""From a verdict to what is shown, strongest first; pure.

Changed comparisons become rows, grouped by case; unchanged ones are counted; what could not be
judged is summed up by reason, with its measured values in the table of main figures.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gate.again import write_ab, write_check
from gate.records import (
    CaseFailure,
    Change,
    Comparison,
    Estimate,
    Explanation,
    Metric,
    PairBase,
    Reason,
    Status,
    Verdict,
)
from gate.report.clean import clean_line, clean_lines
from gate.report.footer import list_footer
from gate.report.scope import list_scope
from gate.report.view import Block, CaseLine, Cell, Report, Row, Step
from gate.units import render_change, render_interval, render_threshold, render_value
from gate.words import describe_change, name_metric, name_status

STATUS_ORDER = (
    Status.REGRESSED,
    Status.FAILED,
    Status.MISSING,
    Status.INCONCLUSIVE,
    Status.ACCEPTED,
    Status.NEW,
    Status.NOT_COMPARABLE,
    Status.IMPROVED,
    Status.UNCHANGED,
)
# Statuses that a reader should see one by one; the others are counted or summed up.
SHOWN = frozenset(
    {
        Status.REGRESSED,
        Status.FAILED,
        Status.MISSING,
        Status.INCONCLUSIVE,
        Status.ACCEPTED,
        Status.IMPROVED,
    }
)
# A metric that does not decide is shown beside rows that do, when it moved: it helps to understand them.
_SHOWN_BESIDE = frozenset({Status.REGRESSED, Status.IMPROVED})
_BESIDE_LABELS: Mapping[Status, str] = {Status.REGRESSED: "(worse)", Status.IMPROVED: "(better)"}
# What stands beside a change whose direction says too much.
_CHANGE_WORDS: Mapping[Status, str] = {Status.INCONCLUSIVE: "could not tell"}
# Statuses whose case is worth running again; an improvement is not a thing to chase.
_REPRODUCED = SHOWN - {Status.IMPROVED}

COLUMNS: Mapping[Metric, str] = {
    Metric.WARM_SPEEDUP: "speedup",
    Metric.COMPILED_LATENCY: "compiled",
    Metric.COLD_COMPILE_TIME: "cold compile",
    Metric.WARM_COMPILE_TIME: "warm compile",
    Metric.PEAK_MEMORY: "peak memory",
    Metric.DRIFT: "drift",
    Metric.EAGER_LATENCY: "eager",
}
# Marks in the table of main figures, so that it reads the same without colour.
MARKS: Mapping[Status, tuple[str, str]] = {
    Status.REGRESSED: ("!", "regressed"),
    Status.INCONCLUSIVE: ("?", "inconclusive"),
    Status.ACCEPTED: ("a", "accepted"),
    Status.IMPROVED: ("+", "improved"),
    Status.NEW: ("*", "only measured"),
    Status.NOT_COMPARABLE: ("*", "only measured"),
}
MAX_SENTENCE = 400  # characters: a sentence, not a traceback
MAX_STEP = 1200  # characters: a command that names some twenty cases stays whole
MAX_CAUSES = 6  # of one case: more are counted
LOG_LINES = 12  # of a failure: the exception and the frames above it
ABSENT = "-"
WHOLE_CASE = "whole case"
_OF_WHOLE_CASE = frozenset({Reason.CASE_FAILED, Reason.NOT_RUN})

_COMMAND = re.compile(r"`?(?P<command>compile-gate [^`]*[^`.])`?\.?$")

_RANK: Mapping[Status, int] = {status: rank for rank, status in enumerate(STATUS_ORDER)}


def make_report(verdict: Verdict, *, everything: bool = False) -> Report:
    """Return what a report of ``verdict`` says; ``everything`` shows unchanged comparisons too."""
    comparisons = _group_comparisons(verdict.comparisons)
    return Report(
        outcome=verdict.outcome,
        headline=clean_line(verdict.headline, MAX_SENTENCE),
        counts=count_statuses(verdict),
        blocks=_make_blocks(verdict, comparisons, everything=everything),
        columns=tuple(COLUMNS.values()),
        case_lines=_make_case_lines(verdict, comparisons),
        scope=list_scope(verdict),
        notes=tuple(clean_line(note, MAX_SENTENCE) for note in verdict.notes),
        next_steps=tuple(map(split_step, verdict.next_steps)),
        footer=list_footer(verdict),
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


def split_step(step: str) -> Step:
    """Part the command that a step ends with from its words, so that it can be copied."""
    line = clean_line(step, MAX_STEP)
    match = _COMMAND.search(line)
    return Step(text=line[: match.start()].rstrip(), command=match["command"]) if match else Step(text=line)


def list_marks(lines: Sequence[CaseLine]) -> tuple[tuple[str, str], ...]:
    """Return the marks that ``lines`` use with their meanings."""
    present = {cell.status for line in lines for cell in line.cells}
    return tuple(dict.fromkeys(mark for status, mark in MARKS.items() if status in present))


def render_command(case_id: str, base: PairBase | None = None) -> str:
    """Return the command that measures and judges one case again, side by side with ``base`` if any."""
    names = [clean_line(case_id)]
    return write_ab(names, base) if base else write_check(names)


def find_base(comparisons: Iterable[Comparison], verdict: Verdict) -> PairBase | None:
    """Find what these comparisons were held against side by side; ``None`` where none was."""
    return verdict.base if any(one.pairs for one in comparisons) else None


def _group_comparisons(comparisons: Sequence[Comparison]) -> Mapping[str, list[Comparison]]:
    grouped: dict[str, list[Comparison]] = defaultdict(list)
    for comparison in comparisons:
        grouped[comparison.case_id].append(comparison)
    return grouped


def _make_blocks(
    verdict: Verdict, comparisons: Mapping[str, list[Comparison]], *, everything: bool
) -> tuple[Block, ...]:
    failures: dict[str, list[CaseFailure]] = defaultdict(list)
    for failure in verdict.failures:
        failures[failure.case_id].append(failure)
    explanations: dict[str, list[Explanation]] = defaultdict(list)
    for explanation in verdict.explanations:
        explanations[explanation.case_id].append(explanation)
    case_ids = dict.fromkeys((*(case.id for case in verdict.cases), *comparisons, *failures))
    keyed = []
    for case_id in case_ids:
        chosen = _choose_comparisons(comparisons.get(case_id, []), everything=everything)
        if chosen or case_id in failures:
            block = _make_block(case_id, chosen, failures[case_id], explanations[case_id])
            if block.status in _REPRODUCED:
                block = replace(block, command=render_command(case_id, find_base(chosen, verdict)))
            keyed.append((_RANK[block.status], -max(map(_compute_severity, chosen), default=0.0), block))
    return tuple(block for _, _, block in sorted(keyed, key=lambda item: item[:2]))


def _choose_comparisons(comparisons: Sequence[Comparison], *, everything: bool) -> list[Comparison]:
    if everything:
        return sorted(comparisons, key=_order_comparison)
    chosen = [item for item in comparisons if _may_decide(item) and item.status in SHOWN]
    if chosen:
        chosen += [item for item in comparisons if not _may_decide(item) and item.status in _SHOWN_BESIDE]
    return sorted(chosen, key=_order_comparison)


def _may_decide(comparison: Comparison) -> bool:
    """Whether it decides, or would but for a quarantine: that is shown like what decides."""
    return comparison.decides or comparison.quarantined


def _order_comparison(comparison: Comparison) -> tuple[bool, int, float]:
    return (not comparison.decides, _RANK[comparison.status], -_compute_severity(comparison))


def _compute_severity(comparison: Comparison) -> float:
    """How many thresholds the change is; metrics in different units become comparable in size."""
    change, threshold = comparison.change, comparison.threshold
    if change is None or not comparison.decides or comparison.status is Status.UNCHANGED:
        return 0.0
    bar = (threshold.relative or threshold.absolute) if threshold else 0.0
    # Where nothing is tolerated, one unit is as grave as a change of ten times the bar.
    return change.centre / bar if bar else 10.0 * change.centre


def _make_block(
    case_id: str,
    comparisons: Sequence[Comparison],
    failures: Sequence[CaseFailure],
    explanations: Sequence[Explanation],
) -> Block:
    deciding = [comparison.status for comparison in comparisons if comparison.decides]
    candidates = deciding + [Status.FAILED] * bool(failures)
    status = min(candidates, key=_RANK.__getitem__, default=Status.UNCHANGED)
    causes = [clean_line(explanation.sentence, MAX_SENTENCE) for explanation in explanations]
    causes = list(dict.fromkeys(causes))
    if len(causes) > MAX_CAUSES:
        causes[MAX_CAUSES:] = [f"and {len(causes) - MAX_CAUSES} more, in verdict.json"]
    return Block(
        case_id=clean_line(case_id),
        status=status,
        rows=tuple(_drop_repetition(row) if failures else row for row in _make_rows(comparisons)),
        failures=tuple(map(_describe_failure, failures)),
        log_tail=clean_lines(failures[0].log_tail, LOG_LINES) if failures else (),
        logs=tuple(clean_line(failure.log, MAX_SENTENCE) for failure in failures if failure.log),
        causes=tuple(causes),
    )


def _drop_repetition(row: Row) -> Row:
    """A failed row of a case whose failures are listed below it needs no sentence of its own."""
    return replace(row, sentence="") if row.status is Status.FAILED else row


def _describe_failure(failure: CaseFailure) -> str:
    message = clean_line(failure.message, MAX_SENTENCE)
    return f"{failure.kind.value} in stage {clean_line(failure.stage)} of trial {failure.trial}: {message}"


def _make_rows(comparisons: Sequence[Comparison]) -> tuple[Row, ...]:
    """One row a comparison; those without a change and of one fate (a failed case) share one."""
    groups: dict[object, list[Comparison]] = defaultdict(list)
    for comparison in comparisons:
        fate = (comparison.status, comparison.reason, comparison.decides, comparison.sentence)
        groups[fate if comparison.change is None else comparison.metric].append(comparison)
    return tuple(_make_row(group) for group in groups.values())


def _make_row(group: Sequence[Comparison]) -> Row:
    first = group[0]
    alone = len(group) == 1
    has_values = alone and bool(first.baseline or first.candidate)
    bar = first.threshold if first.change else None
    return Row(
        status=first.status,
        label=_label_status(first),
        metric=_name_row(first) if alone else f"{len(group)} metrics",
        baseline=_render_estimate(first.metric, first.baseline) if has_values else "",
        candidate=_render_estimate(first.metric, first.candidate) if has_values else "",
        change=_describe_change(first),
        interval=render_change_interval(first.metric, first.change),
        threshold=render_threshold(first.metric, bar) if bar else "",
        sentence=_drop_values(complete_sentence(first)) if first.change else complete_sentence(first),
        decides=first.decides,
    )


def is_whole_case(comparison: Comparison) -> bool:
    """Whether the comparison stands for the whole case, and not for a metric."""
    return comparison.reason in _OF_WHOLE_CASE


def _label_status(comparison: Comparison) -> str:
    if comparison.decides:
        return comparison.status.value
    return _BESIDE_LABELS.get(comparison.status, f"({comparison.status.value.lower().replace('_', ' ')})")


def _name_row(comparison: Comparison) -> str:
    return WHOLE_CASE if is_whole_case(comparison) else name_metric(comparison.metric)


def _describe_change(comparison: Comparison) -> str:
    if comparison.change is None:
        return ""
    word = _CHANGE_WORDS.get(comparison.status, "")
    return describe_change(comparison.metric, comparison.change.centre, word)


def _render_estimate(metric: Metric, estimate: Estimate | None) -> str:
    return render_value(metric, estimate.centre) if estimate else ABSENT


def render_change_interval(metric: Metric, change: Change | None) -> str:
    """Return the interval of a change; empty where it has none or is exact."""
    if change is None or change.low == change.high:
        return ""
    return render_interval(metric, change.low, change.high)


def complete_sentence(comparison: Comparison) -> str:
    """Return the sentence; an undecided comparison also says the smallest change that would have shown."""
    sentence = clean_line(comparison.sentence, MAX_SENTENCE)
    change = comparison.change
    if comparison.status is not Status.INCONCLUSIVE or change is None or not change.detectable:
        return sentence
    smallest = render_change(comparison.metric, change.detectable)
    return f"{sentence} A change of {smallest.lstrip('+')} or more would have been seen.".strip()


def _drop_values(sentence: str) -> str:
    """Leave out "12.1 ms -> 15.8 ms, 30.6 % worse: ", which the row's own columns say."""
    values, colon, rest = sentence.partition(": ")
    return rest[:1].upper() + rest[1:] if colon and " -> " in values else sentence


def _make_case_lines(verdict: Verdict, comparisons: Mapping[str, list[Comparison]]) -> tuple[CaseLine, ...]:
    case_ids = dict.fromkeys((*(case.id for case in verdict.cases), *comparisons))
    return tuple(
        CaseLine(case_id=clean_line(case_id), cells=_make_cells(comparisons.get(case_id, [])))
        for case_id in case_ids
    )


def _make_cells(comparisons: Sequence[Comparison]) -> tuple[Cell, ...]:
    by_metric = {comparison.metric: comparison for comparison in comparisons}
    return tuple(_make_cell(by_metric.get(metric)) for metric in COLUMNS)


def _make_cell(comparison: Comparison | None) -> Cell:
    if comparison is None or comparison.candidate is None:
        return Cell(text=ABSENT)
    text = render_value(comparison.metric, comparison.candidate.centre)
    return Cell(text=text, status=comparison.status if comparison.decides else None)
