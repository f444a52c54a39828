"""How a bisection measures: its ends until both levels are known, a step until it is at one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gate.check.bisect import choose_metric, make_suspect, split_difference
from gate.check.pair_schedule import Need, compute_pair_s, count_pairs, list_pair_slots
from gate.check.procedure import PairMeasurer, settle_pairs
from gate.decide import LOOKS, judge_pairs
from gate.decide.constants import MIN_PAIRS
from gate.decide.judge.levels import (
    MAX_END_PAIRS,
    Levels,
    expect_pairs,
    find_series,
    measure_levels,
    tell_level,
)
from gate.decide.judge.sides import gather_case_pairs
from gate.decide.suspects import is_shown_again
from gate.metrics import INTERLEAVED, SPECS, Family
from gate.records import BROKEN, UNJUDGED, Comparison, Metric, Pairing, Policy, Run, Status
from gate.records.bisection import Mark

# By the rule of every other comparison what was found takes twice the pairs of a step, and no fewer than for
# a latency that stands out: it took 16 where pairs varied by 5 % and steps took 3 to 13.
_CONFIRMING_SHARE, _FEWEST_CONFIRMING = 2, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Oracle:
    """What tells a step: the metric of a case, and the levels of the ends.

    ``levels`` is ``None`` for counters, memory and drift, which vary by far less than what is between the
    ends: one pair tells. ``policy`` has half of that as the metric's threshold.
    """

    case_id: str
    metric: Metric
    policy: Policy
    levels: Levels | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What pairs are to settle: a metric, or what got worse; and its level, if asked for."""

    policy: Policy
    metric: Metric | None
    is_level: bool = False


def find_row(run: Run, policy: Policy, case_id: str, metric: Metric | None) -> Comparison | None:
    """The comparison of the ends that matters: of the metric, or of what got worse where none is named."""
    rows = judge_pairs(run, policy, (make_suspect(case_id, metric),))
    if metric is None:
        return choose_metric(rows)
    return next((row for row in rows if row.metric is metric), None)


def settle_ends(
    measurer: PairMeasurer, run: Run, policy: Policy, metric: Metric | None, limit_s: float
) -> Run:
    """Hold the ends of a run's only case against each other until it is settled, and the levels known.

    ``limit_s`` counts the run's seconds.
    """
    asked = _Asked(policy=policy, metric=metric)
    run = _settle(measurer, run, asked, limit_s)
    row = find_row(run, policy, run.cases[0].id, metric)
    if row is None or row.status is not Status.REGRESSED:
        return run
    return _settle(measurer, run, replace(asked, metric=row.metric, is_level=True), limit_s)


def settle_finding(measurer: PairMeasurer, run: Run, oracle: Oracle, limit_s: float) -> Run:
    """Hold what was found against what is before it until it is settled.

    ``limit_s`` counts the run's seconds.
    """
    return _settle(measurer, run, _Asked(policy=oracle.policy, metric=oracle.metric), limit_s)


def make_oracle(run: Run, policy: Policy, row: Comparison) -> Oracle:
    """Make what tells the steps, of the ends' run and what got worse in it."""
    return Oracle(
        case_id=row.case_id,
        metric=row.metric,
        policy=split_difference(policy, row),
        levels=_measure_levels(run, policy, row),
    )


def settle_step(measurer: PairMeasurer, run: Run, oracle: Oracle, limit_s: float) -> tuple[Run, Mark | None]:
    """Measure one pair after the other until they tell what a step is; ``None`` where the time is up.

    ``limit_s`` counts the run's seconds.
    """
    metrics = make_suspect(oracle.case_id, oracle.metric).metrics
    need = Need(case_id=oracle.case_id, metrics=metrics, more=1, known_code=True)
    while (mark := read_step(run, oracle)) is None:
        if not list_pair_slots(run, (need,)):  # it failed, or one arm lacks the case or defines it otherwise
            mark = Mark.SKIP
            break
        pairs = count_pairs(run, oracle.case_id)
        run = measurer.add_pairs(run, (need,), limit_s)
        if count_pairs(run, oracle.case_id) == pairs and list_pair_slots(run, (need,)):
            break
    return replace(run, finished=True), mark


