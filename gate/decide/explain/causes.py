"""Why a case changed: a pure function from the evidence of both sides to causes, the likeliest first.

A finder takes an :class:`Inquiry` and returns causes. To add one: docs/dev/adding-a-cause.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gate.decide.constants import SHARED_SHARE
from gate.decide.evidence.definitions import compare_all, compare_definitions, compare_items
from gate.decide.evidence.disturbed import describe_packages
from gate.decide.evidence.gather import Evidence
from gate.decide.evidence.values import collect_medians
from gate.decide.explain.compiled import (
    find_breaks,
    find_cache_loss,
    find_code,
    find_fallbacks,
    find_guards,
    find_mismatch,
    find_phases,
    find_recompiles,
)
from gate.decide.explain.compiler_functions import find_functions
from gate.decide.explain.inquiry import (
    LEAST_WEIGHT,
    MAX_NAMED,
    RESULT_ALONE,
    Inquiry,
    is_eagers_alone,
    rank_moves,
    shorten,
)
from gate.decide.judge.machine import Machine, name_shifts
from gate.decide.judge.screening import Screening
from gate.fingerprint import PACKAGE, describe_acting
from gate.metrics import explained_by
from gate.records.cases import Metric, group_cases
from gate.records.codes import Code
from gate.records.facts import AFTER, BEFORE, PLACES, UNLIKE_CODES, Fact, list_distinct
from gate.records.run import Environment
from gate.records.verdict import MAYBE_MOVED, QUIET, Cause, CauseKind, Comparison, Reason, Status, Verdict

_NOTABLE = 0.01  # of a call's device time: kernels that moved by less explain no change beyond 3 %
_RESULT = "reference"  # of a workload: what the model computes, to six digits
_NOT_IMPORTED = 0.5  # share of a stack that changed only in what the case did not import
_MAX_DIFFERENCES = 6  # of the stack are named: the environments list all


def compare_kernels(before: Mapping[str, float], after: Mapping[str, float]) -> Fact | None:
    """Most first; ``None`` where one side knows none."""
    if not before or not after:
        return None
    moved = rank_moves(before, after, _NOTABLE)
    if not moved:
        return Fact(code=Code.KERNELS_STEADY)
    named = tuple(moved)[: len(PLACES)]
    sides = ((BEFORE, before), (AFTER, after))
    kernel_s = {
        position + moment: side[name]
        for position, name in zip(PLACES, named, strict=False)
        for moment, side in sides
        if name in side
    }
    total_s = {"before_s": sum(before.values()), "after_s": sum(after.values()), "moved": len(moved)}
    return Fact(code=Code.KERNELS_MOVED, numbers={**total_s, **kernel_s}, names={"kernels": named})


def find_workload(inquiry: Inquiry) -> list[Cause]:
    baseline, fullest = inquiry.evidence.code_baseline, inquiry.evidence.fullest
    if baseline is None or fullest is None:
        return []
    changes = compare_items(baseline.workload, fullest.workload)
    if baseline.drift_definition != fullest.drift_definition:
        changes.pop(_RESULT, None)  # of as many calls as drift is
    if not changes:
        return []
    fact = _name_changes(Code.WORKLOAD_CHANGED, changes)
    return [inquiry.weigh(fact, weight=RESULT_ALONE if set(changes) == {_RESULT} else None)]


def find_kept(inquiry: Inquiry) -> list[Cause]:
    return [inquiry.weigh(fact) for fact in inquiry.list_warnings(Code.MEMORY_KEPT)[-1:]]


def find_unlike(inquiry: Inquiry) -> list[Cause]:
    facts = [fact for code in UNLIKE_CODES for fact in inquiry.list_warnings(code)]
    return inquiry.weigh_some(list_distinct(facts))


def find_imports(inquiry: Inquiry) -> list[Cause]:
    files = {name for trial in inquiry.evidence.trials for name in trial.changed_imports or ()}
    if not files:
        return []
    named = tuple(sorted(files)[:MAX_NAMED])
    fact = Fact(code=Code.IMPORTS_CHANGED, numbers={"files": len(files)}, names={"files": named})
    return [inquiry.weigh(fact)]


def find_definition(inquiry: Inquiry) -> list[Cause]:
    """What ``gate.yml`` defines otherwise; of a stored baseline, what resulted from it."""
    evidence = inquiry.evidence
    if any(stored.same_definition for stored in evidence.stored):
        return []
    base = evidence.base_case
    if base is not None and base.definition != evidence.case.definition:
        changes = compare_definitions(base, evidence.case)
    elif evidence.fullest and any(row.reason is Reason.STALE_DEFINITION for row in inquiry.comparisons):
        changes = compare_items(evidence.stored[0].baseline.workload, evidence.fullest.workload)
    else:
        return []
    return [inquiry.weigh(_name_changes(Code.DEFINITION_CHANGED, changes))]


def find_options(inquiry: Inquiry) -> list[Cause]:
    baseline, fullest = inquiry.evidence.code_baseline, inquiry.evidence.fullest
    if baseline is None or fullest is None:
        return []
    changes = compare_all(baseline.options, fullest.options)
    return [inquiry.weigh(_name_changes(Code.OPTIONS_CHANGED, changes))] if changes else []


def _name_changes(code: Code, changes: Mapping[str, tuple[str, str]]) -> Fact:
    """A checksum follows from the others, and stands last."""
    ordered = sorted(changes.items(), key=lambda item: item[0] == _RESULT)
    numbers = {"more": max(0, len(changes) - MAX_NAMED)}
    names = {key: (shorten(before), shorten(after)) for key, (before, after) in ordered[:MAX_NAMED]}
    return Fact(code=code, numbers=numbers, names=names)


def find_stack(inquiry: Inquiry) -> list[Cause]:
    baseline = inquiry.evidence.code_baseline
    if baseline is None:
        return []
    imported = describe_packages(baseline, inquiry.evidence)
    # No time is compared where only one side's workers were forked, and that moves nothing else.
    sides = (replace(environment, workers="") for environment in (baseline.environment, inquiry.environment))
    acting = describe_acting(*sides)
    lines = dict.fromkeys((*acting, *imported))
    if not lines:
        return []
    # What the case does not import comes last.
    not_imported = {line for line in lines if line.startswith(PACKAGE)} - {*imported}
    ordered = sorted(lines, key=lambda line: (line in not_imported, line.startswith(PACKAGE)))
    named = tuple(map(shorten, ordered[:_MAX_DIFFERENCES]))
    fact = Fact(code=Code.STACK_CHANGED, numbers={"differences": len(lines)}, names={"differences": named})
    return [inquiry.weigh(fact, _NOT_IMPORTED if not_imported == lines.keys() else 1.0)]


def find_eager(inquiry: Inquiry) -> list[Cause]:
    """Alone, or along with compiled."""
    eager, compiled = map(inquiry.find_change, (Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY))
    if eager is None or compiled is None:
        return []
    numbers = {"eager": eager, "compiled": compiled}
    moved = {row.metric: row.status for row in inquiry.comparisons if abs(row.severity) >= 1}
    status = moved.get(Metric.COMPILED_LATENCY)  # None: less than the limit is noise
    is_open = Metric.WARM_SPEEDUP in moved and status is None and not inquiry.worst
    is_alone = is_open and abs(compiled) <= SHARED_SHARE * abs(eager)
    if is_alone or any(map(is_eagers_alone, inquiry.comparisons)):
        return [inquiry.weigh(Fact(code=Code.EAGER_ALONE, numbers=numbers))]
    if status is None or eager / compiled < SHARED_SHARE:
        return []
    # What got faster made nothing worse, and what is open would read as if it were as sure.
    if inquiry.worst and (compiled < 0 or status is Status.INCONCLUSIVE):
        return []
    fact = Fact(code=Code.EAGER_TOO, numbers=numbers | inquiry.mark_pairs())
    return [inquiry.weigh(fact)]


def find_kernels(inquiry: Inquiry) -> list[Cause]:
    baseline = inquiry.evidence.find_baseline(Metric.COMPILED_LATENCY)
    after = collect_medians(trial.kernels_s for trial in inquiry.evidence.trials)
    fact = compare_kernels(baseline.kernels_s if baseline else {}, after)
    return [inquiry.weigh(fact)] if fact else []


def find_machine(inquiry: Inquiry) -> list[Cause]:
    """Not for pairs, whose sides ran on it at one moment."""
    numbers = name_shifts(inquiry.machine.since_recorded)
    if not numbers:
        return []
    # It explains no count, and nothing that pairs show. A note names a machine that moved the other way.
    times = inquiry.list_moved_from_stored()
    if inquiry.worst and inquiry.worst not in times:
        return []
    changes = [change for change in map(inquiry.find_change, times) if change is not None and change > -1]
    largest, shift = max(changes, key=abs, default=0.0), max(numbers.values(), key=abs)
    share = math.log1p(shift) / math.log1p(largest) if largest and shift > -1 else 0.0
    fact = Fact(code=Code.MACHINE_CHANGED, numbers=numbers)
    return [inquiry.weigh(fact, min(1.0, share))] if share > 0 else []


# In the order of causes of the same weight. Those with a kind are asked only where a metric moved that such a
# cause explains.
FINDERS: Mapping[Callable[[Inquiry], list[Cause]], CauseKind | None] = {
    find_mismatch: None,
    find_breaks: None,
    find_fallbacks: None,
    find_recompiles: CauseKind.RECOMPILE,
    find_code: None,
    find_guards: None,
    find_definition: None,
    find_options: None,
    find_workload: None,
    find_imports: None,
    find_stack: None,
    find_eager: None,
    find_kernels: CauseKind.KERNELS,
    find_functions: CauseKind.COMPILE_PHASE,
    find_phases: CauseKind.COMPILE_PHASE,
    find_cache_loss: CauseKind.CACHE,
    find_kept: CauseKind.KEPT,
    find_unlike: CauseKind.LAYOUT,
    find_machine: None,
}


def rank_all(
    screening: Screening, comparisons: Iterable[Comparison], environment: Environment
) -> tuple[Cause, ...]:
    rows = group_cases(comparisons)
    return tuple(
        cause
        for evidence in screening.evidence
        for cause in rank_causes(
            screening.base.sides.get(evidence.case.id, evidence),
            rows.get(evidence.case.id, ()),
            screening.places.get(evidence.place, screening.machine),
            environment,
        )
    )


def rank_causes(
    evidence: Evidence, comparisons: Sequence[Comparison], machine: Machine, environment: Environment
) -> tuple[Cause, ...]:
    """Empty unless something that decides has changed or failed.

    A ratio that fell only because eager got faster passes, but has a cause.
    """
    deciding = [
        row for row in comparisons if row.decides and (row.status not in QUIET or is_eagers_alone(row))
    ]
    inquiry = Inquiry(
        evidence=evidence,
        comparisons=comparisons,
        moved=frozenset(row.metric for row in deciding if row.status in MAYBE_MOVED),
        machine=machine,
        environment=environment,
    )
    causes = [
        cause
        for find, kind in FINDERS.items()
        if (deciding or find is find_definition) and (kind is None or inquiry.moved & explained_by(kind))
        for cause in find(inquiry)
    ]
    if inquiry.worst and all(cause.weight < LEAST_WEIGHT for cause in causes):
        causes.append(inquiry.weigh(Fact(code=Code.UNEXPLAINED)))
    return tuple(sorted(causes, key=lambda cause: cause.weight, reverse=True))


def find_first_cause(verdict: Verdict, status: Status = Status.REGRESSED) -> Cause | None:
    """Of the worst regression, or of the worst of another status beyond its limit.

    ``None`` where there is no such comparison, or none has a likely cause.
    """
    rows = (row for row in verdict.comparisons if row.decides and row.status is status)
    moved = [row for row in rows if status is Status.REGRESSED or row.severity >= 1]
    order = dict.fromkeys(row.case_id for row in sorted(moved, key=lambda row: -row.severity))
    likely = [cause for cause in verdict.causes if cause.weight >= LEAST_WEIGHT]
    return next((cause for case_id in order for cause in likely if cause.case_id == case_id), None)
