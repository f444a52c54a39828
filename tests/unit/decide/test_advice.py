"""What a verdict begins with, and what it advises to do next."""

from dataclasses import replace
from typing import Any

import pytest

from gate.decide.explain.advice import (
    add_base_to_headline,
    list_acceptances,
    list_next_steps,
    make_headline,
    suggest_settling,
)
from gate.records.cases import Case, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, Run
from gate.records.verdict import Comparison, Estimate, Outcome, Reason, Status
from tests.make import TODAY, give_base, make_change, make_failure, make_row, make_run

LATENCY, SPEEDUP, DRIFT = Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP, Metric.DRIFT
BREAKS, FLOPS = Metric.GRAPH_BREAKS, Metric.FLOPS
CASES = tuple(Case(id=f"a/{name}", model="a", factory="m:f", definition="d1") for name in "xyz")
POLICY = Policy(thresholds={}, today=TODAY)
RUN = replace(make_run(), cases=CASES, finished=True)


def row(
    case: str = "a/x", metric: Metric = LATENCY, status: Status = Status.REGRESSED, **more: Any
) -> Comparison:
    return make_row(case, metric, status, **more)


def estimate(centre: float) -> Estimate:
    return Estimate(centre=centre, low=None, high=None, noise=None, n=3)


def head(outcome: Outcome, *rows: Comparison, finished: bool = True) -> list[tuple[Code, dict[str, float]]]:
    facts = make_headline(outcome, rows, CASES, finished=finished)
    return [(fact.code, dict(fact.numbers)) for fact in facts]


def test_an_incomplete_verdict_begins_with_what_is_lost() -> None:
    """A case counts once: as removed, else as short of trials, else as broken, else as lacking a metric."""
    missing = Status.MISSING
    came = (Fact(code=Code.TRIALS_CAME, numbers={"came": 1.0, "planned": 2.0}),)
    rows = [
        row("a/1", BREAKS, missing, reason=Reason.REMOVED),
        row("a/2", BREAKS, missing, reason=Reason.NOT_RUN, remarks=came),
        row("a/2", LATENCY, missing, reason=Reason.NOT_RUN),
        row("a/3", BREAKS, missing, reason=Reason.NOT_RUN),
        row("a/3", LATENCY, missing, reason=Reason.NOT_MEASURED),
        row("a/4", LATENCY, missing, reason=Reason.NOT_MEASURED),
        row("a/5", LATENCY, change=make_change(0.5)),
        row("a/6", LATENCY, missing, reason=Reason.NOT_RUN, decides=False),
    ]
    assert head(Outcome.INCOMPLETE, *rows, finished=False) == [
        (Code.STOPPED, {}),
        (Code.NOT_MEASURED, {"broken": 1, "cases": 3}),
        (Code.METRICS_LACKING, {"lacking": 1, "cases": 3}),
        (Code.CASES_REMOVED, {"removed": 1, "cases": 3}),
        (Code.FEWER_TRIALS, {"fewer": 1, "cases": 3}),
        (Code.REGRESSED, {"cases": 1}),
    ]
    assert head(Outcome.INCOMPLETE, rows[0]) == [(Code.CASES_REMOVED, {"removed": 1, "cases": 3})]


def test_a_regression_begins_with_its_case_or_their_number() -> None:
    """One case with the number of its metrics; two are counted, each metric once."""
    rows = [row(metric=metric, change=make_change(1.0)) for metric in (BREAKS, LATENCY)]
    (fact,) = make_headline(Outcome.REGRESSION, [*rows, row("a/y", BREAKS, decides=False)], CASES)
    assert (fact.code, fact.numbers, fact.metrics) == (Code.REGRESSED_CASE, {"metrics": 2}, (BREAKS, LATENCY))
    (fact,) = make_headline(Outcome.REGRESSION, [*rows, row("a/y", BREAKS, change=None)], CASES)
    assert (fact.code, fact.numbers, fact.metrics) == (Code.REGRESSED, {"cases": 2}, (BREAKS, LATENCY))


