"""Which cases get pairs with the base, which need more, and what pairs decide."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from gate.decide.conclude.accept import apply_acceptances, apply_quarantine, keep_own
from gate.decide.constants import LOOKS, MOVED_WIDTHS, SETTLING_PAIRS
from gate.decide.judge.compare import follow_times
from gate.decide.judge.machine import Machine
from gate.decide.judge.pairs import CasePairs, PairRules, compare_paired, gather_case_pairs, make_pair_rules
from gate.decide.judge.screening import BaseFindings, Screening
from gate.decide.suspects import CALLS, Suspect, is_exact
from gate.decide.verdict import conclude_verdict
from gate.fingerprint import compute_environment_id
from gate.metrics import COMPILE_TIMES, DECIDING, GRAPH_COUNTERS, LEADING, OF_COMPILES, SPECS, Family
from gate.records.cases import Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, Run, Trial
from gate.records.verdict import MAYBE_WORSE, NOT_WORSE, UNJUDGED, Change, Comparison, Reason, Status, Verdict

# Reasons for missing pairs that an unjudged row states already.
_NO_COUNTERPART = frozenset({Code.BASE_LACKS_CASE, Code.BASE_DEFINES_OTHERWISE})


def list_unsettled(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None, *, fail_fast: bool = False
) -> tuple[Suspect, ...]:
    """The cases that need pairs up to the next of the LOOKS; without ``suspects``, of the whole plan.

    A convicted one needs them only for its latency, up to SETTLING_PAIRS, unless it is ``thorough``; if
    counts alone convict it, for its compile times as well. Then others that had SETTLING_PAIRS and look no
    slower than their thresholds wait; with ``fail_fast`` all do. While calls look slower than their
    threshold, up to SETTLING_PAIRS, no compile is timed: a conviction by them spares it.
    """
    sides, rules = gather_judged(run, policy, suspects)
    policy = keep_own(policy, compute_environment_id(run.environment))
    failed = {failure.case_id for failure in run.failures}
    given = {suspect.case_id: suspect for suspect in suspects or ()}
    unsettled, idle, is_red = [], set(), False
    for side in sides:
        case = side.case
        if case.id in failed or not side.is_alike_in_base:
            continue
        suspect = given.get(case.id, Suspect(case_id=case.id, metrics=DECIDING, thorough=True))
        rows = follow_times(compare_paired(side, rules)) if side.paired else ()
        open_rows = [row for row in rows if _is_open(row, suspect, rules)]
        convicting = _list_convicting(rows, suspect, policy)
        is_red = is_red or bool(convicting)
        slower = _looks_slower(open_rows) if rows else suspect.screened.slower
        suspect = replace(suspect, convicted=bool(convicting), slower=slower)
        spared = OF_COMPILES if slower and not suspect.thorough else frozenset()
        if convicting and not suspect.thorough:
            metrics = _list_open_of_convicted(suspect, rows, open_rows, convicting)
        else:
            metrics = _list_open(suspect, rows, open_rows)
        metrics = tuple(metric for metric in metrics if metric not in spared)
        if metrics:
            unsettled.append(replace(suspect, metrics=metrics))
        # It had the pairs that settle most, and what they left open looks no worse than it may.
        is_calm = all(row.pairs >= SETTLING_PAIRS and row.severity <= 1.0 for row in open_rows)
        if open_rows and is_calm and not suspect.thorough:
            idle.add(case.id)
    if is_red and fail_fast:
        return ()
    return tuple(suspect for suspect in unsettled if not is_red or suspect.case_id not in idle)


def _list_convicting(rows: Sequence[Comparison], suspect: Suspect, policy: Policy) -> tuple[Metric, ...]:
    judged = apply_quarantine(apply_acceptances(rows, policy), policy)
    regressed = (row.metric for row in judged if row.decides and row.status is Status.REGRESSED)
    return tuple(metric for metric in regressed if metric in suspect.metrics or is_exact(metric))


def _list_open_of_convicted(
    suspect: Suspect,
    rows: Sequence[Comparison],
    open_rows: Sequence[Comparison],
    convicting: Collection[Metric],
) -> tuple[Metric, ...]:
    """Calls, up to SETTLING_PAIRS.

    Where counts alone convict, compiles are timed as often, so that one acceptance covers their cost.
    """
    by_counts = all(map(is_exact, convicting))
    wanted = [row for row in open_rows if by_counts or row.metric in CALLS]
    metrics = {row.metric for row in wanted}
    unseen = _list_unseen_compiles(suspect, rows, metrics) if by_counts else frozenset()
    is_begun = bool(unseen) or any(row.pairs < SETTLING_PAIRS for row in wanted)
    return tuple(metric for metric in SPECS if metric in metrics | unseen) if is_begun else ()


def _list_open(
    suspect: Suspect, rows: Sequence[Comparison], open_rows: Sequence[Comparison]
) -> tuple[Metric, ...]:
    """The open metrics that further pairs measure; all that are asked for before the first pair."""
    metrics = {row.metric for row in open_rows} if rows else {*suspect.metrics}
    unseen = _list_unseen_compiles(suspect, rows, metrics)
    return tuple(metric for metric in SPECS if metric in metrics | unseen)


def _list_unseen_compiles(
    suspect: Suspect, rows: Sequence[Comparison], metrics: Collection[Metric]
) -> frozenset[Metric]:
    """What waited while calls looked slower: no pair has it. With a time, the calls of the compile."""
    if not rows or not suspect.screened.slower:
        return frozenset()
    seen = {row.metric for row in rows}
    unseen = OF_COMPILES.intersection(suspect.metrics) - seen
    is_timed = not unseen.union(metrics).isdisjoint(COMPILE_TIMES)
    return unseen | ({Metric.COMPILE_CALLS} - seen if is_timed else frozenset())


def _looks_slower(open_rows: Sequence[Comparison]) -> bool:
    return any(row.metric in CALLS and row.pairs < SETTLING_PAIRS and row.severity > 1.0 for row in open_rows)


def gather_judged(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[tuple[CasePairs, ...], PairRules]:
    """A shard counts what the other shards may ask, too, so that joining them changes no result."""
    screened = None if suspects is None else {suspect.case_id: suspect.screened for suspect in suspects}
    sides = gather_case_pairs(run, policy, screened)
    if suspects is None:
        times, cases = sum(metric in side.questions for side in sides for metric in LEADING), len(sides)
    else:
        # What the base lacks, or defines otherwise, gets no pair and no test.
        alike = {side.case.id for side in sides if side.is_alike_in_base}
        tested = [suspect.metrics for suspect in suspects if suspect.case_id in alike]
        times, cases = sum(metric in metrics for metrics in tested for metric in LEADING), len(tested)
    if run.shard:
        elsewhere = run.shard.cases - len(run.cases)
        times, cases = times + elsewhere * len(LEADING), cases + elsewhere
    repeats = next((suspect.screened.repeats for suspect in suspects or ()), {})
    return sides, make_pair_rules(sides, policy, repeats, times=times, cases=cases)


def _is_open(row: Comparison, suspect: Suspect, rules: PairRules) -> bool:
    if not (row.decides and row.waits_for_pairs and row.pairs < LOOKS[-1]):
        return False
    if not is_exact(row.metric):
        return row.metric in LEADING and row.metric in suspect.metrics
    # What got better in one pair is measured again only where all is asked for, or where it flickers.
    is_better = row.change is not None and row.change.centre < 0 and row.metric not in rules.counts.varied
    return suspect.thorough or row.metric in suspect.screened.seen or not is_better


def judge_pairs(
    run: Run, policy: Policy, suspects: Sequence[Suspect] | None = None
) -> tuple[Comparison, ...]:
    """Of a suspect's times only those that it names count: others got no pairs of their own."""
    sides, rules = gather_judged(run, policy, suspects)
    asked = {suspect.case_id: suspect.metrics for suspect in suspects or ()}
    rows = (row for side in sides for row in compare_paired(side, rules))
    return tuple(
        row for row in rows if suspects is None or row.metric in asked[row.case_id] or is_exact(row.metric)
    )


