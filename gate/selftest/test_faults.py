"""A fault is caught: the attempts of ``selftest``, which runs them."""

from collections.abc import Callable

import pytest

from gate.records.cases import Case
from gate.selftest.catalog import Fault, Result
from gate.selftest.scores import Attempt


def test_fault(
    fault: Fault,
    case: Case,
    number: int,
    try_fault: Callable[[Fault, Case, int], Attempt],
    record_property: Callable[[str, object], None],
) -> None:
    """The gate catches the fault, or is not red where nothing got worse."""
    attempt = try_fault(fault, case, number)
    result = attempt.opinion.result
    record_property("result", result.value)
    record_property("said", attempt.describe())
    record_property("planted", attempt.size.planted)
    record_property("is_asked", attempt.size.is_asked)
    if result is Result.INCONCLUSIVE:
        pytest.skip(attempt.describe())
    if result is Result.MISSED and not attempt.size.is_asked:
        pytest.xfail(attempt.describe())
    if result not in {Result.CAUGHT, Result.QUIET}:
        pytest.fail(attempt.describe(), pytrace=False)
