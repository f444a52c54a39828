"""Canaries."""

from __future__ import annotations

from gate.measure.canary import REPEATS, compute_medians, run_canaries
from gate.measure.device import CpuDevice


def test_median_is_over_both_visits() -> None:
    """Times from before and after the rounds count alike."""
    assert {"copy": 3.0} == compute_medians({"copy": (1.0, 2.0)}, {"copy": (3.0, 8.0, 9.0)})


def test_canaries_run() -> None:
    """Each canary has its repeats, all positive."""
    times = run_canaries(CpuDevice())
    assert {"matmul", "copy", "python"} == times.keys()
    assert all(len(values) == REPEATS and min(values) > 0 for values in times.values())
