"""The noisy family end to end: one or few cases through the whole decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide import decide_verdict
from gate.records import CodeIdentity, Comparison, Metric, Reason, Status, Verdict
from tests.hosts import CPU_HOST
from tests.told import tell_notes, tell_row

from .conftest import make_baselines, make_policy, make_run

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD, WARM, CALLS = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME, Metric.COMPILE_CALLS
# Five and three trials with a spread of 1 % or so.
FIVE = (0.990, 1.000, 1.010, 1.005, 0.995)
THREE = (0.995, 1.000, 1.005)
STEADY_BEFORE = {"loop": (1.0, 1.0, 1.0, 1.0, 1.0)}

Make = Callable[..., Any]
Judge = Callable[..., Verdict]
Find = Callable[..., Comparison]


def scale(spread: Sequence[float], value: float) -> tuple[float, ...]:
    return tuple(factor * value for factor in spread)


def latencies(eager: float, compiled: float, spread: Sequence[float] = THREE) -> dict[Metric, Any]:
    return {EAGER: scale(spread, eager), LATENCY: scale(spread, compiled)}


BEFORE = latencies(0.020, 0.010, FIVE)


def canaries(value: float) -> dict[str, tuple[float, ...]]:
    return {"loop": (value,) * 3}


def state(comparison: Comparison) -> tuple[Status, Reason]:
    return comparison.status, comparison.reason


def test_unchanged_case_is_within_noise(situation: Make, judge: Judge, find: Find) -> None:
    """The same times again: UNCHANGED, and the smallest noticeable change is told."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.020, 0.010)))
    found = find(verdict, LATENCY)
    assert state(found) == (Status.UNCHANGED, Reason.WITHIN_NOISE)
    assert found.change is not None
    assert 0.0499 < found.change.detectable < 0.10


def test_slower_compiled_program_is_convicted_with_its_speedup(
    situation: Make, judge: Judge, find: Find
) -> None:
    """30 % slower compiled under the same eager: latency and speedup have both regressed."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.020, 0.013)))
    assert state(find(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert state(find(verdict, SPEEDUP)) == (Status.REGRESSED, Reason.BEYOND_BAR)
    assert find(verdict, LATENCY).change.centre == pytest.approx(0.30, rel=1e-3)  # type: ignore[union-attr] # judged
    assert not find(verdict, EAGER).decides


def test_faster_compiled_program_has_improved(situation: Make, judge: Judge, find: Find) -> None:
    """30 % faster compiled under the same eager: latency and speedup have both improved."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.020, 0.010 / 1.3)))
    assert state(find(verdict, LATENCY)) == (Status.IMPROVED, Reason.BEYOND_BAR)
    assert state(find(verdict, SPEEDUP)) == (Status.IMPROVED, Reason.BEYOND_BAR)


def test_one_trial_can_convict_what_is_plain(situation: Make, judge: Judge, find: Find) -> None:
    """Twice as slow is convicted from a single trial."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.020, 0.020, (1.0,))))
    assert find(verdict, LATENCY).status is Status.REGRESSED


def test_change_near_the_threshold_is_suspect(situation: Make, judge: Judge, find: Find) -> None:
    """6 % slower from three trials can be neither convicted nor excluded."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.020, 0.0106)))
    assert state(find(verdict, LATENCY)) == (Status.INCONCLUSIVE, Reason.SUSPECT)


def test_two_baseline_trials_are_too_few(situation: Make, judge: Judge, find: Find) -> None:
    """However slow, two stored trials do not tell the noise."""
    before = latencies(0.020, 0.010, (1.0, 1.0))
    verdict = judge(situation(before=before, after=latencies(0.020, 0.030)))
    assert state(find(verdict, LATENCY)) == (Status.INCONCLUSIVE, Reason.FEW_TRIALS)
    assert state(find(verdict, SPEEDUP)) == (Status.INCONCLUSIVE, Reason.FEW_TRIALS)


