"""Lets side-by-side pairs decide: for the suspects of a screening, or for a whole plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from gate.decide.evidence.pairs import list_alike
from gate.decide.judge.machine import Machine
from gate.decide.judge.pairs import compare_paired
from gate.decide.suspects import Suspect, gather_judged, list_suspects
from gate.decide.verdict import Screening, conclude_verdict
from gate.metrics import SPECS, Family
from gate.records import (
    BASE_ARM,
    BROKEN,
    MAYBE_WORSE,
    NOT_WORSE,
    OF_WHOLE_CASE,
    UNJUDGED,
    Code,
    Comparison,
    Fact,
    Metric,
    Policy,
    Reason,
    Run,
    Status,
    Verdict,
)

# Reasons for missing pairs that an unjudged row states already.
_NO_COUNTERPART = frozenset({Code.BASE_LACKS_CASE, Code.BASE_DEFINES_OTHERWISE})


def judge_pairs(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[Comparison, ...]:
    """Compare head with base by pairs: the suspects' cases, or the whole plan.

    Of a suspect's times only those that it names count, as in a check: what else its pairs happened to
    measure got no pairs of its own.
    """
    sides, rules = gather_judged(run, policy, suspects)
    asked = {one.case_id: one.metrics for one in suspects or ()}
    rows = (row for side in sides for row in compare_paired(side, rules))
    return tuple(
        row
        for row in rows
        if suspects is None
        or row.metric in asked[row.case_id]
        or SPECS[row.metric].family is not Family.NOISY
    )


def confirm_screening(
    screening: Screening, run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> Screening:
    """Replace what the screen said of its suspects, or of these, by what their pairs with the base say.

    Where no pair came back nothing is convicted: what looks worse is INCONCLUSIVE, and says why no pair
    looked at it.
    """
    suspects = list_suspects(screening) if suspects is None else suspects
    if run.base is None or not suspects:
        return screening
    sides, rules = gather_judged(run, policy, suspects)
    wanted = {one.case_id: one for one in suspects}
    rows = {
        (row.case_id, row.metric): row
        for side in sides
        for row in compare_paired(side, rules, wanted[side.case.id].seen)
    }
    comparisons = tuple(
        _confirm_row(row, rows.get((row.case_id, row.metric)), wanted[row.case_id].metrics, run)
        if row.case_id in wanted
        else row
        for row in screening.comparisons
    )
    paired = {side.case.id: side for side in sides if side.paired}
    lost = _list_lost(rows.values(), comparisons, run)
    return replace(screening.revise((*comparisons, *lost)), sides=paired)


def _list_lost(
    paired: Iterable[Comparison], screened: Sequence[Comparison], run: Run
) -> tuple[Comparison, ...]:
    """What the base measures and no trial of head does, unless a stored value has shown it already."""
    known = {(row.case_id, row.metric) for row in screened}
    known |= {
        (trial.case_id, metric) for trial in run.trials if trial.arm != BASE_ARM for metric in trial.samples
    }
    return tuple(
        row for row in paired if row.reason is Reason.NOT_MEASURED and (row.case_id, row.metric) not in known
    )


def decide_side_by_side(run: Run, policy: Policy) -> Verdict:
    """Judge a run in which every case ran in pairs with the base; nothing stored is needed."""
    sides, rules = gather_judged(run, policy)
    rows = tuple(row for side in sides for row in compare_paired(side, rules))
    screening = Screening(evidence=sides, comparisons=rows, machine=Machine(), in_pairs=True)
    return conclude_verdict(run, screening, policy)


def _confirm_row(
    row: Comparison, paired: Comparison | None, wanted: Collection[Metric], run: Run
) -> Comparison:
    """The pairs' comparison where there is one that should count, else the screen's."""
    if row.reason in OF_WHOLE_CASE:  # it measured this and that before it failed, or ended too early
        return row
    asked = row.metric in wanted
    follows = row.metric is Metric.EAGER_LATENCY and Metric.COMPILED_LATENCY in wanted
    if paired is not None and paired.pairs and (asked or follows or _is_unjudged(row) or _is_shown(paired)):
        if _flickers(row, paired):
            return replace(paired, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED)
        return _remark_stored(paired, row)
    if not asked or row.status in BROKEN:
        return row
    why = _explain_absence(run, row.case_id)
    if row.status in UNJUDGED and why in _NO_COUNTERPART:
        return row
    return _withhold(replace(row, remarks=(*row.remarks, Fact(code=why))), why)


def _remark_stored(paired: Comparison, stored: Comparison) -> Comparison:
    """Say how much worse than the stored baseline it is, where that is more than pairs show.

    Earlier changes did the rest: what accepted.yml allows, it allows in all.
    """
    if paired.status not in MAYBE_WORSE or stored.status not in MAYBE_WORSE or stored.baseline is None:
        return paired
    before, now = stored.change, paired.change
    if before is None or now is None or before.centre <= now.centre:
        return paired
    fact = Fact(code=Code.SINCE_STORED, numbers={"change": before.centre})
    return replace(paired, remarks=(*paired.remarks, fact))


def _flickers(row: Comparison, paired: Comparison) -> bool:
    """Whether head's own trial counted more than is stored, and its pairs count something else."""
    counts = row.candidate, paired.candidate
    is_count = SPECS[row.metric].family is Family.EXACT and row.status is Status.REGRESSED
    if not is_count or paired.status not in NOT_WORSE or None in counts:
        return False
    return len({one.centre for one in counts if one}) > 1


def _is_shown(paired: Comparison) -> bool:
    """Whether most pairs show something exact worse without being asked: what is stored is older, say."""
    spec, change = SPECS[paired.metric], paired.change
    if spec.family is Family.NOISY or paired.status not in MAYBE_WORSE or change is None:
        return False
    least = 0.0 if spec.family is Family.LOG2 else change.detectable
    return change.centre > 0 and change.centre >= least


def _withhold(row: Comparison, why: Code) -> Comparison:
    """Let no stored value decide where a base was asked for: what others merged since moved it as well.

    Nor does it clear what pairs had no time for: the case is suspect because a change could hide in what is
    stored, or because nothing is. A limit needs no base.
    """
    if row.reason is Reason.LIMIT_EXCEEDED:
        return row
    if row.status is Status.REGRESSED or (row.status is not Status.INCONCLUSIVE and why is Code.NO_PAIR):
        return replace(row, status=Status.INCONCLUSIVE, reason=Reason.UNPAIRED, found=row.reason)
    return row


def _explain_absence(run: Run, case_id: str) -> Code:
    if not run.base or case_id not in {case.id for case in run.base.cases}:
        return Code.BASE_LACKS_CASE
    if case_id not in list_alike(run):
        return Code.BASE_DEFINES_OTHERWISE
    if any(one.case_id == case_id and one.arm == BASE_ARM for one in run.failures):
        return Code.BASE_FAILED
    return Code.NO_PAIR


def _is_unjudged(row: Comparison) -> bool:
    """Whether it was compared with nothing stored: at most with an absolute limit."""
    alone = row.reason is Reason.LIMIT_EXCEEDED and row.baseline is None
    return alone or row.status in UNJUDGED
