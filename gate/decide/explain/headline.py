"""What a verdict begins with: what came out, in numbers, the worst of it and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from gate.decide.conclude.accept import list_set_apart
from gate.decide.conclude.outcome import find_unjudged_code, has_fewer_trials, measure_coverage
from gate.records import BROKEN, Case, Code, Comparison, Fact, Outcome, Reason, Status, Verdict


def make_headline(
    outcome: Outcome, comparisons: Sequence[Comparison], cases: Sequence[Case], *, finished: bool = True
) -> tuple[Fact, ...]:
    """What came out, and the worst of it; ``finished`` is whether the run was."""
    deciding = [one for one in comparisons if one.decides]
    regressed = [one for one in deciding if one.status is Status.REGRESSED]
    if outcome is Outcome.INCOMPLETE:
        return (*_list_lost(deciding, len(cases), finished=finished), *_count_regressed(regressed))
    if outcome is Outcome.REGRESSION:
        return _count_regressed(regressed, names_case=True)
    if outcome is Outcome.INCONCLUSIVE:
        undecided = sum(one.status is Status.INCONCLUSIVE for one in deciding)
        judged = measure_coverage(deciding).judged
        return (Fact(code=Code.COULD_NOT_TELL, numbers={"undecided": undecided, "judged": judged}),)
    if outcome is Outcome.NOTHING_COMPARED:
        apart = len(list_set_apart(comparisons))
        return (Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": len(cases), "quarantined": apart}),)
    improved = sum(one.status is Status.IMPROVED for one in deciding)
    numbers = {**asdict(measure_coverage(deciding)), "improved": improved}  # neither may hide the other
    return (Fact(code=Code.NOTHING_WORSE, numbers=numbers), *_count_unjudged_times(deciding))


def make_pair_headline(verdict: Verdict) -> tuple[Fact, ...]:
    """The headline, saying that all of it was held against the base."""
    if verdict.outcome is Outcome.NOTHING_COMPARED:
        return (replace(verdict.headline[0], code=Code.BASE_HAS_NOTHING),)
    return (*verdict.headline, Fact(code=Code.AGAINST_BASE))


def _list_lost(deciding: Sequence[Comparison], cases: int, *, finished: bool) -> list[Fact]:
    lost = [one for one in deciding if one.status in BROKEN]
    fewer = {one.case_id for one in lost if has_fewer_trials(one)}
    removed = {one.case_id for one in lost if one.reason is Reason.REMOVED}
    broken = {one.case_id for one in lost} - fewer - removed
    parts = (
        (not finished, Fact(code=Code.STOPPED)),
        (broken, Fact(code=Code.NOT_MEASURED, numbers={"broken": len(broken), "cases": cases})),
        (removed, Fact(code=Code.CASES_REMOVED, numbers={"removed": len(removed), "cases": cases})),
        (fewer, Fact(code=Code.FEWER_TRIALS, numbers={"fewer": len(fewer), "cases": cases})),
    )
    return [fact for is_told, fact in parts if is_told]


def _count_unjudged_times(deciding: Sequence[Comparison]) -> tuple[Fact, ...]:
    """How many timings another machine's baselines, or this one's at another speed, leave unjudged."""
    rows = [one for one in deciding if find_unjudged_code(one) in {Code.OTHER_MACHINES, Code.OTHER_SPEED}]
    moved = next((fact for one in rows for fact in one.remarks if fact.code is Code.MACHINE_SPEED), None)
    numbers = {"comparisons": len(rows), **({"shift": moved.numbers["shift"]} if moved else {})}
    return (Fact(code=Code.TIMES_UNJUDGED, numbers=numbers),) if rows else ()


def _count_regressed(regressed: Sequence[Comparison], *, names_case: bool = False) -> tuple[Fact, ...]:
    """How many cases got worse, and in which metrics; a single one is named where that is wanted."""
    case_ids = tuple(dict.fromkeys(one.case_id for one in regressed))
    metrics = tuple(dict.fromkeys(one.metric for one in regressed if one.change))
    if names_case and len(case_ids) == 1:
        numbers = {"metrics": len(regressed)}
        return (Fact(code=Code.REGRESSED_CASE, numbers=numbers, cases=case_ids, metrics=metrics),)
    counted = Fact(code=Code.REGRESSED, numbers={"cases": len(case_ids)}, metrics=metrics)
    return (counted,) if case_ids else ()
