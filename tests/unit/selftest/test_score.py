"""The result of an attempt, and when the gate fails its own test."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.records.cases import Metric
from gate.records.run import CaseFailure, FailureKind
from gate.records.studies import FaultKind
from gate.records.verdict import Comparison, Status
from gate.selftest.catalog import FaultSize, Opinion, Result, judge_fault, list_faults
from gate.selftest.scores import Attempt, Score, render_scores, score_faults
from tests import make
from tests.faults import find_fault

CASE = "bert/inference-float32-smoke-default"
REGRESSED = "Beyond the threshold, and too large to be noise."


def make_row(metric: Metric, status: Status, *, decides: bool = True) -> Comparison:
    return make.make_row(CASE, metric, status, decides=decides, change=make.make_change(0.1))


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
    """Another metric that is red catches nothing."""
    rows = [make_row(Metric.GRAPH_BREAKS, Status.REGRESSED), make_row(Metric.COMPILED_LATENCY, status)]
    opinion = judge_fault(find_fault(FaultKind.SLOWDOWN, 0.05), rows, ())
    assert (result, rows[1]) == (opinion.result, opinion.row)


def test_metric_that_was_not_judged_is_missed() -> None:
    """There is no row."""
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


def test_failure_must_be_reported_as_what_it_is() -> None:
    """A hang that is reported as a crash, or not at all, is not caught."""
    hang, failed = find_fault(FaultKind.HANG), [make_row(Metric.COMPILED_LATENCY, Status.FAILED)]
    assert judge_fault(hang, failed, [make_failure(FailureKind.HANG)]).result is Result.CAUGHT
    assert judge_fault(hang, failed, [make_failure(FailureKind.CRASH)]).result is Result.MISSED
    assert judge_fault(hang, [], [make_failure(FailureKind.HANG)]).result is Result.MISSED
    assert judge_fault(hang, [], []).result is Result.MISSED


def test_trial_that_fails_otherwise_reports_nothing() -> None:
    """A slowdown whose worker crashed was neither caught nor missed."""
    crash = make_failure(FailureKind.CRASH)
    opinion = judge_fault(find_fault(FaultKind.SLOWDOWN, 0.05), [], [crash])
    assert Opinion(result=Result.BROKEN, failure=crash) == opinion


FAULTS = {fault.name: fault for fault in list_faults("cpu")}
LETTERS = dict(zip("CQIMAB", Result, strict=True))  # caught, quiet, inconclusive, missed, false alarm, broken


def make_attempts(fault: str, letters: str, *, is_asked: bool = True) -> list[Attempt]:
    """Make attempts of 41 s with these results."""
    size = FaultSize(planted=FAULTS[fault].size, is_asked=is_asked)
    opinions = [Opinion(result=LETTERS[letter]) for letter in letters]
    make = partial(Attempt, fault=FAULTS[fault], case_id=CASE, size=size, wall_s=41.0)
    return [make(opinion=opinion) for opinion in opinions]


def make_score(fault: str, letters: str, small: str = "") -> Score:
    """Score attempts; in the ``small`` ones less was planted than is asked for."""
    attempts = [*make_attempts(fault, letters), *make_attempts(fault, small, is_asked=False)]
    return Score(FAULTS[fault], attempts)


def test_table() -> None:
    """Of four attempts, one of them broken, one of three is 33 %, by Clopper and Pearson 0.8 to 90.6 %."""
    attempts = [
        *make_attempts("memory-2%", "M", is_asked=False),
        *make_attempts("slowdown-5%", "CIMB"),
        *make_attempts("nothing", "QA"),
        *make_attempts("lost_cache", "B"),
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
            "slowdown-5%",
            Opinion(result=Result.CAUGHT, row=make_row(Metric.COMPILED_LATENCY, Status.REGRESSED)),
            f"caught        slowdown-5% in {CASE}: compiled_latency +10.0 %: {REGRESSED}",
        ),
        (
            "crash",
            Opinion(result=Result.CAUGHT, failure=make_failure(FailureKind.CRASH)),
            f"caught        crash in {CASE}: crash in stage eager: it broke",
        ),
        ("hang", Opinion(result=Result.MISSED), f"missed        hang in {CASE}: no failure was a hang"),
        (
            "graph_break",
            Opinion(result=Result.MISSED),
            f"missed        graph_break in {CASE}: graph_breaks was not judged",
        ),
        ("nothing", Opinion(result=Result.QUIET), f"quiet         nothing in {CASE}: nothing turned red"),
    ],
)
def test_an_attempt_in_a_line(fault: str, opinion: Opinion, line: str) -> None:
    """The result, and the gate's finding: of a metric, of a failure, or none."""
    assert line == Attempt(fault=FAULTS[fault], case_id=CASE, size=FaultSize(), opinion=opinion).describe()


