"""Which kernels of a call changed."""

from gate.decide.explain.causes import compare_kernels
from gate.report.words.facts import describe_cause


def test_kernels_that_stood_still_point_elsewhere() -> None:
    """100 us of 10 ms are 1 %: no kernel explains a call that is slower by more."""
    fact = compare_kernels({"gemm": 10e-3}, {"gemm": 10.1e-3})
    told = describe_cause(fact) if fact else ""
    assert told == "The kernels take the same time: look at launches, copies or Python."


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
