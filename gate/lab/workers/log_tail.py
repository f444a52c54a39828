"""The end of a worker's log, as text that is safe to print and short to store."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from gate.sizes import KIB

LOG_EXCERPT_LINES = 30  # a traceback and the lines that led to it
LOG_EXCERPT_BYTES = 8 * KIB  # kept in run.json for each failure, and pasted into comments
_LINE_CHARS = 500  # a path and some code; some errors of torch name all of its options in one line
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_FAULT = "Fatal Python error"  # begins the fault handler's dump
_CURRENT = "Current thread "
_FRAME = re.compile(r' +File "')
_FRAME_OF_GATE = re.compile(
    r' +File "(?:.*/gate/(?:measure|suite|worker)/|.*/(?:_pytest|pluggy)/|<frozen runpy>)'
)
_FRAME_OF_LIBRARY = re.compile(r' +File "(?:.*/lib/python\d|.*/c[a-z0-9]{51}\.py|<)')
_FAULT_LINES = 12  # of the dump, as many as a report shows; the rest of the 30 is the output before it
# Messages of processes that run out of memory or disk, by its name.
_HINTS = {
    "memory": re.compile(
        r"bad_alloc|can't allocate memory|cannot allocate memory|out of memory|MemoryError", re.IGNORECASE
    ),
    "disk": re.compile(r"no space left on device|disk quota exceeded|file too large", re.IGNORECASE),
}


def clean_log_tail(log: bytes, *, of_hang: bool = False) -> str:
    """Take at most 30 lines and 8 KiB, without control characters.

    Where Python's fault handler ended the log, the lines are those around its first ones: it prints the
    innermost frame first. With ``of_hang``, which the gate asked for, the user's innermost frame comes first.
    """
    text = _ESCAPES.sub("", log.decode("utf-8", errors="replace")).strip("\r\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    faults = [number for number, line in enumerate(lines) if line.startswith(_FAULT)]
    if faults and of_hang:
        lines[faults[-1] :] = _list_frames(lines[faults[-1] :])
    end = faults[-1] + _FAULT_LINES if faults else len(lines)
    printable = "\n".join(map(_clean_line, lines[:end][-LOG_EXCERPT_LINES:]))
    return printable.encode()[-LOG_EXCERPT_BYTES:].decode(errors="ignore")


def _list_frames(dump: Sequence[str]) -> Iterator[str]:
    current = dropwhile(lambda line: not line.startswith(_CURRENT), dump)
    next(current, None)
    kept = [line for line in takewhile(_FRAME.match, current) if not _FRAME_OF_GATE.match(line)]
    users = next((number for number, line in enumerate(kept) if not _FRAME_OF_LIBRARY.match(line)), 0)
    yield "It was at (most recent call first):"
    yield from (kept[users], "which had called (most recent call first):", *kept[:users]) if users else kept


def name_shortage(log_tail: str) -> str:
    return next((name for name, pattern in _HINTS.items() if pattern.search(log_tail)), "")


def _clean_line(line: str) -> str:
    # Without control, format (which hide or reverse text) and surrogate characters; a tab is harmless.
    kept = (char for char in line if char == "\t" or not unicodedata.category(char).startswith("C"))
    cleaned = "".join(kept).rstrip()
    return cleaned if len(cleaned) <= _LINE_CHARS else f"{cleaned[:_LINE_CHARS]} ..."
