"""What a verdict says to its reader besides the comparisons: next steps and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from gate.again import write_ab, write_check
from gate.decide.accept import is_waived, list_exceeded, list_expired
from gate.decide.constants import ACCEPTANCE_DAYS, OLD_BASELINE_DAYS
from gate.decide.drift import get_limit
from gate.decide.machine import is_machine_steady
from gate.decide.quarantine import list_days, list_set_apart
from gate.decide.tally import STOPPED
from gate.fingerprint import describe_difference
from gate.metrics import SPECS, Family
from gate.records import (
    Baseline,
    Change,
    Comparison,
    Environment,
    MachineShift,
    Metric,
    Outcome,
    PairBase,
    Policy,
    Reason,
    Run,
    Status,
)
from gate.units import render_allowance
from gate.words import count_noun, describe_change, name_metric

REFRESH = "compile-gate baseline refresh"
_CONTINUE = "Finish the run: give the command that measured it once more, with --resume."
# So many commands, or differences, are spelled out.
_MAX_ACCEPTED = 4
_MAX_LISTED = 6
# A suggested allowance is this many times the change that was seen, so that noise does not undo it.
_ALLOWANCE_MARGIN = 1.25


def list_next_steps(
    outcome: Outcome,
    comparisons: Sequence[Comparison],
    policy: Policy,
    base: PairBase | None = None,
    *,
    finished: bool = True,
) -> tuple[str, ...]:
    """Commands to run next, the most pressing first; ``base`` is what pairs were held against.

    ``finished`` is whether the run came to its end.
    """
    deciding = [one for one in comparisons if one.decides]
    apart = list_set_apart(comparisons)
    short = [one.case_id for one in deciding if one.reason is Reason.TRIALS_MISSING]
    lost = [one.case_id for one in deciding if one.status in {Status.FAILED, Status.MISSING}]
    broken = [case_id for case_id in lost if case_id not in short]
    undecided = [one.case_id for one in deciding if one.status is Status.INCONCLUSIVE and not one.pairs]
    unsettled = [one.case_id for one in deciding if one.status is Status.INCONCLUSIVE and one.pairs]
    alone = [one.case_id for one in deciding if base is None and _is_unconfirmed(one)]
    steps = [] if finished else [_CONTINUE]
    if broken:
        steps.append(f"Read the log of each failed case, fix it and run: {write_check(broken)}")
    if short:
        steps.append(f"Measure again what came back with fewer trials than planned: {write_check(short)}")
    steps += list_acceptances(deciding, policy)
    if alone:
        sure = "To be sure of the times, compare side by side with your main branch"
        steps.append(f"{sure}: {write_check(alone)} --base main")
    if undecided:
        beside = "Settle what could not be told, side by side with where the branch began"
        steps.append(f"{beside}: {write_ab(undecided)}")
        steps.append(f"Or measure it again with more trials: {write_check(undecided)} --trials 3")
    if unsettled:
        steps.append(f"Settle what could not be told, on a quiet machine: {write_ab(unsettled, base)}")
    if outcome is Outcome.NOTHING_COMPARED and apart:
        steps.append(suggest_lifting(len(apart), list_days(comparisons, policy)))
    if any(one.reason is Reason.FEW_TRIALS for one in deciding):
        steps.append(f"Record more baseline trials: {REFRESH} --trials 5")
    elif _is_unjudged(deciding) or (outcome is Outcome.NOTHING_COMPARED and not apart):
        steps.append(f"Record baselines on this machine, at a commit that is known to be good: {REFRESH}")
    elif outcome is Outcome.PASS and any(one.status is Status.IMPROVED for one in deciding):
        steps.append(f"Make the improvement the new baseline: {REFRESH}")
    return tuple(steps)


def suggest_lifting(cases: int, days: Sequence[str]) -> str:
    """What to do where quarantine leaves nothing to judge; ``days`` are its last ones, if they are known."""
    until = f" until {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    are = "is" if cases == 1 else "are"
    lift = "fix what is unstable and remove it from `quarantine` in gate.yml, or select other cases too"
    return f"{count_noun(cases, 'case')} {are} quarantined{until}: {lift}."


def list_notes(
    run: Run, comparisons: Sequence[Comparison], used: Sequence[Baseline], policy: Policy
) -> tuple[str, ...]:
    """What a reader must know to trust the verdict no further than it goes."""
    return (
        *([] if run.finished else [STOPPED]),
        *_note_unjudged(comparisons),
        *_note_unconfirmed(comparisons),
        *_note_waiver(comparisons, policy),
        *note_expired(comparisons, policy),
        *note_exceeded(comparisons, policy),
        *_note_limits(run, comparisons),
        *_note_age(used, policy),
    )


def note_difference(other: Environment | None, environment: Environment) -> tuple[str, ...]:
    """A note on how this environment differs from the nearest that has baselines."""
    lines = describe_difference(other, environment) if other else ()
    if not lines:
        return ()
    more = f" and {len(lines) - _MAX_LISTED} more" if len(lines) > _MAX_LISTED else ""
    return (f"The nearest baselines are of another machine: {'; '.join(lines[:_MAX_LISTED])}{more}.",)


def note_machine(machine: MachineShift, judged: bool) -> tuple[str, ...]:
    """A note on the machine as a whole, where it moved."""
    if not judged or is_machine_steady(machine):
        return ()
    shifts = (("fixed test programs", machine.canary), ("eager over all cases", machine.suite))
    # 0 where it is not known: eager speaks for the machine only over several cases.
    told = [f"{name} {describe_change(Metric.EAGER_LATENCY, shift)}" for name, shift in shifts if shift]
    return (f"The machine changed since the baselines were recorded: {', '.join(told)}.",)


def note_expired(comparisons: Sequence[Comparison], policy: Policy) -> list[str]:
    """A note for each acceptance that fits something and no longer counts."""
    return [
        f"The acceptance of {one.case} {one.metric} expired on {one.expires}"
        f" and no longer counts: {one.reason.rstrip('.')}."
        for one in list_expired(comparisons, policy)
    ]


def note_exceeded(comparisons: Sequence[Comparison], policy: Policy) -> list[str]:
    """A note for each regression that is larger than somebody accepted."""
    return [
        f"{found.case_id} {name_metric(found.metric)}: {known.author or 'somebody'} accepted up to"
        f" {render_allowance(known.metric, known.allowance)} until {known.expires}, and this is more."
        for known, found in list_exceeded(comparisons, policy)
    ]


def _note_waiver(comparisons: Sequence[Comparison], policy: Policy) -> list[str]:
    """Who accepts that there was no baseline, where there was none."""
    waiver = policy.waiver
    if waiver is None or not _is_unjudged(comparisons):
        return []
    if not is_waived(policy):
        return [f"{waiver.author} accepted that there are no baselines; that expired on {waiver.expires}."]
    reason = waiver.reason.rstrip(".")
    return [f"{waiver.author} accepts that there are no baselines until {waiver.expires}: {reason}."]


def list_acceptances(deciding: Iterable[Comparison], policy: Policy) -> list[str]:
    """What to do about each regressed case: fix it, or accept its changes until a date."""
    cases: dict[str, list[Comparison]] = {}
    for one in deciding:
        if one.status is Status.REGRESSED:
            cases.setdefault(one.case_id, []).append(one)
    steps = [step for case_id, rows in cases.items() for step in _suggest_acceptance(case_id, rows, policy)]
    rest = len(steps) - _MAX_ACCEPTED
    more = [f"And {count_noun(rest, 'more command')} like these."] if rest > 0 else []
    return steps[:_MAX_ACCEPTED] + more


def _suggest_acceptance(case_id: str, rows: Sequence[Comparison], policy: Policy) -> list[str]:
    """The advice once a case, a command a metric."""
    commands = [command for one in rows if (command := _write_acceptance(one, policy))]
    if not commands:
        return [f"Fix {case_id}."]
    changes = "the change" if len(commands) == 1 else "each change"
    return [f"Fix {case_id}, or accept {changes} until a date: {commands[0]}", *commands[1:]]


def _write_acceptance(comparison: Comparison, policy: Policy) -> str:
    if comparison.change is None:
        return ""
    allowance = _write_allowance(comparison.metric, comparison.change)
    return (
        f"compile-gate baseline accept '{comparison.case_id}' {comparison.metric}"
        f" --allow {allowance} --reason '...' --expires {_write_expiry(policy)}"
    )


def _write_allowance(metric: Metric, change: Change) -> str:
    family = SPECS[metric].family
    if family is Family.EXACT:
        return f"{max(1, math.ceil(change.centre))}"
    if family is Family.LOG2:
        return f"{_ALLOWANCE_MARGIN * change.centre:.2f}"
    return f"{max(1.0, 100 * _ALLOWANCE_MARGIN * change.centre):.0f}%"


def _write_expiry(policy: Policy) -> str:
    today = _parse_day(policy.today)
    return (today + timedelta(days=ACCEPTANCE_DAYS)).isoformat() if today else "YYYY-MM-DD"


def _note_unconfirmed(comparisons: Iterable[Comparison]) -> list[str]:
    """Times that were convicted against another sitting of the machine only."""
    alone = {one.case_id for one in comparisons if _is_unconfirmed(one)}
    many = count_noun(len(alone), "case")
    return [f"Not measured side by side with the base: the times of {many}."] if alone else []


def _is_unconfirmed(comparison: Comparison) -> bool:
    """Whether stored values alone speak of a slower time."""
    is_alone = comparison.status is Status.REGRESSED and not comparison.pairs
    noisy = comparison.decides and SPECS[comparison.metric].family is Family.NOISY
    return noisy and (is_alone or comparison.reason is Reason.UNPAIRED)


def _is_unjudged(comparisons: Sequence[Comparison]) -> bool:
    return any(one.decides and one.status in {Status.NEW, Status.NOT_COMPARABLE} for one in comparisons)


def _note_unjudged(comparisons: Sequence[Comparison]) -> list[str]:
    """Deciding metrics that were only measured, by reason."""
    unjudged = [
        one for one in comparisons if one.decides and one.status in {Status.NEW, Status.NOT_COMPARABLE}
    ]
    notes = []
    for reason, text in _UNJUDGED.items():
        rows = [one for one in unjudged if one.reason is reason]
        if rows:
            found = {one.metric for one in rows}
            metrics = ", ".join(name_metric(metric) for metric in SPECS if metric in found)
            cases = count_noun(len({one.case_id for one in rows}), "case")
            notes.append(f"Not judged in {cases}: {metrics}. {text}")
    return notes


_UNJUDGED = {
    Reason.NO_BASELINE: "No baseline is stored.",
    Reason.OTHER_ENVIRONMENT: "The baselines were recorded on other machines.",
    Reason.OTHER_STACK: "The baselines were recorded with other software, or on another kind of GPU.",
    Reason.STALE_DEFINITION: "The case is defined differently than when its baseline was recorded.",
    Reason.NOT_RECORDED: "The baselines do not have these metrics.",
}


def _note_limits(run: Run, comparisons: Sequence[Comparison]) -> list[str]:
    """Drift beyond its limit that the baseline has as well."""
    cases = {case.id: case for case in run.cases}
    return [
        f"{one.case_id}: {name_metric(one.metric)} {one.candidate.centre:.2f} is above its limit of"
        f" {get_limit(cases[one.case_id], one.metric):.2f}, and so is the baseline's: only the change counts."
        for one in comparisons
        if one.metric in {Metric.DRIFT, Metric.DRIFT_FLOAT32}
        and one.status is not Status.REGRESSED
        and one.candidate
        and one.candidate.centre > get_limit(cases[one.case_id], one.metric)
    ]


def _note_age(used: Sequence[Baseline], policy: Policy) -> list[str]:
    today = _parse_day(policy.today)
    days = [_parse_day(one.provenance.created) for one in used]
    ages = [(today - day).days for day in days if today and day]
    old = [age for age in ages if age > OLD_BASELINE_DAYS]
    ahead = [-age for age in ages if age < -1]  # one day: midnight lies between two clocks
    notes = []
    if old:
        many = count_noun(len(old), "baseline")
        notes.append(f"{many} older than {OLD_BASELINE_DAYS} days, the oldest {max(old)}: record new ones.")
    if ahead:
        many = count_noun(len(ahead), "baseline")
        notes.append(f"{many} dated up to {max(ahead):,} days ahead, so of unknown age: record new ones.")
    return notes


def _parse_day(text: str) -> date | None:
    """The day of an ISO 8601 time; ``None`` where there is none."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
