"""One run of the action, and its processes: what measures gets no way to the runner."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import threading
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import IO

from gate.action.inputs import TRUSTED_MODES, ActionInputs
from gate.action.launch import drop_hidden, make_command
from gate.programs import answer_signals

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


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """Run a command to its end. Signals that ask this process to stop are its to answer.

    Its standard error is passed on as it comes; its standard output is its own.
    """
    sys.stdout.flush()
    with (
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, bufsize=0) as process,
        # To what asks this process to stop: the command ends its own and saves what it has.
        answer_signals(lambda number, _: process.send_signal(number)),
    ):
        tail: deque[bytes] = deque(maxlen=_KEPT_CHUNKS)
        ended = threading.Event()
        reader = threading.Thread(target=_pass_on, args=(process.stderr, tail, ended), daemon=True)
        reader.start()
        code = process.wait()
        reader.join(_STRAGGLER_S)
        ended.set()
    complaints = list_complaints(b"".join(tail).decode(errors="replace"))
    return Ended(code=code if code >= 0 else _KILLED - code, complaints=complaints)


def list_complaints(written: str) -> tuple[str, ...]:
    """List the errors that a command wrote to standard error: what, then the fix, on lines of their own."""
    found: list[str] = []
    for line in map(str.strip, written.splitlines()):
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionStep:
    """One run of the action. ``environ`` has all that the runner gave it, the process has not."""

    inputs: ActionInputs
    environ: Mapping[str, str]
    event: Mapping[str, object]


def make_child_environment(environ: Mapping[str, str], inputs: ActionInputs) -> dict[str, str]:
    """Make the environment of the command: without any way to the runner, but for what holds a token."""
    if inputs.mode not in TRUSTED_MODES:
        return drop_hidden(environ)
    kept = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    return kept | {"GITHUB_TOKEN": inputs["token"]}


def run_command(step: ActionStep, arguments: tuple[str, ...]) -> Ended:
    """Run ``compile-gate`` with the arguments.

    Nothing that it prints can be taken for a command to the runner, unless it holds a token: then it runs no
    measured code, and guards what it prints itself.
    """
    is_trusted = step.inputs.mode in TRUSTED_MODES
    environment = make_child_environment(step.environ, step.inputs)
    with nullcontext() if is_trusted else stop_commands():
        return run_child(make_command("gate", *arguments), environment)


@contextmanager
def stop_commands() -> Iterator[None]:
    """Let the runner take nothing that is printed meanwhile for a command to it."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"::{token}::", flush=True)
