"""What disturbed a trial on the host, from the host's counters before and after.

A disturbance is what the measured code cannot cause. The clock itself is not read: between two trials a core
idles. The kernel adds the counters up, so two samples are enough, and nothing wakes up while something is
measured. What the machine does not report is 0.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import psutil

from gate.lab.host.cores import CPUS
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
from gate.sizes import MIB

# Share of the worker's own cores that other programs wanted as well. A median over the blocks of a
# trial leaves out as much as this; beyond it, every block is interrupted and compiling waits.
CROWDING_LIMIT = 0.15
# Share of CPU time that the hypervisor took: beyond it, times follow the neighbours.
STEAL_LIMIT = 0.02
# Share of a trial for which the container's processor quota stopped it.
HELD_BACK_LIMIT = 0.01
# Less than this is the kernel tidying up.
SWAP_LIMIT_BYTES = 32 * MIB
# Share of a device's memory that is in use while no worker is alive. A display and the driver keep less; a
# stranger that a container hides from the list of processes shows by it.
FOREIGN_MEMORY_LIMIT = 0.05
# With less free memory the kernel takes pages from the page cache, and compilers are killed.
FREE_LIMIT_BYTES = 256 * MIB
# Programs are named that take a fourth of a core all the time: to stop a short one that has ended, or one of
# a tenth among many, helps nobody. Nor do more than three.
_CROWD_SHARE = 0.25
_MAX_CROWD = 3
ProgramTimes = Mapping[tuple[int, str], float]  # processor seconds since each began, by its pid and name
_MICRO, _NANO = 1e-6, 1e-9
_UNPRINTABLE = re.compile(r"[^A-Za-z0-9_.+-]")  # a process may call itself anything, and reports name it
_NAME_CHARS = 32
_CROWD_LOOKS, _CROWD_WATCH_S = 4, 0.7  # from look to look, 70 ticks of the kernel's clock: two seconds in all
_EARLY_LOOK_S = 0.25  # 25 ticks of each core
_WITH_CHILDREN = 4  # psutil's first times of a process: user and system, its own and its children's


@dataclass(frozen=True, kw_only=True, slots=True)
class HostSample:
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
    return replace(measured, disturbances=list_disturbances(measured, after.cores, threads))


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


def list_disturbances(conditions: Conditions, cores: int, threads: int) -> tuple[Disturbance, ...]:
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


def read_host() -> HostSample:
    cores = list_cores()
    times = psutil.cpu_times(percpu=True)
    # Offline cores leave gaps in the numbering: then all cores are looked at.
    mine = [times[core] for core in cores] if cores and max(cores) < len(times) else times
    return HostSample(
        at_s=time.monotonic(),
        cores=len(mine),
        busy_s=sum(core.user + core.system + getattr(core, "nice", 0.0) for core in mine),
        stolen_s=sum(getattr(core, "steal", 0.0) for core in mine),
        own_s=_read_own(),
        held_back_s=_read_held_back(),
        heat_events=_read_heat_events(cores),
        swapped_bytes=sum(read_counters(Path("/proc/vmstat"), "pswp").values()) * os.sysconf("SC_PAGE_SIZE"),
        free_bytes=read_free_bytes(),
    )


def read_crowd() -> tuple[str, ...]:
    """Watch for two seconds which programs keep the cores busy; empty where they are many short ones."""
    begun, looks = time.monotonic(), [_read_programs()]
    for _ in range(1, _CROWD_LOOKS):
        time.sleep(_CROWD_WATCH_S)
        looks.append(_read_programs())
    return name_crowd(looks, (time.monotonic() - begun) / (_CROWD_LOOKS - 1))


def look_early(threads: int) -> Conditions:
    before = read_host()
    time.sleep(_EARLY_LOOK_S)
    conditions = describe_host(Conditions(), (before, read_host()), threads)
    if Disturbance.CROWDED not in conditions.disturbances:
        return conditions
    return replace(conditions, crowd=read_crowd())


def _read_programs() -> ProgramTimes:
    """Without this process, its servers and workers, and without threads of the kernel."""
    ours = {os.getpid(), *list_descendants(os.getpid())}
    processes = psutil.process_iter(["name", "cpu_times", "cmdline"])
    return {
        (pid, _UNPRINTABLE.sub("?", info["name"] or "")[:_NAME_CHARS]): sum(info["cpu_times"][:2])
        for info, pid in ((process.info, process.pid) for process in processes)
        if pid not in ours and info["cpu_times"] and info["cmdline"] != []
    }


def _read_own() -> float:
    """Processor seconds of this process and its servers.

    Workers are children of a server: their time is the server's once they have ended.
    """
    times = os.times()
    total_s = times.user + times.system + times.children_user + times.children_system
    for server in list_descendants(os.getpid()):
        with suppress(psutil.Error):  # it ended meanwhile
            total_s += sum(psutil.Process(server).cpu_times()[:_WITH_CHILDREN])
    return total_s


def _read_held_back() -> float:
    """Seconds for which the processor quota stopped this process's container, since its start."""
    for path in list_cgroups():
        counters = read_counters(path / "cpu.stat")
        if "throttled_usec" in counters:
            return counters["throttled_usec"] * _MICRO
        if "throttled_time" in counters:  # version 1 counts nanoseconds
            return counters["throttled_time"] * _NANO
    return 0.0


def _read_heat_events(cores: Iterable[int]) -> int:
    paths = (CPUS / f"cpu{core}" / "thermal_throttle" / "core_throttle_count" for core in cores)
    texts = (read_text(path).strip() for path in paths)
    return sum(int(text) for text in texts if text.isdecimal())