def test_what_could_not_be_told_begins_with_its_number() -> None:
    """Of what decides and was judged; what is not comparable was not."""
    statuses = (Status.INCONCLUSIVE, Status.INCONCLUSIVE, Status.UNCHANGED, Status.NOT_COMPARABLE)
    rows = [*(row(status=status) for status in statuses), row(status=Status.INCONCLUSIVE, decides=False)]
    numbers = {"undecided": 2, "judged": 3}
    assert head(Outcome.INCONCLUSIVE, *rows) == [(Code.COULD_NOT_TELL, numbers)]


def test_a_verdict_that_compared_nothing_counts_the_cases_and_those_set_apart() -> None:
    """With a base nothing of it could be compared."""
    apart = row(status=Status.REGRESSED, decides=False, quarantined=True)
    headline = make_headline(Outcome.NOTHING_COMPARED, [apart], CASES)
    assert headline == (Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": 3, "quarantined": 1}),)
    assert add_base_to_headline(headline) == (replace(headline[0], code=Code.BASE_HAS_NOTHING),)
    others = make_headline(Outcome.PASS, [row(status=Status.UNCHANGED)], CASES)
    assert add_base_to_headline(others) == (*others, Fact(code=Code.AGAINST_BASE))
    # Only the first says whether anything was compared.
    assert add_base_to_headline((*others, *headline)) == (*others, *headline, Fact(code=Code.AGAINST_BASE))


@pytest.mark.parametrize(
    ("sides", "numbers"),
    [
        ([(8.1, 9.0)], {"cases": 1, "drift": 9.0}),
        ([(9.0, 8.1), (9.0, 12.0)], {"cases": 2, "drift": 12.0}),
        ([(8.0, 9.0)], None),
        ([(9.0, 8.0)], None),
    ],
)
def test_a_pass_says_what_is_wrong_on_both_sides(
    sides: list[tuple[float, float]], numbers: dict[str, float] | None
) -> None:
    """Eight bits of drift are wrong whatever they were before; the largest of head's is shown."""
    rows = [
        row(f"a/{number}", DRIFT, Status.UNCHANGED, baseline=estimate(before), candidate=estimate(after))
        for number, (before, after) in enumerate(sides)
    ]
    time = row("a/9", LATENCY, Status.UNCHANGED, baseline=estimate(99.0), candidate=estimate(99.0))
    new = row("a/9", DRIFT, Status.UNCHANGED, candidate=estimate(99.0))
    wrong = [
        numbers for code, numbers in head(Outcome.PASS, *rows, time, new) if code is Code.WRONG_ON_BOTH_SIDES
    ]
    assert wrong == ([numbers] if numbers else [])


def test_a_pass_says_how_many_times_another_machine_left_unjudged() -> None:
    """And by how much that is slower, where it is known; what another stack leaves is no matter of speed."""
    fields: dict[str, Any] = {"status": Status.NOT_COMPARABLE, "reason": Reason.OTHER_ENVIRONMENT}
    speed = Fact(code=Code.MACHINE_SPEED, numbers={"shift": 0.2})
    times = [row("a/x", LATENCY, **fields), row("a/y", LATENCY, **fields, remarks=(speed,))]
    passed = row("a/z", BREAKS, Status.IMPROVED)
    judged = {"comparisons": 3, "judged": 1, "cases": 3, "judged_cases": 1, "improved": 1}
    assert head(Outcome.PASS, passed, *times) == [
        (Code.NOTHING_WORSE, judged),
        (Code.TIMES_UNJUDGED, {"comparisons": 2, "shift": 0.2}),
    ]
    assert head(Outcome.PASS, passed, times[0])[1] == (Code.TIMES_UNJUDGED, {"comparisons": 1})
    assert len(head(Outcome.PASS, passed, row("a/y", BREAKS, **fields))) == 1


def steps(*rows: Comparison, run: Run = RUN, in_pairs: bool = False) -> list[tuple[Code, tuple[str, ...]]]:
    facts = list_next_steps(run, rows, POLICY, in_pairs=in_pairs)
    return [(fact.code, fact.cases) for fact in facts]


def test_a_stopped_run_is_continued() -> None:
    """Unless all is compared in pairs, which begin anew."""
    stopped = replace(RUN, finished=False)
    same = row(status=Status.UNCHANGED)
    assert steps(same, run=stopped) == [(Code.CONTINUE, ())]
    assert steps(same, run=stopped, in_pairs=True) == []


def test_what_failed_is_to_be_fixed_or_measured_again() -> None:
    """First what left a log; then what did not; a case that the base lacks is new."""
    fields: dict[str, Any] = {"status": Status.FAILED, "reason": Reason.CASE_FAILED}
    rows = [row(case.id, BREAKS, **fields) for case in CASES]
    failed = replace(RUN, failures=(make_failure("a/y"),))
    assert steps(*rows, run=failed) == [(Code.FIX_FAILED, ("a/y",)), (Code.FIX_FAILED, ("a/x", "a/z"))]
    based = give_base(failed, cases=CASES[:2])
    assert steps(*rows, run=based)[:3] == [
        (Code.FIX_FAILED, ("a/y",)),
        (Code.FIX_FAILED, ("a/x",)),
        (Code.FIX_NEW, ("a/z",)),
    ]
    removed = row("a/x", BREAKS, Status.MISSING, reason=Reason.REMOVED)
    assert steps(removed) == [(Code.ACCEPT_REMOVED, ("a/x",))]


def test_trials_that_did_not_come_back_are_measured_again() -> None:
    """In pairs with more minutes; not where the base failed, nor where they came and measured nothing."""
    short = row("a/x", BREAKS, Status.MISSING, reason=Reason.NOT_RUN)
    nothing = replace(short, case_id="a/y", remarks=(Fact(code=Code.NOTHING_MEASURED),))
    assert steps(short) == [(Code.MEASURE_AGAIN, ("a/x",))]
    assert steps(short, in_pairs=True) == [(Code.MORE_MINUTES, ("a/x",))]
    assert steps(nothing) == [(Code.FIX_FAILED, ("a/y",))]
    failed = replace(RUN, failures=(make_failure("a/x", arm=BASE_ARM),))
    assert steps(short, run=failed) == [(Code.READ_BASE_LOGS, ())]


def test_what_is_open_is_settled_by_pairs_or_trials() -> None:
    """What stored values left open by the base, and with stored values by trials, too; never in pairs."""
    open_ = row("a/x", LATENCY, Status.INCONCLUSIVE, reason=Reason.UNSETTLED)
    stored = replace(open_, case_id="a/y", baseline=estimate(1.0))
    paired = replace(open_, case_id="a/z", pairs=2)
    assert steps(open_, stored, paired) == [
        (Code.SETTLE, ("a/x", "a/y")),
        (Code.SETTLE_BY_TRIALS, ("a/y",)),
        (Code.SETTLE_WITH_PAIRS, ("a/z",)),
    ]
    assert steps(open_, in_pairs=True) == [(Code.SETTLE_WITH_PAIRS, ("a/x",))]
    failed = replace(RUN, failures=(make_failure("a/x", arm=BASE_ARM),))
    assert steps(open_, run=failed) == [(Code.READ_BASE_LOGS, ())]


def test_a_conviction_by_stored_times_alone_can_be_made_sure() -> None:
    """Where the run has no base; with one, pairs had the word."""
    worse = row("a/x", LATENCY, change=make_change(0.5))
    assert (Code.BE_SURE, ("a/x",)) in steps(worse)
    assert Code.BE_SURE not in [code for code, _ in steps(worse, run=give_base(RUN))]


def test_after_all_pairs_only_a_quieter_machine_settles() -> None:
    """Sixteen are all; of a case that has regressed nothing more is asked."""
    open_ = row("a/x", LATENCY, Status.INCONCLUSIVE)
    rows = [replace(open_, pairs=15), replace(open_, case_id="a/y", pairs=16), replace(open_, case_id="a/z")]
    facts = suggest_settling(rows, [*rows, row("a/z", BREAKS)])
    assert [(fact.code, fact.cases) for fact in facts] == [
        (Code.SETTLE_WITH_PAIRS, ("a/x",)),
        (Code.SETTLE_QUIETLY, ("a/y",)),
    ]


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([row(status=Status.INCONCLUSIVE, reason=Reason.FEW_TRIALS, pairs=1)], [Code.RECORD_MORE]),
        ([row(status=Status.NOT_COMPARABLE, reason=Reason.NO_BASELINE)], [Code.RECORD]),
        ([], [Code.RECORD]),
        ([row(decides=False, quarantined=True)], [Code.LIFT_QUARANTINE]),
        ([row(metric=BREAKS, status=Status.IMPROVED)], [Code.RECORD_BETTER]),
        ([row(metric=BREAKS, status=Status.IMPROVED, decides=False), row(status=Status.UNCHANGED)], []),
        ([row(metric=BREAKS, status=Status.IMPROVED), row(status=Status.INCONCLUSIVE, pairs=1)], []),
        ([row(status=Status.UNCHANGED)], []),
    ],
    ids=[
        "few",
        "none",
        "no cases",
        "set apart",
        "better",
        "better, and no matter",
        "better, and open",
        "same",
    ],
)
def test_baselines_are_to_be_recorded_where_they_lack_or_are_worse(
    rows: list[Comparison], codes: list[Code]
) -> None:
    """Never where all is compared in pairs, without any."""
    settling = {Code.SETTLE_WITH_PAIRS}
    assert [code for code, _ in steps(*rows) if code not in settling] == codes
    assert {code for code, _ in steps(*rows, in_pairs=True)} <= settling


