"""What finders of causes are told, and the weights that they give."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gate.decide.explain.inquiry import CAUSES, insert_cause, is_eagers_alone, rank_moves, shorten
from gate.records.cases import Metric, Threshold
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Cause, CauseKind, Comparison, Reason, Status
from tests.make import make_change, make_row

from .one_case import inquire, make_moved

PAGE = Path(__file__).resolve().parents[3] / "docs" / "causes.md"
LATENCY, EAGER, BREAKS = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.GRAPH_BREAKS
COLD, WARM, MEMORY = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME, Metric.PEAK_MEMORY


def test_the_page_on_causes_has_every_weight() -> None:
    """A cause weighs what the table says, in its order, where it accounts for all of a change."""
    rows = re.findall(r"^\| `(\w+)` \| ([0-9.]+) \|", PAGE.read_text(), re.MULTILINE)
    causes = [inquire().weigh(Fact(code=code)) for code in CAUSES]
    assert [(code, float(weight)) for code, weight in rows] == [
        (cause.fact.code.value, cause.weight) for cause in causes
    ]


@pytest.mark.parametrize(
    ("code", "worst", "weight"),
    [
        (Code.CACHE_MISSED, Metric.CACHE_MISSES, 0.96),
        (Code.CACHE_MISSED, LATENCY, 0.384),
        (Code.RECOMPILED, LATENCY, 0.95),
        (Code.GRAPH_BREAK, LATENCY, 0.97),
    ],
    ids=["of its metrics", "of another", "of anything that is timed", "of no metrics"],
)
def test_a_cause_beside_what_got_worst_weighs_two_fifths(code: Code, worst: Metric, weight: float) -> None:
    """A cache that is lost makes no call slower; a share of it counts as much less."""
    inquiry = inquire(make_row("mlp/x", worst))
    assert inquiry.weigh(Fact(code=code)) == Cause(case_id="mlp/x", fact=Fact(code=code), weight=weight)
    assert inquiry.weigh(Fact(code=code), 0.5).weight == round(weight / 2, 4)
    assert inquiry.weigh(Fact(code=code), weight=0.5).weight == (0.2 if weight == 0.384 else 0.5)


@pytest.mark.parametrize(("count", "more"), [(0, []), (3, []), (4, [1.0]), (6, [3.0])])
def test_three_causes_of_a_kind_are_named(count: int, more: list[float]) -> None:
    """The others are counted with the weight of the first."""
    facts = [Fact(code=Code.GRAPH_BREAK, names={"location": (str(number),)}) for number in range(count)]
    for share, weight in ((1.0, 0.97), (0.5, 0.485)):
        causes = inquire().weigh_some(facts, share)
        assert [cause.fact for cause in causes] == [
            *facts[:3],
            *(Fact(code=Code.MORE, numbers={"more": number}) for number in more),
        ]
        assert {cause.weight for cause in causes} <= {weight}
    assert inquire().weigh_some(facts) == inquire().weigh_some(facts, 1.0)
    mixed = [Fact(code=Code.GRAPH_BREAK), *[Fact(code=Code.RECOMPILED)] * 3]
    assert [cause.weight for cause in inquire().weigh_some(mixed)] == [0.97, 0.95, 0.95, 0.97]


@pytest.mark.parametrize(
    ("rows", "is_of_pairs"),
    [
        ([make_moved(LATENCY, 2, pairs=1)], True),
        ([make_moved(LATENCY, 2, pairs=1), make_moved(MEMORY, 2)], True),
        ([make_moved(LATENCY, 2, pairs=1), make_moved(EAGER, 2, decides=False)], True),
        ([make_moved(LATENCY, 2, pairs=1), make_moved(COLD, 2)], False),
        ([make_moved(MEMORY, 2)], False),
        ([], False),
    ],
    ids=["all", "with a count", "with a control", "with a time from stored", "no pair", "nothing"],
)
def test_the_machine_is_out_of_the_question_where_all_times_moved_in_pairs(
    rows: list[Comparison], *, is_of_pairs: bool
) -> None:
    """What a machine does not move may be from a stored baseline."""
    inquiry = inquire(*rows)
    assert inquiry.is_of_pairs is is_of_pairs
    assert inquiry.mark_pairs() == ({"in_pairs": 1.0} if is_of_pairs else {})
    assert replace(inquiry, moved=frozenset()).is_of_pairs is any(row.pairs for row in rows)


def test_times_that_moved_from_stored_are_those_that_decide_without_pairs() -> None:
    """Neither counts, nor what stayed."""
    rows = [make_moved(COLD, 2), make_moved(LATENCY, 2, pairs=1), make_moved(MEMORY, 2), make_moved(WARM, 2)]
    inquiry = replace(inquire(*rows), moved=frozenset({COLD, LATENCY, MEMORY}))
    assert inquiry.list_moved_from_stored() == [COLD]


def test_a_row_and_its_change_are_found_by_metric() -> None:
    """The first of each."""
    rows = [make_row("mlp/x", COLD), make_moved(LATENCY, 2), make_moved(COLD, 3)]
    inquiry = inquire(*rows)
    assert (inquiry.find_row(COLD), inquiry.find_row(WARM)) == (rows[0], None)
    assert [inquiry.find_change(metric) for metric in (COLD, LATENCY, WARM)] == [
        pytest.approx(0.3),
        pytest.approx(0.2),
        None,
    ]


def test_warnings_of_a_code_are_those_of_all_trials() -> None:
    """In the order of the trials."""
    kept, other = (
        [Fact(code=code, numbers={"bytes": number}) for number in (2.0, 1.0)]
        for code in (Code.MEMORY_KEPT, Code.GRAPH_DIFFERS)
    )
    trials = [{"warnings": warnings} for warnings in zip(kept, other, strict=True)]
    assert inquire(trials=trials).list_warnings(Code.MEMORY_KEPT) == kept


@pytest.mark.parametrize(
    ("weight", "order"), [(0.9, "ADBC"), (0.8, "ABDC"), (0.6, "ABDC"), (0.5, "ABCD"), (0.1, "ABCD")]
)
def test_a_cause_is_inserted_before_the_lighter_ones_of_its_case(weight: float, order: str) -> None:
    """A is of another case; B weighs 0.8 and C 0.5."""
    weights = {"A": 0.4, "B": 0.8, "C": 0.5, "D": weight}
    causes = [
        Cause(
            case_id="other" if name == "A" else "mlp/x",
            fact=Fact(code=Code.IMPORTS_CHANGED, names={"files": (name,)}),
            weight=weighs,
        )
        for name, weighs in weights.items()
    ]
    inserted = insert_cause(causes[:3], causes[3])
    assert "".join(cause.fact.name("files") for cause in inserted) == order


def test_moves_are_ranked_by_size_from_a_share_of_all_on() -> None:
    """Of 8 s before an eighth is 1 s, and by more than that the other three moved, to either side."""
    before, after = {"a": 4.0, "b": 1.0, "c": 3.0}, {"a": 2.0, "c": 6.0, "d": 1.5}
    assert rank_moves(before, after, 0.125) == {"c": 3.0, "a": -2.0, "d": 1.5}
    assert [*rank_moves(before, after, 0.125)] == ["c", "a", "d"]
    assert rank_moves(before, after, 0.0)["b"] == -1.0
    assert rank_moves({"a": 1.0}, {"a": 1.0}, 0.0) == {}


def test_a_ratio_is_the_worst_where_nothing_else_got_worse() -> None:
    """A speedup leads the headline only if no latency got worse."""
    speedup, latency = (make_row("mlp/x", metric) for metric in (Metric.WARM_SPEEDUP, LATENCY))
    for rows, worst in (((speedup,), Metric.WARM_SPEEDUP), ((speedup, latency), LATENCY)):
        assert inquire(*rows).worst is worst


@pytest.mark.parametrize(
    ("eager", "fall", "is_alone"),
    [
        (-0.5, 3.0, True),
        (-0.49, 3.0, False),
        (-0.3, 1.0, True),
        (-0.29, 1.0, False),
        (0.5, 1.0, False),
        (-0.5, 0.03, False),
    ],
)
def test_a_speedup_fell_for_eager_alone_where_that_is_half_of_the_fall(
    eager: float, fall: float, *, is_alone: bool
) -> None:
    """Half in logarithms: eager at 0.707 of its time explains half of a ratio's factor of two."""
    row = make_row(
        "mlp/x",
        Metric.WARM_SPEEDUP,
        Status.UNCHANGED,
        reason=Reason.LEADER_STANDS,
        change=make_change(fall),
        threshold=Threshold(relative=0.03, absolute=0.0),
        remarks=(Fact(code=Code.EAGER_CHANGED, numbers={"change": eager}),),
    )
    assert is_eagers_alone(row) is is_alone
    assert not is_eagers_alone(replace(row, reason=Reason.BELOW_THRESHOLD))
    assert not is_eagers_alone(replace(row, metric=LATENCY))
    assert not is_eagers_alone(replace(row, remarks=()))


