"""Absolute limits of gate.yml, with and without stored values."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.check.procedure import CheckTerms, judge_recorded
from gate.decide.conclude.limits import apply_limits, find_open_limits
from gate.decide.conclude.outcome import list_open
from gate.decide.verdict import decide_verdict, screen_run
from gate.devices import TARGET_KIND
from gate.errors import FileError
from gate.project.config import load_config
from gate.records.cases import AbsoluteLimit, Acceptance, Case, Metric
from gate.records.codes import Code
from gate.records.facts import Disturbance, Fact, name_words
from gate.records.run import Conditions, Environment, Pairing, Run, Trial
from gate.records.verdict import Change, Comparison, Outcome, Reason, Status, Verdict
from gate.report.words.comparisons import describe_comparison
from tests.hosts import CPU_HOST, CUDA_HOST
from tests.make import (
    POLICY,
    PairedCase,
    Situation,
    decide,
    find_row,
    make_acceptance,
    make_baseline,
    make_change,
    make_row,
    make_run,
    make_trials,
    pair_up,
)

from .one_case import STORED_CASE, measure

GIB = 2**30
CASE = Case(id="m/c", model="m", factory="m:build", definition="d")


def run_case(samples: list[dict[Metric, float]], host: Environment = CPU_HOST) -> Run:
    return make_run(*make_trials(CASE.id, samples), cases=(CASE,), environment=host)


def judge(
    limits: list[AbsoluteLimit],
    samples: list[dict[Metric, float]] | Run,
    stored: Mapping[Metric, tuple[float, ...]] | None = None,
    accepted: tuple[Acceptance, ...] = (),
) -> Verdict:
    run = samples if isinstance(samples, Run) else run_case(samples)
    baseline = make_baseline(CASE.id, stored or {}, definition="d", environment=run.environment)
    return decide_verdict(
        run,
        [baseline] if stored else [],
        replace(POLICY, limits=tuple(limits), acceptances=accepted),
    )


def most(metric: Metric, value: float, case: str = "*") -> AbsoluteLimit:
    return AbsoluteLimit(case=case, metric=metric, value=value)


@pytest.mark.parametrize(
    ("measured", "status", "reason"),
    [
        ([30.0], Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ([55.0], Status.UNCHANGED, Reason.BELOW_THRESHOLD),  # 9 % below, where one trial varies by 3 %
        ([58.0], Status.INCONCLUSIVE, Reason.UNSETTLED),
        ([59.0, 59.01, 58.99, 59.02, 58.98], Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ([65.0], Status.INCONCLUSIVE, Reason.UNSETTLED),
        ([300.0], Status.REGRESSED, Reason.LIMIT_EXCEEDED),
    ],
)
def test_a_noisy_metric_is_judged_with_its_noise(
    measured: list[float], status: Status, reason: Reason
) -> None:
    """A cold compile is inconclusive where one trial's noise explains its distance from 60 s.

    Five trials show their own noise.
    """
    verdict = judge(
        [most(Metric.COLD_COMPILE_TIME, 60)], [{Metric.COLD_COMPILE_TIME: seconds} for seconds in measured]
    )
    row = find_row(verdict, Metric.COLD_COMPILE_TIME)
    assert (row.status, row.reason, row.decides) == (status, reason, True)


@pytest.mark.parametrize(
    ("factors", "noise", "expected"),
    [
        pytest.param((2.0,), 0.03, Status.REGRESSED, id="twice, by one trial"),
        pytest.param((1.2,) * 3, 0.03, Status.REGRESSED, id="1.2 times, by three"),
        pytest.param((0.8,), 0.03, Status.UNCHANGED, id="0.8 times"),
        pytest.param((1.2,), 0.20, Status.INCONCLUSIVE, id="1.2 times, of 20 % noise"),
        pytest.param((1.2,) * 3, 0.20, Status.INCONCLUSIVE, id="of 20 %, by three"),
    ],
)
@pytest.mark.parametrize("cases", [1, 60])
def test_a_limit_is_each_cases_own(
    factors: tuple[float, ...], noise: float, expected: Status, cases: int
) -> None:
    """The noise of five stored trials decides, however many cases have a limit."""
    metric, spread = Metric.COLD_COMPILE_TIME, (-1.2, 0.8, 0.0, -0.6, 1.0)
    before = {metric: tuple(60 * factors[0] * math.exp(noise * part) for part in spread)}
    situations = [
        Situation(
            case_id=f"m{number}/x", before=before, after={metric: tuple(60 * factor for factor in factors)}
        )
        for number in range(cases)
    ]
    verdict = decide(*situations, limits=(most(metric, 60.0),), times_judged=3)
    rows = [row for row in verdict.comparisons if row.metric is metric]
    assert {row.status for row in rows} == {expected}
    assert len(rows) == cases


def test_of_what_decides_nothing_by_itself_only_the_limit_decides() -> None:
    """Eager takes 50 % more than stored, and its limit is far."""
    stored = {Metric.EAGER_LATENCY: (0.020, 0.0201, 0.0199, 0.020, 0.020)}
    verdict = judge([most(Metric.EAGER_LATENCY, 1.0)], [{Metric.EAGER_LATENCY: 0.030}], stored)
    row = find_row(verdict, Metric.EAGER_LATENCY)
    assert (row.status, row.decides, verdict.outcome) == (Status.UNCHANGED, True, Outcome.PASS)


def test_a_limit_in_doubt_replaces_nothing_that_pairs_show() -> None:
    """Pairs show +60 %; the trial alone, which other programs disturbed, is beyond its limit as well."""
    cold = Metric.COLD_COMPILE_TIME
    run = pair_up(PairedCase(alone=measure(cold_compile_time=1.6), head={cold: 16.0}, pairs=16))
    crowded = Conditions(foreign_cores=1.4, disturbances=(Disturbance.CROWDED,))
    trials = [
        replace(trial, conditions=crowded) if trial.pairing is Pairing.ALONE else trial
        for trial in run.trials
    ]
    terms = CheckTerms(baselines=(STORED_CASE,), policy=replace(POLICY, limits=(most(cold, 9.0),)))
    row = find_row(judge_recorded(replace(run, trials=tuple(trials)), terms), cold)
    assert (row.status, row.pairs) == (Status.REGRESSED, 16)


def test_a_time_of_zero_teaches_no_noise() -> None:
    """Zero has no logarithm: it lies below its limit, and the noise is the last case's."""
    metric = Metric.COLD_COMPILE_TIME
    situations = [
        Situation(case_id=f"m{number}/x", after={metric: values})
        for number, values in enumerate([(0.0, 0.0), (0.0, 30.0), (30.0, 30.1)])
    ]
    verdict = decide(*situations, limits=(most(metric, 60.0),))
    assert {row.status for row in verdict.comparisons if row.metric is metric} == {Status.UNCHANGED}


