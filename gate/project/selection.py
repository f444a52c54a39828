"""``tag:smoke,!bert/*,resnet50/*`` -> the cases it names."""

from __future__ import annotations

from fnmatch import fnmatchcase

from gate.errors import UsageError
from gate.files.misfits import find_nearest
from gate.records import Case

_TAG = "tag:"
_NAMED = 8  # names in a suggestion: what fits on a line
_LIST_FIX = "List what there is with `compile-gate models`."


def select_cases(cases: tuple[Case, ...], selection: str) -> tuple[Case, ...]:
    """Select cases by id, model name, glob over ids and ``tag:NAME``, joined by commas.

    What any ``!term`` matches is removed, wherever it stands; with nothing but such terms, they
    remove from all cases. The order is that of ``cases``.

    Raises:
        UsageError: A term matches nothing, or nothing is left.
    """
    removed, named = _split_terms(selection)
    if not removed and not named:
        raise UsageError("the selection is empty", "Name cases, as in --select tag:smoke.")
    for term in (*removed, *named):
        if not any(_has_match(case, term) for case in cases):
            raise _describe_unknown(cases, term)
    selected = find_cases(cases, selection)
    if not selected:
        raise UsageError(f"the selection {selection!r} leaves no case", _LIST_FIX)
    return selected


def find_cases(cases: tuple[Case, ...], selection: str) -> tuple[Case, ...]:
    """Find what a selection names, though some of its terms may match none of these cases."""
    removed, named = _split_terms(selection)
    return tuple(
        case
        for case in cases
        if (not named or any(_has_match(case, term) for term in named))
        and not any(_has_match(case, term) for term in removed)
    )


def _split_terms(selection: str) -> tuple[list[str], list[str]]:
    """Split a selection into what it removes and what it names."""
    terms = [term.strip() for term in selection.split(",") if term.strip()]
    removed = [term[1:].strip() for term in terms if term.startswith("!")]
    return removed, [term for term in terms if not term.startswith("!")]


def _has_match(case: Case, term: str) -> bool:
    if term.startswith(_TAG):
        return term.removeprefix(_TAG) in case.tags
    return term in (case.id, case.model) or fnmatchcase(case.id, term)


def _describe_unknown(cases: tuple[Case, ...], term: str) -> UsageError:
    if not term.removeprefix(_TAG):
        return UsageError("a term of the selection is empty", "Name something behind `!` and `tag:`.")
    model = term.partition("/")[0]
    models = sorted({case.model for case in cases})
    if term.startswith(_TAG):
        tags = sorted({tag for case in cases for tag in case.tags})
        problem = f"no case has the tag {term.removeprefix(_TAG)!r}"
        return _suggest(problem, term, [_TAG + tag for tag in tags])
    if model in models:
        return _suggest(f"no case matches {term!r}", term, [case.id for case in cases if case.model == model])
    return _suggest(f"no model matches {term!r}", model, models)


def _suggest(problem: str, name: str, known: list[str]) -> UsageError:
    """Suggest the nearest of the known names; where none is near, some that there are."""
    if nearest := find_nearest(name, known):
        return UsageError(problem, f"Did you mean {nearest!r}?")
    if not known:
        return UsageError(problem, "No case has any tag: name cases or models instead.")
    others = " and others" if len(known) > _NAMED else ""
    return UsageError(problem, f"There are {', '.join(known[:_NAMED])}{others}: see `compile-gate models`.")
