"""Replays the whole procedure on recorded trials of an unchanged program.

Every simulated pull request draws, for each case, trials for a baseline and others for a candidate,
no trial twice, and pairs for a confirmation, and goes through :func:`gate.decide.rehearsal.judge_request`.
What was recorded in one sitting is mixed freely, so the replay knows the noise between trials and not
that between days.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.calibration import Effort, Replay
from gate.decide.constants import LOOKS, MIN_BASELINE_TRIALS
from gate.decide.controls import COMPILE_TIMES
from gate.decide.disturbed import set_aside_disturbed
from gate.decide.evidence import CANDIDATE_ARM
from gate.decide.pairs import BASE_ARM, LATENCIES, Pair, list_pairs
from gate.decide.rate import compute_rate
from gate.decide.rehearsal import Request, judge_request
from gate.decide.series import list_alone
from gate.decide.values import collect_values
from gate.records import BaseArm, Baseline, Case, Metric, Outcome, Policy, Run, Status, Trial, Verdict

# Of fewer recorded pairs the same few values are drawn again and again: copies agree with each other,
# and look like certainty.
MIN_PAIRS = 6
_EVEN = 0.5  # as likely one way as the other


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedPairs:
    """The pairs of one case; after the first, those of a check may have measured latencies alone."""

    whole: Sequence[Pair]  # with every compile time that the case's trials have
    timed: Sequence[Pair]  # with every latency of theirs


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What is drawn from: the trials and the pairs of every case that has enough of them."""

    run: Run  # its plan is these cases
    trials: Mapping[str, Sequence[Trial]]
    pairs: Mapping[str, RecordedPairs]  # empty unless every case has MIN_PAIRS whole ones

    @property
    def slowable(self) -> list[str]:
        """The cases with a compiled latency to slow down in every trial."""
        return [
            case.id
            for case in self.run.cases
            if all(trial.samples.get(Metric.COMPILED_LATENCY) for trial in self.trials[case.id])
        ]


def replay_requests(run: Run, policy: Policy, effort: Effort, planted: float = 0.0) -> Replay | None:
    """Judge ``effort.requests`` simulated pull requests; ``None`` with too few recorded trials.

    ``planted`` is a slowdown of one case's compiled latency, as a fraction: of each case in turn that
    has one.
    """
    recorded = gather_recorded(run, effort)
    slowable = recorded.slowable
    if not recorded.run.cases or (planted and not slowable):
        return None
    generator = random.Random(effort.seed)  # noqa: S311 - repeatable, not secret
    found: Counter[str] = Counter()
    trials = pairs = 0
    for number in range(effort.requests):
        slowed = slowable[number % len(slowable)] if planted else ""
        request = slow_case(draw_request(recorded, effort, generator), slowed, 1.0 + planted)
        judged = judge_request(recorded.run, request, policy, effort)
        found[_find_result(judged.verdict, slowed)] += 1
        trials, pairs = trials + judged.trials, pairs + judged.pairs
    return Replay(
        planted=planted,
        regressed=compute_rate(found[Status.REGRESSED], effort.requests),
        inconclusive=compute_rate(found[Status.INCONCLUSIVE], effort.requests),
        trials=trials / effort.requests,
        pairs=pairs / effort.requests,
    )


def gather_recorded(run: Run, effort: Effort) -> Recorded:
    """Keep the cases with trials enough for a baseline and a candidate, and pairs where all have enough."""
    trials = {case.id: list_alone(run, case) for case in run.cases}
    cases = tuple(case for case in run.cases if _count_stored(trials[case.id], effort))
    listed = list_pairs(run)
    pairs = {case.id: _sort_pairs(listed.get(case.id, ()), trials[case.id]) for case in cases}
    itself = BaseArm(label="itself", environment=run.environment, provenance=run.provenance, cases=run.cases)
    return Recorded(
        run=replace(run, cases=cases, failures=(), trials=(), base=itself, trials_planned=0, finished=True),
        trials=trials,
        pairs=pairs if all(len(one.whole) >= MIN_PAIRS for one in pairs.values()) else {},
    )


def draw_request(recorded: Recorded, effort: Effort, generator: random.Random) -> Request:
    """Deal each case's trials out to a baseline and a candidate, and draw pairs, some more than once.

    Both arms of a recorded pair are the same program, so which is called head is drawn as well: a few
    pairs' chance deviation would else be a change in every simulated request. Latencies are drawn apart
    from all else: they are timed in other stages, and more pairs may have them.
    """
    baselines, candidates, pairs = [], {}, {}
    for case in recorded.run.cases:
        dealt = generator.sample(recorded.trials[case.id], len(recorded.trials[case.id]))
        stored = _count_stored(dealt, effort)
        baselines.append(_make_baseline(recorded.run, case, dealt[:stored]))
        candidates[case.id] = dealt[stored : stored + effort.max_trials]
        if recorded.pairs:
            pairs[case.id] = [
                _draw_pair(recorded.pairs[case.id], index, generator) for index in range(1, LOOKS[-1] + 1)
            ]
    return Request(baselines=tuple(baselines), candidates=candidates, pairs=pairs)


