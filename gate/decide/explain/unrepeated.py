"""What a verdict says of cases that got no further trial because none would have settled them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from gate.decide.conclude.outcome import list_open
from gate.decide.explain.advice import name_shifts
from gate.records import Code, Comparison, Fact, Reason, Status, Verdict


def note_unrepeated(verdict: Verdict, left_out: Collection[str], trials: int) -> Verdict:
    """Note which cases of those that were left out are open, and why; advise no more trials of them.

    Either the machine's shift is what leaves a case open, or up to ``trials`` trials could not settle it.
    """
    shifted = {one.case_id for one in verdict.comparisons if _is_shifted(one)}
    open_cases = {one.case_id for one in list_open(verdict)} - shifted
    moved = tuple(case.id for case in verdict.cases if case.id in left_out and case.id in shifted)
    varied = tuple(case.id for case in verdict.cases if case.id in left_out and case.id in open_cases)
    notes = [
        Fact(code=Code.UNREPEATED_MACHINE, numbers=name_shifts(verdict.machine), cases=moved),
        Fact(code=Code.UNREPEATED, numbers={"trials": trials}, cases=varied),
    ]
    steps = (_drop_cases(one, {*moved, *varied}) for one in verdict.next_steps)
    return replace(
        verdict,
        notes=(*verdict.notes, *(note for note in notes if note.cases)),
        next_steps=tuple(step for step in steps if step is not None),
    )


def _is_shifted(row: Comparison) -> bool:
    return row.decides and row.status is Status.INCONCLUSIVE and row.reason is Reason.MACHINE_SHIFT


def _drop_cases(step: Fact, spared: Collection[str]) -> Fact | None:
    """The step without the cases that it is of no use to; ``None`` where none is left."""
    if step.code is not Code.SETTLE_BY_TRIALS:
        return step
    cases = tuple(case_id for case_id in step.cases if case_id not in spared)
    return replace(step, cases=cases) if cases else None
