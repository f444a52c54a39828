"""Acceptances, which somebody took responsibility for, and quarantines: both until a date."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from gate.decide.constants import MIN_PAIRS, MOST_OF_ESTIMATE
from gate.metrics import SPECS, Family
from gate.records.cases import Acceptance, Metric, Policy, Quarantine
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Baseline
from gate.records.verdict import QUIET, Comparison, Reason, Status

# The steps of an allowance: whole percent, whole counts, hundredths of a log2 unit.
_STEPS = {Family.EXACT: 1, Family.LOG2: 100}
_PERCENT = 100
_UNREMARKABLE = QUIET | {Status.IMPROVED}
_MAX_NAMED = 3  # findings named in a note; the rest is counted


def keep_own(policy: Policy, here: str) -> Policy:
    """A commit's acceptances for other gates or environments move to ``elsewhere``."""
    ours, elsewhere = [], []
    for entry in policy.acceptances:
        is_of_gate = not entry.commit or policy.gate in {"", entry.gate}
        if is_of_gate and fnmatchcase(here, entry.environment):
            ours.append(entry)
        elif entry.commit:
            elsewhere.append(entry)
    return replace(policy, acceptances=tuple(ours), elsewhere=(*policy.elsewhere, *elsewhere))


def note_elsewhere(policy: Policy) -> list[Fact]:
    counts = Counter((entry.author, entry.gate, entry.environment) for entry in policy.elsewhere)
    return [
        Fact(
            code=Code.ACCEPTED_ELSEWHERE,
            numbers={"acceptances": count},
            names=name_words(author=author, gate=gate, environment=environment),
        )
        for (author, gate, environment), count in counts.items()
    ]


