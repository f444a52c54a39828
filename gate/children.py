"""The children of a process, as Linux lists them, and signals that are answered otherwise while they run.

Those that ended and were not waited for are among them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_PROC = Path("/proc")
_TASKS = "task"  # a directory for each thread; a child is listed with the thread that started it


def list_children(pid: int) -> list[int]:
    """List the children of ``pid``; none elsewhere than on Linux, or of a process that is gone."""
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
