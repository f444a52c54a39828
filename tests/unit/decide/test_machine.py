"""What the machine's canaries may clear: a shift beyond their own noise, never chance."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from gate.decide.judge.machine import list_shifts
from gate.records import Comparison, Metric, Reason, Status, Verdict

Make = Callable[..., Any]
Judge = Callable[..., Verdict]
Find = Callable[..., Comparison]
LATENCY, EAGER = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY
CASES = 8
STORED = 5
TRIAL_SD = 0.01
NAMES = ("copy", "matmul", "python")
REQUESTS = 40
SUSPECT_S = 0.0105  # 5 % more than the 10 ms stored


def draw(rng: random.Random, centre: float, sd: float, number: int) -> tuple[float, ...]:
    return tuple(centre * math.exp(rng.gauss(0.0, sd)) for _ in range(number))


def draw_case(make: Make, rng: random.Random, number: int, canary_sd: float, slower: float) -> Any:
    """One trial against five; the first case is slower, and the canaries' true speed never changes."""
    compiled_s = 0.010 * (1.0 + slower if number == 0 else 1.0)
    return make(
        case_id=f"m{number}/x",
        before={LATENCY: draw(rng, 0.010, TRIAL_SD, STORED), EAGER: draw(rng, 0.020, TRIAL_SD, STORED)},
        after={LATENCY: draw(rng, compiled_s, TRIAL_SD, 1), EAGER: draw(rng, 0.020, TRIAL_SD, 1)},
        canaries_before={name: draw(rng, 1e-3, canary_sd, STORED) for name in NAMES},
        canaries_after={name: draw(rng, 1e-3, canary_sd, 1) for name in NAMES},
    )


@pytest.mark.parametrize("canary_sd", [0.01, 0.15])
def test_canaries_that_only_vary_acquit_nobody(
    situation: Make, judge: Judge, find: Find, canary_sd: float
) -> None:
    """Of 40 slowdowns of 5 %, that trials of 1 % noise suspect, steady or noisy canaries clear 4 at most."""
    rng = random.Random(3)  # noqa: S311 - repeatable, not secret
    cleared = 0
    for _ in range(REQUESTS):
        cases = [draw_case(situation, rng, number, canary_sd, 0.05) for number in range(CASES)]
        cleared += find(judge(*cases), LATENCY, "m0/x").status is Status.UNCHANGED
    assert cleared <= REQUESTS // 10


def compare_suspect(
    make: Make, judge: Judge, find: Find, canaries: Mapping[str, tuple[Sequence[float], float]]
) -> Comparison:
    """Judge a latency that looks 5 % slower beside canaries with these stored values and this new one."""
    one = make(
        before={LATENCY: (0.0099, 0.0100, 0.0101)},
        after={LATENCY: (SUSPECT_S,)},
        canaries_before={name: before for name, (before, _) in canaries.items()},
        canaries_after={name: (after,) for name, (_, after) in canaries.items()},
    )
    return find(judge(one), LATENCY)


def test_canary_beyond_its_noise_clears(situation: Make, judge: Judge, find: Find) -> None:
    """A canary that repeats to 0.1 % and is 5 % slower explains a latency that is 5 % slower."""
    row = compare_suspect(situation, judge, find, {"loop": ((0.999, 1.0, 1.001), 1.05)})
    assert row.status is Status.UNCHANGED


def test_canary_within_its_noise_does_not_clear(situation: Make, judge: Judge, find: Find) -> None:
    """The same 5 % of a canary whose trials vary by 5 % are chance: the latency stays suspect."""
    row = compare_suspect(situation, judge, find, {"loop": ((0.95, 1.0, 1.05), 1.05)})
    assert (row.status, row.reason) == (Status.INCONCLUSIVE, Reason.SUSPECT)


def test_canary_of_unknown_noise_does_not_clear(situation: Make, judge: Judge, find: Find) -> None:
    """One stored trial of a canary tells nothing of its noise: the latency stays suspect."""
    row = compare_suspect(situation, judge, find, {"loop": ((1.0,), 1.05)})
    assert (row.status, row.reason) == (Status.INCONCLUSIVE, Reason.SUSPECT)


def test_one_of_many_canaries_must_stray_further(situation: Make, judge: Judge, find: Find) -> None:
    """Five standard errors of two degrees of freedom clear as the only canary, not as the largest of three.

    The stored SD is 0.7 %, one trial against three: SE = 0.007 sqrt((1 + 1/3) pi / 2) = 1.01 %.
    Two-sided t of 2 df is 4.30 at 5 %, 7.65 at 5 % / 3.
    """
    moved = ((0.993, 1.0, 1.007), 1.05)
    alone = compare_suspect(situation, judge, find, {"loop": moved})
    assert alone.status is Status.UNCHANGED
    still = ((0.993, 1.0, 1.007), 1.0)
    among = compare_suspect(situation, judge, find, {"loop": moved, "copy": still, "matmul": still})
    assert among.status is Status.INCONCLUSIVE


def test_noise_of_a_canary_is_learned_from_all_cases(situation: Make, judge: Judge, find: Find) -> None:
    """Where another case holds more trials of the same canary, a single stored one is enough."""
    first = situation(
        case_id="m0/x",
        before={LATENCY: (0.0099, 0.0100, 0.0101)},
        after={LATENCY: (SUSPECT_S,)},
        canaries_before={"loop": (1.0,)},
        canaries_after={"loop": (1.05,)},
    )
    second = situation(
        case_id="m1/x",
        before={LATENCY: (0.0099, 0.0100, 0.0101)},
        after={LATENCY: (0.0100,)},
        canaries_before={"loop": (0.999, 1.0, 1.001)},
        canaries_after={"loop": (1.0,)},
    )
    assert find(judge(first, second), LATENCY, "m0/x").status is Status.UNCHANGED


def test_shift_within_its_noise_still_keeps_a_conviction_back(
    situation: Make, judge: Judge, find: Find
) -> None:
    """30 % slower beside canaries that vary by 15 % and are 25 % slower is left open, for the machine."""
    one = situation(
        before={LATENCY: (0.00995, 0.0100, 0.01005)},
        after={LATENCY: (0.01295, 0.0130, 0.01305)},
        canaries_before={"loop": (0.85, 1.0, 1.15)},
        canaries_after={"loop": (1.1, 1.25, 1.4)},
    )
    row = find(judge(one), LATENCY)
    assert (row.status, row.reason) == (Status.INCONCLUSIVE, Reason.MACHINE_SHIFT)


def test_without_stored_canaries_no_shift_is_known() -> None:
    """Beside a base nothing is shifted: both arms had the same machine."""
    assert list_shifts(None, "a/x") == ()


def test_a_canary_of_zero_is_left_out(situation: Make, judge: Judge, find: Find) -> None:
    """A clock that read zero gives no ratio; the other canary, 5 % slower, still clears."""
    canaries = {"copy": ((0.0, 1.0, 1.0), 1.0), "loop": ((0.999, 1.0, 1.001), 1.05)}
    assert compare_suspect(situation, judge, find, canaries).status is Status.UNCHANGED
