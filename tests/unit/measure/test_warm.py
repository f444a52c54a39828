"""The warm process: both sides' memory by one definition."""

from __future__ import annotations

import pytest
import torch

from gate.measure.context import WorkerContext
from gate.measure.device.device import Call, CpuDevice
from gate.measure.process.logbook import Logbook
from gate.measure.warm import measure_warm
from gate.records import Case, Metric
from gate.records.protocol import Sampling, WorkerRole
from gate.workload import Workload

MIB = 2**20


class DeviceWithWorkspace(CpuDevice):
    """A device whose libraries hold 32 MiB once they were called, as cuBLAS does on an H100."""

    def read_resident(self, tensor_bytes: int) -> int:
        """Return the tensors and the workspace."""
        return tensor_bytes + 32 * MIB

    def measure_growth(self, run: Call) -> int:
        """Return 4 MiB, whatever is called."""
        run()
        return 4 * MIB

    def measure_tensor_growth(self, run: Call) -> int:
        """Return the same for either side."""
        return self.measure_growth(run)


def test_workspaces_of_libraries_count_on_both_sides() -> None:
    """Where compiled needs no more than eager, the ratio is 1, and not 12 for a small model."""
    case = Case(id="m/c", model="m", backend="eager")
    logbook = Logbook(None, WorkerRole.WARM)
    context = WorkerContext(
        case=case,
        device=DeviceWithWorkspace(),
        sampling=Sampling(min_warmup_calls=1, drift_seeds=1),
        logbook=logbook,
        directory="",
    )
    measure_warm(context, Workload(forward=torch.nn.Linear(8, 8), inputs=(torch.randn(4, 8),)))
    assert logbook.result.samples[Metric.MEMORY_RATIO] == (pytest.approx(1.0),)
    (peak,) = logbook.result.samples[Metric.PEAK_MEMORY]
    assert peak == pytest.approx(36 * MIB, rel=0.01)
