"""Other programs on the host: kept off workers by cores of their own, and seen by looks around a trial.

Where a host has several processors, a launch from the far one takes longer, and a worker that is moved
between them has two speeds. So workers are held to the cores near their GPU. What several GPUs are near to
is divided among them: under a neighbour's load one kept 55 to 62 % of its throughput on shared cores, 92 %
on its own (sgl-project/sglang-omni#1321).

A disturbance is one that the measured code cannot cause: time that other programs or the hypervisor
took, clocks lowered for heat, a quota that stopped the worker, memory that ran out. The clock itself is
not looked at: between two trials a core idles and its clock says nothing of the trial.

What the host counts adds up in the kernel, so two looks tell of all that happened between, and nothing
wakes up while something is measured. Where the machine does not tell, it is 0.
"""

import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import psutil

from gate.errors import UsageError
from gate.lab.host.gpu import GpuState
from gate.programs import (
    list_cgroups,
    list_cores,
    list_descendants,
    read_counters,
    read_free_bytes,
    read_text,
)
from gate.records.facts import Disturbance
from gate.records.run import EXPECTED_THROTTLING, Conditions

_CPUS = Path("/sys/devices/system/cpu")
_DEVICES = Path("/sys/bus/pci/devices")
_DOMAIN_CHARS = 4  # nvidia-smi writes eight: 00000000:17:00.0


def find_near_cores(bus: str) -> frozenset[int]:
    """Find the cores of the node that a PCI device is attached to, by the address that nvidia-smi tells.

    Empty where the system does not say.
    """
    domain, _, rest = bus.lower().partition(":")
    place = _DEVICES / f"{domain[-_DOMAIN_CHARS:]}:{rest}"
    return parse_cores(read_text(place / "local_cpulist")) if rest else frozenset()


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


def divide_cores(cores: Iterable[int], parts: int) -> list[frozenset[int]]:
    """Divide cores into equal parts; the threads of one processor core stay together, a rest is left out."""
    together: dict[int, list[int]] = {}
    for core in sorted(cores):
        siblings = parse_cores(read_text(_CPUS / f"cpu{core}/topology/thread_siblings_list"))
        together.setdefault(min(siblings, default=core), []).append(core)
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


def parse_cores(text: str) -> frozenset[int]:
    """Parse a list of cores as the kernel writes it: ``0-15,32-47``; empty where it writes anything else."""
    parts = (part.partition("-") for part in text.strip().split(",") if part)
    try:
        return frozenset(core for low, _, high in parts for core in range(int(low), int(high or low) + 1))
    except ValueError:
        return frozenset()


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


# Share of the worker's own cores that other programs wanted as well. A median over the blocks of a
# trial leaves out as much as this; beyond it, every block is interrupted and compiling waits.
CROWDING_LIMIT = 0.15
# Share of CPU time that the hypervisor took: beyond it, times follow the neighbours.
STEAL_LIMIT = 0.02
# Share of a trial for which the container's processor quota stopped it.
HELD_BACK_LIMIT = 0.01
# Less than this is the kernel tidying up.
SWAP_LIMIT_BYTES = 32 * 2**20
# Share of a device's memory that is in use while no worker is alive. A display and the driver keep less; a
# stranger that a container hides from the list of processes shows by it.
FOREIGN_MEMORY_LIMIT = 0.05
# With less free memory the kernel takes pages from the page cache, and compilers are killed.
FREE_LIMIT_BYTES = 256 * 2**20
# Programs are named that take a fourth of a core all the time: to stop a short one that has ended, or one of
# a tenth among many, helps nobody. Nor do more than three.
_CROWD_SHARE = 0.25
_MAX_CROWD = 3

ProgramTimes = Mapping[tuple[int, str], float]  # processor seconds since each began, by its pid and name


