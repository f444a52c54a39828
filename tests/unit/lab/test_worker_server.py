"""Forked workers report as processes of their own do, and nothing of them survives."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gate.errors import MachineError
from gate.files.messages import ServerAnswer, send
from gate.lab.host.fitness import read_host
from gate.lab.workers.process import ForkedWorker, ProcessCommand, run_process
from gate.lab.workers.servers import RootServer, ServerError, WorkerServer
from gate.records.codes import Code

from .conftest import CountLeft

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")

SLEEP = "import time; time.sleep(600)"
SPAWN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True)"
# Neither executed anew nor in the group of its parent: no token, no group to find it by.
FORK_AWAY = f"import os\nif os.fork() == 0:\n    os.setsid()\n    {SLEEP}"

MakeCommand = Callable[..., ProcessCommand]


@pytest.fixture
def root_command(tmp_path: Path) -> ProcessCommand:
    """A server of workers that run a file of Python."""
    acting = str(Path(__file__).with_name("acting_server.py"))
    return ProcessCommand(
        argv=(sys.executable, "-P", acting),
        environment={**os.environ, "PYTHONFAULTHANDLER": "1"},
        directory=tmp_path,
        log=tmp_path / "logs" / "server.log",
        limit_s=60.0,
    )


@pytest.fixture
def server(root_command: ProcessCommand) -> Iterator[RootServer]:
    started = RootServer(root_command)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def command(tmp_path: Path, server: RootServer) -> MakeCommand:
    """Make a command whose worker is forked and runs some lines of Python."""

    def make(lines: str, limit_s: float = 30.0) -> ProcessCommand:
        script = tmp_path / "request.py"
        script.write_text(lines)
        return ProcessCommand(
            argv=("unused", str(script)),
            environment={"GIVEN": "one"},
            directory=tmp_path,
            log=tmp_path / "logs" / "worker.log",
            limit_s=limit_s,
            fork=server.start,
        )

    return make


def test_sends_status_output_and_variables(command: MakeCommand, tmp_path: Path) -> None:
    """The status and both streams come back; the worker has its own variables."""
    lines = (
        "import os, sys; print(os.environ.pop('GIVEN'), sorted(os.environ));"
        "print('two', file=sys.stderr); sys.exit(7)"
    )
    ended = run_process(command(lines))
    assert (ended.status, ended.use) == (7, None)
    assert sorted(ended.log_tail.split()) == [b"['COMPILE_GATE_WORKER']", b"one", b"two"]
    assert (tmp_path / "logs" / "worker.log").read_bytes() == ended.log_tail


def test_temporary_files_are_where_the_run_has_them(command: MakeCommand, tmp_path: Path) -> None:
    """In the worker's own TMPDIR, also if the server used its own before."""
    asking = command("import tempfile; print(tempfile.gettempdir())")
    redirected = replace(asking, environment={"TMPDIR": str(tmp_path)})
    assert run_process(redirected).log_tail.decode() == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("lines", "status", "log"),
    [
        ("raise ValueError('seen')", 1, b"ValueError: seen\n"),
        ("raise SystemExit('No model in MODEL_DIR.')", 1, b"No model in MODEL_DIR.\n"),
        ("raise SystemExit(7)", 7, b""),
        ("raise SystemExit", 0, b""),
    ],
)
def test_an_exception_ends_a_worker_as_it_ends_an_interpreter(
    command: MakeCommand, lines: str, status: int, log: bytes
) -> None:
    """With its status, and with what it says on stderr."""
    ended = run_process(command(lines))
    assert (ended.status, ended.log_tail[-len(log) :] if log else ended.log_tail) == (status, log)


def test_signal_is_a_negative_status(command: MakeCommand) -> None:
    """A worker that dies on a signal has that signal's number, negated, as its status."""
    assert run_process(command("import os; os.kill(os.getpid(), 11)")).status == -signal.SIGSEGV


@pytest.mark.parametrize("leave", [SPAWN, FORK_AWAY], ids=["spawned", "forked"])
@pytest.mark.parametrize("then", ["", SLEEP], ids=["ended", "timed_out"])
def test_nothing_that_a_worker_started_survives(
    command: MakeCommand, server: RootServer, leave: str, then: str
) -> None:
    """Its executed or forked processes die with it; the server lives on."""
    begun = time.monotonic()
    ended = run_process(command(f"{leave}\n{then}", limit_s=1.0 if then else 30.0))
    assert (ended.use is not None) == bool(then)
    assert time.monotonic() - begun < 60.0
    assert psutil.Process(server.pid).children(recursive=True) == []
    assert run_process(command("print('next')")).log_tail == b"next\n"


def test_a_server_is_busy_while_its_worker_lives(command: MakeCommand, server: RootServer) -> None:
    """So it is not ended to make room for another one."""
    busy: list[bool] = []

    def start(given: ProcessCommand, token: str) -> ForkedWorker:
        worker = server.start(given, token)
        busy.append(server.is_busy)
        return worker

    assert not server.is_busy
    run_process(replace(command("pass"), fork=start))
    assert (busy, server.is_busy) == ([True], False)


def test_a_worker_that_hangs_shows_where(command: MakeCommand) -> None:
    """At the time limit the worker's fault handler prints where it was."""
    ended = run_process(command(SLEEP, limit_s=2.0))
    assert ended.status == -signal.SIGABRT
    assert ended.use
    assert ended.use.hangs
    assert b"request.py" in ended.log_tail