def test_more_trials_settle_what_one_left_open() -> None:
    """One trial 10 % beyond its limit is open; five that agree exceed it."""
    limits = [most(Metric.EAGER_LATENCY, 0.100)]
    single = judge(limits, [{Metric.EAGER_LATENCY: 0.110}])
    five = judge(limits, [{Metric.EAGER_LATENCY: value} for value in (0.110, 0.111, 0.110, 0.109, 0.110)])
    assert single.outcome is Outcome.INCONCLUSIVE
    assert {row.case_id for row in list_open(single)} == {CASE.id}
    assert five.outcome is Outcome.REGRESSION
    assert find_row(five, Metric.EAGER_LATENCY).decides  # a control decides nothing by itself


def test_the_interval_of_one_trial_is_that_of_the_assumed_noise() -> None:
    """By hand: SE = sqrt(0.03^2 + 0.01^2) = 3.16 %, t(.90; 4) = 1.533, so 4.96 % below is just within."""
    edge = 0.1 * math.exp(-1.533 * math.sqrt(0.03**2 + 0.01**2))
    limits = [most(Metric.EAGER_LATENCY, 0.1)]
    within = judge(limits, [{Metric.EAGER_LATENCY: edge * 0.999}])
    near = judge(limits, [{Metric.EAGER_LATENCY: edge * 1.001}])
    assert find_row(within, Metric.EAGER_LATENCY).status is Status.UNCHANGED
    assert find_row(near, Metric.EAGER_LATENCY).status is Status.INCONCLUSIVE


