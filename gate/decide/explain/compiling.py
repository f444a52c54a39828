"""Why a compile takes another time: its phases, and its caches."""

from __future__ import annotations

from collections.abc import Mapping

from gate.decide.evidence.phases import part_phases
from gate.decide.evidence.stored import match_metric
from gate.decide.evidence.values import collect_medians
from gate.decide.explain.inquiry import MAX_NAMED, Inquiry
from gate.metrics import SPECS
from gate.records import AFTER, BEFORE, CacheUse, Cause, CauseKind, Code, Fact, Metric

# CPU time of the process and of the compilers that it started: no phases, though told beside them.
_COMPILERS = "cpu_children"
_NOTABLE_PHASE = 0.02  # of the whole compile: a smaller move explains no change beyond a threshold of 10 %


def find_phases(inquiry: Inquiry) -> list[Cause]:
    """Which phases of the compile moved; where the baseline stores none, which took longest."""
    after = collect_medians(trial.phases_s for trial in inquiry.evidence.trials)
    if not inquiry.asks(CauseKind.COMPILE_PHASE) or not after:
        return []
    baseline = match_metric(SPECS[Metric.COLD_COMPILE_TIME], inquiry.evidence.stored).baseline
    if baseline is None or not baseline.phases_s:
        largest = sorted(part_phases(after).items(), key=lambda item: item[1], reverse=True)
        own_s = {name + AFTER: seconds for name, seconds in largest[:MAX_NAMED]}
        longest = Fact(code=Code.LONGEST_PHASES, numbers=own_s)
        return [inquiry.weigh(CauseKind.COMPILE_PHASE, longest)] if own_s else []
    return _compare_phases(inquiry, baseline.phases_s, after)


def _compare_phases(inquiry: Inquiry, before: Mapping[str, float], after: Mapping[str, float]) -> list[Cause]:
    """Phases whose own time moved notably, most first, and the CPU time of compilers beside it."""
    old, new = part_phases(before), part_phases(after)
    notable_s = _NOTABLE_PHASE * sum(old.values())
    changes = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in {**old, **new}}
    largest = sorted(changes.items(), key=lambda item: abs(item[1]), reverse=True)
    named = [name for name, change in largest[:MAX_NAMED] if abs(change) > notable_s]
    moments = ((BEFORE, old), (AFTER, new))
    own_s = {name + moment: phases.get(name, 0.0) for name in named for moment, phases in moments}
    found = []
    if own_s:
        total_s = sum(map(abs, changes.values()))
        moved = Fact(code=Code.CHANGED_PHASES, numbers=own_s)
        found.append(inquiry.weigh(CauseKind.COMPILE_PHASE, moved, abs(largest[0][1]) / total_s))
    compilers_s = after.get(_COMPILERS, 0.0) - before.get(_COMPILERS, 0.0)
    if abs(compilers_s) > notable_s:
        told = Fact(code=Code.COMPILERS_TIME, numbers={"change_s": compilers_s})
        found.append(inquiry.weigh(CauseKind.COMPILE_PHASE, told))
    still = Fact(code=Code.NO_CHANGED_PHASE, numbers={"share": _NOTABLE_PHASE})
    return found or [inquiry.weigh(CauseKind.COMPILE_PHASE, still)]


def find_cache_loss(inquiry: Inquiry) -> list[Cause]:
    """What the second process no longer finds in the caches of the first.

    A cache that is turned off counts no miss: it finds less than it did.
    """
    return [*_find_lost(inquiry), *_find_misses(inquiry)]


def _find_lost(inquiry: Inquiry) -> list[Cause]:
    """Caches in which less was found, where a second process takes longer for it."""
    baseline = inquiry.evidence.code_baseline
    if baseline is None or not inquiry.asks(CauseKind.CACHE):
        return []
    before, after = baseline.caches, _list_caches(inquiry)
    known = any(Metric.CACHE_MISSES in trial.samples for trial in inquiry.evidence.trials)  # somebody looked
    lost = [name for name, use in before.items() if after.get(name, CacheUse()).hits < use.hits]
    if not lost or not known:
        return []
    sides = {"before": before, "after": after}
    hits = {side: float(sum(use.hits for use in caches.values())) for side, caches in sides.items()}
    return [
        inquiry.weigh(
            CauseKind.CACHE, Fact(code=Code.CACHE_LOST, numbers=hits, names={"caches": tuple(lost)})
        )
    ]


def _list_caches(inquiry: Inquiry) -> Mapping[str, CacheUse]:
    """Of the last trial that tells."""
    return next((trial.caches for trial in reversed(inquiry.evidence.trials) if trial.caches), {})


def _find_misses(inquiry: Inquiry) -> list[Cause]:
    for one in inquiry.comparisons:
        is_worse = one.change is not None and one.change.centre > 0
        if one.metric is Metric.CACHE_MISSES and is_worse and one.candidate:
            bypasses = sum(use.bypasses for use in _list_caches(inquiry).values())
            numbers = {"misses": one.candidate.centre, "bypasses": float(bypasses)}
            return [inquiry.weigh(CauseKind.CACHE, Fact(code=Code.CACHE_MISSED, numbers=numbers))]
    return []
