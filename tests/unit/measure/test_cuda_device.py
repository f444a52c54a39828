"""The CUDA device on ``torch.cuda``'s own signatures."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEventAvg

from gate.fingerprint import has_same_codegen, has_same_stack
from gate.measure.device import DeviceProfile, summarize_profile
from tests.hosts import CUDA_HOST
from tests.unit.measure.cuda_contract import H100, play_gpu


def test_the_fingerprint_knows_what_code_is_generated_for() -> None:
    """Capability, multiprocessors and memory come from torch: an H100's and a T4's stacks are two."""
    with play_gpu() as (device, _):
        h100 = device.identify()
    assert h100.traits == {"capability": "9.0", "multiprocessors": "132", "memory": "79 GiB"}
    t4_properties = {**H100, "name": "Tesla T4", "major": 7, "minor": 5, "multi_processor_count": 40}
    with play_gpu(t4_properties) as (device, _):
        t4 = device.identify()
    here, there = (replace(CUDA_HOST, device_model=one.model, device_traits=one.traits) for one in (h100, t4))
    assert not has_same_stack(here, there)
    assert not has_same_codegen(here, there)


MIB = 2**20


def test_memory_of_a_cuda_graph_is_resident() -> None:
    """A replay allocates nothing: what the graph needs is reserved in its own pool, for nobody else.

    64 MiB of weights; of a graph's 512 MiB, 8 MiB are its output; other devices and unused blocks of the
    shared pool are nobody's.
    """

    def make_segment(total: int, allocated: int, pool: tuple[int, int], device: int = 0) -> dict[str, object]:
        sizes = {"total_size": total * MIB, "allocated_size": allocated * MIB}
        return {"device": device, "segment_pool_id": pool, **sizes}

    with play_gpu() as (device, cuda):
        cuda.memory_allocated.return_value = (64 + 8) * MIB
        cuda.memory_snapshot.return_value = [
            make_segment(200, 64, (0, 0)),
            make_segment(500, 8, (0, 1)),
            make_segment(12, 0, (0, 1)),
            make_segment(900, 0, (0, 2), device=1),
        ]
        assert device.read_resident(64 * MIB) == (64 + 512) * MIB


def test_peaks_are_what_was_added() -> None:
    """Compiling's peak is told above what was there before, on a GPU as on a CPU."""
    with play_gpu() as (device, cuda):
        cuda.memory_allocated.return_value = 100
        cuda.max_memory_allocated.return_value = 164
        device.start_peak()
        assert device.read_peak() == 64
        assert device.measure_growth(lambda: None) == 64


def make_event(name: str, count: int, device_us: float = 0.0) -> FunctionEventAvg:
    """Return an average as ``key_averages`` lists it; with device time, of the device's own side."""
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
        # What is not the same in each call is no property of the program; what is not told is not 0.
        ([make_event("cudaLaunchKernel", 17)], None, None),
        ([], None, None),
    ],
)
def test_launches_of_one_call(
    events: list[FunctionEventAvg], launches: int | None, graphs: int | None
) -> None:
    """A graph that is cut, or not used at all, shows in what the host launches, whatever torch counts."""
    kernels = [make_event("triton_poi_fused_add_0", 5, device_us=400.0)]
    found = summarize_profile([*HOST_ONLY, *events, *kernels], 5, wall_s=0.001)
    assert found == DeviceProfile(utilization=pytest.approx(0.4), launches=launches, graph_launches=graphs)


def test_torch_documents_what_is_relied_on() -> None:
    """A key of the allocator's segments that torch no longer documents would be missed on a card only."""
    told = torch.cuda.memory._snapshot.__doc__ or ""
    assert all(f" {key}:" in told for key in ("total_size", "allocated_size", "segment_pool_id"))