def test_wild_trials_show_nothing(situation: Make, judge: Judge, find: Find) -> None:
    """Trials that differ by a factor of two could hide a 30 % change: not silently UNCHANGED."""
    wild = (0.7, 1.4, 1.0, 0.8, 1.25)
    verdict = judge(situation(before=latencies(0.02, 0.01, wild), after=latencies(0.02, 0.0092)))
    assert state(find(verdict, LATENCY)) == (Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH)


def test_twenty_microseconds_do_not_matter(situation: Make, judge: Judge, find: Find) -> None:
    """30 us to 40 us is a third slower and 10 us: below the absolute threshold."""
    verdict = judge(situation(before=latencies(60e-6, 30e-6, FIVE), after=latencies(60e-6, 40e-6)))
    assert find(verdict, LATENCY).status is Status.UNCHANGED


def test_value_of_zero_has_no_ratio(situation: Make, judge: Judge, find: Find) -> None:
    """A compile time of zero cannot be compared on a ratio scale, and says so."""
    verdict = judge(situation(before={COLD: (0.0, 1.0, 1.0)}, after={COLD: (1.0,)}))
    assert state(find(verdict, COLD)) == (Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH)
    assert "no ratio" in tell_row(find(verdict, COLD))


# --- eager as the control ---


def test_faster_eager_is_no_regression(situation: Make, judge: Judge, find: Find) -> None:
    """The speedup falls from 2x to 1.4x because eager got faster: told, not failed."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.014, 0.010)))
    assert state(find(verdict, SPEEDUP)) == (Status.UNCHANGED, Reason.EAGER_FASTER)
    assert find(verdict, LATENCY).status is Status.UNCHANGED


def test_slower_eager_is_no_improvement(situation: Make, judge: Judge, find: Find) -> None:
    """The speedup rises because eager got slower: compiled did not improve."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.030, 0.010)))
    assert state(find(verdict, SPEEDUP)) == (Status.UNCHANGED, Reason.LEADER_STANDS)


def test_speedup_is_open_while_its_latency_is(situation: Make, judge: Judge, find: Find) -> None:
    """Compiled 6 % slower is suspect, so a speedup that fell with it is no more than that."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.016, 0.0106)))
    assert state(find(verdict, LATENCY)) == (Status.INCONCLUSIVE, Reason.SUSPECT)
    assert state(find(verdict, SPEEDUP)) == (Status.INCONCLUSIVE, Reason.SUSPECT)


def test_both_arms_slower_without_canaries_is_left_open(situation: Make, judge: Judge, find: Find) -> None:
    """30 % slower eager and compiled alike, and nothing that speaks for the machine: INCONCLUSIVE."""
    verdict = judge(situation(before=BEFORE, after=latencies(0.026, 0.013)))
    assert state(find(verdict, LATENCY)) == (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)
    assert find(verdict, SPEEDUP).status is Status.UNCHANGED


@pytest.mark.parametrize(
    "throttled",
    [
        pytest.param((), id="steady"),
        # Heavy matrix products run into it in every trial, those of the baseline as well: no excuse.
        pytest.param(("software power cap",), id="power cap"),
    ],
)
def test_both_arms_slower_on_a_steady_machine_is_convicted(
    situation: Make, judge: Judge, find: Find, throttled: tuple[str, ...]
) -> None:
    """The same with canaries that did not move: the model itself got slower."""
    one = situation(
        before=BEFORE,
        after=latencies(0.026, 0.013),
        canaries_before=STEADY_BEFORE,
        canaries_after=canaries(1.01),
        throttled=throttled,
    )
    assert state(find(judge(one), LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)


def test_both_arms_slower_in_a_single_trial_is_left_open(situation: Make, judge: Judge, find: Find) -> None:
    """One bad minute hits both arms of one trial alike, so one trial is not enough for that."""
    one = situation(
        before=BEFORE,
        after=latencies(0.026, 0.013, (1.0,)),
        canaries_before=STEADY_BEFORE,
        canaries_after={"loop": (1.0,)},
    )
    assert state(find(judge(one), LATENCY)) == (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)


def test_both_arms_slower_under_throttling_is_left_open(situation: Make, judge: Judge, find: Find) -> None:
    """A device that lowered its clocks does not count as steady."""
    one = situation(
        before=BEFORE,
        after=latencies(0.026, 0.013),
        canaries_before=STEADY_BEFORE,
        canaries_after=canaries(1.0),
        throttled=("thermal",),
    )
    assert state(find(judge(one), LATENCY)) == (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)


def test_both_arms_a_little_slower_stays_open_on_a_steady_machine(
    situation: Make, judge: Judge, find: Find
) -> None:
    """12 % in both arms is beyond the ratio's bar, not beyond twice the threshold."""
    one = situation(
        before=BEFORE,
        after=latencies(0.0224, 0.0112),
        canaries_before=STEADY_BEFORE,
        canaries_after=canaries(1.0),
    )
    assert state(find(judge(one), LATENCY)) == (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)


