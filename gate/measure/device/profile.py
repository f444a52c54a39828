"""What a profiler saw of a few calls: what the host launched, and what the device did for how long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PROFILED_CALLS = 5  # untimed; as many show whether each call launches the same
MAX_KERNELS = 16  # named, those that take longest; the rest is summed
OTHERS = "others"
_MAX_NAME = 120  # characters: names of library kernels have all their template's arguments in them
_US = 1e-6
_DIGITS = 4
# Of CUDA's runtime and driver: cudaLaunchKernel, cuLaunchKernelEx, cudaMemcpyAsync, cudaGraphLaunch, ...
_LAUNCH = re.compile(r"cu(da)?(Launch|GraphLaunch|Memcpy|Memset)")
_GRAPH_LAUNCH = re.compile(r"cu(da)?GraphLaunch")
_COPY = re.compile(r"cu(da)?Memcpy")


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceProfile:
    """What a device does in one call; None where the profiler does not say."""

    utilization: float | None = None  # share of a call's wall time in which it ran kernels
    launches: int | None = None  # by the host: kernels, copies, fills, and CUDA graphs as one each
    graph_launches: int | None = None  # of CUDA graphs
    copies: int | None = None
    device_s: float | None = None  # that its kernels, copies and fills took together
    kernels_s: Mapping[str, float] = field(default_factory=dict)  # of one call, longest first


def summarize_profile(events: Iterable[Any], calls: int, call_s: float) -> DeviceProfile:
    """Summarize the averages of ``torch.profiler`` over so many calls; one takes ``call_s`` unwatched.

    The host's side lists what it asked the driver for; the device's side lists what ran. A number of
    launches that differs between calls is unknown: it is no property of the program.
    """
    host: Counter[str] = Counter()
    device_s: dict[str, float] = {}
    for event in events:
        if event.device_type.name == "CPU":
            host[event.key] += event.count
        elif event.self_device_time_total:  # the host's side repeats this time
            name = event.key[:_MAX_NAME]
            device_s[name] = device_s.get(name, 0.0) + event.self_device_time_total * _US / calls
    launches, graphs, copies = (_count(host, kind, calls) for kind in (_LAUNCH, _GRAPH_LAUNCH, _COPY))
    is_known = bool(launches) and graphs is not None
    total_s = sum(device_s.values())
    return DeviceProfile(
        utilization=min(1.0, total_s / call_s) if total_s else None,
        launches=launches if is_known else None,
        graph_launches=graphs if is_known else None,
        copies=copies if is_known else None,
        device_s=total_s or None,
        kernels_s=_name_longest(device_s),
    )


def _count(host: Mapping[str, int], kind: re.Pattern[str], calls: int) -> int | None:
    """Count what a call asks for of a kind; None where calls differ."""
    total = sum(count for name, count in host.items() if kind.match(name))
    return None if total % calls else total // calls


def _name_longest(device_s: Mapping[str, float]) -> dict[str, float]:
    names = sorted(device_s, key=lambda name: device_s[name], reverse=True)
    named = {name: device_s[name] for name in names[:MAX_KERNELS]}
    if len(names) > MAX_KERNELS:
        named[OTHERS] = sum(device_s[name] for name in names[MAX_KERNELS:])
    return {name: float(f"{seconds:.{_DIGITS}g}") for name, seconds in named.items()}
