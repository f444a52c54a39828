"""Many small changes: none is seen against its own base, and all of them together against an anchor."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from gate.decide.side_by_side import decide_side_by_side
from gate.records.cases import Metric, Policy
from gate.records.run import Run
from gate.records.verdict import Comparison, Outcome, Status

LATENCY, EAGER = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY
MERGES = 20
STEP = 1.015  # 1.015 ** 20 = 1.347
PAIRS = 6
PAIR_SD = 0.013  # of live pairs, as LIVE_PAIR_SD assumes

Judge = Callable[[float, int], tuple[Outcome, Status]]


@pytest.fixture
def judge(
    paired_case: Callable[..., Any],
    pair_run: Callable[..., Run],
    find: Callable[..., Comparison],
    policy: Policy,
) -> Judge:
    """The verdict on six pairs whose head is slower by a factor, and what it says of compiled latency."""

    def decide(factor: float, seed: int) -> tuple[Outcome, Status]:
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        spread = tuple(rng.gauss(0.0, PAIR_SD) for _ in range(PAIRS))
        verdict = decide_side_by_side(
            pair_run(paired_case(head={LATENCY: 0.010 * factor}, spread=spread)), policy
        )
        return verdict.outcome, find(verdict, LATENCY).status

    return decide


@pytest.mark.parametrize("seed", range(5))
def test_creep_is_red_against_the_anchor_and_never_against_the_own_base(judge: Judge, seed: int) -> None:
    """Twenty steps of 1.5 %: each alone is below the 3 % that count, and together they are 35 %."""
    own = [judge(STEP, 100 * seed + merge) for merge in range(1, MERGES + 1)]
    assert not any(Status.REGRESSED in one or Outcome.REGRESSION in one for one in own)
    anchored = [judge(STEP**merge, 100 * seed + merge) for merge in range(1, MERGES + 1)]
    assert anchored[-1] == (Outcome.REGRESSION, Status.REGRESSED)
    first = next(merge for merge, one in enumerate(anchored, start=1) if one[0] is Outcome.REGRESSION)
    assert 2 <= first <= 6  # the second merge is where 3 % are passed, and the sixth is at 9 %
    still = [judge(1.0, 100 * seed + night) for night in range(1, MERGES + 1)]
    assert not any(Outcome.REGRESSION in one for one in still)
