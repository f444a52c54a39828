"""Bytes that this process has in use: what was allocated and not freed, to the byte.

The resident set is no measure of a leak: pages stay behind, and come and go with the heap's holes. What the
allocators count is exact: glibc's ``mallinfo2`` counts tensors, arrays of NumPy, libraries and Python's
larger objects; Python counts the blocks of its own small ones.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
_PROBE_BYTES = 1024 * 1024
# Python tells how many blocks it has in use, and not their sizes: most are of 48 to 96 bytes.
_BLOCK_BYTES = 64


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def read_used() -> int:
    """Read the bytes in use.

    Raises:
        OSError: Nobody counts them: another C library than glibc from 2.33 on, or another allocator.
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
