"""Other processes: their time limit, asking a program, children, not outliving a parent; cores, memory.

Children that ended and were not waited for are listed too.
"""

import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

MOST_WALL_LIMITS = 4.0  # a program gets a quarter of a core at least, even where several others compute
HANG_SHARE = 0.01  # of a core: what only waits, or looks a few times a second, uses less
LONGEST_WAIT_S = 900.0  # a slow disk or download takes less; on a GPU four limits outlast the job
Clock = Callable[[], float]  # seconds since some moment
_LEAST_SLEEP_S, _LONGEST_SLEEP_S = 0.05, 3600.0  # a limit may be infinite, what sleeps may not take that


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeUse:
    """What a process has used. ``cpu_s`` is with all that it started."""

    wall_s: float
    cpu_s: float
    hangs: bool = False  # used less than HANG_SHARE of a core since the clock reached its limit, or later

    def __str__(self) -> str:
        """Say how it used its time up."""
        if self.hangs:
            return f"hangs ({self.cpu_s:,.1f} CPU seconds in {self.wall_s:,.0f} s)"
        return f"did not end in {self.cpu_s:,.1f} CPU seconds ({self.wall_s:,.0f} s by the clock)"


class TimeLimit:
    """Ends a process after so many CPU seconds of it and of all that it started.

    Several cores at once count no faster than the clock: what computes in parallel loses nothing. What waits
    ends at ``most_walls`` times the limit, or after ``LONGEST_WAIT_S`` of nothing else beyond the limit.
    """

    def __init__(
        self, pid: int, limit_s: float, most_walls: float = MOST_WALL_LIMITS, read_s: Clock = time.monotonic
    ) -> None:
        """Begin to count; ``read_s`` reads the clock, which may stand still meanwhile."""
        self._pid, self._limit_s, self._most_s, self._read_s = pid, limit_s, most_walls * limit_s, read_s
        self._begun_s, self._cpu_begun_s = read_s(), read_cpu_s(pid)
        self._earlier: TimeUse | None = None  # at the limit, or a LONGEST_WAIT_S later in which it computed

    def compute_left_s(self) -> float:
        """Compute after how many seconds to look again; 0 once the time is up."""
        left_s = self._limit_s - (self._read_s() - self._begun_s)
        if left_s <= 0:
            use = self.read_use()
            earlier = self._earlier or use
            if not use.hangs and use.wall_s - earlier.wall_s >= LONGEST_WAIT_S:
                earlier = use
            self._earlier = earlier
            wait_left_s = LONGEST_WAIT_S - (use.wall_s - earlier.wall_s)
            left_s = min(self._limit_s - use.cpu_s, self._most_s - use.wall_s, wait_left_s)
        return min(max(left_s, _LEAST_SLEEP_S), _LONGEST_SLEEP_S) if left_s > 0 else 0.0

    def read_use(self) -> TimeUse:
        """Read what it has used since the limit began."""
        wall_s, cpu_s = self._read_s() - self._begun_s, read_cpu_s(self._pid) - self._cpu_begun_s
        then = self._earlier
        waits = then is not None and cpu_s - then.cpu_s < HANG_SHARE * (wall_s - then.wall_s)
        hangs = waits and cpu_s < self._limit_s  # what used them up in time did not wait
        return TimeUse(wall_s=wall_s, cpu_s=cpu_s, hangs=hangs)


