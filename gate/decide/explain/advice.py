"""What a verdict begins with, and what to do next: fix, accept, settle, record."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta

from gate.decide.conclude import accept
from gate.decide.conclude.outcome import decide_outcome, find_regressed, find_unjudged_code, measure_coverage
from gate.decide.constants import DRIFT_WRONG, LOOKS
from gate.decide.evidence.pairs import list_alike
from gate.decide.explain.notes import is_unconfirmed, is_unjudged, parse_day
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
# A suggested allowance is this many times the change that was seen, so that noise does not undo it.
_ALLOWANCE_MARGIN = 1.25


def make_headline(
    outcome: Outcome, comparisons: Sequence[Comparison], cases: Sequence[object], *, finished: bool = True
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
        judged = sum(one.status in JUDGED for one in deciding)  # what had no time for a pair among them
        return (Fact(code=Code.COULD_NOT_TELL, numbers={"undecided": undecided, "judged": judged}),)
    if outcome is Outcome.NOTHING_COMPARED:
        apart = len(accept.list_set_apart(comparisons))
        return (Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": len(cases), "quarantined": apart}),)
    improved = sum(one.status is Status.IMPROVED for one in deciding)
    numbers = {**asdict(measure_coverage(deciding)), "improved": improved}  # neither may hide the other
    nothing = Fact(code=Code.NOTHING_WORSE, numbers=numbers)
    return (nothing, *_count_wrong(deciding), *_count_unjudged_times(deciding))


def say_beside(headline: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The headline, saying that all of it was held against the base."""
    if headline[0].code is Code.NO_BASELINE_APPLIES:
        return (replace(headline[0], code=Code.BASE_HAS_NOTHING),)
    return (*headline, Fact(code=Code.AGAINST_BASE))


def _list_lost(deciding: Sequence[Comparison], cases: int, *, finished: bool) -> list[Fact]:
    lost = [one for one in deciding if one.status in BROKEN]
    fewer = {one.case_id for one in lost if any(fact.code is Code.TRIALS_CAME for fact in one.remarks)}
    removed = {one.case_id for one in lost if one.reason is Reason.REMOVED}
    whole = {one.case_id for one in lost if one.reason is not Reason.NOT_MEASURED}
    broken, lacking = whole - fewer - removed, {one.case_id for one in lost} - whole
    parts = (
        (not finished, Fact(code=Code.STOPPED)),
        (broken, Fact(code=Code.NOT_MEASURED, numbers={"broken": len(broken), "cases": cases})),
        (lacking, Fact(code=Code.METRICS_LACKING, numbers={"lacking": len(lacking), "cases": cases})),
        (removed, Fact(code=Code.CASES_REMOVED, numbers={"removed": len(removed), "cases": cases})),
        (fewer, Fact(code=Code.FEWER_TRIALS, numbers={"fewer": len(fewer), "cases": cases})),
    )
    return [fact for is_told, fact in parts if is_told]


def _count_wrong(deciding: Sequence[Comparison]) -> tuple[Fact, ...]:
    """How many cases have a drift on both sides that no rounding makes, and the largest of head's."""
    drifts = [one for one in deciding if SPECS[one.metric].family is Family.LOG2]
    wrong = [
        (one.candidate.centre, one.case_id)
        for one in drifts
        if one.candidate and one.baseline and min(one.baseline.centre, one.candidate.centre) > DRIFT_WRONG
    ]
    numbers = {"cases": len({case_id for _, case_id in wrong}), "drift": max(wrong, default=(0.0, ""))[0]}
    return (Fact(code=Code.WRONG_ON_BOTH_SIDES, numbers=numbers),) if wrong else ()


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


def list_next_steps(
    run: Run, comparisons: Sequence[Comparison], policy: Policy, *, in_pairs: bool = False
) -> tuple[Fact, ...]:
    """What to do next, the most pressing first; ``in_pairs`` is whether all was to be compared in pairs."""
    deciding = [one for one in comparisons if one.decides]
    base_failed = {one.case_id for one in run.failures if one.arm == BASE_ARM}
    has_log = {one.case_id for one in run.failures}
    short = [one.case_id for one in deciding if is_short(one)]
    removed = [one.case_id for one in deciding if one.status in BROKEN and one.reason is Reason.REMOVED]
    failed = [
        one.case_id for one in deciding if one.status in BROKEN and one.case_id not in (*short, *removed)
    ]
    alike = list_alike(run) if run.base else frozenset(failed)
    undecided = [one for one in deciding if one.status is Status.INCONCLUSIVE]
    stored = [one for one in undecided if not (one.pairs or in_pairs)]
    alone = [one.case_id for one in deciding if run.base is None and is_unconfirmed(one)]
    return (
        *([] if run.finished or in_pairs else [Fact(code=Code.CONTINUE)]),
        *suggest(Code.FIX_FAILED, (one for one in failed if one in alike and one in has_log)),
        *suggest(Code.FIX_FAILED, (one for one in failed if one in alike and one not in has_log)),
        *suggest(Code.FIX_NEW, (one for one in failed if one not in alike)),
        # More time gives no pair to what fails in the base.
        *suggest(
            Code.MORE_MINUTES if in_pairs else Code.MEASURE_AGAIN,
            (one for one in short if one not in base_failed),
        ),
        *suggest(Code.ACCEPT_REMOVED, removed),
        *list_acceptances(deciding, policy),
        *suggest(Code.BE_SURE, alone),
        *([Fact(code=Code.READ_BASE_LOGS)] if base_failed else []),
        # A base that fails gives no pair the next time either.
        *suggest(Code.SETTLE, (one.case_id for one in stored if one.case_id not in base_failed)),
        *suggest(Code.SETTLE_BY_TRIALS, (one.case_id for one in stored if one.baseline is not None)),
        *suggest_settling((one for one in undecided if one not in stored), deciding),
        *([] if in_pairs else _suggest_baselines(comparisons, finished=run.finished)),
    )


