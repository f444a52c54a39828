"""The servers of a run: one for each interpreter, checkout and set of variables, each with one a module.

The hash seed is one of the variables: cold and warm processes have different servers. Where forking cannot be
trusted, workers are started afresh, and the reason is kept.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from gate.devices import get_kind
from gate.lab.workers.process import can_announce_ends
from gate.lab.workers.servers import SERVER_ARGUMENTS, RootServer, ServerError, WorkerServer
from gate.lab.workers.worker import WorkerJob
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import CACHE_VARIABLES, WORKER_ARGUMENTS
from gate.records.run import Arm

# Of an arm: one that has imported torch, and one for a factory's module, for each of a trial's two processes.
MAX_SERVERS = 4

_Key = tuple[object, ...]


class ServerPool:
    def __init__(self) -> None:
        self._roots: dict[_Key, RootServer] = {}
        self._why_not: dict[str, Fact | None] = {}  # by what is imported
        self._uses = itertools.count(1)

    def open(self, jobs: Sequence[WorkerJob], later: Sequence[WorkerJob] = ()) -> tuple[WorkerJob, ...]:
        """Give each of a pair's jobs a server that has imported what it needs, or give none of them one.

        Servers of ``later`` jobs import at the same time. The jobs share the time it took.

        Raises:
            MachineError: An interpreter cannot be started, or a disk is full.
        """
        if not all(get_kind(job.request.device).forks and job.argv[1:] == WORKER_ARGUMENTS for job in jobs):
            return tuple(jobs)
        if not can_announce_ends():
            return tuple(replace(job, why_not=Fact(code=Code.ENDS_UNANNOUNCED)) for job in jobs)
        begun = time.monotonic()
        imported = _name_import(jobs[0])
        why_not = self._why_not[imported] = self._why_not.get(imported) or self._open((*jobs, *later))
        opened_s = (time.monotonic() - begun) / len(jobs)
        opened = [replace(job, opened_s=opened_s, why_not=why_not) for job in jobs]
        return tuple(opened if why_not else (self._seat(job, imported) for job in opened))

    def begin(self, jobs: Sequence[WorkerJob]) -> None:
        """Let servers begin to import while nothing is timed. Errors show when they are opened."""
        for job in jobs:
            root = self._roots.get(_make_key(job))
            if root is not None and not root.problem:
                with suppress(ServerError):
                    self._begin(job, root, _name_import(job))

    @staticmethod
    def _begin(job: WorkerJob, root: RootServer, imported: str) -> WorkerServer:
        if imported in root.branches and root.branches[imported].is_gone:
            del root.branches[imported]  # whoever killed it may have meant its worker alone
        if imported not in root.branches:
            root.branches[imported] = root.branch()
            root.branches[imported].begin_import(job.request)
        return root.branches[imported]

    def _seat(self, job: WorkerJob, imported: str) -> WorkerJob:
        server = self._roots[_make_key(job)].branches[imported]
        server.used = next(self._uses)
        request = replace(job.request, parent=server.pid, is_forked=True)
        return replace(job, fork=server.start, request=request)

    def close(self) -> None:
        self._end(list(self._roots))

    def drop(self, arm: Arm) -> None:
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
        try:
            return self._open_roots(jobs) or self._open_branches(jobs)
        except ServerError as error:
            self.close()  # whoever is left may be in the middle of something
            return error.warning

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
            if imported not in root.branches:
                self._make_room(job.arm, jobs)
            server = self._begin(job, root, imported)
            if server.is_importing:
                opened.append((job, server))
        problems = [server.end_import(job.limit_s) for job, server in opened]
        for (job, server), problem in zip(opened, problems, strict=True):
            if problem:  # it is asked anew once another checkout has taken the place of one of these
                del self._roots[_make_key(job)].branches[imported]
                server.hang_up()
        return next(filter(None, problems), None)

    def _make_room(self, arm: str, jobs: Sequence[WorkerJob]) -> None:
        """End idle branches that were used least recently; a root goes with its last branch."""
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
    # The rest of a worker's variables decide how libraries are loaded.
    variables = tuple(sorted(item for item in job.environment.items() if item[0] not in CACHE_VARIABLES))
    request = job.request
    # The arm: a server has one worker at a time, and both arms may be of one directory.
    return job.arm, job.argv[0], request.directory, request.checkout, request.origin, variables


def _name_import(job: WorkerJob) -> str:
    """A module, whose factories all share it."""
    case = job.request.case
    return (case.factory.partition(":")[0] or case.id) if case else ""