@pytest.mark.parametrize(
    ("fault", "results", "complaint"),
    [
        ("lost_cache", "C" * 20, ""),
        ("lost_cache", "C" * 19 + "I", "only 19 of 20 were caught"),  # an exact one is caught each time
        ("lost_cache", "C" * 19 + "M", "1 of 20 were missed"),
        ("slowdown-10%", "M", "1 of 1 were missed"),  # it must not be called unchanged
        ("slowdown-10%", "I", ""),
        ("slowdown-10%", "II", "only 0 of 2 were caught"),  # at most 84 % are, and 95 % are asked for
        ("slowdown-5%", "M", ""),  # may be missed once in 20 times: one is chance
        ("slowdown-5%", "MM", "2 of 2 were missed"),
        ("nothing", "AQQ", ""),  # at 1 % each one of three may be chance, and one of two is not
        ("nothing", "AQ", "1 of 2 harmless changes turned red"),
        ("nothing", "QI" * 5, ""),
        ("graph_break", "B", "it could not be tried: every attempt failed"),
    ],
)
def test_what_chance_does_not_explain_is_a_complaint(fault: str, results: str, complaint: str) -> None:
    assert make_score(fault, results).complaint == complaint


@pytest.mark.parametrize(
    ("fault", "results", "small", "is_open"),
    [
        ("slowdown-10%", "I", "", True),
        ("slowdown-10%", "IC", "", False),
        ("slowdown-10%", "M", "", False),  # a complaint
        ("slowdown-10%", "", "I", False),
        ("slowdown-5%", "M", "", True),  # one in twenty may be
        ("slowdown-2%", "M", "", False),  # nobody asks for it
        ("nothing", "I", "", False),  # it is not to be caught
    ],
)
def test_what_must_be_caught_and_never_was_is_open(
    fault: str, results: str, small: str, *, is_open: bool
) -> None:
    """If chance explains it, it is neither a pass nor a failure."""
    assert make_score(fault, results, small).is_open is is_open


@given(
    fault=st.sampled_from([name for name, fault in FAULTS.items() if not fault.is_harmless]),
    results=st.text("CIM", min_size=1, max_size=30),
)
def test_a_better_result_never_raises_a_complaint(fault: str, results: str) -> None:
    """Turning any attempt into a catch adds no failure."""
    if make_score(fault, results).complaint:
        return
    for index in range(len(results)):
        assert make_score(fault, f"{results[:index]}C{results[index + 1 :]}").complaint == ""


def test_attempts_of_too_small_a_dose_excuse_no_other() -> None:
    """Of 19 misses in 20 attempts the one with too small a fault changes nothing."""
    score = make_score("slowdown-5%", "M" * 19, small="M")
    assert (score.is_asked, score.complaint) == (True, "20 of 20 were missed")
    assert make_score("slowdown-5%", "C", small="M" * 9).complaint == ""
    assert make_score("memory-2%", "", small="M" * 9).complaint == ""