_LAST_LINES = 3  # of an error: the exception and what raised it
_LAST_CHARS = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramAnswer:
    """What a program said. ``problem`` is why it did not end by itself: it was not run, or took too long."""

    status: int = -1
    raw: bytes = b""  # what it printed
    err: str = ""
    problem: str = ""
    is_late: bool = False  # its time was up

    @property
    def out(self) -> str:
        """What it printed, as text."""
        return self.raw.decode(errors="replace")

    @property
    def output(self) -> str:
        """What it printed, stripped; empty where it failed."""
        return self.out.strip() if self.status == 0 else ""

    def read_record(self) -> dict[str, Any]:
        """The JSON object of the last line that it printed; empty without one."""
        try:
            found = json.loads(self.out.splitlines()[-1])
        except (IndexError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def describe_end(self) -> str:
        """Describe how it ended without an answer: its signal or status, and the last lines of its errors."""
        if self.problem or not self.status:
            return self.problem or "gave no answer"
        name = f"status {self.status}"
        with suppress(ValueError):  # a signal has a name, unless it is a real-time one
            name = signal.Signals(-self.status).name
        lines = ["".join(filter(str.isprintable, line)).strip() for line in self.err.splitlines()]
        said = " / ".join([line for line in lines if line][-_LAST_LINES:])[-_LAST_CHARS:]
        return f"died ({name}): {said or 'it wrote no error'}"


def ask_program(
    command: Sequence[str],
    *,
    limit_s: float,
    given: bytes = b"",
    directory: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> ProgramAnswer:
    """Run a program to its end, or to its :class:`TimeLimit`: then all that it started ends with it.

    ``given`` is its standard input, ``variables`` all of its environment.
    """
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, cwd=directory, env=variables, stdin=pipe, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        return ProgramAnswer(problem=f"cannot be run: {error.strerror}")
    with process:
        limit = TimeLimit(process.pid, limit_s)
        try:
            while left_s := limit.compute_left_s():
                with suppress(subprocess.TimeoutExpired):
                    raw, err = process.communicate(given, left_s)
                    return ProgramAnswer(status=process.returncode, raw=raw, err=err.decode(errors="replace"))
                given = b""  # it is sent on
            return ProgramAnswer(problem=str(limit.read_use()), is_late=True)
        finally:
            family = [*list_descendants(process.pid), process.pid] if process.poll() is None else []
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


_PROC = Path("/proc")
_TASKS = "task"  # a directory for each thread; a child is listed with the thread that started it


def list_children(pid: int) -> list[int]:
    """List the children of ``pid``; none of a process that is gone."""
    try:
        lists = [(task / "children").read_text() for task in (_PROC / str(pid) / _TASKS).iterdir()]
    except OSError:  # a thread ended meanwhile, or a kernel without CONFIG_PROC_CHILDREN
        return list(_search_children(pid))
    return [int(child) for text in lists for child in text.split()]


def list_descendants(pid: int) -> list[int]:
    """List the children of ``pid``, theirs, and so on."""
    children = list_children(pid)
    return [*children, *(below for child in children for below in list_descendants(child))]


def read_cpu_s(pid: int) -> float:
    """Read the CPU seconds of a process and of all that it started; 0 of one that is gone."""
    # After the name, in brackets, that may hold anything, as fields 12 to 15: its user and system time, and
    # those of its children that ended, in ticks (proc(5)).
    stats = [read_text(_PROC / str(one) / "stat") for one in (pid, *list_descendants(pid))]
    ticks = [tick for stat in stats for tick in stat.rpartition(")")[2].split()[11:15]]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _search_children(pid: int) -> Iterator[int]:
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            # After the name, in brackets, that may hold anything: the state, then the parent (proc(5)).
            parent = path.read_text(errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == pid:
                yield int(path.parent.name)


@contextmanager
def answer_signals(
    answer: Callable[[int, FrameType | None], object],
    numbers: Collection[int] = (signal.SIGINT, signal.SIGTERM),
) -> Iterator[None]:
    """Let ``answer`` handle these signals within, and who did before after it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers belong to the main thread: nothing can interrupt this one
        return
    previous = {number: signal.signal(number, answer) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


_CGROUPS = Path("/sys/fs/cgroup")


def read_free_bytes() -> int:
    """Read how much memory could be had: the machine's, or what the container's limit leaves, at least 1.

    What a container uses includes files that were read, until their pages are needed; the inactive ones count
    as free, as for the kubelet's working set (kubernetes.io, "Node-pressure Eviction").
    """
    import psutil  # noqa: PLC0415 - takes as long as `--help`

    available: int = psutil.virtual_memory().available
    limit, used = (read_text(_CGROUPS / name).strip() for name in ("memory.max", "memory.current"))
    if limit.isdecimal() and used.isdecimal():
        inactive = read_counters(_CGROUPS / "memory.stat", "inactive_file").get("inactive_file", 0)
        return max(1, min(available, int(limit) - int(used) + inactive))
    return available


def read_text(path: Path) -> str:
    """Read what the kernel writes at a path; empty where it does not."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:  # a kernel that has no such thing
        return ""


def read_counters(path: Path, prefix: str = "") -> dict[str, int]:
    """Read the counters that the kernel writes at a path, one a line, of names that begin so."""
    # Only what is asked for is parsed: of some 170 lines of /proc/vmstat that would take a quarter of a look.
    rows = (line.split() for line in read_text(path).splitlines() if line.startswith(prefix))
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}  # noqa: PLR2004


_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_ORPHANED = 1  # exit status; its reader is gone


def die_with_parent(parent: int) -> None:
    """See to it that this process is killed when process ``parent``, which started it, ends.

    The kernel watches the thread that started this process, so workers must be started by a thread that
    lives as long as they do.
    """
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(_ORPHANED)


def end_process(status: int) -> NoReturn:
    """End at once: taking torch's libraries down takes more than a second, and all is on disk."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


_CONTROLLERS = ("", "cpu", "cpu,cpuacct")  # version 2, and what version 1 calls the one for cores


def list_cores() -> list[int]:
    """List the cores that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def count_cores(*, is_pinned: bool = False) -> int:
    """Count the cores that this process may keep busy: those of its affinity, as far as its quota goes.

    Where the lab itself ``is_pinned`` this process to some of them, the affinity does not count.
    """
    own = os.cpu_count() or 1 if is_pinned else len(list_cores())
    return min([own, *_list_quotas()])


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
