"""How a bisection searches: which point is next, its pairs until they show what it is, and the ends'. Pure.

A point is a commit or an interpreter. The first bad one is compared with the one before it by the rules of
every other comparison, but with half of the bad end's change as the threshold.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.bisect.levels import (
    MAX_END_PAIRS,
    Levels,
    choose_series,
    classify_level,
    expect_pairs,
    measure_levels,
)
from gate.check.procedure import PairLimit, PairMeasurer, settle_pairs
from gate.check.schedule import compute_pair_s
from gate.check.work import list_pair_slots
from gate.decide.judge.pairs import NOT_SCREENED, gather_case_pairs
from gate.decide.side_by_side import judge_pairs
from gate.decide.suspects import Suspect
from gate.metrics import INTERLEAVED, NOISY_DECIDING, SPECS, Family
from gate.records.cases import Metric, Override, Policy
from gate.records.run import BASE_ARM, CaseFailure, Pairing, Run
from gate.records.studies import Bisection, Mark
from gate.records.verdict import BROKEN, JUDGED, MAYBE_WORSE, UNJUDGED, Comparison, Status

# An exception's class, as a failure's message begins.
_ERROR_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?=:)")
_REASON = "half of what the bad end is worse by"
_GOOD = JUDGED - MAYBE_WORSE
_CONFIRMING = 2  # steps that it takes to see the first bad point again
# Lists the points that may be the first bad one, after these good ones up to a bad one, which is among them;
# the best to ask about comes first.
RankPoints = Callable[[Sequence[str], str], Sequence[str]]


def rank_list(points: Sequence[str], good: Sequence[str], bad: str) -> Sequence[str]:
    """As git ranks commits: first those that leave the fewest in either case."""
    between = points[max(map(points.index, good)) + 1 : points.index(bad) + 1]
    fewest = [min(position, len(between) - position) for position in range(1, len(between) + 1)]
    return [point for _, point in sorted(zip(fewest, between, strict=True), key=lambda pair: -pair[0])]


def search_first(
    rank: RankPoints, good: str, bad: str, ask: Callable[[str], Mark | None], marks: Mapping[str, Mark]
) -> Collection[str] | None:
    """The first bad point, with those that cannot be judged; ``None`` where ``ask`` ran out of time.

    Points in ``marks`` are not asked about again.
    """
    goods, skipped = [good], {bad}
    possible = rank(goods, bad)
    while point := next((candidate for candidate in possible if candidate not in skipped), ""):
        mark = marks[point] if point in marks else ask(point)
        if mark is None:
            return None
        if mark is Mark.GOOD:
            goods.append(point)
        else:
            skipped.add(point)
            bad = point if mark is Mark.BAD else bad
        possible = rank(goods, bad)
    return possible


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    between: int  # points that are neither end
    step_s: float
    noun: str = "commit"

    @property
    def steps(self) -> int:
        """At most."""
        return math.ceil(math.log2(self.between + 1))

    def count_left(self, state: Bisection) -> int:
        """At most, if nothing is skipped."""
        return max(self.steps - len(state.steps), 0)

    def compute_left_s(self, state: Bisection) -> float:
        """Seconds; by the time of the steps as soon as there are any."""
        took = [step.wall_s for step in state.steps]
        step_s = sum(took) / len(took) if took else self.step_s
        return (self.count_left(state) + _CONFIRMING) * step_s


def read_mark(row: Comparison | None) -> Mark:
    """SKIP where the comparison with the good end is open.

    Drift may be beyond its limit where the good end has none: that shows nothing about the commits in
    between.
    """
    if row is None or row.baseline is None:
        return Mark.SKIP
    if row.status is Status.REGRESSED:
        return Mark.BAD
    return Mark.GOOD if row.status in _GOOD else Mark.SKIP


def choose_metric(rows: Iterable[Comparison]) -> Comparison | None:
    """A counter, which needs no statistics, or what is most beyond its threshold."""
    regressed = [row for row in rows if row.decides and row.status is Status.REGRESSED]
    exact = [row for row in regressed if SPECS[row.metric].family is Family.EXACT]
    leading = [row for row in regressed if SPECS[row.metric].follows is None]
    return max(exact or leading or regressed, key=lambda row: row.severity, default=None)


def make_suspect(case_id: str, metric: Metric | None) -> Suspect:
    """Itself and what it follows; all where none is named."""
    if metric is None:
        return Suspect(case_id=case_id, metrics=NOISY_DECIDING)
    leader = SPECS[metric].follows
    return Suspect(case_id=case_id, metrics=(metric,) if leader is None else (metric, leader))


def split_difference(policy: Policy, row: Comparison) -> Policy:
    """Move the threshold of the metric to half of the bad end's change, if that is larger."""
    spec = SPECS[row.metric]
    if spec.family is Family.EXACT or row.change is None or row.threshold is None:
        return policy
    half, relative = row.change.centre / 2, row.threshold.relative
    part = {"absolute": max(half, row.threshold.absolute)}
    if spec.family is not Family.LOG2:
        part = {"relative": max(half, relative)}
    metrics = {row.metric, spec.follows} - {None}
    more = tuple(
        Override(case=row.case_id, metric=metric, reason=_REASON, **part) for metric in metrics if metric
    )
    return replace(policy, overrides=(*policy.overrides, *more))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepJudge:
    """``levels`` is ``None`` for counters, memory and drift: one pair is enough.

    ``policy`` has half of the difference of the ends as the metric's threshold.
    """

    metric: Metric
    policy: Policy
    levels: Levels | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureJudge:
    """Whether the case fails as it does at the bad end."""

    failure: CaseFailure
    metric: None = None

    def read(self, run: Run) -> Mark | None:
        """``None`` where nothing was measured. A failure of another kind hides this one."""
        if not run.failures:
            return Mark.GOOD if run.pair_counts else None
        failure = run.failures[0]
        is_same = failure.arm != BASE_ARM and _list_traits(failure) == _list_traits(self.failure)
        return Mark.BAD if is_same else Mark.SKIP