@dataclass(frozen=True, kw_only=True, slots=True)
class HostSample:
    """The host's counters at one moment, since boot; of the cores that workers may run on."""

    at_s: float  # of a clock that only goes forward
    cores: int = 1
    busy_s: float = 0.0  # processor seconds of all programs
    stolen_s: float = 0.0  # processor seconds that the hypervisor kept
    own_s: float = 0.0  # processor seconds of this process, its servers, and their workers that have ended
    held_back_s: float = 0.0
    heat_events: int = 0
    swapped_bytes: int = 0  # to and from swap, on the whole host
    free_bytes: int = 0
    foreign_memory: float = 0.0  # share of the device's memory in use, though no worker is alive


def describe_host(conditions: Conditions, samples: tuple[HostSample, HostSample], threads: int) -> Conditions:
    """Add to a trial's conditions what happened between two samples, and what of it disturbed the trial.

    ``threads`` is the number of cores that the worker itself keeps busy.
    """
    before, after = samples
    wall_s = max(after.at_s - before.at_s, 1e-9)
    foreign_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    measured = replace(
        conditions,
        foreign_cores=max(0.0, foreign_s / wall_s),
        stolen=max(0.0, (after.stolen_s - before.stolen_s) / (wall_s * after.cores)),
        held_back=max(0.0, (after.held_back_s - before.held_back_s) / wall_s),
        heat_events=max(0, after.heat_events - before.heat_events),
        swapped_bytes=max(0, after.swapped_bytes - before.swapped_bytes),
        free_bytes=min(before.free_bytes, after.free_bytes),
        foreign_memory=max(before.foreign_memory, after.foreign_memory),
    )
    return replace(measured, disturbances=find_disturbances(measured, after.cores, threads))


def name_crowd(looks: Sequence[ProgramTimes], apart_s: float) -> tuple[str, ...]:
    """Name the programs that were busy between all looks, with the least share of a core of each."""
    lived = [key for key in looks[-1] if all(key in look for look in looks)]
    shares = {
        key: min(after[key] - before[key] for before, after in pairwise(looks)) / apart_s for key in lived
    }
    busiest = sorted(shares, key=lambda key: -shares[key])[:_MAX_CROWD]
    return tuple(
        f"{name} (pid {pid}, {100 * shares[pid, name]:.0f} %)"
        for pid, name in busiest
        if shares[pid, name] >= _CROWD_SHARE
    )


def find_disturbances(conditions: Conditions, cores: int, threads: int) -> tuple[Disturbance, ...]:
    """Find what made the host unfit; nothing where it was fit."""
    looks = {
        Disturbance.CROWDED: compute_crowding(conditions.foreign_cores, cores, threads) > CROWDING_LIMIT,
        Disturbance.STOLEN: conditions.stolen > STEAL_LIMIT,
        Disturbance.HELD_BACK: conditions.held_back > HELD_BACK_LIMIT,
        Disturbance.HEATED: conditions.heat_events > 0,
        Disturbance.SWAPPED: conditions.swapped_bytes > SWAP_LIMIT_BYTES,
        Disturbance.SHORT_OF_MEMORY: 0 < conditions.free_bytes < FREE_LIMIT_BYTES,
        Disturbance.THROTTLED: not EXPECTED_THROTTLING.issuperset(conditions.throttled),
        Disturbance.SHARED: conditions.foreign_processes > 0,
        Disturbance.HELD_MEMORY: conditions.foreign_memory > FOREIGN_MEMORY_LIMIT,
    }
    return tuple(disturbance for disturbance, is_disturbed in looks.items() if is_disturbed)


def compute_crowding(foreign_cores: float, cores: int, threads: int) -> float:
    """Share of the worker's cores that others wanted too: what does not fit on the cores left over."""
    spare = max(0, cores - threads)
    return max(0.0, foreign_cores - spare) / max(1, min(threads, cores))