def test_speedup_has_a_least() -> None:
    """A compiled call slower than eager is below the least speedup of 1.2, and the sentence names it."""
    limit = AbsoluteLimit(case="*", metric=Metric.WARM_SPEEDUP, value=1.2)
    slow = judge([limit], [{Metric.EAGER_LATENCY: 0.010, Metric.COMPILED_LATENCY: 0.012}])
    fast = judge([limit], [{Metric.EAGER_LATENCY: 0.020, Metric.COMPILED_LATENCY: 0.010}])
    row = find_row(slow, Metric.WARM_SPEEDUP)
    assert row.status is Status.REGRESSED
    assert row.change is not None
    assert row.change.centre == pytest.approx(1.2 / (10 / 12) - 1)
    assert "the absolute limit under `limits` in gate.yml (at least 1.20x)" in describe_comparison(row)
    assert find_row(fast, Metric.WARM_SPEEDUP).status is Status.UNCHANGED


@pytest.mark.parametrize(
    ("values", "status"),
    [([3, 3], Status.UNCHANGED), ([4, 4], Status.REGRESSED), ([3, 4], Status.INCONCLUSIVE)],
)
def test_a_count_is_beyond_its_limit_where_every_trial_is(values: list[float], status: Status) -> None:
    """At most 3 recompiles: 3 pass, 4 regress, 3 and 4 are inconclusive."""
    verdict = judge([most(Metric.RECOMPILES, 3)], [{Metric.RECOMPILES: value} for value in values])
    assert find_row(verdict, Metric.RECOMPILES).status is status


def test_what_has_not_changed_can_be_beyond_a_limit() -> None:
    """Memory as stored is UNCHANGED without a limit, and REGRESSED beyond one."""
    samples = [{Metric.PEAK_MEMORY: 21.0 * GIB}]
    stored = {Metric.PEAK_MEMORY: (21.0 * GIB,) * 5}
    assert find_row(judge([], samples, stored), Metric.PEAK_MEMORY).status is Status.UNCHANGED
    limited = judge([most(Metric.PEAK_MEMORY, 20 * GIB)], samples, stored)
    assert find_row(limited, Metric.PEAK_MEMORY).reason is Reason.LIMIT_EXCEEDED
    assert limited.outcome is Outcome.REGRESSION


def test_what_has_not_changed_can_be_too_near_to_a_limit() -> None:
    """One trial cannot show that a compile of 59.5 s takes less than 60 s."""
    samples = [{Metric.COLD_COMPILE_TIME: 59.5}]
    stored = {Metric.COLD_COMPILE_TIME: (59.5,) * 5}
    assert find_row(judge([], samples, stored), Metric.COLD_COMPILE_TIME).status is Status.UNCHANGED
    limited = find_row(judge([most(Metric.COLD_COMPILE_TIME, 60)], samples, stored), Metric.COLD_COMPILE_TIME)
    assert (limited.status, limited.reason) == (Status.INCONCLUSIVE, Reason.UNSETTLED)


