"""Why a case changed: one pure function from both sides' evidence to causes, the likeliest first.

A finder is a function of an :class:`Inquiry`; each cause is a code with its numbers and a weight. Here stand
those around a case: its definition, the stack, eager, what a call uses of the device, the machine. To add
one: docs/dev/adding-a-cause.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gate.decide.constants import SHARED_SHARE
from gate.decide.evidence.trials import describe_packages
from gate.decide.evidence.values import (
    Evidence,
    collect_medians,
    compare_all,
    compare_definitions,
    compare_items,
)
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
from gate.decide.explain.functions import find_functions
from gate.decide.explain.inquiry import (
    CAUSES,
    LEAST_WEIGHT,
    MAX_NAMED,
    MAYBE_MOVED,
    Inquiry,
    is_eagers_alone,
    rank_moves,
    shorten,
)
from gate.decide.judge.machine import Machine, make_machine_shift, name_shifts
from gate.fingerprint import PACKAGE, describe_acting
from gate.metrics import explained_by
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import AFTER, BEFORE, PLACES, UNLIKE_CODES, Fact, list_distinct
from gate.records.run import Environment
from gate.records.verdict import QUIET, Cause, CauseKind, Comparison, Reason, Status, Verdict

_NOTABLE = 0.01  # of a call's device time: kernels that moved by less explain no change beyond 3 %


def compare_kernels(before: Mapping[str, float], after: Mapping[str, float]) -> Fact | None:
    """Tell which kernels take another time than before, most first; ``None`` where one side knows none."""
    if not before or not after:
        return None
    moved = rank_moves(before, after, _NOTABLE)
    if not moved:
        return Fact(code=Code.KERNELS_STEADY)
    named = tuple(moved)[: len(PLACES)]
    sides = ((BEFORE, before), (AFTER, after))
    own_s = {
        place + moment: side[name]
        for place, name in zip(PLACES, named, strict=False)
        for moment, side in sides
        if name in side
    }
    total_s = {"before_s": sum(before.values()), "after_s": sum(after.values()), "moved": len(moved)}
    return Fact(code=Code.KERNELS_MOVED, numbers={**total_s, **own_s}, names={"kernels": named})


# Of a workload: what the model computes, to six digits. It alone says that something else is computed.
_RESULT = "reference"
_ONLY_THE_RESULT = 0.58 / CAUSES[Code.WORKLOAD_CHANGED][0]
_NOT_IMPORTED = 0.5  # of the weight of a stack that changed: only in what the case did not import
# Differences of the stack that are told: more are read where the environments stand.
_MAX_DIFFERENCES = 6


def find_workload(inquiry: Inquiry) -> list[Cause]:
    """The measured model itself: its size, inputs, outputs and reference checksum."""
    baseline, fullest = inquiry.evidence.code_baseline, inquiry.evidence.fullest
    if baseline is None or fullest is None:
        return []
    changes = compare_items(baseline.workload, fullest.workload)
    if baseline.drift_definition != fullest.drift_definition:
        changes.pop(_RESULT, None)  # of as many calls as drift is
    if not changes:
        return []
    fact = _name_changes(Code.WORKLOAD_CHANGED, changes)
    return [inquiry.weigh(fact, _ONLY_THE_RESULT if set(changes) == {_RESULT} else 1.0)]


def find_kept(inquiry: Inquiry) -> list[Cause]:
    """What calls keep of memory, and the line that made it."""
    return [inquiry.weigh(fact) for fact in inquiry.list_warnings(Code.MEMORY_KEPT)[-1:]]


def find_unlike(inquiry: Inquiry) -> list[Cause]:
    """Outputs that are laid out otherwise than eager's, and what only one side leaves behind."""
    facts = [fact for code in UNLIKE_CODES for fact in inquiry.list_warnings(code)]
    return inquiry.weigh_some(list_distinct(facts))