# --- the machine ---


def test_slower_machine_is_not_a_regression(situation: Make, judge: Judge, find: Find) -> None:
    """30 % slower where the canaries are 30 % slower: INCONCLUSIVE, and the machine is named."""
    one = situation(
        before=BEFORE,
        after=latencies(0.026, 0.013),
        canaries_before=STEADY_BEFORE,
        canaries_after=canaries(1.3),
    )
    verdict = judge(one)
    assert state(find(verdict, LATENCY)) == (Status.INCONCLUSIVE, Reason.MACHINE_SHIFT)
    assert verdict.machine.canary == pytest.approx(0.3)
    assert verdict.machine.known
    assert any("machine" in note for note in tell_notes(verdict))


def test_regression_on_a_slower_machine_is_still_one(situation: Make, judge: Judge, find: Find) -> None:
    """Twice as slow on a machine that is 5 % slower convicts with and without the shift."""
    one = situation(
        before=BEFORE,
        after=latencies(0.021, 0.020),
        canaries_before=STEADY_BEFORE,
        canaries_after=canaries(1.05),
    )
    assert state(find(judge(one), LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)


def test_regression_that_a_faster_machine_hides_is_not_passed(
    situation: Make, judge: Judge, find: Find
) -> None:
    """On a machine that is a third faster, the same compiled time means a slower program."""
    one = situation(
        before=BEFORE,
        after=latencies(0.015, 0.010),
        canaries_before=STEADY_BEFORE,
        canaries_after=canaries(0.75),
    )
    assert state(find(judge(one), LATENCY)) == (Status.INCONCLUSIVE, Reason.MACHINE_SHIFT)


def test_a_faster_machine_is_not_what_eager_gained(situation: Make, judge: Judge, find: Find) -> None:
    """All is 10 % faster but compiled, which takes as long as ever: not only eager got faster."""
    one = situation(
        before=BEFORE,
        after=latencies(0.018, 0.010),
        canaries_before=STEADY_BEFORE,
        canaries_after=canaries(0.9),
    )
    found = find(judge(one), Metric.WARM_SPEEDUP)
    assert found.status is not Status.UNCHANGED
    assert found.reason is not Reason.EAGER_FASTER


def test_eager_of_four_cases_speaks_for_the_machine(situation: Make, judge: Judge, find: Find) -> None:
    """Without canaries, four cases whose eager is 30 % slower are a slower machine; three are not enough."""
    cases = [situation(case_id=f"m{n}/a", before=BEFORE, after=latencies(0.026, 0.013)) for n in range(4)]
    assert find(judge(*cases), LATENCY, "m0/a").reason is Reason.MACHINE_SHIFT
    assert judge(*cases).machine.suite == pytest.approx(0.3, rel=1e-3)
    assert find(judge(*cases[:3]), LATENCY, "m0/a").reason is Reason.SHARED_SHIFT
    assert judge(*cases[:3]).machine.suite == 0.0


def test_bad_minute_of_one_case_is_seen_by_its_own_canaries(
    situation: Make, judge: Judge, find: Find
) -> None:
    """One case of three ran while canaries were 50 % slow: its compile time is not held against it."""
    cases = [
        situation(
            case_id=f"m{n}/a",
            before={COLD: scale(FIVE, 10.0)},
            after={COLD: scale(THREE, 15.0 if n == 0 else 10.0)},
            canaries_before=STEADY_BEFORE,
            canaries_after=canaries(1.5 if n == 0 else 1.0),
        )
        for n in range(3)
    ]
    verdict = judge(*cases)
    assert state(find(verdict, COLD, "m0/a")) == (Status.INCONCLUSIVE, Reason.MACHINE_SHIFT)
    assert find(verdict, COLD, "m1/a").status is Status.UNCHANGED
    assert verdict.machine.canary == pytest.approx(0.0)


# --- compile times ---


def compile_times(cold: float, calls: float, spread: Sequence[float] = THREE) -> dict[Metric, Any]:
    return {COLD: scale(spread, cold), CALLS: (calls,) * len(spread)}


def test_longer_compile_with_more_calls_is_convicted(situation: Make, judge: Judge, find: Find) -> None:
    """30 % longer with 4 % more Python calls: the work itself grew."""
    verdict = judge(situation(before=compile_times(10, 1e6, FIVE), after=compile_times(13, 1.04e6)))
    assert state(find(verdict, COLD)) == (Status.REGRESSED, Reason.BEYOND_BAR)


def test_longer_compile_without_more_work_is_not(situation: Make, judge: Judge, find: Find) -> None:
    """30 % longer with the same calls, counters and code: not settled."""
    verdict = judge(situation(before=compile_times(10, 1e6, FIVE), after=compile_times(13, 1e6)))
    assert state(find(verdict, COLD)) == (Status.INCONCLUSIVE, Reason.UNCORROBORATED)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param((12.0, 7.0), (Status.INCONCLUSIVE, Reason.UNCORROBORATED), id="waited"),
        pytest.param((14.4, 7.0), (Status.REGRESSED, Reason.BEYOND_BAR), id="worked"),
        pytest.param((12.0, 9.0), (Status.INCONCLUSIVE, Reason.UNCORROBORATED), id="two_guards_more"),
    ],
)
def test_known_processor_time_decides_whether_a_compile_worked(
    situation: Make, judge: Judge, find: Find, after: tuple[float, float], expected: tuple[Status, Reason]
) -> None:
    """Twice as long: with the same 12 s of CPU time it waited, with 20 % more of them it worked."""
    processor_s, guards = after
    verdict = judge(
        situation(
            before={**compile_times(10, 1e6, FIVE), Metric.GUARDS: (7.0,) * 5},
            after={**compile_times(20, 1e6), Metric.GUARDS: (guards,) * 3},
            phases_before_s={"cpu_self": 8.0, "cpu_children": 4.0},
            phases_s={"cpu_self": processor_s - 4.0, "cpu_children": 4.0},
        )
    )
    assert state(find(verdict, COLD)) == expected


