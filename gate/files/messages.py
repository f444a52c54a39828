"""What processes of the gate send to each other: files without a version, lines, and messages; torch-free.

A server (:mod:`gate.worker.server`) answers each order of the lab by one JSON line; descriptors come along:

- ``import``: import what a worker of ``request`` imports, on its arm's path and with its ``variables``;
- ``branch``: fork another server, which takes its orders on the descriptor;
- ``run``: fork a worker, whose output goes to the first descriptor; a second one is its ``channel``;
- ``reap``: wait for the end of a worker, and end what it left behind.
"""

import io
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from gate.errors import FileError
from gate.files.codec import decode, dump, parse_json, write_atomic
from gate.records.facts import Fact
from gate.records.protocol import WorkerRequest

_MAX_DESCRIPTORS = 4
T = TypeVar("T")


def load_plain(record: type[T], path: Path) -> T:
    """Load JSON without a version.

    Raises:
        FileError: It is none.
    """
    return decode(record, parse_json(path.read_bytes(), str(path)), str(path))


def save_plain(record: object, path: Path) -> None:
    """Write atomically.

    Raises:
        ValueError: It holds NaN or infinity.
    """
    write_atomic(path, dump(record))


def write_line(word: str, content: object) -> str:
    return f"{word} {dump(content)}"


def read_line(content: type[T], word: str, line: str) -> T | None:
    """``None`` where the line has another word."""
    first_word, _, rest = line.partition(" ")
    try:
        return decode(content, parse_json(rest.encode(), word), word) if first_word == word else None
    except FileError:
        return None


class ServerDoes(StrEnum):
    IMPORT = "import"
    BRANCH = "branch"
    RUN = "run"
    REAP = "reap"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOrder:
    does: ServerDoes
    request: WorkerRequest | None = None  # import only
    path: str = ""  # of the request file; run only
    variables: Mapping[str, str] = field(default_factory=dict)  # the worker's, or those of an arm's imports
    channel: int = -1  # the number that the worker knows its channel by; run only
    pid: int = 0  # of the worker; reap only


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerAnswer:
    """``status`` is negative for a signal, as in :mod:`subprocess`."""

    pid: int = 0  # of the process that was forked
    status: int = 0  # of the worker that was reaped
    problem: Fact | None = None  # why nothing may be forked from this server; import only
    is_otherwise: bool = False  # a module was imported that this arm may have otherwise; import only


def send(line: socket.socket, message: ServerOrder | ServerAnswer, descriptors: Sequence[int] = ()) -> None:
    """Send one message.

    Raises:
        OSError: The other end is gone.
    """
    content = dump(message).encode() + b"\n"
    sent = socket.send_fds(line, [content], list(descriptors))
    if rest := content[sent:]:  # to send nothing fails where the other end has read all and hung up
        line.sendall(rest)


def receive(line: socket.socket) -> tuple[Any, tuple[int, ...]]:
    """One message, parsed but not decoded, with its descriptors; ``None`` at the end of the line.

    Raises:
        OSError: The other end is gone, or silent for longer than the socket's time-out.
        FileError: What came is not a message.
    """
    content = b""
    descriptors: tuple[int, ...] = ()
    while not content.endswith(b"\n"):
        chunk, received, _, _ = socket.recv_fds(line, io.DEFAULT_BUFFER_SIZE, _MAX_DESCRIPTORS)
        descriptors = (*descriptors, *received)
        if not chunk:
            close_descriptors(descriptors)
            return None, ()
        content += chunk
    return parse_json(content, "message"), descriptors


def close_descriptors(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