def apply_acceptances(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Turn a worsening within an acceptance in force into ACCEPTED.

    A standing one counts from the stored baseline, so that changes do not add up: what pairs judged exactly
    must be within it from there as well. Drift without a baseline counts from its limit.
    """
    return tuple(_accept(comparison, policy) for comparison in comparisons)


def note_left(baselines: Iterable[Baseline], policy: Policy) -> tuple[Fact, ...]:
    recorded = [(baseline.case_id, baseline.trials) for baseline in baselines]
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
    return tuple(
        row
        for row in comparisons
        if row.decides
        and row.status is Status.ACCEPTED
        and any(_covers(entry, row, policy) for entry in acceptances)
    )


def compute_acceptance_limit(comparison: Comparison) -> float:
    """The smallest round allowance that covers a worsening and its interval, but no worse one."""
    if comparison.change is None:
        return 0.0  # a removed case
    worsening, change = measure_worsening(comparison), comparison.change
    # CPU time varies half as much as the clock, so its interval is at most as wide.
    high = worsening + change.high - change.centre
    return round_allowance(comparison.metric, max(worsening, min(high, MOST_OF_ESTIMATE * worsening)))


def measure_worsening(comparison: Comparison) -> float:
    """What an allowance has to cover: the change, and that of the CPU time that judged a compile."""
    by_clock = comparison.change.centre if comparison.change else 0.0
    by_processor = [fact.numbers["change"] for fact in comparison.remarks if fact.code is Code.PROCESSOR_TIME]
    return max([by_clock, *by_processor])


def measure_since_stored(comparison: Comparison) -> float:
    """By how much it is worse than stored, where pairs judged it and surely show less; else 0."""
    return _find_since_stored(comparison).get("change", 0.0)


def measure_least_since_stored(comparison: Comparison) -> float:
    """By how much it is surely worse than stored, where that is more than pairs show; else 0."""
    return _find_since_stored(comparison).get("low", 0.0)


def _find_since_stored(comparison: Comparison) -> Mapping[str, float]:
    shown = max(0.0, measure_worsening(comparison))
    facts = (fact.numbers for fact in comparison.remarks if fact.code is Code.SINCE_STORED)
    return next((numbers for numbers in facts if numbers["low"] > shown), {})


def round_allowance(metric: Metric, amount: float) -> float:
    step = _STEPS.get(SPECS[metric].family, _PERCENT)
    rounded = round(amount * step)  # 0.07 is 7 %, though 0.07 * 100 is a little more
    return rounded / step if rounded / step >= amount else math.ceil(amount * step) / step


def is_in_force(entry: Acceptance | Quarantine, policy: Policy) -> bool:
    """On its last day it still counts; without a date of today it does not."""
    return bool(policy.today) and policy.today <= entry.expires


def fits_row(acceptance: Acceptance, comparison: Comparison, policy: Policy) -> bool:
    return acceptance.metric is comparison.metric and policy.fits(acceptance.case, comparison.case_id)


def can_be_accepted(comparison: Comparison) -> bool:
    is_worse = comparison.status is Status.REGRESSED and comparison.change is not None
    return comparison.decides and (is_worse or _is_removed(comparison))


def _is_removed(comparison: Comparison) -> bool:
    return comparison.status is Status.MISSING and comparison.reason is Reason.REMOVED


def _accept(comparison: Comparison, policy: Policy) -> Comparison:
    is_removed, change = _is_removed(comparison), comparison.change
    is_open = comparison.reason is Reason.UNSETTLED
    is_worse = change is not None and (
        comparison.status is Status.REGRESSED
        or (is_open and (comparison.waits_for_pairs or change.centre > 0))
    )
    if not (is_removed or is_worse):
        return comparison
    in_force = [entry for entry in policy.acceptances if is_in_force(entry, policy)]
    covering = [entry for entry in in_force if _covers(entry, comparison, policy)]
    # Surely within them; by the estimate alone the base has used up the others.
    enough = [
        entry for entry in covering if entry.commit or measure_since_stored(comparison) <= entry.allowance
    ]
    if not covering:
        return comparison
    if not enough:
        open_row = replace(comparison, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED)
        return replace(open_row, found=comparison.reason)
    return replace(
        comparison,
        status=Status.ACCEPTED,
        # Still a removed case: its other rows have metrics of their own.
        reason=Reason.REMOVED if is_removed else Reason.ACCEPTED,
        found=comparison.reason,
        remarks=(*comparison.remarks, Fact(code=Code.ACCEPTED_BY, names=name_terms(enough[0]))),
    )


def _covers(acceptance: Acceptance, comparison: Comparison, policy: Policy) -> bool:
    """A standing acceptance counts from the baseline, and never covers a removed case.

    What is open must be within it by its interval, which one pair does not have.
    """
    if not fits_row(acceptance, comparison, policy):
        return False
    worse = measure_worsening(comparison)
    if comparison.status is Status.INCONCLUSIVE and comparison.found is None and comparison.change:
        is_noisy = SPECS[comparison.metric].family is Family.NOISY
        few = is_noisy and 0 < comparison.pairs < MIN_PAIRS
        worse = max(worse, math.inf if few else comparison.change.high)
    if not acceptance.commit:
        worse = math.inf if _is_removed(comparison) else max(worse, measure_least_since_stored(comparison))
    return worse <= acceptance.allowance


def name_terms(taken: Acceptance) -> Mapping[str, tuple[str, ...]]:
    return name_words(author=taken.author, expires=taken.expires, reason=taken.reason.rstrip("."))


def apply_quarantine(comparisons: Iterable[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    rows, in_force = [], [quarantine for quarantine in policy.quarantine if is_in_force(quarantine, policy)]
    for row in comparisons:
        entry = next((entry for entry in in_force if row.decides and _is_covered(entry, row, policy)), None)
        if entry is None:
            rows.append(row)
        else:
            remarks = (*row.remarks, Fact(code=Code.QUARANTINED_BY, names=_name_entry(entry)))
            rows.append(replace(row, decides=False, quarantined=True, remarks=remarks))
    return tuple(rows)


def note_quarantine(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Fact, ...]:
    notes = []
    for entry in policy.quarantine:
        covered = [row for row in comparisons if _is_covered(entry, row, policy)]
        apart = [row for row in covered if row.quarantined]
        if not is_in_force(entry, policy):
            if any(row.decides for row in covered):
                notes.append(Fact(code=Code.QUARANTINE_EXPIRED, names=_name_entry(entry)))
        elif apart:
            notes.append(_note_in_force(entry, apart))
    return tuple(notes)


def list_set_apart(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    set_apart: dict[str, bool] = {}
    for row in comparisons:
        if row.may_decide:
            set_apart[row.case_id] = set_apart.get(row.case_id, True) and row.quarantined
    return tuple(case_id for case_id, quarantined in set_apart.items() if quarantined)


def _is_covered(entry: Quarantine, comparison: Comparison, policy: Policy) -> bool:
    """One metric's entry also covers what follows it: a ratio moves with what it is a ratio of.

    It never covers a case that failed.
    """
    if not policy.fits(entry.case, comparison.case_id):
        return False
    if entry.metric is None:
        return True
    metrics = {comparison.metric, SPECS[comparison.metric].follows}
    return entry.metric in metrics and not comparison.is_of_whole_case


def _note_in_force(entry: Quarantine, covered: Sequence[Comparison]) -> Fact:
    remarkable = [row for row in covered if row.status not in _UNREMARKABLE]
    named = remarkable[:_MAX_NAMED]
    whole = tuple(row.case_id for row in named if row.is_of_whole_case)
    return Fact(
        code=Code.QUARANTINE,
        numbers={"worse": len(remarkable), "comparisons": len(covered)},
        cases=tuple(row.case_id for row in named),
        metrics=tuple(row.metric for row in named),
        names={
            **_name_entry(entry),
            "statuses": tuple(row.status.value for row in named),
            **({"whole": whole} if whole else {}),
        },
    )


def _name_entry(entry: Quarantine) -> Mapping[str, tuple[str, ...]]:
    pattern = f"{entry.case} {entry.metric}" if entry.metric else entry.case
    reason = entry.reason.rstrip(".")
    return name_words(pattern=pattern, owner=entry.owner, expires=entry.expires, reason=reason)
