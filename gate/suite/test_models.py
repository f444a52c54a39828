"""One test a case of the registry; which ones, ``--gate-select`` says."""

from __future__ import annotations

from gate.records import Case
from gate.suite.fixture import CompileBenchmark


def test_model(gate_case: Case, compile_benchmark: CompileBenchmark) -> None:
    """Measure one case: eager and compiled in alternating blocks."""
    compile_benchmark.measure(gate_case)
