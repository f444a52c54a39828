"""The function of the compiler in which a compile makes more Python calls than before, and its callers."""

from gate.decide.constants import MORE_WORK
from gate.decide.evidence.functions import ABSENT, Functions, count_growth, get_functions
from gate.decide.explain.inquiry import Inquiry
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Called
from gate.records.verdict import Cause

_FOLLOWED = 0.6  # a function with this share of the added calls within it is followed
_CALLERS = 3  # the nearest are shown


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
            if _is_called_more(before.get(name, ABSENT), after[name], grown):
                break
    return tuple(path)


def _is_called_more(before: Called, after: Called, grown: int) -> bool:
    """More calls explain what was added, at the cost of a call before."""
    if not before.calls:
        return True
    return (after.calls - before.calls) * before.within / before.calls >= _FOLLOWED * grown


def find_functions(inquiry: Inquiry) -> list[Cause]:
    before, after = get_functions(inquiry.evidence)
    if not after:
        return []
    path = follow_growth(before, after)
    added, grown = (count_growth(before, after, name) for name in (path[0], path[-1]))
    if added <= MORE_WORK * before.get(path[0], ABSENT).within:
        return []
    share = min(1.0, grown / added)
    sides = {"before": before.get(path[-1], ABSENT).within, "after": after[path[-1]].within}
    callers = path[-1 - _CALLERS : -1][::-1]
    names = {**name_words(function=path[-1]), "callers": callers}
    numbers = {"share": share, **sides}
    return [inquiry.weigh(Fact(code=Code.FUNCTIONS_CALLED, numbers=numbers, names=names), share)]
