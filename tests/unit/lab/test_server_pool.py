"""The workers that may be forked, as far as no server is needed to decide."""

from __future__ import annotations

import errno
import os
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from gate.lab.trials.bench import Bench, LabSettings, make_job
from gate.lab.workers import server_pool
from gate.lab.workers.process import ProcessCommand
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.servers import ServerError
from gate.lab.workers.worker import WorkerJob
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import WorkerRequest, WorkerRole

from .conftest import make_case

A_THREAD = Fact(code=Code.IMPORT_STARTS_THREADS, names=name_words(thread="watcher"))


@pytest.mark.parametrize("settings_changed", [{"device": "cuda:1"}, {"worker": ("-m", "another.program")}])
def test_without_a_server_jobs_stay_as_they_are(bench: Bench, settings_changed: dict[str, Any]) -> None:
    """On a GPU, and of another program, workers are processes of their own."""
    changed = replace(bench, settings=replace(LabSettings(out=bench.settings.out), **settings_changed))
    jobs = (make_job(changed, WorkerRole.COLD, make_case()),)
    assert ServerPool().open(jobs) == jobs


def test_without_news_of_ends_nothing_is_forked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """On such a kernel or container nobody would notice a forked worker's end."""
    monkeypatch.setattr(os, "pidfd_open", Mock(side_effect=OSError(errno.ENOSYS, "not here")))
    job = make_job(replace(bench, settings=LabSettings(out=bench.settings.out)), WorkerRole.COLD, make_case())
    assert ServerPool().open([job])[0].why_not == Fact(code=Code.ENDS_UNANNOUNCED)


class ThreadedServer:
    """A root whose import started a thread; it must never be asked for a branch."""

    pid = 1
    is_gone = False

    def __init__(self, _place: object) -> None:
        self.begin_import = self.end_import = self.close = lambda *_: A_THREAD


