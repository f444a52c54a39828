"""Noisy metrics against stored values: the rule by made-up readings, then whole cases."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.constants import CLEAR_CONFIDENCE
from gate.decide.evidence.compiles import Work
from gate.decide.evidence.gather import Evidence, gather_evidence
from gate.decide.judge.compare import add_questions
from gate.decide.judge.interval import Bar, Reading
from gate.decide.judge.stored import Times, judge_time, make_rules
from gate.decide.stats import Variance
from gate.decide.suspects import list_suspects
from gate.decide.verdict import decide_verdict, screen_run
from gate.metrics import SPECS
from gate.records.cases import Kind, Metric, Task, Threshold
from gate.records.run import CodeIdentity, Shard
from gate.records.verdict import Reason, Status, Verdict
from tests.hosts import CPU_HOST
from tests.make import POLICY, Situation, decide, decide_row, find_row, make_measured, make_stored, state
from tests.words import describe_comparison, write_notes

from .one_case import scale

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD, WARM, CALLS = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME, Metric.COMPILE_CALLS
BREAKS, FALLBACKS = Metric.GRAPH_BREAKS, Metric.EAGER_FALLBACKS

State = tuple[Status, Reason]
WORSE, BETTER = (Status.REGRESSED, Reason.BEYOND_BAR), (Status.IMPROVED, Reason.BEYOND_BAR)
SAME, PACE = (Status.UNCHANGED, Reason.BELOW_THRESHOLD), (Status.UNCHANGED, Reason.SAME_WORK)
SHARED, SUSPECT = (Status.INCONCLUSIVE, Reason.SHARED_SHIFT), (Status.INCONCLUSIVE, Reason.UNSETTLED)
NOISY, FEW = (Status.INCONCLUSIVE, Reason.UNSETTLED), (Status.INCONCLUSIVE, Reason.FEW_TRIALS)
WAITED, WORK = (Status.INCONCLUSIVE, Reason.UNCORROBORATED), (Status.UNCHANGED, Reason.SAME_WORK)
STANDS = (Status.UNCHANGED, Reason.LEADER_STANDS)


# --- the rule, by readings whose edges are ln 1.05, and of compiles ln 1.1 and ln 1.15 ---


Estimates = Mapping[Metric, tuple[float, float]]


def make_times(
    estimates: Estimates, work: Work | None = None, *, stored_code: bool = False, suite: float = 0.0
) -> Times:
    """Readings of these log changes and standard errors, with 20 degrees of freedom."""
    readings = {
        metric: Reading(
            change=change,
            error=error,
            df=20.0,
            noise=Variance(value=error**2, df=20.0),
            baseline=10.0,
            candidate=0.01,
            trials=3,
            baseline_trials=5,
        )
        for metric, (change, error) in estimates.items()
    }
    bars = {metric: Bar(alpha=0.001, threshold=SPECS[metric].threshold, edges=1.5) for metric in readings}
    return Times(readings=readings, bars=bars, work=work or Work(), stored_code=stored_code, suite=suite)


@pytest.mark.parametrize(
    ("clock", "ratio", "expected"),
    [
        (0.20, 0.20, WORSE),
        (0.20, 0.06, WORSE),
        (0.06, 0.20, WORSE),
        (0.06, 0.06, SUSPECT),
        (0.20, 0.04, SHARED),
        (0.04, 0.20, SUSPECT),
        (0.00, 0.00, SAME),
        (-0.20, 0.00, SAME),
        (-0.20, -0.06, BETTER),
        (0.20, None, WORSE),
        (0.06, None, SUSPECT),
        (0.00, None, SAME),
        (-0.20, None, BETTER),
    ],
)
def test_a_latency_is_worse_by_clock_and_ratio_together(
    clock: float, ratio: float | None, expected: State
) -> None:
    """With 1 % of error it is beyond 5 % from 0.049 + 3.552 x 0.01 = 0.085 on, by clock and ratio."""
    estimates = {} if ratio is None else {SPEEDUP: (ratio, 0.01)}
    assert judge_time(LATENCY, make_times({LATENCY: (clock, 0.01), **estimates})) == expected


@pytest.mark.parametrize(
    ("clock", "eager", "expected"),
    [
        (0.00, -0.10, SAME),
        (0.00, -0.09, SUSPECT),
        (0.00, None, SUSPECT),
        (0.06, -0.10, SUSPECT),
        (0.06, -0.09, WORSE),
        (0.20, -0.10, WORSE),
        (-0.20, -0.10, SAME),
    ],
)
def test_a_ratio_that_fell_since_eager_got_faster_does_not_count(
    clock: float, eager: float | None, expected: State
) -> None:
    """If half of a ratio's fall of 0.2 is eager's, the clock alone decides."""
    estimates = {} if eager is None else {EAGER: (eager, 0.01)}
    times = make_times({LATENCY: (clock, 0.01), SPEEDUP: (0.2, 0.01), **estimates})
    assert judge_time(LATENCY, times) == expected


@pytest.mark.parametrize(
    ("clock", "changes", "expected"),
    [
        pytest.param(0.04, {"stored_code": True}, PACE, id="the same code"),
        pytest.param(0.04, {}, NOISY, id="other code"),
        pytest.param(0.06, {"stored_code": True}, PACE, id="slower by chance"),
        pytest.param(0.06, {}, SUSPECT, id="slower by chance, other code"),
        pytest.param(0.07, {"stored_code": True}, SHARED, id="surely slower"),
        pytest.param(0.07, {"stored_code": True, "suite": 0.01}, PACE, id="as all cases"),
        pytest.param(0.07, {"stored_code": True, "suite": -0.01}, SHARED, id="where all are faster"),
    ],
)
def test_calls_of_the_same_code_that_kept_pace_with_eager_are_clear(
    clock: float, changes: dict[str, Any], expected: State
) -> None:
    """The clock's 5 % of error hide 0.06, t(.90) = 1.325 x 0.05 = 0.066; the ratio clears it."""
    times = make_times({LATENCY: (clock, 0.05), SPEEDUP: (0.0, 0.01)}, **changes)
    assert judge_time(LATENCY, times) == expected


