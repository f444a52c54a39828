"""What a call leaves behind for good: bytes in use after some calls and after as many again.

A bounded cache fills up and then stays: while calls keep something, there are more of them, twice as many
each time. What is kept after that has no end that is seen.
"""

from __future__ import annotations

import gc
import math
import sysconfig
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from gate.host_memory import read_free_bytes
from gate.measure.compiler.graph import find_cache, format_location
from gate.measure.device.device import Device

# Calls of which nothing is kept differ by less: up to 10 of Python's small objects, 220 bytes of libraries.
LEAST_BYTES = 1024
# What a few calls have not settled yet, all of them together; of a slow step there are no more.
_UNSETTLED_BYTES = 16 * 1024
_FIRST_S = 0.25  # of the calls that are to keep nothing; two at least
_MIN_CALLS, _FIRST_CALLS = 2, 16
# What still grows after so much keeps growing, as far as a check can wait: a history of 1000 is full by then.
_MOST_CALLS = 2048
_MOST_S = 10.0
_DOUBTFUL_S = 2.0  # while all of the last calls keep no more than calls that have not settled
_MOST_BYTES = 2**30
_MOST_SHARE = 0.25  # of what the host has free
_TRACED_CALLS = 8
_GATE = Path(__file__).resolve().parents[1]  # the package: its reference models are measured code
_FRAMES = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """What each of the last calls kept, and how many calls there were before the end."""

    bytes: float  # a call; 0 where that is less than any two calls may differ by
    calls: int


def measure_kept(step: Callable[[], object], device: Device) -> Kept:
    """Measure how many bytes each further call keeps; a warm step.

    Raises:
        OSError: The device does not tell what is in use.
    """
    with _watch_new_garbage():
        begun = time.perf_counter()
        _call(step, 1)
        before = device.read_used()
        calls = _count_first(time.perf_counter() - begun)
        total, most_bytes = 1, min(_MOST_BYTES, _MOST_SHARE * (read_free_bytes() or math.inf))
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
                return Kept(bytes=_round(kept) if is_sure else 0.0, calls=total)
            before, calls = after, 2 * calls


def measure_rate(step: Callable[[], object], device: Device) -> float:
    """Measure the bytes that each of a few calls keeps; raises as :func:`measure_kept`."""
    with _watch_new_garbage():
        _call(step, 1)
        before = device.read_used()
        _call(step, _TRACED_CALLS)
        kept = device.read_used() - before
    return _round(kept / _TRACED_CALLS) if kept >= _UNSETTLED_BYTES else 0.0


def find_keeper(step: Callable[[], object], directory: str) -> str:
    """Find the line that makes what is kept, ``file.py:12``; empty where none of Python's objects is.

    Of the lines that make one object a call, or several of a size, that with the most bytes.
    """
    with _watch_new_garbage():
        tracemalloc.start(_FRAMES)
        try:
            _call(step, 1)
            before = tracemalloc.take_snapshot()
            _call(step, _TRACED_CALLS)
            after = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
    grown = {
        trace: more for trace, more in (_count(after) - _count(before)).items() if not more % _TRACED_CALLS
    }
    for (frames, _), _ in sorted(grown.items(), key=lambda item: item[0][1] * item[1], reverse=True):
        innermost = next((frame for frame in reversed(frames) if _is_measured(frame.filename)), None)
        if innermost is not None:
            return format_location(innermost.filename, innermost.lineno, directory)
    return ""


def _count(snapshot: tracemalloc.Snapshot) -> Counter[tuple[tracemalloc.Traceback, int]]:
    """Count the objects of each size that each line has made."""
    return Counter((trace.traceback, trace.size) for trace in snapshot.traces)


def _is_measured(file: str) -> bool:
    """Whether a file is none of torch's, of the gate's own, of Python's or of what the compiler generates."""
    path = Path(file)
    if not path.is_file() or path.is_relative_to(find_cache()):
        return False
    if path.is_relative_to(_GATE):
        return path.is_relative_to(_GATE / "models")
    in_packages = "site-packages" in path.parts or not path.is_relative_to(sysconfig.get_path("stdlib"))
    return in_packages and not path.is_relative_to(Path(torch.__file__).parent)


def _round(kept: float) -> float:
    """Round to as much as calls differ by."""
    return float(LEAST_BYTES * round(kept / LEAST_BYTES))


def _count_first(call_s: float) -> int:
    return int(min(max(_FIRST_S / max(call_s, 1e-6), _MIN_CALLS), _FIRST_CALLS))


def _call(step: Callable[[], object], calls: int) -> None:
    """Call so many times; what they leave in cycles is garbage, and no one keeps it."""
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