def test_the_channel_has_the_number_that_the_worker_knows(command: MakeCommand) -> None:
    """A descriptor keeps its number, and its end is noticed when the worker ends."""
    ours, theirs = socket.socketpair()
    number = theirs.detach()
    lines = f"import socket; socket.socket(fileno={number}).sendall(b'ready')"
    ended = run_process(replace(command(lines), given=(number,)))
    with ours:
        assert (ended.status, ours.recv(16), ours.recv(16)) == (0, b"ready", b"")


def test_what_workers_use_is_our_own(command: MakeCommand, server: RootServer) -> None:
    """CPU time of forked workers, also of a branch's, is not other programs'."""
    spin = "import time\nwhile time.process_time() < 0.5: pass"
    branch = server.branch()
    for parent in (server, branch):
        before = read_host()
        assert run_process(replace(command(spin), fork=parent.start)).status == 0
        after = read_host()
        # The kernel counts ticks of 10 ms, sampled.
        assert after.own_s - before.own_s > 0.4
    branch.hang_up()


def test_siblings_do_not_share_addresses(command: MakeCommand) -> None:
    """Allocations are at other addresses in each, as in separate processes."""
    lines = "import ctypes; print(ctypes.addressof(ctypes.create_string_buffer(1 << 22)))"
    assert len({run_process(command(lines)).log_tail for _ in range(5)}) > 1


def test_a_branch_has_workers_of_its_own(command: MakeCommand, server: RootServer) -> None:
    """A server's branch forks workers too, which are its children, until its connection closes."""
    branch = server.branch()
    ended = run_process(replace(command("import os; print(os.getppid())"), fork=branch.start))
    assert int(ended.log_tail) == branch.pid != server.pid
    assert run_process(command("print('root')")).log_tail == b"root\n"
    assert run_process(replace(command("print('branch')"), fork=branch.start)).log_tail == b"branch\n"
    branch.hang_up()
    process = psutil.Process(branch.pid)
    while process.status() != psutil.STATUS_ZOMBIE:  # which is left until another branch is asked for
        time.sleep(0.01)
    last = server.branch()
    assert [child.pid for child in psutil.Process(server.pid).children()] == [last.pid]
    last.hang_up()


def test_a_server_that_is_killed_takes_its_worker_along(
    server: RootServer, command: MakeCommand, count_left: CountLeft
) -> None:
    """The worker ends as if killed itself; a further start is an error."""

    def start_and_kill(given: ProcessCommand, token: str) -> ForkedWorker:
        worker = server.start(given, token)
        os.kill(server.pid, signal.SIGKILL)
        return worker

    ended = run_process(replace(command(SLEEP), fork=start_and_kill))
    assert (ended.status, ended.use) == (-signal.SIGKILL, None)
    with pytest.raises(MachineError, match="the process that starts workers is gone"):
        run_process(command("print('never')"))
    assert count_left() == 0


@pytest.mark.parametrize("late", [ServerAnswer(status=-9), ServerAnswer(pid=0)], ids=["reaped", "no_pid"])
def test_a_late_answer_is_not_taken_for_another(root_command: ProcessCommand, late: ServerAnswer) -> None:
    """A slow server's late answer is skipped: no process has the number 0."""
    ours, theirs = socket.socketpair()
    with theirs:
        slow = WorkerServer(os.getpid(), ours)
        if late.status:
            assert slow.reap(12345, 0.1) == -signal.SIGKILL
        else:
            send(theirs, late)
        with pytest.raises(MachineError, match="the process that starts workers is gone"):
            slow.start(root_command, "token")
        slow.hang_up()


def test_a_worker_that_is_gone_before_anyone_looks_is_not_waited_for(command: MakeCommand) -> None:
    """The worker of a killed server is gone from the process table: it is dead."""
    gone = subprocess.Popen((sys.executable, "-S", "-c", ""))
    gone.wait()
    reading, writing = os.pipe()
    os.close(writing)
    worker = ForkedWorker(gone.pid, os.fdopen(reading, "rb", buffering=0), lambda _: -signal.SIGKILL)
    ended = run_process(replace(command(SLEEP, limit_s=5.0), fork=lambda *_: worker))
    assert (ended.status, ended.use) == (-signal.SIGKILL, None)


def test_closing_ends_workers_and_branches(root_command: ProcessCommand, command: MakeCommand) -> None:
    """Neither server, branch nor worker is left."""
    other = RootServer(root_command)
    branch = other.branch()
    worker = branch.start(command(SLEEP), "token")
    family = [psutil.Process(pid) for pid in (other.pid, branch.pid, worker.pid)]
    other.close()
    _, alive = psutil.wait_procs(family, timeout=60.0)
    assert alive == []
    assert worker.stdout is not None
    worker.stdout.close()
    branch.hang_up()


def test_a_server_takes_nothing_down_at_its_end(root_command: ProcessCommand) -> None:
    """With torch imported that takes more than a second, and exit handlers may take longer."""
    run = f"runpy.run_path({root_command.argv[2]!r}, run_name='__main__')"
    acting = f"import atexit, runpy; atexit.register(print, 'at exit'); {run}"
    other = RootServer(replace(root_command, argv=(sys.executable, "-c", acting)))
    other.branch().hang_up()  # it serves
    other.close()
    assert root_command.log.read_text() == ""


def test_a_server_that_cannot_start_is_reported(root_command: ProcessCommand) -> None:
    """One that ends at once is gone; a missing interpreter is named."""
    dead = RootServer(replace(root_command, argv=(sys.executable, "-c", "raise SystemExit(3)")))
    with pytest.raises(ServerError) as gone:
        dead.branch()
    assert gone.value.warning.code is Code.SERVER_GONE
    dead.close()
    with pytest.raises(MachineError, match="/nowhere/python cannot be started"):
        RootServer(replace(root_command, argv=("/nowhere/python", *root_command.argv[1:])))