@pytest.mark.parametrize(
    ("clock", "error", "suite_bounds", "expected"),
    [
        pytest.param(0.045, 0.03, 0.0, PACE, id="surely slower, by less than matters"),
        pytest.param(0.055, 0.03, 0.0, SHARED, id="surely slower, by what matters"),
        pytest.param(0.055, 0.03, 0.99, SHARED, id="than the suite"),
        pytest.param(0.055, 0.03, 1.0, PACE, id="than the suite at most"),
    ],
)
def test_calls_of_the_same_code_are_slower_by_what_matters_and_than_the_suite(
    clock: float, error: float, suite_bounds: float, expected: State
) -> None:
    """The lower bound at 90 % is 1.325 x 0.03 = 0.040 below the estimate, and the edge is 0.049."""
    times = make_times({LATENCY: (clock, error), SPEEDUP: (0.0, 0.01)}, stored_code=True)
    bound = times.readings[LATENCY].compute_bound(1 - CLEAR_CONFIDENCE)
    assert judge_time(LATENCY, replace(times, suite=suite_bounds * bound)) == expected


SAME_CALLS, MORE_CALLS = Work(calls=0.0), Work(calls=0.03)


@pytest.mark.parametrize(
    ("metric", "reading", "work", "expected"),
    [
        (COLD, (0.30, 0.01), MORE_CALLS, WORSE),
        (COLD, (0.30, 0.01), Work(), WORSE),
        (COLD, (0.30, 0.01), SAME_CALLS, WAITED),
        (COLD, (-0.30, 0.01), Work(calls=-0.03), BETTER),
        (COLD, (-0.30, 0.01), SAME_CALLS, SAME),
        (COLD, (0.12, 0.05), SAME_CALLS, WORK),
        (COLD, (0.12, 0.05), MORE_CALLS, SUSPECT),
        (COLD, (0.08, 0.05), SAME_CALLS, WORK),
        (COLD, (0.08, 0.05), MORE_CALLS, NOISY),
        (COLD, (0.00, 0.01), MORE_CALLS, SAME),
        (WARM, (0.13, 0.08), SAME_CALLS, WORK),
        (WARM, (0.15, 0.05), SAME_CALLS, SUSPECT),
    ],
)
def test_a_compile_is_convicted_by_more_work_and_cleared_by_the_same(
    metric: Metric, reading: tuple[float, float], work: Work, expected: State
) -> None:
    """Edges are 0.095 and 0.140. No count shows cache reads, so a warm compile must not look longer."""
    assert judge_time(metric, make_times({metric: reading}, work)) == expected