def confirm_screening(
    screening: Screening, run: Run, policy: Policy, suspects: Sequence[Suspect]
) -> Screening:
    """Replace the suspects' comparisons of the screen by those of their pairs with the base.

    Where no pair came back nothing is convicted.
    """
    if run.base is None:
        return screening
    sides, rules = gather_judged(run, policy, suspects)
    wanted = {suspect.case_id: suspect for suspect in suspects}
    base_failed = {failure.case_id for failure in run.failures if failure.arm == BASE_ARM}
    why = {side.case.id: _explain_absence(side, base_failed) for side in sides}
    rows = {(row.case_id, row.metric): row for side in sides for row in compare_paired(side, rules)}
    comparisons = tuple(
        _confirm_row(row, rows.get((row.case_id, row.metric)), wanted[row.case_id], why[row.case_id], rules)
        if row.case_id in wanted
        else row
        for row in screening.comparisons
    )
    lost = _list_lost(rows, comparisons, run.trials)
    revised = screening.revise((*comparisons, *lost))
    paired = {side.case.id: side for side in sides if side.paired}
    return replace(revised, base=replace(revised.base, sides=paired))


def _list_lost(
    rows: Mapping[tuple[str, Metric], Comparison], comparisons: Iterable[Comparison], trials: Iterable[Trial]
) -> list[Comparison]:
    """What the base measures and no trial of head does, unless a stored value has shown it already."""
    heads = [trial for trial in trials if trial.arm != BASE_ARM]
    shown = {(trial.case_id, metric) for trial in heads for metric in trial.samples}
    shown |= {(row.case_id, row.metric) for row in comparisons}
    return [row for key, row in rows.items() if row.reason is Reason.NOT_MEASURED and key not in shown]


