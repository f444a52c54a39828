"""All that differs between a CPU and a CUDA device."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from gate.errors import MachineError
from gate.measure import allocator, process_memory
from gate.measure.nvml import DeviceState, NvmlDevice

Run = Callable[[], object]

MEMORY_RUNS = 3  # method 3: steady state, at least three calls
UTILIZATION_CALLS = 5  # method 1.3: profiled, untimed
_DRIVING = ("CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MPS_", "TRITON_PTXAS_")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """A device as the environment's fingerprint names it."""

    model: str
    uuid: str = ""
    driver: str = ""
    clocks: str = ""
    traits: Mapping[str, str] = field(default_factory=dict)  # what else decides about code and speed


class Device(Protocol):
    """Where a case runs."""

    kind: str
    name: torch.device

    def synchronize(self) -> None:
        """Wait until the device has done what it was asked to do."""

    def mark_step(self) -> None:
        """Tell CUDA graphs that the outputs of the last call may be overwritten."""

    def start_peak(self) -> None:
        """Forget the memory peak so far."""

    def read_peak(self) -> int:
        """Return the peak since ``start_peak`` in bytes; on a CPU, what it added to what there was then."""

    def measure_growth(self, run: Run) -> int:
        """Return by how many bytes memory in use grew during ``run``, at its largest.

        Nothing may be timed afterwards.
        """

    def measure_tensor_growth(self, run: Run) -> int:
        """Return by how many bytes torch's own tensors grew during ``run``, at their largest."""

    def hold_memory(self) -> None:
        """Keep freed memory from now on: what is timed takes none from the system, whatever was freed."""

    def free_memory(self) -> None:
        """Give memory that is kept for later back to whoever needs it now."""

    def read_resident(self, tensor_bytes: int) -> int:
        """Return the bytes that stay in use between calls; ``tensor_bytes`` of tensors are known to."""

    def measure_utilization(self, run: Run) -> float | None:
        """Return the share of wall time in which the device ran kernels; None where unknown."""

    def measure_device_s(self, run: Run, calls: int) -> float | None:
        """Return device seconds per call by the device's own clock; None where it has none."""

    def identify(self) -> Identity:
        """Say which device this is."""

    def read_state(self) -> DeviceState:
        """Read clocks, temperature, throttling and who else uses the device."""


class CpuDevice:
    """The CPU: always synchronous; memory is the process's high-water mark."""

    kind = "cpu"

    def __init__(self) -> None:
        self.name = torch.device("cpu")
        self._status = ""

    def synchronize(self) -> None:
        """Do nothing: calls return when they are done."""

    def mark_step(self) -> None:
        """Do nothing: there are no CUDA graphs."""

    def start_peak(self) -> None:
        """Reset the high-water mark."""
        self._status = process_memory.reset_peak()

    def read_peak(self) -> int:
        """Return by how much the resident set grew since ``start_peak``, at its largest."""
        return process_memory.compute_growth(self._status, process_memory.read_status())

    def measure_growth(self, run: Run) -> int:
        """Return by how much the resident set grew during ``run``: the median of some runs.

        One more run before lets everything else that it needs become resident.
        """
        process_memory.settle_heap()
        run()
        growths = []
        for _ in range(MEMORY_RUNS):
            process_memory.trim_heap()
            self.start_peak()
            run()
            growths.append(self.read_peak())
        return statistics.median_low(growths)

    def measure_tensor_growth(self, run: Run) -> int:
        """Return by how much the allocator's tensors grew during ``run``."""
        return allocator.measure_tensor_growth(run)

    def hold_memory(self) -> None:
        """Keep freed memory in the process."""
        process_memory.hold_freed_memory()

    def free_memory(self) -> None:
        """Do nothing: the system has it."""

    def read_resident(self, tensor_bytes: int) -> int:
        """Return ``tensor_bytes``: the rest of the process is libraries and what the gate itself holds."""
        return tensor_bytes

    def measure_utilization(self, run: Run) -> None:
        """Return None: a CPU that runs the gate is always busy."""

    def measure_device_s(self, run: Run, calls: int) -> None:
        """Return None: the wall clock is the CPU's clock."""

    def identify(self) -> Identity:
        """Name the CPU's model."""
        return Identity(model=process_memory.read_cpu_model())

    def read_state(self) -> DeviceState:
        """Return an empty state: the lab records the load."""
        return DeviceState()