def is_short(comparison: Comparison) -> bool:
    """Whether trials of a planned case did not come back, and left no failure and no log to read."""
    nothing = any(fact.code is Code.NOTHING_MEASURED for fact in comparison.remarks)
    return comparison.reason is Reason.NOT_RUN and not nothing


def suggest(code: Code, case_ids: Iterable[str]) -> tuple[Fact, ...]:
    """What to do with these cases, if there are any."""
    cases = tuple(dict.fromkeys(case_ids))
    return (Fact(code=code, cases=cases),) if cases else ()


def suggest_settling(undecided: Iterable[Comparison], deciding: Iterable[Comparison]) -> tuple[Fact, ...]:
    """What to do where pairs could not tell: get the rest of them, or the same ones on a quiet machine.

    A case that has regressed is to be fixed, and judged anew.
    """
    regressed = find_regressed(deciding)
    left = [one for one in undecided if one.case_id not in regressed]
    noisy = {one.case_id for one in left if one.pairs >= LOOKS[-1]}
    return (
        *suggest(Code.SETTLE_WITH_PAIRS, (one.case_id for one in left if one.case_id not in noisy)),
        *suggest(Code.SETTLE_QUIETLY, (one.case_id for one in left if one.case_id in noisy)),
    )


def _suggest_baselines(comparisons: Sequence[Comparison], *, finished: bool) -> list[Fact]:
    deciding, apart = [one for one in comparisons if one.decides], accept.list_set_apart(comparisons)
    outcome = decide_outcome(comparisons, finished=finished)
    nothing = outcome is Outcome.NOTHING_COMPARED
    steps = []
    if nothing and apart:
        steps.append(Fact(code=Code.LIFT_QUARANTINE, numbers={"cases": len(apart)}))
    if any(one.reason is Reason.FEW_TRIALS for one in deciding):
        steps.append(Fact(code=Code.RECORD_MORE))
    elif is_unjudged(deciding) or (nothing and not apart):
        steps.append(Fact(code=Code.RECORD))
        elsewhere = (one.case_id for one in deciding if find_unjudged_code(one) is Code.OTHER_SPEED)
        steps.extend(suggest(Code.COMPARE_WITH_BASE, elsewhere))
    elif outcome is Outcome.PASS and any(one.status is Status.IMPROVED for one in deciding):
        steps.append(Fact(code=Code.RECORD_BETTER))
    return steps


def list_acceptances(deciding: Iterable[Comparison], policy: Policy) -> list[Fact]:
    """What to do about each regressed case: fix it, or accept its changes until a date."""
    cases = group_cases(one for one in deciding if one.status is Status.REGRESSED)
    steps = [step for case_id, rows in cases.items() for step in _suggest_acceptance(case_id, rows, policy)]
    rest = len(steps) - _MAX_ACCEPTED
    more = [Fact(code=Code.MORE_LIKE_THESE, numbers={"commands": rest})] if rest > 0 else []
    return steps[:_MAX_ACCEPTED] + more


def _suggest_acceptance(case_id: str, rows: Sequence[Comparison], policy: Policy) -> list[Fact]:
    """The advice once a case, a command a metric; of another answer there is nothing to accept."""
    drifted = [one for one in rows if not any(fact.code in MISMATCH_CODES for fact in one.remarks)]
    suggested = [(one.metric, _choose_allowance(one)) for one in drifted if one.change is not None]
    allowed = [(metric, one) for metric, one in suggested if one <= _find_most(metric)]
    if not allowed:
        return [Fact(code=Code.FIX, cases=(case_id,))]
    today = parse_day(policy.today)
    expires = ((today + timedelta(days=ACCEPTANCE_DAYS)).isoformat(),) if today else ()
    return [
        Fact(
            code=Code.ACCEPT_TOO if position else Code.ACCEPT,
            numbers={**({} if position else {"commands": len(allowed)}), "allowance": allowance},
            cases=(case_id,),
            metrics=(metric,),
            names={"expires": expires},
        )
        for position, (metric, allowance) in enumerate(allowed)
    ]


def _find_most(metric: Metric) -> float:
    """The largest allowance that is suggested."""
    spec = SPECS[metric]
    return DRIFT_WRONG if spec.family is Family.LOG2 else MOST_ALLOWED if spec.is_ratio else math.inf


def _choose_allowance(comparison: Comparison) -> float:
    """A fraction, log2 units, or a count: enough that noise does not undo it."""
    margin = 1.0 if SPECS[comparison.metric].family is Family.EXACT else _ALLOWANCE_MARGIN
    # A standing acceptance is of all that is worse than the stored baseline.
    in_all = max(accept.measure_worsening(comparison), accept.measure_since_stored(comparison))
    return accept.round_allowance(comparison.metric, margin * in_all)