def test_times_of_another_speed_are_compared_with_the_base() -> None:
    """A machine that runs at another speed has no baselines of its own."""
    speed = (Fact(code=Code.MACHINE_SPEED, numbers={"shift": 0.2}),)
    other = row("a/x", LATENCY, Status.NOT_COMPARABLE, reason=Reason.OTHER_ENVIRONMENT)
    assert steps(replace(other, remarks=speed)) == [(Code.RECORD, ()), (Code.COMPARE_WITH_BASE, ("a/x",))]
    assert steps(other) == [(Code.RECORD, ())]


@pytest.mark.parametrize(
    ("metric", "change", "allowance"),
    [
        (LATENCY, 0.4, 0.5),
        (LATENCY, 8.0, 10.0),
        (LATENCY, 8.01, None),
        (DRIFT, 6.4, 8.0),
        (DRIFT, 6.41, None),
        (BREAKS, 1000.0, 1000.0),
    ],
)
def test_an_allowance_has_a_quarter_of_margin(metric: Metric, change: float, allowance: float | None) -> None:
    """Counts have none. Beyond eleven times a time or eight bits of drift only a fix is suggested."""
    (step,) = list_acceptances([row(metric=metric, change=make_change(change))], POLICY)
    assert step.numbers.get("allowance") == allowance
    assert step.code is (Code.FIX if allowance is None else Code.ACCEPT)
    assert allowance is None or step.names == {"expires": ("2026-03-31",)}


def test_a_wrong_result_is_to_be_fixed() -> None:
    """Whatever its drift; without a date of today an acceptance has no end to suggest."""
    wrong = row(metric=DRIFT, change=make_change(1.0), remarks=(Fact(code=Code.OUTPUT_LOST),))
    assert [step.code for step in list_acceptances([wrong], POLICY)] == [Code.FIX]
    (step,) = list_acceptances([row(change=make_change(0.4))], replace(POLICY, today=""))
    assert step.names == {"expires": ()}
