"""What the host counts by itself: CPU time, memory, swapping, throttling.

All of it adds up in the kernel, so a look before a trial and one after it tell of all that happened
between, and nothing wakes up while something is measured. Where the machine does not tell, it is 0.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from gate.lab.host.fitness import HostSample, ProgramTimes, name_crowd
from gate.programs import list_cgroups, list_cores, list_descendants, read_free_bytes, read_text

_CPUS = Path("/sys/devices/system/cpu")
_MICRO, _NANO = 1e-6, 1e-9
_UNPRINTABLE = re.compile(r"[^A-Za-z0-9_.+-]")  # a process may call itself anything, and reports name it
_NAME_CHARS = 32
_CROWD_WATCH_S = 0.5  # fifty ticks of the kernel's clock
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
        swapped_bytes=_read_swapped(),
        free_bytes=read_free_bytes() or int(psutil.virtual_memory().available),
        temperature_c=_read_temperature(),
    )


def find_crowd() -> tuple[str, ...]:
    """Watch for a moment which other programs keep the cores busy: asked where a host was found crowded."""
    before, begun = _read_programs(), time.monotonic()
    time.sleep(_CROWD_WATCH_S)
    return name_crowd(before, _read_programs(), time.monotonic() - begun)


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
        counters = _parse_counters(read_text(path / "cpu.stat"))
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


def _read_swapped() -> int:
    """Bytes moved to and from swap since boot, on the whole host."""
    # Two of some 170 counters: to parse them all takes a quarter of the whole look.
    lines = (line for line in read_text(Path("/proc/vmstat")).splitlines() if line.startswith("pswp"))
    return sum(_parse_counters("\n".join(lines)).values()) * os.sysconf("SC_PAGE_SIZE")


def _read_temperature() -> float:
    """The hottest sensor of a processor, in degrees Celsius."""
    read = getattr(psutil, "sensors_temperatures", None)  # Linux and FreeBSD only
    sensors = read() if read else {}
    hot = [one.current for name in _PROCESSOR_SENSORS for one in sensors.get(name, ())]
    return float(max(hot, default=0.0))


_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


def _parse_counters(text: str) -> dict[str, int]:
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}  # noqa: PLR2004
