"""Changes that somebody took responsibility for, and cases that do not decide, until a date."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from gate.decide.constants import MOST_OF_ESTIMATE
from gate.metrics import SPECS, Family
from gate.records.cases import Acceptance, Metric, Policy, Quarantine
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Baseline
from gate.records.verdict import QUIET, Comparison, Reason, Status

# The steps of an allowance: whole percent, whole counts, hundredths of a log2 unit.
_STEPS = {Family.EXACT: 1, Family.LOG2: 100}
_PERCENT = 100


def keep_own(policy: Policy, here: str) -> Policy:
    """Keep the acceptances for the environment with this id, and of those of a commit what is for this gate.

    What was accepted of a commit for others is moved to ``elsewhere``: a second call changes nothing.
    """
    own, others = [], []
    for one in policy.acceptances:
        is_of_gate = not one.commit or policy.gate in {"", one.gate}
        if is_of_gate and fnmatchcase(here, one.environment):
            own.append(one)
        elif one.commit:
            others.append(one)
    return replace(policy, acceptances=tuple(own), elsewhere=(*policy.elsewhere, *others))


def note_elsewhere(policy: Policy) -> list[Fact]:
    """A note on what each accepted for another gate or environment: they may think that it counts."""
    places = Counter((one.author, one.gate, one.environment) for one in policy.elsewhere)
    return [
        Fact(
            code=Code.ACCEPTED_ELSEWHERE,
            numbers={"acceptances": count},
            names=name_words(author=author, gate=gate, environment=environment),
        )
        for (author, gate, environment), count in places.items()
    ]


def apply_acceptances(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Turn a worsening within an acceptance in force into ACCEPTED.

    That is a REGRESSED comparison, or one that may be worse, whose change is at most the allowance (a
    fraction; units for counters and drift). Drift without a baseline is compared with its limit instead.
    A standing acceptance is of the baseline: else each change could be so much worse again than the last.
    Where pairs judged what is exact, what is stored must be within it too. A case that the change removes is
    accepted for the change alone.
    """
    return tuple(_accept(comparison, policy) for comparison in comparisons)


def note_left(baselines: Iterable[Baseline], policy: Policy) -> tuple[Fact, ...]:
    """The standing acceptances in force that fit what is recorded: they allow so much on top of that."""
    recorded = [(one.case_id, one.trials) for one in baselines]
    return tuple(
        Fact(
            code=Code.ACCEPTANCE_LEFT,
            numbers={"allowance": entry.allowance},
            metrics=(entry.metric,),
            names=name_words(pattern=entry.case),
        )
        for entry in policy.acceptances
        if entry.metric
        and not entry.commit
        and is_in_force(entry, policy)
        and any(entry.metric in trials and policy.fits(entry.case, case_id) for case_id, trials in recorded)
    )


def list_covered(
    comparisons: Sequence[Comparison], acceptances: Sequence[Acceptance], policy: Policy
) -> tuple[Comparison, ...]:
    """The accepted comparisons that decide and that one of these acceptances covers."""
    return tuple(
        one
        for one in comparisons
        if one.decides
        and one.status is Status.ACCEPTED
        and any(_covers(entry, one, policy) for entry in acceptances)
    )


def compute_acceptance_limit(comparison: Comparison) -> float:
    """The smallest round allowance that covers a measured worsening and its interval, and no more.

    Measured again, the same change stays within it; a worse one does not.
    """
    worsening, change = measure_worsening(comparison), comparison.change
    # By how much the clock's interval goes beyond its estimate, CPU time's may at most: it varies by half.
    high = worsening + (change.high - change.centre if change else 0.0)
    return round_allowance(comparison.metric, max(worsening, min(high, MOST_OF_ESTIMATE * worsening)))


def measure_worsening(comparison: Comparison) -> float:
    """What an allowance has to reach: the change, and that of the CPU time by which a compile was judged."""
    shown = comparison.change.centre if comparison.change else 0.0
    judged = [one.numbers["change"] for one in comparison.remarks if one.code is Code.PROCESSOR_TIME]
    return max([shown, *judged])


def measure_since_stored(comparison: Comparison) -> float:
    """How much worse than the stored baseline it is, where pairs judged it and surely show less; else 0."""
    facts = [one.numbers for one in comparison.remarks if one.code is Code.SINCE_STORED]
    is_sure = measure_least_since_stored(comparison) > 0.0
    return max((one["change"] for one in facts if is_sure), default=0.0)


def measure_least_since_stored(comparison: Comparison) -> float:
    """How much worse than the stored baseline it is at least, where that is more than pairs show; else 0.

    What is stored of times is noisy: the base may not have moved at all.
    """
    facts = [one.numbers for one in comparison.remarks if one.code is Code.SINCE_STORED]
    return max((one["low"] for one in facts if one["low"] > measure_worsening(comparison)), default=0.0)


def round_allowance(metric: Metric, amount: float) -> float:
    """Round an allowance up to one that can be written: whole percent, counts or hundredths of log2 units."""
    step = _STEPS.get(SPECS[metric].family, _PERCENT)
    rounded = round(amount * step)  # 0.07 is 7 %, though 0.07 * 100 is a little more
    return rounded / step if rounded / step >= amount else math.ceil(amount * step) / step


def is_in_force(entry: Acceptance | Quarantine, policy: Policy) -> bool:
    """Whether the entry still counts today; its last day does. Without a date of today it does not."""
    return bool(policy.today) and policy.today <= entry.expires


def fits_row(acceptance: Acceptance, comparison: Comparison, policy: Policy) -> bool:
    """Whether the acceptance speaks of this comparison's case and metric."""
    return acceptance.metric is comparison.metric and policy.fits(acceptance.case, comparison.case_id)


