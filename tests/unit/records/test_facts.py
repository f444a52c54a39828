"""Which facts may stand where, and with what numbers."""

from collections.abc import Collection
from itertools import pairwise

import pytest

from gate.records import facts
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, OneOf, has_shape, list_distinct, name_words

ORDER = list(Code)
# The first and the last code of each part of a report; every code of its kind is between them.
ENDS = {
    "headline": (facts.HEADLINE_CODES, Code.STOPPED, Code.AGAINST_BASE),
    "remark": (facts.REMARK_CODES, Code.MACHINE_SPEED, Code.NO_PAIR),
    "cause": (facts.CAUSE_CODES, Code.GRAPH_BREAK, Code.UNEXPLAINED),
    "note": (facts.NOTE_CODES, Code.NO_BASELINE, Code.REPLAY_MIXES),
    "step": (facts.STEP_CODES, Code.CONTINUE, Code.READ_BASE_LOGS),
    "lane": (facts.LANE_CODES, Code.LANE_LEFT_OUT, Code.LANES_NICE),
    "warning": (facts.WARNING_CODES, Code.VARIABLES_DROPPED, Code.OUTPUT_DIFFERS),
    "unforked": (facts.UNFORKED_CODES, Code.ENDS_UNANNOUNCED, Code.IMPORT_STARTS_THREADS),
    "no drift": (facts.WHY_NO_DRIFT, Code.NO_FLOAT64, Code.REFERENCE_NOT_FINITE),
    "unknown": (facts.UNKNOWN_CODES, Code.NO_TRACE, Code.TRACE_CUT),
    "failure": (facts.FAILURE_CODES, Code.RAISED, Code.PACKAGES_LACKING),
}
# What has a second place besides.
ELSEWHERE: dict[str, Collection[Code]] = {
    "remark": {
        *(Code.OUTPUT_FAR, Code.OUTPUT_LOST, Code.OUTPUT_RESHAPED, Code.OUTPUT_DIFFERS, Code.UNMEASURED),
        *facts.WHY_NO_DRIFT,
    },
    "cause": {
        *(Code.OUTPUT_FAR, Code.OUTPUT_LOST, Code.OUTPUT_RESHAPED, Code.OUTPUT_DIFFERS, Code.LEFT_BY_ONE),
        *(Code.GRAPH_DIFFERS, Code.LEFT_TO_EAGER, Code.MEMORY_KEPT, Code.LAYOUT_DIFFERS),
    },
    "note": {Code.STOPPED, Code.MACHINE_CHANGED, *facts.LANE_CODES, *facts.WARNING_CODES},
    "unknown": {Code.UNKNOWN_HERE},
}


@pytest.mark.parametrize("part", ENDS)
def test_a_part_of_a_report_takes_the_codes_of_its_kind(part: str) -> None:
    """All from its first to its last, those that have a second place there, and no others."""
    codes, first, last = ENDS[part]
    expected = [code for code in ORDER if ORDER.index(first) <= ORDER.index(code) <= ORDER.index(last)]
    assert codes == {*expected, *ELSEWHERE.get(part, ())}


def test_what_is_missing_of_a_metric_has_a_reason() -> None:
    """Drift may lack for want of a reference, any metric because it was not measured."""
    assert facts.WHY_UNMEASURED == {*facts.WHY_NO_DRIFT, Code.UNMEASURED}


@pytest.mark.parametrize(
    ("code", "numbers", "fits"),
    [
        (Code.OWN_LIMIT, {"limit": 1.0}, True),
        (Code.OWN_LIMIT, {}, False),
        (Code.OWN_LIMIT, {"limit": 1.0, "more": 2.0}, False),
        (Code.OWN_LIMIT, {"steps": 1.0}, False),
        (Code.CODE_CHANGED, {}, True),
        (Code.CODE_CHANGED, {"kernels": 4.0, "changed": 1.0}, True),
        (Code.CODE_CHANGED, {"kernels": 4.0, "most": 1.0}, False),
        (Code.DISTURBED_BY, {"stolen": 0.1, "cores": 3.0}, True),
        (Code.CHANGED_PHASES, {"dynamo_before_s": 1.0, "other_after_s": 2.0}, True),
        (Code.CHANGED_PHASES, {"first_call_before_s": 1.0}, False),
        (Code.CACHE_MISSED, {"hits": 1.0, "hits_before": 2.0}, True),
        (Code.EAGER_TOO, {"eager": 0.1, "compiled": 0.1, "in_pairs": 1.0}, True),
        (Code.EAGER_ALONE, {"eager": 0.1, "compiled": 0.1, "in_pairs": 1.0}, False),
    ],
)
def test_a_fact_has_the_numbers_of_its_code(code: Code, numbers: dict[str, float], *, fits: bool) -> None:
    """All that its code names, of others only those that it may have."""
    assert has_shape(Fact(code=code, numbers=numbers)) is fits


