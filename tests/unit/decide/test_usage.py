"""What bounds a call, and which kernels changed."""

from __future__ import annotations

import pytest

from gate.decide.explain.causes import compare_kernels, find_bound
from gate.report.words.causes import describe_cause

ARITHMETIC = "arithmetic alone takes 20.0 % of it at this machine's measured rate"
MEMORY = "memory alone takes 80.0 % of it at this machine's measured rate"


@pytest.mark.parametrize(
    ("busy", "limits_s", "told"),
    [
        (0.9, {"memory": 8e-3, "arithmetic": 2e-3}, f"A call is memory-bound: {MEMORY}."),
        (None, {"memory": 8e-3}, f"A call is memory-bound: {MEMORY}."),
        (
            0.34,
            {"memory": 8e-3},
            "The device is busy for 34.0 % of a call: launches or the host limit it.",
        ),
        (
            0.9,
            {"memory": 1e-3, "arithmetic": 2e-3},
            f"A call is neither memory- nor arithmetic-bound: {ARITHMETIC}.",
        ),
        # What fits into a cache is faster than what is copied: never more than the whole.
        (
            None,
            {"memory": 30e-3},
            "A call is memory-bound: memory alone takes 100 % of it at this machine's measured rate.",
        ),
        (None, {}, ""),
        (0.9, {}, ""),
    ],
)
def test_what_bounds_a_call_of_10_ms(busy: float | None, limits_s: dict[str, float], told: str) -> None:
    """A device that idles for most of a call waits for launches; else the larger of its limits counts."""
    fact = find_bound(10e-3, busy, limits_s)
    assert (describe_cause(fact) if fact else "") == told


def test_kernels_that_stood_still_point_elsewhere() -> None:
    """100 us of 10 ms are 1 %: no kernel explains a call that is slower by more."""
    fact = compare_kernels({"gemm": 10e-3}, {"gemm": 10.1e-3})
    told = describe_cause(fact) if fact else ""
    assert told == "No kernel's time on the device changed: the change is between them, or on the host."


def test_the_rest_is_counted() -> None:
    """Five kernels doubled: the three that moved most are named; one that is gone is said to be."""
    before = {f"k{ms}": ms * 1e-3 for ms in range(1, 6)}
    fact = compare_kernels(before, {f"k{ms}": 2 * ms * 1e-3 for ms in range(1, 5)})
    told = describe_cause(fact) if fact else ""
    assert told == (
        "Kernels of a call, 15.0 ms -> 20.0 ms in all:"
        " k5 is gone, 5.00 ms, k4 4.00 ms -> 8.00 ms, k3 3.00 ms -> 6.00 ms and 2 more."
    )


def test_nothing_is_said_without_both_sides() -> None:
    """A baseline of before kernels were kept knows none."""
    assert compare_kernels({}, {"gemm": 1.0}) is compare_kernels({"gemm": 1.0}, {}) is None