def decide_side_by_side(run: Run, policy: Policy) -> Verdict:
    sides, rules = gather_judged(run, policy)
    rows = tuple(row for side in sides for row in compare_paired(side, rules))
    base = BaseFindings(in_pairs=True)
    screening = Screening(evidence=sides, comparisons=rows, machine=Machine(), places={}, base=base)
    return conclude_verdict(run, screening, policy)


def _confirm_row(
    row: Comparison, paired: Comparison | None, suspect: Suspect, absence: Code, rules: PairRules
) -> Comparison:
    # It measured this and that before it failed, or ended too early; or head lacks what is stored.
    if row.is_of_whole_case or row.status is Status.MISSING:
        return row
    if paired is not None and not paired.pairs and row.status in UNJUDGED and is_exact(row.metric):
        # Either the base does not have it, or head no longer in pairs.
        return paired if paired.status is Status.MISSING else row
    is_asked = row.metric in suspect.metrics
    follows = row.metric is Metric.EAGER_LATENCY and Metric.COMPILED_LATENCY in suspect.metrics
    # Nothing stored was compared, but at most the limit of drift.
    is_new = row.status in UNJUDGED or row.baseline is None
    if paired is not None and paired.pairs and (is_asked or follows or is_new or _is_shown(paired)):
        if row.metric not in rules.counts.flickering and _flickers(row, paired):
            return replace(paired, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED)
        return _remark_stored(paired, row)
    return _withhold(row, absence) if is_asked else row


def _remark_stored(paired: Comparison, stored: Comparison) -> Comparison:
    """What accepted.yml allows counts from the stored baseline: earlier changes are in it."""
    if paired.status not in MAYBE_WORSE or stored.status not in MAYBE_WORSE or stored.baseline is None:
        return paired
    before, now = stored.change, paired.change
    if before is None or now is None or before.centre <= now.centre or stored.has_remark(Code.SINCE_UPGRADE):
        return paired
    is_noisy = SPECS[stored.metric].family is Family.NOISY
    low = _compute_least(before, now) if is_noisy else before.centre
    fact = Fact(code=Code.SINCE_STORED, numbers={"change": before.centre, "low": low})
    return replace(paired, remarks=(*paired.remarks, fact))


def _compute_least(stored: Change, paired: Change) -> float:
    """The pairs' change and the base's sure share of it."""
    widths = (math.log1p(change.centre) - math.log1p(change.low) for change in (stored, paired))
    return math.expm1(math.log1p(stored.centre) - MOVED_WIDTHS * math.hypot(*widths))


def _flickers(row: Comparison, paired: Comparison) -> bool:
    """Head's own trials counted more than is stored, some or all, but its pairs did not."""
    alone, head, base = row.candidate, paired.candidate, paired.baseline
    if paired.status not in NOT_WORSE or not (alone and head and base):
        return False
    if row.status is Status.REGRESSED:
        return SPECS[row.metric].family is Family.EXACT and alone.centre != head.centre
    is_open = row.metric in GRAPH_COUNTERS and row.status in MAYBE_WORSE | UNJUDGED
    return is_open and (alone.high or alone.centre) > (base.high or base.centre)


def _is_shown(paired: Comparison) -> bool:
    """Most pairs show something exact worse that was not asked for: stored values may be older."""
    change = paired.change
    if not is_exact(paired.metric) or paired.status not in MAYBE_WORSE or change is None:
        return False
    if SPECS[paired.metric].family is Family.LOG2:
        return change.centre > 0
    return change.centre >= change.detectable


def _withhold(row: Comparison, why: Code) -> Comparison:
    """Stored values decide nothing where a base was asked for: other changes moved them as well."""
    if row.status in UNJUDGED and why in _NO_COUNTERPART:
        return row
    row = replace(row, remarks=(*row.remarks, Fact(code=why)))
    is_open = row.status is Status.INCONCLUSIVE or row.reason is Reason.LIMIT_EXCEEDED
    if is_open or (row.status is not Status.REGRESSED and why is not Code.NO_PAIR):
        return row
    return replace(row, status=Status.INCONCLUSIVE, reason=Reason.UNPAIRED, found=row.reason)


def _explain_absence(side: CasePairs, base_failed: Collection[str]) -> Code:
    if side.base_case is None:
        return Code.BASE_LACKS_CASE
    if not side.is_alike_in_base:
        return Code.BASE_DEFINES_OTHERWISE
    return Code.BASE_FAILED if side.case.id in base_failed else Code.NO_PAIR