def read_step(run: Run, oracle: Oracle) -> Mark | None:
    """What the pairs of a step say so far; ``None`` asks for another."""
    if not count_pairs(run, oracle.case_id):
        return None
    if oracle.levels is not None:
        (side,) = gather_case_pairs(run, oracle.policy, (oracle.case_id,))
        paired = find_series(side, oracle.metric)
        return Mark.SKIP if paired is None else tell_level(paired, oracle.levels)
    row = find_row(run, oracle.policy, oracle.case_id, oracle.metric)
    if row is None or row.status in BROKEN | UNJUDGED:
        return Mark.SKIP
    return Mark.BAD if row.status is Status.REGRESSED or is_shown_again(row) else Mark.GOOD


def find_change(run: Run, oracle: Oracle) -> float | None:
    """By how much a step's metric is worse than the good end's, as it is judged; ``None`` without a pair."""
    row = find_row(run, oracle.policy, oracle.case_id, oracle.metric)
    return row.change.centre if row and row.change else None


def predict_step_s(ends: Run, oracle: Oracle) -> float:
    """Seconds that a step will take, by what the pairs of the ends took."""
    pairs = 1 if oracle.levels is None else expect_pairs(oracle.levels)
    return _predict_s(ends, oracle, pairs)


def predict_confirmation_s(ends: Run, oracle: Oracle) -> float:
    """Seconds that it takes to see again what was found."""
    if oracle.levels is None:
        return _predict_s(ends, oracle, MIN_PAIRS)
    pairs = max(_CONFIRMING_SHARE * expect_pairs(oracle.levels), _FEWEST_CONFIRMING)
    return _predict_s(ends, oracle, min(pairs, LOOKS[-1]))


def _settle(measurer: PairMeasurer, run: Run, asked: _Asked, limit_s: float) -> Run:
    """Add pairs look by look, and one after the other where that is not enough."""
    case_id = run.cases[0].id
    suspect = make_suspect(case_id, asked.metric)
    run = settle_pairs(measurer, run, asked.policy, limit_s, (suspect,))
    need = Need(case_id=case_id, metrics=suspect.metrics, more=1)
    while (pairs := count_pairs(run, case_id)) < MAX_END_PAIRS and _is_open(run, asked):
        run = measurer.add_pairs(run, (need,), limit_s)
        if count_pairs(run, case_id) == pairs:
            break
    return replace(run, finished=True)


def _is_open(run: Run, asked: _Asked) -> bool:
    """Whether another pair may settle a noisy metric, or tell its level."""
    row = find_row(run, asked.policy, run.cases[0].id, asked.metric)
    if row is None or SPECS[row.metric].family is not Family.NOISY:
        return False
    levels = _measure_levels(run, asked.policy, row) if asked.is_level else None
    return row.waits_for_pairs or (levels is not None and not levels.is_known)


def _predict_s(ends: Run, oracle: Oracle, pairs: int) -> float:
    """Seconds of a first pair like the ends', and of further ones, which compile only what is asked about."""
    trials = [one for one in ends.trials if one.pairing is not Pairing.ALONE]
    case, least = ends.cases[0], min(one.index for one in trials)
    first = compute_pair_s(case, [one for one in trials if one.index == least])
    further = compute_pair_s(case, trials) if {oracle.metric} <= set(INTERLEAVED) else first
    return first + (pairs - 1) * min(first, further)


def _measure_levels(run: Run, policy: Policy, row: Comparison) -> Levels | None:
    if SPECS[row.metric].family is not Family.NOISY:
        return None
    (side,) = gather_case_pairs(run, policy, (row.case_id,))
    return measure_levels(side, row.metric)
