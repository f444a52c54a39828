"""One process of the action: its signals, its output, and what it said last about why it failed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from gate.children import answer_signals

_CHUNK_BYTES = 64 * 1024  # a pipe's capacity on Linux
_KEPT_CHUNKS = 8  # of standard error: errors are a few lines, and come last
_STRAGGLER_S = 5.0  # something that it started may keep its standard error open
_KILLED = 128  # and the signal's number: the exit code that a shell tells
_ERROR = re.compile(r"compile-gate(?: [a-z-]+)*: (.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command ended. ``complaints`` are its errors, what is wrong and the fix in one text each."""

    code: int
    complaints: tuple[str, ...] = ()
    output: bytes = b""  # its standard output, where that was kept


def run_child(command: Sequence[str], environment: Mapping[str, str], *, keep_output: bool = False) -> Ended:
    """Run a command to its end. Signals that ask this process to stop are its to answer.

    Its standard error is passed on as it comes; its standard output is its own, unless it is kept.
    """
    output = subprocess.PIPE if keep_output else None
    sys.stdout.flush()
    with (
        subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.PIPE, bufsize=0
        ) as process,
        # To what asks this process to stop: the command ends its own and saves what it has.
        answer_signals(lambda number, _: process.send_signal(number)),
    ):
        tail: deque[bytes] = deque(maxlen=_KEPT_CHUNKS)
        ended = threading.Event()
        reader = threading.Thread(target=_pass_on, args=(process.stderr, tail, ended), daemon=True)
        reader.start()
        kept = process.stdout.read() if process.stdout else b""
        code = process.wait()
        reader.join(_STRAGGLER_S)
        ended.set()
    complaints = list_complaints(b"".join(tail).decode(errors="replace"))
    return Ended(code=code if code >= 0 else _KILLED - code, complaints=complaints, output=kept)


def list_complaints(told: str) -> tuple[str, ...]:
    """List the errors that a command wrote to standard error: what, then the fix, on lines of their own."""
    found: list[str] = []
    for line in map(str.strip, told.splitlines()):
        if error := _ERROR.fullmatch(line):
            found.append(error[1])
        elif found and line:
            found[-1] += f" {line}" if found[-1].endswith((".", "!", "?", ":")) else f". {line}"
    return tuple(found)


def _pass_on(source: IO[bytes], tail: deque[bytes], ended: threading.Event) -> None:
    decoder = getincrementaldecoder("utf-8")("replace")
    with suppress(OSError, ValueError):  # closed, by whoever no longer waits for a straggler
        while (chunk := os.read(source.fileno(), _CHUNK_BYTES)) and not ended.is_set():
            tail.append(chunk)
            sys.stderr.write(decoder.decode(chunk))
            sys.stderr.flush()
