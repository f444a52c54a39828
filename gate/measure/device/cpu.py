"""The CPU as a device: its memory is this process's, as Linux and the allocators count it.

``VmHWM`` can be reset, and unlike ``ru_maxrss`` it is not inherited from the process that started this one.
The resident set also holds scratch memory of libraries, whose size differs between processes. A ratio of two
programs would have that noise twice, so it takes what torch's profiler counts: every allocation of tensors.

The resident set does not show a leak: pages stay, and come and go with holes in the heap. Allocators count
exactly: glibc's ``mallinfo2`` counts tensors, NumPy's arrays, libraries and Python's larger objects; Python
counts the blocks of its small ones.
"""

import copy
import ctypes
import gc
import importlib
import platform
import re
import statistics
import sys
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from gate.devices import (
    BOARDS,
    CPU,
    CUDA,
    NO_TRITON,
    TARGET,
    DeviceKind,
    find_kind,
    is_target,
    read_architecture,
)
from gate.errors import MachineError
from gate.measure.device.device import MEMORY_RUNS, Call, CudaDevice, Device, Identity
from gate.measure.device.imitation import WARP, always

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_CPU_INFO = Path("/proc/cpuinfo")
_RESET_PEAK = "5"  # proc(5): resets VmHWM to the current resident set

# glibc's mallopt(3). Blocks of at least the threshold get pages of their own, which go back to the
# system when they are freed: the resident set then follows the tensors. By default the threshold grows
# with what is freed, and freed memory lingers or not, as it happens.
_M_MMAP_THRESHOLD = -3
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_MAX = -4
_MMAP_MAX = 65536  # glibc's own default
_THRESHOLD_BYTES = 64 * 1024
_TOP_PAD_BYTES = 0
_NEVER = 2**31 - 1  # the largest that mallopt takes
_MEMORY_EVENT = "[memory]"  # the profiler's name of an allocation or, with negative bytes, a release
_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
_PROBE_BYTES = 1024 * 1024
# Python counts the blocks it has in use, and not their sizes: most are of 48 to 96 bytes.
_BLOCK_BYTES = 64


def open_device(name: str) -> Device:
    """Open ``cpu``, ``cuda``, ``cuda:N``, or a target such as ``cuda:sm_90``: for it code is only compiled.

    Raises:
        MachineError: There is no such device, or this machine cannot compile for the target.
    """
    if find_kind(name) is CPU:
        return CpuDevice()
    if is_target(name):
        return TargetDevice(name)
    check_device(name)
    return CudaDevice(torch.device(name))


def check_device(name: str) -> None:
    """Check that a CUDA device is there, without taking any of its memory.

    Raises:
        MachineError: It is not.
    """
    count = torch.cuda.device_count()
    if (torch.device(name).index or 0) >= count:
        fix = "Choose one that `nvidia-smi` lists, install a torch built for CUDA, or use cpu."
        raise MachineError(
            f"no such device: {name} (torch {torch.__version__} sees {count} CUDA devices)", fix
        )


class CpuDevice(Device):
    kind: DeviceKind = CPU

    def __init__(self) -> None:
        self.name = torch.device(CPU.name)
        self._before = 0  # resident bytes when a peak was started

    def start_peak(self) -> None:
        """Reset the high-water mark.

        Raises:
            OSError: This kernel, or this container, does not show a process its peak or let it be reset.
        """
        _CLEAR_REFS.write_text(_RESET_PEAK)
        self._before = read_status("VmRSS")
        read_status("VmHWM")

    def read_peak(self) -> int:
        return max(0, read_status("VmHWM") - self._before)

    def measure_growth(self, run: Call) -> int:
        """Measure the growth of the resident set: the median of some runs."""
        settle_heap()
        run()
        growths = []
        for _ in range(MEMORY_RUNS):
            trim_heap()
            self.start_peak()
            run()
            growths.append(self.read_peak())
        return statistics.median_low(growths)

    def measure_tensor_growth(self, run: Call) -> int:
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
            run()
        # Memory events that belong to an operator are only in the profiler's raw results.
        raw: Any = profile.profiler.kineto_results
        changes = (event.nbytes() for event in raw.events() if event.name() == _MEMORY_EVENT)
        return compute_allocated_growth(changes)

    def read_used(self) -> int:
        """Read the bytes that glibc and Python have allocated.

        Raises:
            OSError: It is not counted: another C library than glibc from 2.33 on, or another allocator.
        """
        if not _is_counted():
            raise OSError("what is in use is counted by glibc from 2.33 on alone, with its own allocator")
        return _read_malloc() + _BLOCK_BYTES * sys.getallocatedblocks()

    def hold_memory(self) -> None:
        """Keep freed memory in this process from now on.

        Whether glibc gives freed blocks back at every call or at none depends on the state of the heap: one
        program took 0 to 12,000 page faults a call and 7 to 25 ms, fixed for the life of its process.
        """
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
        libc.mallopt(_M_MMAP_MAX, 0)

    def identify(self) -> Identity:
        return Identity(model=read_cpu_model())


