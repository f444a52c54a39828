"""The CPU as a device: its memory is this process's, as Linux and the allocators count it.

``VmHWM`` can be reset, and unlike ``ru_maxrss`` it is not inherited. The resident set also holds libraries'
scratch memory, which differs between processes, so ratios take what torch's profiler counts. Nor does it show
a leak: glibc's ``mallinfo2`` and Python count what is in use, exactly.
"""

import ctypes
import gc
import platform
import re
import statistics
import sys
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from gate.devices import CPU, DeviceKind
from gate.measure.device.device import MEMORY_RUNS, Call, Device, Identity
from gate.sizes import KIB, MIB

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
_THRESHOLD_BYTES = 64 * KIB
_TOP_PAD_BYTES = 0
_NEVER = 2**31 - 1  # the largest that mallopt takes
_MEMORY_EVENT = "[memory]"  # the profiler's name of an allocation or, with negative bytes, a release
_FIELDS = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd",
    "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip
_PROBE_BYTES = MIB
# Python counts the blocks it has in use, and not their sizes: most are of 48 to 96 bytes.
_BLOCK_BYTES = 64


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
        # Without `acc_events` torch 2.11 and 2.12 warn that the next cycle clears this one's events.
        with torch.profiler.profile(activities=activities, profile_memory=True, acc_events=True) as profile:
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

    def keep_freed_memory(self) -> None:
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
    return int(match[1]) * KIB


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