def test_a_fall_without_a_limit_needs_no_size_but_one() -> None:
    """Eager at a tenth of its time explains 1 % more of a ratio, and no ratio that is unknown."""
    row = make_row(
        "mlp/x",
        Metric.WARM_SPEEDUP,
        Status.UNCHANGED,
        reason=Reason.LEADER_STANDS,
        change=make_change(0.01),
        remarks=(Fact(code=Code.EAGER_CHANGED, numbers={"change": -0.9}),),
    )
    assert is_eagers_alone(row)
    assert not is_eagers_alone(replace(row, change=None))
    limited = replace(row, threshold=Threshold(relative=0.03, absolute=0.0))
    assert not is_eagers_alone(replace(limited, change=None))


def test_the_worst_is_what_regressed_furthest_beyond_its_threshold() -> None:
    """Whatever stands first; what is open, or does not decide, is none."""
    rows = [make_moved(LATENCY, 2), make_moved(COLD, 5), make_moved(WARM, 3)]
    others = [make_moved(BREAKS, 9, status=Status.INCONCLUSIVE), make_moved(MEMORY, 9, decides=False)]
    for order in (rows, rows[::-1]):
        assert inquire(*order, *others).worst is COLD


def test_guards_are_charged_with_a_call_that_got_slower() -> None:
    """Not with one that got faster, nor where something else got worst."""
    slower, faster = make_moved(LATENCY, 2), make_moved(LATENCY, -2, status=Status.IMPROVED)
    assert inquire(slower).find_worst(CauseKind.GUARDS) is slower
    assert inquire(faster).find_worst(CauseKind.GUARDS) is None
    assert inquire(slower, make_moved(MEMORY, 3)).find_worst(CauseKind.GUARDS) is None
    unsure = make_moved(MEMORY, 3, status=Status.INCONCLUSIVE)
    assert inquire(unsure).find_worst(CauseKind.GUARDS) is None


