"""What a verdict begins with, and what it suggests to do next, from its rows alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.explain.advice import (
    add_base_to_headline,
    is_short,
    list_acceptances,
    list_next_steps,
    make_headline,
)
from gate.records.cases import Case, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Comparison, Estimate, Outcome, Reason, Status
from tests.make import TODAY, give_base, make_change, make_failure, make_row, make_run

LATENCY, EAGER, BREAKS = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.GRAPH_BREAKS
DRIFT, COLD = Metric.DRIFT, Metric.COLD_COMPILE_TIME


def estimate(centre: float) -> Estimate:
    return Estimate(centre=centre, low=None, high=None, noise=None, n=1)


def count_facts(facts: Sequence[Fact]) -> list[tuple[Code, dict[str, float]]]:
    return [(fact.code, dict(fact.numbers)) for fact in facts]


def find_fact(facts: Sequence[Fact], code: Code) -> Fact | None:
    """The only fact of a code, if any."""
    (fact, *more) = [*(fact for fact in facts if fact.code is code), None]
    assert more in ([], [None])
    return fact


def test_an_open_verdict_counts_what_is_undecided_of_what_was_judged() -> None:
    """What had no time for a pair is judged; what is new, broken or does not decide is not."""
    rows = [
        make_row("a", LATENCY, Status.INCONCLUSIVE),
        make_row("a", COLD, Status.INCONCLUSIVE, reason=Reason.UNPAIRED),
        make_row("a", BREAKS, Status.UNCHANGED),
        make_row("a", DRIFT, Status.NEW),
        make_row("b", LATENCY, Status.INCONCLUSIVE, decides=False),
        make_row("b", COLD, Status.UNCHANGED),
        make_row("b", BREAKS, Status.ACCEPTED),
    ]
    headline = make_headline(Outcome.INCONCLUSIVE, rows, ())
    assert count_facts(headline) == [(Code.COULD_NOT_TELL, {"undecided": 2, "judged": 5})]


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([("a", LATENCY)], [(Code.REGRESSED_CASE, {"metrics": 1})]),
        ([("a", LATENCY), ("a", COLD)], [(Code.REGRESSED_CASE, {"metrics": 2})]),
        ([("a", LATENCY), ("b", COLD)], [(Code.REGRESSED, {"cases": 2})]),
    ],
)
def test_a_regression_names_its_case_if_it_is_the_only_one(
    rows: list[tuple[str, Metric]], codes: list[tuple[Code, dict[str, float]]]
) -> None:
    """Beside something that is incomplete cases are counted."""
    regressed = [make_row(case, metric, change=make_change(0.5)) for case, metric in rows]
    other = [make_row("c", DRIFT, decides=False), make_row("c", BREAKS, Status.UNCHANGED)]
    headline = make_headline(Outcome.REGRESSION, [*regressed, *other], ())
    assert count_facts(headline) == codes
    assert headline[0].metrics == tuple(metric for _, metric in rows)
    assert headline[0].cases == (("a",) if codes[0][0] is Code.REGRESSED_CASE else ())
    stopped = make_headline(Outcome.INCOMPLETE, [*regressed, *other], (), finished=False)
    assert count_facts(stopped) == [
        (Code.STOPPED, {}),
        (Code.REGRESSED, {"cases": len({case for case, _ in rows})}),
    ]


def test_what_is_incomplete_is_counted_by_what_is_lacking() -> None:
    """Cases that failed, that lack a metric, that the change removed, and with fewer trials."""
    few = (Fact(code=Code.TRIALS_CAME, numbers={"came": 1.0, "planned": 3.0}),)
    rows = [
        make_row("a", LATENCY, Status.FAILED, reason=Reason.CASE_FAILED),
        make_row("b", LATENCY, Status.MISSING, reason=Reason.NOT_MEASURED),
        make_row("b", COLD, Status.MISSING, reason=Reason.NOT_MEASURED),
        make_row("c", LATENCY, Status.MISSING, reason=Reason.REMOVED),
        make_row("d", LATENCY, Status.MISSING, reason=Reason.NOT_RUN, remarks=few),
        make_row("e", LATENCY, Status.MISSING, reason=Reason.NOT_RUN),
        make_row("e", COLD, Status.MISSING, reason=Reason.NOT_MEASURED),
        make_row("f", LATENCY, Status.FAILED, decides=False),
        make_row("g", LATENCY, Status.UNCHANGED),
    ]
    assert count_facts(make_headline(Outcome.INCOMPLETE, rows, "abcdefgh")) == [
        (Code.NOT_MEASURED, {"broken": 2, "cases": 8}),
        (Code.METRICS_LACKING, {"lacking": 1, "cases": 8}),
        (Code.CASES_REMOVED, {"removed": 1, "cases": 8}),
        (Code.FEWER_TRIALS, {"fewer": 1, "cases": 8}),
    ]


@pytest.mark.parametrize(
    ("sides", "numbers"),
    [
        ([(9.0, 10.0)], {"cases": 1, "drift": 10.0}),
        ([(9.0, 10.0), (20.0, 9.5)], {"cases": 1, "drift": 10.0}),
        ([(8.0, 10.0)], None),
        ([(10.0, 8.0)], None),
        ([(None, 10.0)], None),
        ([(10.0, None)], None),
        ([(0.1, 0.1)], None),
    ],
)
def test_a_pass_says_what_is_wrong_on_both_sides(
    sides: list[tuple[float | None, float | None]], numbers: dict[str, float] | None
) -> None:
    """By more than 8 log2 units of drift; no other metric has such a bound."""
    rows = [
        make_row(
            "a",
            DRIFT,
            Status.UNCHANGED,
            **{
                name: None if centre is None else estimate(centre)
                for name, centre in (("baseline", before), ("candidate", after))
            },
        )
        for before, after in sides
    ]
    calls = [make_row("b", BREAKS, Status.UNCHANGED, baseline=estimate(50.0), candidate=estimate(50.0))]
    wrong = find_fact(make_headline(Outcome.PASS, [*rows, *calls], "ab"), Code.WRONG_ON_BOTH_SIDES)
    assert (wrong.numbers if wrong else None) == numbers


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        ([], None),
        ([(Reason.NO_BASELINE, ())], None),
        ([(Reason.OTHER_ENVIRONMENT, ())], {"comparisons": 1}),
        (
            [
                (Reason.OTHER_ENVIRONMENT, (Fact(code=Code.NO_PAIR),)),
                (
                    Reason.OTHER_ENVIRONMENT,
                    (Fact(code=Code.NO_PAIR), Fact(code=Code.MACHINE_SPEED, numbers={"shift": 0.3})),
                ),
            ],
            {"comparisons": 2, "shift": 0.3},
        ),
    ],
)
def test_a_pass_counts_times_that_another_machine_recorded(
    rows: list[tuple[Reason, tuple[Fact, ...]]], numbers: dict[str, float] | None
) -> None:
    """With the shift of the machine where it is this one, at another speed."""
    times = [
        make_row("a", LATENCY, Status.NOT_COMPARABLE, reason=reason, remarks=remarks)
        for reason, remarks in rows
    ]
    counts = make_row("a", BREAKS, Status.NOT_COMPARABLE, reason=Reason.OTHER_ENVIRONMENT)
    unjudged = find_fact(make_headline(Outcome.PASS, [*times, counts], "a"), Code.TIMES_UNJUDGED)
    assert (unjudged.numbers if unjudged else None) == numbers


def test_a_headline_says_what_it_was_compared_with() -> None:
    """The base; or that the base has nothing, instead of a baseline."""
    nothing = Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": 2, "quarantined": 1})
    assert make_headline(Outcome.NOTHING_COMPARED, [], "ab") == (
        replace(nothing, numbers={"cases": 2, "quarantined": 0}),
    )
    assert add_base_to_headline((nothing,)) == (replace(nothing, code=Code.BASE_HAS_NOTHING),)
    passed = (Fact(code=Code.NOTHING_WORSE), Fact(code=Code.NO_BASELINE_APPLIES))
    assert add_base_to_headline(passed) == (*passed, Fact(code=Code.AGAINST_BASE))


def list_steps(
    *rows: Comparison, in_pairs: bool = False, **fields: Any
) -> list[tuple[Code, tuple[str, ...]]]:
    """Codes and cases of the steps after a run; ``based``: with a base."""
    based = fields.pop("based", False)
    cases = tuple(Case(id=name, model="m") for name in dict.fromkeys(row.case_id for row in rows))
    run = make_run(**{"cases": cases, **fields})
    run = give_base(run) if based else run
    steps = list_next_steps(run, rows, Policy(thresholds={}, today=TODAY), in_pairs=in_pairs)
    return [(step.code, step.cases) for step in steps]


@pytest.mark.parametrize(("based", "steps"), [(False, [(Code.BE_SURE, ("a",))]), (True, [])])
def test_what_only_stored_baselines_convict_is_to_be_made_sure_of(
    *, based: bool, steps: list[tuple[Code, tuple[str, ...]]]
) -> None:
    """Where there was no base to compare it with."""
    listed = list_steps(make_row("a", LATENCY), make_row("b", LATENCY, pairs=2), based=based)
    assert [step for step in listed if step[0] is Code.BE_SURE] == steps


def test_a_run_that_was_stopped_is_to_be_continued() -> None:
    """Pairs are not: they go on the next time by themselves."""
    assert list_steps(finished=False) == [(Code.CONTINUE, ())]
    assert list_steps(finished=False, in_pairs=True) == []
    assert Code.CONTINUE not in [code for code, _ in list_steps()]


OPEN: dict[str, Any] = {"status": Status.INCONCLUSIVE, "reason": Reason.UNSETTLED}


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({}, [Code.SETTLE]),
        ({"baseline": estimate(1.0)}, [Code.SETTLE, Code.SETTLE_BY_TRIALS]),
        ({"pairs": 1}, [Code.SETTLE_WITH_PAIRS]),
        ({"pairs": 15}, [Code.SETTLE_WITH_PAIRS]),
        ({"pairs": 16}, [Code.SETTLE_QUIETLY]),
        ({"pairs": 17}, [Code.SETTLE_QUIETLY]),
        ({"status": Status.UNCHANGED}, []),
        ({"decides": False}, []),
    ],
)
def test_what_is_open_is_to_be_settled_by_what_it_lacks(fields: dict[str, Any], steps: list[Code]) -> None:
    """By pairs, or trials where a baseline is stored; after all 16 pairs on a quieter machine."""
    row = make_row("a", LATENCY, **{**OPEN, **fields})
    settled = [step for step in list_steps(row, make_row("b", BREAKS, Status.UNCHANGED)) if step[1] == ("a",)]
    assert settled == [(code, ("a",)) for code in steps]
    if steps == [Code.SETTLE]:
        assert list_steps(row, in_pairs=True) == [(Code.SETTLE_WITH_PAIRS, ("a",))]


def test_what_fails_in_the_base_is_not_settled_by_more_time() -> None:
    """Its logs are to be read; trials settle it where a baseline is stored."""
    failures = (make_failure("a", arm="base"),)
    rows = [make_row("a", LATENCY, **OPEN, baseline=estimate(1.0)), make_row("b", LATENCY, **OPEN)]
    assert list_steps(*rows, failures=failures) == [
        (Code.READ_BASE_LOGS, ()),
        (Code.SETTLE, ("b",)),
        (Code.SETTLE_BY_TRIALS, ("a",)),
    ]
    short = [make_row(case, LATENCY, Status.MISSING, reason=Reason.NOT_RUN) for case in "ab"]
    assert list_steps(*short, failures=failures) == [(Code.MEASURE_AGAIN, ("b",)), (Code.READ_BASE_LOGS, ())]
    assert list_steps(*short, in_pairs=True) == [(Code.MORE_MINUTES, ("a", "b"))]


APART: dict[str, Any] = {"status": Status.UNCHANGED, "decides": False, "quarantined": True}
NEW: dict[str, Any] = {"status": Status.NEW, "reason": Reason.NO_BASELINE}
FEW: dict[str, Any] = {"status": Status.INCONCLUSIVE, "reason": Reason.FEW_TRIALS, "pairs": 1}


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([], [Code.RECORD]),
        ([NEW], [Code.RECORD]),
        ([APART], [Code.LIFT_QUARANTINE]),
        ([APART, NEW], [Code.LIFT_QUARANTINE, Code.RECORD]),
        ([APART, {"status": Status.UNCHANGED}], []),
        ([{"status": Status.UNCHANGED}], []),
        ([{"status": Status.UNCHANGED}, NEW], [Code.RECORD]),
        ([FEW, {"status": Status.UNCHANGED}], [Code.RECORD_MORE]),
        ([FEW, NEW], [Code.RECORD_MORE]),
        ([{"status": Status.IMPROVED}, {"status": Status.UNCHANGED}], [Code.RECORD_BETTER]),
        ([{"status": Status.IMPROVED}, {**OPEN, "pairs": 1}], []),
        ([{"status": Status.IMPROVED, "decides": False}, {"status": Status.UNCHANGED}], []),
        ([{"status": Status.IMPROVED}, NEW], [Code.RECORD]),
    ],
)
def test_what_lacks_a_baseline_is_to_be_recorded(rows: list[dict[str, Any]], codes: list[Code]) -> None:
    """Or what is better than it; a quarantine that covers all is to be lifted; pairs need no baseline."""
    recording = (Code.LIFT_QUARANTINE, Code.RECORD, Code.RECORD_MORE, Code.RECORD_BETTER)
    compared = [make_row(case, LATENCY, **fields) for case, fields in zip("ab", rows, strict=False)]
    assert [code for code, _ in list_steps(*compared) if code in recording] == codes
    assert [code for code, _ in list_steps(*compared, in_pairs=True) if code in recording] == []


def test_what_ran_at_another_speed_is_to_be_compared_with_a_base() -> None:
    """Only it: what another host recorded needs a baseline of this one."""
    speed = (Fact(code=Code.MACHINE_SPEED, numbers={"shift": 0.3}),)
    other: dict[str, Any] = {"status": Status.NOT_COMPARABLE, "reason": Reason.OTHER_ENVIRONMENT}
    rows = [make_row("a", LATENCY, **other), make_row("b", LATENCY, **other, remarks=speed)]
    assert list_steps(*rows) == [(Code.RECORD, ()), (Code.COMPARE_WITH_BASE, ("b",))]


@pytest.mark.parametrize(
    ("fields", "based", "code"),
    [
        ({"status": Status.FAILED, "reason": Reason.CASE_FAILED}, True, Code.FIX_FAILED),
        ({"status": Status.FAILED, "reason": Reason.CASE_FAILED}, False, Code.FIX_FAILED),
        ({"status": Status.MISSING, "reason": Reason.REMOVED}, True, Code.ACCEPT_REMOVED),
        ({"status": Status.MISSING, "reason": Reason.NOT_MEASURED}, False, Code.FIX_FAILED),
        ({"status": Status.MISSING, "reason": Reason.NOT_RUN}, False, Code.MEASURE_AGAIN),
    ],
)
def test_what_is_broken_is_to_be_fixed_measured_or_accepted(
    fields: dict[str, Any], based: bool, code: Code
) -> None:
    """Whether or not it has a log."""
    rows = [make_row("a", LATENCY, **fields)]
    assert list_steps(*rows, based=based)[0] == (code, ("a",))


def test_a_case_that_fails_and_that_the_base_lacks_is_new() -> None:
    """Cases with a log are listed before those without."""
    rows = [make_row(case, LATENCY, Status.FAILED, reason=Reason.CASE_FAILED) for case in "abc"]
    cases = tuple(Case(id=name, model="m") for name in "abc")
    run = give_base(make_run(cases=cases, failures=(make_failure("b"),)), cases=cases[:2])
    steps = list_next_steps(run, rows, Policy(thresholds={}), in_pairs=False)
    assert [(step.code, step.cases) for step in steps] == [
        (Code.FIX_FAILED, ("b",)),
        (Code.FIX_FAILED, ("a",)),
        (Code.FIX_NEW, ("c",)),
    ]


def test_a_case_is_short_where_its_trials_left_nothing_to_read() -> None:
    """Not where they came back without a sample."""
    row = make_row("a", LATENCY, Status.MISSING, reason=Reason.NOT_RUN)
    other = Fact(code=Code.TRIALS_CAME, numbers={"came": 1.0, "planned": 3.0})
    assert is_short(row)
    assert is_short(replace(row, remarks=(other,)))
    assert not is_short(replace(row, remarks=(other, Fact(code=Code.NOTHING_MEASURED))))
    assert not is_short(replace(row, reason=Reason.CASE_FAILED))


@pytest.mark.parametrize(
    ("metric", "change", "allowance"),
    [
        (LATENCY, 0.2, 0.25),
        (LATENCY, 8.0, 10.0),
        (LATENCY, 8.01, None),
        (DRIFT, 6.4, 8.0),
        (DRIFT, 6.41, None),
        (BREAKS, 50.0, 50.0),
    ],
)
def test_an_allowance_is_suggested_up_to_what_may_be_allowed(
    metric: Metric, change: float, allowance: float | None
) -> None:
    """A quarter more than was measured of what is noisy; 10 times of a ratio, 8 log2 units of drift."""
    row = make_row("a", metric, change=make_change(change))
    rules = Policy(thresholds={}, today=TODAY)
    fixed = Fact(code=Code.FIX, cases=("a",))
    accepted = Fact(
        code=Code.ACCEPT,
        numbers={"commands": 1, "allowance": allowance or 0.0},
        cases=("a",),
        metrics=(metric,),
        names={"expires": ("2026-03-31",)},
    )
    assert list_acceptances([row], rules) == [fixed if allowance is None else accepted]


def test_another_answer_cannot_be_accepted() -> None:
    """What else regressed of the case can; a case without a change is to be fixed."""
    wrong = (Fact(code=Code.DRIFT_LIMIT), Fact(code=Code.OUTPUT_FAR))
    change = make_change(2.0)
    rows = [
        make_row("a", DRIFT, change=change, remarks=wrong),
        make_row("a", BREAKS, change=change, remarks=wrong[:1]),
        make_row("b", DRIFT, change=change, remarks=wrong),
        make_row("c", LATENCY),
        make_row("d", LATENCY, Status.INCONCLUSIVE, change=change),
    ]
    steps = list_acceptances(rows, Policy(thresholds={}))
    assert [(step.code, step.cases, step.metrics) for step in steps] == [
        (Code.ACCEPT, ("a",), (BREAKS,)),
        (Code.FIX, ("b",), ()),
        (Code.FIX, ("c",), ()),
    ]
    assert steps[0].names == {"expires": ()}


def test_five_steps_for_five_cases_are_four_and_a_count() -> None:
    """Four cases have no more."""
    rows = [make_row(case, BREAKS, change=make_change(1.0)) for case in "abcde"]
    rules = Policy(thresholds={})
    assert count_facts(list_acceptances(rows, rules))[4:] == [(Code.MORE_LIKE_THESE, {"commands": 1})]
    assert len(list_acceptances(rows[:4], rules)) == 4
