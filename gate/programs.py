"""Other processes: asking a program within a time limit, children, not outliving a parent; cores, memory.

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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramAnswer:
    """What a program said. ``problem`` is why it did not end by itself: it was not run, or took too long."""

    status: int = -1
    out: str = ""
    err: str = ""
    problem: str = ""

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


def ask_program(
    command: Sequence[str],
    *,
    limit_s: float | None,
    given: str = "",
    directory: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> ProgramAnswer:
    """Run a program to its end; ``given`` is its standard input, ``variables`` all of its environment."""
    try:
        done = subprocess.run(
            command,
            input=given,
            cwd=directory,
            env=variables,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProgramAnswer(problem=f"{type(error).__name__}: {error}")
    return ProgramAnswer(status=done.returncode, out=done.stdout, err=done.stderr)


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