@pytest.mark.parametrize(
    ("code", "why", "numbers", "fits"),
    [
        (Code.FAILURE, "no_end", {"trial": 1.0, "wall_s": 9.0, "cpu_s": 3.0}, True),
        (Code.FAILURE, "no_end", {"trial": 1.0}, False),
        (Code.FAILURE, "raised", {"trial": 1.0}, True),
        (Code.FAILURE, "raised", {}, False),
        (Code.FAILURE, "own_limit", {"trial": 1.0}, True),
        (Code.REPEAT_KILLED, "no_end", {"wall_s": 9.0, "cpu_s": 3.0}, True),
        (Code.REPEAT_KILLED, "no_end", {}, False),
        (Code.UNMEASURED, "no_end", {}, True),
    ],
)
def test_a_quoted_failure_has_its_numbers(
    code: Code, why: str, numbers: dict[str, float], *, fits: bool
) -> None:
    """Those of the failure that it names come to those of its own code."""
    assert has_shape(Fact(code=code, numbers=numbers, names=name_words(why=why))) is fits


@pytest.mark.parametrize(
    ("code", "cases", "metrics", "fits"),
    [
        (Code.ACCEPTANCE_EXCEEDED, ("bert/x",), (Metric.DRIFT,), True),
        (Code.ACCEPTANCE_EXCEEDED, (), (Metric.DRIFT,), False),
        (Code.ACCEPTANCE_EXCEEDED, ("bert/x",), (), False),
        (Code.ACCEPTANCE_LEFT, (), (), True),
    ],
)
def test_a_fact_about_one_comparison_names_it(
    code: Code, cases: tuple[str, ...], metrics: tuple[Metric, ...], *, fits: bool
) -> None:
    """With its case and its metric; others need neither."""
    fact = Fact(code=code, numbers={"allowance": 0.1}, cases=cases, metrics=metrics)
    assert has_shape(fact) is fits


def test_a_place_takes_its_codes_in_their_shape() -> None:
    """A fact of another code, or without its numbers, is refused there."""
    of_limits = OneOf(codes=frozenset({Code.OWN_LIMIT}))
    limit = Fact(code=Code.OWN_LIMIT, numbers={"limit": 1.0})
    others = [Fact(code=Code.OWN_LIMIT), Fact(code=Code.DRIFT_LIMIT, numbers={"limit": 1.0})]
    assert [of_limits.holds(fact) for fact in (limit, *others)] == [True, False, False]


def test_a_name_is_its_first_word() -> None:
    """The default stands for a name without words and for one that is not there."""
    fact = Fact(code=Code.TEXT, names={"paths": ("a", "b"), "role": ()})
    assert [fact.name("paths", "?"), fact.name("role", "?"), fact.name("why", "?")] == ["a", "?", "?"]
    assert fact.name("why") == ""


def test_equal_facts_are_listed_once() -> None:
    """In the order in which they came first."""
    first, second = Fact(code=Code.NO_PAIR), Fact(code=Code.NO_RATIO)
    assert list_distinct([first, second, Fact(code=Code.NO_PAIR)]) == (first, second)


def test_kernels_that_moved_have_times_by_place() -> None:
    """Up to three, each before and after; the fourth has no name."""
    moved = {"before_s": 3.0, "after_s": 4.0, "moved": 3.0}
    for place, following in pairwise(("first", "second", "third", "fourth")):
        moved |= {f"{place}_before_s": 1.0, f"{place}_after_s": 2.0}
        assert has_shape(Fact(code=Code.KERNELS_MOVED, numbers=moved))
        assert has_shape(Fact(code=Code.KERNELS_MOVED, numbers={**moved, f"{following}_after_s": 1.0})) is (
            following != "fourth"
        )