def find_imports(inquiry: Inquiry) -> list[Cause]:
    """Files of the project that the case imports, and that are not the base's."""
    files = {name for trial in inquiry.evidence.trials for name in trial.changed_imports or ()}
    if not files:
        return []
    named = tuple(sorted(files)[:MAX_NAMED])
    fact = Fact(code=Code.IMPORTS_CHANGED, numbers={"files": len(files)}, names={"files": named})
    return [inquiry.weigh(fact)]


def find_definition(inquiry: Inquiry) -> list[Cause]:
    """What ``gate.yml`` says of the case: of a base all of it, of a stored baseline what came of it."""
    evidence = inquiry.evidence
    if any(one.same_definition for one in evidence.stored):  # that is what it was held against
        return []
    base = evidence.base_case
    if base is not None and base.definition != evidence.case.definition:
        changes = compare_definitions(base, evidence.case)
    elif evidence.fullest and any(one.reason is Reason.STALE_DEFINITION for one in inquiry.comparisons):
        changes = compare_items(evidence.stored[0].baseline.workload, evidence.fullest.workload)
    else:
        return []
    return [inquiry.weigh(_name_changes(Code.DEFINITION_CHANGED, changes))]


def find_options(inquiry: Inquiry) -> list[Cause]:
    """Options of torch.compile that code sets to something else than before, or no longer."""
    baseline, fullest = inquiry.evidence.code_baseline, inquiry.evidence.fullest
    if baseline is None or fullest is None:
        return []
    changes = compare_all(baseline.options, fullest.options)
    return [inquiry.weigh(_name_changes(Code.OPTIONS_CHANGED, changes))] if changes else []


def _name_changes(code: Code, changes: Mapping[str, tuple[str, str]]) -> Fact:
    """The first changes; a checksum follows from the others, and stands last."""
    ordered = sorted(changes.items(), key=lambda item: item[0] == _RESULT)
    numbers = {"more": max(0, len(changes) - MAX_NAMED)}
    names = {key: (shorten(before), shorten(after)) for key, (before, after) in ordered[:MAX_NAMED]}
    return Fact(code=code, numbers=numbers, names=names)


def find_stack(inquiry: Inquiry) -> list[Cause]:
    """Versions and settings that the device uses, and that differ from what it is held against."""
    baseline = inquiry.evidence.code_baseline
    if baseline is None:
        return []
    imported = describe_packages(baseline, inquiry.evidence)
    # No time is compared where only one side's workers were forked, and that moves nothing else.
    sides = (replace(one, workers="") for one in (baseline.environment, inquiry.environment))
    acting = describe_acting(*sides)
    lines = dict.fromkeys((*acting, *imported))
    if not lines:
        return []
    # What the case does not import comes last.
    beside = {one for one in lines if one.startswith(PACKAGE)} - {*imported}
    ordered = sorted(lines, key=lambda line: (line in beside, line.startswith(PACKAGE)))
    named = tuple(map(shorten, ordered[:_MAX_DIFFERENCES]))
    fact = Fact(code=Code.STACK_CHANGED, numbers={"differences": len(lines)}, names={"differences": named})
    return [inquiry.weigh(fact, _NOT_IMPORTED if beside == lines.keys() else 1.0)]


def find_eager(inquiry: Inquiry) -> list[Cause]:
    """Whether eager moved alone, or along with compiled."""
    eager, compiled = map(inquiry.find_change, (Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY))
    if eager is None or compiled is None:
        return []
    numbers = {"eager": eager, "compiled": compiled}
    latency, ratio = map(inquiry.find_row, (Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP))
    has_moved = latency is not None and abs(latency.severity) >= 1  # less than the limit is noise
    is_open = ratio is not None and abs(ratio.severity) >= 1 and not (has_moved or inquiry.worst)
    is_alone = is_open and abs(compiled) <= SHARED_SHARE * abs(eager)
    if is_alone or any(map(is_eagers_alone, inquiry.comparisons)):
        return [inquiry.weigh(Fact(code=Code.EAGER_ALONE, numbers=numbers))]
    both = has_moved and eager * compiled > 0 and abs(eager) >= SHARED_SHARE * abs(compiled)
    # What got faster made nothing worse.
    if not both or (inquiry.worst and compiled < 0):
        return []
    if inquiry.worst and latency and latency.status is Status.INCONCLUSIVE:
        return []  # something else got worse for sure, and this would read as if it were as sure
    fact = Fact(code=Code.EAGER_TOO, numbers=numbers | inquiry.mark_pairs())
    return [inquiry.weigh(fact)]


