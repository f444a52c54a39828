"""Side by side: which cases get pairs with the base, which need more, and what pairs decide."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.decide.conclude.accept import apply_acceptances, apply_quarantine, keep_own
from gate.decide.constants import LOOKS, SETTLING_PAIRS
from gate.decide.evidence.pairs import list_alike
from gate.decide.evidence.programs import (
    has_other_counts,
    has_torch_calls_alone,
    is_code_changed,
    is_other_workload,
)
from gate.decide.evidence.values import Evidence, find_base_cases
from gate.decide.judge.pairs import CasePairs, PairRules, compare_paired, gather_case_pairs, make_pair_rules
from gate.decide.judge.stored import Machine
from gate.decide.verdict import Screening, conclude_verdict
from gate.metrics import DECIDING, GRAPH_COUNTERS, LEADING, SPECS, Family
from gate.records.cases import Metric, Policy, group_cases
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, Pairing, Run
from gate.records.verdict import (
    BROKEN,
    MAYBE_WORSE,
    MOVED,
    NOT_WORSE,
    UNJUDGED,
    Comparison,
    Reason,
    Status,
    Verdict,
)

_CALLS = frozenset({Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP})  # one is not judged without the other


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
    # What head's own trials say of what only a change of the program moves: one pair that says so is enough.
    seen: Mapping[Metric, Status | float] = field(default_factory=dict, compare=False)
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
        open_metrics = {
            metric
            for metric, row in rows.items()
            if row.decides and row.status is not Status.UNCHANGED and not row.is_of_whole_case
        }
        if open_metrics & _CALLS:
            open_metrics |= _CALLS
        metrics = tuple(metric for metric in SPECS if metric in open_metrics)
        if metrics:
            found.append(
                Suspect(
                    case_id=one.case.id,
                    metrics=metrics,
                    doubt=_measure_doubt(rows, metrics),
                    unchanged_code=is_code_changed(one) is False and not has_other_counts(one),
                    seen=_find_seen(one, [rows[metric] for metric in metrics if metric in rows]),
                    thorough=thorough,
                )
            )
    return tuple(found)


def _find_seen(evidence: Evidence, rows: Iterable[Comparison]) -> Mapping[Metric, Status | float]:
    """How stored values see it move; of graphs, what all trials count where no stored one counts as much."""
    moved = {row.metric: row.status for row in rows if _is_exact(row.metric) and row.status in MOVED}
    if any(trial.pairing is not Pairing.ALONE for trial in evidence.trials):
        return moved
    stored = [one.baseline.trials for one in evidence.stored]
    counted = {
        metric: counts[0]
        for metric in GRAPH_COUNTERS
        if len({*(counts := evidence.values.get(metric, ()))}) == 1
        and all(count < counts[0] for trials in stored for count in trials.get(metric, ()))
    }
    return {**counted, **moved}


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
        asked = wanted.get(case.id, Suspect(case_id=case.id, metrics=DECIDING, thorough=True))
        rows = compare_paired(side, rules, asked.seen) if side.paired else ()
        open_rows = [row for row in rows if _is_open(row, asked)]
        metrics = tuple(row.metric for row in open_rows) if rows else asked.metrics
        convicted = any(
            row.decides
            and row.status is Status.REGRESSED
            and (row.metric in asked.metrics or _is_exact(row.metric))
            for row in apply_quarantine(apply_acceptances(rows, policy), policy)
        )
        is_red = is_red or convicted
        if metrics and (asked.thorough or not convicted):
            found.append(replace(asked, metrics=metrics, convicted=convicted))
        # It had the pairs that settle most, and what they left open looks no worse than it may.
        is_calm = all(row.pairs >= SETTLING_PAIRS and row.severity <= 1.0 for row in open_rows)
        if open_rows and is_calm and not asked.thorough:
            idle.add(case.id)
    return tuple(one for one in found if not is_red or one.case_id not in idle)


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


def clear_unchanged_sources(screening: Screening, run: Run) -> Screening:
    """Clear the times of the suspects of whose program nothing differs from the base's.

    What stored baselines see in them is not head's doing. Operators that are not torch's may be built apart
    from what is imported. Only times are cleared so, and only those that were judged: what else is open is
    looked at in pairs all the same.
    """
    if run.base is None or run.base.other_changes is None or run.base.other_changes:
        return screening
    trials = group_cases(trial for trial in run.trials if trial.pairing is Pairing.ALONE)
    evidence = {one.case.id: one for one in screening.evidence}
    unjudged = {(row.case_id, row.metric) for row in screening.comparisons if row.status in UNJUDGED}
    same = {
        one.case_id: one.metrics
        for one in list_suspects(screening)
        if one.unchanged_code
        and all(trial.changed_imports == () for trial in trials.get(one.case_id, ()))
        and not is_other_workload(evidence[one.case_id])
        and has_torch_calls_alone(evidence[one.case_id])
        and not any(map(_is_exact, one.metrics))
        and unjudged.isdisjoint((one.case_id, metric) for metric in one.metrics)
    }
    rows = tuple(
        replace(row, status=Status.UNCHANGED, reason=Reason.UNCHANGED_SOURCES)
        if row.status in MAYBE_WORSE and row.metric in same.get(row.case_id, ())
        else row
        for row in screening.comparisons
    )
    return replace(screening.revise(rows), same=tuple(same))


# Reasons for missing pairs that an unjudged row states already.
_NO_COUNTERPART = frozenset({Code.BASE_LACKS_CASE, Code.BASE_DEFINES_OTHERWISE})


def judge_pairs(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[Comparison, ...]:
    """Compare head with base by pairs: the suspects' cases, or the whole plan.

    Of a suspect's times only those that it names count, as in a check: what else its pairs happened to
    measure got no pairs of its own.
    """
    sides, rules = gather_judged(run, policy, suspects)
    asked = {one.case_id: one.metrics for one in suspects or ()}
    rows = (row for side in sides for row in compare_paired(side, rules))
    return tuple(
        row for row in rows if suspects is None or row.metric in asked[row.case_id] or _is_exact(row.metric)
    )


def confirm_screening(
    screening: Screening, run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> Screening:
    """Replace what the screen said of its suspects, or of these, by what their pairs with the base say.

    Where no pair came back nothing is convicted: what looks worse is INCONCLUSIVE, and says why no pair
    looked at it.
    """
    suspects = list_suspects(screening) if suspects is None else suspects
    if run.base is None or not suspects:
        return screening
    sides, rules = gather_judged(run, policy, suspects)
    wanted = {one.case_id: one for one in suspects}
    rows = {
        (row.case_id, row.metric): row
        for side in sides
        for row in compare_paired(side, rules, wanted[side.case.id].seen)
    }
    comparisons = tuple(
        _confirm_row(row, rows.get((row.case_id, row.metric)), wanted[row.case_id], run)
        if row.case_id in wanted
        else row
        for row in screening.comparisons
    )
    # What the base measures and no trial of head does, unless a stored value has shown it already.
    heads = ((one.case_id, metric) for one in run.trials if one.arm != BASE_ARM for metric in one.samples)
    known = {*heads, *((row.case_id, row.metric) for row in comparisons)}
    lost = (row for key, row in rows.items() if row.reason is Reason.NOT_MEASURED and key not in known)
    paired = {side.case.id: side for side in sides if side.paired}
    return replace(screening.revise((*comparisons, *lost)), sides=paired)


def decide_side_by_side(run: Run, policy: Policy) -> Verdict:
    """Judge a run in which every case ran in pairs with the base; nothing stored is needed."""
    sides, rules = gather_judged(run, policy)
    rows = tuple(row for side in sides for row in compare_paired(side, rules))
    screening = Screening(evidence=sides, comparisons=rows, machine=Machine(), in_pairs=True)
    return conclude_verdict(run, screening, policy)


def _confirm_row(row: Comparison, paired: Comparison | None, asked: Suspect, run: Run) -> Comparison:
    """The pairs' comparison where there is one that should count, else the screen's."""
    # It measured this and that before it failed, or ended too early; or head lacks what is stored.
    if row.is_of_whole_case or row.status is Status.MISSING:
        return row
    if paired is not None and not paired.pairs and row.status in UNJUDGED and _is_exact(row.metric):
        return row  # the base does not have it either
    is_asked = row.metric in asked.metrics
    follows = row.metric is Metric.EAGER_LATENCY and Metric.COMPILED_LATENCY in asked.metrics
    # Nothing stored was compared, but at most an absolute limit.
    is_new = row.status in UNJUDGED or (row.reason is Reason.LIMIT_EXCEEDED and row.baseline is None)
    if paired is not None and paired.pairs and (is_asked or follows or is_new or _is_shown(paired)):
        if _flickers(row, paired):
            return replace(paired, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED)
        return _remark_stored(paired, row)
    return _withhold(row, _explain_absence(run, row.case_id)) if is_asked else row


def _remark_stored(paired: Comparison, stored: Comparison) -> Comparison:
    """Say how much worse than the stored baseline it is, where that is more than pairs show.

    Earlier changes did the rest: what accepted.yml allows, it allows in all.
    """
    if paired.status not in MAYBE_WORSE or stored.status not in MAYBE_WORSE or stored.baseline is None:
        return paired
    before, now = stored.change, paired.change
    if before is None or now is None or before.centre <= now.centre or stored.has_remark(Code.SINCE_UPGRADE):
        return paired
    fact = Fact(code=Code.SINCE_STORED, numbers={"change": before.centre})
    return replace(paired, remarks=(*paired.remarks, fact))


def _flickers(row: Comparison, paired: Comparison) -> bool:
    """Whether head's own trials counted more than is stored, some or all, and its pairs not the same."""
    own, head, base = row.candidate, paired.candidate, paired.baseline
    if paired.status not in NOT_WORSE or not (own and head and base):
        return False
    if row.status is Status.REGRESSED:
        return SPECS[row.metric].family is Family.EXACT and own.centre != head.centre
    is_open = row.metric in GRAPH_COUNTERS and row.status in MAYBE_WORSE | UNJUDGED
    return is_open and (own.high or own.centre) > (base.high or base.centre)


