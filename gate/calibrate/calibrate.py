"""How recorded trials of unchanged code vary on this machine, and what the gate would do there.

Simulated pull requests draw trials and pairs, and go through the procedure of :mod:`gate.check`. All are of
one session: the replay does not know the noise between days.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.calibrate.noise import (
    gather_pair_series,
    gather_series,
    list_alone,
    list_instabilities,
    list_pair_instabilities,
    measure_noise,
    measure_pair_noise,
)
from gate.check.procedure import Checked, CheckTerms, check_against_base, check_against_baselines
from gate.check.rehearsal import Rehearsal
from gate.check.schedule import Slot, want_whole
from gate.decide.constants import LOOKS, MIN_BASELINE_TRIALS
from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.disturbed import collect_head, list_hopeless, note_disturbed
from gate.decide.evidence.pairs import Pair, list_pairs
from gate.decide.stats import compute_rate
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Family
from gate.records.cases import Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, CANDIDATE_ARM, BaseArm, Baseline, Pairing, Run, Trial
from gate.records.studies import Calibration, Effort, Replay
from gate.records.verdict import Outcome, Status, Verdict

# Slowdowns whose catch rate is worth knowing: the latency threshold, and what must not be missed.
PLANTED = (0.05, 0.10)
# A catch rate is wanted to a few percent, a false-alarm rate to a few tenths: fewer requests will do.
PLANTED_PART = 4
_MIN_KNOWN = 2  # one value has no spread
# Of fewer recorded pairs the same few values are drawn again and again: copies agree with each other, and
# look certain.
MIN_RECORDED_PAIRS = 6
# The result of a request without a fault. One that is INCOMPLETE fails its check as well; any other outcome
# is inconclusive.
_RESULTS = {
    Outcome.PASS: Status.UNCHANGED,
    Outcome.REGRESSION: Status.REGRESSED,
    Outcome.INCOMPLETE: Status.REGRESSED,
}
_EVEN = 0.5  # as likely one way as the other


def calibrate_gate(run: Run, policy: Policy, effort: Effort) -> Calibration:
    """Thousands of decisions are replayed, in seconds.

    ``effort.requests`` pull requests are simulated without a slowdown, a quarter as many with each of
    PLANTED.
    """
    series, pairs = gather_series(run, policy), gather_pair_series(run, policy)
    hopeless = list_hopeless(run, MIN_BASELINE_TRIALS)
    calm = [pair_series for pair_series in pairs if pair_series.case_id not in hopeless]
    noisy = {metric for metric, spec in SPECS.items() if spec.family is Family.NOISY}
    steady = [
        metric_series
        for metric_series in series
        if metric_series.case.id not in hopeless or metric_series.metric not in noisy
    ]
    pair_noise = {
        (pair_series.case_id, pair_series.paired.metric): measure_pair_noise(pair_series)
        for pair_series in pairs
    }
    replays = tuple(_replay_all(run, policy, effort))
    return Calibration(
        environment=run.environment,
        provenance=run.provenance,
        case_ids=tuple(case.id for case in run.cases),
        trials=sum(len(list_alone(run, case)) for case in run.cases),
        pairs=sum(trial.arm == BASE_ARM for trial in run.trials),
        effort=effort,
        noise=tuple(
            replace(
                measure_noise(metric_series, effort),
                side_by_side=pair_noise.get((metric_series.case.id, metric_series.metric)),
            )
            for metric_series in series
        ),
        unstable=(
            *list_instabilities(steady, run.failures, effort),
            *(instability for pair_series in calm for instability in list_pair_instabilities(pair_series)),
        ),
        replays=replays,
        notes=tuple(_list_notes(run, effort, replays)),
        disturbed=hopeless,
        failures=run.failures,
        wall_s=run.wall_s,
    )


def list_unknown(run: Run) -> tuple[str, ...]:
    pairs = Counter(trial.case_id for trial in run.trials if trial.arm == BASE_ARM)
    return tuple(
        case.id for case in run.cases if max(len(list_alone(run, case)), pairs[case.id]) < _MIN_KNOWN
    )


def _replay_all(run: Run, policy: Policy, effort: Effort) -> Iterator[Replay]:
    fewer = replace(effort, requests=max(1, effort.requests // PLANTED_PART))
    for planted in (0.0, *PLANTED):
        replay = replay_requests(run, policy, fewer if planted else effort, planted)
        if replay is not None:
            yield replay


def _list_notes(run: Run, effort: Effort, replays: tuple[Replay, ...]) -> Iterator[Fact]:
    if not run.finished:
        yield Fact(code=Code.STOPPED)
    yield from note_disturbed(collect_head(run))
    if unknown := list_unknown(run):
        numbers = {"more": len(unknown) - 1, "trials": _MIN_KNOWN}
        yield Fact(code=Code.NOISE_UNKNOWN, numbers=numbers, cases=unknown[:1])
    counts = [len(list_alone(run, case)) for case in run.cases]
    needed = MIN_BASELINE_TRIALS + effort.max_trials
    if short := sum(count < needed for count in counts):
        numbers = {"short": short, "cases": len(counts), "trials": needed}
        yield Fact(code=Code.SOME_NOT_REPLAYED, numbers=numbers)
    if replays and not gather_recorded(run, effort).pairs:
        yield Fact(code=Code.REPLAYED_ALONE, numbers={"pairs": MIN_RECORDED_PAIRS})
    if replays:
        yield Fact(code=Code.REPLAY_MIXES)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedRequest:
    baselines: tuple[Baseline, ...]
    candidates: Mapping[str, Sequence[Trial]]  # by case id
    pairs: Mapping[str, Sequence[Pair]] = field(default_factory=dict)  # empty: there is no base

    def take_trial(self, slot: Slot) -> Trial:
        return replace(self.candidates[slot.case.id][slot.index - 1], index=slot.index)

    def take_pair(self, slot: Slot) -> Pair:
        return self.pairs[slot.case.id][slot.index - 1]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedPairs:
    """The pairs of one case; after the first, those of a check may have only latencies."""

    whole: Sequence[Pair]  # with every compile time that the case's trials have
    timed: Sequence[Pair]  # with every latency of theirs


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    run: Run  # its plan is these cases
    trials: Mapping[str, Sequence[Trial]]
    pairs: Mapping[str, RecordedPairs]  # empty unless every case has MIN_RECORDED_PAIRS whole ones


def replay_requests(run: Run, policy: Policy, effort: Effort, planted: float = 0.0) -> Replay | None:
    """``None`` with too few recorded trials.

    ``planted`` is a slowdown of compiled latency, as a fraction, of each case in turn that has one.
    """
    recorded = gather_recorded(run, effort)
    slowable = [
        case.id
        for case in recorded.run.cases
        if all(trial.samples.get(Metric.COMPILED_LATENCY) for trial in recorded.trials[case.id])
    ]
    if not recorded.run.cases or (planted and not slowable):
        return None
    generator = random.Random(effort.seed)  # noqa: S311 - repeatable, not secret
    results: Counter[str] = Counter()
    trials = pairs = 0
    for number in range(effort.requests):
        slowed = slowable[number % len(slowable)] if planted else ""
        request = slow_case(draw_request(recorded, effort, generator), slowed, 1.0 + planted)
        checked = judge_request(recorded.run, request, policy, effort)
        results[_classify_result(checked.verdict, slowed)] += 1
        alone = sum(trial.pairing is Pairing.ALONE for trial in checked.run.trials)
        trials, pairs = trials + alone, pairs + (len(checked.run.trials) - alone) // 2
    return Replay(
        planted=planted,
        regressed=compute_rate(results[Status.REGRESSED], effort.requests),
        inconclusive=compute_rate(results[Status.INCONCLUSIVE], effort.requests),
        trials=trials / effort.requests,
        pairs=pairs / effort.requests,
    )


def judge_request(run: Run, request: SimulatedRequest, policy: Policy, effort: Effort) -> Checked:
    """As ``check`` does: by pairs where there are any, else by more trials."""
    rehearsal = Rehearsal(take_trial=request.take_trial, take_pair=request.take_pair)
    run = rehearsal.add_trials(run, want_whole(request.candidates), effort.trials)
    if effort.budget_s is not None:
        rehearsal = replace(rehearsal, budget_s=effort.budget_s)
    terms = CheckTerms(
        baselines=request.baselines,
        policy=policy,
        trials=effort.trials,
        max_trials=effort.max_trials,
        pair_budget_s=math.inf if effort.pair_budget_s is None else effort.pair_budget_s,
    )
    if request.pairs:
        return check_against_base(rehearsal, run, terms)
    return check_against_baselines(rehearsal, replace(run, base=None), terms)


def gather_recorded(run: Run, effort: Effort) -> Recorded:
    trials = {case.id: list_alone(run, case) for case in run.cases}
    cases = tuple(case for case in run.cases if _count_stored(trials[case.id], effort))
    listed = list_pairs(run.trials)
    pairs = {case.id: _sort_pairs(listed.get(case.id, ()), trials[case.id]) for case in cases}
    itself = BaseArm(label="itself", environment=run.environment, provenance=run.provenance, cases=run.cases)
    return Recorded(
        run=replace(
            run,
            cases=cases,
            failures=(),
            trials=(),
            base=itself,
            trials_planned=0,
            finished=True,
            wall_s=run.toolchain_s,
        ),
        trials=trials,
        pairs=pairs
        if all(len(case_pairs.whole) >= MIN_RECORDED_PAIRS for case_pairs in pairs.values())
        else {},
    )


def draw_request(recorded: Recorded, effort: Effort, generator: random.Random) -> SimulatedRequest:
    """Deal each case's trials out to a baseline and a candidate, and draw pairs, some more than once.

    Which side of a recorded pair is head is drawn, or the chance deviation of a few pairs would change every
    request. Latencies are drawn apart from all else: more pairs may have them.
    """
    stored: list[Trial] = []
    candidates, pairs = {}, {}
    for case in recorded.run.cases:
        dealt = generator.sample(recorded.trials[case.id], len(recorded.trials[case.id]))
        kept = _count_stored(dealt, effort)
        stored += dealt[:kept]
        candidates[case.id] = dealt[kept : kept + effort.max_trials]
        if recorded.pairs:
            pairs[case.id] = [
                _draw_pair(recorded.pairs[case.id], index, generator) for index in range(1, LOOKS[-1] + 1)
            ]
    baselines = make_baselines(replace(recorded.run, trials=tuple(stored)), recorded.run.provenance)
    return SimulatedRequest(baselines=baselines, candidates=candidates, pairs=pairs)


def slow_case(request: SimulatedRequest, case_id: str, factor: float) -> SimulatedRequest:
    """The same code that takes longer would look like a slower machine: it gets another digest."""
    if not case_id:
        return request
    slower = [_slow_trial(trial, factor) for trial in request.candidates[case_id]]
    request = replace(request, candidates={**request.candidates, case_id: slower})
    if not request.pairs:
        return request
    pairs = [replace(pair, head=_slow_trial(pair.head, factor)) for pair in request.pairs[case_id]]
    return replace(request, pairs={**request.pairs, case_id: pairs})


def _count_stored(trials: Sequence[Trial], effort: Effort) -> int:
    """How many trials are dealt to the baseline; 0 where there are too few for a replay."""
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


def _take_latencies(trial: Trial, timed: Trial) -> Trial:
    kept = {metric: values for metric, values in trial.samples.items() if metric not in LATENCIES}
    taken = {metric: timed.samples[metric] for metric in LATENCIES if metric in timed.samples}
    undisturbed_s = timed.undisturbed_s
    return replace(trial, samples={**kept, **taken}, undisturbed_s=undisturbed_s, pairing=timed.pairing)


def _slow_trial(trial: Trial, factor: float) -> Trial:
    def slow(times: Mapping[Metric, tuple[float, ...]]) -> dict[Metric, tuple[float, ...]]:
        compiled = times.get(Metric.COMPILED_LATENCY, ())
        return {**times, Metric.COMPILED_LATENCY: tuple(factor * seconds for seconds in compiled)}

    digest = trial.identity.digest and f"{trial.identity.digest} slower"
    identity = replace(trial.identity, digest=digest)
    samples, undisturbed_s = slow(trial.samples), slow(trial.undisturbed_s)
    return replace(trial, samples=samples, undisturbed_s=undisturbed_s, identity=identity)


def _classify_result(verdict: Verdict, slowed: str) -> str:
    """The verdict's outcome, or the status of the slowed case's compiled latency."""
    if not slowed:
        return _RESULTS.get(verdict.outcome, Status.INCONCLUSIVE)
    return next(
        row.status
        for row in verdict.comparisons
        if row.case_id == slowed and row.metric is Metric.COMPILED_LATENCY
    )
