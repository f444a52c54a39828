"""What a device is asked, and how a CUDA device answers; the CPU is in :mod:`gate.measure.device.cpu`."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from gate.devices import CUDA, DeviceKind
from gate.measure.device.nvml import DeviceState, NvmlDevice

Call = Callable[[], object]

MEMORY_RUNS = 3  # steady state: at least three calls
_SHARED_POOL = (0, 0)  # the id of the pool that all allocations come from unless told otherwise
_DRIVING = ("CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MPS_", "TRITON_PTXAS_", "CUBLAS_")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """A device as the environment's fingerprint names it."""

    model: str
    uuid: str = ""
    driver: str = ""
    clocks: str = ""
    traits: Mapping[str, str] = field(default_factory=dict)  # what else decides about code and speed


class Device(ABC):
    """Where a case runs; what it does not say otherwise is so where calls return when they are done."""

    kind: DeviceKind
    name: torch.device

    def synchronize(self) -> None:  # noqa: B027 - nothing is to be done
        """Wait until the device has done what it was asked to do."""

    def mark_step(self) -> None:  # noqa: B027 - there are no CUDA graphs
        """Tell CUDA graphs that the outputs of the last call may be overwritten."""

    @abstractmethod
    def start_peak(self) -> None:
        """Forget the memory peak so far."""

    @abstractmethod
    def read_peak(self) -> int:
        """Return by how many bytes memory in use grew since ``start_peak``, at its largest."""

    @abstractmethod
    def measure_growth(self, run: Call) -> int:
        """Return by how many bytes memory in use grew during ``run``, at its largest.

        Nothing may be timed afterwards.
        """

    def measure_tensor_growth(self, run: Call) -> int:
        """Return by how many bytes torch's own tensors grew during ``run``, at their largest."""
        return self.measure_growth(run)  # of a device there is one allocator

    @abstractmethod
    def read_used(self) -> int:
        """Return the bytes in use now, to the byte; raises ``OSError`` where they are not counted."""

    @abstractmethod
    def hold_memory(self) -> None:
        """Keep freed memory from now on: what is timed takes none from the system, whatever was freed."""

    def free_memory(self) -> None:  # noqa: B027 - the system has it
        """Release memory that is kept for later."""

    def read_resident(self, tensor_bytes: int) -> int:
        """Return the bytes that stay in use between calls; ``tensor_bytes`` of tensors are known to.

        Of a process all else is libraries and what the gate itself holds.
        """
        return tensor_bytes

    def profile(self, run: Call, calls: int) -> Sequence[Any]:
        """Return the averages of torch's profiler over so many calls; none where the wall clock says it all.

        Nothing may be timed meanwhile: who is watched is slower.
        """
        del run, calls
        return ()

    def read_energy_j(self) -> float | None:
        """Return the joules that the device has used since some moment; None where it does not count."""
        return None

    @abstractmethod
    def identify(self) -> Identity:
        """Say which device this is."""

    def read_state(self) -> DeviceState:
        """Read throttling and who else uses it; a host's load the lab records."""
        return DeviceState()


class CudaDevice(Device):
    """One CUDA device, the current one of the process."""

    kind: DeviceKind = CUDA

    def __init__(self, name: torch.device) -> None:
        self.name = torch.device(CUDA.name, name.index or 0)
        torch.cuda.set_device(self.name)
        torch.cuda.init()  # type: ignore[no-untyped-call] # torch's
        self._before = 0  # bytes allocated when a peak was started
        self._nvml = NvmlDevice(str(torch.cuda.get_device_properties(self.name).uuid))

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        torch.cuda.synchronize(self.name)

    def mark_step(self) -> None:
        """Begin a new iteration of CUDA graph trees."""
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call] # torch's

    def start_peak(self) -> None:
        """Reset the allocator's peak."""
        self.synchronize()
        self._before = torch.cuda.memory_allocated(self.name)
        torch.cuda.reset_peak_memory_stats(self.name)

    def read_peak(self) -> int:
        """Return by how much the allocator's tensors grew since ``start_peak``, at their largest."""
        self.synchronize()
        return torch.cuda.max_memory_allocated(self.name) - self._before

    def measure_growth(self, run: Call) -> int:
        """Return by how much the allocator's tensors grew during ``run``.

        Recording a CUDA graph gives the libraries' workspaces back. An eager call allocates them again, and
        they are no growth of its own: so one call comes before.
        """
        run()
        self.start_peak()
        for _ in range(MEMORY_RUNS):
            run()
        return self.read_peak()

    def read_used(self) -> int:
        """Return what the device's allocator has handed out."""
        self.synchronize()
        return torch.cuda.memory_allocated(self.name)

    def hold_memory(self) -> None:
        """Return what compiling left unused, which a pair's other arm may need; later blocks are kept."""
        self.free_memory()

    def free_memory(self) -> None:
        """Return the allocator's unused blocks to the device."""
        self.synchronize()
        torch.cuda.empty_cache()

    def read_resident(self, tensor_bytes: int) -> int:  # noqa: ARG002 - the allocator knows
        """Return what the allocator holds: workspaces of libraries, and the memory of CUDA graphs.

        What a graph needs while it is replayed stays reserved in a pool of its own, and is
        allocated only while it is recorded.
        """
        self.synchronize()
        segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call] # torch's
        idle: int = sum(
            segment["total_size"] - segment["allocated_size"]
            for segment in segments
            if segment["device"] == self.name.index and tuple(segment["segment_pool_id"]) != _SHARED_POOL
        )
        return torch.cuda.memory_allocated(self.name) + idle

    def profile(self, run: Call, calls: int) -> Sequence[Any]:
        """Profile the calls, after one under the profiler that pays for setting it up."""
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
        """Name the GPU, its UUID, driver and power and clock policy."""
        properties = torch.cuda.get_device_properties(self.name)
        return Identity(
            model=properties.name,
            uuid=self._nvml.uuid,
            driver=self._nvml.read_driver(),
            clocks=self._nvml.read_clock_policy(),
            traits={**_list_traits(properties), **self._nvml.read_traits(), **_list_variables(os.environ)},
        )

    def read_energy_j(self) -> float | None:
        """Read the board's energy counter, of a whole card; an instance of MIG has none."""
        return self._nvml.read_energy_j()

    def read_state(self) -> DeviceState:
        """Read the state from NVML; it names what NVML does not report."""
        return self._nvml.read_state()


def _list_traits(properties: Any) -> dict[str, str]:  # noqa: ANN401 - a private class of torch
    """What Inductor reads of a GPU. Its memory in whole GiB: ECC and drivers take some of it."""
    return {
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": str(properties.multi_processor_count),
        "memory": f"{round(properties.total_memory / 2**30)} GiB",
    }


def _list_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a worker inherits and that change how a GPU is driven.

    Torch itself points Triton to its own assembler once it compiles: its path differs between environments
    that are the same.
    """
    torch_directory = str(Path(torch.__file__).parent)
    driving = (name for name in sorted(environ) if name.startswith(_DRIVING))
    return {name: environ[name] for name in driving if not environ[name].startswith(torch_directory)}
