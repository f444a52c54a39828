"""Canaries."""

from dataclasses import replace

import pytest
import torch

from gate.devices import CUDA, Canaries
from gate.measure.canaries import REPEATS, run_canaries
from gate.measure.device.cpu import CpuDevice


def test_canaries_run() -> None:
    """Each canary has its repeats, all positive."""
    times = run_canaries(CpuDevice())
    assert {"matmul", "copy", "python"} == times.keys()
    assert all(len(values) == REPEATS and min(values) > 0 for values in times.values())


class PlayedGpu(CpuDevice):
    """A processor that counts how often it is waited for, asked as a GPU."""

    kind = replace(CUDA, canaries=Canaries(matmul_size=32, copy_bytes=4096, calls=20, waking_s=0.01))

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def synchronize(self) -> None:
        self.waits += 1


def test_a_gpus_canaries_are_long_and_leave_the_workload_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of one copy of 0.2 ms is a tenth noise: it makes 20. The workload's random numbers stay."""
    copies: list[torch.Tensor] = []
    copy = torch.Tensor.copy_

    def note_copy(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        copies.append(source)
        return copy(self, source)

    monkeypatch.setattr(torch.Tensor, "copy_", note_copy)
    state = torch.get_rng_state()
    times = run_canaries(PlayedGpu())
    assert torch.equal(torch.get_rng_state(), state)
    assert len(copies) == 1 + 20 * REPEATS
    assert copies[0].float().std() > 60  # of random bytes 74, of constants 0
    assert {"matmul", "copy", "python", "launch"} == times.keys()
