"""What the lab and a worker server say to each other: one JSON line each, descriptors beside it; torch-free.

A server is a process that has imported what workers need and forks them
(:mod:`gate.measure.process.server`). The lab orders, the server answers, one after the other:

- ``import``: import what a worker of ``request`` imports before it measures;
- ``branch``: fork another server, which takes its orders on the descriptor that comes along;
- ``run``: fork a worker, whose output goes to the first descriptor that comes along; a second one is its
  ``channel``;
- ``reap``: wait for the end of a worker, and end what it left behind.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gate.files import codec
from gate.records import Fact
from gate.records.protocol import WorkerRequest

_CHUNK_BYTES = 64 * 1024
_MAX_DESCRIPTORS = 4


class ServerDoes(StrEnum):
    """What a server is told to do."""

    IMPORT = "import"
    BRANCH = "branch"
    RUN = "run"
    REAP = "reap"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOrder:
    """An order of the lab."""

    does: ServerDoes
    request: WorkerRequest | None = None  # import only
    path: str = ""  # of the request file; run only
    variables: Mapping[str, str] = field(default_factory=dict)  # the worker's environment; run only
    channel: int = -1  # the number that the worker knows its channel by; run only
    pid: int = 0  # of the worker; reap only


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerAnswer:
    """A server's answer. ``status`` is negative for a signal, as in :mod:`subprocess`."""

    pid: int = 0  # of the process that was forked
    status: int = 0  # of the worker that was reaped
    problem: Fact | None = None  # why nothing may be forked from this server; import only


def send(line: socket.socket, message: ServerOrder | ServerAnswer, descriptors: Sequence[int] = ()) -> None:
    """Send one message.

    Raises:
        OSError: The other end is gone.
    """
    content = codec.dump(message).encode() + b"\n"
    sent = socket.send_fds(line, [content], list(descriptors))
    if rest := content[sent:]:  # to send nothing fails where the other end has read all and hung up
        line.sendall(rest)


def receive(line: socket.socket) -> tuple[Any, tuple[int, ...]]:
    """Receive one message, parsed but not decoded, with its descriptors; ``None`` at the end of the line.

    Raises:
        OSError: The other end is gone, or silent for longer than the socket's time-out.
        FileError: What came is not a message.
    """
    content = b""
    descriptors: tuple[int, ...] = ()
    while not content.endswith(b"\n"):
        chunk, received, _, _ = socket.recv_fds(line, _CHUNK_BYTES, _MAX_DESCRIPTORS)
        descriptors = (*descriptors, *received)
        if not chunk:
            close_descriptors(descriptors)
            return None, ()
        content += chunk
    return codec.parse_json(content, "message"), descriptors


def close_descriptors(descriptors: Sequence[int]) -> None:
    """Close each of some descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)
