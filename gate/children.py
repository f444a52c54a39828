"""The children of a process, as Linux lists them; those that ended and were not waited for are among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
