"""How long the threads of this process have waited for a processor that something else held.

Linux counts it for each thread, in nanoseconds: the second number of ``/proc/PID/task/TID/schedstat``.
A call of a compiled program waits for the slowest of its threads: where another program takes one core for a
slice of the scheduler, 3 to 5 ms, a call of 1 ms takes 5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Calls whose threads waited for no more than this share of their time count as undisturbed. What waits at
# all waits for a slice: shares between 2 and 10 % separate the same calls.
MAX_WAITED_SHARE = 0.05
_TASKS = Path("/proc/self/task")
_LINE_BYTES = 80  # three numbers of 64 bits


class ThreadWaits:
    """Reads what all threads of this process have waited, through files that stay open: 10 us a time."""

    def __init__(self) -> None:
        """Begin without any thread; :meth:`find_threads` finds them."""
        self._files: dict[str, int] = {}

    def find_threads(self) -> None:
        """Find the threads that began since, and forget those that ended."""
        alive = {task.name for task in _TASKS.iterdir()}
        for thread in self._files.keys() - alive:
            os.close(self._files.pop(thread))
        for thread in alive - self._files.keys():
            try:
                self._files[thread] = os.open(_TASKS / thread / "schedstat", os.O_RDONLY)
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended just now

    def read_s(self) -> float:
        """Read the seconds that all threads together have waited so far."""
        return sum(map(_read_ns, self._files.values())) / 1e9

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.popitem()[1])


@contextmanager
def watch_waits() -> Iterator[ThreadWaits | None]:
    """Open the threads' counters; ``None`` where the system has none, as any but Linux."""
    if not (_TASKS / str(os.getpid()) / "schedstat").is_file():
        yield None
        return
    waits = ThreadWaits()
    try:
        yield waits
    finally:
        waits.close()


def _read_ns(file: int) -> int:
    try:
        return int(os.pread(file, _LINE_BYTES, 0).split()[1])
    except ProcessLookupError:  # the thread has ended
        return 0
