"""``tag:smoke,!bert/*,resnet50/*`` -> the cases it names."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from gate.errors import UsageError
from gate.misfits import find_nearest
from gate.records import Case

_TAG = "tag:"
_LIST_FIX = "List what there is with `compile-gate models`."


def select_cases(cases: tuple[Case, ...], selection: str) -> tuple[Case, ...]:
    """Select cases by id, model name, glob over ids and ``tag:NAME``, joined by commas.

    What any ``!term`` matches is removed, wherever it stands; with nothing but such terms, they
    remove from all cases. The order is that of ``cases``.

    Raises:
        UsageError: A term matches nothing, or nothing is left.
    """
    terms = [term.strip() for term in selection.split(",") if term.strip()]
    if not terms:
        raise UsageError("the selection is empty", "Name cases, as in --select tag:smoke.")
    removed = _match_terms(cases, (term[1:].strip() for term in terms if term.startswith("!")))
    named = [term for term in terms if not term.startswith("!")]
    kept = _match_terms(cases, named) if named else {case.id for case in cases}
    selected = tuple(case for case in cases if case.id in kept - removed)
    if not selected:
        raise UsageError(f"the selection {selection!r} leaves no case", _LIST_FIX)
    return selected


def _match_terms(cases: tuple[Case, ...], terms: Iterable[str]) -> set[str]:
    matched: set[str] = set()
    for term in terms:
        found = {case.id for case in cases if _has_match(case, term)}
        if not found:
            raise _describe_unknown(cases, term)
        matched |= found
    return matched


def _has_match(case: Case, term: str) -> bool:
    if term.startswith(_TAG):
        return term.removeprefix(_TAG) in case.tags
    return term in (case.id, case.model) or fnmatchcase(case.id, term)


def _describe_unknown(cases: tuple[Case, ...], term: str) -> UsageError:
    if term.startswith(_TAG):
        what, known = "tag", {_TAG + tag for case in cases for tag in case.tags}
    elif term.partition("/")[0] in {case.model for case in cases}:
        what, known = "case", {case.id for case in cases}
    else:
        what, known = "model", {case.model for case in cases}
    nearest = find_nearest(term if what != "model" else term.partition("/")[0], sorted(known))
    fix = f"Did you mean {nearest!r}?" if nearest else _LIST_FIX
    return UsageError(f"no {what} matches {term!r}", fix)
