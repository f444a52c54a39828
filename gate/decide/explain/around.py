"""What changed around the compiled program: the model, the stack, eager, the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from gate.decide.constants import SHARED_SHARE
from gate.decide.evidence.definitions import compare_definitions, compare_items
from gate.decide.evidence.stored import match_metric
from gate.decide.evidence.values import collect_medians
from gate.decide.explain.inquiry import MAX_NAMED, WEIGHTS, Inquiry, shorten
from gate.decide.explain.usage import compare_kernels, find_bound
from gate.decide.judge.machine import list_shifts
from gate.fingerprint import describe_acting, describe_difference
from gate.metrics import SPECS
from gate.records import (
    EXPECTED_THROTTLING,
    SHIFTS,
    Cause,
    CauseKind,
    Code,
    Fact,
    Metric,
    Reason,
)

# Of a workload: what the model computes, to six digits. It alone says that something else is computed.
_RESULT = "reference"
_ONLY_THE_RESULT = 0.58 / WEIGHTS[Code.WORKLOAD_CHANGED]
# Differences of the stack that are told: more are read where the environments stand.
_MAX_DIFFERENCES = 6
# Normal under heavy load, in every trial: no cause.
_EXPECTED = 0.1


def find_workload(inquiry: Inquiry) -> list[Cause]:
    """The measured model itself: its size, inputs, outputs and reference checksum."""
    baseline, fullest = inquiry.evidence.code_baseline, inquiry.evidence.fullest
    if baseline is None or fullest is None:
        return []
    changes = compare_items(baseline.workload, fullest.workload)
    if not changes:
        return []
    fact = _name_changes(Code.WORKLOAD_CHANGED, changes)
    return [inquiry.weigh(CauseKind.WORKLOAD, fact, _ONLY_THE_RESULT if set(changes) == {_RESULT} else 1.0)]


def find_kept(inquiry: Inquiry) -> list[Cause]:
    """What calls keep of memory, and the line that made it."""
    if not inquiry.asks(CauseKind.KEPT):
        return []
    told = [fact for trial in inquiry.evidence.trials for fact in trial.warnings]
    kept = [fact for fact in told if fact.code is Code.MEMORY_KEPT]
    return [inquiry.weigh(CauseKind.KEPT, fact) for fact in kept[-1:]]


def find_imports(inquiry: Inquiry) -> list[Cause]:
    """Files of the project that the case imports, and that are not the base's."""
    files = {name for trial in inquiry.evidence.trials for name in trial.changed_imports or ()}
    if not files:
        return []
    named = tuple(sorted(files)[:MAX_NAMED])
    fact = Fact(code=Code.IMPORTS_CHANGED, numbers={"files": len(files)}, names={"files": named})
    return [inquiry.weigh(CauseKind.WORKLOAD, fact)]


def find_definition(inquiry: Inquiry) -> list[Cause]:
    """What ``gate.yml`` says of the case: of a base all of it, of a stored baseline what came of it."""
    evidence = inquiry.evidence
    if any(one.same_definition for one in evidence.stored):  # that is what it was held against
        return []
    if evidence.base_case is not None:
        changes = compare_definitions(evidence.base_case, evidence.case)
    elif evidence.fullest and any(one.reason is Reason.STALE_DEFINITION for one in inquiry.comparisons):
        changes = compare_items(evidence.stored[0].baseline.workload, evidence.fullest.workload)
    else:
        return []
    return [inquiry.weigh(CauseKind.WORKLOAD, _name_changes(Code.DEFINITION_CHANGED, changes))]


def _name_changes(code: Code, changes: Mapping[str, tuple[str, str]]) -> Fact:
    """The first changes; a checksum follows from the others, and stands last."""
    ordered = sorted(changes.items(), key=lambda item: item[0] == _RESULT)
    numbers = {"more": max(0, len(changes) - MAX_NAMED)}
    names = {key: (shorten(before), shorten(after)) for key, (before, after) in ordered[:MAX_NAMED]}
    return Fact(code=code, numbers=numbers, names=names)


def find_stack(inquiry: Inquiry) -> list[Cause]:
    """Versions and settings that the trials do not share with what they are held against."""
    baseline = inquiry.evidence.code_baseline
    if baseline is None:
        return []
    sides = (baseline.environment, inquiry.environment)
    acting, lines = describe_acting(*sides), describe_difference(*sides)
    unused = [line for line in lines if line not in acting]
    told = ((Code.STACK_CHANGED, acting), (Code.STACK_UNUSED, unused))
    return [inquiry.weigh(CauseKind.STACK, _list_differences(code, found)) for code, found in told if found]


