"""Numbers for people."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gate import units
from gate.metrics import SPECS
from gate.records.cases import Metric, Threshold

FINITE = st.floats(min_value=-1e15, max_value=1e15, allow_nan=False)
MIB = 1024.0 * 1024.0
SCALE = {"B": 1.0, "KiB": 1024.0, "MiB": MIB, "GiB": 1024 * MIB, "TiB": MIB * MIB}
SECONDS = {"\N{MICRO SIGN}s": 1e-6, "ms": 1e-3, "s": 1.0}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0 s"),
        (0.0121, "12.1 ms"),
        (11.24, "11.2 s"),
        (9.996e-4, "1.00 ms"),
        (0.9996, "1.00 s"),
        (4.1234e-5, "41.2 \N{MICRO SIGN}s"),
        (1234.5, "1,234 s"),
        (-0.0012, "-1.20 ms"),
    ],
)
def test_seconds(value: float, expected: str) -> None:
    """Three digits in a suitable unit, also where rounding reaches the next unit."""
    assert expected == units.format_seconds(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023.7, "1.00 KiB"),
        (1023 * MIB, "1,023 MiB"),
        (1.5 * 1024 * MIB, "1.50 GiB"),
    ],
)
def test_bytes(value: float, expected: str) -> None:
    """Binary units; 1024 of one is 1 of the next."""
    assert expected == units.format_bytes(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.123, "+12.3 %"),
        (-0.0312, "-3.1 %"),
        (0.0042, "+0.42 %"),
        (-0.00001, "0.0 %"),
        (0.0, "0.0 %"),
        (12.3, "+1,230 %"),
    ],
)
def test_percent(value: float, expected: str) -> None:
    """A sign, and none for zero."""
    assert expected == units.format_percent(value)


@pytest.mark.parametrize(
    ("value", "expected"), [(3.0, "3"), (4228323.0, "4,228,323"), (0.5, "0.500"), (0.0, "0")]
)
def test_count(value: float, expected: str) -> None:
    """An integer unless trials disagree."""
    assert expected == units.format_count(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(12.3456, "12.3 J"), (0.0123456, "12.3 mJ"), (0.9996, "1.00 J"), (0.0, "0 J")],
)
def test_energy(value: float, expected: str) -> None:
    """From millijoules to some hundred joules."""
    assert units.format_joules(value) == expected


def test_ratio_and_drift() -> None:
    """A ratio ends in x; a log2 ratio has its factor."""
    actual = [units.format_ratio(1.4231), units.format_log2(1.0), units.format_log2(-0.001)]

    assert actual == ["1.42x", "+1.00 (2.0x)", "0.00 (1.0x)"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.04, "0.0 s"), (9.4, "9.4 s"), (41.2, "41 s"), (312, "5 min 12 s"), (3900, "1 h 05 min")],
)
def test_duration(value: float, expected: str) -> None:
    """Hours, minutes and seconds."""
    assert expected == units.format_duration(value)


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-03-20T08:30:00Z", "less than an hour old"),
        ("2026-03-20T04:00:00+00:00", "5 h old"),
        ("2026-03-08T09:00:00Z", "12 days old"),
        ("2026-03-20T09:59:00Z", "less than an hour old"),
        ("2026-03-20T12:30:00Z", "dated 3 h ahead"),
        ("2099-03-20T09:00:00Z", "dated 26,663 days ahead"),
        ("", ""),
        ("yesterday", ""),
    ],
)
def test_age(created: str, expected: str) -> None:
    """Hours and days, also of the future; nothing for an invalid time."""
    assert expected == units.format_age(created, "2026-03-20T09:00:00Z")


@pytest.mark.parametrize(
    ("metric", "threshold", "expected"),
    [
        (Metric.COMPILED_LATENCY, Threshold(relative=0.05, absolute=20e-6), "5 % and 20 \N{MICRO SIGN}s"),
        (Metric.PEAK_MEMORY, Threshold(relative=0.03, absolute=2 * MIB), "3 % and 2 MiB"),
        (Metric.DRIFT, Threshold(relative=0.0, absolute=0.58), "+0.58 (1.5x)"),
        (Metric.GRAPH_BREAKS, Threshold(relative=0.0, absolute=0.0), "any change"),
    ],
)
def test_threshold(metric: Metric, threshold: Threshold, expected: str) -> None:
    """Both parts in the metric's unit."""
    assert expected == units.format_threshold(metric, threshold)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Metric.COMPILED_LATENCY, "-2.0 to +50.0 %"),
        (Metric.DRIFT, "-0.02 to +0.50"),
        (Metric.COMPILE_CALLS, "-2.0 to +50.0 %"),
    ],
)
def test_interval(metric: Metric, expected: str) -> None:
    """The unit of the change."""
    assert expected == units.format_interval(metric, -0.02, 0.5)


def test_counter_change_is_signed_and_whole() -> None:
    """A count, not percent."""
    assert [units.format_change(Metric.GRAPH_BREAKS, value) for value in (2.0, -1.0, 0.0)] == [
        "+2",
        "-1",
        "0",
    ]


@given(st.sampled_from(sorted(SPECS)), FINITE)
def test_no_change_loses_its_sign(metric: Metric, value: float) -> None:
    """The text is zero without a sign, or has the value's sign."""
    text = units.format_change(metric, value)
    number = read_number(text)

    assert (number > 0) == (value > 0) or not number
    assert not text.startswith("-0 ")
    assert not re.match(r"[+-]0(\.0*)?(?![0-9.])", text)


@given(st.sampled_from(sorted(SPECS)), FINITE, FINITE)
@example(Metric.STACK_MEMORY, 482.0, 1641.0)
def test_changes_are_monotone(metric: Metric, a: float, b: float) -> None:
    """A larger change is never shown smaller."""
    low, high = (read_number(units.format_change(metric, value)) for value in sorted((a, b)))

    assert low <= high


@given(FINITE, FINITE)
def test_seconds_are_monotone(a: float, b: float) -> None:
    """A longer time is never shown shorter."""
    low, high = (read_scaled(units.format_seconds(value), SECONDS) for value in sorted((a, b)))

    assert low <= high * (1 + 1e-12) + 1e-18 or low < 0


@given(st.floats(min_value=0, max_value=1e18), st.floats(min_value=0, max_value=1e18))
def test_bytes_are_monotone(a: float, b: float) -> None:
    """A larger size is never shown smaller."""
    low, high = (read_scaled(units.format_bytes(value), SCALE) for value in sorted((a, b)))

    assert low <= high


def test_a_compile_that_no_first_call_shows_did_not_take_0_s() -> None:
    """It is within the noise of calls; a call of 0 s is an edited one."""
    assert units.format_value(Metric.WARM_COMPILE_TIME, 0.0) == "under 1 call"
    assert units.format_value(Metric.COMPILED_LATENCY, 0.0) == "0 s"


@given(st.sampled_from(sorted(SPECS)), st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_can_be_shown(metric: Metric, value: float) -> None:
    """The largest number is shown too."""
    rendered = (
        units.format_value(metric, value),
        units.format_change(metric, value),
        units.format_interval(metric, value, value),
        units.format_duration(value),
    )

    assert all(rendered)


def read_number(text: str) -> float:
    """A change in its base unit; a percentage or plain number as it is."""
    another = {"another answer": math.inf, "no other answer any more": -math.inf}
    if text in another:
        return another[text]
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "")) * SCALE.get(unit, 1.0)


def read_scaled(text: str, scale: dict[str, float]) -> float:
    number, unit = text.split(" ")
    return float(number.replace(",", "")) * scale[unit]
