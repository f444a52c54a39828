"""Counts that repeat and counts that flicker, and how many values convict each."""

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
from tests.make import make_row

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
    """The likelihood is largest where the share is head's."""
    assert compute_apart_p(before, after) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param((1.0, 2.0), (3.0, 4.0), 1 / 6, id="one of six ways"),
        pytest.param((1.0, 3.0), (2.0, 4.0), 2 / 6, id="two rank as high"),
        pytest.param((0.0, 0.0), (0.0, 1.0), 3 / 6, id="the one that is more is among three of the six"),
        pytest.param((0.0, 0.0, 3.0), (1.0, 2.0), 3 / 10, id="the second and third highest"),
        pytest.param((0.0, 1.0, 2.0), (0.0, 3.0), 5 / 10, id="the highest and a tie of the lowest"),
        pytest.param((1.0, 1.0), (1.0, 1.0), 1.0, id="all alike"),
    ],
)
def test_rank_sums_by_hand(before: tuple[float, ...], after: tuple[float, ...], expected: float) -> None:
    """The p-value is the share of all orders in which head's ranks are as high."""
    assert compute_rank_p(before, after) == pytest.approx(expected)


def test_what_differs_in_one_case_flickers_in_all() -> None:
    """One of three values of another case differs, so the metric flickers."""
    same, other = ask((0.0,) * 5), ask((0.0, 1.0, 0.0))
    repeats = count_repeats([same, other, ask((2e8,), metric=MEMORY)])
    assert repeats == {BREAKS: Repeats(agreed=5, differs=True), MEMORY: Repeats()}
    assert count_repeats([other, same]) == {BREAKS: repeats[BREAKS]}
    assert find_flickering(repeats) == {BREAKS}


@pytest.mark.parametrize(("values", "expected"), [((8, 7), {MEMORY}), ((8, 8), set()), ((16, 1), set())])
def test_memory_is_presumed_until_sixteen_values_agree(values: Sequence[int], expected: set[Metric]) -> None:
    """Memory is presumed to flicker until 16 values agree within its threshold of 3 %."""
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
        pytest.param((1,) * 24, (2,) * 11 + (1,) * 13, CLEAR, id="more often, but less than half the time"),
        pytest.param((0, 0, 0), (1, 1, 0), CLEAR, id="head has the lower value too"),
        pytest.param((0, 0), (1, 0), OPEN, id="two do not show how low it goes"),
        pytest.param((1, 0), (0, 0), CLEAR, id="none is above"),
        pytest.param((1,) * 3, (0,) * 3, CLEAR, id="a gain may be luck"),
        pytest.param((1,) * 4, (0,) * 4, BETTER, id="a gain"),
    ],
)
def test_what_flickers(before: Sequence[float], after: Sequence[float], expected: State) -> None:
    """A flickering count convicts at 1 %, by ranks at an eighth of it for each look."""
    row = judge_counted(ask(before, after), ASKED)
    assert (row.status, row.reason) == expected


@pytest.mark.parametrize(
    ("before", "after", "level", "expected"),
    [
        pytest.param((0,), (1,), 1 / 4, WORSE, id="apart, as likely as is allowed"),
        pytest.param((0,), (1,), 0.24, OPEN, id="apart, likelier"),
        pytest.param((0, 0, 0, 2), (1, 1, 1, 3), 8 * 4 / 70, WORSE, id="in ranks, as likely as is allowed"),
        pytest.param((0, 0, 0, 2), (1, 1, 1, 3), 8 * 3.9 / 70, OPEN, id="in ranks, likelier"),
    ],
)
def test_what_flickers_convicts_at_its_level(
    before: Sequence[float], after: Sequence[float], level: float, expected: State
) -> None:
    """One pair is luck in 1 of 4; 4 of the 70 orders of (0, 0, 0, 1, 1, 1, 2, 3) rank head as high."""
    row = judge_counted(ask(before, after), replace(ASKED, alpha=level, varied=ASKED.flickering))
    assert (row.status, row.reason) == expected


@pytest.mark.parametrize(
    ("after", "flickers", "expected"),
    [
        ((103.0,), False, CLEAR),
        ((103.1,), False, WORSE),
        ((97.0,), False, CLEAR),
        ((96.9,), False, BETTER),
        ((100.0, 103.0), False, CLEAR),
        ((100.0, 103.1), False, OPEN),
        ((103.0, 120.0), True, CLEAR),  # head has the lower value too
        ((103.1, 120.0), True, OPEN),
    ],
)
def test_an_amount_moves_by_more_than_its_tolerance(
    after: Sequence[float], *, flickers: bool, expected: State
) -> None:
    """3 % of three times 100."""
    rules = ASKED if flickers else CountRules()
    row = judge_counted(ask((100.0,) * 3, after, MEMORY), rules)
    assert (row.status, row.reason) == expected


