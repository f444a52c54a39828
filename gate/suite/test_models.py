"""One test a case of the registry; which ones, ``--gate-select`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gate.errors import UsageError
from gate.records.cases import Case
from gate.suite.session import SESSION

if TYPE_CHECKING:
    from gate.suite.fixture import CompileBenchmark


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case that the session is to measure."""
    try:
        cases = metafunc.config.stash[SESSION].list_cases()
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    metafunc.parametrize("gate_case", cases, ids=[case.id for case in cases])


def test_model(gate_case: Case, compile_benchmark: CompileBenchmark) -> None:
    """Measure one case: eager and compiled in alternating blocks."""
    compile_benchmark.measure(gate_case)
