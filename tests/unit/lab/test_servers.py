"""The lab's side of one server, whose answers the test sends."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any
from unittest.mock import Mock

import pytest

from gate import programs
from gate.errors import MachineError
from gate.files.codec import decode
from gate.files.messages import ServerAnswer, ServerDoes, ServerOrder, receive, send
from gate.lab.workers import servers
from gate.lab.workers.process import ProcessCommand
from gate.lab.workers.servers import RootServer, ServerError, WorkerServer
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import WorkerRequest, WorkerRole

COMMAND = ProcessCommand(
    argv=("unused", "/scratch/cold.request.json"),
    environment={"GIVEN": "one"},
    directory=Path("/"),
    log=Path("/unused.log"),
    limit_s=30.0,
)
REQUEST = WorkerRequest(role=WorkerRole.COLD, case=None, device="cpu", threads=1, directory="/", result="r")
A_THREAD = Fact(code=Code.IMPORT_STARTS_THREADS)


class Scripted:
    """A server in the test's own process: what it was sent, and what it answers."""

    def __init__(self) -> None:
        ours, self.line = socket.socketpair()
        self.line.settimeout(30.0)
        self.server = WorkerServer(os.getpid(), ours)

    def answer(self, **answer: Any) -> None:
        send(self.line, ServerAnswer(**answer))

    def read(self) -> tuple[ServerOrder, tuple[int, ...]]:
        received, descriptors = receive(self.line)
        return decode(ServerOrder, received, "order"), descriptors


def list_pairs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[socket.socket, socket.socket]]:
    """The lines that the lab makes from here on."""
    pairs: list[tuple[socket.socket, socket.socket]] = []

    def make_pair() -> tuple[socket.socket, socket.socket]:
        pairs.append(socket.socketpair())
        return pairs[-1]

    monkeypatch.setattr(servers, "socket", SimpleNamespace(socketpair=make_pair))
    return pairs


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    script = Scripted()
    yield script
    script.line.close()
    script.server.hang_up()


@pytest.mark.parametrize(
    ("answer", "problem", "is_otherwise"),
    [({}, None, False), ({"problem": A_THREAD}, A_THREAD, False), ({"is_otherwise": True}, None, True)],
)
def test_an_import_ends_with_why_nothing_may_be_forked(
    scripted: Scripted, answer: dict[str, Any], problem: Fact | None, *, is_otherwise: bool
) -> None:
    """And with whether another checkout may have something else; until then it is importing."""
    server = scripted.server
    server.begin_import(REQUEST, {"TRITON_CACHE_DIR": "/t"})
    assert server.is_importing
    order, _ = scripted.read()
    assert (order.does, order.request, order.variables) == (
        ServerDoes.IMPORT,
        REQUEST,
        {"TRITON_CACHE_DIR": "/t"},
    )
    scripted.answer(**answer)
    assert server.end_import(30.0) == problem
    assert (server.is_importing, server.is_otherwise, server.is_gone) == (False, is_otherwise, False)


def test_an_answer_that_came_in_time_is_read_after_the_limit(scripted: Scripted) -> None:
    """The lab may look late: it was at work with another server."""
    scripted.answer(problem=A_THREAD)
    assert scripted.server.end_import(0.0) == A_THREAD


def test_an_answer_may_come_in_pieces(scripted: Scripted) -> None:
    """Its end has the time that is left, for the server may be at work on other cores."""
    scripted.line.sendall(b'{"status"')

    def send_rest() -> None:
        time.sleep(0.3)
        scripted.line.sendall(b": 0}\n")

    with ThreadPoolExecutor(max_workers=1) as pool:
        sent = pool.submit(send_rest)
        assert scripted.server.end_import(30.0) is None
        sent.result(30.0)


