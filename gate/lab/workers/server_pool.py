"""The servers of a run: a root for each interpreter and set of variables, branches for each arm and module.

A root has imported torch, for both arms: their processes lie in memory alike. The hash seed is one of the
variables: cold and warm processes have different roots. Where forking cannot be trusted, workers are started
afresh, and the reason is kept.
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
from gate.records.protocol import ARM_VARIABLES, WORKER_ARGUMENTS
from gate.records.run import Arm

# Of an arm: one for a factory's module, for each of a trial's two processes, and one of another module.
MAX_BRANCHES = 3

_Key = tuple[object, ...]


class ServerPool:
    def __init__(self) -> None:
        self._roots: dict[_Key, RootServer] = {}
        self._why_not: dict[str, Fact | None] = {}  # by what is imported
        self._otherwise: set[_Key] = set()  # the places of arms that have what roots import otherwise
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
        first, *_ = jobs
        imported = _name_import(first)
        why_not = self._why_not[imported] = self._why_not.get(imported) or self._open((*jobs, *later))
        opened_s = (time.monotonic() - begun) / len(jobs)
        opened = [replace(job, opened_s=opened_s, why_not=why_not) for job in jobs]
        return tuple(opened if why_not else (self._seat(job) for job in opened))

    def begin(self, jobs: Sequence[WorkerJob]) -> None:
        """Let servers begin to import while nothing is timed. Errors show when they are opened."""
        for job in jobs:
            root = self._roots.get(self._make_key(job))
            if root is not None and not root.problem:
                with suppress(ServerError):
                    self._begin(job, root)

    @staticmethod
    def _begin(job: WorkerJob, root: RootServer) -> WorkerServer:
        key = _make_branch_key(job)
        if key in root.branches and root.branches[key].is_gone:
            del root.branches[key]  # whoever killed it may have meant its worker alone
        if key not in root.branches:
            root.branches[key] = root.branch()
            root.branches[key].begin_import(job.request, _list_arm_variables(job))
        return root.branches[key]

    def _seat(self, job: WorkerJob) -> WorkerJob:
        server = self._roots[self._make_key(job)].branches[_make_branch_key(job)]
        server.used = next(self._uses)
        request = replace(job.request, parent=server.pid, is_forked=True)
        return replace(job, fork=server.start, request=request)

    def close(self) -> None:
        self._end(list(self._roots))

    def drop(self, arm: Arm) -> None:
        """End an arm's branches; their roots serve the next arm, or go where none needs them."""
        for root in [root for key, root in self._roots.items() if key[0] == arm.python]:
            for key in [key for key in root.branches if key[:2] == (arm.name, arm.directory)]:
                root.branches.pop(key).hang_up()
        self._why_not.clear()

    def _end(self, keys: Sequence[_Key]) -> None:
        ended = [self._roots.pop(key) for key in keys]
        for root in ended:
            for server in (*root.branches.values(), root):
                server.hang_up()
        for root in ended:
            root.close()

    def _open(self, jobs: Sequence[WorkerJob]) -> Fact | None:
        known = len(self._otherwise)
        try:
            problem = self._open_roots(jobs) or self._open_branches(jobs)
            return self._open(jobs) if not problem and len(self._otherwise) > known else problem
        except ServerError as error:
            # Whoever is left may be in the middle of something. Other roots are not: one serves the primer.
            self._end([*self._roots.keys() & set(map(self._make_key, jobs))])
            return error.warning

    def _open_roots(self, jobs: Sequence[WorkerJob]) -> Fact | None:
        opened: list[tuple[WorkerJob, RootServer]] = []
        for job in jobs:
            key = self._make_key(job)
            if key in self._roots and self._roots[key].is_gone:
                self._end([key])
            if key not in self._roots:
                log = job.log.with_name("server.log")
                server = RootServer(replace(job, argv=(job.argv[0], *SERVER_ARGUMENTS), log=log))
                self._roots[key] = server
                opened.append((job, server))
        for job, server in opened:
            server.begin_import(replace(job.request, case=None), _list_arm_variables(job))
        for job, server in opened:
            server.problem = server.end_import(job.limit_s)
        return next(filter(None, (self._roots[self._make_key(job)].problem for job in jobs)), None)

    def _open_branches(self, jobs: Sequence[WorkerJob]) -> Fact | None:
        """But for an arm that may have otherwise what a root has imported: its own root is to come."""
        opened: list[tuple[WorkerJob, WorkerServer]] = []
        for job in jobs:
            root = self._roots[self._make_key(job)]
            if _make_branch_key(job) not in root.branches:
                self._make_room(job.arm, jobs)
            server = self._begin(job, root)
            if server.is_importing:
                opened.append((job, server))
        problems = [server.end_import(job.limit_s) for job, server in opened]
        for (job, server), problem in zip(opened, problems, strict=True):
            if problem or server.is_otherwise:  # it is asked anew once another checkout has taken this place
                self._roots[self._make_key(job)].branches.pop(_make_branch_key(job), None)
                server.hang_up()
        self._otherwise |= {_make_place(job) for job, server in opened if server.is_otherwise}
        return next(filter(None, problems), None)

    def _make_room(self, arm: str, jobs: Sequence[WorkerJob]) -> None:
        """End idle branches that were used least recently, and roots that are left without one."""
        needed = {(self._make_key(job), _make_branch_key(job)) for job in jobs}
        branches = [
            (branch.used, key, branch_key, branch.is_busy)
            for key, root in self._roots.items()
            for branch_key, branch in root.branches.items()
            if branch_key[0] == arm
        ]
        idle = sorted(
            (used, key, branch_key)
            for used, key, branch_key, is_busy in branches
            if not is_busy and (key, branch_key) not in needed
        )
        for _, key, branch_key in idle[: max(len(branches) - MAX_BRANCHES + 1, 0)]:
            self._roots[key].branches.pop(branch_key).hang_up()
        roots = {key for key, _ in needed}
        self._end([key for key, root in self._roots.items() if not root.branches and key not in roots])

    def _make_key(self, job: WorkerJob) -> _Key:
        # The rest of a worker's variables decide how libraries are loaded.
        variables = tuple(sorted(item for item in job.environment.items() if item[0] not in ARM_VARIABLES))
        place = _make_place(job)
        return job.argv[0], job.request.models, variables, place if place in self._otherwise else ()


def _make_place(job: WorkerJob) -> _Key:
    # The arm: a server has one worker at a time, and both arms may be of one directory.
    return job.arm, job.request.directory, job.request.checkout, job.request.origin


def _make_branch_key(job: WorkerJob) -> _Key:
    return *_make_place(job), _name_import(job)


def _list_arm_variables(job: WorkerJob) -> dict[str, str]:
    return {name: value for name, value in job.environment.items() if name in ARM_VARIABLES}


def _name_import(job: WorkerJob) -> str:
    """A module, whose factories all share it; without a case the role, as two may be at work at once.

    No module has such a name.
    """
    case = job.request.case
    return (case.factory.partition(":")[0] or case.id) if case else f"<{job.request.role}>"