@pytest.mark.parametrize(
    ("work", "explains", "is_same"),
    [
        pytest.param(Work(), (True, True), (False, False), id="nothing known"),
        pytest.param(Work(calls=0.0197), (False, False), (True, True), id="1.99 % more calls"),
        pytest.param(Work(calls=math.log1p(0.02)), (False, False), (True, True), id="2 % more calls"),
        pytest.param(Work(calls=0.0199), (True, True), (False, False), id="2.01 % more calls"),
        pytest.param(Work(calls=-0.5), (False, False), (True, True), id="fewer calls"),
        pytest.param(Work(calls=0.0, counts=True), (True, True), (False, False), id="another counter"),
        pytest.param(
            Work(calls=0.0, processor=0.139), (False, False), (True, True), id="14.9 % more CPU time"
        ),
        pytest.param(
            Work(calls=0.0, processor=math.log1p(0.15)), (False, False), (True, True), id="15 % more CPU time"
        ),
        pytest.param(
            Work(calls=0.0, processor=0.140), (True, False), (False, True), id="15.1 % more CPU time"
        ),
        pytest.param(
            Work(calls=0.03, processor=0.0), (True, True), (False, False), id="calls beside CPU time"
        ),
        pytest.param(
            Work(calls=0.0, counts=True, processor=0.0), (False, True), (False, False), id="a guard"
        ),
        pytest.param(Work(processor=0.0), (False, True), (False, False), id="calls unknown"),
    ],
)
def test_what_is_a_trace_of_work(work: Work, explains: tuple[bool, bool], is_same: tuple[bool, bool]) -> None:
    """Counts that explain a longer cold or warm compile, or show the same work."""
    assert (work.explains(COLD), work.explains(WARM)) == explains
    assert (work.is_same(COLD), work.is_same(WARM)) == is_same


# --- whole cases ---

FIVE = (0.990, 1.000, 1.010, 1.005, 0.995)
THREE = (0.995, 1.000, 1.005)
WILD = (0.7, 1.4, 1.0, 0.8, 1.25)


def latencies(eager: float, compiled: float, spread: Sequence[float] = THREE) -> dict[Metric, Any]:
    return {EAGER: scale(eager, spread), LATENCY: scale(compiled, spread)}


def compile_times(cold: float, calls: float, spread: Sequence[float] = THREE) -> dict[Metric, Any]:
    return {COLD: scale(cold, spread), CALLS: (calls,) * len(spread)}


BEFORE = latencies(0.020, 0.010, FIVE)


