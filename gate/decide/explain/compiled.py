"""What the compiler did otherwise: breaks, recompiles, kernels, precision."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from gate.decide.evidence.case_evidence import count_words, match_kernels, name_operators
from gate.decide.evidence.proxies import is_code_changed, is_tuned_otherwise
from gate.decide.evidence.stored import Evidence
from gate.decide.evidence.values import find_worst
from gate.decide.explain.inquiry import MAX_NAMED, Inquiry, shorten, take_some
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Family
from gate.records import (
    Cause,
    CauseKind,
    Code,
    CodeIdentity,
    Fact,
    GraphBreak,
    Metric,
    Recompile,
    name_words,
)
from gate.records.facts import MISMATCH_CODES

_T = TypeVar("_T", GraphBreak, Recompile)

# A type that half of the code used, or less, and that twice as much uses now: a quarter of all at least.
_DOUBLED, _NOTABLE_SHARE = 2.0, 0.25
# What one graph instead of several, or one for all shapes, may harm: larger graphs hold more activations and
# take longer to compile, round elsewhere where they fuse, and code for all shapes is slower than for one.
_OF_LARGER_GRAPHS = frozenset(
    metric
    for metric, spec in SPECS.items()
    if spec.family in (Family.NEARLY_EXACT, Family.LOG2) or metric in COMPILE_TIMES
)
_OF_CALLS = frozenset({*LATENCIES, Metric.WARM_SPEEDUP})
_OF_ONE_CODE = _OF_CALLS | {*COMPILE_TIMES, Metric.COMPILE_CALLS}
_NO_HARM = 0.1
_NOTHING_LOST = 0.9


def find_mismatch(inquiry: Inquiry) -> list[Cause]:
    """That compiled gives another answer, where that is what got worst: nothing else need account for it."""
    if not inquiry.worst or SPECS[inquiry.worst].family is not Family.LOG2:
        return []
    fact = find_worst(inquiry.evidence.trials, inquiry.worst)
    return [inquiry.weigh(CauseKind.OUTPUT, fact)] if fact and fact.code in MISMATCH_CODES else []


def find_breaks(inquiry: Inquiry) -> list[Cause]:
    """Graph breaks that one side has and the other has not, by reason and place."""
    evidence = inquiry.evidence
    baseline, fullest = evidence.code_baseline, evidence.fullest
    if baseline is None or fullest is None:
        return []
    after = [replace(one, stack=()) for one in fullest.graph_breaks]
    before = [replace(one, stack=()) for one in baseline.graph_breaks]
    # A place outside the measured code, in a library, says less than the line that led there.
    added = sorted(_list_new(after, before, _find_kind), key=lambda one: one.location.startswith("/"))
    removed = _list_new(before, after, _find_kind)
    new = [Fact(code=Code.GRAPH_BREAK, names=_name_break(one)) for one in added]
    gone = [Fact(code=Code.GRAPH_BREAK_GONE, names=_name_break(one)) for one in removed]
    share = _measure_harm(inquiry, _OF_LARGER_GRAPHS)
    return [
        *take_some([inquiry.weigh(CauseKind.GRAPH_BREAK, fact) for fact in new]),
        *take_some([inquiry.weigh(CauseKind.GRAPH_BREAK, fact, share) for fact in gone]),
    ]


def _measure_harm(inquiry: Inquiry, harmed: Collection[Metric]) -> float:
    """What fewer breaks or recompiles account for: where something else got worse, at most a detail."""
    return 1.0 if not inquiry.worst or inquiry.worst in harmed else _NO_HARM


def _list_new(after: Iterable[_T], before: Iterable[_T], find_kind: Callable[[_T], object]) -> list[_T]:
    """List what is not of before; as many of a kind as were there only moved."""
    counts = Counter(after), Counter(before)
    added, gone = counts[0] - counts[1], counts[1] - counts[0]
    more = Counter(map(find_kind, added.elements()))
    more.subtract(map(find_kind, gone.elements()))
    return [one for one in added if more[find_kind(one)] > 0]


def _find_kind(found: GraphBreak) -> tuple[str, str]:
    return found.reason, found.location.rpartition(":")[0]


def _name_break(found: GraphBreak) -> Mapping[str, tuple[str, ...]]:
    return name_words(reason=shorten(found.reason), location=found.location)


def find_new_breaks(found: Iterable[GraphBreak], causes: Iterable[Cause]) -> list[GraphBreak]:
    """Find which of the breaks of a case its causes call new."""
    places = {one.fact.name("location") for one in causes if one.fact.code is Code.GRAPH_BREAK}
    return [one for one in found if one.location in places]


def find_recompiles(inquiry: Inquiry) -> list[Cause]:
    """The guards that failed and did not in the baseline, by guard and code, wherever that line is now.

    And those that fail no more: what was compiled for each shape may be compiled for all.
    """
    if not inquiry.asks(CauseKind.RECOMPILE):
        return []
    baseline = inquiry.evidence.code_baseline
    before = baseline.recompile_reasons if baseline else ()
    after: Counter[Recompile] = Counter()
    for trial in inquiry.evidence.trials:
        after |= Counter(trial.recompile_reasons)
    known = {one.guard for one in before}
    new = _list_new(after.elements(), before, _find_guard)
    new.sort(key=lambda one: (one.guard in known, one.location.startswith("/")))
    gone = _list_new(before, after.elements(), _find_guard)
    share = _measure_harm(inquiry, _OF_ONE_CODE)
    return [
        *_list_guards(inquiry, Code.RECOMPILED, new),
        *_list_guards(inquiry, Code.RECOMPILED_NO_MORE, gone, share),
    ]


def _list_guards(inquiry: Inquiry, code: Code, found: Iterable[Recompile], share: float = 1.0) -> list[Cause]:
    facts = (Fact(code=code, names=_name_guard(one)) for one in found)
    return take_some([inquiry.weigh(CauseKind.RECOMPILE, fact, share) for fact in facts])


def _find_guard(found: Recompile) -> tuple[str, str]:
    return found.guard, found.code or found.function


def _name_guard(found: Recompile) -> Mapping[str, tuple[str, ...]]:
    words = {"reason": found.guard, "line": found.code, "location": found.location}
    return name_words(**{key: shorten(word) for key, word in words.items() if word})


def find_code(inquiry: Inquiry) -> list[Cause]:
    """That the generated code changed; or, of a warm time, that nothing about the compiled program did."""
    evidence = inquiry.evidence
    changed = is_code_changed(evidence)
    if changed:
        return _find_changes(inquiry)
    traced = any(
        SPECS[one.metric].family is Family.EXACT and one.change and one.change.centre
        for one in inquiry.comparisons
    )
    if changed is None or traced or not inquiry.shows(CauseKind.UNCHANGED_CODE):
        return []
    if is_tuned_otherwise(evidence):
        return [inquiry.weigh(CauseKind.TUNING, Fact(code=Code.CODE_TUNED))]
    same = Fact(code=Code.CODE_SAME, numbers=inquiry.say_beside())
    return [inquiry.weigh(CauseKind.UNCHANGED_CODE, same)]


def find_guards(inquiry: Inquiry) -> list[Cause]:
    """Whether there are more guards, which a compile makes and every call checks."""
    fact = _compare_counts(inquiry, Metric.GUARDS, Code.GUARDS_CHANGED)
    slowest = inquiry.find_worst(CauseKind.GUARDS)
    if fact is None or slowest is None or fact.numbers["after"] <= fact.numbers["before"]:
        return []
    # Of a call of other code it is the code.
    if slowest.metric in _OF_CALLS and is_code_changed(inquiry.evidence) is not False:
        return []
    more = math.log(fact.numbers["after"] / max(fact.numbers["before"], 1.0))
    share = more / math.log1p(slowest.change.centre) if slowest.change else 0.0
    return [inquiry.weigh(CauseKind.GUARDS, fact, share)]


def _find_changes(inquiry: Inquiry) -> list[Cause]:
    """What in the code changed, from what says most to the bare list of kernels."""
    both = _take_identities(inquiry.evidence)
    if both is None:
        return [inquiry.weigh(CauseKind.CHANGED_CODE, Fact(code=Code.CODE_CHANGED))]
    operations = _compare_counts(inquiry, Metric.CAPTURED_OPS, Code.OPERATIONS_CHANGED)
    has_more = operations is not None and operations.numbers["after"] > operations.numbers["before"]
    found = [
        (CauseKind.CHANGED_CODE, _find_precision(*both)),
        (CauseKind.FUSION, _find_calls(*both)),
        (CauseKind.FUSION, _find_fusion(*both, has_more=has_more)),
        (CauseKind.CHANGED_CODE, operations),
        (CauseKind.CHANGED_CODE, _compare_kernels(*both)),
    ]
    return [inquiry.weigh(kind, fact, _weigh_calls(fact)) for kind, fact in found if fact]


def _weigh_calls(fact: Fact) -> float:
    """A call that took nothing out of a kernel is one of the operations that were added."""
    return _NOTHING_LOST if fact.code is Code.CALLS_ADDED and "operators" not in fact.names else 1.0


def _take_identities(evidence: Evidence) -> tuple[CodeIdentity, CodeIdentity] | None:
    baseline = evidence.code_baseline
    before = baseline.identity if baseline else None
    after = next((trial.identity for trial in evidence.trials if trial.identity.kernels), None)
    return (before, after) if before and after and before.kernels else None


def _find_precision(before: CodeIdentity, after: CodeIdentity) -> Fact | None:
    """Floating-point types that the code mentions now and did not, or the other way round, or far more."""
    old, new = before.dtypes, after.dtypes
    if not old or not new:
        return None
    names = {
        "added": tuple(sorted(new.keys() - old.keys())),
        "more": tuple(sorted(name for name in new.keys() & old.keys() if _is_more(name, old, new))),
        "removed": tuple(sorted(old.keys() - new.keys())),
    }
    changed = {key: found for key, found in names.items() if found}
    return Fact(code=Code.PRECISION_CHANGED, names=changed) if changed else None


def _is_more(name: str, old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    before, after = (side[name] / sum(side.values()) for side in (old, new))
    return after >= max(_DOUBLED * before, _NOTABLE_SHARE)


def _find_calls(before: CodeIdentity, after: CodeIdentity) -> Fact | None:
    more = {name: count for name, count in after.calls.items() if name not in before.calls}
    if not more or not (before.calls or before.dtypes):  # an older baseline lists no calls
        return None
    lost = _list_lost(before, after)
    names = {"calls": tuple(more)[:MAX_NAMED], **({"operators": lost} if lost else {})}
    return Fact(code=Code.CALLS_ADDED, numbers={"calls": sum(more.values())}, names=names)


def _list_lost(before: CodeIdentity, after: CodeIdentity) -> tuple[str, ...]:
    """Operators that kernels fused before and none does now."""
    left = Counter(count_words(before.kernels)) - Counter(count_words(after.kernels))
    return tuple(left)[:MAX_NAMED]


def _find_fusion(before: CodeIdentity, after: CodeIdentity, *, has_more: bool) -> Fact | None:
    old, new = len(before.kernels), len(after.kernels)
    if old == new:
        return None
    pairs = [one for one in match_kernels(before.kernels, after.kernels) if one.before != one.after]
    sides = {"was": [one.before for one in pairs], "now": [one.after for one in pairs]}
    added = has_more or count_words(sides["now"]).keys() - count_words(sides["was"]).keys()
    code = Code.KERNELS_JOINED if new < old else Code.KERNELS_ADDED if added else Code.KERNELS_SPLIT
    names = {key: tuple(filter(None, map(name_operators, side)))[:MAX_NAMED] for key, side in sides.items()}
    return Fact(
        code=code,
        numbers={"before": old, "after": new},
        names={key: found for key, found in names.items() if found},
    )


def _compare_counts(inquiry: Inquiry, metric: Metric, code: Code) -> Fact | None:
    """Whether a count that decides nothing differs: of operations, then the program itself is another."""
    row = next((one for one in inquiry.comparisons if one.metric is metric), None)
    if row is None or not row.baseline or not row.candidate or row.baseline.centre == row.candidate.centre:
        return None
    return Fact(code=code, numbers={"before": row.baseline.centre, "after": row.candidate.centre})


def _compare_kernels(before: CodeIdentity, after: CodeIdentity) -> Fact:
    pairs = match_kernels(before.kernels, after.kernels)
    changes = {
        "changed": [one.after for one in pairs if one.before and one.after],
        "added": [one.after for one in pairs if not one.before],
        "removed": [one.before for one in pairs if not one.after],
    }
    return Fact(
        code=Code.CODE_CHANGED,
        numbers={"kernels": len(before.kernels), **{verb: len(names) for verb, names in changes.items()}},
        names={verb: tuple(names[:MAX_NAMED]) for verb, names in changes.items()},
    )
