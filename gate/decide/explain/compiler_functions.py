"""The function of the compiler in which a compile makes more Python calls than before, and its callers."""

from collections.abc import Mapping

from gate.decide.constants import MORE_WORK
from gate.decide.explain.inquiry import Inquiry
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Called
from gate.records.verdict import Cause

_FOLLOWED = 0.6  # a function with this share of the added calls within it is followed
_MOST_KEPT, _LEAST_GROWTH = 40, 0.001  # of all calls: two compiles of one program differ by less
_CALLERS = 3  # the nearest are shown

Functions = Mapping[str, Called]
_ABSENT = Called(calls=0, within=0)


def follow_growth(before: Functions, after: Functions) -> tuple[str, ...]:
    """The functions within which most calls were added, the outermost first.

    The last is where they come from: the first that is called more often, or the innermost.
    """
    ordered = sorted(after, key=lambda name: -after[name].within)
    added = count_growth(before, after, ordered[0])
    path = [ordered[0]]
    for name in ordered[1:]:
        grown = count_growth(before, after, name)
        if grown >= _FOLLOWED * added:
            path.append(name)
            if _is_called_more(before.get(name, _ABSENT), after[name], grown):
                break
    return tuple(path)


def _is_called_more(before: Called, after: Called, grown: int) -> bool:
    """More calls explain what was added, at the cost of a call before."""
    if not before.calls:
        return True
    return (after.calls - before.calls) * before.within / before.calls >= _FOLLOWED * grown


def count_growth(before: Functions, after: Functions, name: str) -> int:
    return after.get(name, _ABSENT).within - before.get(name, _ABSENT).within


def keep_changed(before: Functions, after: Functions) -> tuple[Functions, Functions]:
    """Keep the outermost function, and those within which most was added.

    All of them are twenty times what else is stored of a trial.
    """
    if not (before and after):
        return {}, {}
    outermost = max(after, key=lambda name: after[name].within)
    least = _LEAST_GROWTH * after[outermost].within
    grown = {name: abs(count_growth(before, after, name)) for name in {*before, *after}}
    changed = [name for name in sorted(grown, key=lambda name: (-grown[name], name)) if grown[name] >= least]
    kept = {outermost, *changed[:_MOST_KEPT]}
    sides = [{name: side[name] for name in side if name in kept} for side in (before, after)]
    return sides[0], sides[1]


def find_functions(inquiry: Inquiry) -> list[Cause]:
    baseline = inquiry.evidence.find_baseline(Metric.COMPILE_CALLS)
    before = baseline.functions if baseline else {}
    after = next((trial.functions for trial in reversed(inquiry.evidence.trials) if trial.functions), {})
    if not (before and after):
        return []
    path = follow_growth(before, after)
    added, grown = (count_growth(before, after, name) for name in (path[0], path[-1]))
    if added <= MORE_WORK * before.get(path[0], _ABSENT).within:
        return []
    share = min(1.0, max(0.0, grown / added))
    sides = {"before": before.get(path[-1], _ABSENT).within, "after": after[path[-1]].within}
    callers = path[-1 - _CALLERS : -1][::-1]
    names = {**name_words(function=path[-1]), "callers": callers}
    numbers = {"share": share, **sides}
    return [inquiry.weigh(Fact(code=Code.FUNCTIONS_CALLED, numbers=numbers, names=names), share)]
