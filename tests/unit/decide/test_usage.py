"""Kernels of a call that changed."""

from gate.decide.explain.causes import compare_kernels
from gate.report.words.facts import describe_cause


def test_kernels_that_stood_still_point_elsewhere() -> None:
    """Kernels within 1 % of a call, 100 us of 10 ms, explain nothing."""
    fact = compare_kernels({"gemm": 10e-3}, {"gemm": 10.1e-3})
    text = describe_cause(fact) if fact else ""
    assert text == "The kernels take the same time: look at launches, copies or Python."


def test_the_rest_is_counted() -> None:
    """Three of five kernels that doubled are named; one that is gone is named as gone."""
    before = {f"k{ms}": ms * 1e-3 for ms in range(1, 6)}
    fact = compare_kernels(before, {f"k{ms}": 2 * ms * 1e-3 for ms in range(1, 5)})
    text = describe_cause(fact) if fact else ""
    assert text == (
        "Kernels of a call, 15.0 ms -> 20.0 ms in all:"
        " k5 is gone, 5.00 ms, k4 4.00 ms -> 8.00 ms, k3 3.00 ms -> 6.00 ms and 2 more."
    )


def test_without_kernels_of_both_sides_there_is_no_cause() -> None:
    assert compare_kernels({}, {"gemm": 1.0}) is compare_kernels({"gemm": 1.0}, {}) is None