def can_be_accepted(comparison: Comparison) -> bool:
    """Whether somebody can take responsibility for it: a measured worsening, or a case that is removed."""
    is_worse = comparison.status is Status.REGRESSED and comparison.change is not None
    return comparison.decides and (is_worse or _is_removed(comparison))


def _is_removed(comparison: Comparison) -> bool:
    return comparison.status is Status.MISSING and comparison.reason is Reason.REMOVED


def _accept(comparison: Comparison, policy: Policy) -> Comparison:
    is_removed, change = _is_removed(comparison), comparison.change
    may_be_worse = comparison.reason is Reason.UNSETTLED and (
        comparison.waits_for_pairs or (change is not None and change.centre > 0)
    )
    is_worse = change is not None and (comparison.status is Status.REGRESSED or may_be_worse)
    if not (is_removed or is_worse):
        return comparison
    in_force = [one for one in policy.acceptances if is_in_force(one, policy)]
    for acceptance in in_force:
        if _covers(acceptance, comparison, policy):
            # Surely within it; by the estimate alone the base has used it up.
            if not acceptance.commit and measure_since_stored(comparison) > acceptance.allowance:
                status, found = Status.INCONCLUSIVE, comparison.reason
                return replace(comparison, status=status, reason=Reason.UNSETTLED, found=found)
            return replace(
                comparison,
                status=Status.ACCEPTED,
                # A removed case stays one: what else there is of it stands under metrics of its own.
                reason=Reason.REMOVED if is_removed else Reason.ACCEPTED,
                found=comparison.reason,
                remarks=(*comparison.remarks, Fact(code=Code.ACCEPTED_BY, names=name_terms(acceptance))),
            )
    return comparison


def _covers(acceptance: Acceptance, comparison: Comparison, policy: Policy) -> bool:
    """Whether the acceptance speaks of this comparison and allows its change.

    A standing one allows so much of the baseline, and a case that is removed is no change of that.
    """
    if not fits_row(acceptance, comparison, policy):
        return False
    worse = measure_worsening(comparison)
    if not acceptance.commit:
        worse = math.inf if _is_removed(comparison) else max(worse, measure_least_since_stored(comparison))
    return worse <= acceptance.allowance


def name_terms(taken: Acceptance) -> Mapping[str, tuple[str, ...]]:
    """Who takes responsibility, until when and why, as a fact has it."""
    return name_words(author=taken.author, expires=taken.expires, reason=taken.reason.rstrip("."))


_UNREMARKABLE = QUIET | {Status.IMPROVED}
_MAX_NAMED = 3  # findings named in a note; the rest is counted


def apply_quarantine(comparisons: Iterable[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Take the vote from what a quarantine in force covers; its finding stays as it is."""
    rows, in_force = [], [one for one in policy.quarantine if is_in_force(one, policy)]
    for row in comparisons:
        entry = next((one for one in in_force if row.decides and _is_covered(one, row, policy)), None)
        if entry is None:
            rows.append(row)
        else:
            remarks = (*row.remarks, Fact(code=Code.QUARANTINED_BY, names=_name_entry(entry)))
            rows.append(replace(row, decides=False, quarantined=True, remarks=remarks))
    return tuple(rows)


def note_quarantine(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Fact, ...]:
    """What each quarantine that fits something here does: what it keeps from deciding, or that it expired."""
    notes = []
    for entry in policy.quarantine:
        covered = [one for one in comparisons if _is_covered(entry, one, policy)]
        apart = [one for one in covered if one.quarantined]
        if not is_in_force(entry, policy):
            if any(one.decides for one in covered):
                notes.append(Fact(code=Code.QUARANTINE_EXPIRED, names=_name_entry(entry)))
        elif apart:
            notes.append(_note_in_force(entry, apart))
    return tuple(notes)


def list_set_apart(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """The cases of which nothing decides, since what would is in quarantine."""
    kept: dict[str, bool] = {}
    for one in comparisons:
        if one.may_decide:
            kept[one.case_id] = kept.get(one.case_id, True) and one.quarantined
    return tuple(case_id for case_id, quarantined in kept.items() if quarantined)


def _is_covered(entry: Quarantine, comparison: Comparison, policy: Policy) -> bool:
    """Whether the entry speaks of this comparison; one metric's does not speak of a case that failed.

    One metric's speaks of what follows it, too: a ratio moves whenever what it is a ratio of does.
    """
    if not policy.fits(entry.case, comparison.case_id):
        return False
    if entry.metric is None:
        return True
    metrics = {comparison.metric, SPECS[comparison.metric].follows}
    return entry.metric in metrics and not comparison.is_of_whole_case


def _note_in_force(entry: Quarantine, covered: Sequence[Comparison]) -> Fact:
    found = [one for one in covered if one.status not in _UNREMARKABLE]
    named = found[:_MAX_NAMED]
    whole = tuple(one.case_id for one in named if one.is_of_whole_case)
    return Fact(
        code=Code.QUARANTINE,
        numbers={"worse": len(found), "comparisons": len(covered)},
        cases=tuple(one.case_id for one in named),
        metrics=tuple(one.metric for one in named),
        names={
            **_name_entry(entry),
            "statuses": tuple(one.status.value for one in named),
            **({"whole": whole} if whole else {}),
        },
    )


def _name_entry(entry: Quarantine) -> Mapping[str, tuple[str, ...]]:
    pattern = f"{entry.case} {entry.metric}" if entry.metric else entry.case
    reason = entry.reason.rstrip(".")
    return name_words(pattern=pattern, owner=entry.owner, expires=entry.expires, reason=reason)