def test_nothing_is_forked_from_a_server_with_a_thread(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root server's own imports decide for every case."""
    monkeypatch.setattr(server_pool, "RootServer", ThreadedServer)
    plain = replace(bench, settings=LabSettings(out=bench.settings.out))
    pool = ServerPool()
    for factory in ("one:build", "two:build"):
        job = make_job(plain, WorkerRole.COLD, replace(make_case(), factory=factory))
        assert pool.open([job])[0].why_not == A_THREAD


class QuietServer:
    """A root that sends nothing; it remembers whether it was ended."""

    pid = 1
    closed: list[str] = []  # noqa: RUF012 - of all of them, by directory
    branched: list[str] = []  # noqa: RUF012
    imported: list[str] = []  # noqa: RUF012 - of all of them: "begins" and "ends"

    def __init__(self, command: ProcessCommand) -> None:
        self.directory = str(command.directory)
        self.is_gone = self.is_busy = self.is_importing = self.is_otherwise = False
        self.used = 0
        self.problem, self.branches = None, dict[tuple[str, ...], QuietServer]()
        self.hang_up = self.start = lambda *_: None

    def begin_import(self, _request: object, _variables: object) -> None:
        """Begin."""
        self.imported.append("begins")
        self.is_importing = True

    def end_import(self, _limit_s: float) -> None:
        """End."""
        self.imported.append("ends")
        self.is_importing = False

    def branch(self) -> QuietServer:
        self.branched.append(self.directory)
        return copy(self)

    def close(self) -> None:
        """End it."""
        self.closed.append(self.directory)


def test_factories_of_one_module_share_what_is_imported(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is imported once; another module, or another test's, is not shared."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    QuietServer.branched.clear()
    plain = replace(bench, settings=LabSettings(out=bench.settings.out))
    pool = ServerPool()
    counts = []
    for name, factory in (("a", "one:build"), ("b", "one:make"), ("c", "two:build"), ("d", ""), ("e", "")):
        pool.open([make_job(plain, WorkerRole.COLD, replace(make_case(name=name), factory=factory))])
        counts.append(len(QuietServer.branched))
    assert counts == [1, 1, 2, 3, 4]


def test_what_has_begun_to_import_is_waited_for_when_it_is_opened(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both servers of a case import next to the primer; an arm without torch has none."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    plain, case = replace(bench, settings=LabSettings(out=bench.settings.out)), make_case()
    cold, warm = (make_job(plain, role, case) for role in (WorkerRole.COLD, WorkerRole.WARM))
    prime, plain_warm = (make_job(plain, role) for role in (WorkerRole.PRIME, WorkerRole.WARM))
    pool = ServerPool()
    pool.begin([cold, warm])
    assert pool._roots == {}
    pool.open([prime], [plain_warm])
    QuietServer.imported.clear()
    pool.begin([cold, warm])
    assert QuietServer.imported == ["begins", "begins"]
    (opened,) = pool.open([cold], [warm])
    assert opened.fork is not None
    assert QuietServer.imported == ["begins", "begins", "ends", "ends"]


def test_the_second_processes_are_forked_from_servers_of_another_hash_seed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They open with those of the first processes, while nothing is timed."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    QuietServer.branched.clear()
    plain, case = replace(bench, settings=LabSettings(out=bench.settings.out)), make_case()
    cold, warm = (make_job(plain, role, case) for role in (WorkerRole.COLD, WorkerRole.WARM))
    pool = ServerPool()
    (opened,) = pool.open([cold], [warm])
    assert (opened.request.role, len(pool._roots), len(QuietServer.branched)) == (WorkerRole.COLD, 2, 2)
    assert pool.open([warm])[0].fork is not None
    assert len(QuietServer.branched) == 2


def test_arms_share_a_root_and_not_a_branch(arms: tuple[Bench, Bench]) -> None:
    """What both import alike is imported once for each of a trial's two processes."""
    QuietServer.branched.clear()
    pool = ServerPool()
    assert all(job.fork for job in open_pair(pool, arms, make_case()))
    assert (len(pool._roots), len(QuietServer.branched)) == (2, 4)


def test_an_arm_with_another_module_of_an_imported_name_has_roots_of_its_own(
    arms: tuple[Bench, Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not forked from what was imported for the other arm; that stays so for its other modules."""
    pool = ServerPool()

    def end_import(server: QuietServer, _limit_s: float) -> None:
        """The branch of the base on the root that it shares with head has imported something else."""
        server.is_importing = False
        shared = [root for key, root in pool._roots.items() if not key[-1]]
        server.is_otherwise = any(
            branch is server and key[0] == "base" for root in shared for key, branch in root.branches.items()
        )

    monkeypatch.setattr(QuietServer, "end_import", end_import)
    for module in ("one", "two"):
        jobs = open_pair(pool, arms, replace(make_case(), factory=f"{module}:build"))
        assert all(job.fork for job in jobs)
        assert sorted(bool(key[-1]) for key in pool._roots) == [False, False, True, True]
        shared = [root for key, root in pool._roots.items() if not key[-1]]
        assert {key[0] for root in shared for key in root.branches} == {"head"}


def test_the_branches_of_one_arm_can_be_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The other arm's stay, as what both share; the ended ones open anew."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    QuietServer.branched.clear()
    QuietServer.closed.clear()
    plain = replace(bench, settings=LabSettings(out=bench.settings.out))
    other = replace(plain, arm=replace(bench.arm, name="base", directory=str(tmp_path)))
    jobs = [make_job(command, WorkerRole.COLD, make_case()) for command in (other, plain)]
    pool = ServerPool()
    assert pool.open(jobs)[0].why_not is None
    pool.drop(plain.arm)
    assert (list_imported(pool, "base"), list_imported(pool, "head")) == ([["actor"]], [[]])
    assert pool.open(jobs)[0].why_not is None
    assert (len(QuietServer.branched), QuietServer.closed) == (3, [])
    pool.close()
    assert len(QuietServer.closed) == 1


def test_an_interpreter_that_no_arm_has_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bisection over interpreters would else keep them all in memory."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    QuietServer.closed.clear()
    plain, pool = replace(bench, settings=LabSettings(out=bench.settings.out)), ServerPool()
    for python in ("first/python", "second/python"):
        arm = replace(plain, arm=replace(bench.arm, python=python))
        pool.open([make_job(arm, WorkerRole.COLD, make_case())])
        pool.drop(arm.arm)
    assert ([key[0] for key in pool._roots], len(QuietServer.closed)) == (["second/python"], 1)


def test_a_server_that_dies_as_it_imports_ends_no_other_root(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one may serve the primer, which is at work as imports are tried."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    QuietServer.closed.clear()
    plain, pool = replace(bench, settings=LabSettings(out=bench.settings.out)), ServerPool()
    first, second = (
        make_job(replace(plain, arm=replace(bench.arm, python=python)), WorkerRole.COLD, make_case())
        for python in ("first/python", "second/python")
    )
    assert pool.open([first])[0].why_not is None
    monkeypatch.setattr(QuietServer, "end_import", Mock(side_effect=ServerError("gone", A_THREAD)))
    assert pool.open([second])[0].why_not == A_THREAD
    assert ([key[0] for key in pool._roots], len(QuietServer.closed)) == (["first/python"], 1)


def test_a_server_that_is_gone_is_opened_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker took too long to end; later cases are measured."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    QuietServer.branched.clear()
    QuietServer.closed.clear()
    plain = replace(bench, settings=LabSettings(out=bench.settings.out))
    job, pool = make_job(plain, WorkerRole.COLD, make_case()), ServerPool()
    (opened,) = pool.open([job])
    assert opened.fork is not None
    for server in pool._roots.values():
        server.is_gone = True
    assert pool.open([job])[0].why_not is None
    assert (len(QuietServer.branched), len(QuietServer.closed)) == (2, 1)


@pytest.fixture
def arms(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, Bench]:
    """Both arms of a pair, whose servers send nothing."""
    monkeypatch.setattr(server_pool, "RootServer", QuietServer)
    head = replace(bench, settings=LabSettings(out=bench.settings.out))
    return replace(head, arm=replace(bench.arm, name="base")), head


def open_pair(pool: ServerPool, arms: tuple[Bench, Bench], case: Case) -> tuple[WorkerJob, ...]:
    """Open the servers of a pair: of both arms' first processes, and of the second ones."""
    first, second = (
        [make_job(arm, role, case) for arm in arms] for role in (WorkerRole.COLD, WorkerRole.WARM)
    )
    return (*pool.open(first, second), *pool.open(second))


def list_imported(pool: ServerPool, arm: str) -> list[list[str]]:
    """What the servers of an arm have imported besides torch, root by root."""
    return [[str(key[-1]) for key in root.branches if key[0] == arm] for root in pool._roots.values()]


def test_an_arm_keeps_three_branches_however_many_factories_there_are(arms: tuple[Bench, Bench]) -> None:
    """The current module's for each process of a trial, and one of the module before."""
    pool = ServerPool()
    for module, before in (("one", []), ("two", ["one"]), ("one", ["two"]), ("three", ["one"])):
        jobs = open_pair(pool, arms, replace(make_case(), factory=f"{module}:build"))
        assert all(job.fork for job in jobs)
        for arm in arms:
            imported = list_imported(pool, arm.arm.name)
            assert sorted(name for names in imported for name in names) == sorted([module, module, *before])


def test_what_was_used_least_recently_is_let_go_first(arms: tuple[Bench, Bench]) -> None:
    """One process a trial leaves room for three factories; the oldest is used again."""
    pool = ServerPool()
    for name in ("a", "b", "c", "a", "d"):
        case = replace(make_case(), factory=f"{name}:build")
        (opened,) = pool.open([make_job(arms[0], WorkerRole.COLD, case)])
        assert opened.fork is not None
    assert list_imported(pool, "base") == [["a", "c", "d"]]


def test_who_has_a_worker_is_not_let_go(arms: tuple[Bench, Bench]) -> None:
    """For that time there are more than three."""
    pool = ServerPool()
    open_pair(pool, arms, replace(make_case(), factory="one:build"))
    busy = [branch for root in pool._roots.values() for branch in root.branches.values()]
    for server in busy:
        server.is_busy = True
    open_pair(pool, arms, replace(make_case(), factory="two:build"))
    assert list_imported(pool, "head") == [["one", "two"]] * 2
    for server in busy:
        server.is_busy = False
    open_pair(pool, arms, replace(make_case(), factory="three:build"))
    assert sum(map(len, list_imported(pool, "head"))) == 3


def test_a_root_goes_with_its_last_branch(arms: tuple[Bench, Bench]) -> None:
    """If the interpreter's variables change for both arms, the old roots serve nobody."""
    QuietServer.closed.clear()
    pool, case = ServerPool(), make_case()
    for threads in (1, 7, 7):
        changed = [replace(arm, settings=replace(arm.settings, threads=threads)) for arm in arms]
        other = replace(case, factory=f"other_{threads}:build")
        for factory in (case, other, case):
            open_pair(pool, (changed[0], changed[1]), factory)
    assert (len(pool._roots), len(QuietServer.closed)) == (2, 2)


def test_one_job_that_may_not_be_forked_leaves_both_as_they_are(arms: tuple[Bench, Bench]) -> None:
    """Both arms run alike, or their times could not be compared."""
    base, head = (make_job(arm, WorkerRole.COLD, make_case()) for arm in arms)
    for other in (
        replace(head, request=replace(head.request, device="cuda")),
        replace(head, argv=("python",)),
    ):
        assert ServerPool().open((base, other)) == (base, other)
        assert ServerPool().open((other, base)) == (other, base)
    assert all(job.fork for job in ServerPool().open((base, head)))


@pytest.mark.parametrize("problem", [None, A_THREAD])
def test_jobs_share_the_time_that_their_servers_take(
    arms: tuple[Bench, Bench], monkeypatch: pytest.MonkeyPatch, problem: Fact | None
) -> None:
    """6 s of two are 3 s of each, also where nothing may be forked then."""
    clock = iter((10.0, 16.0))
    monkeypatch.setattr(server_pool, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(QuietServer, "end_import", lambda *_: problem)
    opened = ServerPool().open([make_job(arm, WorkerRole.COLD, make_case()) for arm in arms])
    assert [(job.opened_s, job.why_not) for job in opened] == [(3.0, problem)] * 2
    assert [job.fork is None for job in opened] == [problem is not None] * 2


def test_a_worker_is_told_of_its_server(arms: tuple[Bench, Bench]) -> None:
    """It may not outlive it, and its first compile is a little slower."""
    job = make_job(arms[0], WorkerRole.COLD, make_case())
    (opened,) = ServerPool().open([job])
    assert (opened.request.parent, opened.request.is_forked) == (1, True)
    assert replace(opened.request, parent=job.request.parent, is_forked=False) == job.request


def test_what_a_module_forbids_is_asked_once(
    arms: tuple[Bench, Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the arm is dropped: another commit may have changed the module."""
    pool, job = ServerPool(), make_job(arms[1], WorkerRole.COLD, make_case())
    assert pool.open([make_job(arms[1], WorkerRole.COLD, replace(make_case(), factory="two:build"))])[0].fork
    ends = Mock(return_value=A_THREAD)
    monkeypatch.setattr(QuietServer, "end_import", ends)
    assert [pool.open([job])[0].why_not for _ in range(3)] == [A_THREAD] * 3
    assert ends.call_count == 1
    assert list_imported(pool, "head") == [["two"]]
    pool.drop(arms[1].arm)
    assert pool.open([job])[0].why_not == A_THREAD
    assert ends.call_count == 2


def test_a_root_imports_no_case_and_a_branch_its_own(
    arms: tuple[Bench, Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with the arm's own variables and none of the others; the root's log lies beside the job's."""
    asked: list[tuple[Case | None, dict[str, str]]] = []
    commands: list[ProcessCommand] = []

    def begin(server: QuietServer, request: WorkerRequest, variables: dict[str, str]) -> None:
        asked.append((request.case, variables))
        server.is_importing = True

    class NotedServer(QuietServer):
        """Keeps how it was started."""

        def __init__(self, command: ProcessCommand) -> None:
            super().__init__(command)
            commands.append(command)

    monkeypatch.setattr(server_pool, "RootServer", NotedServer)
    monkeypatch.setattr(QuietServer, "begin_import", begin)
    job = make_job(arms[1], WorkerRole.COLD, make_case())
    job = replace(job, environment={"HOME": "/me", "TRITON_CACHE_DIR": "/t"})
    ServerPool().open([job])
    assert asked == [(None, {"TRITON_CACHE_DIR": "/t"}), (make_case(), {"TRITON_CACHE_DIR": "/t"})]
    (command,) = commands
    assert command.argv == (job.argv[0], "-P", "-m", "gate.worker.server")
    assert command.log == job.log.with_name("server.log")


def test_nothing_is_begun_on_a_root_that_may_not_be_forked(arms: tuple[Bench, Bench]) -> None:
    """Nor is an error of a server one of the measurement: it shows when the server is opened."""
    pool = ServerPool()
    job, other = (
        make_job(arms[1], WorkerRole.COLD, replace(make_case(), factory=factory))
        for factory in ("one:build", "two:build")
    )
    pool.open([job])
    (root,) = pool._roots.values()
    root.problem = A_THREAD
    pool.begin([other])
    assert list_imported(pool, "head") == [["one"]]
    root.problem, root.branch = None, Mock(side_effect=ServerError("gone", A_THREAD))  # type: ignore[method-assign]
    pool.begin([other])
    assert list_imported(pool, "head") == [["one"]]


def test_a_branch_that_is_gone_is_forked_anew(arms: tuple[Bench, Bench]) -> None:
    """Whoever killed it may have meant its worker alone; its root is the same."""
    pool, job = ServerPool(), make_job(arms[1], WorkerRole.COLD, make_case())
    pool.open([job])
    (root,) = pool._roots.values()
    (gone,) = root.branches.values()
    gone.is_gone = True
    assert pool.open([job])[0].fork
    assert list(pool._roots.values()) == [root]
    assert [branch is gone for branch in root.branches.values()] == [False]


@pytest.mark.parametrize(
    ("changes", "kept"), [({}, []), ({"directory": "/other"}, ["actor"]), ({"python": "/other"}, ["actor"])]
)
def test_an_arm_is_dropped_by_its_interpreter_name_and_directory(
    arms: tuple[Bench, Bench], changes: dict[str, Any], kept: list[str]
) -> None:
    """A worktree of another commit is another arm."""
    pool, arm = ServerPool(), arms[1]
    pool.open([make_job(arm, WorkerRole.COLD, make_case())])
    pool.drop(replace(arm.arm, **changes))
    assert list_imported(pool, "head") == [kept]


def test_the_order_of_variables_makes_no_other_root(arms: tuple[Bench, Bench]) -> None:
    """Nor do those by which arms differ; another value does, and both roots stay with their branches."""
    QuietServer.closed.clear()
    pool, job = ServerPool(), make_job(arms[1], WorkerRole.COLD, make_case())
    for variables in (
        {"A": "1", "B": "2"},
        {"B": "2", "A": "1"},
        {"A": "1", "B": "2", "TRITON_CACHE_DIR": "/t"},
        {"A": "1", "B": "3"},
    ):
        assert pool.open([replace(job, environment=variables)])[0].fork
    assert (len(pool._roots), QuietServer.closed) == (2, [])
    assert [len(root.branches) for root in pool._roots.values()] == [1, 1]


def test_a_branch_that_may_not_be_forked_is_hung_up_on(
    arms: tuple[Bench, Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked anew once another checkout has taken this place."""
    hung_up: list[QuietServer] = []
    pool, job = ServerPool(), make_job(arms[1], WorkerRole.COLD, make_case())
    pool.open([replace(job, request=replace(job.request, case=None))])

    def end_import(server: QuietServer, _limit_s: float) -> Fact:
        server.is_importing = False
        server.hang_up = lambda *_: hung_up.append(server)
        return A_THREAD

    monkeypatch.setattr(QuietServer, "end_import", end_import)
    assert pool.open([job])[0].why_not == A_THREAD
    assert len(hung_up) == 1
    assert list_imported(pool, "head") == [["<cold>"]]