def _is_shown(paired: Comparison) -> bool:
    """Whether most pairs show something exact worse without being asked: what is stored is older, say."""
    change = paired.change
    if not _is_exact(paired.metric) or paired.status not in MAYBE_WORSE or change is None:
        return False
    least = 0.0 if SPECS[paired.metric].family is Family.LOG2 else change.detectable
    return change.centre > 0 and change.centre >= least


def _withhold(row: Comparison, why: Code) -> Comparison:
    """Let no stored value decide where a base was asked for: what others merged since moved it as well.

    Nor does it clear what pairs had no time for: the case is suspect because a change could hide in what is
    stored, or because nothing is. A limit needs no base.
    """
    if row.status in BROKEN or (row.status in UNJUDGED and why in _NO_COUNTERPART):
        return row
    row = replace(row, remarks=(*row.remarks, Fact(code=why)))
    is_open = row.status is Status.INCONCLUSIVE or row.reason is Reason.LIMIT_EXCEEDED
    if is_open or (row.status is not Status.REGRESSED and why is not Code.NO_PAIR):
        return row
    return replace(row, status=Status.INCONCLUSIVE, reason=Reason.UNPAIRED, found=row.reason)


def _explain_absence(run: Run, case_id: str) -> Code:
    if case_id not in find_base_cases(run):
        return Code.BASE_LACKS_CASE
    if case_id not in list_alike(run):
        return Code.BASE_DEFINES_OTHERWISE
    if any(one.case_id == case_id and one.arm == BASE_ARM for one in run.failures):
        return Code.BASE_FAILED
    return Code.NO_PAIR