def slow_case(request: Request, case_id: str, factor: float) -> Request:
    """Make a case's compiled calls take ``factor`` times as long in every trial of head."""
    if not case_id:
        return request
    slower = [_slow_trial(trial, factor) for trial in request.candidates[case_id]]
    request = replace(request, candidates={**request.candidates, case_id: slower})
    if not request.pairs:
        return request
    pairs = [replace(pair, head=_slow_trial(pair.head, factor)) for pair in request.pairs[case_id]]
    return replace(request, pairs={**request.pairs, case_id: pairs})


def _count_stored(trials: Sequence[Trial], effort: Effort) -> int:
    """How many trials are dealt to the baseline; 0 when there are too few to replay anything."""
    left = min(effort.baseline_trials, len(trials) - effort.max_trials)
    return left if left >= MIN_BASELINE_TRIALS else 0


def _sort_pairs(pairs: Sequence[Pair], trials: Sequence[Trial]) -> RecordedPairs:
    measured = {metric for trial in trials for metric in trial.samples}
    return RecordedPairs(
        whole=[pair for pair in pairs if _has_all(pair, measured & set(COMPILE_TIMES))],
        timed=[pair for pair in pairs if _has_all(pair, measured & set(LATENCIES))],
    )


def _has_all(pair: Pair, metrics: Iterable[Metric]) -> bool:
    return all(metric in pair.base.samples and metric in pair.head.samples for metric in metrics)


def _draw_pair(recorded: RecordedPairs, index: int, generator: random.Random) -> Pair:
    whole = _exchange_arms(generator.choice(recorded.whole), generator)
    timed = _exchange_arms(generator.choice(recorded.timed or recorded.whole), generator)
    return Pair(
        base=_take_latencies(replace(whole.base, index=index, arm=BASE_ARM), timed.base),
        head=_take_latencies(replace(whole.head, index=index, arm=CANDIDATE_ARM), timed.head),
    )


def _exchange_arms(pair: Pair, generator: random.Random) -> Pair:
    return Pair(base=pair.head, head=pair.base) if generator.random() < _EVEN else pair


def _take_latencies(trial: Trial, other: Trial) -> Trial:
    """The trial with the latencies of another, and none of its own."""
    kept = {metric: values for metric, values in trial.samples.items() if metric not in LATENCIES}
    taken = {metric: other.samples[metric] for metric in LATENCIES if metric in other.samples}
    return replace(trial, samples={**kept, **taken}, pairing=other.pairing)


def _slow_trial(trial: Trial, factor: float) -> Trial:
    compiled = trial.samples.get(Metric.COMPILED_LATENCY, ())
    slower = {Metric.COMPILED_LATENCY: tuple(factor * seconds for seconds in compiled)}
    return replace(trial, samples={**trial.samples, **slower})


def _find_result(verdict: Verdict, slowed: str) -> str:
    """What counts: the verdict's outcome, or the slowed case's compiled latency."""
    if not slowed:
        outcomes = {Outcome.REGRESSION: Status.REGRESSED, Outcome.INCONCLUSIVE: Status.INCONCLUSIVE}
        return outcomes.get(verdict.outcome, Status.UNCHANGED)
    return next(
        one.status
        for one in verdict.comparisons
        if one.case_id == slowed and one.metric is Metric.COMPILED_LATENCY
    )


def _make_baseline(run: Run, case: Case, trials: Sequence[Trial]) -> Baseline:
    canaries: dict[str, list[float]] = {}
    trials = set_aside_disturbed(replace(run, trials=tuple(trials)), MIN_BASELINE_TRIALS).trials
    for trial in trials:
        for name, seconds in trial.conditions.canaries_s.items():
            canaries.setdefault(name, []).append(seconds)
    return Baseline(
        case_id=case.id,
        definition=case.definition,
        environment=run.environment,
        provenance=run.provenance,
        trials=collect_values(trials),
        identity=trials[0].identity,
        workload=trials[0].workload,
        graph_breaks=trials[0].graph_breaks,
        canaries_s={name: tuple(values) for name, values in canaries.items()},
    )
