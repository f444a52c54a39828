"""Which bytes calls keep, and the line that makes them.

A bounded cache fills up and then stays: while calls keep something, there are twice as many the next time.
"""

import gc
import sysconfig
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from gate.measure.device.device import Device
from gate.measure.graph import format_location, get_cache_directory
from gate.programs import read_free_bytes
from gate.sizes import GIB, KIB

# Calls of which nothing is kept differ by less: up to 10 of Python's small objects, 220 bytes of libraries.
LEAST_BYTES = 1024
# What a few calls have not settled yet, all of them together; of a slow step there are no more.
_UNSETTLED_BYTES = 16 * KIB
_FIRST_S = 0.25  # of the calls that are to keep nothing; two at least
_MIN_CALLS, _FIRST_CALLS = 2, 16
# What still grows after so much keeps growing, as far as a check can wait: a history of 1000 is full by then.
_MOST_CALLS = 2048
_MOST_S = 10.0
_DOUBTFUL_S = 2.0  # while all of the last calls keep no more than calls that have not settled
_MOST_BYTES = GIB
_MOST_SHARE = 0.25  # of what the host has free
_TRACED_CALLS, _MORE_TRACED_CALLS = 8, 13
_GATE = Path(__file__).resolve().parents[1]  # the package: its reference models are measured code
_FRAMES = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    bytes: float  # a call; 0 where that is less than any two calls may differ by
    calls: int


def measure_kept(step: Callable[[], object], device: Device) -> Kept:
    """Measure how many bytes each further call of a warm step keeps.

    Raises:
        OSError: The device does not report what is in use.
    """
    device.keep_freed_memory()  # a block with pages of its own is counted by whole pages, others to the byte
    with _watch_new_garbage():
        begun = time.perf_counter()
        _call(step, 1)
        before = device.read_used()
        call_s = max(time.perf_counter() - begun, 1e-6)
        calls = int(min(max(_FIRST_S / call_s, _MIN_CALLS), _FIRST_CALLS))
        total, most_bytes = 1, min(_MOST_BYTES, _MOST_SHARE * read_free_bytes())
        first = before
        while True:
            _call(step, calls)
            after, total = device.read_used(), total + calls
            kept = (after - before) / calls
            if kept < LEAST_BYTES:
                return Kept(bytes=0.0, calls=total)
            is_sure = after - before >= _UNSETTLED_BYTES
            is_late = time.perf_counter() - begun > (_MOST_S if is_sure else _DOUBTFUL_S)
            if is_late or after - first > most_bytes or total > _MOST_CALLS:
                rounded = LEAST_BYTES * round(kept / LEAST_BYTES)  # to as much as calls differ by
                return Kept(bytes=float(rounded) if is_sure else 0.0, calls=total)
            before, calls = after, 2 * calls


def find_keeper(step: Callable[[], object], directory: str) -> str:
    """Find the line that makes what is kept, ``file.py:12``; empty where none of Python's objects is.

    Among the lines that make one object a call, or several of a size, it is the one with the most bytes.
    """
    grown = _count_grown(step)
    for trace, _ in sorted(grown, key=lambda kind: kind[1] * grown[kind], reverse=True):
        asker = next((frame for frame in reversed(trace) if not _is_library(frame.filename)), None)
        if asker is not None and not _is_of_gate(asker.filename):
            return format_location(asker.filename, asker.lineno, directory)
    return ""


def _count_grown(step: Callable[[], object]) -> dict[tuple[tracemalloc.Traceback, int], int]:
    """Count the objects of each size that a line adds, where they are the same multiple of the calls twice.

    What the interpreter keeps for later is of any number.
    """
    counts = []
    with _watch_new_garbage():
        tracemalloc.start(_FRAMES)
        try:
            for calls in (1, _TRACED_CALLS, _MORE_TRACED_CALLS):
                _call(step, calls)
                counts.append(_count(tracemalloc.take_snapshot()))
        finally:
            tracemalloc.stop()
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    return {
        kind: more
        for kind, more in first.items()
        if not more % _TRACED_CALLS and second[kind] == more // _TRACED_CALLS * _MORE_TRACED_CALLS
    }


def _count(snapshot: tracemalloc.Snapshot) -> Counter[tuple[tracemalloc.Traceback, int]]:
    return Counter((trace.traceback, trace.size) for trace in snapshot.traces)


def _is_library(file: str) -> bool:
    path = Path(file)
    if not path.is_file() or path.is_relative_to(get_cache_directory()):
        return True
    in_packages = "site-packages" in path.parts or not path.is_relative_to(sysconfig.get_path("stdlib"))
    return not in_packages or path.is_relative_to(Path(torch.__file__).parent)


def _is_of_gate(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(_GATE) and not path.is_relative_to(_GATE / "models")


def _call(step: Callable[[], object], calls: int) -> None:
    for _ in range(calls):
        step()
    gc.collect()


@contextmanager
def _watch_new_garbage() -> Iterator[None]:
    """Let collections look at what is new alone: at all of torch's objects each takes a tenth of a second."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