def test_far_longer_compile_needs_no_witness(situation: Make, judge: Judge, find: Find) -> None:
    """Twice as long is beyond three thresholds even from its lower bound."""
    verdict = judge(situation(before=compile_times(10, 1e6, FIVE), after=compile_times(20, 1e6)))
    assert state(find(verdict, COLD)) == (Status.REGRESSED, Reason.BEYOND_BAR)


@pytest.mark.parametrize("metric", [Metric.CACHE_MISSES, Metric.CAPTURED_OPS, Metric.RECOMPILES])
def test_counters_that_moved_corroborate(situation: Make, judge: Judge, find: Find, metric: Metric) -> None:
    """A counter of the compile that differs explains a longer one."""
    before = {**compile_times(10, 1e6, FIVE), metric: (1.0,) * 5}
    after = {**compile_times(13, 1e6), metric: (2.0,) * 3}
    assert find(judge(situation(before=before, after=after)), COLD).status is Status.REGRESSED


def test_longer_compile_is_judged_by_the_clock_where_calls_are_unknown(
    situation: Make, judge: Judge, find: Find
) -> None:
    """Without the proxy on both sides there is nothing to ask for."""
    verdict = judge(situation(before={COLD: scale(FIVE, 10.0)}, after={COLD: scale(THREE, 13.0)}))
    assert state(find(verdict, COLD)) == (Status.REGRESSED, Reason.BEYOND_BAR)


