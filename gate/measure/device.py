"""All that differs between a CPU and a CUDA device."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from gate.errors import MachineError
from gate.measure import allocator, process_memory
from gate.measure.nvml import DeviceState, NvmlDevice

Run = Callable[[], object]

MEMORY_RUNS = 3  # method 3: steady state, at least three calls
PROFILED_CALLS = 5  # method 1.3: profiled, untimed
_US = 1e-6
# Of CUDA's runtime and driver: cudaLaunchKernel, cuLaunchKernelEx, cudaMemcpyAsync, cudaGraphLaunch, ...
_LAUNCH = re.compile(r"cu(da)?(Launch|GraphLaunch|Memcpy|Memset)")
_GRAPH_LAUNCH = re.compile(r"cu(da)?GraphLaunch")
_SHARED_POOL = (0, 0)  # the id of the pool that all allocations come from unless they are told otherwise
_DRIVING = ("CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MPS_", "TRITON_PTXAS_")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """A device as the environment's fingerprint names it."""

    model: str
    uuid: str = ""
    driver: str = ""
    clocks: str = ""
    traits: Mapping[str, str] = field(default_factory=dict)  # what else decides about code and speed


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceProfile:
    """What a device does in one call; None where the profiler does not tell."""

    utilization: float | None = None  # share of wall time in which it ran kernels
    launches: int | None = None  # by the host: kernels, copies, fills, and CUDA graphs as one each
    graph_launches: int | None = None  # of CUDA graphs


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
        """Return by how many bytes memory in use grew since ``start_peak``, at its largest."""

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

    def profile(self, run: Run) -> DeviceProfile | None:
        """Say what the device does in a call; None where the wall clock says it all. Nothing is timed."""

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

    def profile(self, run: Run) -> None:
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

    def measure_growth(self, run: Run) -> int:
        """Return by how much the allocator's tensors grew during ``run``."""
        self.start_peak()
        for _ in range(MEMORY_RUNS):
            run()
        return self.read_peak()

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
        """Return what the allocator holds: workspaces of libraries, and the memory of CUDA graphs.

        What a graph needs while it is replayed stays reserved in a pool of its own, for nobody else, and is
        allocated only while it is recorded.
        """
        self.synchronize()
        segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call] # torch's
        own = [segment for segment in segments if _is_private(segment, self.name)]
        idle: int = sum(segment["total_size"] - segment["allocated_size"] for segment in own)
        return torch.cuda.memory_allocated(self.name) + idle

    def profile(self, run: Run) -> DeviceProfile:
        """Profile a few calls: kernel seconds over wall seconds, and what the host launched."""
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            self.synchronize()
            begun = time.perf_counter()
            for _ in range(PROFILED_CALLS):
                run()
            self.synchronize()
            wall_s = time.perf_counter() - begun
        return summarize_profile(profile.key_averages(), PROFILED_CALLS, wall_s)

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


def summarize_profile(events: Iterable[Any], calls: int, wall_s: float) -> DeviceProfile:
    """Summarize the averages of ``torch.profiler`` over so many calls that took ``wall_s`` seconds.

    The host's side lists what it asked the driver for; the device's side lists what ran. A number of
    launches that differs between calls is unknown: it is no property of the program.
    """
    host, device = Counter[str](), 0.0
    for event in events:
        if event.device_type.name == "CPU":
            host[event.key] += event.count
        else:  # the host's side repeats this time
            device += event.self_device_time_total
    launched = sum(count for name, count in host.items() if _LAUNCH.match(name))
    graphs = sum(count for name, count in host.items() if _GRAPH_LAUNCH.match(name))
    is_known = launched > 0 and launched % calls == 0 and graphs % calls == 0
    return DeviceProfile(
        utilization=min(1.0, device * _US / wall_s) if device else None,
        launches=launched // calls if is_known else None,
        graph_launches=graphs // calls if is_known else None,
    )


def _is_private(segment: Mapping[str, Any], device: torch.device) -> bool:
    """Whether a segment of the caching allocator belongs to a private pool on ``device``."""
    return segment["device"] == device.index and tuple(segment["segment_pool_id"]) != _SHARED_POOL


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
