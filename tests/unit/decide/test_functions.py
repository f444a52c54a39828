"""The function of the compiler in which a compile's additional Python calls are."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gate.decide.evidence.functions import keep_changed, list_shown
from gate.decide.explain.compiler_functions import find_functions, follow_growth
from gate.decide.side_by_side import decide_side_by_side
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Called, Run, Trial
from gate.report.explain import get_case, render_explanation
from gate.report.pages import render_verdict_page
from tests.make import POLICY, make_pair, make_run

from .one_case import inquire

BEFORE = {
    "step": Called(calls=1, within=1000),
    "trace": Called(calls=1, within=400),
    "visit": Called(calls=50, within=390),
    "lower": Called(calls=1, within=590),
    "fuse": Called(calls=1, within=200),
    "emit": Called(calls=10, within=300),
    "write": Called(calls=100, within=280),
}
CALLERS = {"fuse": ("lower", "step"), "visit": ("trace", "step"), "write": ("emit", "lower", "step")}


def grow(**calls: int) -> dict[str, Called]:
    """The same calls with more of them in these functions and in their callers."""
    grown = dict(BEFORE)
    for name, more in calls.items():
        for function in (name, *CALLERS[name]):
            grown[function] = replace(grown[function], within=grown[function].within + more)
    return grown


def make_pairs(after: Mapping[str, Called], before: Mapping[str, Called] = BEFORE, unseen: int = 0) -> Run:
    """Three pairs; ``unseen`` calls are in none of head's functions."""
    arms: list[Trial] = []
    for index in (1, 2, 3):
        sides = [
            {
                "samples": {
                    Metric.COMPILE_CALLS: (functions["step"].within + more,),
                    Metric.COLD_COMPILE_TIME: ((functions["step"].within + more) / 100,),
                },
                "functions": functions,
            }
            for functions, more in ((before, 0), (after, unseen))
        ]
        arms += make_pair("a/x", index, *sides)
    return make_run(*arms, base=make_run(*arms).cases)


def explain(
    after: Mapping[str, Called], before: Mapping[str, Called] = BEFORE, unseen: int = 0
) -> list[Fact]:
    """Causes that name a function."""
    causes = decide_side_by_side(make_pairs(after, before, unseen), POLICY).causes
    return [cause.fact for cause in causes if cause.fact.code is Code.FUNCTIONS_CALLED]


@pytest.mark.parametrize(
    ("grown", "path"),
    [
        ({"fuse": 500}, ("step", "lower", "fuse")),
        ({"write": 500}, ("step", "lower", "emit", "write")),
        ({"visit": 300, "fuse": 30}, ("step", "trace", "visit")),
        ({"visit": 300, "fuse": 200}, ("step", "trace", "visit")),
        ({"visit": 250, "fuse": 250}, ("step",)),
    ],
)
def test_growth_is_followed_while_most_of_it_is_in_one_callee(
    grown: Mapping[str, int], path: tuple[str, ...]
) -> None:
    """The search goes down as long as most additional calls are in one callee."""
    assert follow_growth(BEFORE, grow(**grown)) == path


def test_the_cause_names_the_function_and_its_callers() -> None:
    """The cause counts the calls and names the callers, the nearest first."""
    (fact,) = explain(grow(write=500))
    assert fact.numbers == {"share": 1.0, "before": 280, "after": 780}
    assert fact.names == {"function": ("write",), "callers": ("emit", "lower", "step")}


@pytest.mark.parametrize(("calls", "rest"), [(16, ()), (15, ("write",)), (11, ("write",)), (9, ("write",))])
def test_a_function_that_is_called_more_often_is_where_it_comes_from(
    calls: int, rest: tuple[str, ...]
) -> None:
    """Six calls more of 30 each are 180, and 60 % of the 300 that were added: the search stops there."""
    after = grow(write=300)
    after["emit"] = replace(after["emit"], calls=calls)
    assert follow_growth(BEFORE, after) == ("step", "lower", "emit", *rest)


@pytest.mark.parametrize(
    ("outer", "inner", "share", "weight"),
    [(500, 500, 1.0, 0.615), (500, 400, 0.8, 0.492), (500, 600, 1.0, 0.615), (21, 21, 1.0, 0.615)],
)
def test_a_function_weighs_as_much_of_the_added_calls_as_are_within_it(
    outer: int, inner: int, share: float, weight: float
) -> None:
    """All at most; of at most 2 % more calls there is no cause."""
    sides: list[dict[str, Called]] = [
        {name: Called(calls=1, within=within) for name, within in side.items()}
        for side in ({"step": 1000, "emit": 100}, {"step": 1000 + outer, "emit": 100 + inner})
    ]
    stored = {"trials": {Metric.COMPILE_CALLS: (1000.0,)}, "functions": sides[0]}
    (cause,) = find_functions(inquire(before=stored, trials=[{"functions": sides[1]}]))
    assert (cause.weight, cause.fact.numbers) == (
        weight,
        {"share": share, "before": 100, "after": 100 + inner},
    )
    same = {**sides[1], "step": Called(calls=1, within=1020)}
    assert find_functions(inquire(before=stored, trials=[{"functions": same}])) == []