_MICRO, _NANO = 1e-6, 1e-9
_UNPRINTABLE = re.compile(r"[^A-Za-z0-9_.+-]")  # a process may call itself anything, and reports name it
_NAME_CHARS = 32
_CROWD_LOOKS, _CROWD_WATCH_S = 4, 0.7  # from look to look, 70 ticks of the kernel's clock: two seconds in all
_EARLY_LOOK_S = 0.25  # 25 ticks of each core
_WITH_CHILDREN = 4  # psutil's first times of a process: user and system, its own and its children's


def read_host() -> HostSample:
    """Read the host's counters; takes a millisecond or two."""
    cores = list_cores()
    times = psutil.cpu_times(percpu=True)
    # Offline cores leave gaps in the numbering: then all cores are looked at.
    mine = [times[core] for core in cores] if cores and max(cores) < len(times) else times
    return HostSample(
        at_s=time.monotonic(),
        cores=len(mine),
        busy_s=sum(one.user + one.system + getattr(one, "nice", 0.0) for one in mine),
        stolen_s=sum(getattr(one, "steal", 0.0) for one in mine),
        own_s=_read_own(),
        held_back_s=_read_held_back(),
        heat_events=_read_heat_events(cores),
        swapped_bytes=sum(read_counters(Path("/proc/vmstat"), "pswp").values()) * os.sysconf("SC_PAGE_SIZE"),
        free_bytes=read_free_bytes(),
    )


def find_crowd() -> tuple[str, ...]:
    """Watch for two seconds which other programs keep the cores busy: asked where a host was found crowded.

    None where they are many short ones.
    """
    begun, looks = time.monotonic(), [_read_programs()]
    for _ in range(1, _CROWD_LOOKS):
        time.sleep(_CROWD_WATCH_S)
        looks.append(_read_programs())
    return name_crowd(looks, (time.monotonic() - begun) / (_CROWD_LOOKS - 1))


def look_early(threads: int) -> Conditions:
    """Look for a moment how busy the cores are before anything is measured, and by what."""
    before = read_host()
    time.sleep(_EARLY_LOOK_S)
    conditions = describe_host(Conditions(), (before, read_host()), threads)
    if Disturbance.CROWDED not in conditions.disturbances:
        return conditions
    return replace(conditions, crowd=find_crowd())


def _read_programs() -> ProgramTimes:
    """The processor seconds of all processes but this one, its servers and their workers.

    Threads of the kernel have no command line. They work for others, and nobody can stop them.
    """
    own = {os.getpid(), *list_descendants(os.getpid())}
    found = ((one.info, one.pid) for one in psutil.process_iter(["name", "cpu_times", "cmdline"]))
    return {
        (pid, _UNPRINTABLE.sub("?", info["name"] or "")[:_NAME_CHARS]): sum(info["cpu_times"][:2])
        for info, pid in found
        if pid not in own and info["cpu_times"] and info["cmdline"] != []
    }


def _read_own() -> float:
    """Processor seconds of this process, its servers, and all that these have waited for.

    Workers are children of a server: their time is the server's once they have ended.
    """
    own = os.times()
    total_s = own.user + own.system + own.children_user + own.children_system
    for server in list_descendants(os.getpid()):
        with suppress(psutil.Error):  # it ended meanwhile
            total_s += sum(psutil.Process(server).cpu_times()[:_WITH_CHILDREN])
    return total_s


def _read_held_back() -> float:
    """Seconds for which the processor quota of this process's container stopped it, since its start."""
    for path in list_cgroups():
        counters = read_counters(path / "cpu.stat")
        if "throttled_usec" in counters:
            return counters["throttled_usec"] * _MICRO
        if "throttled_time" in counters:  # version 1 counts nanoseconds
            return counters["throttled_time"] * _NANO
    return 0.0


def _read_heat_events(cores: Iterable[int]) -> int:
    """How often these cores have lowered their clock for heat, since boot."""
    places = (_CPUS / f"cpu{core}" / "thermal_throttle" / "core_throttle_count" for core in cores)
    texts = (read_text(place).strip() for place in places)
    return sum(int(text) for text in texts if text.isdecimal())
