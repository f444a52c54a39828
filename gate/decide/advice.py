"""What a verdict says to its reader besides the comparisons: headline, next steps and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

from gate.again import write_ab, write_check
from gate.decide.accept import is_waived, list_exceeded, list_expired
from gate.decide.constants import ACCEPTANCE_DAYS, OLD_BASELINE_DAYS
from gate.decide.coverage import measure_coverage
from gate.decide.drift import get_limit
from gate.decide.machine import is_machine_steady
from gate.decide.wording import format_allowance, format_change
from gate.fingerprint import describe_difference
from gate.metrics import SPECS, Family
from gate.records import (
    Baseline,
    Case,
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

REFRESH = "compile-gate baseline refresh"
# So many commands or cases are spelled out.
_MAX_NAMED = 3
_MAX_LISTED = 6
# A suggested allowance is this many times the change that was seen, so that noise does not undo it.
_ALLOWANCE_MARGIN = 1.25


def write_headline(outcome: Outcome, comparisons: Sequence[Comparison], cases: Sequence[Case]) -> str:
    """One sentence: what came out, in numbers, and the worst of it."""
    deciding = [one for one in comparisons if one.decides]
    counts = Counter(one.status for one in deciding)
    coverage = measure_coverage(deciding)
    regressed = [one for one in deciding if one.status is Status.REGRESSED]
    if outcome is Outcome.INCOMPLETE:
        broken = {one.case_id for one in deciding if one.status in {Status.FAILED, Status.MISSING}}
        also = f"; {_name_regressions(regressed)}" if regressed else ""
        return f"{count_noun(len(broken), 'case')} of {len(cases)} could not be measured in full{also}."
    if outcome is Outcome.REGRESSION:
        return f"{_name_regressions(regressed)}."
    if outcome is Outcome.INCONCLUSIVE:
        undecided = counts[Status.INCONCLUSIVE]
        of = f"{undecided} of {count_noun(coverage.judged, 'comparison')}"
        return f"Nothing surely regressed, but {of} could not be settled."
    if outcome is Outcome.NOTHING_COMPARED:
        return f"{count_noun(len(cases), 'case')} measured, nothing judged: no baseline applies."
    improved = counts[Status.IMPROVED]
    also = f", {improved} improved" if improved else ""
    many = count_noun(coverage.comparisons, "comparison")
    if coverage.is_whole:
        return f"Nothing regressed: {many} of {count_noun(coverage.cases, 'case')} judged{also}."
    part = f"{coverage.judged} of {many}, in {coverage.judged_cases} of {count_noun(coverage.cases, 'case')}"
    return f"Nothing regressed in what was judged: {part}{also}."


def list_next_steps(
    outcome: Outcome, comparisons: Sequence[Comparison], policy: Policy, base: PairBase | None = None
) -> tuple[str, ...]:
    """Commands to run next, the most pressing first; ``base`` is what pairs were held against."""
    deciding = [one for one in comparisons if one.decides]
    broken = [one.case_id for one in deciding if one.status in {Status.FAILED, Status.MISSING}]
    undecided = [one.case_id for one in deciding if one.status is Status.INCONCLUSIVE and not one.pairs]
    unsettled = [one.case_id for one in deciding if one.status is Status.INCONCLUSIVE and one.pairs]
    steps = []
    if broken:
        steps.append(f"See the log of the failed cases, fix and run: {write_check(broken)}")
    steps += [suggest_acceptance(one, policy) for one in deciding if one.status is Status.REGRESSED][
        :_MAX_NAMED
    ]
    if undecided:
        steps.append(f"Settle the undecided cases side by side with the branch's base: {write_ab(undecided)}")
        steps.append(f"Or measure them again: {write_check(undecided)} --trials 3")
    if unsettled:
        steps.append(f"Quiet the machine and compare the unsettled cases again: {write_ab(unsettled, base)}")
    if any(one.reason is Reason.FEW_TRIALS for one in deciding):
        steps.append(f"Record more baseline trials: {REFRESH} --trials 5")
    elif _is_unjudged(deciding) or outcome is Outcome.NOTHING_COMPARED:
        steps.append(f"Record baselines of this machine from a known good commit: {REFRESH}")
    elif outcome is Outcome.PASS and any(one.status is Status.IMPROVED for one in deciding):
        steps.append(f"Keep the improvement: {REFRESH}")
    return tuple(steps)


def list_notes(
    run: Run, comparisons: Sequence[Comparison], used: Sequence[Baseline], policy: Policy
) -> tuple[str, ...]:
    """What a reader must know to trust the verdict no further than it goes."""
    return (
        *([] if run.finished else ["The run was stopped before its end."]),
        *_note_unjudged(comparisons),
        *_note_unconfirmed(run, comparisons),
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
    return (f"The nearest baselines are of another host: {'; '.join(lines[:_MAX_LISTED])}{more}.",)


def note_machine(machine: MachineShift, judged: bool) -> tuple[str, ...]:
    """A note on the machine as a whole, where it moved."""
    if not judged or is_machine_steady(machine):
        return ()
    moves = f"canaries {100 * machine.canary:+.1f} %, eager over the suite {100 * machine.suite:+.1f} %"
    return (f"The machine differs from when the baselines were recorded (+ is slower): {moves}.",)


def count_noun(number: int, noun: str) -> str:
    """A number with its noun in the right form."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def note_expired(comparisons: Sequence[Comparison], policy: Policy) -> list[str]:
    """A note for each acceptance that fits something and no longer counts."""
    return [
        f"The acceptance of {one.case} {one.metric} expired on {one.expires}"
        f" and no longer counts: {one.reason}"
        for one in list_expired(comparisons, policy)
    ]


