"""The search for the first bad point: marks, thresholds and ends, with a made-up judge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.bisect.search import (
    Forecast,
    choose_metric,
    make_suspect,
    rank_list,
    read_mark,
    search_first,
    split_difference,
)
from gate.metrics import NOISY_DECIDING
from gate.records.cases import Metric, Threshold
from gate.records.studies import Mark
from gate.records.verdict import Change, Comparison, Estimate, Status
from tests import make
from tests.make import POLICY


def make_row(
    metric: Metric = Metric.COMPILED_LATENCY, status: Status = Status.REGRESSED, centre: float | None = 0.10
) -> Comparison:
    """A comparison 10 % worse, beyond 3 %."""
    return make.make_row(
        "a/x",
        metric,
        status,
        change=None if centre is None else Change(centre=centre, low=0.08, high=0.12, detectable=0.03),
        threshold=Threshold(relative=0.03, absolute=2e-5),
        baseline=Estimate(centre=0.01, low=None, high=None, noise=None, n=1),
    )


def search_list(
    points: Sequence[str], ask: Callable[[str], Mark | None], marks: Mapping[str, Mark]
) -> list[str] | None:
    """The candidates of a list whose first point is good and whose last is bad, in order."""
    candidates = search_first(partial(rank_list, points), points[0], points[-1], ask, marks)
    return None if candidates is None else sorted(candidates, key=points.index)


@given(between=st.integers(0, 40), data=st.data())
def test_the_first_bad_point_is_found_in_the_forecast_steps(between: int, data: st.DataObject) -> None:
    points = [f"p{number}" for number in range(between + 2)]
    first = data.draw(st.integers(1, between + 1))
    asked: list[str] = []

    def ask(point: str) -> Mark:
        asked.append(point)
        return Mark.BAD if int(point[1:]) >= first else Mark.GOOD

    assert search_list(points, ask, {}) == [f"p{first}"]
    assert len(asked) <= Forecast(between=between, step_s=1.0).steps


@given(skipped=st.sets(st.integers(1, 10)), first=st.integers(1, 11))
def test_skipped_points_stay_candidates(skipped: set[int], first: int) -> None:
    """The candidates are those between the last good and the first bad mark."""
    points = [f"p{number}" for number in range(12)]

    def ask(point: str) -> Mark:
        number = int(point[1:])
        return Mark.SKIP if number in skipped else Mark.BAD if number >= first else Mark.GOOD

    candidates = search_list(points, ask, {})
    marked = [number for number in range(12) if number not in skipped]
    low = max(number for number in marked if number < first)
    high = min(number for number in marked if number >= first)
    assert candidates == points[low + 1 : high + 1]


def test_what_is_known_is_not_asked_about() -> None:
    """A continued search asks only for points without a mark."""
    asked: list[str] = []

    def ask(point: str) -> Mark:
        asked.append(point)
        return Mark.BAD

    assert search_list("abcde", ask, {"c": Mark.GOOD}) == ["d"]
    assert asked == ["d"]


def test_a_search_whose_time_is_up_has_no_answer() -> None:
    assert search_list("abc", lambda _: None, {}) is None


@pytest.mark.parametrize(("between", "steps"), [(0, 0), (1, 1), (3, 2), (7, 3), (31, 5), (32, 6)])
def test_steps_are_forecast(between: int, steps: int) -> None:
    """Each step halves what is left."""
    assert Forecast(between=between, step_s=1.0).steps == steps


@pytest.mark.parametrize(
    ("status", "mark"),
    [
        (Status.REGRESSED, Mark.BAD),
        (Status.UNCHANGED, Mark.GOOD),
        (Status.IMPROVED, Mark.GOOD),
        (Status.INCONCLUSIVE, Mark.SKIP),
        (Status.NOT_COMPARABLE, Mark.SKIP),
        (Status.MISSING, Mark.SKIP),
    ],
)
def test_a_mark_is_the_comparisons_status(status: Status, mark: Mark) -> None:
    """What is open or not measured is neither good nor bad."""
    assert read_mark(make_row(status=status)) is mark


def test_a_point_that_was_not_measured_is_skipped() -> None:
    """Without a comparison a point is skipped, and by a limit alone too."""
    assert read_mark(None) is Mark.SKIP
    assert read_mark(replace(make_row(Metric.DRIFT), baseline=None)) is Mark.SKIP


def test_a_counter_is_looked_for_before_a_time() -> None:
    """A counter is first, then the time furthest beyond its threshold, but no speedup."""
    slow, slower = make_row(centre=0.1), make_row(Metric.COLD_COMPILE_TIME, centre=0.3)
    speedup, broken = make_row(Metric.WARM_SPEEDUP, centre=0.9), make_row(Metric.GRAPH_BREAKS, centre=1.0)
    fine = make_row(Metric.RECOMPILES, Status.UNCHANGED)
    assert choose_metric([slow, slower, speedup, broken, fine]) is broken
    assert choose_metric([slow, slower, speedup, fine]) is slower
    assert choose_metric([speedup]) is speedup
    assert choose_metric([fine]) is None


def test_a_counter_without_a_threshold_is_ranked_by_its_change() -> None:
    """A comparison may lack threshold or change."""
    bare = make.make_row("a/x", Metric.GRAPH_BREAKS)
    assert choose_metric([bare]) is bare


def test_pairs_measure_what_the_metric_follows() -> None:
    """A speedup is measured with its latency."""
    assert make_suspect("a/x", Metric.GRAPH_BREAKS).metrics == (Metric.GRAPH_BREAKS,)
    assert Metric.COMPILED_LATENCY in make_suspect("a/x", Metric.WARM_SPEEDUP).metrics
    assert make_suspect("a/x", None).metrics == NOISY_DECIDING


def test_half_of_the_difference_separates_good_from_bad() -> None:
    """10 % at the bad end gives 5 % as threshold; 4 % leaves 3 %."""
    override = split_difference(POLICY, make_row(centre=0.10)).overrides[-1]
    assert (override.case, override.metric) == ("a/x", Metric.COMPILED_LATENCY)
    assert override.relative == pytest.approx(0.05)
    assert split_difference(POLICY, make_row(centre=0.04)).overrides[-1].relative == pytest.approx(0.03)


def test_drift_is_split_in_its_unit() -> None:
    """2 units give a threshold of 1, and no relative one."""
    override = split_difference(POLICY, make_row(Metric.DRIFT, centre=2.0)).overrides[-1]
    assert (override.relative, override.absolute) == (None, 1.0)


@pytest.mark.parametrize(
    "row", [make_row(Metric.GRAPH_BREAKS), make_row(centre=None)], ids=["a counter", "no change is told"]
)
def test_what_has_no_threshold_keeps_none(row: Comparison) -> None:
    """Any change of a counter counts."""
    assert split_difference(POLICY, row) is POLICY