def test_a_pair_keeps_what_differs_and_the_outermost_function() -> None:
    """Of two equal compiles only the outermost function is kept."""
    before, after = keep_changed(BEFORE, grow(write=500))
    assert [*before] == [*after] == ["step", "lower", "emit", "write"]
    assert (before["write"].within, after["write"].within) == (280, 780)
    assert [*keep_changed(BEFORE, BEFORE)[1]] == ["step"]
    assert keep_changed({}, BEFORE) == keep_changed(BEFORE, {}) == ({}, {})


def test_a_pair_keeps_the_forty_functions_that_grew_most() -> None:
    """Fifty functions grew by 10 to 59 calls: those by 20 and more are kept, if they are 0.1 % of all."""
    before = {f"f{number}": Called(calls=1, within=1000) for number in range(10, 60)}
    after = {f"f{number}": Called(calls=1, within=1000 + number) for number in range(10, 60)}
    for side in keep_changed(before, after):
        assert {*side} == {f"f{number}" for number in range(20, 60)}
    before["step"], after["step"] = Called(calls=1, within=50_000), Called(calls=1, within=50_000)
    assert {*keep_changed(before, after)[0]} == {"step", *(f"f{number}" for number in range(50, 60))}


@pytest.mark.parametrize("unknown", ["base", "head"])
def test_functions_that_one_side_did_not_count_explain_nothing(unknown: str) -> None:
    """Not all of the other side's are new, or gone."""
    run = make_pairs(grow(write=500))
    trials = (replace(trial, functions={}) if trial.arm == unknown else trial for trial in run.trials)
    verdict = decide_side_by_side(replace(run, trials=tuple(trials)), POLICY)
    (shown,) = verdict.evidence
    assert shown.before is not None
    assert (shown.before.calls_within, shown.after.calls_within) == ({}, {})
    assert Code.FUNCTIONS_CALLED not in [cause.fact.code for cause in verdict.causes]


def test_the_functions_that_changed_most_are_shown_of_both_sides() -> None:
    """Outer ones come first, as theirs is the largest change; a page draws them as bars."""
    verdict = decide_side_by_side(make_pairs(grow(write=500)), POLICY)
    (shown,) = verdict.evidence
    assert shown.before is not None
    assert dict(shown.before.calls_within) == {"step": 1000, "lower": 590, "emit": 300, "write": 280}
    assert dict(shown.after.calls_within) == {"step": 1500, "lower": 1090, "emit": 800, "write": 780}
    assert "write 280 780" in " ".join(render_explanation(verdict, get_case(verdict, "a/x")).split())
    assert ">write</text>" in render_verdict_page(verdict)


def test_equal_changes_are_shown_by_name() -> None:
    """Their order does not follow the hash seed; of ten that changed eight are shown."""
    before = {name: Called(calls=1, within=10) for name in "jihgfedcba"}
    after = {name: Called(calls=1, within=20) for name in "jihgfedcba"}
    assert [*list_shown(before, after)[1]] == [*"abcdefgh"]


def test_a_function_that_is_new_is_where_it_comes_from() -> None:
    """A function that the base never calls is named."""
    after = grow(fuse=400)
    after["again"] = Called(calls=1, within=390)
    (fact,) = explain(after)
    assert fact.name("function") == "again"


def test_equal_work_has_no_such_cause() -> None:
    """At most 2 % more calls have no such cause; without callees of the base the first function is named."""
    longer = {name: replace(called, within=called.within + 15) for name, called in BEFORE.items()}
    assert explain(longer, unseen=500) == []
    less_known = {"step": Called(calls=1, within=1000)}
    assert explain(grow(fuse=500), less_known)[0].name("function") == "lower"


def test_the_three_nearest_callers_are_shown() -> None:
    """Of five callers the outer two are not."""
    names = ("step", "a", "b", "c", "d", "last")
    before, after = (
        {name: Called(calls=1, within=within - depth) for depth, name in enumerate(names)}
        for within in (1000, 1500)
    )
    (fact,) = explain(after, before)
    assert (fact.names["function"], fact.names["callers"]) == (("last",), ("d", "c", "b"))
