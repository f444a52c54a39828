"""The cores that are near a GPU: workers stay on them, the arms of a pair alike.

Where a host has several processors, a launch from the far one takes longer, and a worker that is moved
between them has two speeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DEVICES = Path("/sys/bus/pci/devices")
_DOMAIN_CHARS = 4  # nvidia-smi writes eight: 00000000:17:00.0


def find_near_cores(bus: str, devices: Path = _DEVICES) -> frozenset[int]:
    """Find the cores of the node that a PCI device is attached to, by the address that nvidia-smi tells.

    Empty where the system does not say.
    """
    domain, _, rest = bus.lower().partition(":")
    if not rest:
        return frozenset()
    try:
        told = (devices / f"{domain[-_DOMAIN_CHARS:]}:{rest}" / "local_cpulist").read_text(encoding="ascii")
        return parse_cores(told)
    except (OSError, ValueError):
        return frozenset()


def parse_cores(text: str) -> frozenset[int]:
    """Parse a list of cores as the kernel writes it: ``0-15,32-47``.

    Raises:
        ValueError: It is none.
    """
    parts = (part.partition("-") for part in text.strip().split(",") if part)
    return frozenset(core for low, _, high in parts for core in range(int(low), int(high or low) + 1))


@contextmanager
def stay_near(bus: str, threads: int) -> Iterator[None]:
    """Keep what is started within on the cores near a device, unless there are fewer than ``threads``.

    Processes and threads inherit it. Nothing changes where the system does not say which are near, or cannot
    hold anybody to them.
    """
    if not hasattr(os, "sched_setaffinity"):  # macOS has no affinity
        yield
        return
    before = os.sched_getaffinity(0)
    near = find_near_cores(bus) & before
    if len(near) >= max(1, threads):
        os.sched_setaffinity(0, near)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
