"""What the compiler did otherwise: breaks, recompiles, kernels, precision, phases and caches."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from gate.decide.evidence.compiles import (
    count_words,
    is_code_changed,
    is_tuned_otherwise,
    match_kernels,
    name_operators,
    part_phases,
)
from gate.decide.evidence.places import Changes, Site, list_changes
from gate.decide.evidence.values import collect_medians, find_worst_output
from gate.decide.explain.inquiry import MAX_NAMED, Inquiry, rank_moves, shorten
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Family
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import (
    AFTER,
    BEFORE,
    GRAPH_CACHES,
    MISMATCH_CODES,
    USES,
    Fact,
    list_distinct,
    name_words,
)
from gate.records.run import CacheUse, CodeIdentity, Compiled, GraphBreak, Recompile
from gate.records.verdict import Cause, CauseKind

# A type that half of the code used, or less, and that twice as much uses now: a quarter of all at least.
_DOUBLED, _NOTABLE_SHARE = 2.0, 0.25
# What one graph instead of several, or one for all shapes, may harm: larger graphs hold more activations,
# compile longer and round differently where they fuse, and code for all shapes is slower than for one.
_OF_LARGER_GRAPHS = frozenset(
    metric
    for metric, spec in SPECS.items()
    if spec.family in (Family.NEARLY_EXACT, Family.LOG2) or metric in COMPILE_TIMES
)
_OF_CALLS = frozenset({*LATENCIES, Metric.WARM_SPEEDUP})
_OF_ONE_CODE = _OF_CALLS | {*COMPILE_TIMES, Metric.COMPILE_CALLS}
_NO_HARM = 0.1
_NOTHING_LOST = 0.9
# Torch's reason for a frame whose guards failed too often: it comes behind them, as what they brought about.
_RECOMPILE_LIMIT = re.compile(r"(?:recompile|cache) limit exceeded")  # as releases of torch have it
_OF_RECOMPILES = 0.97
_NOTABLE_PHASE = 0.02  # of the whole compile: a smaller move explains no change beyond a threshold of 10 %


def find_mismatch(inquiry: Inquiry) -> list[Cause]:
    """Compiled gives another answer: nothing else has to explain it."""
    if not inquiry.worst:
        return []
    fact = find_worst_output(inquiry.evidence.trials, inquiry.worst)
    return [inquiry.weigh(fact)] if fact and fact.code in MISMATCH_CODES else []


def find_breaks(inquiry: Inquiry) -> list[Cause]:
    baseline, fullest = inquiry.evidence.code_baseline, inquiry.evidence.fullest
    if baseline is None or fullest is None:
        return []
    changes = list_changes(inquiry.evidence, baseline, fullest, Metric.GRAPH_BREAKS)
    return _list_causes(inquiry, changes, (Code.GRAPH_BREAK, Code.GRAPH_BREAK_GONE), _OF_LARGER_GRAPHS)


def find_fallbacks(inquiry: Inquiry) -> list[Cause]:
    fullest, change = inquiry.evidence.fullest, inquiry.find_change(Metric.EAGER_FALLBACKS)
    if fullest is None or change is None or change <= 0 or Metric.EAGER_FALLBACKS not in inquiry.moved:
        return []
    left = [fact for fact in fullest.warnings if fact.code is Code.LEFT_TO_EAGER]
    limited = [fact for fact in left if _RECOMPILE_LIMIT.search(fact.name("reason"))]
    others = [fact for fact in left if fact not in limited]
    return [*inquiry.weigh_some(others), *inquiry.weigh_some(limited, _OF_RECOMPILES)]


def _measure_harm(inquiry: Inquiry, harmed: Collection[Metric]) -> float:
    """The share that fewer breaks or recompiles explain: little where something else got worse."""
    return 1.0 if not inquiry.worst or inquiry.worst in harmed else _NO_HARM


def find_recompiles(inquiry: Inquiry) -> list[Cause]:
    """A guard that fails no more counts too: code for each shape may have become code for all."""
    after: Counter[Recompile] = Counter()
    for trial in inquiry.evidence.trials:
        after |= Counter(trial.recompile_reasons)
    baseline, head = inquiry.evidence.code_baseline, Compiled(recompile_reasons=tuple(after.elements()))
    changes = list_changes(inquiry.evidence, baseline or Compiled(), head, Metric.RECOMPILES)
    return _list_causes(inquiry, changes, (Code.RECOMPILED, Code.RECOMPILED_NO_MORE), _OF_ONE_CODE)


def _list_causes(
    inquiry: Inquiry, changes: Changes | None, codes: tuple[Code, Code], harmed: Collection[Metric]
) -> list[Cause]:
    new, gone = map(_list_facts, codes, changes or ((), ()))
    return [*inquiry.weigh_some(new), *inquiry.weigh_some(gone, _measure_harm(inquiry, harmed))]


def _list_facts(code: Code, sites: Iterable[Site]) -> tuple[Fact, ...]:
    return list_distinct(Fact(code=code, names=_name_site(site)) for site in sites)


def _name_site(site: Site) -> Mapping[str, tuple[str, ...]]:
    record, words = site.record, {"reason": site.reason, "location": site.record.location}
    details = {"registry": record.registry} if isinstance(record, GraphBreak) else {"line": record.code}
    return name_words(**{key: shorten(word) for key, word in (words | details).items() if word})


def find_code(inquiry: Inquiry) -> list[Cause]:
    """Or, of a warm time, that nothing about what is compiled changed."""
    changed = is_code_changed(inquiry.evidence)
    if changed:
        return _explain_changes(inquiry)
    if changed is None and (operations := _compare_operations(inquiry)):  # a backend that generates no code
        return [inquiry.weigh(operations)]
    traced = any(
        SPECS[row.metric].family is Family.EXACT and row.change and row.change.centre
        for row in inquiry.comparisons
    )
    if changed is None or traced or not inquiry.shows(CauseKind.UNCHANGED_CODE):
        return []
    if is_tuned_otherwise(inquiry.evidence):
        return [inquiry.weigh(Fact(code=Code.CODE_TUNED))]
    same = Fact(code=Code.CODE_SAME, numbers=inquiry.mark_pairs())
    return [inquiry.weigh(same)]


def find_guards(inquiry: Inquiry) -> list[Cause]:
    fact = _compare_counts(inquiry, Metric.GUARDS, Code.GUARDS_CHANGED)
    slowest = inquiry.find_worst(CauseKind.GUARDS)
    if fact is None or slowest is None:
        return []
    # Of a call of other code it is the code.
    is_code = slowest.metric in _OF_CALLS and is_code_changed(inquiry.evidence) is not False
    times = fact.numbers["after"] / max(fact.numbers["before"], 1.0)
    if is_code or times <= 1:
        return []
    share = math.log(times) / math.log1p(slowest.change.centre) if slowest.change else 0.0
    return [inquiry.weigh(fact, min(1.0, share))]


def _explain_changes(inquiry: Inquiry) -> list[Cause]:
    """The most telling first, the bare list of kernels last."""
    baseline, unknown = inquiry.evidence.code_baseline, CodeIdentity(digest="")
    before = baseline.identity if baseline else unknown
    made = (trial.identity for trial in inquiry.evidence.trials if trial.identity.kernels)
    after = next(made, unknown)
    if not (before.kernels and after.kernels):
        return [inquiry.weigh(Fact(code=Code.CODE_CHANGED))]
    kernels = match_kernels(before.kernels, after.kernels)
    operations = _compare_operations(inquiry)
    has_more = operations is not None and operations.numbers["after"] > operations.numbers["before"]
    calls = _compare_calls(before, after)
    facts = [
        _compare_precision(before, after),
        calls,
        _compare_fusion(kernels, (len(before.kernels), len(after.kernels)), has_more=has_more),
        operations,
        _name_kernels(kernels, len(before.kernels)),
    ]
    # A call that took nothing out of a kernel is one of the operations that were added.
    return [
        inquiry.weigh(fact, _NOTHING_LOST if fact is calls and "operators" not in fact.names else 1.0)
        for fact in facts
        if fact
    ]


def _compare_precision(before: CodeIdentity, after: CodeIdentity) -> Fact | None:
    """Floating-point types that are new, gone, or far more frequent."""
    old, new = before.dtypes, after.dtypes
    if not old or not new:
        return None

    def is_more(name: str) -> bool:
        before, after = (side[name] / sum(side.values()) for side in (old, new))
        return after >= max(_DOUBLED * before, _NOTABLE_SHARE)

    names = {
        "added": tuple(name for name in new if name not in old),
        "more": tuple(name for name in new if name in old and is_more(name)),
        "removed": tuple(name for name in old if name not in new),
    }
    changed = {key: names_of_kind for key, names_of_kind in names.items() if names_of_kind}
    return Fact(code=Code.PRECISION_CHANGED, names=changed) if changed else None


def _compare_calls(before: CodeIdentity, after: CodeIdentity) -> Fact | None:
    more = {name: count for name, count in after.calls.items() if name not in before.calls}
    if not more:
        return None
    lost = tuple(count_words(before.kernels) - count_words(after.kernels))[:MAX_NAMED]
    names = {"calls": tuple(more)[:MAX_NAMED], **({"operators": lost} if lost else {})}
    return Fact(code=Code.CALLS_ADDED, numbers={"calls": sum(more.values())}, names=names)


def _compare_fusion(
    kernels: Sequence[tuple[str, str]], counts: tuple[int, int], *, has_more: bool
) -> Fact | None:
    """Kernels were joined, split or added."""
    renamed = [(before, after) for before, after in kernels if before != after]
    sides = {"was": [before for before, _ in renamed], "now": [after for _, after in renamed]}
    added = has_more or count_words(sides["now"]).keys() - count_words(sides["was"]).keys()
    old, new = counts
    if new < old:
        code = Code.KERNELS_JOINED
    elif new > old:
        code = Code.KERNELS_ADDED if added else Code.KERNELS_SPLIT
    else:
        return None
    names = {key: tuple(filter(None, map(name_operators, side)))[:MAX_NAMED] for key, side in sides.items()}
    return Fact(
        code=code,
        numbers={"before": old, "after": new},
        names={key: names_of_kind for key, names_of_kind in names.items() if names_of_kind},
    )


def _compare_operations(inquiry: Inquiry) -> Fact | None:
    return _compare_counts(inquiry, Metric.CAPTURED_OPS, Code.OPERATIONS_CHANGED)


def _compare_counts(inquiry: Inquiry, metric: Metric, code: Code) -> Fact | None:
    row = inquiry.find_row(metric)
    if row is None or not row.baseline or not row.candidate or row.baseline.centre == row.candidate.centre:
        return None
    return Fact(code=code, numbers={"before": row.baseline.centre, "after": row.candidate.centre})


def _name_kernels(kernels: Sequence[tuple[str, str]], count: int) -> Fact:
    changes = {
        "changed": [after for before, after in kernels if before and after],
        "added": [after for before, after in kernels if not before],
        "removed": [before for before, after in kernels if not after],
    }
    return Fact(
        code=Code.CODE_CHANGED,
        numbers={"kernels": count, **{verb: len(names) for verb, names in changes.items()}},
        names={verb: tuple(names[:MAX_NAMED]) for verb, names in changes.items()},
    )


def find_phases(inquiry: Inquiry) -> list[Cause]:
    baseline = inquiry.evidence.find_baseline(Metric.COLD_COMPILE_TIME)
    before = part_phases(baseline.phases_s if baseline else {})
    after = part_phases(collect_medians(trial.phases_s for trial in inquiry.evidence.trials))
    moved = rank_moves(before, after, _NOTABLE_PHASE) if before and after else {}
    if not moved:
        return []
    total_s = sum(map(abs, rank_moves(before, after, 0.0).values()))
    named = list(moved)[:MAX_NAMED]
    moments = ((BEFORE, before), (AFTER, after))
    phase_s = {name + moment: phases.get(name, 0.0) for name in named for moment, phases in moments}
    share = abs(moved[named[0]]) / total_s
    return [inquiry.weigh(Fact(code=Code.CHANGED_PHASES, numbers=phase_s), share)]


def find_cache_loss(inquiry: Inquiry) -> list[Cause]:
    """A cache that is turned off counts no miss. Fewer graphs ask it less, and lose nothing."""
    baseline = inquiry.evidence.code_baseline
    before = baseline.caches if baseline else {}
    after = next((trial.caches for trial in reversed(inquiry.evidence.trials) if trial.caches), {})
    facts = [
        Fact(code=Code.CACHE_MISSED, numbers=_count_uses(old, new), names={"cache": (name,)})
        for name in dict.fromkeys((*before, *after))
        if _sum_missed(new := after.get(name, CacheUse())) > _sum_missed(old := before.get(name, CacheUse()))
    ]
    facts = facts or _list_unasked(inquiry, before, after)
    row = inquiry.find_row(Metric.CACHE_MISSES)
    if not facts and row and row.candidate and row.change and row.change.centre > 0:
        facts = [Fact(code=Code.CACHE_MISSED, numbers={"misses": row.candidate.centre})]
    differing = inquiry.list_warnings(Code.GRAPH_DIFFERS)[:1] if facts else []
    return [inquiry.weigh(fact) for fact in (*differing, *facts)]


def _sum_missed(use: CacheUse) -> int:
    return use.misses + use.bypasses


def _list_unasked(
    inquiry: Inquiry, before: Mapping[str, CacheUse], after: Mapping[str, CacheUse]
) -> list[Fact]:
    """The first cache of graphs, where as many graphs ask it less, or none does."""
    name = next((cache for cache in GRAPH_CACHES if cache in before), "")
    old, new = before.get(name, CacheUse()), after.get(name, CacheUse())
    was_measured = any(Metric.CACHE_MISSES in trial.samples for trial in inquiry.evidence.trials)
    graphs = inquiry.find_change(Metric.UNIQUE_GRAPHS)
    has_fewer = graphs is not None and graphs < 0
    if not was_measured or _sum_use(new) >= _sum_use(old) or (_sum_use(new) and has_fewer):
        return []
    return [Fact(code=Code.CACHE_MISSED, numbers=_count_uses(old, new), names={"cache": (name,)})]


def _sum_use(use: CacheUse) -> int:
    return use.hits + use.misses + use.bypasses


def _count_uses(before: CacheUse, after: CacheUse) -> dict[str, float]:
    now = {use: float(getattr(after, use)) for use in USES}
    return now | {f"{use}_before": float(getattr(before, use)) for use in USES}
