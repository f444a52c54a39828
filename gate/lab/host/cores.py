"""The cores that workers are kept on.

A launch from a far processor takes longer, so workers stay on the cores near their GPU. Cores that are near
several GPUs are divided: under a neighbour's load a GPU kept 55 to 62 % of its throughput on shared cores,
92 % on its own (sgl-project/sglang-omni#1321).
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gate.errors import UsageError
from gate.lab.host.gpu import GpuState
from gate.programs import list_cores, read_text

CPUS = Path("/sys/devices/system/cpu")
_DEVICES = Path("/sys/bus/pci/devices")
_DOMAIN_CHARS = 4  # nvidia-smi writes eight: 00000000:17:00.0


def read_near_cores(bus: str) -> frozenset[int]:
    """``bus`` is a PCI address in nvidia-smi; empty where the system does not report its cores."""
    domain, _, rest = bus.lower().partition(":")
    directory = _DEVICES / f"{domain[-_DOMAIN_CHARS:]}:{rest}"
    return parse_cores(read_text(directory / "local_cpulist")) if rest else frozenset()


def choose_cores(gpu: GpuState, gpus: Sequence[GpuState], threads: int) -> frozenset[int]:
    """Choose a GPU's share of the cores near it, whether the other GPUs are in use or not.

    All that are near where a share has fewer than ``threads``; those allowed where they were divided before.
    """
    near, allowed = read_near_cores(gpu.bus), frozenset(list_cores())
    if not near <= allowed:
        return near & allowed
    sharing = sorted(
        neighbour.uuid
        for neighbour in gpus
        if neighbour.is_whole_lane and (neighbour.bus == gpu.bus or read_near_cores(neighbour.bus) == near)
    )
    if gpu.uuid not in sharing:
        return near
    share = divide_cores(near, len(sharing))[sharing.index(gpu.uuid)]
    return share if len(share) >= max(1, threads) else near


def divide_cores(cores: Iterable[int], parts: int) -> list[frozenset[int]]:
    """Divide into equal parts; hyperthreads of one core stay together, a rest is left out."""
    together: dict[int, list[int]] = {}
    for core in sorted(cores):
        siblings = parse_cores(read_text(CPUS / f"cpu{core}/topology/thread_siblings_list"))
        together.setdefault(min(siblings, default=core), []).append(core)
    groups = list(together.values())
    size = len(groups) // parts
    return [
        frozenset(core for group in groups[part * size : (part + 1) * size] for core in group)
        for part in range(parts)
    ]


def share_cores(count: int, threads: int) -> list[tuple[int, ...]]:
    """Divide the cores that this process may use among ``count`` lanes.

    Raises:
        UsageError: A lane would have fewer than ``threads``.
    """
    shares = [tuple(sorted(share)) for share in divide_cores(list_cores(), count)]
    if len(shares[0]) < max(1, threads):
        what = f"--lanes {count}: each lane needs {max(1, threads)} cores of its own, of {len(list_cores())}"
        raise UsageError(what, "Ask for fewer lanes, or for fewer `threads` in gate.yml.")
    return shares


def parse_cores(text: str) -> frozenset[int]:
    """``0-15,32-47``, as the kernel writes it; empty where it writes anything else."""
    parts = (part.partition("-") for part in text.strip().split(",") if part)
    try:
        return frozenset(core for low, _, high in parts for core in range(int(low), int(high or low) + 1))
    except ValueError:
        return frozenset()


def write_cores(cores: Iterable[int]) -> str:
    """As the kernel does: ``0-15,32-47``."""
    spans: list[list[int]] = []
    for core in sorted(cores):
        if spans and core == spans[-1][-1] + 1:
            spans[-1][1:] = [core]
        else:
            spans.append([core])
    return ",".join("-".join(map(str, span)) for span in spans)


@contextmanager
def stay_on(cores: Collection[int], threads: int) -> Iterator[None]:
    """Keep what is started within on these cores, unless fewer than ``threads`` of them are allowed."""
    before = os.sched_getaffinity(0)
    wanted = before.intersection(cores)
    if len(wanted) >= max(1, threads):
        os.sched_setaffinity(0, wanted)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