@pytest.mark.parametrize(
    ("before", "after", "latency", "speedup"),
    [
        pytest.param(BEFORE, latencies(0.020, 0.010), SAME, SAME, id="unchanged"),
        pytest.param(BEFORE, latencies(0.020, 0.013), WORSE, WORSE, id="compiled slower"),
        pytest.param(BEFORE, latencies(0.020, 0.010 / 1.3), BETTER, BETTER, id="compiled faster"),
        pytest.param(BEFORE, latencies(0.020, 0.020, (1.0,)), WORSE, WORSE, id="twice as slow in one trial"),
        pytest.param(BEFORE, latencies(0.020, 0.0106), SUSPECT, SUSPECT, id="6 % slower"),
        pytest.param(BEFORE, latencies(0.026, 0.013), SHARED, SAME, id="both slower"),
        pytest.param(BEFORE, latencies(0.014, 0.010), SAME, STANDS, id="eager faster"),
        pytest.param(BEFORE, latencies(0.030, 0.010), SAME, STANDS, id="eager slower"),
        pytest.param(BEFORE, latencies(0.016, 0.0106), SUSPECT, SUSPECT, id="eager faster, compiled open"),
        pytest.param(BEFORE, latencies(0.03, 0.013, (1.0,)), SHARED, SUSPECT, id="less slow than eager"),
        pytest.param(latencies(0.02, 0.01, WILD), latencies(0.02, 0.0096), NOISY, SAME, id="wild trials"),
        pytest.param(
            latencies(0.02, 0.01, (1.0, 1.0)), latencies(0.02, 0.03), FEW, FEW, id="two stored trials"
        ),
        pytest.param(latencies(6e-5, 3e-5, FIVE), latencies(9e-5, 4e-5), SAME, STANDS, id="10 us"),
    ],
)
def test_a_speedup_follows_its_latency(
    before: Mapping[Metric, Any], after: Mapping[Metric, Any], latency: State, speedup: State
) -> None:
    """20 ms eager and 10 ms compiled, five stored with a spread of 1 %, against three trials."""
    verdict = decide(Situation(before=before, after=after))
    assert state(find_row(verdict, LATENCY)) == latency
    assert state(find_row(verdict, SPEEDUP)) == speedup
    assert not find_row(verdict, EAGER).decides


def test_without_its_latency_a_speedup_is_open() -> None:
    """A stored ratio alone that fell by half is open."""
    before = {SPEEDUP: scale(2.0, FIVE)}
    assert state(decide_row(SPEEDUP, before=before, after=latencies(0.02, 0.02))) == SUSPECT


def test_the_change_is_shown_with_what_would_have_been_noticed() -> None:
    """30 % slower; of the 10 ms again 5 % and t(.95; 140) = 1.656 errors of 1.13 % would have shown.

    s2 = (4 x 6.25e-5 + 2 x 2.5e-5) / 6 = 5e-5 with 6 degrees of freedom, SE = sqrt(5e-5 (1/3 + 1/5) + 1e-4).
    Of these 1.267e-4 the session's 1e-4 is known: 1.267e-4^2 / (2.667e-5^2 / 6) = 135 degrees of freedom.
    """
    slower = decide_row(LATENCY, before=BEFORE, after=latencies(0.020, 0.013)).change
    again = decide_row(LATENCY, before=BEFORE, after=latencies(0.020, 0.010)).change
    assert slower is not None
    assert again is not None
    assert slower.centre == pytest.approx(0.30, abs=1e-3)
    error = math.sqrt(5e-5 * (1 / 3 + 1 / 5) + 1e-4)
    seen = min(1.5 * math.log(1.05) - 1.288 * error, math.log(1.05)) + 1.656 * error
    assert again.detectable == pytest.approx(math.expm1(seen), abs=1e-4)


def test_value_of_zero_has_no_ratio() -> None:
    """A compile time of zero is not compared, and the sentence says so."""
    row = decide_row(COLD, before={COLD: (0.0, 1.0, 1.0)}, after={COLD: (1.0,)})
    assert state(row) == NOISY
    assert "no ratio" in describe_comparison(row)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((0.0, 0.0), (0.0,), Status.UNCHANGED),
        ((0.0, 0.01), (0.2,), Status.UNCHANGED),  # of 0.3 s
        ((0.0, 0.0), (0.3,), Status.UNCHANGED),
        ((3.0, 3.1), (0.0,), Status.UNCHANGED),
        ((0.0, 0.2), (0.4,), Status.INCONCLUSIVE),
        ((0.0, 0.2), (0.1, 0.4), Status.INCONCLUSIVE),
        ((0.0, 0.0), (50.0,), Status.INCONCLUSIVE),
    ],
)
def test_a_compile_that_takes_no_longer_than_a_call_is_unchanged_up_to_its_threshold(
    before: tuple[float, ...], after: tuple[float, ...], expected: Status
) -> None:
    """Its time is zero, and it would be open in every check."""
    row = decide_row(WARM, before={WARM: before}, after={WARM: after})
    assert row.status is expected