@pytest.mark.parametrize(
    ("limit", "status"),
    [(0.6, Status.UNCHANGED), (0.52, Status.INCONCLUSIVE), (0.4, Status.REGRESSED)],
)
def test_drift_is_limited_in_its_own_logarithms(limit: float, status: Status) -> None:
    """Trials of 0.5 and 0.54 are within 0.6, on either side of 0.52, and beyond 0.4."""
    verdict = judge([most(Metric.DRIFT, limit)], [{Metric.DRIFT: 0.5}, {Metric.DRIFT: 0.54}])
    assert find_row(verdict, Metric.DRIFT).status is status


def test_what_is_within_a_limit_can_have_regressed() -> None:
    """Memory within its limit regresses against its baseline."""
    stored = {Metric.PEAK_MEMORY: (10.0 * GIB,) * 5}
    verdict = judge([most(Metric.PEAK_MEMORY, 20 * GIB)], [{Metric.PEAK_MEMORY: 15.0 * GIB}], stored)
    assert find_row(verdict, Metric.PEAK_MEMORY).reason is Reason.BEYOND_BAR


def test_a_limited_metric_that_was_not_measured_is_missing() -> None:
    """A limited metric is MISSING if the case has it: a CPU has no energy, and a call no package."""
    limits = [most(metric, 1) for metric in (Metric.PEAK_MEMORY, Metric.ENERGY, Metric.PACKAGE_BYTES)]
    verdict = judge(limits, [{Metric.EAGER_LATENCY: 0.1}])
    assert [(row.metric, row.status) for row in verdict.comparisons if row.decides] == [
        (Metric.PEAK_MEMORY, Status.MISSING)
    ]
    assert verdict.outcome is Outcome.INCOMPLETE


@pytest.mark.parametrize("metric", [Metric.CALL_P99, Metric.ENERGY, Metric.LAUNCHES])
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_limit_of_what_a_gpu_has_is_not_lost_where_it_was_not_measured(
    metric: Metric, is_stored: bool
) -> None:
    """On a GPU a limited metric without a value is MISSING and decides."""
    stored = {Metric.GRAPH_BREAKS: (0.0,), **({metric: (1.0,)} if is_stored else {})}
    verdict = judge([most(metric, 2)], run_case([{Metric.GRAPH_BREAKS: 0.0}], CUDA_HOST), stored)
    row = find_row(verdict, metric)
    assert (row.status, row.decides) == (Status.MISSING, True)
    assert verdict.outcome is Outcome.INCOMPLETE


def test_a_target_ignores_limits_of_times() -> None:
    """A target is compiled once: limits of times and caches are ignored, those of graph breaks are not."""
    unknown = (Metric.COLD_COMPILE_TIME, Metric.PEAK_MEMORY, Metric.CACHE_MISSES)
    limits = [*(most(metric, 60) for metric in unknown), most(Metric.GRAPH_BREAKS, 0)]
    target = replace(CUDA_HOST, device_kind=TARGET_KIND)
    verdict = judge(limits, run_case([{Metric.GRAPH_BREAKS: 0.0}], target))
    assert verdict.outcome is Outcome.PASS
    assert [row.metric for row in verdict.comparisons] == [Metric.GRAPH_BREAKS]
    uncounted = judge(limits, run_case([{Metric.GUARDS: 5.0}], target))
    assert find_row(uncounted, Metric.GRAPH_BREAKS).status is Status.MISSING
    assert uncounted.outcome is Outcome.INCOMPLETE


def test_steps_of_training_are_missing_where_they_were_to_be_looked_at() -> None:
    """Steps are MISSING if a warning says that these failed; a case without an optimizer has none."""
    limits, run = [most(Metric.DRIFT_STEPS, 1)], run_case([{Metric.EAGER_LATENCY: 0.1}])
    assert judge(limits, run).outcome is Outcome.NOTHING_COMPARED
    failed = Fact(code=Code.UNMEASURED, metrics=(Metric.DRIFT_STEPS,), names=name_words(why="no float64"))
    for warning, outcome in (
        (failed, Outcome.INCOMPLETE),
        (replace(failed, metrics=(Metric.PEAK_MEMORY,)), Outcome.NOTHING_COMPARED),
        (replace(failed, code=Code.UNKNOWN_HERE), Outcome.NOTHING_COMPARED),
    ):
        warned = replace(run, trials=tuple(replace(trial, warnings=(warning,)) for trial in run.trials))
        assert judge(limits, warned).outcome is outcome


