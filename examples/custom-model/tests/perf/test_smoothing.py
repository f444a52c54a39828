"""A performance test like any other test, gated through its entry under `tests:` in gate.yml."""

from __future__ import annotations

import torch
from gate.suite.fixture import CompileBenchmark

from mixer.smoothing import smooth


def test_smoothing(compile_benchmark: CompileBenchmark) -> None:
    """Measure the function eager and compiled."""
    compile_benchmark(smooth, torch.randn(65_536, 8))
