"""Lets side-by-side pairs decide: for the suspects of a screening, or for a whole plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gate.decide.machine import Shifts
from gate.decide.paired_case import compare_paired
from gate.decide.pairs import BASE_ARM
from gate.decide.side_advice import list_pair_notes, list_pair_steps, write_pair_headline
from gate.decide.suspects import Suspect, gather_judged, list_suspects
from gate.decide.verdict import Screening, conclude_verdict
from gate.metrics import SPECS, Family
from gate.records import Comparison, Metric, Policy, Reason, Run, Status, Verdict

# A suspect's sentence says so where no pair came back.
_TOLD_WITHOUT_PAIRS = frozenset({Status.REGRESSED, Status.INCONCLUSIVE, Status.UNCHANGED})
_ACQUITTED = frozenset({Status.UNCHANGED, Status.IMPROVED})


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
    rows = {(row.case_id, row.metric): row for side in sides for row in compare_paired(side, rules)}
    wanted = {one.case_id: one.metrics for one in suspects}
    comparisons = tuple(
        _confirm_row(row, rows.get((row.case_id, row.metric)), wanted[row.case_id], run)
        if row.case_id in wanted
        else row
        for row in screening.comparisons
    )
    acquitted = tuple(
        before
        for before, after in zip(screening.comparisons, comparisons, strict=True)
        if before.decides and before.status is Status.REGRESSED and after.status in _ACQUITTED
    )
    paired = {side.evidence.case.id: side.evidence for side in sides if side.paired}
    return replace(screening, comparisons=comparisons, sides=paired, acquitted=acquitted)


def decide_side_by_side(run: Run, policy: Policy) -> Verdict:
    """Judge a run in which every case ran in pairs with the base; nothing stored is needed."""
    sides, rules = gather_judged(run, policy)
    screening = Screening(
        evidence=tuple(side.evidence for side in sides),
        comparisons=tuple(row for side in sides for row in compare_paired(side, rules)),
        shifts=Shifts(),
    )
    verdict = conclude_verdict(run, screening, policy)
    return replace(
        verdict,
        headline=write_pair_headline(verdict, run.base),
        next_steps=list_pair_steps(verdict, policy),
        notes=list_pair_notes(run, verdict, policy),
    )


def _confirm_row(
    row: Comparison, paired: Comparison | None, wanted: Sequence[Metric], run: Run
) -> Comparison:
    """The pairs' comparison where there is one that should count, else the screen's."""
    if row.status is Status.FAILED:  # it measured this and that before it failed
        return row
    asked = row.metric in wanted
    follows = row.metric is Metric.EAGER_LATENCY and Metric.COMPILED_LATENCY in wanted
    if paired is not None and paired.pairs and (asked or follows or _is_unjudged(row)):
        return row if _is_seen_again(row, paired) else paired
    if asked and row.status in _TOLD_WITHOUT_PAIRS:
        because = _describe_absence(run, row.case_id)
        told = replace(row, sentence=f"{row.sentence} Not measured again side by side: {because}.")
        return _withhold(told)
    return row


def _withhold(row: Comparison) -> Comparison:
    """Let no stored value convict where a base was asked for: what others merged since moved it as well."""
    if row.status is not Status.REGRESSED or row.reason is Reason.LIMIT_EXCEEDED:  # a limit needs no base
        return row
    return replace(row, status=Status.INCONCLUSIVE, reason=Reason.UNPAIRED)


def _describe_absence(run: Run, case_id: str) -> str:
    """Why a suspect has no pairs to be judged by."""
    heads = {case.id: case.definition for case in run.cases}
    bases = {case.id: case.definition for case in run.base.cases} if run.base else {}
    if case_id not in bases:
        return "the base does not have this case"
    if bases[case_id] != heads[case_id]:
        return "the base defines this case differently"
    if any(one.case_id == case_id and one.arm == BASE_ARM for one in run.failures):
        return "the base could not be measured"
    return "no pair came back"


def _is_seen_again(row: Comparison, paired: Comparison) -> bool:
    """Whether the only pair shows what the stored values convict: a count, a size or drift, seen twice."""
    return (
        row.status is Status.REGRESSED
        and SPECS[row.metric].family is not Family.NOISY
        and paired.reason is Reason.UNSETTLED
        and paired.change is not None
        and paired.change.centre > 0
    )


def _is_unjudged(row: Comparison) -> bool:
    """Whether nothing stored was held against it: at most an absolute limit."""
    alone = row.reason is Reason.LIMIT_EXCEEDED and row.baseline is None
    return alone or row.status in {Status.NEW, Status.NOT_COMPARABLE}
