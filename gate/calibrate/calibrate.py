"""What recorded trials of unchanged code say of this machine, and of the gate on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gate.calibrate.noise import (
    gather_pair_series,
    gather_series,
    list_alone,
    list_instabilities,
    list_pair_instabilities,
    measure_noise,
    measure_pair_noise,
)
from gate.calibrate.replay import MIN_RECORDED_PAIRS, gather_recorded, replay_requests
from gate.decide.conclude.outcome import note_stop
from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.disturbed import list_hopeless, note_disturbed
from gate.metrics import SPECS, Family
from gate.records import BASE_ARM, Code, Fact, Policy, Run
from gate.records.studies import Calibration, Effort, Replay

# Slowdowns whose catch rate is worth knowing: the latency threshold, and what must not be missed.
PLANTED = (0.05, 0.10)
# A catch rate is wanted to a few percent, a false-alarm rate to a few tenths: fewer requests will do.
PLANTED_PART = 4
_MIN_KNOWN = 2  # one value has no spread


def calibrate_gate(run: Run, policy: Policy, effort: Effort) -> Calibration:
    """Judge a machine by a run of unchanged code.

    Pure, and takes seconds: thousands of decisions are replayed. ``effort.requests`` pull requests
    are simulated without a slowdown and a quarter of that with each of PLANTED.
    """
    series, pairs = gather_series(run, policy), gather_pair_series(run, policy)
    hopeless = list_hopeless(run, MIN_BASELINE_TRIALS)
    calm = [one for one in pairs if one.case_id not in hopeless]
    noisy = {metric for metric, spec in SPECS.items() if spec.family is Family.NOISY}
    steady = [one for one in series if one.case.id not in hopeless or one.metric not in noisy]
    pair_noise = {(one.case_id, one.paired.metric): measure_pair_noise(one) for one in pairs}
    replays = tuple(_replay_all(run, policy, effort))
    return Calibration(
        environment=run.environment,
        provenance=run.provenance,
        case_ids=tuple(case.id for case in run.cases),
        trials=sum(len(list_alone(run, case)) for case in run.cases),
        pairs=sum(trial.arm == BASE_ARM for trial in run.trials),
        effort=effort,
        noise=tuple(
            replace(measure_noise(one, effort), side_by_side=pair_noise.get((one.case.id, one.metric)))
            for one in series
        ),
        unstable=(
            *list_instabilities(steady, run.failures, effort),
            *(found for one in calm for found in list_pair_instabilities(one)),
        ),
        replays=replays,
        notes=tuple(_list_notes(run, effort, replays)),
        disturbed=hopeless,
        failures=run.failures,
        wall_s=run.wall_s,
    )


def list_unknown(run: Run) -> tuple[str, ...]:
    """List the planned cases of which nothing can be said: their noise is not known."""
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
    yield from note_stop(finished=run.finished)
    yield from note_disturbed(run)
    if unknown := list_unknown(run):
        numbers = {"more": len(unknown) - 1, "trials": _MIN_KNOWN}
        yield Fact(code=Code.NOISE_UNKNOWN, numbers=numbers, cases=unknown[:1])
    counts = [len(list_alone(run, case)) for case in run.cases]
    needed = MIN_BASELINE_TRIALS + effort.max_trials
    short = sum(count < needed for count in counts)
    if short:
        numbers = {"short": short, "cases": len(counts), "trials": needed}
        yield Fact(code=Code.SOME_NOT_REPLAYED, numbers=numbers)
    if replays and not gather_recorded(run, effort).pairs:
        yield Fact(code=Code.REPLAYED_ALONE, numbers={"pairs": MIN_RECORDED_PAIRS})
    if replays:
        yield Fact(code=Code.REPLAY_MIXES)
