"""How a bisection measures its ends and steps."""

import math
from dataclasses import replace
from typing import Any

import pytest

from gate.bisect.search import (
    FailureJudge,
    OpenPairs,
    StepJudge,
    find_change,
    find_end_failure,
    find_row,
    make_judge,
    predict_step_s,
    read_step,
    settle_ends,
    settle_found,
    settle_metric,
    settle_step,
)
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, CaseFailure, FailureKind, Run
from gate.records.studies import Mark
from gate.records.verdict import Status
from tests.make import POLICY
from tests.unit.check.conftest import Given, Subject, make_run

LATENCY, COLD, BREAKS = Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME, Metric.GRAPH_BREAKS
ENDS = Subject(slower=0.10)
LATE = 1e9


def begin(subject: Subject) -> Run:
    """A run without trials."""
    return replace(make_run([subject]), trials=())


def open_pairs(measurer: Given, run: Run) -> OpenPairs:
    return OpenPairs(measurer=measurer, run=run, limit_s=LATE)


def ask(subject: Subject, judge: StepJudge, time_for: int = 100) -> tuple[Run, Mark | None]:
    return settle_step(open_pairs(Given(subjects=[subject], time_for=time_for), begin(subject)), judge)


def measure_ends(subject: Subject, metric: Metric | None, time_for: int = 100) -> Run:
    pairs = open_pairs(Given(subjects=[subject], time_for=time_for), begin(subject))
    return settle_ends(pairs, POLICY, metric)


def make_ends_judge(subject: Subject = ENDS, metric: Metric | None = LATENCY) -> StepJudge:
    run = measure_ends(subject, metric)
    row = find_row(run, POLICY, metric)
    assert row is not None
    return make_judge(run, POLICY, row)


CRASH = CaseFailure(
    case_id="a/x",
    trial=1,
    kind=FailureKind.ERROR,
    stage="compile",
    fact=Fact(code=Code.RAISED, names={"message": ("CppCompileError: C++ compile error",)}),
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Mark.BAD),
        ({"fact": replace(CRASH.fact, names={"message": ("CppCompileError: another line",)})}, Mark.BAD),
        ({"fact": replace(CRASH.fact, names={"message": ("ImportError: no module",)})}, Mark.SKIP),
        ({"stage": "import"}, Mark.SKIP),
        ({"kind": FailureKind.CRASH}, Mark.SKIP),
        ({"arm": BASE_ARM}, Mark.SKIP),
    ],
)
def test_a_step_fails_alike_by_kind_stage_and_error(changes: dict[str, Any], expected: Mark) -> None:
    """Another failure is skipped, and the good end's own failures do not count."""
    run = begin(ENDS)
    judge = FailureJudge(failure=CRASH)
    assert judge.read(run) is None
    assert judge.read(replace(run, failures=(replace(CRASH, **changes),))) is expected


def test_a_step_whose_case_runs_is_good() -> None:
    """One pair that runs is good, whatever its times; without time there is no mark."""
    judge, pairs = FailureJudge(failure=CRASH), Given(subjects=[ENDS])
    run, mark = settle_step(open_pairs(pairs, begin(ENDS)), judge)
    assert (mark, pairs.measured, find_change(run, judge)) == (Mark.GOOD, ["a/x"], None)
    late = Given(subjects=[ENDS], time_for=0)
    assert settle_step(open_pairs(late, begin(ENDS)), judge)[1] is None


def test_a_case_that_one_side_lacks_is_skipped() -> None:
    run = begin(ENDS)
    assert run.base is not None
    other = tuple(replace(case, definition="other") for case in run.cases)
    pairs = open_pairs(Given(subjects=[ENDS], time_for=0), replace(run, base=replace(run.base, cases=other)))
    assert settle_step(pairs, FailureJudge(failure=CRASH))[1] is Mark.SKIP


def test_what_broke_a_case_is_seen_again_by_one_pair() -> None:
    """An existing pair is not repeated; a step takes the ends' time after the warm-up."""
    judge, pairs = FailureJudge(failure=CRASH), Given(subjects=[ENDS])
    run, mark = settle_found(open_pairs(pairs, begin(ENDS)), judge)
    assert (mark, pairs.measured) == (Mark.GOOD, ["a/x"])
    assert settle_found(open_pairs(pairs, run), judge)[1] is Mark.GOOD
    assert pairs.measured == ["a/x"]
    late = Given(subjects=[ENDS], time_for=0)
    assert settle_found(open_pairs(late, begin(ENDS)), judge)[1] is Mark.SKIP
    assert predict_step_s(replace(run, wall_s=50.0, toolchain_s=20.0), judge) == 30.0