def note_exceeded(comparisons: Sequence[Comparison], policy: Policy) -> list[str]:
    """A note for each regression that is larger than somebody accepted."""
    return [
        f"{found.case_id} {found.metric}: {known.author or 'somebody'} accepted up to"
        f" {format_allowance(known.metric, known.allowance)} until {known.expires}, and this is more."
        for known, found in list_exceeded(comparisons, policy)
    ]


def _note_waiver(comparisons: Sequence[Comparison], policy: Policy) -> list[str]:
    """Who takes it that there was no baseline, where there was none."""
    waiver = policy.waiver
    if waiver is None or not _is_unjudged(comparisons):
        return []
    if not is_waived(policy):
        return [f"{waiver.author} took the lack of baselines, which expired on {waiver.expires}."]
    reason = waiver.reason.rstrip(".")
    return [f"{waiver.author} takes the lack of baselines until {waiver.expires}: {reason}."]


def suggest_acceptance(comparison: Comparison, policy: Policy) -> str:
    """What to do about a regression: fix it, or take responsibility for it."""
    if comparison.change is None:
        return f"Fix {comparison.case_id}, or take its {comparison.metric} as it is: {REFRESH}"
    allowance = _write_allowance(comparison.metric, comparison.change)
    return (
        f"Fix {comparison.case_id}, or take responsibility: compile-gate baseline accept"
        f" '{comparison.case_id}' {comparison.metric} --allow {allowance} --reason '...' --expires"
        f" {_write_expiry(policy)}"
    )


def _name_regressions(regressed: Sequence[Comparison]) -> str:
    cases = {one.case_id for one in regressed}
    worst = max(regressed, key=lambda one: (one.change.centre if one.change else 0.0, one.case_id))
    size = f" ({format_change(worst.metric, worst.change)})" if worst.change else ""
    many = count_noun(len(regressed), "regression")
    return f"{many} in {count_noun(len(cases), 'case')}: {worst.case_id} {worst.metric}{size}" + (
        " and more" if len(regressed) > 1 else ""
    )


def _write_allowance(metric: Metric, change: Change) -> str:
    family = SPECS[metric].family
    if family is Family.EXACT:
        return f"{change.centre:.0f}"
    if family is Family.LOG2:
        return f"{_ALLOWANCE_MARGIN * change.centre:.2f}"
    return f"{100 * _ALLOWANCE_MARGIN * change.centre:.0f}%"


def _write_expiry(policy: Policy) -> str:
    today = _parse_day(policy.today)
    return (today + timedelta(days=ACCEPTANCE_DAYS)).isoformat() if today else "YYYY-MM-DD"


def _note_unconfirmed(run: Run, comparisons: Sequence[Comparison]) -> list[str]:
    """Times that were convicted against another sitting of the machine only."""
    noisy = [one for one in comparisons if SPECS[one.metric].family is Family.NOISY and one.decides]
    alone = [one for one in noisy if _is_unconfirmed(one)]
    if not alone:
        return []
    cases = count_noun(len({one.case_id for one in alone}), "case")
    how = (
        "They have no pairs to go by."
        if run.base
        else "To confirm, with a REF that is without the change: compile-gate check --base REF"
    )
    return [f"Not confirmed side by side: the times of {cases}. {how}"]


def _is_unconfirmed(comparison: Comparison) -> bool:
    """Whether stored values alone speak of a regression."""
    is_alone = comparison.status is Status.REGRESSED and not comparison.pairs
    return is_alone or comparison.reason is Reason.UNPAIRED


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
            metrics = ", ".join(metric for metric in SPECS if any(one.metric is metric for one in rows))
            cases = count_noun(len({one.case_id for one in rows}), "case")
            notes.append(f"Measured, not judged, in {cases}: {metrics}. {text} Record them: {REFRESH}")
    return notes


_UNJUDGED = {
    Reason.NO_BASELINE: "Nothing is stored for them.",
    Reason.OTHER_ENVIRONMENT: "Their baselines were recorded on other hosts.",
    Reason.OTHER_STACK: "Their baselines were recorded with another software stack.",
    Reason.STALE_DEFINITION: "The case's definition has changed since its baseline.",
    Reason.NOT_RECORDED: "Their baselines were recorded without them.",
}


def _note_limits(run: Run, comparisons: Sequence[Comparison]) -> list[str]:
    """Drift beyond its limit that the baseline has as well."""
    cases = {case.id: case for case in run.cases}
    return [
        f"{one.case_id}: {one.metric} {one.candidate.centre:.2f} is beyond its limit of"
        f" {get_limit(cases[one.case_id], one.metric):.2f}, as its baseline is: only its change counts."
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
    if not old:
        return []
    many = count_noun(len(old), "baseline")
    return [f"{many} older than {OLD_BASELINE_DAYS} days, the oldest {max(old)}: {REFRESH}"]


def _parse_day(text: str) -> date | None:
    """The day of an ISO 8601 time; ``None`` where there is none."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
