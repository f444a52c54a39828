"""The servers of a run: one for each interpreter, checkout and set of variables, each with one a module.

The hash seed is one of the variables: a warm process is forked from another server than the cold one.

Servers are opened as pairs need them and live until the lab closes. Where forking cannot be trusted to
give what a process of its own gives, workers are started afresh, and the reason is kept to be told. What the
lab and a server say to each other is in :mod:`gate.files.messages`.
"""

from __future__ import annotations

import itertools
import os
import secrets
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gate.devices import find_kind
from gate.errors import FileError, MachineError
from gate.files import codec
from gate.files.messages import ServerAnswer, ServerDoes, ServerOrder, receive, send
from gate.lab.workers.process import (
    TOKEN_VARIABLE,
    ForkedWorker,
    ProcessCommand,
    can_announce_ends,
    defer_interrupts,
    end_family,
    start_marked,
)
from gate.lab.workers.worker import WorkerJob
from gate.programs import TimeLimit
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import WORKER_ARGUMENTS, WorkerRequest
from gate.records.run import Arm

SERVER_ARGUMENTS = ("-P", "-m", "gate.worker.server")
_FORK_S = 30.0  # a fork takes milliseconds, minutes only where the machine swaps
_READ_S = 0.1  # what was sent in time is there
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
        self.is_busy = False  # a worker of it lives
        self.used = 0  # counts on with each use of any server
        self._line = line

    def begin_import(self, request: WorkerRequest) -> None:
        """Tell it to import what a worker of ``request`` does; :meth:`end_import` hears the answer."""
        self._tell(ServerOrder(does=ServerDoes.IMPORT, request=request))

    def end_import(self, limit_s: float) -> Fact | None:
        """Wait until everything is imported; return why nothing may be forked, if so.

        Raises:
            ServerError: It ended, or did not answer within ``limit_s`` CPU seconds.
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
            self.is_busy = True
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
        finally:
            self.is_busy = False

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
        limit = TimeLimit(self.pid, limit_s)
        try:
            while (left_s := limit.compute_left_s()) and not select.select([self._line], [], [], left_s)[0]:
                continue
            self._line.settimeout(left_s or _READ_S)
            received, _ = receive(self._line)
            if received is None:
                raise ConnectionError  # it hung up
            return codec.decode(ServerAnswer, received, "answer")
        except TimeoutError as error:
            use = limit.read_use()
            told = Fact(code=Code.SERVER_SILENT, numbers={"wall_s": use.wall_s, "cpu_s": use.cpu_s})
            raise ServerError(f"no answer in {use.wall_s:,.0f} s", told) from error
        except (OSError, FileError) as error:
            self.is_gone = True
            raise ServerError("it ended", _GONE) from error


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
        self.problem: Fact | None = None  # why nothing may be forked from it
        self.branches: dict[str, WorkerServer] = {}  # by what they have imported, in their order

    def close(self) -> None:
        """End it, its branches and whatever they left."""
        with defer_interrupts():
            self.hang_up()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            end_family(self._process, self._token)


# The rest of a worker's variables decide how libraries are loaded; these are read when they are used.
_READ_LATE = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
# Of an arm: one that has imported torch, and one for a factory's module, for each of a trial's two processes.
MAX_SERVERS = 4

_Key = tuple[object, ...]


class ServerPool:
    """Opens servers, keeps them, and closes them."""

    def __init__(self) -> None:
        self._roots: dict[_Key, RootServer] = {}
        self._why_not: dict[str, Fact | None] = {}  # by what is imported
        self._uses = itertools.count(1)

    def open(self, jobs: Sequence[WorkerJob], later: Sequence[WorkerJob] = ()) -> tuple[WorkerJob, ...]:
        """Give each of a pair's jobs a server that has imported what it needs, or give none of them one.

        All servers that are missing import at the same time, those of ``later`` jobs of the case as well.
        The jobs share what that took, and say why they have no server.

        Raises:
            MachineError: An interpreter cannot be started, or a disk is full.
        """
        if not all(find_kind(job.request.device).forks and job.argv[1:] == WORKER_ARGUMENTS for job in jobs):
            return tuple(jobs)
        if not can_announce_ends():
            return tuple(replace(job, why_not=Fact(code=Code.ENDS_UNANNOUNCED)) for job in jobs)
        begun = time.monotonic()
        imported = _name_import(jobs[0])
        why_not = self._why_not[imported] = self._why_not.get(imported) or self._open((*jobs, *later))
        opened_s = (time.monotonic() - begun) / len(jobs)
        opened = [replace(job, opened_s=opened_s, why_not=why_not) for job in jobs]
        return tuple(opened if why_not else (self._seat(job, imported) for job in opened))

    def _seat(self, job: WorkerJob, imported: str) -> WorkerJob:
        server = self._roots[_make_key(job)].branches[imported]
        server.used = next(self._uses)
        request = replace(job.request, parent=server.pid, is_forked=True)
        return replace(job, fork=server.start, request=request)

    def close(self) -> None:
        """End all servers, at the same time."""
        self._end(list(self._roots))

    def drop(self, arm: Arm) -> None:
        """End the servers of an arm whose checkout is about to go; what could not be forked is tried anew."""
        self._end([key for key in self._roots if key[:3] == (arm.name, arm.python, arm.directory)])
        self._why_not.clear()

    def _end(self, keys: Sequence[_Key]) -> None:
        ended = [self._roots.pop(key) for key in keys]
        for root in ended:
            for server in (*root.branches.values(), root):
                server.hang_up()
        for root in ended:
            root.close()

    def _open(self, jobs: Sequence[WorkerJob]) -> Fact | None:
        """Open what is missing; return why workers must be started afresh, if so."""
        try:
            return self._open_roots(jobs) or self._open_branches(jobs)
        except ServerError as error:
            self.close()  # whoever is left may be in the middle of something
            return error.told

    def _open_roots(self, jobs: Sequence[WorkerJob]) -> Fact | None:
        opened: list[tuple[WorkerJob, RootServer]] = []
        for job in jobs:
            key = _make_key(job)
            if key in self._roots and self._roots[key].is_gone:
                self._end([key])
            if key not in self._roots:
                self._make_room(job.arm, jobs)
                log = job.log.with_name(f"server-{job.arm}.log")
                server = RootServer(replace(job, argv=(job.argv[0], *SERVER_ARGUMENTS), log=log))
                self._roots[key] = server
                opened.append((job, server))
        for job, server in opened:
            server.begin_import(replace(job.request, case=None))
        for job, server in opened:
            server.problem = server.end_import(job.limit_s)
        return next(filter(None, (self._roots[_make_key(job)].problem for job in jobs)), None)

    def _open_branches(self, jobs: Sequence[WorkerJob]) -> Fact | None:
        opened: list[tuple[WorkerJob, WorkerServer]] = []
        imported = _name_import(jobs[0])
        for job in jobs:
            root = self._roots[_make_key(job)]
            if imported in root.branches and root.branches[imported].is_gone:
                del root.branches[imported]  # whoever killed it may have meant its worker alone
            if imported not in root.branches:
                self._make_room(job.arm, jobs)
                root.branches[imported] = root.branch()
                opened.append((job, root.branches[imported]))
        for job, server in opened:
            server.begin_import(job.request)
        problems = [server.end_import(job.limit_s) for job, server in opened]
        for (job, server), problem in zip(opened, problems, strict=True):
            if problem:  # it is asked anew once another checkout has taken the place of one of these
                del self._roots[_make_key(job)].branches[imported]
                server.hang_up()
        return next(filter(None, problems), None)

    def _make_room(self, arm: str, jobs: Sequence[WorkerJob]) -> None:
        """End the branches of an arm that were used least recently until one more server fits, if need be.

        Who has a worker stays, and who serves one of ``jobs``. A root goes with its last branch.
        """
        needed = {_make_key(job): _name_import(job) for job in jobs}
        roots = {key: root for key, root in self._roots.items() if key[0] == arm}
        while sum(1 + len(root.branches) for root in roots.values()) >= MAX_SERVERS:
            spare = [
                (branch.used, key, imported)
                for key, root in roots.items()
                for imported, branch in root.branches.items()
                if not branch.is_busy and needed.get(key) != imported
            ]
            if not spare:
                return
            _, key, imported = min(spare)
            roots[key].branches.pop(imported).hang_up()
            if not roots[key].branches and key not in needed:
                del roots[key]
                self._end([key])


def _make_key(job: WorkerJob) -> _Key:
    variables = tuple(sorted(item for item in job.environment.items() if item[0] not in _READ_LATE))
    request = job.request
    # The arm: a server has one worker at a time, and both arms may be of one directory.
    return job.arm, job.argv[0], request.directory, request.checkout, request.origin, variables


def _name_import(job: WorkerJob) -> str:
    """Name what a job's server imports: a module, whose factories all share it."""
    case = job.request.case
    return (case.factory.partition(":")[0] or case.id) if case else ""
