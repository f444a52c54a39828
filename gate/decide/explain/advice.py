"""What a verdict says to its reader besides the comparisons: next steps and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gate.decide.conclude.accept import (
    is_in_force,
    is_lack_accepted,
    list_days,
    list_exceeded,
    list_expired,
    list_set_apart,
    list_unaccepted,
    measure_since_stored,
    measure_worsening,
    name_terms,
    note_elsewhere,
)
from gate.decide.conclude.outcome import find_regressed, find_unjudged_code, has_fewer_trials, note_stop
from gate.decide.constants import LOOKS
from gate.decide.explain.accepting import list_acceptances, parse_day
from gate.decide.judge.counted import get_limit
from gate.decide.judge.machine import is_machine_steady, name_shifts
from gate.fingerprint import describe_difference
from gate.metrics import SPECS, Family
from gate.records import (
    BROKEN,
    UNJUDGED,
    Acceptance,
    Baseline,
    Code,
    Comparison,
    Environment,
    Fact,
    MachineShift,
    Outcome,
    PairBase,
    Policy,
    Reason,
    Run,
    Status,
    name_words,
)
from gate.records.targets import TARGET_KIND

# Machines age: after this many days a baseline is mentioned.
OLD_BASELINE_DAYS = 30


def list_next_steps(
    outcome: Outcome,
    comparisons: Sequence[Comparison],
    policy: Policy,
    base: PairBase | None = None,
    *,
    finished: bool = True,
) -> tuple[Fact, ...]:
    """What to do next, the most pressing first; ``base`` is what pairs were held against.

    ``finished`` is whether the run came to its end.
    """
    deciding = [one for one in comparisons if one.decides]
    apart = list_set_apart(comparisons)
    short = [one.case_id for one in deciding if has_not_begun(one) or has_fewer_trials(one)]
    removed = [one.case_id for one in deciding if one.status in BROKEN and one.reason is Reason.REMOVED]
    lost = [one.case_id for one in deciding if one.status in BROKEN and one.reason is not Reason.REMOVED]
    undecided = [one for one in deciding if one.status is Status.INCONCLUSIVE]
    stored = [one for one in undecided if not one.pairs]
    alone = [one.case_id for one in deciding if base is None and _is_unconfirmed(one)]
    return (
        *([] if finished else [Fact(code=Code.CONTINUE)]),
        *suggest(Code.FIX_FAILED, (case_id for case_id in lost if case_id not in short)),
        *suggest(Code.MEASURE_AGAIN, short),
        *suggest(Code.ACCEPT_REMOVED, removed),
        *list_acceptances(deciding, policy),
        *suggest(Code.BE_SURE, alone),
        *suggest(Code.SETTLE, (one.case_id for one in stored)),
        *suggest(Code.SETTLE_BY_TRIALS, (one.case_id for one in stored if one.baseline is not None)),
        *suggest_settling((one for one in undecided if one.pairs), deciding),
        *_suggest_baselines(outcome, deciding, apart, list_days(comparisons, policy)),
    )


def has_not_begun(comparison: Comparison) -> bool:
    """Whether nothing came back of a planned case, not even a failure: there is no log of it to read."""
    return comparison.reason is Reason.NOT_RUN and not comparison.remarks


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


def _suggest_baselines(
    outcome: Outcome, deciding: Sequence[Comparison], apart: Sequence[str], days: Sequence[str]
) -> list[Fact]:
    """What to do about baselines that are missing, too few or bettered."""
    nothing = outcome is Outcome.NOTHING_COMPARED
    steps = [suggest_lifting(len(apart), days)] if nothing and apart else []
    if any(one.reason is Reason.FEW_TRIALS for one in deciding):
        steps.append(Fact(code=Code.RECORD_MORE))
    elif _is_unjudged(deciding) or (nothing and not apart):
        steps.append(Fact(code=Code.RECORD))
        elsewhere = (one.case_id for one in deciding if find_unjudged_code(one) is Code.OTHER_SPEED)
        steps.extend(suggest(Code.COMPARE_WITH_BASE, elsewhere))
    elif outcome is Outcome.PASS and any(one.status is Status.IMPROVED for one in deciding):
        steps.append(Fact(code=Code.RECORD_BETTER))
    return steps


def suggest_lifting(cases: int, days: Sequence[str]) -> Fact:
    """What to do where quarantine leaves nothing to judge; ``days`` are its last ones, if they are known."""
    expires = tuple(dict.fromkeys((days[0], days[-1]))) if days else ()
    return Fact(code=Code.LIFT_QUARANTINE, numbers={"cases": cases}, names={"expires": expires})


def list_notes(
    run: Run, comparisons: Sequence[Comparison], used: Sequence[Baseline], policy: Policy
) -> tuple[Fact, ...]:
    """What a reader must know to trust the verdict no further than it goes."""
    return (
        *note_stop(finished=run.finished),
        *note_unjudged(comparisons, _UNJUDGED),
        *_note_unconfirmed(comparisons),
        *note_accepted(comparisons, policy),
        *note_limits(run, comparisons),
        *_note_age(used, policy),
    )


def note_target(environment: Environment) -> tuple[Fact, ...]:
    """A note on what of a target is not known by rule: it is absent, and not missing."""
    return (Fact(code=Code.NO_DEVICE),) if environment.device_kind == TARGET_KIND else ()


def note_difference(other: Environment | None, environment: Environment) -> tuple[Fact, ...]:
    """A note on how this environment differs from the nearest that has baselines."""
    lines = describe_difference(other, environment) if other else ()
    return (Fact(code=Code.NEAREST_DIFFERS, names={"differences": lines}),) if lines else ()


def note_machine(machine: MachineShift, judged: bool) -> tuple[Fact, ...]:
    """A note on the machine as a whole, where it moved."""
    if not judged or is_machine_steady(machine):
        return ()
    return (Fact(code=Code.MACHINE_CHANGED, numbers=name_shifts(machine)),)


def note_accepted(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Fact, ...]:
    """What somebody accepted that counts for less than they think, and who takes a lack of baselines."""
    return (
        *_note_lack(comparisons, policy),
        *_note_expired(comparisons, policy),
        *_note_exceeded(comparisons, policy),
        *note_elsewhere(policy),
    )


def _note_expired(comparisons: Sequence[Comparison], policy: Policy) -> list[Fact]:
    """A note for each acceptance that fits something and no longer counts."""
    return [
        Fact(
            code=Code.ACCEPTANCE_EXPIRED,
            metrics=tuple(filter(None, [one.metric])),
            names=name_words(pattern=one.case, expires=one.expires, reason=one.reason.rstrip(".")),
        )
        for one in list_expired(comparisons, policy)
    ]


def _note_exceeded(comparisons: Sequence[Comparison], policy: Policy) -> list[Fact]:
    """A note for each regression that is larger than somebody accepted."""
    return [
        Fact(
            code=Code.ACCEPTANCE_EXCEEDED,
            numbers={"allowance": known.allowance, **_name_stored(known, found)},
            cases=(found.case_id,),
            metrics=(found.metric,),
            names=name_words(author=known.author, expires=known.expires),
        )
        for known, found in list_exceeded(comparisons, policy)
    ]


def _name_stored(known: Acceptance, found: Comparison) -> dict[str, float]:
    """What is stored, where that and not the change itself is more than was accepted."""
    since = measure_since_stored(found)
    return {"stored": since} if measure_worsening(found) <= known.allowance < since else {}


def _note_lack(comparisons: Sequence[Comparison], policy: Policy) -> list[Fact]:
    """Who accepts that there was no baseline, where there was none; else what nobody accepts of it."""
    accepted = [one for one in policy.acceptances if one.metric is None]
    if not accepted or not _is_unjudged(comparisons):
        return []
    in_force = [one for one in accepted if is_in_force(one, policy)]
    if is_lack_accepted(comparisons, policy):
        first = min(in_force, key=lambda one: one.expires)  # all of them must still count
        return [Fact(code=Code.LACK_ACCEPTED, names=name_terms(first))]
    if not in_force:
        return [Fact(code=Code.LACK_EXPIRED, names=name_terms(accepted[0]))]
    return [Fact(code=Code.LACK_UNACCEPTED, cases=list_unaccepted(comparisons, policy))]


def _note_unconfirmed(comparisons: Iterable[Comparison]) -> list[Fact]:
    """Times that were convicted against another sitting of the machine only."""
    alone = {one.case_id for one in comparisons if _is_unconfirmed(one)}
    return [Fact(code=Code.STORED_ONLY, numbers={"cases": len(alone)})] if alone else []


def _is_unconfirmed(comparison: Comparison) -> bool:
    """Whether stored values alone speak of a slower time."""
    is_alone = comparison.status is Status.REGRESSED and not comparison.pairs
    noisy = comparison.decides and SPECS[comparison.metric].family is Family.NOISY
    return noisy and (is_alone or comparison.reason is Reason.UNPAIRED)


def _is_unjudged(comparisons: Sequence[Comparison]) -> bool:
    return any(one.decides and one.status in UNJUDGED for one in comparisons)


def note_unjudged(comparisons: Sequence[Comparison], codes: Mapping[Reason, Code]) -> list[Fact]:
    """Deciding metrics that were only measured, by reason."""
    unjudged = [one for one in comparisons if one.decides and one.status in UNJUDGED]
    notes = []
    for code in (*codes.values(), *_OTHER_BASELINES):
        rows = [one for one in unjudged if (find_unjudged_code(one) or codes.get(one.reason)) is code]
        found = {one.metric for one in rows}
        metrics = tuple(metric for metric in SPECS if metric in found)
        if rows:
            cases = len({one.case_id for one in rows})
            notes.append(Fact(code=code, numbers={"cases": cases}, metrics=metrics))
    return notes


_OTHER_BASELINES = (Code.OTHER_MACHINES, Code.OTHER_SPEED, Code.OTHER_STACK)
_UNJUDGED = {
    Reason.NO_BASELINE: Code.NO_BASELINE,
    Reason.STALE_DEFINITION: Code.REDEFINED,
    Reason.NOT_MEASURED: Code.NOT_RECORDED,
}


def note_limits(run: Run, comparisons: Sequence[Comparison]) -> list[Fact]:
    """Drift beyond its limit that the baseline, or the base, has as well."""
    cases = {case.id: case for case in run.cases}
    return [
        Fact(
            code=Code.DRIFT_ABOVE,
            numbers={
                "drift": one.candidate.centre,
                "limit": get_limit(cases[one.case_id], one.metric),
                **({"beside": 1} if one.pairs else {}),
            },
            cases=(one.case_id,),
            metrics=(one.metric,),
        )
        for one in comparisons
        if SPECS[one.metric].family is Family.LOG2
        and one.status is not Status.REGRESSED
        and one.candidate
        and one.candidate.centre > get_limit(cases[one.case_id], one.metric)
    ]


def _note_age(used: Sequence[Baseline], policy: Policy) -> list[Fact]:
    today = parse_day(policy.today)
    days = [parse_day(one.provenance.created) for one in used]
    ages = [(today - day).days for day in days if today and day]
    old = [age for age in ages if age > OLD_BASELINE_DAYS]
    ahead = [-age for age in ages if age < -1]  # one day: midnight lies between two clocks
    notes = []
    if old:
        numbers = {"baselines": len(old), "days": OLD_BASELINE_DAYS, "oldest": max(old)}
        notes.append(Fact(code=Code.BASELINES_OLD, numbers=numbers))
    if ahead:
        numbers = {"baselines": len(ahead), "days": max(ahead)}
        notes.append(Fact(code=Code.BASELINES_AHEAD, numbers=numbers))
    return notes
