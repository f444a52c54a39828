"""What a call makes of its device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from gate.devices import CUDA
from gate.measure import usage
from gate.measure.context import Prepared, WorkerContext, prepare_case, use_gradients
from gate.measure.device.device import Call, CpuDevice
from gate.measure.device.profile import DeviceProfile
from gate.measure.process.logbook import Logbook
from gate.measure.timing.canary import measure_bytes_per_s, measure_flops_per_s
from gate.measure.timing.rounds import compute_percentile
from gate.measure.usage import (
    Work,
    measure_energy_j,
    measure_limits,
    measure_work,
    record_usage,
)
from gate.records import Case, DType, Metric, Task
from gate.records.protocol import Sampling, Stage, WorkerRole
from gate.workload import Workload
from tests.told import describe_measuring

LINEAR_FLOPS = 2 * 4 * 8 * 16  # four rows of 8 by a matrix of 8 x 16
LINEAR_BYTES = 4 * (8 * 16 + 16 + 4 * 8 + 4 * 16)  # weight, bias, input, output in float32


class PlayedGpu(CpuDevice):
    """A device that tells what a GPU would: a profile, and 3 J for each look at its energy."""

    kind = CUDA

    def __init__(self, profile: DeviceProfile, joules: float | None = 3.0) -> None:
        super().__init__()
        self.told, self.joules, self.looks = profile, joules, 0

    def profile(self, run: Call, call_s: float) -> DeviceProfile:
        """Return what it was made with."""
        del call_s
        run()
        return self.told

    def read_energy_j(self) -> float | None:
        """Return 3 J more at each look."""
        self.looks += 1
        return None if self.joules is None else self.joules * self.looks


def make(device: CpuDevice, task: Task = Task.INFERENCE) -> tuple[WorkerContext, Prepared]:
    """Return a linear layer, ready to be called."""
    case = Case(id="m/c", model="m", backend="eager", task=task)
    context = WorkerContext(
        case=case,
        device=CpuDevice(),
        sampling=Sampling(),
        logbook=Logbook(None, WorkerRole.COLD),
        directory="",
    )
    loss: Callable[[Any], torch.Tensor] | None = torch.sum if task is Task.TRAINING else None
    workload = Workload(forward=torch.nn.Linear(8, 16), inputs=(torch.randn(4, 8),), loss=loss)
    with use_gradients(case):
        prepared = prepare_case(context, workload)
    return replace(context, device=device), prepared


def test_work_of_a_linear_layer() -> None:
    """A product of 4 x 8 by 8 x 16 is 1024 operations; all tensors together are 960 bytes."""
    _, prepared = make(CpuDevice())
    with torch.no_grad():
        work = measure_work(prepared.subject, prepared.eager_step)
    assert work == Work(flops=LINEAR_FLOPS, moved_bytes=LINEAR_BYTES)


def test_a_training_step_counts_its_backward_too() -> None:
    """The gradient of the weight is one more product of the same size; the input needs none."""
    _, prepared = make(CpuDevice(), Task.TRAINING)
    assert measure_work(prepared.subject, prepared.eager_step).flops == 2 * LINEAR_FLOPS


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 2 TFLOP/s and 1 TB/s."""
    monkeypatch.setattr(usage, "measure_flops_per_s", lambda *_: 2e12)
    monkeypatch.setattr(usage, "measure_bytes_per_s", lambda *_: 1e12)


@pytest.mark.usefixtures("rates")
def test_limits_are_work_over_rates() -> None:
    """4 GFLOP at 2 TFLOP/s are 2 ms, 3 GB at 1 TB/s are 3 ms; what there is none of limits nothing."""
    work = Work(flops=4 * 10**9, moved_bytes=3 * 10**9)
    assert measure_limits(work, CpuDevice(), DType.FLOAT32) == {
        "arithmetic": pytest.approx(2e-3),
        "memory": pytest.approx(3e-3),
    }
    no_products = Work(flops=0, moved_bytes=10**9)
    assert measure_limits(no_products, CpuDevice(), DType.BFLOAT16).keys() == {"memory"}


