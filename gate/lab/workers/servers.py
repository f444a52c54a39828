"""One server of workers, as the lab talks to it by :mod:`gate.files.messages`."""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gate.errors import FileError, MachineError
from gate.files import codec
from gate.files.messages import ServerAnswer, ServerDoes, ServerOrder, receive, send
from gate.lab.workers.process import (
    TOKEN_VARIABLE,
    ForkedWorker,
    ProcessCommand,
    defer_interrupts,
    end_family,
    start_marked,
)
from gate.programs import TimeLimit
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import WorkerRequest

SERVER_ARGUMENTS = ("-P", "-m", "gate.worker.server")
_FORK_S = 30.0  # a fork takes milliseconds, minutes only where the machine swaps
_READ_S = 0.1  # what was sent in time is there
_END_S = 5.0  # a server ends when it is hung up on; more only where it is importing something


class ServerError(Exception):
    """A server is gone, or silent: its workers must be started otherwise. ``warning`` describes it."""

    def __init__(self, message: str, warning: Fact) -> None:
        super().__init__(message)
        self.warning = warning


_GONE = Fact(code=Code.SERVER_GONE)


class WorkerServer:
    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.is_gone = False
        self.is_busy = False  # a worker of it lives
        self.is_importing = False  # its answer is still to be heard
        self.is_otherwise = False  # as of :class:`gate.files.messages.ServerAnswer`
        self.used = 0  # counts on with each use of any server
        self._line = line

    def begin_import(self, request: WorkerRequest, variables: Mapping[str, str]) -> None:
        """``variables`` are those of ARM_VARIABLES."""
        self._send(ServerOrder(does=ServerDoes.IMPORT, request=request, variables=variables))
        self.is_importing = True

    def end_import(self, limit_s: float) -> Fact | None:
        """Return why nothing may be forked, if so.

        Raises:
            ServerError: It ended, or did not answer within ``limit_s`` CPU seconds.
        """
        self.is_importing = False
        answer = self._hear(limit_s)
        self.is_otherwise = answer.is_otherwise
        return answer.problem

    def branch(self) -> WorkerServer:
        """Fork another server from this one; raises as :meth:`end_import`."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._send(ServerOrder(does=ServerDoes.BRANCH), (theirs.fileno(),))
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
            channel=next(iter(command.given), -1),
        )
        reading, writing = os.pipe()
        output = os.fdopen(reading, "rb", buffering=0)
        try:
            self._send(order, (writing, *command.given))
            pid = self._hear_pid()
            self.is_busy = True
            return ForkedWorker(pid, output, partial(self.reap, pid))
        except ServerError as error:
            output.close()
            fix = "Continue with --resume; if it happens again, look for what kills processes here."
            raise MachineError(f"the process that starts workers is gone: {error}", fix) from error
        finally:
            os.close(writing)

    def reap(self, pid: int, limit_s: float) -> int:
        """Wait for a worker's end and return its status.

        A server that is silent is hung up on: its late answer would be taken for the next order's.
        """
        try:
            self._send(ServerOrder(does=ServerDoes.REAP, pid=pid))
            return self._hear(limit_s).status
        except ServerError:
            self.hang_up()
            return -signal.SIGKILL
        finally:
            self.is_busy = False

    def hang_up(self) -> None:
        self.is_gone = True
        self._line.close()

    def _hear_pid(self) -> int:
        """Never 0: signal 0 would go to ourselves."""
        pid = self._hear(_FORK_S).pid
        if pid <= 0:
            raise ServerError("its answer is to something else", _GONE)
        return pid

    def _send(self, order: ServerOrder, descriptors: Sequence[int] = ()) -> None:
        try:
            self._line.settimeout(_FORK_S)
            send(self._line, order, descriptors)
        except OSError as error:
            self.is_gone = True
            raise ServerError(f"it cannot be reached ({error.strerror or error})", _GONE) from error

    def _hear(self, limit_s: float) -> ServerAnswer:
        limit = TimeLimit(self.pid, limit_s)
        try:
            while (left_s := limit.compute_left_s()) and not select.select([self._line], [], [], left_s)[0]:
                pass
            self._line.settimeout(left_s or _READ_S)
            received, _ = receive(self._line)
            if received is None:
                raise ConnectionError  # it hung up
            return codec.decode(ServerAnswer, received, "answer")
        except TimeoutError as error:
            use = limit.read_use()
            silence = Fact(code=Code.SERVER_SILENT, numbers={"wall_s": use.wall_s, "cpu_s": use.cpu_s})
            raise ServerError(f"no answer in {use.wall_s:,.0f} s", silence) from error
        except (OSError, FileError) as error:
            self.is_gone = True
            raise ServerError("it ended", _GONE) from error


class RootServer(WorkerServer):
    def __init__(self, command: ProcessCommand) -> None:
        """Start it; it has imported nothing yet.

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
        self.problem: Fact | None = None  # why nothing may be forked from it
        self.branches: dict[tuple[object, ...], WorkerServer] = {}  # by arm and what they have imported

    def close(self) -> None:
        with defer_interrupts():
            self.hang_up()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            end_family(self._process, self._token)
