"""Which of two levels pairs are at, and how many pairs that takes."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.bisect.levels import (
    MAX_LEVEL_PAIRS,
    Levels,
    choose_series,
    classify_level,
    expect_pairs,
    measure_levels,
)
from gate.decide.judge.pairs import CasePairs, gather_case_pairs
from gate.decide.stats import Variance
from gate.records.cases import Metric
from gate.records.studies import Mark
from tests.make import POLICY, PairedCase, make_paired, pair_up

LATENCY, COLD = Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME


def make_levels(sd: float, bad: float = 0.10) -> Levels:
    """A bad end 10 % slower; a pair's noise is known with nine degrees of freedom."""
    return Levels(bad=bad, error=0.0, noise=Variance(value=sd**2, df=9.0))


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ((0.10,), None),  # one pair alone, however clear
        ((0.10, 0.10), Mark.BAD),
        ((0.001, -0.002), Mark.GOOD),
        ((0.20, 0.21), Mark.BAD),  # worse than the bad end
        ((-0.10, -0.11), Mark.GOOD),  # better than the good one
        ((0.05, 0.05), None),  # between both
        ((0.10, 0.0), None),  # one at each
        ((0.12, *(0.0, 0.001) * 3), Mark.GOOD),  # a stray one is outweighed by its neighbours
        ((0.05,) * MAX_LEVEL_PAIRS, Mark.SKIP),
    ],
)
def test_two_pairs_identify_a_level(changes: Sequence[float], mark: Mark | None) -> None:
    """Ends 10 % apart, pairs that vary by 1 %."""
    assert classify_level(make_paired(changes), make_levels(0.01)) is mark


def test_pairs_that_disagree_widen_the_noise() -> None:
    """Two pairs of 5 and 15 % have the bad end's mean and decide nothing."""
    assert classify_level(make_paired((0.05, 0.15)), make_levels(0.01)) is None
    assert classify_level(make_paired((0.05, 0.15)), make_levels(0.01, bad=0.40)) is Mark.GOOD


def test_more_pairs_are_asked_for_where_noise_is_large() -> None:
    """Where pairs vary by 4 % two decide nothing, six do."""
    assert classify_level(make_paired((0.10, 0.10)), make_levels(0.04)) is None
    assert classify_level(make_paired((0.10,) * 6), make_levels(0.04)) is Mark.BAD


@given(changes=st.lists(st.floats(-0.3, 0.3), min_size=1, max_size=MAX_LEVEL_PAIRS))
def test_both_levels_are_judged_alike(changes: list[float]) -> None:
    """Changes mirrored between the levels get the other mark."""
    mirrored = [0.10 - change for change in changes]
    turned = {Mark.GOOD: Mark.BAD, Mark.BAD: Mark.GOOD}
    mark, again = (classify_level(make_paired(values), make_levels(0.02)) for values in (changes, mirrored))
    weight_is_at_bound = {mark, again} & {None, Mark.SKIP} and mark is not again
    assert weight_is_at_bound or again is (turned.get(mark, mark) if mark else None)


@pytest.mark.parametrize(
    ("sd", "pairs"),
    [
        (
            0.01,
            2,
        ),  # one at the level weighs 2.5 ln(1 + 0.01 / 0.0008) = 6.5, and ln 200 is 5.3: two, never one
        (0.04, 6),  # 2.5 ln(1 + 0.01 / 0.0128) = 1.44, so four, and half as many again
        (0.20, MAX_LEVEL_PAIRS),  # 2.5 ln(1 + 0.01 / 0.32) = 0.077
    ],
)
def test_expected_pairs_are_those_of_typical_noise(sd: float, pairs: int) -> None:
    """For a change of 10 %."""
    assert expect_pairs(make_levels(sd)) == pairs


@pytest.mark.untraced
def test_a_level_is_wrong_less_than_once_in_a_hundred() -> None:
    """2,000 steps of 10 % whose pairs vary by 3 %, as the ends showed with nine degrees of freedom."""
    rng, wrong = random.Random(3), 0  # noqa: S311 - noise
    for step in range(2000):
        at = 0.10 * (step % 2)
        changes = [at + rng.gauss(0, 0.03) for _ in range(MAX_LEVEL_PAIRS)]
        marks = (
            classify_level(make_paired(changes[:count]), make_levels(0.03))
            for count in range(1, MAX_LEVEL_PAIRS + 1)
        )
        wrong += next(filter(None, marks)) is (Mark.GOOD if at else Mark.BAD)
    assert wrong <= 20


def make_side(paired_case: PairedCase, cpu_s: float = 0.0) -> CasePairs:
    """One case's pairs; with ``cpu_s`` head's cold compiles take twice the CPU time."""
    run = pair_up(paired_case)
    if cpu_s:
        trials = (
            replace(trial, phases_s={"cpu_self": cpu_s * (1 if trial.arm == "base" else 2)})
            for trial in run.trials
        )
        run = replace(run, trials=tuple(trials))
    (side,) = gather_case_pairs(run, POLICY)
    return side


def test_levels_are_what_the_ends_differ_by() -> None:
    """Six pairs of 11 and 10 ms that vary by 1 % give the levels; one leaves them uncertain."""
    slower = {LATENCY: 0.011}
    six = PairedCase(head=slower, spread=(0.0, 0.01, -0.01) * 2)
    levels = measure_levels(make_side(six), LATENCY)
    assert levels is not None
    assert levels.bad == pytest.approx(math.log(1.1))
    assert levels.is_known
    few = measure_levels(make_side(PairedCase(head=slower, pairs=1)), LATENCY)
    assert few is not None
    assert not few.is_known


def test_there_are_no_levels_where_the_bad_end_is_not_above() -> None:
    """A bad end that is faster or not measured has no levels."""
    faster = make_side(PairedCase(head={LATENCY: 0.009}))
    assert measure_levels(faster, LATENCY) is None
    assert measure_levels(faster, Metric.FIRST_REQUEST) is None


def test_a_cold_compile_is_judged_by_its_processor_time() -> None:
    """Twice the CPU time is ln 2, whatever the clock; without it the clock counts."""
    side = make_side(PairedCase(), cpu_s=4.0)
    levels = measure_levels(side, COLD)
    assert levels is not None
    assert levels.bad == pytest.approx(math.log(2))
    assert choose_series(make_side(PairedCase()), COLD) is not side.processor
