"""The processor cores that this process may use, by its affinity and by the quota of its control group."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

from gate.programs import read_text

_CGROUPS = Path("/sys/fs/cgroup")
_CONTROLLERS = ("", "cpu", "cpu,cpuacct")  # version 2, and what version 1 calls the one for cores


def list_cores() -> list[int]:
    """List the cores that this process may run on; empty where the system does not say."""
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no affinity
        return []


def count_cores(*, is_pinned: bool = False) -> int:
    """Count the cores that this process may keep busy: those of its affinity, as far as its quota goes.

    Where the lab itself ``is_pinned`` this process to some of them, the affinity does not count.
    """
    own = [] if is_pinned else list_cores()
    return min([len(own) or os.cpu_count() or 1, *_list_quotas()])


def list_cgroups() -> Iterable[Path]:
    """List where limits of this process may be: its own control group and those around it."""
    for line in read_text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", maxsplit=2)
        if controllers in _CONTROLLERS:
            own = Path(path.lstrip("/"))
            yield from (_CGROUPS / controllers / group for group in (own, *own.parents))
    yield from (_CGROUPS / one for one in _CONTROLLERS)


def _list_quotas() -> Iterable[int]:
    """The quota of each control group that has one, in cores; a part of one counts whole."""
    for path in list_cgroups():
        both = read_text(path / "cpu.max").split() or [
            read_text(path / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
        ]
        if all(one.isdecimal() and int(one) for one in both):  # "max" and "-1" are none
            quota, period = map(int, both)
            yield math.ceil(quota / period)