def test_the_last_limit_that_fits_a_case_counts() -> None:
    """The last limit that fits a case replaces the earlier ones."""
    samples = [{Metric.RECOMPILES: 4.0}]
    general, specific = most(Metric.RECOMPILES, 0), most(Metric.RECOMPILES, 5, "m/*")
    assert judge([general, specific], samples).outcome is Outcome.PASS
    assert judge([specific, general], samples).outcome is Outcome.REGRESSION


def test_without_a_limit_nothing_stored_compares_nothing() -> None:
    """Without a limit and without baselines nothing is compared."""
    assert judge([], [{Metric.RECOMPILES: 4.0}]).outcome is Outcome.NOTHING_COMPARED


def test_limits_of_a_file_are_those_of_the_policy(tmp_path: Path) -> None:
    """gate.yml's upper and lower limits are loaded; a limit without a pattern is for all cases."""
    path = tmp_path / "gate.yml"
    path.write_text(
        "version: 1\nlimits:\n  - {metric: cold_compile_time, at_most: 60}\n"
        '  - {metric: warm_speedup, at_least: 1.2, case: "bert/*"}\n'
    )
    assert load_config(path).limits == (
        AbsoluteLimit(case="*", metric=Metric.COLD_COMPILE_TIME, value=60.0),
        AbsoluteLimit(case="bert/*", metric=Metric.WARM_SPEEDUP, value=1.2),
    )


@pytest.mark.parametrize(
    ("entry", "problem", "fix"),
    [
        ("{metric: warm_speedup, at_most: 2}", "`at_most` would refuse what is good", "`at_least` alone"),
        ("{metric: recompiles}", "limits nothing", "`at_most` alone"),
        ("{metric: recompile, at_most: 0}", "expected one of", "Did you mean 'recompiles'?"),
    ],
)
def test_a_wrong_limit_names_the_fix(tmp_path: Path, entry: str, problem: str, fix: str) -> None:
    """A limit on the wrong side, without a bound or of no metric names file, key and fix."""
    path = tmp_path / "gate.yml"
    path.write_text(f"version: 1\nlimits:\n  - {entry}\n")
    with pytest.raises(FileError) as caught:
        load_config(path)
    assert caught.value.file.endswith("gate.yml:3")
    assert caught.value.key.startswith("limits[0]")
    assert problem in caught.value.problem
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("allowed", "status", "change"),
    [
        (0.04, Status.REGRESSED, 1.10),
        (0.08, Status.REGRESSED, 1.10),
        (1.20, Status.ACCEPTED, 1.10),
    ],
)
def test_an_acceptance_must_allow_what_is_worse_than_the_baseline_too(
    allowed: float, status: Status, change: float
) -> None:
    """1.05 GiB are 5 % beyond a limit of 1 GiB, and 110 % more than the 0.5 GiB that are stored."""
    memory = Metric.PEAK_MEMORY
    accepted = make_acceptance(memory, allowed, author="a", expires="2026-04-01")
    stored = {memory: (0.5 * GIB,) * 3}
    verdict = judge([most(memory, GIB)], [{memory: 1.05 * GIB}], stored, (accepted,))
    row = find_row(verdict, memory)
    assert row.change is not None
    assert (row.status, row.change.centre) == (status, pytest.approx(change))
    alone = find_row(judge([most(memory, GIB)], [{memory: 1.05 * GIB}], None, (accepted,)), memory)
    assert alone.status is (Status.ACCEPTED if allowed > 0.05 else Status.REGRESSED)


