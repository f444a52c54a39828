import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gate.devices import CUDA, DeviceKind
from gate.measure.device.device import MEMORY_RUNS, Call, Device, Identity
from gate.measure.device.nvml import DeviceState, NvmlDevice
from gate.sizes import GIB

_SHARED_POOL = (0, 0)  # the id of the pool that all allocations come from by default
_DRIVING = ("CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MPS_", "TRITON_PTXAS_", "CUBLAS_")


class CudaDevice(Device):
    kind: DeviceKind = CUDA

    def __init__(self, name: torch.device) -> None:
        self.name = torch.device(CUDA.name, name.index or 0)
        torch.cuda.set_device(self.name)
        torch.cuda.init()  # type: ignore[no-untyped-call] # torch's
        self._before = 0  # bytes allocated when a peak was started
        self._nvml = NvmlDevice(str(torch.cuda.get_device_properties(self.name).uuid))

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.name)

    def mark_step(self) -> None:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call] # torch's

    def start_peak(self) -> None:
        self.synchronize()
        self._before = torch.cuda.memory_allocated(self.name)
        torch.cuda.reset_peak_memory_stats(self.name)

    def read_peak(self) -> int:
        self.synchronize()
        return torch.cuda.max_memory_allocated(self.name) - self._before

    def measure_growth(self, run: Call) -> int:
        """Measure the growth of the allocator's tensors, after one more call.

        Recording a CUDA graph gives the libraries' workspaces back. An eager call allocates them again: that
        is no growth of its own.
        """
        run()
        self.start_peak()
        for _ in range(MEMORY_RUNS):
            run()
        return self.read_peak()

    def read_used(self) -> int:
        self.synchronize()
        return torch.cuda.memory_allocated(self.name)

    def keep_freed_memory(self) -> None:
        """Return what compiling left unused, which a pair's other arm may need; later blocks are kept."""
        self.free_memory()

    def free_memory(self) -> None:
        self.synchronize()
        torch.cuda.empty_cache()

    def read_resident(self, tensor_bytes: int) -> int:  # noqa: ARG002 - the allocator knows
        """Read what the allocator holds: workspaces of libraries, and the memory of CUDA graphs."""
        self.synchronize()
        segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call] # torch's
        idle: int = sum(
            segment["total_size"] - segment["allocated_size"]
            for segment in segments
            if segment["device"] == self.name.index and tuple(segment["segment_pool_id"]) != _SHARED_POOL
        )
        return torch.cuda.memory_allocated(self.name) + idle

    def profile(self, run: Call, calls: int) -> Sequence[Any]:
        activities = [torch.profiler.ProfilerActivity.CUDA]
        for count in (1, calls):
            # Kept from one profile to the next they are not: torch warns of that where it is not asked to.
            with torch.profiler.profile(activities=activities, acc_events=True) as profile:
                for _ in range(count):
                    run()
                self.synchronize()
        averages: Sequence[Any] = profile.key_averages()
        return averages

    def identify(self) -> Identity:
        properties = torch.cuda.get_device_properties(self.name)
        return Identity(
            model=properties.name,
            uuid=self._nvml.uuid,
            driver=self._nvml.read_driver(),
            clocks=self._nvml.read_clock_policy(),
            traits={**_list_traits(properties), **self._nvml.read_traits(), **_list_variables(os.environ)},
        )

    def read_energy_j(self) -> float | None:
        """Read the whole board's energy counter; an instance of MIG has none."""
        return self._nvml.read_energy_j()

    def read_state(self) -> DeviceState:
        return self._nvml.read_state()


def _list_traits(properties: Any) -> dict[str, str]:  # noqa: ANN401 - a private class of torch
    """List what Inductor reads about a GPU. Memory in whole GiB: ECC and drivers take some of it."""
    return {
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": str(properties.multi_processor_count),
        "memory": f"{round(properties.total_memory / GIB)} GiB",
    }


def _list_variables(environ: Mapping[str, str]) -> dict[str, str]:
    torch_directory = str(Path(torch.__file__).parent)
    driving = (name for name in sorted(environ) if name.startswith(_DRIVING))
    return {name: environ[name] for name in driving if not environ[name].startswith(torch_directory)}
