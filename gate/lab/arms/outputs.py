"""The files that our own output goes to: they change as a run goes on, and are no code.

A file is known by its device and inode.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_STREAMS = ("1", "2")  # standard output and error


def find_outputs(paths: Collection[Path]) -> frozenset[Path]:
    """Find those of ``paths`` that our standard streams lead to, also through programs of this user."""
    outputs: set[tuple[int, int]] = set()
    waiting = [_PROC / "self" / "fd" / stream for stream in _STREAMS] if paths else []
    while waiting:
        for status in _list_open([waiting.pop()], os.O_WRONLY):
            if stat.S_ISFIFO(status.st_mode) and _name(status) not in outputs:
                for fds in _find_readers(status):
                    waiting += [fd for fd in fds if fd.name in _STREAMS]
                    written = _list_open(fds, os.O_WRONLY)
                    outputs.update(_name(file) for file in written if stat.S_ISREG(file.st_mode))
            outputs.add(_name(status))
    return frozenset(path for path in paths if os.path.lexists(path) and _name(path.lstat()) in outputs)


def _name(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _find_readers(pipe: os.stat_result) -> Iterator[list[Path]]:
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is not ours to read
            fds = list((process / "fd").iterdir()) if process.stat().st_uid == os.geteuid() else []
            if _name(pipe) in map(_name, _list_open(fds, os.O_RDONLY)):
                yield fds


def _list_open(fds: Iterable[Path], access: int) -> Iterator[os.stat_result]:
    for fd in fds:
        with suppress(OSError):  # closed meanwhile
            flags = (fd.parent.parent / "fdinfo" / fd.name).read_text().partition("flags:")[2].split()[0]
            if int(flags, 8) & os.O_ACCMODE in (access, os.O_RDWR):
                yield fd.stat()
