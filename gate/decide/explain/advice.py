"""What a verdict begins with, and what to do next: fix, accept, settle, record."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta

from gate.decide.conclude import accept
from gate.decide.conclude.coverage import classify_unjudged, is_unconfirmed, measure_coverage
from gate.decide.conclude.outcome import decide_outcome, list_regressed_cases
from gate.decide.constants import DRIFT_WRONG, LOOKS
from gate.decide.explain.notes import parse_day
from gate.metrics import SPECS, Family
from gate.records.bounds import MOST_ALLOWED
from gate.records.cases import Metric, Policy, group_cases
from gate.records.codes import Code
from gate.records.facts import MISMATCH_CODES, Fact
from gate.records.run import BASE_ARM, Run
from gate.records.verdict import BROKEN, JUDGED, Comparison, Outcome, Reason, Status

# A suggested acceptance expires after this many days.
ACCEPTANCE_DAYS = 30
# So many commands to accept something are suggested.
_MAX_ACCEPTED = 4
# A suggested allowance is this many times the change that was measured, as a margin for noise.
_ALLOWANCE_MARGIN = 1.25


def make_headline(
    outcome: Outcome, comparisons: Sequence[Comparison], cases: Sequence[object], *, finished: bool = True
) -> tuple[Fact, ...]:
    deciding = [row for row in comparisons if row.decides]
    regressed = [row for row in deciding if row.status is Status.REGRESSED]
    if outcome is Outcome.INCOMPLETE:
        return (*_list_lost(deciding, len(cases), finished=finished), *_count_regressed(regressed))
    if outcome is Outcome.REGRESSION:
        return _count_regressed(regressed, names_case=True)
    if outcome is Outcome.INCONCLUSIVE:
        undecided = sum(row.status is Status.INCONCLUSIVE for row in deciding)
        judged = sum(row.status in JUDGED for row in deciding)  # what had no time for a pair among them
        return (Fact(code=Code.COULD_NOT_TELL, numbers={"undecided": undecided, "judged": judged}),)
    if outcome is Outcome.NOTHING_COMPARED:
        apart = len(accept.list_set_apart(comparisons))
        return (Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": len(cases), "quarantined": apart}),)
    improved = sum(row.status is Status.IMPROVED for row in deciding)
    numbers = {**asdict(measure_coverage(deciding)), "improved": improved}  # neither may hide the other
    nothing = Fact(code=Code.NOTHING_WORSE, numbers=numbers)
    return (nothing, *_count_wrong(deciding), *_count_unjudged_times(deciding))


def add_base_to_headline(headline: tuple[Fact, ...]) -> tuple[Fact, ...]:
    first, *_ = headline
    if first.code is Code.NO_BASELINE_APPLIES:  # and says nothing else
        return (replace(first, code=Code.BASE_HAS_NOTHING),)
    return (*headline, Fact(code=Code.AGAINST_BASE))


def _list_lost(deciding: Sequence[Comparison], cases: int, *, finished: bool) -> list[Fact]:
    lost = [row for row in deciding if row.status in BROKEN]
    fewer = {row.case_id for row in lost if any(fact.code is Code.TRIALS_CAME for fact in row.remarks)}
    removed = {row.case_id for row in lost if row.reason is Reason.REMOVED}
    whole = {row.case_id for row in lost if row.reason is not Reason.NOT_MEASURED}
    broken, lacking = whole - fewer - removed, {row.case_id for row in lost} - whole
    parts = (
        (not finished, Fact(code=Code.STOPPED)),
        (broken, Fact(code=Code.NOT_MEASURED, numbers={"broken": len(broken), "cases": cases})),
        (lacking, Fact(code=Code.METRICS_LACKING, numbers={"lacking": len(lacking), "cases": cases})),
        (removed, Fact(code=Code.CASES_REMOVED, numbers={"removed": len(removed), "cases": cases})),
        (fewer, Fact(code=Code.FEWER_TRIALS, numbers={"fewer": len(fewer), "cases": cases})),
    )
    return [fact for applies, fact in parts if applies]


def _count_wrong(deciding: Sequence[Comparison]) -> tuple[Fact, ...]:
    """Drift beyond rounding on both sides."""
    drifts = [row for row in deciding if SPECS[row.metric].family is Family.LOG2]
    wrong = [
        (row.candidate.centre, row.case_id)
        for row in drifts
        if row.candidate and row.baseline and min(row.baseline.centre, row.candidate.centre) > DRIFT_WRONG
    ]
    if not wrong:
        return ()
    numbers = {"cases": len({case_id for _, case_id in wrong}), "drift": max(drift for drift, _ in wrong)}
    return (Fact(code=Code.WRONG_ON_BOTH_SIDES, numbers=numbers),)


def _count_unjudged_times(deciding: Sequence[Comparison]) -> tuple[Fact, ...]:
    rows = [row for row in deciding if classify_unjudged(row) in {Code.OTHER_MACHINES, Code.OTHER_SPEED}]
    moved = next((fact for row in rows for fact in row.remarks if fact.code is Code.MACHINE_SPEED), None)
    numbers = {"comparisons": len(rows), **({"shift": moved.numbers["shift"]} if moved else {})}
    return (Fact(code=Code.TIMES_UNJUDGED, numbers=numbers),) if rows else ()


def _count_regressed(regressed: Sequence[Comparison], *, names_case: bool = False) -> tuple[Fact, ...]:
    case_ids = tuple(dict.fromkeys(row.case_id for row in regressed))
    metrics = tuple(dict.fromkeys(row.metric for row in regressed if row.change))
    if names_case and len(case_ids) == 1:
        numbers = {"metrics": len(regressed)}
        return (Fact(code=Code.REGRESSED_CASE, numbers=numbers, cases=case_ids, metrics=metrics),)
    counted = Fact(code=Code.REGRESSED, numbers={"cases": len(case_ids)}, metrics=metrics)
    return (counted,) if case_ids else ()


def list_next_steps(
    run: Run, comparisons: Sequence[Comparison], policy: Policy, *, in_pairs: bool
) -> tuple[Fact, ...]:
    """The most pressing first."""
    deciding = [row for row in comparisons if row.decides]
    # More time gives no pair to what fails in the base, now or the next time.
    base_failed = {failure.case_id for failure in run.failures if failure.arm == BASE_ARM}
    alone = [row.case_id for row in deciding if run.base is None and is_unconfirmed(row)]
    return (
        *([] if run.finished or in_pairs else [Fact(code=Code.CONTINUE)]),
        *_suggest_for_broken(run, deciding, base_failed, in_pairs=in_pairs),
        *list_acceptances(deciding, policy),
        *suggest(Code.BE_SURE, alone),
        *([Fact(code=Code.READ_BASE_LOGS)] if base_failed else []),
        *_suggest_for_undecided(deciding, base_failed, in_pairs=in_pairs),
        *([] if in_pairs else _suggest_baselines(comparisons, finished=run.finished)),
    )


def _suggest_for_broken(
    run: Run, deciding: Sequence[Comparison], base_failed: Collection[str], *, in_pairs: bool
) -> tuple[Fact, ...]:
    broken = [row for row in deciding if row.status in BROKEN]
    short = [row.case_id for row in deciding if is_short(row)]
    removed = [row.case_id for row in broken if row.reason is Reason.REMOVED]
    failed = [row.case_id for row in broken if row.case_id not in (*short, *removed)]
    more = Code.MORE_MINUTES if in_pairs else Code.MEASURE_AGAIN
    return (
        *_suggest_fixes(run, failed),
        *suggest(more, (case_id for case_id in short if case_id not in base_failed)),
        *suggest(Code.ACCEPT_REMOVED, removed),
    )


def _suggest_for_undecided(
    deciding: Sequence[Comparison], base_failed: Collection[str], *, in_pairs: bool
) -> tuple[Fact, ...]:
    undecided = [row for row in deciding if row.status is Status.INCONCLUSIVE]
    stored = [row for row in undecided if not (row.pairs or in_pairs)]
    return (
        *suggest(Code.SETTLE, (row.case_id for row in stored if row.case_id not in base_failed)),
        *suggest(Code.SETTLE_BY_TRIALS, (row.case_id for row in stored if row.baseline is not None)),
        *suggest_settling((row for row in undecided if row not in stored), deciding),
    )


def _suggest_fixes(run: Run, failed: Sequence[str]) -> tuple[Fact, ...]:
    alike = run.pairable if run.base else frozenset(failed)
    has_log = {failure.case_id for failure in run.failures}
    old = [case_id for case_id in failed if case_id in alike]
    return (
        *suggest(Code.FIX_FAILED, (case_id for case_id in old if case_id in has_log)),
        *suggest(Code.FIX_FAILED, (case_id for case_id in old if case_id not in has_log)),
        *suggest(Code.FIX_NEW, (case_id for case_id in failed if case_id not in alike)),
    )


def is_short(comparison: Comparison) -> bool:
    """Whether trials of a planned case did not come back, and left no failure and no log to read."""
    nothing = any(fact.code is Code.NOTHING_MEASURED for fact in comparison.remarks)
    return comparison.reason is Reason.NOT_RUN and not nothing


def suggest(code: Code, case_ids: Iterable[str]) -> tuple[Fact, ...]:
    cases = tuple(dict.fromkeys(case_ids))
    return (Fact(code=code, cases=cases),) if cases else ()


def suggest_settling(undecided: Iterable[Comparison], deciding: Iterable[Comparison]) -> tuple[Fact, ...]:
    """Get the rest of the pairs, or the same on a quiet machine; not for a case that has regressed."""
    regressed = list_regressed_cases(deciding)
    left = [row for row in undecided if row.case_id not in regressed]
    noisy = {row.case_id for row in left if row.pairs >= LOOKS[-1]}
    return (
        *suggest(Code.SETTLE_WITH_PAIRS, (row.case_id for row in left if row.case_id not in noisy)),
        *suggest(Code.SETTLE_QUIETLY, (row.case_id for row in left if row.case_id in noisy)),
    )


def _suggest_baselines(comparisons: Sequence[Comparison], *, finished: bool) -> list[Fact]:
    deciding, apart = [row for row in comparisons if row.decides], accept.list_set_apart(comparisons)
    outcome = decide_outcome(comparisons, finished=finished)
    nothing = outcome is Outcome.NOTHING_COMPARED
    steps = []
    if nothing and apart:
        steps.append(Fact(code=Code.LIFT_QUARANTINE, numbers={"cases": len(apart)}))
    if any(row.reason is Reason.FEW_TRIALS for row in deciding):
        steps.append(Fact(code=Code.RECORD_MORE))
    elif any(row.is_incomparable for row in deciding) or (nothing and not apart):
        steps.append(Fact(code=Code.RECORD))
        elsewhere = (row.case_id for row in deciding if classify_unjudged(row) is Code.OTHER_SPEED)
        steps.extend(suggest(Code.COMPARE_WITH_BASE, elsewhere))
    elif outcome is Outcome.PASS and any(row.status is Status.IMPROVED for row in deciding):
        steps.append(Fact(code=Code.RECORD_BETTER))
    return steps


def list_acceptances(deciding: Iterable[Comparison], policy: Policy) -> list[Fact]:
    """For each regressed case: fix it, or accept its changes until a date."""
    cases = group_cases(row for row in deciding if row.status is Status.REGRESSED)
    steps = [step for case_id, rows in cases.items() for step in _suggest_acceptance(case_id, rows, policy)]
    rest = len(steps) - _MAX_ACCEPTED
    more = [Fact(code=Code.MORE_LIKE_THESE, numbers={"commands": rest})] if rest > 0 else []
    return steps[:_MAX_ACCEPTED] + more


def _suggest_acceptance(case_id: str, rows: Sequence[Comparison], policy: Policy) -> list[Fact]:
    """A command for each metric; a wrong result cannot be accepted."""
    drifted = [row for row in rows if not any(fact.code in MISMATCH_CODES for fact in row.remarks)]
    suggested = [(row.metric, _choose_allowance(row)) for row in drifted if row.change is not None]
    allowed = [
        (metric, allowance) for metric, allowance in suggested if allowance <= _get_most_allowed(metric)
    ]
    if not allowed:
        return [Fact(code=Code.FIX, cases=(case_id,))]
    today = parse_day(policy.today)
    expires = ((today + timedelta(days=ACCEPTANCE_DAYS)).isoformat(),) if today else ()
    return [
        Fact(
            code=Code.ACCEPT_TOO if number else Code.ACCEPT,
            numbers={**({} if number else {"commands": len(allowed)}), "allowance": allowance},
            cases=(case_id,),
            metrics=(metric,),
            names={"expires": expires},
        )
        for number, (metric, allowance) in enumerate(allowed)
    ]


def _get_most_allowed(metric: Metric) -> float:
    spec = SPECS[metric]
    return DRIFT_WRONG if spec.family is Family.LOG2 else MOST_ALLOWED if spec.is_ratio else math.inf


def _choose_allowance(comparison: Comparison) -> float:
    """A fraction, log2 units, or a count, with a margin for noise."""
    margin = 1.0 if SPECS[comparison.metric].family is Family.EXACT else _ALLOWANCE_MARGIN
    # A standing acceptance counts from the stored baseline.
    in_all = max(accept.measure_worsening(comparison), accept.measure_since_stored(comparison))
    return accept.round_allowance(comparison.metric, margin * in_all)
