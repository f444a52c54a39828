"""Many small changes are each clear against their base, and together regress against an anchor."""

import random

import pytest

from gate.decide.side_by_side import decide_side_by_side
from gate.records.cases import Metric
from gate.records.verdict import Outcome, Status
from tests.make import POLICY, PairedCase, find_row, pair_up

LATENCY, EAGER = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY
MERGES = 20
STEP = 1.015  # 1.015 ** 20 = 1.347
PAIRS = 6
PAIR_SD = 0.013  # of live pairs, as LIVE_PAIR_SD assumes


def judge(factor: float, seed: int) -> tuple[Outcome, Status]:
    """Outcome and latency's status of six pairs whose head is slower by a factor."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    spread = tuple(rng.gauss(0.0, PAIR_SD) for _ in range(PAIRS))
    verdict = decide_side_by_side(pair_up(PairedCase(head={LATENCY: 0.010 * factor}, spread=spread)), POLICY)
    return verdict.outcome, find_row(verdict, LATENCY).status


@pytest.mark.parametrize("seed", range(5))
def test_creep_is_red_against_the_anchor_and_never_against_the_own_base(seed: int) -> None:
    """Each of twenty steps of 1.5 % is below 3 %; together they are 35 %."""
    single = [judge(STEP, 100 * seed + merge) for merge in range(1, MERGES + 1)]
    assert not any(Status.REGRESSED in results or Outcome.REGRESSION in results for results in single)
    anchored = [judge(STEP**merge, 100 * seed + merge) for merge in range(1, MERGES + 1)]
    assert anchored[-1] == (Outcome.REGRESSION, Status.REGRESSED)
    first = next(merge for merge, results in enumerate(anchored, start=1) if results[0] is Outcome.REGRESSION)
    assert 2 <= first <= 6  # the second merge is where 3 % are passed, and the sixth is at 9 %
    still = [judge(1.0, 100 * seed + night) for night in range(1, MERGES + 1)]
    assert not any(Outcome.REGRESSION in results for results in still)
