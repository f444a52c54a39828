"""A call's use of its device."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import FunctionEventAvg

from gate.devices import CUDA
from gate.measure import usage
from gate.measure.context import Prepared, WorkerContext, open_case
from gate.measure.device.cpu import CpuDevice
from gate.measure.device.device import Call
from gate.measure.rounds import compute_percentile
from gate.measure.usage import (
    MAX_KERNELS,
    OTHERS,
    count_flops,
    count_host_launches,
    measure_energy_j,
    record_usage,
    sum_kernels,
)
from gate.records.cases import Case, Metric, Mode, Task
from gate.records.protocol import Sampling, Stage
from gate.workload import Workload
from tests.words import describe_measuring

from .contexts import make_context

LINEAR_FLOPS = 2 * 4 * 8 * 16  # four rows of 8 by a matrix of 8 x 16


class PlayedGpu(CpuDevice):
    """A device with a GPU's profile, and 3 J for each look at its energy."""

    kind = CUDA

    def __init__(self, events: Sequence[FunctionEventAvg] = (), joules: float | None = 3.0) -> None:
        super().__init__()
        self.told, self.joules, self.looks = events, joules, 0

    def profile(self, run: Call, calls: int) -> Sequence[FunctionEventAvg]:
        del calls
        run()
        return self.told

    def read_energy_j(self) -> float | None:
        self.looks += 1
        return None if self.joules is None else self.joules * self.looks


def make(device: CpuDevice, task: Task = Task.INFERENCE) -> tuple[WorkerContext, Prepared]:
    case = Case(id="m/c", model="m", backend="eager", task=task)
    context = make_context(case=case, sampling=Sampling())
    loss: Callable[[Any], torch.Tensor] | None = torch.sum if task is Task.TRAINING else None
    workload = Workload(forward=torch.nn.Linear(8, 16), inputs=(torch.randn(4, 8),), loss=loss)
    with open_case(context, workload) as prepared:
        return replace(context, device=device), prepared


def test_operations_of_a_linear_layer() -> None:
    """A product of 4 x 8 by 8 x 16 is 1024 operations."""
    _, prepared = make(CpuDevice())
    with torch.no_grad():
        assert count_flops(prepared.eager_step) == LINEAR_FLOPS


def test_a_training_step_counts_its_backward_too() -> None:
    """The gradient of the weight is one more product of the same size; the input needs none."""
    _, prepared = make(CpuDevice(), Task.TRAINING)
    assert count_flops(prepared.eager_step) == 2 * LINEAR_FLOPS


@pytest.mark.parametrize(("share", "value"), [(0.50, 50), (0.95, 95), (0.99, 99)])
def test_percentiles_are_values_that_were_seen(share: float, value: int) -> None:
    """Of 1 to 100 in any order; a single value is all of them."""
    assert compute_percentile(range(100, 0, -1), share) == value
    assert compute_percentile([7.0], share) == 7.0


def test_a_cpu_shows_its_operations_alone() -> None:
    """Nothing is timed anew: a CPU's trial gets longer by one eager call."""
    context, prepared = make(CpuDevice())
    with torch.no_grad():
        record_usage(context, prepared, 1e-5)
    assert dict(context.logbook.result.samples) == {Metric.FLOPS: (LINEAR_FLOPS,)}
    assert context.logbook.result.stage is Stage.PROFILE


def make_event(name: str, count: int, device_us: int = 0) -> FunctionEventAvg:
    """An average as ``key_averages`` lists it; with device time, of the device's own side."""
    event = FunctionEventAvg()
    event.key, event.count, event.self_device_time_total = name, count, device_us
    event.device_type = DeviceType.CUDA if device_us else DeviceType.CPU
    return event


HOST_ONLY = [make_event("cudaDeviceSynchronize", 2), make_event("aten::mm", 5), make_event("cudaMalloc", 1)]


@pytest.mark.parametrize(
    ("events", "launches", "graphs"),
    [
        # Five calls: 3 kernels of libraries, 2 of Triton, a copy and a fill each.
        (
            [
                make_event("cudaLaunchKernel", 15),
                make_event("cuLaunchKernel", 5),
                make_event("cuLaunchKernelEx", 5),
                make_event("cudaMemcpyAsync", 5),
                make_event("cudaMemsetAsync", 5),
            ],
            7,
            0,
        ),
        # The same as one graph; cut in three pieces with a kernel between; and graphs disabled altogether.
        ([make_event("cudaGraphLaunch", 5)], 1, 1),
        ([make_event("cudaGraphLaunch", 15), make_event("cudaLaunchKernel", 10)], 5, 3),
        # What is not the same in each call is no property of the program; an unknown figure is not 0.
        ([make_event("cudaLaunchKernel", 17)], None, None),
        ([], None, None),
    ],
)
def test_launches_of_one_call(
    events: list[FunctionEventAvg], launches: int | None, graphs: int | None
) -> None:
    """A graph that is cut, or not used, shows in the host's launches, whatever torch counts."""
    kernels = [make_event("triton_poi_fused_add_0", 5, device_us=400)]
    counts = count_host_launches([*HOST_ONLY, *events, *kernels], 5)
    assert (counts.get(Metric.LAUNCHES), counts.get(Metric.CUDAGRAPH_LAUNCHES)) == (launches, graphs)


