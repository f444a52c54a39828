"""Positions and ticks of a scale."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.report.charts import Scale, list_ticks, make_scale


def test_place() -> None:
    """A value lies at its share of the span, one beyond the scale on its edge."""
    scale = Scale(low=0.0, high=10.0, start=100.0, end=200.0)

    assert [scale.place(value) for value in (0.0, 2.5, 10.0, 12.0, -1.0)] == [100, 125, 200, 200, 100]


def test_place_upwards() -> None:
    """On a vertical scale larger values lie higher."""
    assert Scale(low=0.0, high=4.0, start=80.0, end=0.0).place(1.0) == 60.0


def test_margin() -> None:
    """Values from 1 to 2 get 6 % of their span on each side."""
    scale = make_scale([2.0, 1.0, math.inf, math.nan], 0, 100)

    assert (scale.low, scale.high) == pytest.approx((0.94, 2.06))


def test_least_span() -> None:
    """Equal values are in the middle of the least span."""
    scale = make_scale([5.0, 5.0], 0, 100, least_span=1.0)

    assert (scale.low, scale.high) == pytest.approx((4.44, 5.56))


def test_ticks() -> None:
    """Ticks are round: steps of 1, 2, 2.5 or 5 of a power of ten."""
    assert list_ticks(Scale(low=0.3, high=9.9, start=0, end=1)) == (2.5, 5.0, 7.5)
    assert list_ticks(Scale(low=-0.04, high=0.11, start=0, end=1)) == pytest.approx((0.0, 0.05, 0.1))


def test_ticks_of_a_unit() -> None:
    """Ticks of sizes are round numbers of MiB."""
    mib = 2.0**20

    assert list_ticks(Scale(low=90 * mib, high=410 * mib, start=0, end=1), unit=mib) == (
        100 * mib,
        200 * mib,
        300 * mib,
        400 * mib,
    )


@given(st.lists(st.floats(), max_size=5))
def test_any_values(values: list[float]) -> None:
    """Any values give a scale with a span, all of them within, and one to five ticks."""
    scale = make_scale(values, 0, 100)
    ticks = list_ticks(scale)

    assert scale.high > scale.low
    assert all(scale.low <= value <= scale.high for value in values if abs(value) < 1e100)
    assert 1 <= len(ticks) <= 5
    assert all(0 <= scale.place(value) <= 100 for value in (*values, *ticks) if math.isfinite(value))