def test_what_got_worse_is_seen_again_by_pairs() -> None:
    """It takes the pairs of any comparison."""
    assert settle_found(open_pairs(Given(subjects=[ENDS]), begin(ENDS)), make_ends_judge())[1] is Mark.BAD


def test_a_failure_is_searched_for_where_the_good_end_has_none() -> None:
    """If the good end fails nothing is searched."""
    run, base = begin(ENDS), replace(CRASH, arm=BASE_ARM)
    assert find_end_failure(run) is None
    assert find_end_failure(replace(run, failures=(CRASH,))) == CRASH
    assert find_end_failure(replace(run, failures=(CRASH, base))) is None


def test_clear_ends_take_the_pairs_that_settle_them() -> None:
    """10 % of pairs that vary by 0.2 % are known to an eighth after three."""
    run = measure_ends(ENDS, LATENCY)
    row = find_row(run, POLICY, LATENCY)
    assert row is not None
    assert (row.status, run.pair_counts["a/x"]) == (Status.REGRESSED, 3)


def test_ends_that_are_near_each_other_get_more_pairs() -> None:
    """5 % of pairs that vary by 0.8 %: the error must be 0.61 %, and is 0.66 % after four."""
    near = Subject(slower=0.05, spread=(0.0, 0.008, -0.008) * 6)
    settled = measure_ends(near, LATENCY, time_for=4)
    row = find_row(settled, POLICY, LATENCY)
    assert row is not None
    assert row.status is Status.REGRESSED
    assert 4 < measure_ends(near, LATENCY).pair_counts["a/x"] < 16


def test_ends_get_no_more_than_the_most() -> None:
    """70 % of pairs that vary by 40 % are certain after 32, but not to an eighth."""
    wild = Subject(slower=0.70, spread=(0.0, 0.45, -0.45) * 11)
    run = measure_ends(wild, LATENCY)
    row = find_row(run, POLICY, LATENCY)
    assert row is not None
    assert (row.status, run.pair_counts["a/x"]) == (Status.REGRESSED, 32)


def test_ends_that_the_looks_leave_open_get_more_pairs() -> None:
    """5 % of pairs that vary by 6 % are open after 16."""
    noisy = Subject(slower=0.05, spread=(0.0, 0.06, -0.06) * 11)
    assert measure_ends(noisy, LATENCY).pair_counts["a/x"] > 16


def test_what_was_found_is_seen_again_by_three_pairs() -> None:
    """The usual rule applies, with half of the ends' change as threshold."""
    judge, again = make_ends_judge(), Given(subjects=[ENDS])
    run = settle_metric(open_pairs(again, begin(ENDS)), judge.policy, judge.metric)
    row = find_row(run, judge.policy, LATENCY)
    assert row is not None
    assert row.threshold is not None
    assert row.threshold.relative == pytest.approx(0.05, abs=0.001)
    assert (row.status, again.measured) == (Status.REGRESSED, ["a/x"] * 3)


def test_ends_that_do_not_differ_are_left_at_once() -> None:
    """Ends that do not differ get no further pair."""
    run = measure_ends(Subject(), LATENCY)
    row = find_row(run, POLICY, LATENCY)
    assert row is not None
    assert row.status is Status.UNCHANGED
    assert run.pair_counts["a/x"] == 3


def test_nothing_is_searched_for_where_nothing_got_worse() -> None:
    """No metric is given, and none got worse."""
    assert find_row(measure_ends(Subject(), None), POLICY, None) is None


def test_ends_without_time_stay_as_they_are() -> None:
    """Ends keep the pairs that they have."""
    near = Subject(slower=0.06, spread=(0.0, 0.008, -0.008) * 6)
    assert measure_ends(near, LATENCY, time_for=3).pair_counts["a/x"] == 3


def test_a_counter_at_the_ends_has_no_levels() -> None:
    """A counter is seen again, and any change counts."""
    judge = make_ends_judge(Subject(breaks=2.0), None)
    assert (judge.metric, judge.levels) == (BREAKS, None)