def test_calls_of_another_baseline_are_no_witness(situation: Make, judge: Judge, find: Find) -> None:
    """This host's baseline is too old to tell calls; another host's has as many, and another compile's."""
    here = situation(before={COLD: scale(FIVE, 10.0)}, after=compile_times(11.4, 1e6))
    there = replace(here, before=compile_times(10, 1e6, FIVE), after={}, host=replace(CPU_HOST, cpu="other"))
    verdict = decide_verdict(make_run(here), make_baselines(here, there), make_policy())
    assert find(verdict, Metric.COMPILE_CALLS).status is Status.UNCHANGED
    assert state(find(verdict, COLD)) == (Status.INCONCLUSIVE, Reason.SUSPECT)
    assert state(find(judge(replace(there, host=CPU_HOST, after=here.after)), COLD)) == (
        Status.UNCHANGED,
        Reason.SAME_WORK,
    )


def test_idle_suspicion_of_a_compile_is_dropped(situation: Make, judge: Judge, find: Find) -> None:
    """8 % longer, below the threshold of 10 %, with proxies that stand still: noise."""
    verdict = judge(situation(before=compile_times(10, 1e6, FIVE), after=compile_times(10.8, 1e6)))
    assert find(verdict, COLD).status is Status.UNCHANGED
    without = judge(situation(before={COLD: scale(FIVE, 10.0)}, after={COLD: scale(THREE, 10.8)}))
    assert state(find(without, COLD)) == (Status.INCONCLUSIVE, Reason.SUSPECT)


Duo = Callable[[Mapping[Metric, Any], Mapping[Metric, Any]], Comparison]


@pytest.fixture
def duo(situation: Make, judge: Judge, find: Find) -> Duo:
    """What is made of a cold compile time, stored and measured."""
    return lambda before, after: find(judge(situation(before=before, after=after)), COLD)


# Cold compiles of one program that vary by some 30 %: even a change of 30 % could hide in them.
WILD = (0.70, 1.00, 1.40, 1.25, 0.80)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(FIVE, (11.4, 1e6), (Status.UNCHANGED, Reason.SAME_WORK), id="suspect"),
        pytest.param(WILD, (10.0, 1e6), (Status.UNCHANGED, Reason.SAME_WORK), id="too_noisy"),
        pytest.param(WILD, (10.0, 1.04e6), (Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH), id="more_calls"),
        pytest.param(FIVE, (13.0, 1e6), (Status.INCONCLUSIVE, Reason.UNCORROBORATED), id="convicted"),
    ],
)
def test_what_only_the_clock_doubts_of_a_compile_is_no_doubt(
    duo: Duo, before: Sequence[float], after: tuple[float, float], expected: tuple[Status, Reason]
) -> None:
    """The same calls, counters and code are the same work; only a clock that is sure says it waited."""
    spread = THREE if before is FIVE else (0.9, 1.0, 1.1)
    row = duo(compile_times(10, 1e6, before), compile_times(*after, spread))
    assert state(row) == expected


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        pytest.param(3.0, Reason.SAME_WORK, id="as long"),
        pytest.param(3.4, Reason.SAME_WORK, id="13 % longer"),
        pytest.param(4.2, Reason.UNCORROBORATED, id="40 % longer"),
    ],
)
def test_a_warm_compile_that_looks_longer_is_not_cleared_by_its_calls(
    situation: Make, judge: Judge, find: Find, seconds: float, reason: Reason
) -> None:
    """Calls are counted without caches: what reading them takes no counter shows. Its limit is 15 %."""
    before = {WARM: scale(WILD, 3.0), CALLS: (1e6,) * 5}
    after = {WARM: scale((0.8, 1.0, 1.25), seconds), CALLS: (1e6,) * 3}
    assert find(judge(situation(before=before, after=after)), WARM).reason is reason