def test_a_call_that_takes_no_time_is_open() -> None:
    """A latency of 0 s is no measurement, though 10 us are below its threshold of 20 us."""
    row = decide_row(LATENCY, before={LATENCY: (0.0, 0.0)}, after={LATENCY: (10e-6,)})
    assert row.status is Status.INCONCLUSIVE


def test_error_budget_is_shared_by_all_comparisons() -> None:
    """A change that regresses alone is open at a thousandth of the budget."""
    situation = Situation(before=BEFORE, after=latencies(0.020, 0.01095))
    states = [
        state(find_row(decide(situation, **to), LATENCY))
        for to in ({}, {"error_budget": 1e-5}, {"times_judged": 1000})
    ]
    assert states == [WORSE, SUSPECT, SUSPECT]


@pytest.mark.parametrize(
    ("changes", "divisor"),
    [
        pytest.param([{}], 2, id="a latency and its speedup"),
        pytest.param([{}, {}], 4, id="of two cases"),
        pytest.param([{}, {"before": latencies(0.02, 0.01, (1.0, 1.0))}], 2, id="two trials decide nothing"),
        pytest.param([{"before": latencies(0.02, 0.01, (1.0, 1.0))}], 1, id="nothing decides"),
        pytest.param([{}, {"before": {BREAKS: (0.0, 1.0)}, "after": {BREAKS: (0.0,)}}], 4, id="flickers"),
        pytest.param([{"before": {COLD: (0.0,) * 3}, "after": {COLD: (1.0,)}}], 1, id="no ratio"),
    ],
)
def test_the_error_budget_is_divided_by_what_may_be_a_false_alarm(
    changes: Sequence[Mapping[str, Any]], divisor: int
) -> None:
    """By each deciding time with three stored trials, and in each case by each count that flickers.

    Times are judged twice; counts are not.
    """
    usual = {"before": latencies(0.02, 0.01), "after": latencies(0.02, 0.01)}
    situations = [
        Situation(case_id=f"m{number}/x", **(usual | dict(each))) for number, each in enumerate(changes)
    ]
    policy = replace(POLICY, error_budget=0.02, times_judged=2)
    rules = make_rules(gather(*situations), policy, has_base=False)
    assert rules.alpha == pytest.approx(0.01 / divisor)
    assert rules.counts.alpha == pytest.approx(0.02 / divisor)


def gather(*situations: Situation) -> list[Evidence]:
    gathered = gather_evidence(make_measured(*situations), make_stored(*situations))
    return [add_questions(evidence, POLICY) for evidence in gathered]


@pytest.mark.parametrize(("has_base", "sd"), [(True, 0.0), (False, 0.0658)])
def test_speedups_that_differ_between_sessions_count_without_a_base(*, has_base: bool, sd: float) -> None:
    """1.4826 times 4.44 %, the median of 3.0, 3.0, 5.8 and 6.2 %: pairs with a base show it themselves."""
    situations = [
        Situation(case_id=f"m{ratio}/x", before=latencies(0.02, 0.01), after=latencies(0.02 * ratio, 0.01))
        for ratio in (1.06, 0.94, 1.03, 0.97)
    ]
    rules = make_rules(gather(*situations), POLICY, has_base=has_base)
    assert math.sqrt(rules.uneven.value) == pytest.approx(sd, abs=1e-3)


def test_a_shard_leaves_the_other_cases_their_part_of_the_budget() -> None:
    """A change that regresses alone is open as one of a thousand cases of all shards."""
    situation = Situation(before=BEFORE, after=latencies(0.020, 0.01095))
    run, stored = make_measured(situation), make_stored(situation)
    shard = replace(run, shard=Shard(number=1, of=10, cases=1000))
    verdicts = [decide_verdict(each, stored, POLICY) for each in (run, shard)]
    assert [state(find_row(each, LATENCY)) for each in verdicts] == [WORSE, SUSPECT]


MOODS = (1.0, 1.3, 0.85, 1.15, 0.9)  # how slow the machine was in each baseline trial
TODAY = (1.1, 0.9, 1.05)


