"""Suspects that cannot be slower than the base, since they are the same program: they need no pairs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gate.decide.evidence.proxies import has_torch_calls_alone, is_other_workload
from gate.decide.suspects import Suspect
from gate.decide.verdict import Screening
from gate.metrics import SPECS, Family
from gate.records import (
    MAYBE_WORSE,
    UNJUDGED,
    Pairing,
    Reason,
    Run,
    Status,
)
from gate.records.groups import group_cases


def list_same_programs(screening: Screening, run: Run, suspects: Sequence[Suspect]) -> tuple[Suspect, ...]:
    """List the suspects of whose program nothing differs from the base's.

    No file that they import is another one, nothing else changed that a case may read, and their compile did
    the work of the stored baseline, on inputs and by settings that are not known to be others, without
    operators that may be built apart from what is imported. Only times are cleared so, and only those that
    were judged: a counter that moved, or a time with nothing stored beside it, is looked at in pairs all the
    same.
    """
    if run.base is None or run.base.other_changes is None or run.base.other_changes:
        return ()
    trials = group_cases(trial for trial in run.trials if trial.pairing is Pairing.ALONE)
    evidence = {one.case.id: one for one in screening.evidence}
    unjudged = {(row.case_id, row.metric) for row in screening.comparisons if row.status in UNJUDGED}
    return tuple(
        one
        for one in suspects
        if one.known_code
        and not one.thorough
        and all(trial.changed_imports == () for trial in trials.get(one.case_id, ()))
        and not is_other_workload(evidence[one.case_id])
        and has_torch_calls_alone(evidence[one.case_id])
        and all(SPECS[metric].family is Family.NOISY for metric in one.metrics)
        and unjudged.isdisjoint((one.case_id, metric) for metric in one.metrics)
    )


def clear_same_programs(screening: Screening, same: Sequence[Suspect]) -> Screening:
    """Clear what made these suspect: what stored baselines see in their times is not head's doing."""
    wanted = {one.case_id: one.metrics for one in same}
    rows = tuple(
        replace(row, status=Status.UNCHANGED, reason=Reason.SAME_PROGRAM)
        if row.status in MAYBE_WORSE and row.metric in wanted.get(row.case_id, ())
        else row
        for row in screening.comparisons
    )
    cleared = tuple(
        before
        for before, after in zip(screening.comparisons, rows, strict=True)
        if before.decides and before.status is Status.REGRESSED and after is not before
    )
    return replace(
        screening, comparisons=rows, acquitted=(*screening.acquitted, *cleared), same=tuple(wanted)
    )