def test_the_larger_of_two_regressions_is_reported() -> None:
    """0.65 GiB are 30 % more than the 0.5 GiB that are stored, and 160 % beyond a limit of 0.25 GiB."""
    memory = Metric.PEAK_MEMORY
    row = find_row(
        judge([most(memory, 0.25 * GIB)], [{memory: 0.65 * GIB}], {memory: (0.5 * GIB,) * 3}), memory
    )
    assert row.change is not None
    assert (row.reason, row.change.centre) == (Reason.LIMIT_EXCEEDED, pytest.approx(1.6))


def test_a_limit_that_is_kept_does_not_hide_that_trials_are_missing() -> None:
    """A case with one of two planned trials is INCOMPLETE although it keeps its limit."""
    trial = Trial(case_id=CASE.id, index=1, samples={Metric.COMPILED_LATENCY: (0.01,)})
    run = make_run(trial, cases=(CASE,), trials_planned=2)
    policy = replace(POLICY, limits=(most(Metric.COMPILED_LATENCY, 1.0),))
    verdict = decide_verdict(run, [], policy)
    assert verdict.outcome is Outcome.INCOMPLETE
    reasons = {row.reason for row in verdict.comparisons if row.metric is Metric.COMPILED_LATENCY}
    assert reasons == {Reason.NOT_RUN, Reason.BELOW_THRESHOLD}


MEMORY = Metric.PEAK_MEMORY
LIMIT = Fact(code=Code.OWN_LIMIT, numbers={"limit": 1.0})
BEYOND = make_row(
    CASE.id, MEMORY, reason=Reason.LIMIT_EXCEEDED, change=make_change(0.05), remarks=(LIMIT,), decides=True
)
NEAR = replace(BEYOND, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED)
KEPT = replace(BEYOND, status=Status.UNCHANGED, reason=Reason.BELOW_THRESHOLD)
ROW = make_row(CASE.id, MEMORY, change=make_change(0.3))
SMALLER, EQUAL = (replace(ROW, change=make_change(change)) for change in (0.01, 0.05))
OPEN, SAME, NEW, GONE = (
    replace(ROW, status=status)
    for status in (Status.INCONCLUSIVE, Status.UNCHANGED, Status.NEW, Status.MISSING)
)
SHOWN = replace(ROW, decides=False)


@pytest.mark.parametrize(
    ("row", "limited", "is_accepted", "expected"),
    [
        (ROW, BEYOND, False, replace(ROW, remarks=(LIMIT,))),
        (SHOWN, BEYOND, False, replace(ROW, remarks=(LIMIT,))),  # of two regressions the larger one
        (EQUAL, BEYOND, False, BEYOND),
        (SMALLER, BEYOND, False, BEYOND),
        (replace(ROW, change=None), BEYOND, False, BEYOND),
        (OPEN, BEYOND, False, BEYOND),
        (SAME, BEYOND, False, BEYOND),
        (NEW, BEYOND, False, BEYOND),
        (SMALLER, BEYOND, True, replace(SMALLER, remarks=(LIMIT,))),  # the acceptance leaves the regression
        (OPEN, BEYOND, True, replace(OPEN, remarks=(LIMIT,))),
        (SAME, BEYOND, True, BEYOND),
        (ROW, NEAR, False, ROW),
        (OPEN, NEAR, False, NEAR),
        (SAME, NEAR, False, NEAR),
        (NEW, NEAR, False, NEAR),
        (ROW, KEPT, False, ROW),
        (OPEN, KEPT, False, OPEN),
        (SAME, KEPT, False, SAME),
        (NEW, KEPT, False, KEPT),
        (GONE, KEPT, False, KEPT),
        (SHOWN, KEPT, False, KEPT),
    ],
)
def test_the_graver_of_a_limit_and_a_comparison_counts(
    row: Comparison, limited: Comparison, *, is_accepted: bool, expected: Comparison
) -> None:
    """A limit replaces what is less grave than it, and what compared nothing or decides nothing."""
    taken = (make_acceptance(MEMORY, 0.05),) if is_accepted else ()
    assert apply_limits((row,), (limited,), replace(POLICY, acceptances=taken)) == (expected,)


