"""What a verdict begins with: what came out, in numbers, the worst of it and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gate.decide.conclude.accept import list_set_apart
from gate.decide.conclude.outcome import find_unjudged_code, has_fewer_trials, measure_coverage
from gate.records import BROKEN, Case, Code, Comparison, Fact, Metric, Outcome, Reason, Status, Verdict


def make_headline(
    outcome: Outcome, comparisons: Sequence[Comparison], cases: Sequence[Case], *, finished: bool = True
) -> tuple[Fact, ...]:
    """What came out, and the worst of it; ``finished`` is whether the run was."""
    deciding = [one for one in comparisons if one.decides]
    regressed = [one for one in deciding if one.status is Status.REGRESSED]
    if outcome is Outcome.INCOMPLETE:
        return (*_list_lost(deciding, len(cases), finished=finished), *_count_regressed(regressed))
    if outcome is Outcome.REGRESSION:
        return _name_regressions(regressed)
    if outcome is Outcome.INCONCLUSIVE:
        undecided = sum(one.status is Status.INCONCLUSIVE for one in deciding)
        judged = measure_coverage(deciding).judged
        return (Fact(code=Code.COULD_NOT_TELL, numbers={"undecided": undecided, "judged": judged}),)
    if outcome is Outcome.NOTHING_COMPARED:
        return _make_unjudged(Code.NO_BASELINE_APPLIES, comparisons, cases)
    return (_count_passed(deciding), *_count_unjudged_times(deciding))


def make_pair_headline(verdict: Verdict) -> tuple[Fact, ...]:
    """The headline, saying that all of it was held against the base."""
    if verdict.outcome is Outcome.NOTHING_COMPARED:
        return _make_unjudged(Code.BASE_HAS_NOTHING, verdict.comparisons, verdict.cases)
    return (*verdict.headline, Fact(code=Code.AGAINST_BASE))


def _make_unjudged(
    because: Code, comparisons: Sequence[Comparison], cases: Sequence[Case]
) -> tuple[Fact, ...]:
    """That nothing was judged: ``because`` there is nothing to compare with, or it is all in quarantine."""
    apart = len(list_set_apart(comparisons))
    return (Fact(code=because, numbers={"cases": len(cases), "quarantined": apart}),)


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


def _count_passed(deciding: Sequence[Comparison]) -> Fact:
    """What was judged, and how much of all: neither may hide the other."""
    improved = sum(one.status is Status.IMPROVED for one in deciding)
    return Fact(code=Code.NOTHING_WORSE, numbers={**asdict(measure_coverage(deciding)), "improved": improved})


def _count_unjudged_times(deciding: Sequence[Comparison]) -> tuple[Fact, ...]:
    """How many timings another machine's baselines, or this one's at another speed, leave unjudged."""
    rows = [one for one in deciding if find_unjudged_code(one) in {Code.OTHER_MACHINES, Code.OTHER_SPEED}]
    moved = next((fact for one in rows for fact in one.remarks if fact.code is Code.MACHINE_SPEED), None)
    numbers = {"comparisons": len(rows), **({"shift": moved.numbers["shift"]} if moved else {})}
    return (Fact(code=Code.TIMES_UNJUDGED, numbers=numbers),) if rows else ()


def _name_regressions(regressed: Sequence[Comparison]) -> tuple[Fact, ...]:
    case_ids = {one.case_id for one in regressed}
    if len(case_ids) > 1:
        return _count_regressed(regressed)
    return (
        Fact(
            code=Code.REGRESSED_CASE,
            numbers={"metrics": len(regressed)},
            cases=tuple(case_ids),
            metrics=_list_metrics(regressed),
        ),
    )


def _count_regressed(regressed: Sequence[Comparison]) -> tuple[Fact, ...]:
    if not regressed:
        return ()
    numbers = {"cases": len({one.case_id for one in regressed})}
    return (Fact(code=Code.REGRESSED, numbers=numbers, metrics=_list_metrics(regressed)),)


def _list_metrics(regressed: Sequence[Comparison]) -> tuple[Metric, ...]:
    return tuple(dict.fromkeys(one.metric for one in regressed if one.change))
