"""What counts as caught, and when the gate has failed its own test."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.records.cases import Metric
from gate.records.run import CaseFailure, FailureKind
from gate.records.studies import FaultKind
from gate.records.verdict import Comparison, Status
from gate.selftest.catalog import Fault, FaultSize, Opinion, Result, judge_fault, list_faults
from gate.selftest.scores import Attempt, Score, render_scores, score_faults
from tests import make
from tests.faults import find_fault

CASE = "bert/inference-float32-smoke-default"
REGRESSED = "Beyond the threshold, and too large to be noise."


def make_row(metric: Metric, status: Status, *, decides: bool = True, change: float = 0.1) -> Comparison:
    """Make a comparison."""
    return make.make_row(CASE, metric, status, decides=decides, change=make.make_change(change))


def make_failure(kind: FailureKind) -> CaseFailure:
    """Make a failure of the head."""
    return make.make_failure(CASE, "it broke", kind=kind, stage="eager")


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (Status.REGRESSED, Result.CAUGHT),
        (Status.INCONCLUSIVE, Result.INCONCLUSIVE),
        (Status.UNCHANGED, Result.MISSED),
        (Status.IMPROVED, Result.MISSED),
    ],
)
def test_only_the_faults_own_metric_counts(status: Status, result: Result) -> None:
    """Another metric that is red catches nothing: the gate must see what was planted."""
    rows = [make_row(Metric.GRAPH_BREAKS, Status.REGRESSED), make_row(Metric.COMPILED_LATENCY, status)]
    opinion = judge_fault(find_fault(FaultKind.SLOWDOWN, 0.05), rows, ())
    assert (result, rows[1]) == (opinion.result, opinion.row)


def test_metric_that_was_not_judged_is_missed() -> None:
    """No row, no catch."""
    rows = [make_row(Metric.DRIFT, Status.REGRESSED)]
    assert judge_fault(find_fault(FaultKind.LOST_CACHE), rows, ()).result is Result.MISSED


def test_row_that_does_not_decide_catches_nothing() -> None:
    """A quarantined regression does not turn a verdict red."""
    rows = [make_row(Metric.GRAPH_BREAKS, Status.REGRESSED, decides=False)]
    assert judge_fault(find_fault(FaultKind.GRAPH_BREAK), rows, ()).result is Result.MISSED


@pytest.mark.parametrize(
    ("statuses", "result"),
    [
        ([Status.UNCHANGED, Status.IMPROVED], Result.QUIET),
        ([Status.UNCHANGED, Status.INCONCLUSIVE], Result.INCONCLUSIVE),
        ([Status.INCONCLUSIVE, Status.REGRESSED], Result.FALSE_ALARM),
        ([Status.MISSING], Result.FALSE_ALARM),
    ],
)
def test_harmless_change(statuses: list[Status], result: Result) -> None:
    """Any red row is a false alarm, whatever its metric."""
    metrics = (Metric.PEAK_MEMORY, Metric.DRIFT)
    rows = [make_row(metric, status) for metric, status in zip(metrics, statuses, strict=False)]
    assert judge_fault(find_fault(FaultKind.NOTHING), rows, ()).result is result


def test_failure_must_be_told_as_what_it_is() -> None:
    """A hang that is told as a crash is not caught; nor is one that leaves the case unfailed."""
    hang, failed = find_fault(FaultKind.HANG), [make_row(Metric.COMPILED_LATENCY, Status.FAILED)]
    assert judge_fault(hang, failed, [make_failure(FailureKind.HANG)]).result is Result.CAUGHT
    assert judge_fault(hang, failed, [make_failure(FailureKind.CRASH)]).result is Result.MISSED
    assert judge_fault(hang, [], [make_failure(FailureKind.HANG)]).result is Result.MISSED
    assert judge_fault(hang, [], []).result is Result.MISSED


def test_trial_that_fails_otherwise_tells_nothing() -> None:
    """A slowdown whose worker crashed was neither caught nor missed."""
    crash = make_failure(FailureKind.CRASH)
    opinion = judge_fault(find_fault(FaultKind.SLOWDOWN, 0.05), [], [crash])
    assert Opinion(result=Result.BROKEN, failure=crash) == opinion


def make_attempts(fault: Fault, results: list[Result], *, is_asked: bool = True) -> list[Attempt]:
    """Make attempts of one fault with these results, of 41 s each."""
    size = FaultSize(planted=fault.size, is_asked=is_asked)
    opinions = [Opinion(result=result) for result in results]
    return [
        Attempt(fault=fault, case_id=CASE, size=size, opinion=opinion, wall_s=41.0) for opinion in opinions
    ]


def make_score(fault: Fault, results: list[Result], *, is_asked: bool = True) -> Score:
    """Score attempts at one fault."""
    return Score(fault, make_attempts(fault, results, is_asked=is_asked))


def find_complaint(fault: Fault, results: list[Result], *, is_asked: bool = True) -> str:
    """Find what is not good enough of these attempts."""
    return make_score(fault, results, is_asked=is_asked).complaint


def test_table() -> None:
    """Of four attempts, one of them broken, one of three is 33 %, by Clopper and Pearson 0.8 to 90.6 %."""
    slowdown = [Result.CAUGHT, Result.INCONCLUSIVE, Result.MISSED, Result.BROKEN]
    attempts = [
        *make_attempts(find_fault(FaultKind.MEMORY, 0.02), [Result.MISSED], is_asked=False),
        *make_attempts(find_fault(FaultKind.SLOWDOWN, 0.05), slowdown),
        *make_attempts(find_fault(FaultKind.NOTHING), [Result.QUIET, Result.FALSE_ALARM]),
        *make_attempts(find_fault(FaultKind.LOST_CACHE), [Result.BROKEN]),
    ]
    table = render_scores(score_faults(list_faults("cpu"), attempts)).partition("\nrequired: ")[0]
    assert table.splitlines() == [
        "fault        planted  required  tried  caught  unsure  missed  red  rate   interval        time",
        "-----------  -------  --------  -----  ------  ------  ------  ---  ----  ---------  ----------",
        "lost_cache         -     100 %      0       0       0       0    0     -          -        41 s",
        "memory-2%     +2.0 %         -      1       0       0       1    0   0 %  0 to 97 %        41 s",
        "nothing            -         -      2       0       0       0    1  50 %  1 to 99 %  1 min 22 s",
        "slowdown-5%   +5.0 %      80 %      3       1       1       1    0  33 %  1 to 91 %  2 min 44 s",
    ]


@pytest.mark.parametrize(
    ("fault", "opinion", "line"),
    [
        (
            find_fault(FaultKind.SLOWDOWN, 0.05),
            Opinion(result=Result.CAUGHT, row=make_row(Metric.COMPILED_LATENCY, Status.REGRESSED)),
            f"caught        slowdown-5% in {CASE}: compiled_latency +10.0 %: {REGRESSED}",
        ),
        (
            find_fault(FaultKind.CRASH),
            Opinion(result=Result.CAUGHT, failure=make_failure(FailureKind.CRASH)),
            f"caught        crash in {CASE}: crash in stage eager: it broke",
        ),
        (
            find_fault(FaultKind.HANG),
            Opinion(result=Result.MISSED),
            f"missed        hang in {CASE}: no failure was a hang",
        ),
        (
            find_fault(FaultKind.GRAPH_BREAK),
            Opinion(result=Result.MISSED),
            f"missed        graph_break in {CASE}: graph_breaks was not judged",
        ),
        (
            find_fault(FaultKind.NOTHING),
            Opinion(result=Result.QUIET),
            f"quiet         nothing in {CASE}: nothing turned red",
        ),
    ],
)
def test_an_attempt_in_a_line(fault: Fault, opinion: Opinion, line: str) -> None:
    """What came of it, and what the gate said: of a metric, of a failure, or nothing."""
    assert line == Attempt(fault=fault, case_id=CASE, size=FaultSize(), opinion=opinion).describe()


@pytest.mark.parametrize("result", [Result.INCONCLUSIVE, Result.MISSED])
def test_exact_fault_must_be_caught_each_time(result: Result) -> None:
    """19 of 20 are not enough, and an inconclusive one is no catch."""
    fault = find_fault(FaultKind.LOST_CACHE)
    assert find_complaint(fault, [Result.CAUGHT] * 20) == ""
    assert find_complaint(fault, [*[Result.CAUGHT] * 19, result])


def test_large_slowdown_must_not_be_missed() -> None:
    """A single 10 % slowdown called unchanged is a fault of the gate; one that is unsettled is not yet."""
    fault = find_fault(FaultKind.SLOWDOWN, 0.10)
    assert find_complaint(fault, [Result.MISSED]) == "1 of 1 were missed"
    assert find_complaint(fault, [Result.INCONCLUSIVE]) == ""


def test_slowdown_must_not_stay_unsettled_for_ever() -> None:
    """None of 2 caught leaves at most 84 %, below the 95 % that are asked for."""
    fault = find_fault(FaultKind.SLOWDOWN, 0.10)
    assert find_complaint(fault, [Result.INCONCLUSIVE] * 2) == "only 0 of 2 were caught"


def test_one_bad_luck_is_no_complaint() -> None:
    """5 % may be missed once in 20 times: one miss of one is chance, two of two are not."""
    fault = find_fault(FaultKind.SLOWDOWN, 0.05)
    assert find_complaint(fault, [Result.MISSED]) == ""
    assert find_complaint(fault, [Result.MISSED] * 2) == "2 of 2 were missed"


def test_what_is_not_asked_is_no_complaint() -> None:
    """A fault below the thresholds in force may be missed each time."""
    assert find_complaint(find_fault(FaultKind.MEMORY, 0.02), [Result.MISSED] * 9, is_asked=False) == ""


def test_false_alarms() -> None:
    """One red verdict of three may be chance at 1 % each, one of two is less likely than 2.5 %."""
    fault = find_fault(FaultKind.NOTHING)
    assert find_complaint(fault, [Result.FALSE_ALARM, Result.QUIET, Result.QUIET]) == ""
    assert find_complaint(fault, [Result.FALSE_ALARM, Result.QUIET])
    assert find_complaint(fault, [Result.QUIET, Result.INCONCLUSIVE] * 5) == ""


def test_attempts_that_all_broke_are_a_complaint() -> None:
    """What could not be tried was not shown to be caught."""
    assert find_complaint(find_fault(FaultKind.GRAPH_BREAK), [Result.BROKEN])


@pytest.mark.parametrize(
    ("size", "results", "is_asked", "is_open"),
    [
        (0.10, [Result.INCONCLUSIVE], True, True),
        (0.10, [Result.INCONCLUSIVE, Result.CAUGHT], True, False),
        (0.10, [Result.MISSED], True, False),  # a complaint
        (0.10, [Result.INCONCLUSIVE], False, False),
        (0.05, [Result.MISSED], True, True),  # one in twenty may be
        (0.02, [Result.MISSED], True, False),  # nobody asks for it
    ],
)
def test_what_must_be_caught_and_never_was_is_open(
    size: float, results: list[Result], *, is_asked: bool, is_open: bool
) -> None:
    """Where chance explains it, it is neither good nor a complaint."""
    fault = find_fault(FaultKind.SLOWDOWN, size)
    assert make_score(fault, results, is_asked=is_asked).is_open is is_open


def test_nothing_that_is_harmless_is_open() -> None:
    """It is not to be caught."""
    assert not make_score(find_fault(FaultKind.NOTHING), [Result.INCONCLUSIVE]).is_open


@given(
    fault=st.sampled_from([fault for fault in list_faults("cpu") if not fault.is_harmless]),
    results=st.lists(
        st.sampled_from([Result.CAUGHT, Result.INCONCLUSIVE, Result.MISSED]), min_size=1, max_size=30
    ),
)
def test_a_better_result_never_raises_a_complaint(fault: Fault, results: list[Result]) -> None:
    """Where nothing is complained of, turning any attempt into a catch does not change that."""
    if find_complaint(fault, results):
        return
    for index in range(len(results)):
        better = [*results[:index], Result.CAUGHT, *results[index + 1 :]]
        assert find_complaint(fault, better) == ""


def test_attempts_of_too_small_a_dose_excuse_no_other() -> None:
    """Of 19 misses in 20 attempts the one in which less was planted than is asked for takes nothing away."""
    fault = find_fault(FaultKind.SLOWDOWN, 0.05)
    asked = make_attempts(fault, [Result.MISSED] * 19)
    small = make_attempts(fault, [Result.MISSED], is_asked=False)
    score = Score(fault, [*asked, *small])
    assert (score.is_asked, score.complaint) == (True, "20 of 20 were missed")
    assert Score(fault, [*make_attempts(fault, [Result.CAUGHT]), *small * 9]).complaint == ""
