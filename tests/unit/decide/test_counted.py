"""Counts that repeat, and counts that flicker: what shows it, and how many values it takes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gate.decide.evidence.gather import Question
from gate.decide.judge.compare import follow_times
from gate.decide.judge.counted import (
    CountRules,
    Repeats,
    compute_apart_p,
    compute_rank_p,
    count_chances,
    count_needed_pairs,
    count_repeats,
    find_flickering,
    judge_counted,
)
from gate.metrics import MEMORY_PEAKS, SPECS
from gate.records.cases import Case, Metric, Threshold
from gate.records.verdict import Comparison, Reason, Status

BREAKS, MEMORY, RATIO = Metric.GRAPH_BREAKS, Metric.PEAK_MEMORY, Metric.MEMORY_RATIO
CALLS, COLD, WARM = Metric.COMPILE_CALLS, Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME
ASKED = CountRules(alpha=0.01, flickering=frozenset({BREAKS, MEMORY}))
State = tuple[Status, Reason]
WORSE: State = (Status.REGRESSED, Reason.BEYOND_BAR)
BETTER: State = (Status.IMPROVED, Reason.BEYOND_BAR)
CLEAR: State = (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
OPEN: State = (Status.INCONCLUSIVE, Reason.UNSETTLED)


def ask(before: Sequence[float], after: Sequence[float] = (0.0,), metric: Metric = BREAKS) -> Question:
    threshold = SPECS[metric].threshold if metric is BREAKS else Threshold(relative=0.03, absolute=0.0)
    case = Case(id="m/x", model="m", factory="m:f", definition="d")
    return Question(case=case, metric=metric, before=before, after=after, threshold=threshold)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(1, 1, 1 / 4), (2, 2, 1 / 16), (5, 5, 1 / 1024), (5, 3, (3 / 8) ** 3 * (5 / 8) ** 5)],
)
def test_luck_of_two_values_by_hand(before: int, after: int, expected: float) -> None:
    """So many of the one and so many of the other are likeliest where a share is as large as head's."""
    assert compute_apart_p(before, after) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param((1.0, 2.0), (3.0, 4.0), 1 / 6, id="one of six ways"),
        pytest.param((1.0, 3.0), (2.0, 4.0), 2 / 6, id="two rank as high"),
        pytest.param((0.0, 0.0), (0.0, 1.0), 3 / 6, id="the one that is more is among three of the six"),
        pytest.param((1.0, 1.0), (1.0, 1.0), 1.0, id="all alike"),
    ],
)
def test_rank_sums_by_hand(before: tuple[float, ...], after: tuple[float, ...], expected: float) -> None:
    """Of all ways to deal the values, the share in which head's rank as high."""
    assert compute_rank_p(before, after) == pytest.approx(expected)


def test_what_differs_in_one_case_flickers_in_all() -> None:
    """Five values agree, and in another case one of three does not."""
    repeats = count_repeats([ask((0.0,) * 5), ask((0.0, 1.0, 0.0)), ask((2e8,), metric=MEMORY)])
    assert repeats == {BREAKS: Repeats(agreed=5, differs=True), MEMORY: Repeats()}
    assert find_flickering(repeats) == {BREAKS}