@pytest.mark.parametrize(
    ("compiled", "eager", "convicted"), [(1.33, 1.0, True), (1.0, 0.7, False), (1.0, 1.0, False)]
)
def test_ratio_convicts_where_the_machine_is_unsteady(compiled: float, eager: float, convicted: bool) -> None:
    """With 15 % between sessions a third slower regresses by the ratio."""
    after = {LATENCY: scale(0.010 * compiled, TODAY), EAGER: scale(0.015 * eager, TODAY)}
    row = decide_row(LATENCY, before=latencies(0.015, 0.010, MOODS), after=after)
    assert (row.status is Status.REGRESSED) is convicted


# --- what a compile did ---


@pytest.mark.parametrize("metric", [Metric.CACHE_MISSES, Metric.CAPTURED_OPS, Metric.RECOMPILES])
def test_counters_that_moved_corroborate(metric: Metric) -> None:
    """30 % longer is open with as many calls, and regresses with a changed counter."""
    before, after = compile_times(10, 1e6, FIVE), compile_times(13, 1e6)
    assert state(decide_row(COLD, before=before, after=after)) == WAITED
    more = decide_row(COLD, before={**before, metric: (1.0,) * 5}, after={**after, metric: (2.0,) * 3})
    assert state(more) == WORSE


@pytest.mark.parametrize(("processor_s", "expected"), [(12.0, WAITED), (14.4, WORSE)])
def test_known_processor_time_decides_whether_a_compile_worked(processor_s: float, expected: State) -> None:
    """Twice as long is open with the same 12 s of CPU time, and regresses with 20 % more."""
    row = decide_row(
        COLD,
        before={**compile_times(10, 1e6, FIVE), Metric.GUARDS: (7.0,) * 5},
        after={**compile_times(20, 1e6), Metric.GUARDS: (9.0,) * 3},
        phases_before_s={"cpu_self": 8.0, "cpu_children": 4.0},
        phases_s={"cpu_self": processor_s - 4.0, "cpu_children": 4.0},
    )
    assert state(row) == expected


def test_less_than_a_second_of_processor_time_is_compared() -> None:
    """A compile of half a second's work that is twice as long regresses with 20 % more."""
    for more, expected in ((1.0, WAITED), (1.2, WORSE)):
        row = decide_row(
            COLD,
            before={**compile_times(10, 1e6, FIVE), Metric.GUARDS: (7.0,) * 5},
            after={**compile_times(20, 1e6), Metric.GUARDS: (9.0,) * 3},
            phases_before_s={"cpu_self": 0.5},
            phases_s={"cpu_self": 0.5 * more},
        )
        assert state(row) == expected


@pytest.mark.parametrize(
    ("stored_s", "measured_s"),
    [
        pytest.param({"cpu_self": 0.0}, {"cpu_self": 9.0}, id="zero before"),
        pytest.param({"cpu_self": 9.0}, {"cpu_self": 0.0}, id="zero now"),
        pytest.param({"cpu_self": 9.0}, {}, id="unknown now"),
        pytest.param({}, {"cpu_self": 9.0}, id="unknown before"),
    ],
)
def test_without_processor_time_counts_show_whether_a_compile_worked(
    stored_s: Mapping[str, float], measured_s: Mapping[str, float]
) -> None:
    """Twice as long regresses with two guards more."""
    row = decide_row(
        COLD,
        before={**compile_times(10, 1e6, FIVE), Metric.GUARDS: (7.0,) * 5},
        after={**compile_times(20, 1e6), Metric.GUARDS: (9.0,) * 3},
        phases_before_s=stored_s,
        phases_s=measured_s,
    )
    assert state(row) == WORSE


def test_the_newest_baselines_processor_time_counts() -> None:
    """12 s of CPU time in the newest of two baselines are those of head, and twice the time is open."""
    newest = Situation(
        before={**compile_times(10, 1e6, FIVE), Metric.GUARDS: (7.0,) * 5},
        after={**compile_times(20, 1e6), Metric.GUARDS: (9.0,) * 3},
        phases_before_s={"cpu_self": 12.0},
        phases_s={"cpu_self": 12.0},
    )
    older = replace(newest, created="2026-01-30T00:00:00Z", phases_before_s={"cpu_self": 6.0})
    verdict = decide_verdict(make_measured(newest), make_stored(older, newest), POLICY)
    assert state(find_row(verdict, COLD)) == WAITED


