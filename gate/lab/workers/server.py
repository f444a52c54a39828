"""A server that forks workers, as the lab sees it: started, told what to do, and ended.

What both say to each other is in :mod:`gate.files.server_protocol`.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gate.errors import FileError, MachineError
from gate.files import codec
from gate.files.server_protocol import ServerAnswer, ServerDoes, ServerOrder, receive, send
from gate.lab.workers.process import (
    TOKEN_VARIABLE,
    ForkedWorker,
    ProcessCommand,
    defer_interrupts,
    end_marked,
    start_marked,
)
from gate.records import Code, Fact
from gate.records.protocol import WorkerRequest

SERVER_ARGUMENTS = ("-P", "-m", "gate.measure.process.server")
_FORK_S = 30.0  # a fork takes milliseconds, minutes only where the machine swaps
_END_S = 5.0  # a server ends when it is hung up on; more only where it is importing something


class ServerError(Exception):
    """A server is gone, or silent: its workers must be started otherwise. ``told`` is a warning of it."""

    def __init__(self, message: str, told: Fact) -> None:
        super().__init__(message)
        self.told = told


_GONE = Fact(code=Code.SERVER_GONE)


class WorkerServer:
    """One server, or a branch of one. Orders are answered one by one."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.is_gone = False
        self._line = line

    def begin_import(self, request: WorkerRequest) -> None:
        """Tell it to import what a worker of ``request`` does; :meth:`end_import` hears the answer."""
        self._tell(ServerOrder(does=ServerDoes.IMPORT, request=request))

    def end_import(self, limit_s: float) -> Fact | None:
        """Wait until everything is imported; return why nothing may be forked, if so.

        Raises:
            ServerError: It ended, or took longer than ``limit_s`` seconds.
        """
        return self._hear(limit_s).problem

    def branch(self) -> WorkerServer:
        """Fork another server from this one; raises as :meth:`end_import`."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._tell(ServerOrder(does=ServerDoes.BRANCH), (theirs.fileno(),))
            try:
                return WorkerServer(self._hear(_FORK_S).pid, ours)
            except ServerError:
                ours.close()
                raise

    def start(self, command: ProcessCommand, token: str) -> ForkedWorker:
        """Fork the worker of ``command``, whose last argument is its request's path.

        Raises:
            MachineError: The server is gone.
        """
        order = ServerOrder(
            does=ServerDoes.RUN,
            path=command.argv[-1],
            variables={**command.environment, TOKEN_VARIABLE: token},
            channel=command.given[0] if command.given else -1,
        )
        reading, writing = os.pipe()
        output = os.fdopen(reading, "rb", buffering=0)
        try:
            self._tell(order, (writing, *command.given))
            pid = self._hear_pid()
            return ForkedWorker(pid, output, partial(self.reap, pid))
        except ServerError as error:
            output.close()
            fix = "Continue with --resume; if it happens again, look for what kills processes here."
            raise MachineError(f"the process that starts workers is gone: {error}", fix) from error
        finally:
            os.close(writing)

    def reap(self, pid: int, limit_s: float) -> int:
        """Wait for a worker's end and return its status; a server that is gone took it along.

        One that is silent for too long is hung up on: its late answer would be taken for that of the next
        order.
        """
        try:
            self._tell(ServerOrder(does=ServerDoes.REAP, pid=pid))
            return self._hear(limit_s).status
        except ServerError:
            self.hang_up()
            return -signal.SIGKILL

    def hang_up(self) -> None:
        """Let it end, by itself."""
        self.is_gone = True
        self._line.close()

    def _hear_pid(self) -> int:
        """Hear which process was forked; to signal 0 would be to signal ourselves."""
        pid = self._hear(_FORK_S).pid
        if pid <= 0:
            raise ServerError("its answer is to something else", _GONE)
        return pid

    def _tell(self, order: ServerOrder, descriptors: Sequence[int] = ()) -> None:
        try:
            self._line.settimeout(_FORK_S)
            send(self._line, order, descriptors)
        except OSError as error:
            self.is_gone = True
            raise ServerError(f"it cannot be reached ({error.strerror or error})", _GONE) from error

    def _hear(self, limit_s: float) -> ServerAnswer:
        try:
            self._line.settimeout(max(limit_s, 0.0) or None)
            received, _ = receive(self._line)
            if received is not None:
                return codec.decode(ServerAnswer, received, "answer")
        except TimeoutError as error:
            told = Fact(code=Code.SERVER_SILENT, numbers={"limit_s": limit_s})
            raise ServerError(f"no answer within {limit_s:g} s", told) from error
        except (OSError, FileError) as error:
            self.is_gone = True
            raise ServerError("it ended", _GONE) from error
        self.is_gone = True
        raise ServerError("it ended", _GONE)


class RootServer(WorkerServer):
    """A server that the lab itself has started, and ends."""

    def __init__(self, command: ProcessCommand) -> None:
        """Start it, with its line and its parent as further arguments; it has imported nothing yet.

        Raises:
            MachineError: The interpreter cannot be started, or the log cannot be written.
        """
        ours, theirs = socket.socketpair()
        self._token = secrets.token_hex(16)
        command.log.parent.mkdir(parents=True, exist_ok=True)
        argv, given = (*command.argv, str(theirs.fileno()), str(os.getpid())), (theirs.fileno(),)
        with theirs, command.log.open("ab") as log:
            try:
                self._process = start_marked(replace(command, argv=argv, given=given), self._token, log)
            except MachineError:
                ours.close()
                raise
        super().__init__(self._process.pid, ours)

    def close(self) -> None:
        """End it, its branches and whatever they left."""
        with defer_interrupts():
            self.hang_up()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            end_marked(self._token)