class CudaDevice:
    """One CUDA device, the current one of the process."""

    kind = "cuda"

    def __init__(self, name: torch.device) -> None:
        self.name = torch.device("cuda", name.index or 0)
        torch.cuda.set_device(self.name)
        torch.cuda.init()  # type: ignore[no-untyped-call] # torch's
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
        torch.cuda.reset_peak_memory_stats(self.name)

    def read_peak(self) -> int:
        """Return the allocator's peak: all tensors that were alive at once, resident ones included."""
        self.synchronize()
        return torch.cuda.max_memory_allocated(self.name)

    def measure_growth(self, run: Run) -> int:
        """Return by how much the allocator's tensors grew during ``run``."""
        before = torch.cuda.memory_allocated(self.name)
        self.start_peak()
        for _ in range(MEMORY_RUNS):
            run()
        return self.read_peak() - before

    def measure_tensor_growth(self, run: Run) -> int:
        """Return the same: there is one allocator."""
        return self.measure_growth(run)

    def hold_memory(self) -> None:
        """Do nothing: torch's allocator of the device keeps what was freed."""

    def free_memory(self) -> None:
        """Return the allocator's unused blocks to the device."""
        self.synchronize()
        torch.cuda.empty_cache()

    def read_resident(self, tensor_bytes: int) -> int:  # noqa: ARG002 - the allocator knows
        """Return what the allocator holds: constants and pools of the compiled program included."""
        self.synchronize()
        return torch.cuda.memory_allocated(self.name)

    def measure_utilization(self, run: Run) -> float | None:
        """Return kernel seconds over wall seconds of a few profiled calls, at most 1."""
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            self.synchronize()
            begun = time.perf_counter()
            for _ in range(UTILIZATION_CALLS):
                run()
            self.synchronize()
            wall_s = time.perf_counter() - begun
        # A launch on the host's side of the list repeats the time of the kernels that it launched.
        busy_us = sum(
            event.self_device_time_total
            for event in profile.key_averages()
            if event.device_type.name != "CPU"
        )
        return min(1.0, busy_us * 1e-6 / wall_s) if busy_us else None

    def measure_device_s(self, run: Run, calls: int) -> float:
        """Return seconds per call between two CUDA events around ``calls`` calls."""
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's
        self.synchronize()
        start.record()
        for _ in range(calls):
            run()
        end.record()
        self.synchronize()
        return float(start.elapsed_time(end)) * 1e-3 / calls

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

    def read_state(self) -> DeviceState:
        """Read the state from NVML; it says what NVML does not tell."""
        return self._nvml.read_state()


def _list_traits(properties: Any) -> dict[str, str]:  # noqa: ANN401 - a private class of torch
    """What Inductor reads of a GPU. Its memory in whole GiB: ECC and drivers take some of it."""
    return {
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": str(properties.multi_processor_count),
        "memory": f"{round(properties.total_memory / 2**30)} GiB",
    }


def _list_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a worker inherits and that change how a GPU is driven."""
    return {name: environ[name] for name in sorted(environ) if name.startswith(_DRIVING)}


def open_device(name: str) -> Device:
    """Open ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        MachineError: There is no such device.
    """
    if name == "cpu":
        return CpuDevice()
    found = torch.cuda.device_count()
    index = torch.device(name).index or 0
    if index >= found:
        fix = "Choose one that `nvidia-smi` lists, install a torch built for CUDA, or use cpu."
        raise MachineError(
            f"no such device: {name} (torch {torch.__version__} sees {found} CUDA devices)", fix
        )
    return CudaDevice(torch.device(name))
