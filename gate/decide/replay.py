"""Replays the whole procedure on recorded trials of an unchanged program.

Every simulated pull request draws, for each case, trials for a baseline and others for a candidate,
no trial twice, and goes through the same decision as ``check``: the first trials of every case, then
one more at a time for what is undecided. What was recorded in one sitting is mixed freely, so the
replay knows the noise between trials and not that between days.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gate.calibration import Effort, Replay
from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.outcome import list_undecided
from gate.decide.rate import compute_rate
from gate.decide.series import list_alone
from gate.decide.values import collect_values
from gate.decide.verdict import decide_verdict
from gate.records import Baseline, Case, Metric, Outcome, Policy, Run, Status, Trial, Verdict

Recorded = Mapping[str, Sequence[Trial]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One simulated pull request: what is stored, and the candidate's trials in their order."""

    baselines: tuple[Baseline, ...]
    candidates: Mapping[str, Sequence[Trial]]  # by case id
    slowed: str = ""  # the case that is slower


def replay_requests(run: Run, policy: Policy, effort: Effort, planted: float = 0.0) -> Replay | None:
    """Judge ``effort.requests`` simulated pull requests; ``None`` with too few recorded trials.

    ``planted`` is a slowdown of one case's compiled latency, as a fraction: of each case in turn that
    has one.
    """
    recorded = {case.id: list_alone(run, case) for case in run.cases}
    usable = replace(run, cases=tuple(case for case in run.cases if _count_stored(recorded[case.id], effort)))
    slowable = [case.id for case in usable.cases if _is_slowable(recorded[case.id])]
    if not usable.cases or (planted and not slowable):
        return None
    generator = random.Random(effort.seed)  # noqa: S311 - repeatable, not secret
    looks = effort.max_trials - effort.trials + 1
    found: Counter[str] = Counter()
    trials = 0
    for number in range(effort.requests):
        slowed = slowable[number % len(slowable)] if planted else ""
        request = draw_request(usable, recorded, effort, generator)
        request = _slow_case(request, slowed, planted)
        verdict = judge_request(usable, request, replace(policy, looks=looks), effort)
        found[_find_result(verdict, slowed)] += 1
        trials += verdict.trials
    return Replay(
        planted=planted,
        regressed=compute_rate(found[Status.REGRESSED], effort.requests),
        inconclusive=compute_rate(found[Status.INCONCLUSIVE], effort.requests),
        trials=trials / effort.requests,
    )


def draw_request(run: Run, recorded: Recorded, effort: Effort, generator: random.Random) -> Request:
    """Deal each case's trials out to a baseline and a candidate."""
    baselines, candidates = [], {}
    for case in run.cases:
        dealt = generator.sample(recorded[case.id], len(recorded[case.id]))
        stored = _count_stored(dealt, effort)
        baselines.append(_make_baseline(run, case, dealt[:stored]))
        candidates[case.id] = dealt[stored : stored + effort.max_trials]
    return Request(baselines=tuple(baselines), candidates=candidates)


def judge_request(run: Run, request: Request, policy: Policy, effort: Effort) -> Verdict:
    """Judge as ``check`` does: what is undecided gets one more trial at a time."""
    given = dict.fromkeys(request.candidates, effort.trials)
    verdict = decide_verdict(_take_trials(run, request, given), request.baselines, policy)
    for _ in range(effort.trials, effort.max_trials):
        undecided = list_undecided(verdict)
        if not undecided:
            break
        given |= {case_id: given[case_id] + 1 for case_id in undecided}
        verdict = decide_verdict(_take_trials(run, request, given), request.baselines, policy)
    return verdict


def _count_stored(trials: Sequence[Trial], effort: Effort) -> int:
    """How many trials are dealt to the baseline; 0 when there are too few to replay anything."""
    left = min(effort.baseline_trials, len(trials) - effort.max_trials)
    return left if left >= MIN_BASELINE_TRIALS else 0


def _is_slowable(trials: Sequence[Trial]) -> bool:
    """Whether there is a compiled latency to slow down, in every trial."""
    return all(trial.samples.get(Metric.COMPILED_LATENCY) for trial in trials)


def _take_trials(run: Run, request: Request, given: Mapping[str, int]) -> Run:
    trials = (trial for case_id, count in given.items() for trial in request.candidates[case_id][:count])
    return replace(run, trials=tuple(trials), failures=())


def _slow_case(request: Request, case_id: str, planted: float) -> Request:
    if not case_id:
        return request
    slower = [_slow_trial(trial, 1.0 + planted) for trial in request.candidates[case_id]]
    return replace(request, candidates={**request.candidates, case_id: slower}, slowed=case_id)


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