def test_canaries_that_are_slow_by_chance_clear_no_warm_compile(
    situation: Make, judge: Judge, find: Find
) -> None:
    """30 % longer; canaries that vary by 17 % are 15 % slower this time: no shift that anybody is sure of."""
    canary = {"copy": scale(WILD, 1e-3)}
    before = {WARM: scale(FIVE, 3.0), CALLS: (1e6,) * 5}
    one = situation(
        before=before,
        after={WARM: (3.9,), CALLS: (1e6,)},
        canaries_before=canary,
        canaries_after={"copy": (1.17e-3,)},
    )
    assert state(find(judge(one), WARM))[0] is Status.INCONCLUSIVE


@pytest.mark.parametrize(
    ("before", "after", "corroborated"),
    [(1000, 1019, False), (1000, 981, False), (1000, 1021, True), (1000, 979, True), (0, 1000, True)],
    ids=["2 % more", "2 % less", "more than that", "less than that", "not counted"],
)
def test_other_code_of_the_same_length_is_no_more_to_compile(  # noqa: PLR0913, PLR0917 - three figures, three fixtures
    situation: Make, judge: Judge, find: Find, before: int, after: int, corroborated: bool
) -> None:
    """A constant changed: a compile that takes a third longer by the clock alone waited for something."""
    verdict = judge(
        situation(
            before=compile_times(10, 1e6, FIVE),
            after=compile_times(13.0, 1e6),
            code_before=CodeIdentity(digest="a", size=before),
            code_after=CodeIdentity(digest="b", size=after),
        )
    )
    assert (find(verdict, COLD).status is Status.REGRESSED) is corroborated


def test_error_budget_is_shared_by_all_comparisons(situation: Make, judge: Judge, find: Find) -> None:
    """A change that is convicted alone is not convicted at a thousandth of the budget."""
    one = situation(before=BEFORE, after=latencies(0.020, 0.0117))
    assert find(judge(one), LATENCY).status is Status.REGRESSED
    assert find(judge(one, error_budget=1e-5), LATENCY).status is Status.INCONCLUSIVE
    assert find(judge(one, looks=1000), LATENCY).status is Status.INCONCLUSIVE


MOODS = (1.0, 1.3, 0.85, 1.15, 0.9)  # how slow the machine was in each baseline trial
TODAY = (1.1, 0.9, 1.05)
RATIOS = (1.50, 1.51, 1.49, 1.50, 1.50)


@pytest.mark.parametrize(
    ("compiled", "eager", "convicted"),
    [
        pytest.param(1.33, 1.0, True, id="compiled slower"),
        pytest.param(1.0, 0.7, False, id="eager faster"),
        pytest.param(1.0, 1.0, False, id="neither"),
    ],
)
def test_ratio_convicts_where_the_machine_is_moody(  # noqa: PLR0913, PLR0917 - three figures, three fixtures
    situation: Make, judge: Judge, find: Find, compiled: float, eager: float, convicted: bool
) -> None:
    """With 15 % between sittings and 0.5 % in the ratio, a third slower compiled code is still seen."""
    before = {
        Metric.COMPILED_LATENCY: tuple(0.010 * mood for mood in MOODS),
        Metric.EAGER_LATENCY: tuple(0.015 * mood for mood in MOODS),
        Metric.WARM_SPEEDUP: RATIOS,
    }
    after = {
        Metric.COMPILED_LATENCY: tuple(0.010 * compiled * mood for mood in TODAY),
        Metric.EAGER_LATENCY: tuple(0.015 * eager * mood for mood in TODAY),
    }
    latency = find(judge(situation(before=before, after=after)), Metric.COMPILED_LATENCY)
    assert (latency.status is Status.REGRESSED) is convicted
