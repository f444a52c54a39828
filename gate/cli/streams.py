"""Standard output and error that never change what a command comes to.

A reader that went away (``| head``), a closed descriptor (``>&-``), an encoding that lacks a character:
the command goes on to its end, and its exit code is its own. A full disk behind standard output is an
error, since what was asked for is lost.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gate.report.terminal import PLAINLY

if TYPE_CHECKING:
    from typing_extensions import Buffer  # of collections.abc from Python 3.12 on

_INPUT, _OUTPUT, _ERROR = 0, 1, 2


class Descriptor(io.FileIO):
    """A descriptor to write to; from the first failure on, what is written there is dropped."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, data: Buffer) -> int:
        """Write bytes, or drop them."""
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            _open_null(self.fileno())
            return memoryview(data).nbytes

    def find_loss(self) -> OSError | None:
        """Find why something that had a reader was lost."""
        return None if isinstance(self.failure, BrokenPipeError) else self.failure


@contextmanager
def hold_streams() -> Iterator[Descriptor | None]:
    """Guard standard output and error while a command runs; gives the descriptor behind the output.

    Streams that a caller put in their place are the caller's business: then it is ``None``.
    """
    for number in (_INPUT, _OUTPUT, _ERROR):
        _ensure_open(number)
    before = sys.stdout, sys.stderr
    output = Descriptor(_OUTPUT) if sys.stdout is sys.__stdout__ else None
    if output:
        sys.stdout = _make_stream(output, before[0], line_buffering=output.isatty())
    if sys.stderr is sys.__stderr__:
        sys.stderr = _make_stream(Descriptor(_ERROR), before[1], line_buffering=True)
    try:
        yield output
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _make_stream(raw: Descriptor, old: TextIO | None, *, line_buffering: bool) -> TextIO:
    encoding = old.encoding if old else "utf-8"
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding, PLAINLY, line_buffering=line_buffering)


def _ensure_open(number: int) -> None:
    """Open what a caller closed: the next file would get its number, and the reports with it."""
    try:
        os.fstat(number)
    except OSError:
        _open_null(number)


def _open_null(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