def find_end_failure(run: Run) -> CaseFailure | None:
    """How the case fails at the bad end, where it does not at the good one."""
    at_bad_end = all(failure.arm != BASE_ARM for failure in run.failures)
    return run.failures[0] if run.failures and at_bad_end else None


def _list_traits(failure: CaseFailure) -> tuple[str, ...]:
    error = _ERROR_CLASS.match(failure.fact.name("message"))
    return failure.kind, failure.stage, failure.fact.code, error[0] if error else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenPairs:
    measurer: PairMeasurer
    run: Run
    limit_s: float  # in seconds of the run


def find_row(run: Run, policy: Policy, metric: Metric | None) -> Comparison | None:
    """Of the metric, or of what got worse where none is named."""
    rows = judge_pairs(run, policy, (make_suspect(run.cases[0].id, metric),))
    if metric is None:
        return choose_metric(rows)
    return next((row for row in rows if row.metric is metric), None)


def settle_ends(pairs: OpenPairs, policy: Policy, metric: Metric | None) -> Run:
    run = settle_metric(pairs, policy, metric)
    row = find_row(run, policy, metric)
    if row is None or row.status is not Status.REGRESSED:
        return run
    return settle_metric(replace(pairs, run=run), policy, row.metric, finds_level=True)


def settle_metric(
    pairs: OpenPairs, policy: Policy, metric: Metric | None, *, finds_level: bool = False
) -> Run:
    """Look by look, and one pair after the other where that is not enough."""
    measurer, limit_s = pairs.measurer, pairs.limit_s
    suspect = make_suspect(pairs.run.cases[0].id, metric)
    run = settle_pairs(measurer, pairs.run, policy, PairLimit(end_s=limit_s), (suspect,))

    def is_open() -> bool:

        row = find_row(run, policy, metric)
        if row is None or SPECS[row.metric].family is not Family.NOISY:
            return False
        levels = _measure_levels(run, policy, row) if finds_level else None
        return row.waits_for_pairs or (levels is not None and not levels.is_known)

    need = replace(suspect, more=1)
    while (before := run.pair_counts.total()) < MAX_END_PAIRS and is_open():
        run = measurer.add_pairs(run, (need,), limit_s)
        if run.pair_counts.total() == before:
            break
    return replace(run, finished=True)