def read_status(key: str) -> int:
    """Read a size in bytes from ``/proc/self/status``.

    Raises:
        OSError: There is no such line.
    """
    match = re.search(rf"^{key}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    if not match:
        raise OSError(f"/proc/self/status has no {key}")
    return int(match[1]) * 1024


def compute_allocated_growth(changes_bytes: Iterable[int]) -> int:
    """Compute the largest sum of leading allocations and releases; 0 when memory never grew."""
    return max(accumulate(changes_bytes, initial=0))


def settle_heap() -> None:
    """Give free memory back to the system, now and for every large block that is freed later."""
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_MAX, _MMAP_MAX)
    libc.mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
    libc.mallopt(_M_TRIM_THRESHOLD, _THRESHOLD_BYTES)
    libc.mallopt(_M_TOP_PAD, _TOP_PAD_BYTES)
    trim_heap()


def trim_heap() -> None:
    ctypes.CDLL(None).malloc_trim(0)


def read_cpu_model() -> str:
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", _CPU_INFO.read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1].strip() if match else platform.machine()


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def _read_malloc() -> int:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Counts
    counts = libc.mallinfo2()
    return int(counts.uordblks + counts.hblkhd)


@cache
def _is_counted() -> bool:
    """Whether an allocated block shows in the counts: one of a preloaded allocator would not."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return False
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
    before = _read_malloc()
    block = libc.malloc(_PROBE_BYTES)
    grown = _read_malloc() - before
    libc.free(block)
    return grown >= _PROBE_BYTES


class TargetDevice(CpuDevice):
    """A target of compiles: its tensors are fake, and no clock can measure anything of it."""

    kind = TARGET

    def __init__(self, target: str) -> None:
        """Let Triton and Inductor compile for ``target``, which this process imitates."""
        super().__init__()
        self.target = target
        self.name = torch.device(CUDA.name, 0)
        architecture = read_architecture(target)
        self.board, self.capability = BOARDS[architecture], divmod(architecture, 10)
        _target_triton(architecture)
        _compile_only()
        self.mode: Any = _make_fake_mode()

    def identify(self) -> Identity:
        traits = {
            "capability": f"{self.capability[0]}.{self.capability[1]}",
            "board": self.board.name,
            "multiprocessors": str(self.board.multiprocessors),
            "memory": f"{self.board.memory_gib} GiB",
        }
        return Identity(model=self.target, traits=traits)

    def place(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        kept_dtype = dtype if tensor.is_floating_point() else tensor.dtype
        with self.mode:
            fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=kept_dtype, device=self.name)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(fake, tensor.requires_grad)
        return fake


def _target_triton(architecture: int) -> None:
    try:
        triton = importlib.import_module("triton")
    except ImportError:
        raise MachineError(*NO_TRITON) from None
    target = importlib.import_module("triton.backends.compiler").GPUTarget(CUDA.name, architecture, WARP)
    driver = SimpleNamespace(
        get_current_target=always(target),
        get_current_device=always(0),
        get_active_torch_device=always(torch.device(CUDA.name, 0)),
        get_current_stream=always(0),
        get_device_capability=always(divmod(architecture, 10)),
    )
    triton.runtime.driver.set_active(driver)
    # Inductor sets the real driver anew before each compile: there is none.
    _import("torch._inductor.runtime.triton_helpers").set_driver_to_gpu = always(None)


def _import(module: str) -> Any:  # noqa: ANN401 - private modules of torch
    return importlib.import_module(module)


def _compile_only() -> None:
    """Let Inductor compile a graph, its backward and its kernels, and leave the graph's call to eager."""
    compile_fx = _import("torch._inductor.compile_fx")
    inductor = compile_fx.compile_fx

    def compile_graph(module: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Inductor's
        kept = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
        inductor(module, inputs, *args, **kwargs)
        return kept.forward

    compile_fx.compile_fx = compile_graph
    heuristics = _import("torch._inductor.runtime.triton_heuristics")
    heuristics.CachingAutotuner._make_launchers = always(None)  # noqa: SLF001 - it loads binaries onto the device
    heuristics.CachingAutotuner._dynamic_scale_rblock = always(None)  # noqa: SLF001 - it asks what was loaded
    # Whether matrices are padded is decided by timing both ways.
    _import("torch._inductor.config").shape_padding = False
    # A backward graph is compiled with its forward one, and nothing is found in a cache of graphs.
    _import("torch._functorch.config").force_non_lazy_backward_lowering = True
    _import("torch._functorch.config").enable_autograd_cache = False
    _import("torch._inductor.config").fx_graph_cache = False


_LIBRARY: list[Any] = []  # torch forgets what is registered when its library is collected


def _make_fake_mode() -> Any:  # noqa: ANN401 - torch's own
    fake = _import("torch._subclasses").FakeTensorMode
    fake.avoid_device_init = property(always(True))  # torch's own way on a machine without the device

    def make_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:  # noqa: ANN401 - ATen's
        return torch.empty_strided(size, stride, dtype=dtype, device=CPU.name)

    def make_empty(size: Any, *, dtype: Any = None, memory_format: Any = None, **_: Any) -> torch.Tensor:  # noqa: ANN401 - ATen's
        form = memory_format or torch.contiguous_format
        return torch.empty(size, dtype=dtype, device=CPU.name, memory_format=form)

    library: Any = torch.library.Library("aten", "IMPL", "CUDA")  # type: ignore[no-untyped-call] # torch's
    library.impl("empty_strided", make_strided)
    library.impl("empty.memory_format", make_empty)
    _LIBRARY.append(library)
    return fake(allow_non_fake_inputs=True)
