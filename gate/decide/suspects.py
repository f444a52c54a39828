"""Which cases get pairs with the base, and which of them need more."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.decide.conclude.accept import apply_acceptances, apply_quarantine, keep_own
from gate.decide.constants import LOOKS, SETTLING_PAIRS
from gate.decide.evidence.pairs import list_alike
from gate.decide.evidence.proxies import (
    has_other_counts,
    has_torch_calls_alone,
    is_code_changed,
    is_other_workload,
)
from gate.decide.judge.pairs import CasePairs, PairRules, compare_paired, gather_case_pairs, make_pair_rules
from gate.decide.verdict import Screening
from gate.metrics import LEADING, NOISY_DECIDING, SPECS, Family
from gate.records import (
    MAYBE_WORSE,
    MOVED,
    UNJUDGED,
    Comparison,
    Metric,
    Pairing,
    Policy,
    Reason,
    Run,
    Status,
)
from gate.records.cases import group_cases

_OPEN = UNJUDGED | MAYBE_WORSE | MOVED


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """A case that is worth pairs, and the metrics that they should measure."""

    case_id: str
    metrics: Collection[Metric]
    more: int = 0  # pairs that are asked for
    later: bool = False  # they are only counted in what is left
    # The largest worsening in the screening, in half widths of its interval; infinite where that has none.
    doubt: float = field(default=0.0, compare=False)
    # The compile did the stored baseline's work: the same code, the same counters. Both arms then begin with
    # the caches of head's own trial. One whose code differs finds nothing of use there, and compiles untimed.
    unchanged_code: bool = field(default=False, compare=False)
    # What stored values say of what only a change of the program moves: one pair that says so is enough.
    seen: Mapping[Metric, Status] = field(default_factory=dict, compare=False)
    thorough: bool = field(default=False, compare=False)  # all is asked for, though pairs have convicted it
    convicted: bool = field(default=False, compare=False)  # by pairs


def list_suspects(screening: Screening, *, thorough: bool = False) -> tuple[Suspect, ...]:
    """The cases whose metrics look changed or could not be judged, in the plan's order.

    What looks better than stored values is suspect, too: a change may give back what an earlier one gained.
    A case that failed or did not run is no suspect: it is INCOMPLETE whatever pairs say.
    """
    grouped = group_cases(screening.comparisons)
    found = []
    for one in screening.evidence:
        if not one.trials or one.failures:
            continue
        rows = {row.metric: row for row in grouped.get(one.case.id, ())}
        metrics = _list_suspicious(rows)
        if metrics:
            found.append(
                Suspect(
                    case_id=one.case.id,
                    metrics=metrics,
                    doubt=_measure_doubt(rows, metrics),
                    unchanged_code=is_code_changed(one) is False and not has_other_counts(one),
                    seen={metric: rows[metric].status for metric in metrics if _is_exact(metric)},
                    thorough=thorough,
                )
            )
    return tuple(found)


def list_unsettled(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[Suspect, ...]:
    """The cases that need pairs up to the next of the LOOKS; without ``suspects``, of the whole plan.

    A case that failed in either arm, or that the base lacks or defines otherwise, needs none; nor does one
    that is convicted, unless its suspect is ``thorough``: what convicts it shows its size as well, to about
    half of it, and nothing else of it changes the outcome. Once a case is convicted the outcome is certain:
    another one that had SETTLING_PAIRS, and looks no slower than its thresholds, waits as well.
    """
    policy = keep_own(policy, run.environment)
    sides, rules = gather_judged(run, policy, suspects)
    failed = {failure.case_id for failure in run.failures}
    alike = list_alike(run)
    wanted = {one.case_id: one for one in suspects or ()}
    found, idle, is_red = [], set(), False
    for side in sides:
        case = side.case
        if case.id in failed or case.id not in alike:
            continue
        asked = wanted.get(case.id, Suspect(case_id=case.id, metrics=NOISY_DECIDING, thorough=True))
        rows = compare_paired(side, rules, asked.seen) if side.paired else ()
        open_rows = [row for row in rows if _is_open(row, asked)]
        metrics = tuple(row.metric for row in open_rows) if rows else asked.metrics
        convicted = _is_convicted(rows, asked, policy)
        is_red = is_red or convicted
        if metrics and (asked.thorough or not convicted):
            found.append(replace(asked, metrics=metrics, convicted=convicted))
        # It had the pairs that settle most, and what they left open looks no worse than it may.
        is_calm = all(row.pairs >= SETTLING_PAIRS and row.severity <= 1.0 for row in open_rows)
        if open_rows and is_calm and not asked.thorough:
            idle.add(case.id)
    return tuple(one for one in found if not is_red or one.case_id not in idle)


def rank_suspect(one: Suspect, pairs: int, seconds: float, *, untouched: bool) -> tuple[float, ...]:
    """Rank an open case that has so many pairs and takes so long to be settled; the smallest is next.

    What is begun is brought to SETTLING_PAIRS, then what promises most a second is begun: where time is
    short, some cases are settled and not all begun. Then those with the fewest pairs. What is ``untouched``,
    so imports nothing that changed, waits for all others, unless stored values doubt it. What is convicted
    comes last, since no pair of it changes the outcome.
    """
    turn = pairs if pairs >= SETTLING_PAIRS else -min(pairs, 1)
    gain = 1.0 + max(one.doubt, 0.0)  # it may be the one that is worse, the more so the worse it looks
    return one.convicted, untouched and one.doubt <= 0, turn, -gain / seconds


def gather_judged(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[tuple[CasePairs, ...], PairRules]:
    """The sides of the suspects, or of the whole plan, and the rules that their number asks for.

    In a shard all that the others may ask counts too: what is settled there is to be so when they are joined.
    """
    if suspects is None:
        sides = gather_case_pairs(run, policy)
        tests = sum(metric in side.questions for side in sides for metric in LEADING)
    else:
        sides = gather_case_pairs(run, policy, [one.case_id for one in suspects])
        alike = list_alike(run)  # what the base lacks, or defines otherwise, gets no pair and no test
        tests = sum(metric in one.metrics for one in suspects if one.case_id in alike for metric in LEADING)
    elsewhere = max(0, run.shard.cases - len(run.cases)) if run.shard else 0
    return sides, make_pair_rules(sides, policy, tests + elsewhere * len(LEADING))


def _list_suspicious(rows: Mapping[Metric, Comparison]) -> tuple[Metric, ...]:
    found = {
        metric
        for metric, row in rows.items()
        if row.decides and row.status in (MOVED if _is_exact(metric) else _OPEN)
    }
    calls = {Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP}
    if found & calls:
        found |= calls
    return tuple(metric for metric in SPECS if metric in found)


def _is_exact(metric: Metric) -> bool:
    return SPECS[metric].family is not Family.NOISY


def _measure_doubt(rows: Mapping[Metric, Comparison], metrics: Sequence[Metric]) -> float:
    doubts = [0.0]
    for change in (rows[metric].change for metric in metrics if metric in rows):
        if change and change.high > change.centre:
            doubts.append(change.centre / (change.high - change.centre))
        elif change and change.centre > 0:
            doubts.append(math.inf)
    return max(doubts)


def _is_open(row: Comparison, asked: Suspect) -> bool:
    """Whether the pairs so far have not settled it, and it is asked about or has to be seen again."""
    if not (row.decides and row.waits_for_pairs and row.pairs < LOOKS[-1]):
        return False
    if not _is_exact(row.metric):
        return row.metric in LEADING and row.metric in asked.metrics
    # What got better in one pair is seen again where all is asked about.
    is_better = row.change is not None and row.change.centre < 0
    return asked.thorough or row.metric in asked.seen or not is_better


def _is_convicted(rows: Sequence[Comparison], asked: Suspect, policy: Policy) -> bool:
    counted = apply_quarantine(apply_acceptances(rows, policy), policy)
    return any(
        row.decides
        and row.status is Status.REGRESSED
        and (row.metric in asked.metrics or _is_exact(row.metric))
        for row in counted
    )


def list_unchanged_sources(
    screening: Screening, run: Run, suspects: Sequence[Suspect]
) -> tuple[Suspect, ...]:
    """List the suspects of whose program nothing differs from the base's.

    Operators that are not torch's may be built apart from what is imported. Only times are cleared so, and
    only those that were judged: what else is open is looked at in pairs all the same.
    """
    if run.base is None or run.base.other_changes is None or run.base.other_changes:
        return ()
    trials = group_cases(trial for trial in run.trials if trial.pairing is Pairing.ALONE)
    evidence = {one.case.id: one for one in screening.evidence}
    unjudged = {(row.case_id, row.metric) for row in screening.comparisons if row.status in UNJUDGED}
    return tuple(
        one
        for one in suspects
        if one.unchanged_code
        and not one.thorough
        and all(trial.changed_imports == () for trial in trials.get(one.case_id, ()))
        and not is_other_workload(evidence[one.case_id])
        and has_torch_calls_alone(evidence[one.case_id])
        and not any(map(_is_exact, one.metrics))
        and unjudged.isdisjoint((one.case_id, metric) for metric in one.metrics)
    )


def clear_unchanged_sources(screening: Screening, same: Sequence[Suspect]) -> Screening:
    """Clear what made these suspect: what stored baselines see in their times is not head's doing."""
    wanted = {one.case_id: one.metrics for one in same}
    rows = tuple(
        replace(row, status=Status.UNCHANGED, reason=Reason.UNCHANGED_SOURCES)
        if row.status in MAYBE_WORSE and row.metric in wanted.get(row.case_id, ())
        else row
        for row in screening.comparisons
    )
    return replace(screening.revise(rows), same=tuple(wanted))