@pytest.mark.parametrize(
    ("times", "index"),
    [((2.0, 1.0), 0), ((2.0, 5.0), 1), ((0.5, -1.0), 0), ((0.0, 0.5), 1), ((0.0, -0.5), None)],
)
def test_what_is_open_is_explained_by_its_worst_where_nothing_is_sure(
    times: tuple[float, float], index: int | None
) -> None:
    """A latency and a compile, neither of which regressed: also below their limits, but not of less time."""
    rows = [
        make_moved(metric, severity, status=Status.INCONCLUSIVE)
        for metric, severity in zip((LATENCY, COLD), times, strict=True)
    ]
    assert inquire(*rows).find_worst(CauseKind.GUARDS) is (None if index is None else rows[index])
    regressed = make_moved(WARM, 0.3)
    assert inquire(*rows, regressed).find_worst(CauseKind.GUARDS) is regressed


@pytest.mark.parametrize(("change", "shown"), [(0.03, True), (-0.03, True), (0.029, False)])
def test_the_same_code_needs_a_word_where_a_call_moved_by_its_limit(change: float, *, shown: bool) -> None:
    """3 % to either side."""
    threshold = Threshold(relative=0.03, absolute=0.0)
    row = make_row("mlp/x", LATENCY, Status.INCONCLUSIVE, change=make_change(change), threshold=threshold)
    assert inquire(row).shows(CauseKind.UNCHANGED_CODE) == shown


@pytest.mark.parametrize(("chars", "expected"), [(200, "x" * 200), (201, f"{'x' * 197}...")])
def test_a_text_of_torch_has_200_characters_at_most(chars: int, expected: str) -> None:
    """A longer one ends in dots."""
    assert shorten("x" * chars) == expected
