"""Letting the threads of this process fall asleep.

OpenMP's threads go on spinning for some milliseconds after the last parallel loop (libgomp about ten, Intel's
200), in case another one follows: that is what makes small loops fast, so workers leave it as it is.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

# Above the 200 ms of Intel's OpenMP. A thread that still runs then is at work, not idle.
MAX_WAIT_S = 0.25
_POLL_S = 0.0005
_TASKS = Path("/proc/self/task")  # Linux only; elsewhere nothing is waited for


def await_idle_threads(limit_s: float = MAX_WAIT_S) -> bool:
    """Sleep until no other thread of this process runs; return whether that came within ``limit_s``."""
    end = time.monotonic() + limit_s
    while _is_any_running():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def _is_any_running() -> bool:
    own = str(threading.get_native_id())
    try:
        return any(_read_state(task) == "R" for task in _TASKS.iterdir() if task.name != own)
    except FileNotFoundError:  # not Linux
        return False


def _read_state(task: Path) -> str:
    """Read a thread's state, ``R`` for a running one; "" where it has ended. See proc_pid_stat(5)."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
