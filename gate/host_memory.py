"""How much memory could be had now, as Linux tells; the standard library alone, since workers ask too."""

from __future__ import annotations

import re
from pathlib import Path

_INFO = Path("/proc/meminfo")
_CGROUPS = Path("/sys/fs/cgroup")
_KIB = 1024


def read_free_bytes() -> int:
    """Read how much memory could be had: the machine's, or what the container's limit leaves; 0: unknown.

    What a container uses includes files that were read, until their pages are needed; the inactive ones count
    as free, as for the kubelet's working set (kubernetes.io, "Node-pressure Eviction").
    """
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", read_text(_INFO), re.MULTILINE)
    available = int(found.group(1)) * _KIB if found else 0
    limit, used = (read_text(_CGROUPS / name).strip() for name in ("memory.max", "memory.current"))
    if available and limit.isdecimal() and used.isdecimal():
        return max(0, min(available, int(limit) - int(used) + _read_inactive_files()))
    return available


def _read_inactive_files() -> int:
    found = re.search(r"^inactive_file (\d+)$", read_text(_CGROUPS / "memory.stat"), re.MULTILINE)
    return int(found.group(1)) if found else 0


def read_text(path: Path) -> str:
    """Read what the kernel tells at a path; empty where it does not."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:  # another system than Linux
        return ""
