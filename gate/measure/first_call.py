"""The first compiled call: its time, its processors' time, its memory."""

import gc
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gate.measure.device.device import Device


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstCall:
    """Times are in seconds; children are compilers that the call started."""

    wall_s: float
    cpu_self_s: float
    cpu_children_s: float
    peak_bytes: int | None  # above what the process held before; None where it cannot be known


def time_first_call(step: Callable[[], Any], device: Device) -> FirstCall:
    """Time one call, with the device synchronized around it.

    Garbage is collected just before: a full collection takes a quarter of a second for all of torch's
    objects, and chance would put it into a warm compile of 0.7 s or not. Collections that the call itself
    makes due stay.
    """
    gc.collect()
    has_peak = _start_peak(device)
    device.synchronize()
    children, self_s, begun = _read_children_s(), time.process_time(), time.perf_counter()
    step()
    device.synchronize()
    wall_s = time.perf_counter() - begun
    return FirstCall(
        wall_s=wall_s,
        cpu_self_s=time.process_time() - self_s,
        cpu_children_s=_read_children_s() - children,
        peak_bytes=device.read_peak() if has_peak else None,
    )


def compute_compile_time(first_s: float, steady_s: float) -> float:
    return max(0.0, first_s - steady_s)


def _start_peak(device: Device) -> bool:
    try:
        device.start_peak()
    except OSError:  # a container may forbid writing to /proc/self/clear_refs
        return False
    return True


def _read_children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
