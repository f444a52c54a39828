"""The words of changes: a sign, and which way it went."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.records import Metric, Status
from gate.report.words.templates import (
    describe_change,
    describe_range,
    describe_speed,
    mention_change,
    name_direction,
    name_metric,
    name_status,
)
from gate.units import count_noun


@pytest.mark.parametrize(
    ("metric", "change", "told"),
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
def test_a_change_has_a_sign_and_a_word(metric: Metric, change: float, told: str) -> None:
    """No reader has to know which way is worse."""
    assert describe_change(metric, change) == told


@pytest.mark.parametrize(
    ("metric", "changes", "described", "mentioned"),
    [
        (
            Metric.COMPILED_LATENCY,
            [0.321, 0.29],
            "+29.0 to +32.1 % (slower)",
            "compiled latency +29.0 to +32.1 %",
        ),
        (Metric.COMPILED_LATENCY, [0.3, 0.3], "+30.0 % (slower)", "compiled latency +30.0 %"),
        (Metric.COMPILED_LATENCY, [-0.1, 0.1], "-10.0 to +10.0 %", "compiled latency -10.0 to +10.0 %"),
        (Metric.GRAPH_BREAKS, [1.0, 2.0], "+1 to +2 (more)", "graph breaks +1 to +2"),
        (Metric.DRIFT, [1.0, 2.0], "+1.00 to +2.00 (less exact)", "drift 2.0x to 4.0x the error"),
        (Metric.DRIFT_FLOAT32, [1.0], "+1.00 (2.0x the error)", "drift in float32 2.0x the error"),
    ],
)
def test_several_changes_are_a_range(
    metric: Metric, changes: list[float], described: str, mentioned: str
) -> None:
    """From the smallest to the largest; a range over both directions has no word, a mention no brackets."""
    assert (describe_range(metric, changes), mention_change(metric, changes)) == (described, mentioned)


@given(st.sampled_from(list(Metric)), st.floats(1e-6, 100))
def test_worse_and_better_have_different_words(metric: Metric, size: float) -> None:
    """Every metric has two words, and none for no change at all."""
    assert name_direction(metric, size) != name_direction(metric, -size)
    assert name_direction(metric, 0.0) == ""


def test_names_are_words() -> None:
    """No underscore is read out."""
    assert not any("_" in name_metric(metric) for metric in Metric)
    assert {name_status(status) for status in (Status.NEW, Status.NOT_COMPARABLE)} == {"not judged"}
    assert [count_noun(number, "case") for number in (0, 1, 1200)] == ["0 cases", "1 case", "1,200 cases"]


@pytest.mark.parametrize(
    ("shift", "told"),
    [(0.39, "39 % slower"), (-0.32, "47 % faster"), (-0.5, "100 % faster"), (-1.0, "99,900 % faster")],
)
def test_a_machine_is_so_much_slower_or_faster(shift: float, told: str) -> None:
    """By the time that a program takes: 32 % less of it is 1 / 0.68, so 47 % faster. A file may say -1."""
    assert describe_speed(shift) == told
