import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import pytest

from gate.decide.evidence.gather import Question
from gate.decide.judge.drift import judge_drift
from gate.decide.verdict import decide_verdict
from gate.records.cases import Case, DType, Metric, Threshold
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Worst
from gate.records.verdict import Outcome, Reason, Status
from gate.report import render
from gate.report.text import Detail, render_text
from gate.report.words.facts import describe_cause
from gate.report.words.headline import write_opening
from tests.hosts import CPU_HOST
from tests.make import POLICY, Situation, decide, decide_row, find_row, make_acceptance, make_measured
from tests.words import describe_causes, describe_comparison, describe_steps, write_notes

from .one_case import confirm, measure

DRIFT, FLOAT32 = Metric.DRIFT, Metric.DRIFT_FLOAT32


@pytest.mark.parametrize(
    ("before", "after", "status", "reason"),
    [
        ((0.02, 0.02, 0.02), (0.03,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((0.02, 0.02, 0.02), (0.50,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((0.02, 0.02, 0.02), (0.61,), Status.REGRESSED, Reason.BEYOND_BAR),
        ((0.80, 0.80, 0.80), (0.10,), Status.IMPROVED, Reason.BEYOND_BAR),
        ((-0.5, 0.0, 0.5), (0.65,), Status.INCONCLUSIVE, Reason.UNSETTLED),  # SD 0.5: 3 errors are 1.7
        ((-0.5, 0.0, 0.5), (0.10,), Status.INCONCLUSIVE, Reason.UNSETTLED),
        (
            (0.80, 0.80, 0.80),
            (1.10,),
            Status.REGRESSED,
            Reason.LIMIT_EXCEEDED,
        ),  # +0.3 over the threshold of 1
        ((1.00, 1.00, 1.00), (1.30,), Status.REGRESSED, Reason.LIMIT_EXCEEDED),  # at the limit is within it
        ((0.80, 0.80, 0.80), (1.00,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((0.95, 0.95, 0.95), (1.02,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),  # crossed by a hair
        ((1.40, 1.40, 1.40), (1.50,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),  # was beyond it before
        ((1.40, 1.40, 1.40), (2.10,), Status.REGRESSED, Reason.BEYOND_BAR),
    ],
)
def test_drift_against_a_baseline(
    before: Sequence[float], after: Sequence[float], status: Status, reason: Reason
) -> None:
    """Drift regresses by 0.58 beyond three errors, or by crossing its limit clearly."""
    row = decide_row(DRIFT, before={DRIFT: before}, after={DRIFT: after})
    assert (row.status, row.reason) == (status, reason)


@pytest.mark.parametrize(
    ("threshold", "before", "after", "noise", "status"),
    [
        (0.5, (0.0,) * 8, (0.125,) * 8, 0.045, Status.UNCHANGED),
        (0.5, (0.0, 0.0), (0.5, 0.5), 0.09, Status.UNCHANGED),  # not beyond its threshold
        (0.5, (0.5, 0.5), (0.0, 0.0), 0.09, Status.UNCHANGED),
        (0.5, (0.0, 0.0), (0.625, 0.625), 0.09, Status.REGRESSED),
        (0.5, (0.625, 0.625), (0.0, 0.0), 0.09, Status.IMPROVED),
        (0.5, (-1.0, 1.0), (3.0, 3.0), 3.0, Status.INCONCLUSIVE),  # not beyond three errors
        (0.5, (-1.0, 1.0), (-3.0, -3.0), 3.0, Status.INCONCLUSIVE),
        (0.5, (-1.0, 1.0), (-1.0, -1.0), 3.0, Status.INCONCLUSIVE),
        (0.5, (-1.0, 1.0), (3.5, 3.5), 3.0, Status.REGRESSED),
        (0.5, (-1.0, 1.0), (-3.5, -3.5), 3.0, Status.IMPROVED),
        (0.5, (0.875, 1.125), (1.375, 1.375), 0.375, Status.UNCHANGED),  # crosses its limit, within its noise
        (0.5, (0.875, 1.125), (1.4375, 1.4375), 0.375, Status.REGRESSED),
        (3.0, (-1.0, 1.0), (0.0, 0.0), 3.0, Status.UNCHANGED),  # nothing beyond the threshold could hide
        (2.5, (-1.0, 1.0), (0.0, 0.0), 3.0, Status.INCONCLUSIVE),
    ],
)
def test_a_change_of_drift_must_exceed_its_threshold_and_three_errors(
    threshold: float, before: Sequence[float], after: Sequence[float], noise: float, status: Status
) -> None:
    """The error of two means of two is their pooled SD, which (-1, 1) and two equal values make 1.

    Of two means of eight it is half of that.
    """
    question = Question(
        case=Case(id="m/x", model="m", definition="d1"),
        metric=DRIFT,
        before=before,
        after=after,
        threshold=Threshold(relative=0.0, absolute=threshold),
    )
    row = judge_drift(question)
    assert row.status is status
    assert row.change is not None
    centre = fmean(after) - fmean(before)
    interval = (row.change.low, row.change.centre, row.change.high)
    assert interval == pytest.approx((centre - noise, centre, centre + noise))
    assert row.change.detectable == pytest.approx(max(threshold, noise) + noise)


@pytest.mark.parametrize(
    ("metric", "dtype", "value", "status"),
    [
        (DRIFT, DType.FLOAT32, 0.99, Status.NEW),
        (DRIFT, DType.FLOAT32, 1.00, Status.NEW),
        (DRIFT, DType.FLOAT32, 1.01, Status.REGRESSED),
        (DRIFT, DType.BFLOAT16, 1.57, Status.NEW),
        (DRIFT, DType.BFLOAT16, 1.59, Status.REGRESSED),
        (FLOAT32, DType.BFLOAT16, 1.01, Status.REGRESSED),
        (DRIFT, DType.FLOAT16, 1.57, Status.NEW),
        (DRIFT, DType.FLOAT16, 1.59, Status.REGRESSED),
    ],
)
def test_limit_without_a_baseline(metric: Metric, dtype: DType, value: float, status: Status) -> None:
    """A new case regresses beyond the limit of its dtype."""
    verdict = decide(Situation(dtype=dtype, after={metric: (value,)}))
    assert find_row(verdict, metric).status is status
    assert verdict.outcome is (Outcome.REGRESSION if status is Status.REGRESSED else Outcome.NOTHING_COMPARED)


@pytest.mark.parametrize(
    ("dtype", "metric", "worst", "status"),
    [
        (DType.FLOAT32, DRIFT, Worst(output="x", steps=0.5), Status.NEW),
        (DType.FLOAT32, DRIFT, Worst(output="x", steps=64.0), Status.NEW),
        (DType.FLOAT32, DRIFT, Worst(output="x", steps=65.0), Status.REGRESSED),
        (DType.FLOAT32, DRIFT, Worst(output="x", steps=65.0, beyond=2.0), Status.NEW),
        (DType.FLOAT32, DRIFT, Worst(output="x", steps=65.0, beyond=2.1), Status.REGRESSED),
        (DType.FLOAT32, DRIFT, Worst(output="x"), Status.REGRESSED),  # another answer has no steps
        (DType.BFLOAT16, DRIFT, Worst(output="x", steps=64.0), Status.REGRESSED),  # half of its size
        (DType.BFLOAT16, DRIFT, Worst(output="x", steps=0.5), Status.REGRESSED),
        (DType.BFLOAT16, FLOAT32, Worst(output="x", steps=64.0), Status.NEW),
    ],
)
def test_without_a_baseline_rounding_is_no_drift(
    dtype: DType, metric: Metric, worst: Worst, status: Status
) -> None:
    """Twenty times eager's error is no drift if it is within the dtype's rounding."""
    situation = Situation(dtype=dtype, after={metric: (4.5,)}, worst={metric: worst})
    assert find_row(decide(situation), metric).status is status


@pytest.mark.parametrize(("after", "is_named"), [(0.0, False), (3.0, True)])
def test_the_output_that_drifted_most_is_named_where_drift_got_worse(after: float, *, is_named: bool) -> None:
    """An unchanged drift is nobody's fault."""
    worst = {DRIFT: Worst(output="x", steps=9.0)}
    row = decide_row(DRIFT, before={DRIFT: (0.0,)}, after={DRIFT: (after,)}, worst=worst)
    assert [fact.name("output") for fact in row.remarks] == (["x"] if is_named else [])


def test_rounding_in_one_trial_excuses_no_other() -> None:
    """Both trials drift; the second is 65 rounding steps off, and 64 are allowed."""
    situation = Situation(after={DRIFT: (4.5, 4.5)})
    run = make_measured(situation)
    steps = zip(run.trials, (64.0, 65.0), strict=True)
    trials = tuple(replace(trial, worst={DRIFT: Worst(output="x", steps=count)}) for trial, count in steps)
    verdict = decide_verdict(replace(run, trials=trials), (), POLICY)
    assert find_row(verdict, DRIFT).status is Status.REGRESSED


@pytest.mark.parametrize(("values", "low", "high"), [((1.4,), 0.4, 0.4), ((1.3, 1.4, 1.5), 0.1516, 0.6484)])
def test_without_a_baseline_the_change_is_what_exceeds_the_limit(
    values: Sequence[float], low: float, high: float
) -> None:
    """The mean is 0.4 above 1; of three with an SD of 0.1 it is known to 4.303 x 0.1 / sqrt(3) = 0.2484."""
    change = decide_row(DRIFT, after={DRIFT: values}).change
    assert change is not None
    assert (change.low, change.centre, change.high) == pytest.approx((low, 0.4, high), abs=1e-4)
    assert change.detectable == 0.0


def test_limit_is_waived_by_a_baseline_of_another_stack() -> None:
    """Beyond the limit under another torch too: not comparable, with a note; at the limit waives nothing."""
    other = replace(CPU_HOST, torch="2.11.0")
    row = decide_row(DRIFT, before={DRIFT: (1.0,)}, after={DRIFT: (1.4,)}, host=other)
    assert row.status is Status.REGRESSED
    verdict = decide(Situation(before={DRIFT: (1.3,)}, after={DRIFT: (1.4,)}, host=other))
    assert find_row(verdict, DRIFT).status is Status.NOT_COMPARABLE
    assert any("limit" in note for note in write_notes(verdict))


def test_drift_that_was_measured_otherwise_is_not_compared() -> None:
    """Drift of one call is not compared with drift of three, and one note says so."""
    situation = Situation(
        before={DRIFT: (0.1,) * 3, Metric.GRAPH_BREAKS: (0.0,) * 3},
        after={DRIFT: (0.9,), Metric.GRAPH_BREAKS: (0.0,)},
        drift_after=2,
    )
    verdict = decide(situation)
    row = find_row(verdict, DRIFT)
    assert (row.status, row.reason) == (Status.NEW, Reason.MEASURED_OTHERWISE)
    assert find_row(verdict, Metric.GRAPH_BREAKS).status is Status.UNCHANGED
    assert [fact.metrics for fact in verdict.notes if fact.code is Code.MEASURED_BEFORE] == [(DRIFT,)]
    again = decide(replace(situation, drift_before=2))
    assert find_row(again, DRIFT).reason is Reason.BEYOND_BAR


def test_a_result_that_drift_was_not_yet_of_is_no_other_model() -> None:
    """A checksum is not compared if drift was defined otherwise."""
    situation = Situation(
        before={Metric.GRAPH_BREAKS: (0.0,) * 3},
        after={Metric.GRAPH_BREAKS: (1.0,)},
        workload_before={"reference": "1"},
        workload_after={"reference": "2"},
    )
    codes = [
        [cause.fact.code for cause in decide(each).causes]
        for each in (situation, replace(situation, drift_after=2))
    ]
    assert [Code.WORKLOAD_CHANGED in named for named in codes] == [True, False]


def test_inference_that_takes_gradients_is_another_case() -> None:
    """A baseline without gradients, or of another input's, is stale."""
    situation = Situation(
        before={Metric.GRAPH_BREAKS: (0.0,) * 3},
        after={Metric.GRAPH_BREAKS: (0.0,)},
        workload_after={"gradients": "inputs[0]"},
    )
    assert find_row(decide(situation), Metric.GRAPH_BREAKS).reason is Reason.STALE_DEFINITION
    same = replace(situation, workload_before={"gradients": "inputs[0]"})
    assert find_row(decide(same), Metric.GRAPH_BREAKS).status is Status.UNCHANGED


@pytest.mark.parametrize(
    ("warning", "named"),
    [
        (Fact(code=Code.RANDOM_UNJUDGED), (Code.RANDOM_UNJUDGED,)),
        (Fact(code=Code.UNMEASURED, metrics=(FLOAT32,), names=name_words(why="x")), ()),
        (Fact(code=Code.UNMEASURED, metrics=(DRIFT,), names=name_words(why="x")), (Code.UNMEASURED,)),
    ],
)
def test_a_drift_that_is_missing_says_why(warning: Fact, named: Sequence[Code]) -> None:
    """The reason for missing drift is the trial's note on drift or on this metric."""
    situation = Situation(
        before={DRIFT: (0.1,) * 3, Metric.GRAPH_BREAKS: (0.0,) * 3},
        after={Metric.GRAPH_BREAKS: (0.0,)},
        warnings=(warning, warning),
    )
    row = find_row(decide(situation), DRIFT)
    assert (row.status, tuple(fact.code for fact in row.remarks)) == (Status.MISSING, named)


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [(17.0, 17.1, [(1.0, 17.1)]), (8.1, 8.1, [(1.0, 8.1)]), (7.9, 8.1, []), (9.0, 7.5, [])],
)
def test_a_pass_says_what_was_wrong_from_the_start(
    before: float, after: float, counted: list[tuple[float, float]]
) -> None:
    """Drift beyond 8 on both sides passes, and the headline says so."""
    verdict = decide(Situation(before={DRIFT: (before,) * 3}, after={DRIFT: (after,)}))
    assert verdict.outcome is Outcome.PASS
    wrong = [fact.numbers for fact in verdict.headline if fact.code is Code.WRONG_ON_BOTH_SIDES]
    assert [(numbers["cases"], numbers["drift"]) for numbers in wrong] == counted


def test_an_output_that_is_laid_out_otherwise_is_the_cause() -> None:
    """The cause names the output whose layout differs."""
    names = name_words(output="output[1]", eager="a tensor of its own", compiled="inputs[0] itself")
    layout = Metric.LAYOUT_DIFFERENCES
    situation = Situation(
        before={layout: (0.0,) * 3},
        after={layout: (1.0,)},
        warnings=(Fact(code=Code.LAYOUT_DIFFERS, names=names),),
    )
    verdict = decide(situation)
    assert verdict.outcome is Outcome.REGRESSION
    cause = verdict.causes[0].fact
    assert (cause.code, cause.name("output")) == (Code.LAYOUT_DIFFERS, "output[1]")


def test_waived_limit_has_a_note() -> None:
    """Drift beyond the limit in baseline and head passes, with a note."""
    verdict = decide(Situation(before={DRIFT: (1.4,) * 3}, after={DRIFT: (1.45,)}))
    assert verdict.outcome is Outcome.PASS
    assert [note for note in write_notes(verdict) if "only the change counts" in note]


@pytest.mark.parametrize(("allowance", "status"), [(0.39, Status.REGRESSED), (0.41, Status.ACCEPTED)])
def test_limit_without_a_baseline_can_be_accepted(allowance: float, status: Status) -> None:
    """The allowance covers what exceeds the threshold: 1.4 - 1.0."""
    acceptance = make_acceptance(
        DRIFT, allowance, case="mlp/*", reason="an exp in half", author="a", expires="2026-03-31"
    )
    situation = Situation(after={DRIFT: (1.3, 1.4, 1.5)})
    verdict = decide(situation, acceptances=(acceptance,))
    assert find_row(verdict, DRIFT).status is status
    accepted = status is Status.ACCEPTED
    assert verdict.outcome is (Outcome.NOTHING_COMPARED if accepted else Outcome.REGRESSION)
    before = decide(situation)
    assert before.outcome is Outcome.REGRESSION
    change = find_row(before, DRIFT).change
    assert change is not None
    assert change.centre == pytest.approx(0.4)
    accepting = "accept 'mlp/inference-float32-smoke-default' drift"
    assert [step for step in describe_steps(before) if accepting in step]


OFF = Fact(
    code=Code.OUTPUT_DIFFERS,
    numbers={"most": 1.0, "elements": 3.0, "of": 40.0},
    names=name_words(output="output[0]", dtype="int64"),
)
TOLD = "Output[0] differs between eager and compiled: int64, off by 1 at most, in 3 of 40 elements."


def test_a_wrong_result_is_reported_without_a_factor() -> None:
    """A wrong result names output, type and difference, and offers no acceptance."""
    for before in ({DRIFT: (0.0,) * 5}, None):
        situation = Situation(
            before=before,
            after={DRIFT: (64.0,) * 3},
            warnings=(OFF,),
            worst={DRIFT: Worst(output="output[0]")},
        )
        verdict = decide(situation)
        row = find_row(verdict, DRIFT)
        assert row.status is Status.REGRESSED
        assert describe_comparison(row) == TOLD
        assert write_opening(verdict) == f"1 metric less exact in mlp: drift, another answer. {TOLD}"
        assert describe_causes(verdict) == [TOLD]
        assert not any("accept" in step for step in describe_steps(verdict))
        for text in (render_text(verdict, detail=Detail.EVERYTHING), render(verdict, "html")):
            assert not re.search(r"\dx the error|\d,\d{3},\d{3}x|[Ff]urther from|Unexplained|--allow", text)


def test_published_words_of_another_answer_do_without_names() -> None:
    """A published comment omits the output's name."""
    fact = replace(OFF, names={})
    assert describe_cause(fact) == (
        "An output differs between eager and compiled, off by 1 at most, in 3 of 40 elements."
    )


def test_drift_names_the_output_that_it_is_mostly_of() -> None:
    """The sentence names the output of the trial that drifted most."""
    situation = Situation(
        before={DRIFT: (0.0,) * 5},
        after={DRIFT: (3.0,) * 3},
        worst={DRIFT: Worst(output="the gradient of up.weight", steps=1234.4)},
    )
    assert describe_comparison(find_row(decide(situation), DRIFT)).endswith(
        "(mostly of the gradient of up.weight, 1,234 rounding steps off)."
    )


def test_drift_that_is_no_worse_names_no_output() -> None:
    """Neither unchanged nor lower drift has a remark."""
    for after in (0.1, 0.0):
        worst = {DRIFT: Worst(output="output[0]", steps=2.0)}
        row = decide_row(DRIFT, before={DRIFT: (0.1,) * 3}, after={DRIFT: (after,)}, worst=worst)
        assert (row.status, row.remarks) == (Status.UNCHANGED, ())


def test_a_wrong_result_that_the_baseline_gives_too_is_noted() -> None:
    """A wrong result in baseline and head is noted."""
    situation = Situation(
        before={DRIFT: (64.0,) * 5},
        after={DRIFT: (64.0,) * 3},
        warnings=(OFF,),
        worst={DRIFT: Worst(output="output[0]")},
    )
    assert any(
        " with another answer, and so is the baseline's" in note for note in write_notes(decide(situation))
    )


def test_a_wrong_result_that_no_pair_has_measured_is_red() -> None:
    """Nothing is stored, the trial exceeds the limit, and there was time for a pair of latencies alone."""
    verdict = confirm({**measure(), DRIFT: (6.0,)}, baselines=(), pairs=1, full=0)
    row = find_row(verdict, DRIFT)
    assert (row.status, row.reason, row.pairs) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED, 0)
