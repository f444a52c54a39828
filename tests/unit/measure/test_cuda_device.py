"""The CUDA device on ``torch.cuda``'s own signatures."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import FunctionEventAvg

from gate.fingerprint import has_same_codegen, has_same_stack
from gate.measure.device.profile import MAX_KERNELS, OTHERS, summarize_profile
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


def test_an_assembler_that_torch_chose_itself_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch names its own ptxas once it compiles: its path says nothing of the GPU."""
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(Path(torch.__file__).parent / "bin" / "ptxas"))
    monkeypatch.setenv("TRITON_PTXAS_BLACKWELL_PATH", "/opt/cuda/bin/ptxas")
    with play_gpu() as (device, _):
        traits = device.identify().traits
    assert "TRITON_PTXAS_PATH" not in traits
    assert traits["TRITON_PTXAS_BLACKWELL_PATH"] == "/opt/cuda/bin/ptxas"


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


def test_what_is_in_use_is_what_the_allocator_handed_out() -> None:
    """Once the device has done what it was asked to do; cached blocks are nobody's."""
    with play_gpu() as (device, cuda):
        cuda.memory_allocated.return_value = 4096
        assert device.read_used() == 4096
        assert [call[0] for call in cuda.mock_calls][-2:] == ["synchronize", "memory_allocated"]


def test_an_arm_that_is_about_to_be_timed_holds_what_it_needs() -> None:
    """What eager calls, tuning and compiling left in the allocator is room for the other arm of a pair."""
    with play_gpu() as (device, cuda):
        device.hold_memory()
        assert [call[0] for call in cuda.mock_calls][-2:] == ["synchronize", "empty_cache"]


def make_event(name: str, count: int, device_us: int = 0) -> FunctionEventAvg:
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
    kernels = [make_event("triton_poi_fused_add_0", 5, device_us=400)]
    found = summarize_profile([*HOST_ONLY, *events, *kernels], 5, call_s=0.0002)
    assert (found.launches, found.graph_launches) == (launches, graphs)


def test_kernels_of_one_call_by_name_and_time() -> None:
    """Five calls: 400 us in one kernel and 100 us in copies are 80 us and 20 us a call, of 200 us: half."""
    kernel, copy = "triton_poi_fused_add_0", "Memcpy HtoD (Pageable -> Device)"
    events = [
        *(make_event("cudaLaunchKernel", 5), make_event("cudaMemcpyAsync", 10)),
        *(make_event(copy, 10, device_us=100), make_event(kernel, 5, device_us=400)),
    ]
    found = summarize_profile(events, 5, call_s=0.0002)
    assert (found.utilization, found.device_s) == (pytest.approx(0.5), pytest.approx(100e-6))
    assert (found.launches, found.graph_launches, found.copies) == (3, 0, 2)
    assert found.kernels_s == {kernel: 80e-6, copy: 20e-6}


def test_only_the_longest_kernels_are_named() -> None:
    """Of 20 kernels of 1 to 20 us the 16 longest are named; the others, 1 + 2 + 3 + 4 us, are summed."""
    events = [make_event(f"kernel_{us}", 1, device_us=us) for us in range(1, 21)]
    found = summarize_profile(events, 1, call_s=1.0).kernels_s
    assert list(found)[:2] == ["kernel_20", "kernel_19"]
    assert len(found) == MAX_KERNELS + 1
    assert found[OTHERS] == pytest.approx(10e-6)


def test_a_profile_is_taken_after_one_that_is_thrown_away() -> None:
    """Setting a profiler up takes long, as do the first launches under it: one call pays for that."""
    calls: list[int] = []
    with play_gpu() as (device, _), mock.patch.object(torch.profiler, "profile") as profile:
        profile.return_value.__enter__.return_value.key_averages.return_value = []
        device.profile(lambda: calls.append(profile.call_count), call_s=1.0)
    assert calls == [1, 2, 2, 2, 2, 2]


def test_torch_knows_what_is_relied_on() -> None:
    """A key of the allocator's segments that torch does not have any more would be missed on a card only.

    Torch documents it, or reads it itself: torch 2.11 has the pool, and does not document it.
    """
    sources = (
        importlib.import_module(name) for name in ("torch.cuda.memory", "torch._inductor.cudagraph_trees")
    )
    told = "".join(map(inspect.getsource, sources))
    assert all(key in told for key in ("total_size", "allocated_size", "segment_pool_id"))