def _list_differences(code: Code, lines: Sequence[str]) -> Fact:
    named = tuple(map(shorten, lines[:_MAX_DIFFERENCES]))
    return Fact(code=code, numbers={"differences": len(lines)}, names={"differences": named})


def find_eager(inquiry: Inquiry) -> list[Cause]:
    """Whether eager moved alone, or along with compiled."""
    eager, compiled = map(inquiry.find_change, (Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY))
    if eager is None or compiled is None:
        return []
    numbers = {"eager": eager, "compiled": compiled}
    if any(one.reason is Reason.EAGER_FASTER for one in inquiry.comparisons):
        return [inquiry.weigh(CauseKind.EAGER, Fact(code=Code.EAGER_ALONE, numbers=numbers))]
    both = eager * compiled > 0 and abs(eager) >= SHARED_SHARE * abs(compiled)
    # Less than the limit is noise of both; and what got faster made nothing worse.
    if not both or not inquiry.shows(CauseKind.EAGER) or (inquiry.is_worse and compiled < 0):
        return []
    fact = Fact(code=Code.EAGER_TOO, numbers=numbers | inquiry.say_beside())
    return [inquiry.weigh(CauseKind.EAGER, fact)]


def find_usage(inquiry: Inquiry) -> list[Cause]:
    """Which kernels take another time than the baseline's on this host, and what bounds a call."""
    evidence, found = inquiry.evidence, []
    if inquiry.asks(CauseKind.KERNELS):
        baseline = match_metric(SPECS[Metric.COMPILED_LATENCY], evidence.stored).baseline
        before = baseline.kernels_s if baseline else {}
        after = collect_medians(trial.kernels_s for trial in evidence.trials)
        found.append((CauseKind.KERNELS, compare_kernels(before, after)))
    if inquiry.asks(CauseKind.BOUND):
        call_s, busy = (
            median(evidence.values[metric]) if evidence.values.get(metric) else None
            for metric in (Metric.COMPILED_LATENCY, Metric.DEVICE_UTILIZATION)
        )
        limits_s = collect_medians(trial.limits_s for trial in evidence.trials)
        found.append((CauseKind.BOUND, find_bound(call_s or 0.0, busy, limits_s)))
    return [inquiry.weigh(kind, fact) for kind, fact in found if fact]


def find_machine(inquiry: Inquiry) -> list[Cause]:
    """The machine as a whole, and what disturbed the case's own trials.

    Neither explains what pairs say: both arms ran on one machine at one moment.
    """
    if inquiry.is_of_pairs:
        return []
    found, shifts = [], inquiry.shifts
    if list_shifts(shifts, inquiry.evidence.case.id):
        moves = (shifts.canary, shifts.suite, shifts.cases.get(inquiry.evidence.case.id))
        numbers = {
            name: math.expm1(move) for name, move in zip(SHIFTS, moves, strict=True) if move is not None
        }
        fact = Fact(code=Code.MACHINE_CHANGED, numbers=numbers)
        # What it has no part in, or would have moved the other way, has a note on the machine and no cause.
        if share := _measure_share(inquiry, list(numbers.values())):
            found.append(inquiry.weigh(CauseKind.MACHINE, fact, share))
    # Trials of pairs are disturbed in both arms alike.
    return found if inquiry.is_beside else [*found, *_find_disturbances(inquiry)]


def _measure_share(inquiry: Inquiry, moves: list[float]) -> float:
    """The share of the largest change of a time that the machine's own accounts for.

    Of a count none, and none where a base beside it shows the worst.
    """
    times = inquiry.list_moved_alone()
    if inquiry.worst and inquiry.worst not in times:
        return 0.0
    changes = [change for change in map(inquiry.find_change, times) if change is not None and change > -1]
    largest = max(changes, key=abs, default=0.0)
    shift = max(moves, key=abs, default=0.0)
    if not largest or largest * shift < 0 or shift <= -1:
        return 0.0
    return math.log1p(shift) / math.log1p(largest)


def _find_disturbances(inquiry: Inquiry) -> list[Cause]:
    trials = inquiry.evidence.trials
    reasons = tuple(dict.fromkeys(reason for trial in trials for reason in trial.conditions.throttled))
    foreign = max((trial.conditions.foreign_processes for trial in trials), default=0)
    found = []
    if reasons:
        is_usual = set(reasons) <= EXPECTED_THROTTLING
        lowered = Fact(code=Code.CLOCKS_LOWERED, names={"reasons": reasons})
        found.append(inquiry.weigh(CauseKind.MACHINE, lowered, _EXPECTED if is_usual else 1.0))
    if foreign:
        others = Fact(code=Code.OTHER_PROCESSES, numbers={"processes": foreign})
        found.append(inquiry.weigh(CauseKind.MACHINE, others))
    return found
