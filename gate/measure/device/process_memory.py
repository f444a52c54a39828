"""Memory of this process as Linux accounts it. Torch-free.

The high-water mark ``VmHWM`` can be reset, and unlike ``ru_maxrss`` it is not inherited from the
process that started this one.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import re
from pathlib import Path

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

KIB = 1024


def parse_status(text: str, key: str) -> int:
    """Parse a size in bytes from ``/proc/self/status``.

    Raises:
        OSError: There is no such line.
    """
    found = re.search(rf"^{re.escape(key)}:\s+(\d+) kB$", text, re.MULTILINE)
    if not found:
        raise OSError(f"/proc/self/status has no {key}")
    return int(found.group(1)) * KIB


def compute_resident_growth(before: str, after: str) -> int:
    """Compute by how much the peak exceeded the resident set of before, from two status texts."""
    return max(0, parse_status(after, "VmHWM") - parse_status(before, "VmRSS"))


def reset_peak() -> str:
    """Reset the high-water mark; return the status of before it, for :func:`compute_resident_growth`.

    Raises:
        OSError: This kernel, or this container, does not show a process its peak or let it be reset.
    """
    _CLEAR_REFS.write_text(_RESET_PEAK)
    status = read_status()
    parse_status(status, "VmHWM")
    return status


def read_status() -> str:
    """Read ``/proc/self/status``."""
    return _STATUS.read_text()


def settle_heap() -> None:
    """Give free memory back to the system and from now on do so for every large block.

    This slows allocation down, so nothing may be timed afterwards. Without glibc nothing happens.
    """
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_MAX, _MMAP_MAX)
        libc.mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        libc.mallopt(_M_TOP_PAD, _TOP_PAD_BYTES)
    trim_heap()


def can_hold_memory() -> bool:
    """Whether :func:`hold_freed_memory` does something here."""
    return hasattr(ctypes.CDLL(None), "mallopt")


def hold_freed_memory() -> None:
    """Keep freed memory in this process from now on. Without glibc nothing happens.

    glibc gives large freed blocks back to the kernel and takes them again at every call, or at none, as
    the heap happens to lie: one program took 0 to 12,000 page faults a call and 7 to 25 ms, settled for the
    life of its process. Held, it takes none in any process.
    """
    if can_hold_memory():
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
        libc.mallopt(_M_MMAP_MAX, 0)


def trim_heap() -> None:
    """Give the pages of free blocks back: what takes them up again shows as growth."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def read_cpu_model() -> str:
    """Read the CPU's model name, or its architecture where there is none."""
    return _read_cpu_field("model name") or platform.machine()


def _read_cpu_field(name: str) -> str:
    try:
        text = _CPU_INFO.read_text()
    except OSError:
        return ""
    found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""
