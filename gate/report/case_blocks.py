"""Blocks: the cases with news, strongest first; cases with the same news are one block; pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gate.metrics import SPECS
from gate.records.cases import Metric, group_cases
from gate.records.codes import Code
from gate.records.run import CaseFailure
from gate.records.verdict import MOVED, QUIET, Cause, Comparison, Status, Verdict
from gate.report.clean import MAX_SENTENCE, clean_line, clean_lines
from gate.report.comparison_rows import RANK, Row, group_comparisons, make_common_row, make_row
from gate.report.words.comparisons import render_bar
from gate.report.words.facts import describe_cause, describe_failed_trial, describe_whole, doubt_cause
from gate.report.words.steps import write_again
from gate.report.words.templates import describe_move, is_shown_as_values
from gate.units import format_change, format_noun

MIN_ALIKE = 4  # cases: fewer are read faster one by one
# A cause that weighs less goes along with a change and explains none of it: that a call is bound by memory.
LEAST_SHOWN = 0.10


# Statuses that a reader should see one by one; the others are counted or summed up.
SHOWN = frozenset(Status) - QUIET
MAX_CAUSES = 6  # of one case: more are counted
LOG_LINES = 12  # of a failure: the exception and the frames above it


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    case_id: str
    before: str = ""
    after: str = ""
    change: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    title: str  # the case id, or "60 cases"
    status: Status  # the strongest of its rows
    rows: tuple[Row, ...]
    failures: tuple[str, ...]
    log_tail: tuple[str, ...]
    logs: tuple[str, ...]  # paths, one of each failed process
    causes: tuple[str, ...]
    members: tuple[Member, ...] = ()  # of several cases
    command: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _ShownCase:
    case_id: str
    status: Status
    parts: tuple[tuple[Comparison, ...], ...]  # one a row
    failures: tuple[CaseFailure, ...]
    causes: tuple[Cause, ...]
    severity: float


def make_blocks(verdict: Verdict, *, everything: bool, most: int | None = None) -> tuple[Block, ...]:
    """At most ``most``; ``everything`` shows unchanged comparisons too, and each case with all its causes."""
    cases = _list_cases(verdict, everything=everything)
    weighty = (replace(case, causes=_choose_causes(case, verdict)) for case in cases)
    groups = [[case] for case in cases] if everything else _join_alike(weighty)
    ordered = sorted(groups, key=lambda group: (RANK[group[0].status], -group[0].severity))
    return tuple(_make_block(group, verdict) for group in ordered[:most])


def _choose_causes(case: _ShownCase, verdict: Verdict) -> tuple[Cause, ...]:
    """Details are better than nothing where something got worse."""
    is_noted = any(fact.code is Code.MACHINE_CHANGED for fact in verdict.notes)
    causes = [cause for cause in case.causes if not (is_noted and cause.fact.code is Code.MACHINE_CHANGED)]
    weighty = [cause for cause in causes if cause.weight >= LEAST_SHOWN]
    return tuple(weighty if weighty or case.status is Status.INCONCLUSIVE else causes)


def count_causes(blocks: Iterable[Block]) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    total = 0
    for block in blocks:
        if block.status in SHOWN:
            cases = len(block.members) or 1
            total += cases
            counts.update(dict.fromkeys(block.causes, cases))
    return tuple(
        f"{cause.rstrip('.')} ({f'all {total}' if cases == total else f'{cases} of {total}'} cases)."
        for cause, cases in counts.most_common()
        if cases >= MIN_ALIKE
    )


def render_command(case_ids: Iterable[str], comparisons: Iterable[Comparison], verdict: Verdict) -> str:
    return clean_line(write_again(map(clean_line, case_ids), comparisons, verdict))


def _list_cases(verdict: Verdict, *, everything: bool) -> list[_ShownCase]:
    comparisons = group_cases(verdict.comparisons)
    failures, causes = group_cases(verdict.failures), group_cases(verdict.causes)
    cases = []
    for case_id in dict.fromkeys((*(case.id for case in verdict.cases), *comparisons, *failures)):
        chosen = _choose_comparisons(comparisons.get(case_id, ()), everything=everything)
        failed = tuple(failures.get(case_id, ()))
        statuses = [Status.FAILED] * bool(failed)
        statuses += [item.status for item in chosen if item.decides]
        if chosen or failed:
            status = min(statuses, key=RANK.__getitem__, default=Status.UNCHANGED)
            # What got better makes a case that got worse no worse.
            grave = (abs(item.severity) for item in chosen if item.status is status or item.severity > 0)
            case = _ShownCase(
                case_id=clean_line(case_id),
                status=status,
                parts=tuple(tuple(part) for part in group_comparisons(chosen)),
                failures=failed,
                causes=tuple(causes.get(case_id, ())),
                severity=max(grave, default=0.0),
            )
            cases.append(case)
    return cases


def _choose_comparisons(comparisons: Sequence[Comparison], *, everything: bool) -> list[Comparison]:
    if everything:
        return sorted(comparisons, key=order_comparison)
    chosen = [item for item in comparisons if item.may_decide and item.status in SHOWN]
    if chosen:
        # Beside them is shown what moved and does not decide: it helps to understand them.
        chosen += [item for item in comparisons if not item.may_decide and item.status in MOVED]
    return sorted(chosen, key=order_comparison)


def order_comparison(comparison: Comparison) -> tuple[bool, int, bool, float, bool]:
    """The gravest first, a ratio behind what it is a ratio of, latency before its equals."""
    follows = SPECS[comparison.metric].follows is not None
    is_other = comparison.metric is not Metric.COMPILED_LATENCY
    return (not comparison.decides, RANK[comparison.status], follows, -abs(comparison.severity), is_other)


def _join_alike(cases: Iterable[_ShownCase]) -> list[list[_ShownCase]]:
    by_findings: dict[object, list[_ShownCase]] = defaultdict(list)
    for case in cases:  # by all of a case's rows but the size of its changes
        rows = frozenset(map(_describe_part, case.parts))
        by_findings[rows, tuple(map(describe_whole, case.failures))].append(case)
    groups: list[list[_ShownCase]] = []
    for same in by_findings.values():
        first, *rest = sorted(same, key=lambda case: -case.severity)
        alike = [first, *(_align(case, first) for case in rest)]
        groups += [alike] if len(alike) >= MIN_ALIKE else [[case] for case in alike]
    return groups


def _align(case: _ShownCase, first: _ShownCase) -> _ShownCase:
    order = {_describe_part(part): index for index, part in enumerate(first.parts)}
    return replace(case, parts=tuple(sorted(case.parts, key=lambda part: order[_describe_part(part)])))


def _describe_part(part: Sequence[Comparison]) -> object:
    first = part[0]
    metrics = tuple(comparison.metric for comparison in part)
    # Why it is not settled may differ: each reason is written with the number of its cases.
    reason = None if first.status is Status.INCONCLUSIVE else first.reason
    bar = render_bar(first)
    return metrics, first.status, reason, first.decides, first.quarantined, bool(first.pairs), bar


def _make_block(group: Sequence[_ShownCase], verdict: Verdict) -> Block:
    first, alone = group[0], len(group) == 1
    comparisons = [comparison for part in first.parts for comparison in part]
    # Of what is missing all, of what is alike otherwise one.
    named = [case.case_id for case in (group if first.status is Status.MISSING else group[:1])]
    again = render_command(named, comparisons, verdict)
    failures = [describe_failed_trial(failure.quote(Code.FAILURE)) for failure in first.failures]
    return Block(
        title=first.case_id if alone else format_noun(len(group), "case"),
        status=first.status,
        rows=_make_rows(group),
        failures=tuple(clean_line(failure, MAX_SENTENCE) for failure in failures),
        log_tail=clean_lines(first.failures[0].log_tail, LOG_LINES) if first.failures else (),
        logs=tuple(clean_line(failure.log, MAX_SENTENCE) for failure in first.failures if failure.log),
        causes=_list_causes(group),
        members=() if alone else tuple(map(_make_member, group)),
        # What is worth running again: an improvement is not a thing to chase.
        command=again if first.status in SHOWN - {Status.IMPROVED} else "",
    )


def _make_rows(group: Sequence[_ShownCase]) -> tuple[Row, ...]:
    """A failed row needs no sentence of its own where the failures are listed below it."""
    first, rows = group[0], []
    for index, part in enumerate(first.parts):
        alone = len(group) == 1
        row = make_row(part) if alone else make_common_row([case.parts[index] for case in group])
        rows.append(replace(row, sentence="") if first.failures and row.status is Status.FAILED else row)
    return tuple(rows)


def _make_member(case: _ShownCase) -> Member:
    if not case.parts:
        return Member(case_id=case.case_id)
    first = case.parts[0][0]
    row = make_row(case.parts[0])
    change = format_change(first.metric, first.change.centre) if first.change else ""
    shown = describe_move(first) if is_shown_as_values(first) else change
    return Member(case_id=case.case_id, before=row.before, after=row.after, change=shown)


def _list_causes(group: Sequence[_ShownCase]) -> tuple[str, ...]:
    write = doubt_cause if group[0].status is Status.INCONCLUSIVE else str
    sentences = [
        dict.fromkeys(clean_line(write(describe_cause(cause.fact)), MAX_SENTENCE) for cause in case.causes)
        for case in group
    ]
    common = [cause for cause in sentences[0] if all(cause in listed for listed in sentences)]
    if len(common) > MAX_CAUSES:
        common[MAX_CAUSES:] = [f"and {len(common) - MAX_CAUSES} more: `explain` shows them"]
    return tuple(common)
