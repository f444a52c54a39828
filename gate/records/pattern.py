"""``tag:smoke,!bert/*,resnet50``: which cases somebody means, wherever cases are named."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

TAG = "tag:"


def split_pattern(pattern: str) -> tuple[list[str], list[str]]:
    """Split a pattern into the terms that remove cases and those that name them."""
    terms = [term.strip() for term in pattern.split(",") if term.strip()]
    removed = [term[1:].strip() for term in terms if term.startswith("!")]
    return removed, [term for term in terms if not term.startswith("!")]


def fits_pattern(pattern: str, case_id: str, tags: Collection[str] = ()) -> bool:
    """Whether a pattern means the case of this id and these tags.

    Its terms are ids, model names, globs over ids and ``tag:NAME``, joined by commas. What any ``!term``
    fits is removed, wherever it stands; with nothing but such terms, they remove from all cases.
    """
    removed, named = split_pattern(pattern)
    is_named = any(fits_term(term, case_id, tags) for term in named) if named else bool(removed)
    return is_named and not any(fits_term(term, case_id, tags) for term in removed)


def fits_term(term: str, case_id: str, tags: Collection[str] = ()) -> bool:
    """Whether one term, without its ``!``, fits the case."""
    if term.startswith(TAG):
        return term.removeprefix(TAG) in tags
    return term in {case_id, case_id.partition("/")[0]} or fnmatchcase(case_id, term)
