"""Words of changes: a sign and a direction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.verdict import Estimate, Status
from gate.report.words.templates import (
    describe_change,
    describe_move,
    describe_range,
    describe_speed,
    fill,
    mention_move,
    name_direction,
    name_metric,
    name_status,
)
from gate.units import format_noun
from tests.make import make_change, make_row


@pytest.mark.parametrize(
    ("metric", "change", "expected"),
    [
        (Metric.COMPILED_LATENCY, 0.306, "+30.6 % (slower)"),
        (Metric.COMPILED_LATENCY, -0.2, "-20.0 % (faster)"),
        (Metric.WARM_SPEEDUP, 0.303, "+30.3 % (slower)"),
        (Metric.PEAK_MEMORY, 0.064, "+6.4 % (larger)"),
        (Metric.MEMORY_RATIO, -0.064, "-6.4 % (smaller)"),
        (Metric.GRAPH_BREAKS, 2.0, "+2 (more)"),
        (Metric.RECOMPILES, -1.0, "-1 (fewer)"),
        (Metric.DRIFT, 1.47, "+1.47 (2.8x the error)"),
        (Metric.DRIFT, -1.0, "-1.00 (0.50x the error)"),
        (Metric.DEVICE_UTILIZATION, 0.1, "+10.0 % (worse)"),
        (Metric.COMPILED_LATENCY, 0.0, "0.0 %"),
        (Metric.GRAPH_BREAKS, 0.0, "0"),
    ],
)
def test_a_change_has_a_sign_and_a_word(metric: Metric, change: float, expected: str) -> None:
    assert describe_change(metric, change) == expected


@pytest.mark.parametrize(
    ("metric", "changes", "described"),
    [
        (Metric.COMPILED_LATENCY, [0.321, 0.29], "+29.0 to +32.1 % (slower)"),
        (Metric.COMPILED_LATENCY, [0.3, 0.3], "+30.0 % (slower)"),
        (Metric.COMPILED_LATENCY, [-0.1, 0.1], "-10.0 to +10.0 %"),
        (Metric.GRAPH_BREAKS, [1.0, 2.0], "+1 to +2 (more)"),
        (Metric.DRIFT, [1.0, 2.0], "+1.00 to +2.00 (less exact)"),
        (Metric.DRIFT_FLOAT32, [1.0], "+1.00 (2.0x the error)"),
        (Metric.DRIFT, [1.5, 1e9, 2.0], "+1.50 to another answer"),
        (Metric.DRIFT, [-1e9, -0.7], "-0.70 to no other answer any more"),
        (Metric.DRIFT, [1e9, 1e9], "another answer"),
    ],
)
def test_several_changes_are_a_range(metric: Metric, changes: list[float], described: str) -> None:
    """A range has its smallest and largest change, and a word if both have one direction."""
    assert describe_range(metric, changes) == described


@pytest.mark.parametrize(
    ("metric", "values", "change", "described", "mentioned"),
    [
        (
            Metric.COMPILED_LATENCY,
            (0.0121, 0.0158),
            0.306,
            "+30.6 % (slower)",
            "compiled latency 12.1 ms -> 15.8 ms (+30.6 %)",
        ),
        # 0.83 / 0.501 = 1.657: a ratio that fell by 40 % is not called +65.7 %
        (
            Metric.WARM_SPEEDUP,
            (0.83, 0.501),
            0.657,
            "0.830x -> 0.501x (slower)",
            "warm speedup 0.830x -> 0.501x",
        ),
        (Metric.MEMORY_RATIO, (0.9, 0.9), 0.0, "0.900x -> 0.900x", "memory ratio 0.900x -> 0.900x"),
        (Metric.GRAPH_BREAKS, (0.0, 2.0), 2.0, "+2 (more)", "graph breaks 0 -> 2"),
        (Metric.DRIFT, (0.0, 1.0), 1.0, "+1.00 (2.0x the error)", "drift 2.0x the error"),
        (Metric.GUARDS, (3.0, 4.0), None, "", "guards"),
    ],
)
def test_a_change_is_described_and_mentioned_with_both_values(
    metric: Metric, values: tuple[float, float], change: float | None, described: str, mentioned: str
) -> None:
    """A ratio's change has its values, not percent."""
    before, after = (Estimate(centre=value, low=None, high=None, noise=0.0, n=3) for value in values)
    moved = None if change is None else make_change(change, detectable=0.0)
    row = make_row("a", metric, baseline=before, candidate=after, change=moved)
    assert (describe_move(row), mention_move(row)) == (described, mentioned)


@given(st.sampled_from(list(Metric)), st.floats(1e-6, 100))
def test_worse_and_better_have_different_words(metric: Metric, size: float) -> None:
    """Every metric has two words, and none without a change."""
    assert name_direction(metric, size) != name_direction(metric, -size)
    assert name_direction(metric, 0.0) == ""


def test_names_are_words() -> None:
    """No name has an underscore."""
    assert not any("_" in name_metric(metric) for metric in Metric)
    assert {name_status(status) for status in (Status.NEW, Status.NOT_COMPARABLE)} == {"not judged"}
    assert [format_noun(number, "case") for number in (0, 1, 1200)] == ["0 cases", "1 case", "1,200 cases"]


@pytest.mark.parametrize(
    ("shift", "expected"),
    [(0.39, "39 % slower"), (-0.32, "47 % faster"), (-0.5, "100 % faster"), (-1.0, "99,900 % faster")],
)
def test_a_machine_is_so_much_slower_or_faster(shift: float, expected: str) -> None:
    """32 % less time is 1 / 0.68, so 47 % faster; an edited file may have -1."""
    assert describe_speed(shift) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("fell back[ at {location}]: {reason}", "fell back at a.py:9: [x|{y}]"),
        ("fell back[ at {line}]: {reason}", "fell back: [x|{y}]"),
        ("stop [{crowd}|other work]", "stop other work"),
        ("the same[{beside:?}, as the base]", "the same, as the base"),
        ("the same[{zero:?}, as the base|]", "the same"),
        ("{files:file}[: {files:named}]", "3 files: a.py, b.py and 1 more"),
        ("{beside:file} {beside:has}[: {beside:named}]", "1 file has"),
        ("kernels[ ([{was} -> ]{location})]", "kernels (a.py:9)"),
        ("changed[; of {location:kernel}][ ({location:named})]", "changed; of a.py:9 (a.py:9)"),
    ],
)
def test_a_part_is_left_out_where_something_in_it_is_lacking(template: str, expected: str) -> None:
    """An incomplete part is replaced or left out, and brackets in names are not parsed."""
    fact = Fact(
        code=Code.TEXT,
        numbers={"beside": 1.0, "zero": 0.0, "files": 3.0},
        names={**name_words(location="a.py:9", reason="[x|{y}]", line=""), "files": ("a.py", "b.py")},
    )
    assert fill(template, fact) == expected