@pytest.mark.parametrize(
    ("change", "processor", "has_base", "expected"),
    [
        pytest.param(0.12, 0.12, True, SUSPECT, id="by both"),
        pytest.param(0.12, None, True, SUSPECT, id="by the clock, CPU time unknown"),
        pytest.param(0.12, 0.05, True, WORK, id="by the clock alone"),
        pytest.param(0.09, 0.12, True, WORK, id="by CPU time alone"),
        pytest.param(0.12, math.log1p(0.1), True, WORK, id="by the threshold of CPU time"),
        pytest.param(math.log1p(0.1), 0.12, True, WORK, id="by the threshold of the clock"),
        pytest.param(0.12, 0.12, False, WORK, id="without a base"),
    ],
)
def test_a_longer_cold_compile_that_did_the_same_work_gets_its_pair(
    change: float, processor: float | None, has_base: bool, expected: State
) -> None:
    """An estimate beyond ln 1.1 = 0.095 that is not sure is suspect."""
    times = make_times({COLD: (change, 0.05)}, Work(calls=0.0, processor=processor))
    assert judge_time(COLD, replace(times, has_base=has_base)) == expected


def test_calls_of_another_hosts_baseline_clear_nothing() -> None:
    """This host's baseline has no calls; another host's calls do not clear the compile."""
    here = Situation(before={COLD: scale(10.0, FIVE)}, after=compile_times(11.2, 1e6))
    there = replace(here, before=compile_times(10, 1e6, FIVE), after={}, host=replace(CPU_HOST, cpu="other"))
    verdict = decide_verdict(make_measured(here), make_stored(here, there), POLICY)
    assert find_row(verdict, CALLS).status is Status.UNCHANGED
    assert state(find_row(verdict, COLD)) == SUSPECT
    assert state(find_row(decide(replace(there, host=CPU_HOST, after=here.after)), COLD)) == WORK


# --- calls of the baseline's own code that kept pace with eager's ---

# Stored trials of a machine whose speed wanders by 7 %, of eager and compiled alike, and of a steady one.
WANDERING = (0.92, 1.0, 1.1, 1.04, 0.94)
STEADY = (0.995, 1.0, 1.005, 1.0, 1.0)
INPUTS = {
    "inputs": "float32[64, 8]",
    "parameters": "64",
    "settings": "float32 products highest",
    "runtime": "2 threads",
}
CODE = CodeIdentity(digest="a", calls={"extern_kernels.mm": 2, "torch.ops.aten._softmax": 1})
CUSTOM = replace(CODE, calls={"torch.ops.mine.attention": 1})
KNOWN: dict[str, Any] = {
    "code_before": CODE,
    "code_after": CODE,
    "workload_before": INPUTS,
    "workload_after": INPUTS,
}


def drop(name: str) -> dict[str, str]:
    return {key: value for key, value in INPUTS.items() if key != name}


def measure(*spread: float, ratio: float = 1.0, breaks: float = 0.0) -> dict[Metric, tuple[float, ...]]:
    """Trials of 20 ms eager and 10 ms times ``ratio`` compiled, each times one of ``spread``."""
    counts = {BREAKS: (breaks,) * len(spread), FALLBACKS: (0.0,) * len(spread)}
    return latencies(0.020, 0.010 * ratio, spread) | counts


def judge_latency(**changes: Any) -> State:
    """One trial against five on a wandering machine, with the same code."""
    return state(
        decide_row(LATENCY, **{**KNOWN, "before": measure(*WANDERING), "after": measure(1.08), **changes})
    )


@pytest.mark.parametrize("moved", [1.08, 1.0])
def test_the_same_code_that_kept_pace_is_clear_however_the_machine_moved(moved: float) -> None:
    """One trial in which eager and compiled moved alike is clear."""
    assert judge_latency(after=measure(moved)) == PACE


