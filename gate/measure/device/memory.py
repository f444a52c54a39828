"""What allocators count, to the byte: what a call was handed out, and what this process has in use.

Of a call the profiler sees every allocation of the CPU's. The resident set also holds scratch memory of
libraries, whose size changes from process to process. For a ratio of two programs that noise would count
twice, so the ratio is taken from here.

The resident set is no measure of a leak: pages stay behind, and come and go with the heap's holes. What the
allocators count is exact: glibc's ``mallinfo2`` counts tensors, arrays of NumPy, libraries and Python's
larger objects; Python counts the blocks of its own small ones.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from functools import cache
from itertools import accumulate
from typing import Any

import torch

_MEMORY_EVENT = "[memory]"  # the profiler's name of an allocation or, with negative bytes, a release


def measure_tensor_growth(run: Callable[[], object]) -> int:
    """Measure by how many bytes the tensors alive at once grew during ``run``.

    Raises:
        OSError: This torch's profiler does not say.
    """
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        run()
    # Memory events that belong to an operator are only in the profiler's raw results.
    raw: Any = getattr(getattr(profile, "profiler", None), "kineto_results", None)
    if raw is None:
        raise OSError("torch's profiler does not list allocations")
    return compute_allocated_growth(event.nbytes() for event in raw.events() if event.name() == _MEMORY_EVENT)


def compute_allocated_growth(changes_bytes: Iterable[int]) -> int:
    """Compute the largest sum of leading allocations and releases; 0 when memory never grew."""
    return max(accumulate(changes_bytes, initial=0))


_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
_PROBE_BYTES = 1024 * 1024
# Python counts the blocks it has in use, and not their sizes: most are of 48 to 96 bytes.
_BLOCK_BYTES = 64


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def read_used() -> int:
    """Read the bytes in use.

    Raises:
        OSError: They are not counted: another C library than glibc from 2.33 on, or another allocator.
    """
    if not _is_counted():
        raise OSError("what is in use is counted by glibc from 2.33 on alone, with its own allocator")
    return _read_malloc() + _BLOCK_BYTES * sys.getallocatedblocks()


def _read_malloc() -> int:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Counts
    counts = libc.mallinfo2()
    return int(counts.uordblks + counts.hblkhd)


@cache
def _is_counted() -> bool:
    """Whether a block that is allocated shows: one of a preloaded allocator would not."""
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
