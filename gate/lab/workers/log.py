"""A worker's log: a file of bounded size, and its end as text that is safe to print and short to store."""

import re
import unicodedata
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.files.disk import describe_write_error

LOG_HEAD_BYTES = 4 * 1024 * 1024  # enough for any traceback and compiler message; a flood stops here
LOG_TAIL_BYTES = 256 * 1024  # the end says why a process died, so it is kept however long the log is
LOG_EXCERPT_LINES = 30  # a traceback and the lines that led to it
LOG_EXCERPT_BYTES = 8 * 1024  # kept in run.json for each failure, and pasted into comments
_LINE_CHARS = 500  # a path and some code; some errors of torch name all of its options in one line

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")

_FAULT = "Fatal Python error"  # begins the fault handler's dump
_FAULT_LINES = 12  # of the dump, as many as a report shows; the rest of the 30 is what was said before

# What processes say when they run out of memory or disk, by what to call it.
_HINTS = (
    (
        "memory",
        re.compile(
            r"bad_alloc|can't allocate memory|cannot allocate memory|out of memory|MemoryError", re.IGNORECASE
        ),
    ),
    ("disk", re.compile(r"no space left on device|disk quota exceeded|file too large", re.IGNORECASE)),
)


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


def clean_log_tail(log: bytes) -> str:
    """Take the last lines of a log: at most 30, at most 8 KiB, without control characters.

    Of a line that was overwritten by carriage returns, as progress bars do, the last state is kept.
    When Python's fault handler had the last word, the lines are those around its first one: it prints
    the innermost frame first, and the end of its dump is the same for every crash.
    """
    text = _ESCAPES.sub("", log.decode("utf-8", errors="replace")).strip("\r\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    printable = "\n".join(map(_clean_line, lines[_find_end(lines)][-LOG_EXCERPT_LINES:]))
    return printable.encode()[-LOG_EXCERPT_BYTES:].decode(errors="ignore")


def find_shortage(log_tail: str) -> str:
    """Name what the log says was short: ``memory``, ``disk`` or ``""``."""
    return next((name for name, pattern in _HINTS if pattern.search(log_tail)), "")


def _find_end(lines: list[str]) -> slice:
    """Which lines are the log's end: those up to the most telling ones of a fault handler's dump."""
    faults = [number for number, line in enumerate(lines) if line.startswith(_FAULT)]
    return slice(faults[-1] + _FAULT_LINES) if faults else slice(None)


def _clean_line(line: str) -> str:
    cleaned = "".join(filter(_is_printable, line)).rstrip()
    return cleaned if len(cleaned) <= _LINE_CHARS else f"{cleaned[:_LINE_CHARS]} ..."


def _is_printable(character: str) -> bool:
    # Control, format (which hide or reverse text) and surrogate characters; a tab is harmless.
    return character == "\t" or not unicodedata.category(character).startswith("C")
