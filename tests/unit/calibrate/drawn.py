"""Recorded trials of one unchanged program, given or drawn with a known noise."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from gate.records.cases import Case, Metric
from gate.records.run import Conditions, Pairing, Run
from gate.records.studies import Effort
from tests.make import make_pair, make_run, make_trials

EFFORT = Effort(baseline_trials=5, trials=1, max_trials=3, requests=40)
TYPICAL = {
    Metric.EAGER_LATENCY: 0.020,
    Metric.COMPILED_LATENCY: 0.010,
    Metric.COLD_COMPILE_TIME: 12.0,
    Metric.WARM_COMPILE_TIME: 3.0,
}


def run_cases(*values: Mapping[Metric, Sequence[float]]) -> Run:
    """A case for each mapping, with one sample for each trial and metric."""
    trials = [
        make_trials(
            f"m{number}/x",
            [dict(zip(of_case, row, strict=True)) for row in zip(*of_case.values(), strict=True)],
            conditions=Conditions(canaries_s={"loop": 1e-3}),
        )
        for number, of_case in enumerate(values)
    ]
    return make_run(*chain.from_iterable(trials))


def draw_run(cases: int, trials: int, noise: float, seed: int = 1) -> Run:
    """Cases whose times vary between trials by a log-normal of this noise."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    return run_cases(
        *(
            {
                metric: [value * math.exp(rng.gauss(0, noise)) for _ in range(trials)]
                for metric, value in TYPICAL.items()
            }
            for _ in range(cases)
        )
    )


def draw_paired_run(cases: int, trials: int, pairs: int, noise: float) -> Run:
    """As draw_run, with pairs in turn that are drawn alike."""
    run = draw_run(cases, trials, noise)
    extra = draw_run(cases, 2 * pairs, noise, seed=2).trials
    arms = ("base", "head")
    paired = (
        replace(trial, index=(trial.index + 1) // 2, arm=arms[trial.index % 2], pairing=Pairing.TURNS)
        for trial in extra
    )
    return replace(run, trials=(*run.trials, *paired))


def make_paired_run(metric: Metric, base: float, changes: Sequence[float]) -> Run:
    """One case whose pairs differ by these logarithms; head is larger if positive."""
    case = Case(id="m/x", model="m", factory="m:f", definition="d")
    pairs = [
        make_pair(
            case.id,
            index,
            {"samples": {metric: (base,)}},
            {"samples": {metric: (base * math.exp(change),)}},
        )
        for index, change in enumerate(changes, start=1)
    ]
    return make_run(*chain.from_iterable(pairs), cases=(case,), base=(case,))