def test_a_limit_without_a_comparison_stands_by_itself() -> None:
    """And beside a row of the whole case, whose metric only stands for it."""
    other = replace(BEYOND, case_id="other/x")
    whole = replace(ROW, status=Status.MISSING, reason=Reason.NOT_RUN)
    assert apply_limits((SAME,), (other,), POLICY) == (SAME, other)
    assert apply_limits((whole,), (BEYOND,), POLICY) == (whole, BEYOND)


@pytest.mark.parametrize(
    ("metric", "limit", "value", "excess"),
    [
        (MEMORY, 4.0, 5.0, 0.25),
        (MEMORY, 0.5, 1.0, 1.0),
        (MEMORY, 0.0, 5.0, 5.0),  # no share of nothing
        (Metric.GRAPH_BREAKS, 4.0, 6.0, 2.0),
        (Metric.COLD_COMPILE_TIME, 0.0, 5.0, 5.0),
    ],
)
def test_an_excess_is_a_share_of_its_limit_or_a_count(
    metric: Metric, limit: float, value: float, excess: float
) -> None:
    """Of what a ratio compares a share, where the limit is more than nothing."""
    row = find_row(judge([most(metric, limit)], [{metric: value}] * 2), metric)
    assert row.change == Change(centre=excess, low=excess, high=excess, detectable=0.0)


def test_a_limit_is_judged_as_surely_as_its_budget_allows() -> None:
    """Four judgements of the same data share it."""

    def judge_low(**rules: Any) -> float:
        situation = Situation(after={Metric.COLD_COMPILE_TIME: (70.0, 71.0, 72.0)})
        verdict = decide(situation, limits=(most(Metric.COLD_COMPILE_TIME, 60.0),), **rules)
        change = find_row(verdict, Metric.COLD_COMPILE_TIME).change
        assert change is not None
        return change.low

    assert judge_low(error_budget=0.01, times_judged=4) == judge_low(error_budget=0.0025, times_judged=1)


def test_a_limit_is_of_the_cases_that_it_names_and_that_ran() -> None:
    """Another case's limit counts for nothing, and what did not run exceeds none."""
    metric = Metric.COLD_COMPILE_TIME
    row = find_row(judge([most(metric, 5.0, "other/*")], [{metric: 30.0}]), metric)
    assert (row.status, row.reason) == (Status.NEW, Reason.NO_BASELINE)
    run = make_run(cases=(CASE,))
    verdict = decide_verdict(run, [], replace(POLICY, limits=(most(metric, 5.0),)))
    assert [row.reason for row in verdict.comparisons] == [Reason.NOT_RUN]


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        (Metric.COLD_COMPILE_TIME, (60.0,), {CASE.id: {Metric.COLD_COMPILE_TIME}}),
        (Metric.COLD_COMPILE_TIME, (30.0,), {}),
        (Metric.COLD_COMPILE_TIME, (120.0,) * 3, {}),
        (Metric.GRAPH_BREAKS, (59.0, 61.0), {}),  # more trials would not settle it
    ],
)
def test_limits_of_times_in_doubt_ask_for_more_trials(
    metric: Metric, values: tuple[float, ...], expected: dict[str, set[Metric]]
) -> None:
    """A time near its limit is open; what is surely within or beyond it, or a count, is not."""
    policy = replace(POLICY, limits=(most(metric, 60.0),))
    evidence = screen_run(run_case([{metric: value} for value in values]), [], policy).evidence
    assert find_open_limits(evidence, policy, CPU_HOST.device_kind) == expected
