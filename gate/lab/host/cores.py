"""The cores that workers are held to: near their GPU, and shared with no other lane.

Where a host has several processors, a launch from the far one takes longer, and a worker that is moved
between them has two speeds. What several GPUs are near to is divided among them: under a neighbour's load
one kept 55 to 62 % of its throughput on shared cores, 92 % on its own (sgl-project/sglang-omni#1321).
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gate.errors import UsageError
from gate.lab.host.gpu import GpuState
from gate.programs import list_cores

_DEVICES = Path("/sys/bus/pci/devices")
_TOPOLOGY = Path("/sys/devices/system/cpu")
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


def find_own_cores(gpu: GpuState, gpus: Sequence[GpuState], threads: int) -> frozenset[int]:
    """Find the cores near a GPU that are its own: what is near to several is divided among them.

    So they are the same whether the others are in use or not. All that are near where a share has fewer than
    ``threads``. Where this process may not use all of those, somebody has divided them already. Empty where
    the system does not say.
    """
    near, allowed = find_near_cores(gpu.bus), frozenset(list_cores())
    if not near <= allowed:
        return near & allowed
    sharing = sorted(
        one.uuid
        for one in gpus
        if one.is_whole_lane and (one.bus == gpu.bus or find_near_cores(one.bus) == near)
    )
    if gpu.uuid not in sharing:
        return near
    share = divide_cores(near, len(sharing))[sharing.index(gpu.uuid)]
    return share if len(share) >= max(1, threads) else near


def divide_cores(cores: Iterable[int], parts: int, topology: Path = _TOPOLOGY) -> list[frozenset[int]]:
    """Divide cores into equal parts; the threads of one processor core stay together, a rest is left out."""
    together: dict[int, list[int]] = {}
    for core in sorted(cores):
        together.setdefault(_find_first_thread(core, topology), []).append(core)
    groups = list(together.values())
    size = len(groups) // parts
    return [
        frozenset(core for group in groups[part * size : (part + 1) * size] for core in group)
        for part in range(parts)
    ]


def share_cores(count: int, threads: int) -> list[tuple[int, ...]]:
    """Divide the cores that this process may use among so many lanes.

    Raises:
        UsageError: A lane would have fewer than ``threads``.
    """
    shares = [tuple(sorted(share)) for share in divide_cores(list_cores(), count)]
    if len(shares[0]) < max(1, threads):
        what = f"--lanes {count}: each lane needs {max(1, threads)} cores of its own, of {len(list_cores())}"
        raise UsageError(what, "Ask for fewer lanes, or for fewer `threads` in gate.yml.")
    return shares


def _find_first_thread(core: int, topology: Path) -> int:
    try:
        told = (topology / f"cpu{core}/topology/thread_siblings_list").read_text(encoding="ascii")
        return min(parse_cores(told), default=core)
    except (OSError, ValueError):
        return core


def parse_cores(text: str) -> frozenset[int]:
    """Parse a list of cores as the kernel writes it: ``0-15,32-47``.

    Raises:
        ValueError: It is none.
    """
    parts = (part.partition("-") for part in text.strip().split(",") if part)
    return frozenset(core for low, _, high in parts for core in range(int(low), int(high or low) + 1))


def write_cores(cores: Iterable[int]) -> str:
    """Write a list of cores as the kernel does: ``0-15,32-47``."""
    spans: list[list[int]] = []
    for core in sorted(cores):
        if spans and core == spans[-1][-1] + 1:
            spans[-1][1:] = [core]
        else:
            spans.append([core])
    return ",".join("-".join(map(str, span)) for span in spans)


@contextmanager
def stay_on(cores: Collection[int], threads: int) -> Iterator[None]:
    """Keep what is started within on these cores, unless there are fewer than ``threads`` that are allowed.

    Processes and threads inherit it.
    """
    before = os.sched_getaffinity(0)
    wanted = before.intersection(cores)
    if len(wanted) >= max(1, threads):
        os.sched_setaffinity(0, wanted)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
