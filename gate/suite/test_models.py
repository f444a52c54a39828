"""One test for each case of the registry that ``--gate-select`` selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gate.errors import UsageError
from gate.records.cases import Case
from gate.suite.session import SESSION

if TYPE_CHECKING:
    from gate.suite.fixture import CompileBenchmark


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    try:
        cases = metafunc.config.stash[SESSION].list_cases()
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    metafunc.parametrize("gate_case", cases, ids=[case.id for case in cases])


def test_model(gate_case: Case, compile_benchmark: CompileBenchmark) -> None:
    compile_benchmark.measure(gate_case)