@pytest.mark.parametrize(
    ("metric", "before", "after", "expected"),
    [
        (BREAKS, (1.0, 3.0), (4.0, 6.0), (1.0, 3.0, 5.0, 2.0)),
        (BREAKS, (1.0, 1.0), (1.0,), (0.0, 0.0, 0.0, 1.0)),  # no count moves by less than one
        (MEMORY, (100.0, 110.0), (120.0, 130.0), (10 / 105, 20 / 105, 30 / 105, 13.15 / 105)),
        (MEMORY, (0.0, 0.0), (5.0,), (5.0, 5.0, 5.0, 0.0)),  # of nothing there is no share
    ],
)
def test_the_interval_of_a_count_is_that_of_its_values(
    metric: Metric, before: Sequence[float], after: Sequence[float], expected: tuple[float, ...]
) -> None:
    """It shows what is beyond the tolerance and what differed before."""
    change = judge_counted(ask(before, after, metric), CountRules()).change
    assert change is not None
    assert (change.low, change.centre, change.high, change.detectable) == pytest.approx(expected)


@pytest.mark.parametrize(("pairs", "expected"), [(2, Status.INCONCLUSIVE), (3, Status.UNCHANGED)])
def test_what_was_seen_to_flicker_is_clear_by_three_pairs(pairs: int, expected: Status) -> None:
    """A count that flickered is clear after three pairs, one that is only presumed to after one."""
    question = ask((1.0,) * pairs, (1.0,) * pairs)
    assert judge_counted(question, ASKED).status is Status.UNCHANGED
    assert judge_counted(question, replace(ASKED, varied=ASKED.flickering)).status is expected


def test_without_an_error_budget_what_flickers_convicts_nobody() -> None:
    """A hundred values on each side that are apart are open."""
    rules = CountRules(flickering=ASKED.flickering)
    assert judge_counted(ask((0.0,) * 100, (1.0,) * 100), rules).status is Status.INCONCLUSIVE


def test_what_never_flickered_takes_two_looks_at_most() -> None:
    """A count that never flickered regresses by one value on each side."""
    assert judge_counted(ask((0.0,), (1.0,)), CountRules()).status is Status.REGRESSED


@pytest.mark.parametrize(
    ("alpha", "pairs"), [(0.25, 1), (0.24, 2), (0.01, 4), (0.01 / 32, 6), (0.25**150, 150)]
)
def test_pairs_that_convict_what_flickers(alpha: float, pairs: int) -> None:
    """Each pair is worth 1/4: four give 1/256; of eight cases of ab six give 1/4096."""
    assert count_needed_pairs(alpha) == pairs


def test_a_ratio_is_no_chance_of_its_own() -> None:
    """Memory and graph breaks are two chances; a ratio and a metric that only explains are none."""
    assert count_chances({MEMORY, RATIO, BREAKS, Metric.CAPTURED_OPS}) == 2


STANDS: State = (Status.UNCHANGED, Reason.LEADER_STANDS)


@pytest.mark.parametrize(
    ("calls", "cold", "warm", "expected", "more_pairs"),
    [
        (WORSE, Status.UNCHANGED, Status.REGRESSED, WORSE, 2),
        (WORSE, Status.INCONCLUSIVE, Status.REGRESSED, WORSE, 2),
        (WORSE, Status.UNCHANGED, Status.INCONCLUSIVE, OPEN, None),
        (WORSE, Status.UNCHANGED, Status.IMPROVED, STANDS, None),
        (WORSE, Status.NOT_COMPARABLE, Status.UNCHANGED, STANDS, None),
        (WORSE, Status.NOT_COMPARABLE, Status.MISSING, WORSE, 2),
        (WORSE, Status.FAILED, Status.NEW, WORSE, 2),
        (OPEN, Status.UNCHANGED, Status.UNCHANGED, STANDS, None),
        (OPEN, Status.UNCHANGED, Status.REGRESSED, OPEN, 2),
        (BETTER, Status.UNCHANGED, Status.UNCHANGED, BETTER, 2),
    ],
)
def test_calls_stand_for_compile_times(
    calls: State, cold: Status, warm: Status, expected: State, more_pairs: int | None
) -> None:
    """More Python calls convict only with a longer or unmeasured compile, and else need no pair."""
    status, reason = calls
    rows = [
        make_row("m/x", CALLS, status, reason=reason, more_pairs=2),
        make_row("m/x", COLD, cold),
        make_row("m/x", WARM, warm),
    ]
    followed = follow_times(rows)
    assert (followed[0].status, followed[0].reason) == expected
    assert followed[0].more_pairs == more_pairs
    assert list(followed[1:]) == rows[1:]


def test_calls_of_another_case_follow_their_own() -> None:
    """Another case's compile time does not count."""
    other = Comparison(
        case_id="n/x", metric=COLD, status=Status.UNCHANGED, reason=Reason.BELOW_THRESHOLD, decides=True
    )
    assert follow_times([make_row("m/x", CALLS, Status.REGRESSED), other])[0].status is Status.REGRESSED


def test_values_of_all_cases_count_together() -> None:
    """One case that differs is enough."""
    agreed, differs = Repeats(agreed=3), Repeats(agreed=2, differs=True)
    assert agreed.join(differs) == differs.join(agreed) == Repeats(agreed=5, differs=True)
    assert agreed.join(agreed) == Repeats(agreed=6)
