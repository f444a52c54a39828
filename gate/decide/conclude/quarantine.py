"""Unstable cases that are measured and shown and do not decide, until a date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from gate.decide.conclude.accept import is_in_force
from gate.metrics import SPECS
from gate.records import OF_WHOLE_CASE, QUIET, Code, Comparison, Fact, Policy, Quarantine, Status, name_words

_UNREMARKABLE = QUIET | {Status.IMPROVED}
_MAX_NAMED = 3  # findings named in a note; the rest is counted


def apply_quarantine(comparisons: Iterable[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Take the vote from what a quarantine in force covers; its finding stays as it is."""
    return tuple(_set_apart(comparison, policy) for comparison in comparisons)


def note_quarantine(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Fact, ...]:
    """What each quarantine that fits something here does: what it keeps from deciding, or that it expired."""
    notes = (
        _note_in_force(entry, comparisons)
        if is_in_force(entry, policy)
        else _note_expired(entry, comparisons)
        for entry in policy.quarantine
    )
    return tuple(note for note in notes if note)


def list_set_apart(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """The cases of which nothing decides, since what would is in quarantine."""
    kept: dict[str, bool] = {}
    for one in comparisons:
        if one.decides or one.quarantined:
            kept[one.case_id] = kept.get(one.case_id, True) and one.quarantined
    return tuple(case_id for case_id, quarantined in kept.items() if quarantined)


def list_days(comparisons: Sequence[Comparison], policy: Policy) -> tuple[str, ...]:
    """The last days of the quarantines in force that keep something here from deciding, in order."""
    apart = [one for one in comparisons if one.quarantined]
    entries = [entry for entry in policy.quarantine if is_in_force(entry, policy)]
    return tuple(sorted({one.expires for one in entries if any(is_covered(one, row) for row in apart)}))


def is_covered(entry: Quarantine, comparison: Comparison) -> bool:
    """Whether the entry speaks of this comparison; one metric's does not speak of a case that failed.

    One metric's speaks of what follows it, too: a ratio moves whenever what it is a ratio of does.
    """
    if not fnmatchcase(comparison.case_id, entry.case):
        return False
    if entry.metric is None:
        return True
    told = {comparison.metric, SPECS[comparison.metric].follows}
    return entry.metric in told and comparison.reason not in OF_WHOLE_CASE


def _set_apart(comparison: Comparison, policy: Policy) -> Comparison:
    if not comparison.decides:
        return comparison
    for entry in policy.quarantine:
        if is_in_force(entry, policy) and is_covered(entry, comparison):
            told = Fact(code=Code.QUARANTINED_BY, names=_name_entry(entry))
            remarks = (*comparison.remarks, told)
            return replace(comparison, decides=False, quarantined=True, remarks=remarks)
    return comparison


def _note_in_force(entry: Quarantine, comparisons: Sequence[Comparison]) -> Fact | None:
    covered = [one for one in comparisons if one.quarantined and is_covered(entry, one)]
    if not covered:
        return None
    found = [one for one in covered if one.status not in _UNREMARKABLE]
    named = found[:_MAX_NAMED]
    whole = tuple(one.case_id for one in named if one.reason in OF_WHOLE_CASE)
    return Fact(
        code=Code.QUARANTINE,
        numbers={"worse": len(found), "comparisons": len(covered)},
        cases=tuple(one.case_id for one in named),
        metrics=tuple(one.metric for one in named),
        names={
            **_name_entry(entry),
            "statuses": tuple(one.status.value for one in named),
            **({"whole": whole} if whole else {}),
        },
    )


def _note_expired(entry: Quarantine, comparisons: Sequence[Comparison]) -> Fact | None:
    if not any(one.decides and is_covered(entry, one) for one in comparisons):
        return None
    return Fact(code=Code.QUARANTINE_EXPIRED, names=_name_entry(entry))


def _name_entry(entry: Quarantine) -> Mapping[str, tuple[str, ...]]:
    pattern = f"{entry.case} {entry.metric}" if entry.metric else entry.case
    reason = entry.reason.rstrip(".")
    return name_words(pattern=pattern, owner=entry.owner, expires=entry.expires, reason=reason)