@pytest.mark.parametrize(("slower", "mark"), [(0.0, Mark.GOOD), (0.10, Mark.BAD), (0.11, Mark.BAD)])
def test_two_pairs_judge_a_step(slower: float, mark: Mark) -> None:
    """Pairs vary by 0.2 % around one of the ends."""
    judge = make_ends_judge()
    run, answer = ask(Subject(slower=slower), judge)
    assert (answer, run.pair_counts["a/x"]) == (mark, 2)
    change = find_change(run, judge)
    assert change is not None
    assert change == pytest.approx(slower, abs=0.002)


def test_a_step_between_the_levels_is_skipped() -> None:
    """24 pairs do not judge 4.9 %, half way on the logarithmic scale."""
    half = math.sqrt(1.1) - 1
    run, answer = ask(Subject(slower=half, spread=(0.0, 0.002, -0.002) * 8), make_ends_judge())
    assert (answer, run.pair_counts["a/x"]) == (Mark.SKIP, 24)


@pytest.mark.parametrize(("breaks", "mark"), [(0.0, Mark.GOOD), (1.0, Mark.BAD), (2.0, Mark.BAD)])
def test_one_pair_judges_a_counter(breaks: float, mark: Mark) -> None:
    """A counter is the same in every trial."""
    run, answer = ask(Subject(breaks=breaks), make_ends_judge(Subject(breaks=2.0), BREAKS))
    assert (answer, run.pair_counts["a/x"]) == (mark, 1)


def test_a_step_that_fails_is_skipped() -> None:
    """A step that fails in its first pair is neither good nor bad."""
    run, answer = ask(Subject(failing_pair=1), make_ends_judge())
    assert (answer, len(run.failures)) == (Mark.SKIP, 1)
    assert find_change(run, make_ends_judge()) is None


def test_a_step_that_defines_the_case_otherwise_is_skipped() -> None:
    """It has no pair."""
    subject = Subject()
    run = begin(subject)
    assert run.base is not None
    others = tuple(replace(case, definition="other") for case in run.base.cases)
    run = replace(run, base=replace(run.base, cases=others))
    _, answer = settle_step(open_pairs(Given(subjects=[subject]), run), make_ends_judge())
    assert answer is Mark.SKIP


def test_a_step_without_a_metric_is_skipped() -> None:
    """Its pairs lack the metric."""
    for judge in (make_ends_judge(), make_ends_judge(Subject(breaks=2.0), BREAKS)):
        run, _ = ask(Subject(), judge)
        assert read_step(run, replace(judge, metric=Metric.FIRST_REQUEST)) is Mark.SKIP


def test_a_step_whose_head_could_not_measure_the_metric_is_skipped() -> None:
    """Only the good end has the metric."""
    judge = make_ends_judge(Subject(breaks=2.0), BREAKS)
    run, _ = ask(Subject(), judge)
    trials = tuple(
        trial if trial.arm == BASE_ARM else replace(trial, samples={**trial.samples, BREAKS: ()})
        for trial in run.trials
    )
    assert read_step(replace(run, trials=trials), judge) is Mark.SKIP


def test_a_step_without_time_has_no_mark_and_goes_on() -> None:
    """Its first pair is kept, and one more judges it."""
    judge, subject = make_ends_judge(), Subject(slower=0.10)
    run, answer = ask(subject, judge, time_for=1)
    assert (answer, run.pair_counts["a/x"]) == (None, 1)
    more = Given(subjects=[subject])
    run, answer = settle_step(open_pairs(more, run), judge)
    assert (answer, more.measured) == (Mark.BAD, ["a/x"])


def test_the_forecast_follows_the_pairs_of_the_ends() -> None:
    """A counter takes one pair of 20 s; of a latency further ones are light."""
    run = measure_ends(Subject(slower=0.10, breaks=2.0), None)
    took = {1: 10.0, 2: 4.0, 3: 4.0}  # seconds of an arm
    trials = [
        replace(
            trial,
            stages_s={"rounds": took[trial.index]},
            samples=trial.samples
            if trial.index == 1
            else {metric: values for metric, values in trial.samples.items() if metric is not COLD},
        )
        for trial in run.trials
    ]
    run = replace(run, trials=tuple(trials))
    counter = make_ends_judge(Subject(breaks=2.0), BREAKS)
    assert predict_step_s(run, counter) == 20.0
    assert predict_step_s(run, make_ends_judge()) == 28.0
