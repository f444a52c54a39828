"""Why a compile takes another time: its phases, and its caches."""

from __future__ import annotations

from collections.abc import Mapping

from gate.decide.evidence.case_evidence import part_phases
from gate.decide.evidence.stored import match_metric
from gate.decide.evidence.values import collect_medians
from gate.decide.explain.inquiry import MAX_NAMED, Inquiry
from gate.metrics import SPECS
from gate.records import AFTER, BEFORE, GRAPH_CACHES, USES, CacheUse, Cause, CauseKind, Code, Fact, Metric

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
        fact = Fact(code=Code.COMPILERS_TIME, numbers={"change_s": compilers_s})
        found.append(inquiry.weigh(CauseKind.COMPILE_PHASE, fact))
    return found


def find_cache_loss(inquiry: Inquiry) -> list[Cause]:
    """What the second process no longer finds in the caches of the first, cache by cache.

    A cache that is turned off counts no miss: it is not asked. Fewer graphs ask it less, and lose nothing.
    """
    if not inquiry.asks(CauseKind.CACHE):
        return []
    baseline = inquiry.evidence.code_baseline
    before = baseline.caches if baseline else {}
    after = next((trial.caches for trial in reversed(inquiry.evidence.trials) if trial.caches), {})
    facts = [
        Fact(code=Code.CACHE_MISSED, numbers=_count_uses(old, new), names={"cache": (name,)})
        for name in dict.fromkeys((*before, *after))
        if _is_missed(old := before.get(name, CacheUse()), new := after.get(name, CacheUse()))
    ]
    facts = facts or _find_unasked(inquiry, before, after) or _count_misses(inquiry)
    return [
        inquiry.weigh(CauseKind.CACHE, fact)
        for fact in (*(_find_other_graphs(inquiry) if facts else ()), *facts)
    ]


def _find_other_graphs(inquiry: Inquiry) -> list[Fact]:
    warnings = [fact for trial in inquiry.evidence.trials for fact in trial.warnings]
    return [fact for fact in warnings if fact.code is Code.GRAPH_DIFFERS][:1]


def _is_missed(before: CacheUse, after: CacheUse) -> bool:
    return after.misses + after.bypasses > before.misses + before.bypasses


def _find_unasked(
    inquiry: Inquiry, before: Mapping[str, CacheUse], after: Mapping[str, CacheUse]
) -> list[Fact]:
    """The first cache of graphs, where it is asked less though there are as many graphs, or not at all."""
    name = next((one for one in GRAPH_CACHES if one in before), "")
    old, new = before.get(name, CacheUse()), after.get(name, CacheUse())
    known = any(Metric.CACHE_MISSES in trial.samples for trial in inquiry.evidence.trials)  # somebody looked
    graphs = inquiry.find_change(Metric.UNIQUE_GRAPHS) or 0.0
    if not known or _sum_use(new) >= _sum_use(old) or (_sum_use(new) and graphs < 0):
        return []
    return [Fact(code=Code.CACHE_MISSED, numbers=_count_uses(old, new), names={"cache": (name,)})]


def _count_misses(inquiry: Inquiry) -> list[Fact]:
    row = next((one for one in inquiry.comparisons if one.metric is Metric.CACHE_MISSES), None)
    if row is None or row.change is None or row.change.centre <= 0 or row.candidate is None:
        return []
    return [Fact(code=Code.CACHE_MISSED, numbers={"misses": row.candidate.centre})]


def _sum_use(use: CacheUse) -> int:
    return use.hits + use.misses + use.bypasses


def _count_uses(before: CacheUse, after: CacheUse) -> dict[str, float]:
    now = {use: float(getattr(after, use)) for use in USES}
    return now | {f"{use}_before": float(getattr(before, use)) for use in USES}
