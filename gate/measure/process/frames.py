"""Which frames of a traceback a reader is shown: the measured code's own; a worker's log holds all."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException

_GATE = f"{Path(__file__).resolve().parents[2]}{os.sep}"
# Of the gate's own code these stand for a user's: a reference model, and a planted fault.
_MEASURED = (f"{_GATE}models{os.sep}", f"{_GATE}selftest{os.sep}planted{os.sep}")
# How the measured code was reached, which says nothing about it.
_MACHINERY = ("importlib", "_pytest", "pluggy", "pytest_benchmark")
_FROZEN = "<frozen "  # the import system, runpy
_GENERATED = ("<string>", "__init__")  # a dataclass's own
_BARE_HEADER = re.compile(r"^Traceback \(most recent call last\):\n(?! )", re.MULTILINE)


def format_error(error: BaseException) -> str:
    """Format an exception and its causes with the frames that a reader can do something about.

    Where measured code called torch, of torch's frames only the one that raised is kept.
    """
    told = TracebackException.from_exception(error)
    for one in _walk_causes(told):
        one.stack = StackSummary.from_list(choose_frames(one.stack))
    return _BARE_HEADER.sub("", "".join(told.format()))


def choose_frames(frames: Sequence[FrameSummary]) -> list[FrameSummary]:
    """Leave out the gate's, pytest's and importlib's frames, and torch's above and below measured code."""
    machinery, torch = _find_places(_MACHINERY), _find_places(("torch",))
    foreign = [frame for frame in frames if not _is_machinery(frame, machinery)]
    measured = [frame for frame in foreign if not frame.filename.startswith(torch)]
    if not measured:
        return foreign
    return [frame for frame in foreign if frame is foreign[-1] or not frame.filename.startswith(torch)]


def _walk_causes(told: TracebackException) -> Iterator[TracebackException]:
    yield told
    for inner in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if inner is not None:
            yield from _walk_causes(inner)


def _is_machinery(frame: FrameSummary, places: tuple[str, ...]) -> bool:
    file = frame.filename
    if file.startswith(_GATE):
        return not file.startswith(_MEASURED)
    return file.startswith((_FROZEN, *places)) or (file, frame.name) == _GENERATED


def _find_places(packages: Sequence[str]) -> tuple[str, ...]:
    """Find the directories of those packages that are loaded."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in packages)
    return tuple(f"{Path(file).parent}{os.sep}" for file in files if file)