def test_a_server_that_reads_no_order_is_gone(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it without end."""
    monkeypatch.setattr(servers, "_FORK_S", 0.05)
    with pytest.raises(ServerError) as gone:
        scripted.server.begin_import(REQUEST, {"TRITON_CACHE_DIR": "x" * 4_000_000})
    assert gone.value.warning == Fact(code=Code.SERVER_GONE)
    assert scripted.server.is_gone


def test_a_silent_server_is_not_gone(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is reported, by the clock and the processor."""
    cpu_s = iter((1.0, 3.5, 3.5, 3.5))
    monkeypatch.setattr(programs, "read_cpu_s", lambda _: next(cpu_s))
    monkeypatch.setattr(servers, "_READ_S", 0.01)
    with pytest.raises(ServerError) as silence:
        scripted.server.end_import(0.2)
    warning = silence.value.warning
    assert warning.code is Code.SERVER_SILENT
    assert warning.numbers["cpu_s"] == 2.5
    assert 0.2 <= warning.numbers["wall_s"] < 60.0
    assert not scripted.server.is_gone


@pytest.mark.parametrize("says", [b"", b"Segmentation fault\n", b'{"status": "well"}\n'])
def test_who_hangs_up_or_answers_something_else_is_gone(scripted: Scripted, says: bytes) -> None:
    """No order goes to it any more."""
    scripted.line.sendall(says)
    scripted.line.shutdown(socket.SHUT_WR)
    with pytest.raises(ServerError) as gone:
        scripted.server.end_import(30.0)
    assert gone.value.warning == Fact(code=Code.SERVER_GONE)
    assert scripted.server.is_gone


def test_who_cannot_be_sent_an_order_is_gone(scripted: Scripted) -> None:
    """As when it was killed between two orders."""
    scripted.line.close()
    with pytest.raises(ServerError) as gone:
        scripted.server.begin_import(REQUEST, {})
    assert gone.value.warning == Fact(code=Code.SERVER_GONE)
    assert (scripted.server.is_gone, scripted.server.is_importing) == (True, False)


def test_a_server_has_nothing_to_do_at_first(scripted: Scripted) -> None:
    """Nobody has used it, and what it imports is nobody else's."""
    server = scripted.server
    assert (server.used, server.pid) == (0, os.getpid())
    assert not any((server.is_gone, server.is_busy, server.is_importing, server.is_otherwise))


def test_a_branch_that_was_not_forked_leaves_no_line(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its root is gone."""
    pairs = list_pairs(monkeypatch)
    scripted.line.shutdown(socket.SHUT_WR)
    with pytest.raises(ServerError) as gone:
        scripted.server.branch()
    assert gone.value.warning == Fact(code=Code.SERVER_GONE)
    assert [end.fileno() for end in pairs[0]] == [-1, -1]


def test_a_branch_has_a_line_and_a_process_of_its_own(scripted: Scripted) -> None:
    """It is hung up on alone."""
    scripted.answer(pid=77)
    branch = scripted.server.branch()
    order, (descriptor,) = scripted.read()
    assert (order.does, branch.pid) == (ServerDoes.BRANCH, 77)
    with socket.socket(fileno=descriptor) as theirs:
        send(theirs, ServerAnswer(problem=A_THREAD))
        assert branch.end_import(30.0) == A_THREAD
        branch.hang_up()
        assert theirs.recv(1) == b""
    assert (branch.is_gone, scripted.server.is_gone) == (True, False)


@pytest.mark.parametrize("given", [(), (True,)], ids=["alone", "in_a_pair"])
def test_a_worker_is_asked_for_with_its_output_and_channel(
    scripted: Scripted, given: tuple[bool, ...]
) -> None:
    """The server hears the request's path, the variables with the token, and the channel's number."""
    ours, theirs = socket.socketpair()
    channel = tuple(theirs.fileno() for _ in given)
    scripted.answer(pid=1)  # the least that a process has
    worker = scripted.server.start(replace(COMMAND, given=channel), "the token")
    order, (output, *channels) = scripted.read()
    assert (order.does, order.path, order.channel) == (
        ServerDoes.RUN,
        "/scratch/cold.request.json",
        channel[0] if channel else -1,
    )
    assert order.variables == {"GIVEN": "one", "COMPILE_GATE_WORKER": "the token"}
    assert (worker.pid, scripted.server.is_busy, len(channels)) == (1, True, len(given))
    os.write(output, b"said")
    os.close(output)  # the lab has kept no other end of the pipe
    assert worker.stdout is not None
    with worker.stdout as stdout:
        assert stdout.read() == b"said"
    for number in channels:
        os.close(number)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("pid", [0, -1])
def test_no_worker_has_the_number_of_everybody(scripted: Scripted, pid: int) -> None:
    """Signals to 0 and -1 would go to the lab and to all that it may reach."""
    scripted.answer(pid=pid)
    with pytest.raises(MachineError) as gone:
        scripted.server.start(COMMAND, "token")
    assert gone.value.fix.startswith("Continue with --resume")
    assert not scripted.server.is_busy


@pytest.mark.parametrize("status", [0, 3, -signal.SIGSEGV])
def test_a_reaped_worker_has_its_status(scripted: Scripted, status: int) -> None:
    """Its server may fork the next one then."""
    scripted.server.is_busy = True
    scripted.answer(status=status)
    assert scripted.server.reap(78, 30.0) == status
    order, _ = scripted.read()
    assert (order.does, order.pid) == (ServerDoes.REAP, 78)
    assert (scripted.server.is_busy, scripted.server.is_gone) == (False, False)


def test_a_worker_whose_server_does_not_answer_counts_as_killed(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is hung up on, and has no worker then."""
    monkeypatch.setattr(servers, "_READ_S", 0.01)
    scripted.server.is_busy = True
    assert scripted.server.reap(78, 0.0) == -signal.SIGKILL
    assert (scripted.server.is_busy, scripted.server.is_gone) == (False, True)
    scripted.read()
    assert scripted.line.recv(1) == b""


@pytest.fixture
def root_command(tmp_path: Path) -> ProcessCommand:
    return replace(COMMAND, argv=("python", "-m", "server"), log=tmp_path / "logs" / "cases" / "server.log")


def test_a_root_is_told_its_line_and_whose_child_it_is(
    root_command: ProcessCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its end of the line alone, and a token by which all of it is found."""
    started: list[tuple[ProcessCommand, str]] = []
    process = Mock(spec=subprocess.Popen, pid=4242)

    def start(command: ProcessCommand, token: str, log: IO[bytes]) -> Mock:
        started.append((command, token))
        log.write(b"said")
        return process

    monkeypatch.setattr(servers, "start_marked", start)
    monkeypatch.setattr(servers, "end_family", end := Mock())
    for count in (1, 2):
        root = RootServer(root_command)
        command, token = started[-1]
        (descriptor,) = command.given
        assert command.argv == ("python", "-m", "server", str(descriptor), str(os.getpid()))
        assert len(bytes.fromhex(token)) == 16
        assert root_command.log.read_bytes() == b"said" * count
        assert (root.pid, root.problem, root.branches) == (4242, None, {})
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)  # its own is closed here: the end of the process is the end of the line
        process.wait.side_effect = subprocess.TimeoutExpired("server", 5.0) if count == 1 else None
        root.close()
        process.wait.assert_called_with(5.0)
        end.assert_called_with(process, token)
        assert root.is_gone
    assert len({token for _, token in started}) == 2


def test_a_root_that_cannot_be_started_leaves_no_line(
    root_command: ProcessCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the machine's."""
    pairs = list_pairs(monkeypatch)
    monkeypatch.setattr(servers, "start_marked", Mock(side_effect=MachineError("no interpreter", "Look.")))
    with pytest.raises(MachineError, match="no interpreter"):
        RootServer(root_command)
    assert [end.fileno() for end in pairs[0]] == [-1, -1]