def test_kernels_of_one_call_by_name_and_time() -> None:
    """Five calls: 400 us in one kernel and 100 us in copies are 80 us and 20 us a call."""
    kernel, copy = "triton_poi_fused_add_0", "Memcpy HtoD (Pageable -> Device)"
    events = [
        *(make_event("cudaLaunchKernel", 5), make_event("cudaMemcpyAsync", 10)),
        *(make_event(copy, 10, device_us=100), make_event(kernel, 5, device_us=400)),
    ]
    launches = {Metric.LAUNCHES: 3, Metric.CUDAGRAPH_LAUNCHES: 0, Metric.COPIES: 2}
    assert count_host_launches(events, 5) == launches
    assert sum_kernels(events, 5) == pytest.approx({kernel: 80e-6, copy: 20e-6})


def test_only_the_longest_kernels_are_named() -> None:
    """Of 20 kernels of 1 to 20 us the 16 longest are named; the others, 1 + 2 + 3 + 4 us, are summed."""
    times = usage._keep_longest({f"kernel_{us}": us * 1e-6 for us in range(1, 21)})
    assert list(times)[:2] == ["kernel_20", "kernel_19"]
    assert len(times) == MAX_KERNELS + 1
    assert times[OTHERS] == pytest.approx(10e-6)


def test_a_gpu_shows_what_ran_and_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, times by kernel, joules and single calls are kept; unknown ones are left out."""
    monkeypatch.setattr(usage, "_ENERGY_S", 0.01)
    launches = [make_event("cudaLaunchKernel", 10), make_event("cudaMemcpyAsync", 5)]
    context, prepared = make(PlayedGpu([*launches, make_event("gemm", 5, device_us=25)]))
    with torch.no_grad():
        record_usage(context, prepared, 1e-5)
    samples = context.logbook.result.samples
    metrics = (Metric.LAUNCHES, Metric.CUDAGRAPH_LAUNCHES, Metric.COPIES, Metric.DEVICE_TIME)
    assert [samples[metric] for metric in metrics] == [(3.0,), (0.0,), (1.0,), (pytest.approx(5e-6),)]
    assert samples[Metric.DEVICE_UTILIZATION] == (pytest.approx(0.5),)
    assert samples[Metric.CALL_P50] <= samples[Metric.CALL_P95] <= samples[Metric.CALL_P99]
    assert context.logbook.result.kernels_s == {"gemm": 5e-6}


@pytest.mark.parametrize(("mode", "is_reported"), [(Mode.REDUCE_OVERHEAD, True), (Mode.DEFAULT, False)])
def test_a_case_that_asks_for_graphs_and_launches_none_is_reported(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, is_reported: bool
) -> None:
    """The mode reduce-overhead silently falls back to plain calls if a graph cannot be captured."""
    monkeypatch.setattr(usage, "_ENERGY_S", 0.01)
    context, prepared = make(PlayedGpu([make_event("cudaLaunchKernel", 10)]))
    context = replace(context, case=replace(context.case, mode=mode))
    with torch.no_grad():
        record_usage(context, prepared, 1e-5)
    notes = [describe_measuring(fact) for fact in context.logbook.result.warnings]
    assert ("the case asks for CUDA graphs, and no call launches one" in notes) is is_reported


def test_energy_is_what_the_counter_grew_by_over_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 J between two looks, and a batch of 0.1 s between them: 100 calls of 1 ms, 30 mJ each."""
    monkeypatch.setattr(usage, "_ENERGY_S", 0.0)
    calls: list[int] = []
    assert measure_energy_j(lambda: calls.append(1), PlayedGpu(), 1e-3) == pytest.approx(0.03)
    assert len(calls) == 100


@pytest.mark.parametrize("joules", [None, 0.0])
def test_a_counter_that_stands_still_gives_no_energy(
    monkeypatch: pytest.MonkeyPatch, joules: float | None
) -> None:
    """Nor does a board without one: 0 J a call would be the best of all."""
    monkeypatch.setattr(usage, "_ENERGY_S", 0.0)
    assert measure_energy_j(lambda: None, PlayedGpu(joules=joules), 1e-3) is None


def test_long_calls_are_not_made_a_hundred_times() -> None:
    """Calls of more than 0.1 s have no percentile, rather than one of few."""
    assert usage.time_single_calls(lambda: None, CpuDevice(), 0.2) == ()
    assert len(usage.time_single_calls(lambda: None, CpuDevice(), 1e-3)) == 100


def test_a_model_that_cannot_be_watched_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The case does not fail."""

    def refuse(*_: object) -> int:
        raise RuntimeError("no dispatch here")

    monkeypatch.setattr(usage, "count_flops", refuse)
    context, prepared = make(CpuDevice())
    record_usage(context, prepared, 1e-5)
    # There are warnings about what other tests have compiled in this process, too.
    (fact,) = (fact for fact in context.logbook.result.warnings if fact.metrics == (Metric.FLOPS,))
    message = "flops not measured: RuntimeError: no dispatch here"
    assert describe_measuring(fact) == message
