"""Other processes: time limits, running a program, children and parents; cores, memory."""

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
_LAST_LINES = 3  # of an error: the exception and what raised it
_LAST_CHARS = 300
_PROC = Path("/proc")
_TASKS = "task"  # a directory for each thread; a child is listed with the thread that started it
_CGROUPS = Path("/sys/fs/cgroup")
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_ORPHANED = 1  # exit status; its reader is gone
_CONTROLLERS = ("", "cpu", "cpu,cpuacct")  # version 2, and what version 1 calls the one for cores


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeUse:
    """``cpu_s`` is with all that the process started."""

    wall_s: float
    cpu_s: float
    hangs: bool = False  # used less than HANG_SHARE of a core since the clock reached its limit, or later

    def __str__(self) -> str:
        if self.hangs:
            return f"hangs ({self.cpu_s:,.1f} CPU seconds in {self.wall_s:,.0f} s)"
        return f"did not end in {self.cpu_s:,.1f} CPU seconds ({self.wall_s:,.0f} s by the clock)"


class TimeLimit:
    """Limits the CPU seconds of a process and of all that it started.

    Several cores count no faster than the clock. What waits ends at ``most_walls`` times the limit, or after
    ``LONGEST_WAIT_S`` of waiting.
    """

    def __init__(
        self, pid: int, limit_s: float, most_walls: float = MOST_WALL_LIMITS, read_s: Clock = time.monotonic
    ) -> None:
        """``read_s`` reads the clock, which may stand still meanwhile."""
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
        wall_s, cpu_s = self._read_s() - self._begun_s, read_cpu_s(self._pid) - self._cpu_begun_s
        then = self._earlier
        waits = then is not None and cpu_s - then.cpu_s < HANG_SHARE * (wall_s - then.wall_s)
        hangs = waits and cpu_s < self._limit_s  # what used them up in time did not wait
        return TimeUse(wall_s=wall_s, cpu_s=cpu_s, hangs=hangs)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramAnswer:
    """``problem`` is why it did not end by itself."""

    status: int = -1
    raw: bytes = b""  # what it printed
    err: str = ""
    problem: str = ""
    is_late: bool = False  # its time was up

    @property
    def out(self) -> str:
        return self.raw.decode(errors="replace")

    @property
    def output(self) -> str:
        """Empty where it failed."""
        return self.out.strip() if self.status == 0 else ""

    def read_record(self) -> dict[str, Any]:
        """The JSON object of its last line; empty without one."""
        try:
            record = json.loads(self.out.splitlines()[-1])
        except (IndexError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def describe_end(self) -> str:
        if self.problem or not self.status:
            return self.problem or "gave no answer"
        name = f"status {self.status}"
        with suppress(ValueError):  # a signal has a name, unless it is a real-time one
            name = signal.Signals(-self.status).name
        lines = ["".join(filter(str.isprintable, line)).strip() for line in self.err.splitlines()]
        errors = " / ".join([line for line in lines if line][-_LAST_LINES:])[-_LAST_CHARS:]
        return f"died ({name}): {errors or 'it wrote no error'}"


def ask_program(
    command: Sequence[str],
    *,
    limit_s: float,
    given: bytes = b"",
    directory: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> ProgramAnswer:
    """``given`` is its standard input, ``variables`` all of its environment.

    After its :class:`TimeLimit` all that it started is killed.
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


def list_children(pid: int) -> list[int]:
    """Also those that ended and were not waited for; none of a process that is gone."""
    try:
        lists = [(task / "children").read_text() for task in (_PROC / str(pid) / _TASKS).iterdir()]
    except OSError:  # a thread ended meanwhile, or a kernel without CONFIG_PROC_CHILDREN
        return list(_search_children(pid))
    return [int(child) for text in lists for child in text.split()]


def list_descendants(pid: int) -> list[int]:
    children = list_children(pid)
    return [*children, *(below for child in children for below in list_descendants(child))]


def read_cpu_s(pid: int) -> float:
    """With all that it started; 0 for a process that is gone."""
    # After the name, in brackets, that may hold anything, as fields 12 to 15: its user and system time, and
    # those of its children that ended, in ticks (proc(5)).
    stats = [read_text(_PROC / str(process) / "stat") for process in (pid, *list_descendants(pid))]
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
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers belong to the main thread: nothing can interrupt this one
        return
    previous = {number: signal.signal(number, answer) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def read_free_bytes() -> int:
    """At least 1, within the container's limit.

    Its inactive pages of files count as free, as in the kubelet's working set (kubernetes.io, "Node-pressure
    Eviction").
    """
    import psutil  # noqa: PLC0415 - takes as long as `--help`

    available: int = psutil.virtual_memory().available
    limit, used = (read_text(_CGROUPS / name).strip() for name in ("memory.max", "memory.current"))
    if limit.isdecimal() and used.isdecimal():
        inactive = read_counters(_CGROUPS / "memory.stat", "inactive_file").get("inactive_file", 0)
        return max(1, min(available, int(limit) - int(used) + inactive))
    return available


def read_text(path: Path) -> str:
    """Read a file of the kernel; empty where there is none."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:  # a kernel that has no such thing
        return ""


def read_counters(path: Path, prefix: str = "") -> dict[str, int]:
    """One a line, of names that begin with ``prefix``."""
    # Only what is asked for is parsed: of some 170 lines of /proc/vmstat that would take a quarter of a look.
    rows = (line.split() for line in read_text(path).splitlines() if line.startswith(prefix))
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}  # noqa: PLR2004


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when the thread of ``parent`` that started it ends."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(_ORPHANED)


def end_process(status: int) -> NoReturn:
    """End at once: unloading torch's libraries takes more than a second."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def list_cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def count_cores(*, is_pinned: bool = False) -> int:
    """By affinity and quota. Where the lab itself ``is_pinned`` this process, affinity does not count."""
    allowed = os.cpu_count() or 1 if is_pinned else len(list_cores())
    return min([allowed, *_list_quotas()])


def list_cgroups() -> Iterable[Path]:
    """The own control group and those around it."""
    for line in read_text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", maxsplit=2)
        if controllers in _CONTROLLERS:
            innermost = Path(path.lstrip("/"))
            yield from (_CGROUPS / controllers / group for group in (innermost, *innermost.parents))
    yield from (_CGROUPS / name for name in _CONTROLLERS)


def _list_quotas() -> Iterable[int]:
    """In cores; a part of one counts whole."""
    for path in list_cgroups():
        both = read_text(path / "cpu.max").split() or [
            read_text(path / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
        ]
        if all(figure.isdecimal() and int(figure) for figure in both):  # "max" and "-1" are none
            quota, period = map(int, both)
            yield math.ceil(quota / period)
