"""Which cases are worth pairs with the base, and what stored values and head's own trials show of them."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.decide.constants import LIVE_PAIR_SD, MIN_BASELINE_TRIALS, TWO_SPEEDS
from gate.decide.evidence.compiles import (
    has_other_counts,
    has_torch_calls_alone,
    is_code_changed,
    is_other_workload,
)
from gate.decide.evidence.gather import Evidence
from gate.decide.judge.counted import count_repeats
from gate.decide.judge.pairs import NOT_SCREENED, Screened
from gate.decide.judge.screening import Screening
from gate.decide.stats import compute_logs, compute_variance, pool_variances
from gate.metrics import GRAPH_COUNTERS, SPECS, Family
from gate.records.cases import Metric, group_cases
from gate.records.run import Pairing, Run
from gate.records.verdict import MAYBE_WORSE, MOVED, UNJUDGED, Comparison, Reason, Status

CALLS = frozenset({Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP})  # one is not judged without the other


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """A case that is worth pairs with the base: what they should measure, and how far it is."""

    case_id: str
    metrics: Collection[Metric]
    # The compile did the stored baseline's work: the same code, the same counters. Both arms then begin with
    # the caches of head's own trial. One whose code differs finds nothing of use there, and compiles untimed.
    unchanged_code: bool = field(default=False, compare=False)
    thorough: bool = field(default=False, compare=False)  # all is asked for, though pairs have convicted it
    screened: Screened = field(default=NOT_SCREENED, compare=False)
    convicted: bool = field(default=False, compare=False)  # by pairs
    slower: bool = field(default=False, compare=False)  # calls look it, in too few pairs to tell
    more: int = 0  # pairs that are asked for next
    later: bool = False  # not next: their time is only kept free


def list_suspects(screening: Screening, *, thorough: bool = False) -> tuple[Suspect, ...]:
    """In the plan's order.

    What looks better than stored values is suspect, too: a change may lose what an earlier one gained.
    """
    grouped = group_cases(screening.comparisons)
    repeats = count_repeats(question for case in screening.evidence for question in case.questions.values())
    suspects = []
    for evidence in screening.evidence:
        rows = {row.metric: row for row in grouped.get(evidence.case.id, ())}
        if not evidence.failures and (metrics := _list_suspect_metrics(rows)):
            screened = Screened(
                seen=_collect_seen(evidence, [rows[metric] for metric in metrics if metric in rows]),
                is_steady=_is_steady(evidence),
                repeats=repeats,
                doubt=_measure_doubt(rows, metrics),
                slower=any(rows[call].status is Status.REGRESSED for call in CALLS & rows.keys()),
            )
            suspect = Suspect(
                case_id=evidence.case.id,
                metrics=metrics,
                unchanged_code=is_code_changed(evidence) is False and not has_other_counts(evidence),
                screened=screened,
                thorough=thorough,
            )
            suspects.append(suspect)
    return tuple(suspects)


def _list_suspect_metrics(rows: Mapping[Metric, Comparison]) -> tuple[Metric, ...]:
    deciding = (row for row in rows.values() if row.decides and not row.is_of_whole_case)
    metrics = {row.metric for row in deciding if row.status is not Status.UNCHANGED}
    metrics |= {time for metric in metrics for time in SPECS[metric].stands_for}
    if metrics & CALLS:
        metrics |= CALLS
    return tuple(metric for metric in SPECS if metric in metrics)


def _is_steady(evidence: Evidence) -> bool:
    """Not where two groups of stored latencies each vary much less than all together."""
    question = evidence.questions.get(Metric.COMPILED_LATENCY)
    if question is None or question.logs is None or len(question.before) < MIN_BASELINE_TRIALS:
        return False
    logs = sorted(compute_logs(question.before))
    groups = [(logs[:size], logs[size:]) for size in range(1, len(logs))]
    within = min(pool_variances(*map(compute_variance, both)).value for both in groups)
    whole = compute_variance(logs).value
    return whole <= LIVE_PAIR_SD**2 or within > TWO_SPEEDS * whole


def _collect_seen(evidence: Evidence, rows: Iterable[Comparison]) -> Mapping[Metric, Status | float]:
    """Where stored values see it move; of graph counters, what all trials count and no stored one reaches."""
    moved = {row.metric: row.status for row in rows if is_exact(row.metric) and row.status in MOVED}
    if {trial.pairing for trial in evidence.trials} != {Pairing.ALONE}:
        return moved
    stored, counted = [match.baseline.trials for match in evidence.stored], {}
    for metric in GRAPH_COUNTERS:
        match [*{*evidence.values.get(metric, ())}]:
            case [count] if all(before < count for trials in stored for before in trials.get(metric, ())):
                counted[metric] = count
    return {**counted, **moved}


def clear_unchanged_sources(screening: Screening, run: Run) -> Screening:
    """Clear the times of the suspects whose program is the base's.

    Operators that are not torch's may be built apart from what is imported. Only times that were judged are
    cleared: what else is open gets pairs.
    """
    if run.base is None or run.base.other_changes is None or run.base.other_changes:
        return screening
    trials = group_cases(trial for trial in run.trials if trial.pairing is Pairing.ALONE)
    evidence = {evidence.case.id: evidence for evidence in screening.evidence}
    unjudged = {(row.case_id, row.metric) for row in screening.comparisons if row.status in UNJUDGED}
    same = {
        suspect.case_id: suspect.metrics
        for suspect in list_suspects(screening)
        if suspect.unchanged_code
        and all(trial.changed_imports == () for trial in trials.get(suspect.case_id, ()))
        and not is_other_workload(evidence[suspect.case_id])
        and has_torch_calls_alone(evidence[suspect.case_id])
        and not any(map(is_exact, suspect.metrics))
        and unjudged.isdisjoint((suspect.case_id, metric) for metric in suspect.metrics)
    }
    rows = tuple(
        replace(row, status=Status.UNCHANGED, reason=Reason.UNCHANGED_SOURCES)
        if row.status in MAYBE_WORSE and row.metric in same.get(row.case_id, ())
        else row
        for row in screening.comparisons
    )
    revised = screening.revise(rows)
    return replace(revised, base=replace(revised.base, same=tuple(same)))


def is_exact(metric: Metric) -> bool:
    return SPECS[metric].family is not Family.NOISY


def _measure_doubt(rows: Mapping[Metric, Comparison], metrics: Sequence[Metric]) -> float:
    doubts = [0.0]
    for change in (rows[metric].change for metric in metrics if metric in rows):
        if change and change.high > change.centre:
            doubts.append(change.centre / (change.high - change.centre))
        elif change and change.centre > 0:
            doubts.append(math.inf)
    return max(doubts)