@pytest.mark.parametrize("dtype", list(DType))
def test_every_machine_has_rates(dtype: DType) -> None:
    """A processor of this century computes and copies between a million and 10^15 a second."""
    assert 1e6 < measure_flops_per_s(CpuDevice(), dtype) < 1e15
    assert 1e6 < measure_bytes_per_s(CpuDevice()) < 1e15


@pytest.mark.parametrize(("share", "value"), [(0.50, 50), (0.95, 95), (0.99, 99)])
def test_percentiles_are_values_that_were_seen(share: float, value: int) -> None:
    """Of 1 to 100 in any order; of one value all are that."""
    assert compute_percentile(range(100, 0, -1), share) == value
    assert compute_percentile([7.0], share) == 7.0


def test_a_cpu_tells_its_work_alone() -> None:
    """Nothing is timed anew there: a trial of a CPU gets longer by one eager call and two rates."""
    context, prepared = make(CpuDevice())
    with torch.no_grad():
        record_usage(context, prepared, 1e-5)
    assert dict(context.logbook.result.samples) == {Metric.FLOPS: (LINEAR_FLOPS,)}
    assert context.logbook.result.limits_s.keys() == {"arithmetic", "memory"}
    assert context.logbook.result.stage is Stage.PROFILE


@pytest.mark.usefixtures("rates")
def test_a_gpu_tells_what_ran_and_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, times by kernel, joules and single calls are all kept; what is unknown is left out."""
    monkeypatch.setattr(usage, "_ENERGY_S", 0.01)
    told = DeviceProfile(utilization=0.5, launches=3, copies=1, device_s=5e-6, kernels_s={"gemm": 5e-6})
    context, prepared = make(PlayedGpu(told))
    with torch.no_grad():
        record_usage(context, prepared, 1e-5)
    samples = context.logbook.result.samples
    assert {metric: samples[metric] for metric in (Metric.LAUNCHES, Metric.COPIES, Metric.DEVICE_TIME)} == {
        Metric.LAUNCHES: (3.0,),
        Metric.COPIES: (1.0,),
        Metric.DEVICE_TIME: (5e-6,),
    }
    assert Metric.CUDAGRAPH_LAUNCHES not in samples
    assert samples[Metric.CALL_P50] <= samples[Metric.CALL_P95] <= samples[Metric.CALL_P99]
    assert context.logbook.result.kernels_s == {"gemm": 5e-6}


def test_energy_is_what_the_counter_grew_by_over_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 J between two looks, and a batch of 0.1 s between them: 100 calls of 1 ms, 30 mJ each."""
    monkeypatch.setattr(usage, "_ENERGY_S", 0.0)
    calls: list[int] = []
    assert measure_energy_j(lambda: calls.append(1), PlayedGpu(DeviceProfile()), 1e-3) == pytest.approx(0.03)
    assert len(calls) == 100


@pytest.mark.parametrize("joules", [None, 0.0])
def test_a_counter_that_stands_still_tells_no_energy(
    monkeypatch: pytest.MonkeyPatch, joules: float | None
) -> None:
    """Nor does a board without one: 0 J a call would be the best of all."""
    monkeypatch.setattr(usage, "_ENERGY_S", 0.0)
    assert measure_energy_j(lambda: None, PlayedGpu(DeviceProfile(), joules=joules), 1e-3) is None


def test_long_calls_are_not_made_a_hundred_times() -> None:
    """Of calls of more than 0.1 s no percentile is told, rather than one of few."""
    assert usage.time_single_calls(lambda: None, CpuDevice(), 0.2) == ()
    assert len(usage.time_single_calls(lambda: None, CpuDevice(), 1e-3)) == 100


def test_a_model_that_cannot_be_watched_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting is no reason for a case to fail."""

    def refuse(*_: object) -> Work:
        raise RuntimeError("no dispatch here")

    monkeypatch.setattr(usage, "measure_work", refuse)
    context, prepared = make(CpuDevice())
    record_usage(context, prepared, 1e-5)
    # What other tests have compiled in this process is told as well.
    (fact,) = (one for one in context.logbook.result.warnings if one.metrics == (Metric.FLOPS,))
    told = "flops not measured: RuntimeError: no dispatch here"
    assert describe_measuring(fact) == told