def find_kernels(inquiry: Inquiry) -> list[Cause]:
    """Which kernels take another time than the baseline's on this host."""
    baseline = inquiry.evidence.find_baseline(Metric.COMPILED_LATENCY)
    after = collect_medians(trial.kernels_s for trial in inquiry.evidence.trials)
    fact = compare_kernels(baseline.kernels_s if baseline else {}, after)
    return [inquiry.weigh(fact)] if fact else []


def find_machine(inquiry: Inquiry) -> list[Cause]:
    """The machine as a whole; it explains nothing that pairs say, whose arms ran on it at one moment."""
    numbers = name_shifts(make_machine_shift(inquiry.machine))
    if inquiry.is_of_pairs or not numbers:
        return []
    # Of a count it has no part, and none where a base beside it shows the worst. That it moved the other way,
    # or moved nothing, a note on the machine says.
    times = inquiry.list_moved_alone()
    if inquiry.worst and inquiry.worst not in times:
        return []
    changes = [change for change in map(inquiry.find_change, times) if change is not None and change > -1]
    largest, shift = max(changes, key=abs, default=0.0), max(numbers.values(), key=abs)
    if not largest or largest * shift < 0 or shift <= -1:
        return []
    share = math.log1p(shift) / math.log1p(largest)  # of the largest change of a time
    return [inquiry.weigh(Fact(code=Code.MACHINE_CHANGED, numbers=numbers), share)]


# In the order in which causes of the same weight are told. Those with a kind are asked where a metric moved
# that such a cause can explain.
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


def rank_causes(
    evidence: Evidence, comparisons: Sequence[Comparison], machine: Machine, environment: Environment
) -> tuple[Cause, ...]:
    """Rank what may have changed a case; empty unless something that decides has changed or failed.

    A ratio that fell only because eager got faster has a cause too, though it passes; and so has a case
    that is defined otherwise than what it would be held against, of which nothing else is known.
    """
    deciding = [
        one for one in comparisons if one.decides and (one.status not in QUIET or is_eagers_alone(one))
    ]
    inquiry = Inquiry(
        evidence=evidence,
        comparisons=comparisons,
        moved=frozenset(one.metric for one in deciding if one.status in MAYBE_MOVED),
        machine=machine,
        environment=environment,
    )
    found = [
        one
        for find, kind in FINDERS.items()
        if (deciding or find is find_definition) and (kind is None or inquiry.moved & explained_by(kind))
        for one in find(inquiry)
    ]
    if inquiry.worst and all(one.weight < LEAST_WEIGHT for one in found):
        found.append(inquiry.weigh(Fact(code=Code.UNEXPLAINED)))
    return tuple(sorted(found, key=lambda one: one.weight, reverse=True))


def find_first_cause(verdict: Verdict, status: Status = Status.REGRESSED) -> Cause | None:
    """Find the likeliest cause of the worst regression; or of what is beyond its limit at another status.

    ``None`` where there is no such comparison, or none has a likely cause.
    """
    rows = (one for one in verdict.comparisons if one.decides and one.status is status)
    found = [one for one in rows if status is Status.REGRESSED or one.severity >= 1]
    order = dict.fromkeys(one.case_id for one in sorted(found, key=lambda one: -one.severity))
    likely = [one for one in verdict.causes if one.weight >= LEAST_WEIGHT]
    return next((one for case_id in order for one in likely if one.case_id == case_id), None)
