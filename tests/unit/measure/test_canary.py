"""Canaries."""

from __future__ import annotations

import pytest
import torch

from gate.measure import canary
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


class PlayedGpu(CpuDevice):
    """A processor that counts how often it is waited for, asked as a GPU."""

    kind = "cuda"

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def synchronize(self) -> None:
        """Count it."""
        self.waits += 1


def test_a_gpus_canaries_are_long_and_leave_the_workload_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of one copy of 0.2 ms is a tenth noise: it makes 20. The workload's random numbers stay."""
    monkeypatch.setattr(canary, "_MATMUL_SIZE", {"cuda": 32})
    monkeypatch.setattr(canary, "_COPY_BYTES", {"cuda": 4096})
    monkeypatch.setattr(canary, "_WAKING_S", 0.01)
    copies, copy = [], torch.Tensor.copy_

    def note_copy(self: torch.Tensor, *arguments: object) -> torch.Tensor:
        copies.append(arguments)
        return copy(self, *arguments)

    monkeypatch.setattr(torch.Tensor, "copy_", note_copy)
    state = torch.get_rng_state()
    times = run_canaries(PlayedGpu())
    assert torch.equal(torch.get_rng_state(), state)
    assert len(copies) == 1 + 20 * REPEATS
    (source,) = copies[0]
    assert source.float().std() > 60  # of random bytes 74, of constants 0
    assert {"matmul", "copy", "python", "launch"} == times.keys()
