"""The first compiled call: wall time, CPU time, memory, and whether it compiled anything anew."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gate.errors import UsageError
from gate.installation import find_page
from gate.measure.compiler.graph import GraphReport
from gate.measure.device.device import Device
from gate.records import CacheUse, Metric

_NAMED_FRAMES = 2  # frames left to eager that a message names


class CacheStateError(Exception):
    """A cold compile found a full cache: the number would be another metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstCall:
    """One first call. Times in seconds; children are compilers that it started."""

    wall_s: float
    cpu_self_s: float
    cpu_children_s: float
    peak_bytes: int | None  # above what the process held before; None where it cannot be known


def time_first_call(step: Callable[[], Any], device: Device) -> FirstCall:
    """Call once and time it, the device synchronized on both sides.

    Garbage is collected just before. A full collection takes a quarter of a second for all of torch's
    objects, and what was made since the last one decides when it is due: whether it falls into a warm
    compile of 0.7 s would be chance. What the call itself makes due stays, since users pay for it too.
    """
    gc.collect()
    has_peak = _start_peak(device)
    device.synchronize()
    children, own, begun = _read_children_s(), time.process_time(), time.perf_counter()
    step()
    device.synchronize()
    wall_s = time.perf_counter() - begun
    return FirstCall(
        wall_s=wall_s,
        cpu_self_s=time.process_time() - own,
        cpu_children_s=_read_children_s() - children,
        peak_bytes=device.read_peak() if has_peak else None,
    )


def compute_compile_time(first_s: float, steady_s: float) -> float:
    """Compute the seconds that compiling added to a first call; ``steady_s`` is a usual call's."""
    return max(0.0, first_s - steady_s)


def check_cold(cache: CacheUse) -> None:
    """Check that a cold compile compiled: a graph may repeat within a model, so hits alone are no proof.

    Raises:
        CacheStateError: Every graph was found in the cache.
    """
    if cache.hits and not cache.misses:
        raise CacheStateError(f"the compile cache was not empty: {cache.hits} graphs were found in it")


def check_compiled(report: GraphReport) -> None:
    """Check that a compiled call compiled: else it is eager's, and no figure of it is a compiled one.

    A graph is what counts. One without kernels is fine: library calls and some backends need none.

    Raises:
        UsageError: There is no graph; Dynamo's reasons are in the message where it gives any.
    """
    if report.counts.get(Metric.UNIQUE_GRAPHS) != 0:  # what torch does not report is no finding
        return
    left = (" at ".join(filter(None, map(one.name, ("reason", "location")))) for one in report.skipped)
    frames = "; ".join(islice(left, _NAMED_FRAMES))
    why = frames or "it makes no tensors, or Dynamo is disabled or skips it"
    fix = f"Compile something, or leave the case out; what Dynamo skips: {find_page('adding-a-model')}."
    raise UsageError(f"nothing was compiled, 0 graphs: {why}", fix)


def _start_peak(device: Device) -> bool:
    try:
        device.start_peak()
    except OSError:  # a container may forbid writing to /proc/self/clear_refs
        return False
    return True


def _read_children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
