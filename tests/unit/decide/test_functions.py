"""Which function of the compiler a compile's added Python calls are in."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gate.decide.explain.functions import follow_growth
from gate.decide.side_by_side import decide_side_by_side
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Called, Trial
from tests.make import POLICY, make_pair, make_run

BEFORE = {
    "step": Called(calls=1, within=1000, callees={"trace": 400, "lower": 590}),
    "trace": Called(calls=1, within=400, callees={"visit": 390}),
    "visit": Called(calls=50, within=390),
    "lower": Called(calls=1, within=590, callees={"fuse": 200, "emit": 300}),
    "fuse": Called(calls=1, within=200),
    "emit": Called(calls=10, within=300, callees={"write": 280}),
    "write": Called(calls=100, within=280),
}
CALLERS = {"fuse": ("lower", "step"), "visit": ("trace", "step"), "write": ("emit", "lower", "step")}


def grow(**calls: int) -> dict[str, Called]:
    """The same with more calls within these functions, and so within whatever calls them."""
    grown = dict(BEFORE)
    for name, more in calls.items():
        grown[name] = replace(grown[name], within=grown[name].within + more)
        inner = name
        for caller in CALLERS[name]:
            was = grown[caller]
            callees = {**was.callees, inner: was.callees[inner] + more}
            grown[caller] = replace(was, within=was.within + more, callees=callees)
            inner = caller
    return grown


def explain(
    after: Mapping[str, Called], before: Mapping[str, Called] = BEFORE, unseen: int = 0
) -> list[Fact]:
    """The causes of three pairs whose compiles make as many calls, and take as long, as these say.

    Head's make ``unseen`` more, which are in none of its functions.
    """
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
    run = make_run(*arms)
    causes = decide_side_by_side(make_run(*arms, base=run.cases), POLICY).causes
    return [cause.fact for cause in causes if cause.fact.code is Code.FUNCTIONS_CALLED]


@pytest.mark.parametrize(
    ("grown", "path"),
    [
        ({"fuse": 500}, ("step", "lower", "fuse")),
        ({"write": 500}, ("step", "lower", "emit", "write")),
        ({"visit": 300, "fuse": 30}, ("step", "trace", "visit")),
        ({"visit": 250, "fuse": 250}, ("step",)),
    ],
)
def test_growth_is_followed_while_most_of_it_is_in_one_callee(
    grown: Mapping[str, int], path: tuple[str, ...]
) -> None:
    """To the function that is called more, or does more itself; no further where it divides."""
    assert follow_growth(BEFORE, grow(**grown)) == path


def test_the_cause_names_the_function_and_its_callers() -> None:
    """500 of 500 added calls, the nearest caller first."""
    (fact,) = explain(grow(write=500))
    assert fact.numbers == {"share": 1.0, "before": 280, "after": 780}
    assert fact.names == {"function": ("write",), "callers": ("emit", "lower", "step"), "callees": ()}


def test_where_it_divides_the_callees_are_named() -> None:
    """Half of it each."""
    (fact,) = explain(grow(visit=250, fuse=250))
    assert (fact.name("function"), set(fact.names["callees"])) == ("step", {"trace", "lower"})


def test_a_function_that_is_new_is_where_it_comes_from() -> None:
    """The base never calls it."""
    after = grow(fuse=400)
    after["fuse"] = replace(after["fuse"], callees={"again": 390})
    after["again"] = Called(calls=1, within=390)
    (fact,) = explain(after)
    assert fact.name("function") == "again"


def test_equal_work_has_no_such_cause() -> None:
    """Not where 2 % of the calls were added, or fewer; of a base that knows no callees the first is named."""
    longer = {name: replace(called, within=called.within + 15) for name, called in BEFORE.items()}
    assert explain(longer, unseen=500) == []
    less_known = {"step": Called(calls=1, within=1000)}
    assert explain(grow(fuse=500), less_known)[0].name("function") == "lower"
