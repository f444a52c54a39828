"""The CUDA device on ``torch.cuda``'s own signatures."""

import importlib
import inspect
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
import torch

from gate.fingerprint import has_same_codegen, has_same_stack
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
    here, there = (replace(CUDA_HOST, device_model=gpu.model, device_traits=gpu.traits) for gpu in (h100, t4))
    assert not has_same_stack(here, there)
    assert not has_same_codegen(here, there)


def test_an_assembler_that_torch_chose_itself_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch sets its own ptxas once it compiles: the path is no property of the GPU."""
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
    """Compiling's peak is above what was there before, on a GPU as on a CPU."""
    with play_gpu() as (device, cuda):
        cuda.memory_allocated.return_value = 100
        cuda.max_memory_allocated.return_value = 164
        device.start_peak()
        assert device.read_peak() == 64
        assert device.measure_growth(lambda: None) == 64


def test_what_is_in_use_is_what_the_allocator_handed_out() -> None:
    """After the device is idle; cached blocks do not count."""
    with play_gpu() as (device, cuda):
        cuda.memory_allocated.return_value = 4096
        assert device.read_used() == 4096
        assert [call[0] for call in cuda.mock_calls][-2:] == ["synchronize", "memory_allocated"]


def test_an_arm_that_is_about_to_be_timed_holds_what_it_needs() -> None:
    """Memory that eager calls, tuning and compiling left in the allocator is freed for the other arm."""
    with play_gpu() as (device, cuda):
        device.keep_freed_memory()
        assert [call[0] for call in cuda.mock_calls][-2:] == ["synchronize", "empty_cache"]


def test_a_profile_is_taken_after_one_that_is_thrown_away() -> None:
    """A profiler's start and its first launches are slow: one call pays for that."""
    calls: list[int] = []
    with play_gpu() as (device, _), mock.patch.object(torch.profiler, "profile") as profile:
        profile.return_value.__enter__.return_value.key_averages.return_value = []
        device.profile(lambda: calls.append(profile.call_count), 5)
    assert calls == [1, 2, 2, 2, 2, 2]


def test_torch_knows_what_is_relied_on() -> None:
    """A key of the allocator's segments that torch does not have any more would be missed on a card only.

    Torch documents it, or reads it itself: torch 2.11 has the pool, and does not document it.
    """
    sources = (
        importlib.import_module(name) for name in ("torch.cuda.memory", "torch._inductor.cudagraph_trees")
    )
    source = "".join(map(inspect.getsource, sources))
    assert all(key in source for key in ("total_size", "allocated_size", "segment_pool_id"))
