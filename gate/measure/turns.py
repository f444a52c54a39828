"""Taking turns with the other arm of a pair, threads asleep: the worker's end of the socket to the lab.

OpenMP's threads spin for some milliseconds after a parallel loop. Linux counts how long each thread has
waited for a processor: the second number of ``/proc/PID/task/TID/schedstat``, in nanoseconds.
"""

import os
import socket
import threading
import time
from pathlib import Path

from gate.files import codec
from gate.files.messages import write_line
from gate.records.protocol import KEEP, LOADED, Offer, RoundPlan

# Above the 200 ms of Intel's OpenMP. A thread that still runs then is at work, not idle.
MAX_WAIT_S = 0.25
# Calls whose threads waited for no more than this share of their time count as undisturbed. What waits at
# all waits for a slice: shares between 2 and 10 % separate the same calls.
MAX_WAITED_SHARE = 0.05
_POLL_S = 0.0005
_TASKS = Path("/proc/self/task")
_LINE_BYTES = 80  # three numbers of 64 bits


def await_idle_threads(limit_s: float = MAX_WAIT_S) -> bool:
    """Sleep until no other thread of this process runs; return whether that came within ``limit_s``."""
    end, this_thread = time.monotonic() + limit_s, str(threading.get_native_id())
    while any(_read_state(task) == "R" for task in _TASKS.iterdir() if task.name != this_thread):
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def _read_state(task: Path) -> str:
    """Read a thread's state, ``R`` for a running one; "" where it has ended. See proc_pid_stat(5)."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class TurnsError(Exception):
    """The lab hung up: the other arm has failed, or the run was stopped."""


class Turns:
    """Speaks with the lab by the protocol of :mod:`gate.records.protocol`."""

    def __init__(self, channel: int) -> None:
        self._socket = socket.socket(fileno=channel)
        self._socket.set_inheritable(False)
        self._lines = self._socket.makefile("r", encoding="ascii")
        self._waited_s = 0.0
        self._can_rest = True  # a model's own threads may never sleep: then they are waited for once
        self._keeps = False

    def agree(self, offer: Offer) -> RoundPlan:
        """Offer what this arm would run; return what both arms will.

        Raises:
            TurnsError: The lab hung up.
        """
        _, content = self._ask(write_line("ready", offer), "rounds")
        return codec.decode(RoundPlan, codec.parse_json(content.encode(), "rounds"), "rounds")

    def arrive(self) -> None:
        """Report that everything before the timing is done, and wait; raises as :meth:`agree`."""
        self._ask(LOADED, "go")

    def wait(self, block_s: float = 0.0) -> bool:
        """Report the undisturbed seconds of the last block, 0.0 if none; return whether there is another one.

        Raises as :meth:`agree`.
        """
        word, rest = self._ask(write_line("turn", block_s), "go", "stop")
        self._keeps = rest == KEEP
        return word == "go"

    def take_waited_s(self) -> float:
        waited_s, self._waited_s = self._waited_s, 0.0
        return waited_s

    def _ask(self, message: str, *expected: str) -> tuple[str, str]:
        begun = time.perf_counter()
        if not self._keeps:
            self._can_rest = self._can_rest and await_idle_threads()
        try:
            self._socket.sendall(f"{message}\n".encode("ascii"))
            word, _, rest = self._lines.readline().strip().partition(" ")
        except OSError as error:
            raise TurnsError(f"the lab hung up: {error.strerror}") from error
        finally:
            self._waited_s += time.perf_counter() - begun
        if word not in expected:
            wanted = " or ".join(map(repr, expected))
            raise TurnsError("the lab hung up" if not word else f"the lab said {word!r}, not {wanted}")
        return word, rest


class ThreadWaits:
    """Reads what all threads of this process have waited, through files that stay open: 10 us a time."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def update_threads(self) -> None:
        alive = {task.name for task in _TASKS.iterdir()}
        for thread in self._files.keys() - alive:
            os.close(self._files.pop(thread))
        for thread in alive - self._files.keys():
            try:
                self._files[thread] = os.open(_TASKS / thread / "schedstat", os.O_RDONLY)
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended just now, or a kernel that does not count: then no part is disturbed

    def read_s(self) -> float:
        return sum(map(_read_ns, self._files.values())) / 1e9

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


def _read_ns(file: int) -> int:
    try:
        return int(os.pread(file, _LINE_BYTES, 0).split()[1])
    except ProcessLookupError:  # the thread has ended
        return 0
