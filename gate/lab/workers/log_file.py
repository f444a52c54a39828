"""A log file of bounded size: its first megabytes and its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.files.disk import describe_write_error

LOG_HEAD_BYTES = 4 * 1024 * 1024  # enough for any traceback and compiler message; a flood stops here
LOG_TAIL_BYTES = 256 * 1024  # the end says why a process died, so it is kept however long the log is


class LogFile:
    """Takes what a process says, chunk by chunk, and is finished by its end."""

    def __init__(self, path: Path) -> None:
        """Make the file, and its directory; errors are those of :func:`gate.files.disk.write_atomic`."""
        self._path = path
        with self._describe_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)
        self._room = LOG_HEAD_BYTES
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._left_out = 0

    def write(self, chunk: bytes) -> None:
        """Add a chunk: to the file while it has room, and to the tail that is kept."""
        head, rest = chunk[: self._room], chunk[self._room :]
        self._room -= len(head)
        self._put(head)
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        self._left_out += len(rest)
        while self._tail_bytes - len(self._tail[0]) >= LOG_TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    def close(self) -> bytes:
        """Finish the file, once, and return the last bytes of the log."""
        tail = b"".join(self._tail)[-LOG_TAIL_BYTES:]
        if not self._file.closed:
            with self._file:
                if self._left_out > len(tail):
                    self._put(f"\n[... {self._left_out - len(tail)} bytes left out ...]\n".encode())
                self._put(tail[-self._left_out :] if self._left_out else b"")
        return tail

    def _put(self, content: bytes) -> None:
        if content:
            with self._describe_errors():
                self._file.write(content)

    @contextmanager
    def _describe_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise describe_write_error(self._path, error) from error