@pytest.mark.parametrize(
    "changes",
    [
        {"code_after": replace(CODE, digest="b")},
        {"code_before": replace(CODE, digest="")},
        {"code_before": CUSTOM, "code_after": CUSTOM},
        {"code_before": replace(CODE, tuned="x"), "code_after": replace(CODE, tuned="y")},
        {"before": measure(*WANDERING, breaks=1.0), "after": measure(1.08, breaks=1.0)},
        {"before": {name: values for name, values in measure(*WANDERING).items() if name is not FALLBACKS}},
        {"code_after": replace(CODE, tuned="x")},
        {"code_after": replace(CODE, calls={**CODE.calls, **CUSTOM.calls})},
        {"workload_after": INPUTS | {"inputs": "float32[70, 8]"}},
        {"workload_after": INPUTS | {"runtime": "1 thread"}},
        *({"workload_before": drop(name)} for name in INPUTS),
        *({"workload_after": drop(name)} for name in INPUTS),
        {"before": {LATENCY: scale(0.01, WANDERING)}, "after": {LATENCY: (0.0108,)}},
        {"task": Task.TRAINING},
        {"kind": Kind.SERVING},
        {"after": measure(1.08, ratio=1.06)},
        {"before": measure(*WANDERING) | {EAGER: (0.0220, 0.0184, 0.0188, 0.0200, 0.0208)}},
    ],
    ids=[
        "other code",
        "unknown code",
        "an operator of one's own",
        "tuned otherwise",
        "a graph break",
        "fallbacks unknown",
        "tuned where the baseline was not",
        "an operator of one's own, in head alone",
        "larger inputs, of sizes that the code leaves open",
        "fewer threads",
        *(f"{name} unknown before" for name in INPUTS),
        *(f"{name} unknown" for name in INPUTS),
        "eager unknown",
        "a training step",
        "another kind of call",
        "the ratio moved",
        "a ratio too noisy to tell",
    ],
)
def test_without_the_same_code_and_pace_a_latency_is_open(changes: dict[str, Any]) -> None:
    """Each of these could slow a call or hide it: the latency is open."""
    assert judge_latency(**changes)[0] is Status.INCONCLUSIVE


def test_a_loose_threshold_of_the_ratio_does_not_clear_the_latency() -> None:
    """A ratio that may fall by 15 % does not clear a latency with 5 %."""
    thresholds = {**POLICY.thresholds, SPEEDUP: Threshold(relative=0.15, absolute=0.0)}
    situation = Situation(before=measure(*STEADY), after=measure(1.05, ratio=1.09), **KNOWN)
    assert find_row(decide(situation, thresholds=thresholds), LATENCY).status is Status.INCONCLUSIVE


def test_a_steady_latency_is_judged_alone() -> None:
    """On a steady machine the clock decides, and 30 % regress though eager shares them."""
    assert judge_latency(before=measure(*STEADY), after=measure(1.0, 1.0, 1.0)) == SAME
    assert judge_latency(before=measure(*STEADY), after=measure(1.3)) == SHARED


def test_a_note_says_what_could_hide_in_what_kept_pace() -> None:
    """The note has the case and the larger of detectable change and interval's end."""
    for moved in (1.0, 1.08):
        verdict: Verdict = decide(Situation(before=measure(*WANDERING), after=measure(moved), **KNOWN))
        change = find_row(verdict, LATENCY).change
        assert change is not None
        (note,) = (note for note in write_notes(verdict) if "kept pace" in note)
        hidden = f"{100 * max(change.high, change.detectable):.0f} %"
        assert f"A slowdown of both by up to {hidden} could hide: `compile-gate ab` would show it." in note
        assert "mlp" in note


def test_what_kept_pace_gets_no_pairs() -> None:
    """`check --base` measures no pair of it, `ab` does."""
    situation = Situation(before=measure(*WANDERING), after=measure(1.08), **KNOWN)
    assert list_suspects(screen_run(make_measured(situation), make_stored(situation), POLICY)) == ()