def make_judge(run: Run, policy: Policy, row: Comparison) -> StepJudge:
    return StepJudge(
        metric=row.metric,
        policy=split_difference(policy, row),
        levels=_measure_levels(run, policy, row),
    )


def settle_failure(pairs: OpenPairs, judge: FailureJudge) -> tuple[Run, Mark | None]:
    """``None`` where the time is up."""
    need = Suspect(case_id=pairs.run.cases[0].id, metrics=NOISY_DECIDING, more=1, unchanged_code=True)
    run = pairs.run if pairs.run.pair_counts else pairs.measurer.add_pairs(pairs.run, (need,), pairs.limit_s)
    mark = judge.read(run)
    if mark is None and not list_pair_slots(run, (need,)):  # one arm lacks the case, or defines it otherwise
        mark = Mark.SKIP
    return replace(run, finished=True), mark


def settle_found(pairs: OpenPairs, judge: StepJudge | FailureJudge) -> tuple[Run, Mark]:
    """By the rule of every other comparison."""
    if isinstance(judge, FailureJudge):
        run, mark = settle_failure(pairs, judge)
        return run, mark or Mark.SKIP
    run = settle_metric(pairs, judge.policy, judge.metric)
    return run, read_mark(find_row(run, judge.policy, judge.metric))


def settle_step(pairs: OpenPairs, judge: StepJudge | FailureJudge) -> tuple[Run, Mark | None]:
    """``None`` where the time is up."""
    if isinstance(judge, FailureJudge):
        return settle_failure(pairs, judge)
    run, case_id = pairs.run, pairs.run.cases[0].id
    metrics = make_suspect(case_id, judge.metric).metrics
    need = Suspect(case_id=case_id, metrics=metrics, more=1, unchanged_code=True)
    while (mark := read_step(run, judge)) is None:
        if not list_pair_slots(run, (need,)):  # it failed, or one arm lacks the case or defines it otherwise
            mark = Mark.SKIP
            break
        before, run = run, pairs.measurer.add_pairs(run, (need,), pairs.limit_s)
        if run.pair_counts == before.pair_counts and list_pair_slots(run, (need,)):
            break
    return replace(run, finished=True), mark


def read_step(run: Run, judge: StepJudge) -> Mark | None:
    """``None`` asks for another pair."""
    if not run.pair_counts:
        return None
    if judge.levels is not None:
        (side,) = gather_case_pairs(run, judge.policy, {run.cases[0].id: NOT_SCREENED})
        paired = choose_series(side, judge.metric)
        return Mark.SKIP if paired is None else classify_level(paired, judge.levels)
    row = find_row(run, judge.policy, judge.metric)
    if row is None or row.status in BROKEN | UNJUDGED:
        return Mark.SKIP
    # Elsewhere a count waits for a second pair; here the ends have shown it already.
    is_shown = row.waits_for_pairs and row.change is not None and row.change.centre > 0
    return Mark.BAD if row.status is Status.REGRESSED or is_shown else Mark.GOOD


def find_change(run: Run, judge: StepJudge | FailureJudge) -> float | None:
    """As it is judged; ``None`` without one."""
    if isinstance(judge, FailureJudge):
        return None
    row = find_row(run, judge.policy, judge.metric)
    return row.change.centre if row and row.change else None


def predict_step_s(ends: Run, judge: StepJudge | FailureJudge) -> float:
    """Seconds of a first pair, as the ends' first, and of further ones.

    These only compile what is asked for.
    """
    if isinstance(judge, FailureJudge):
        return ends.wall_s - ends.toolchain_s
    pairs = 1 if judge.levels is None else expect_pairs(judge.levels)
    trials = [trial for trial in ends.trials if trial.pairing is not Pairing.ALONE]
    case, least = ends.cases[0], min(trial.index for trial in trials)
    first = compute_pair_s(case, [trial for trial in trials if trial.index == least])
    further = compute_pair_s(case, trials) if {judge.metric} <= set(INTERLEAVED) else first
    return first + (pairs - 1) * min(first, further)


def _measure_levels(run: Run, policy: Policy, row: Comparison) -> Levels | None:
    if SPECS[row.metric].family is not Family.NOISY:
        return None
    (side,) = gather_case_pairs(run, policy, {row.case_id: NOT_SCREENED})
    return measure_levels(side, row.metric)