@pytest.mark.parametrize(("values", "expected"), [((8, 7), {MEMORY}), ((8, 8), set()), ((16, 1), set())])
def test_memory_is_presumed_until_sixteen_values_agree(values: Sequence[int], expected: set[Metric]) -> None:
    """2 % is within its threshold of 3 %; a case's only value agrees with none."""
    questions = [
        ask((2e8, 2.04e8) + (2e8,) * (number - 2) if number > 1 else (2e8,), metric=MEMORY)
        for number in values
    ]
    assert find_flickering(count_repeats(questions), MEMORY_PEAKS) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param((0,) * 3, (1,) * 3, OPEN, id="three pairs are luck in 1 of 64"),
        pytest.param((0,) * 4, (1,) * 4, WORSE, id="four in 1 of 256"),
        pytest.param((0, 1, 0, 0), (1, 2, 1, 1), OPEN, id="it may flicker more often"),
        pytest.param((0, 1) + (0,) * 10, (1,) * 12, WORSE, id="it does"),
        pytest.param((0, 0, 0), (1, 1, 0), CLEAR, id="head has the lower value too"),
        pytest.param((0, 0), (1, 0), OPEN, id="two do not show how low it goes"),
        pytest.param((1, 0), (0, 0), CLEAR, id="none is above"),
        pytest.param((1,) * 3, (0,) * 3, CLEAR, id="a gain may be luck"),
        pytest.param((1,) * 4, (0,) * 4, BETTER, id="a gain"),
    ],
)
def test_what_flickers(before: Sequence[float], after: Sequence[float], expected: State) -> None:
    """With 1 % for it; by ranks with an eighth of that, a chance for each look."""
    row = judge_counted(ask(before, after), ASKED)
    assert (row.status, row.reason) == expected


@pytest.mark.parametrize(("pairs", "expected"), [(2, Status.INCONCLUSIVE), (3, Status.UNCHANGED)])
def test_what_was_seen_to_flicker_is_clear_by_three_pairs(pairs: int, expected: Status) -> None:
    """Where it is only presumed to, one is enough."""
    question = ask((1.0,) * pairs, (1.0,) * pairs)
    assert judge_counted(question, ASKED).status is Status.UNCHANGED
    assert judge_counted(question, replace(ASKED, varied=ASKED.flickering)).status is expected


def test_what_never_flickered_takes_two_looks_at_most() -> None:
    """Nothing is left to chance."""
    assert judge_counted(ask((0.0,), (1.0,)), CountRules()).status is Status.REGRESSED


@pytest.mark.parametrize(("alpha", "pairs"), [(0.25, 1), (0.01, 4), (0.01 / 32, 6)])
def test_pairs_that_convict_what_flickers(alpha: float, pairs: int) -> None:
    """A fourth for each pair: 1/256, and of eight cases of ab 1/4096."""
    assert count_needed_pairs(alpha) == pairs


def test_a_ratio_is_no_chance_of_its_own() -> None:
    """It convicts nothing without what it is a ratio of."""
    assert count_chances({MEMORY, RATIO, BREAKS, Metric.CAPTURED_OPS}) == 2


def make_row(metric: Metric, status: Status) -> Comparison:
    return Comparison(case_id="m/x", metric=metric, status=status, reason=Reason.BEYOND_BAR, decides=True)


@pytest.mark.parametrize(
    ("cold", "warm", "expected"),
    [
        (Status.UNCHANGED, Status.REGRESSED, WORSE),
        (Status.UNCHANGED, Status.INCONCLUSIVE, OPEN),
        (Status.UNCHANGED, Status.IMPROVED, (Status.UNCHANGED, Reason.LEADER_STANDS)),
        (Status.NOT_COMPARABLE, Status.MISSING, WORSE),
    ],
)
def test_calls_stand_for_compile_times(cold: Status, warm: Status, expected: State) -> None:
    """More of them convict where a compile got longer, or none was measured."""
    rows = [make_row(CALLS, Status.REGRESSED), make_row(COLD, cold), make_row(WARM, warm)]
    followed = follow_times(rows)
    assert (followed[0].status, followed[0].reason) == expected
    assert list(followed[1:]) == rows[1:]


def test_calls_of_another_case_follow_their_own() -> None:
    """What another case's compile took says nothing of this one's."""
    other = Comparison(
        case_id="n/x", metric=COLD, status=Status.UNCHANGED, reason=Reason.BELOW_THRESHOLD, decides=True
    )
    assert follow_times([make_row(CALLS, Status.REGRESSED), other])[0].status is Status.REGRESSED
