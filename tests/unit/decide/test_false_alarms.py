"""The promise that matters most, replayed: noise gives no regression, a 30 % slowdown does.

Noise as on a shared two-core machine: trials differ by a log-normal 1 to 5 % drawn anew for every
case and metric, and whole sittings by up to 10 %, which canaries and eager see as well.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest

from gate.records import Comparison, Metric, Status, Verdict

pytestmark = pytest.mark.untraced

Make = Callable[..., Any]
Judge = Callable[..., Verdict]
Find = Callable[..., Comparison]
CASES = 8
BASELINE_TRIALS = 5
TYPICAL = {
    Metric.EAGER_LATENCY: 0.020,
    Metric.COMPILED_LATENCY: 0.010,
    Metric.COLD_COMPILE_TIME: 12.0,
    Metric.WARM_COMPILE_TIME: 3.0,
}
SLOWER = math.log(1.3)
CANARY_NOISE = 0.02


def draw_arm(
    rng: random.Random, trials: int, noise: dict[Metric, float], shift: dict[Metric, float]
) -> dict[Metric, tuple[float, ...]]:
    return {
        metric: tuple(
            value * math.exp(shift.get(metric, 0.0) + rng.gauss(0, noise[metric])) for _ in range(trials)
        )
        for metric, value in TYPICAL.items()
    }


def draw_canaries(rng: random.Random, trials: int, shift: float) -> dict[str, tuple[float, ...]]:
    return {
        name: tuple(math.exp(shift + rng.gauss(0, CANARY_NOISE)) for _ in range(trials))
        for name in ("matmul", "memcpy", "loop")
    }


def draw_cases(
    make: Make, rng: random.Random, trials: int, *, noise: tuple[float, float], fault: dict[Metric, float]
) -> list[Any]:
    """Eight cases of one run; the first has the fault."""
    sitting = rng.uniform(-0.10, 0.10) if not fault else rng.uniform(-0.01, 0.01)
    cases = []
    for number in range(CASES):
        sds = {metric: rng.uniform(*noise) for metric in TYPICAL}
        shift = {metric: sitting + (fault.get(metric, 0.0) if number == 0 else 0.0) for metric in TYPICAL}
        cases.append(
            make(
                case_id=f"m{number}/x",
                before=draw_arm(rng, BASELINE_TRIALS, sds, {}),
                after=draw_arm(rng, trials, sds, shift),
                canaries_before=draw_canaries(rng, BASELINE_TRIALS, 0.0),
                canaries_after=draw_canaries(rng, trials, sitting),
            )
        )
    return cases


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_noise_is_no_regression(situation: Make, judge: Judge, trials: int) -> None:
    """None of 300 runs of an unchanged program, eight cases with four metrics each, is a regression."""
    rng = random.Random(trials)  # noqa: S311 - repeatable, not secret
    alarms = 0
    for _ in range(300):
        verdict = judge(*draw_cases(situation, rng, trials, noise=(0.01, 0.05), fault={}))
        alarms += any(one.status is Status.REGRESSED and one.decides for one in verdict.comparisons)
    assert alarms == 0


@pytest.mark.parametrize(
    "fault",
    [
        {Metric.COMPILED_LATENCY: SLOWER},
        {Metric.COMPILED_LATENCY: SLOWER, Metric.EAGER_LATENCY: SLOWER},
    ],
    ids=["compiled", "both arms"],
)
def test_thirty_percent_slower_is_caught(
    situation: Make, judge: Judge, find: Find, fault: dict[Metric, float]
) -> None:
    """Three trials at 2 to 3.5 % noise catch at least 38 of 40, whether eager is slower as well or not."""
    rng = random.Random(9)  # noqa: S311 - repeatable, not secret
    caught = []
    for _ in range(40):
        verdict = judge(*draw_cases(situation, rng, 3, noise=(0.02, 0.035), fault=fault))
        caught.append(find(verdict, Metric.COMPILED_LATENCY, "m0/x").status is Status.REGRESSED)
    assert fmean(caught) >= 0.95
