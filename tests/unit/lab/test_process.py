"""Processes: nothing survives, no log fills the disk, the end is reported."""

import io
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from gate.errors import MachineError
from gate.lab.workers import process
from gate.lab.workers.process import (
    LOG_HEAD_BYTES,
    LOG_TAIL_BYTES,
    ForkedWorker,
    LogFile,
    ProcessCommand,
    defer_interrupts,
    run_process,
)
from gate.programs import list_children

# A busy machine takes seconds to start two interpreters; what is left running sleeps for 600 s.
LATE_S = 60.0
SLEEPER = (
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']"
)


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., ProcessCommand]:
    """Make a command that runs a line of Python."""

    def make(line: str, limit_s: float = 30.0) -> ProcessCommand:
        return ProcessCommand(
            argv=(sys.executable, "-S", "-c", line),
            environment=os.environ,
            directory=tmp_path,
            log=tmp_path / "logs" / "a.log",
            limit_s=limit_s,
        )

    return make


def test_sends_status_and_log(command: Callable[..., ProcessCommand], tmp_path: Path) -> None:
    line = "import os, sys; os.write(1, b'one'); os.write(2, b'two'); sys.exit(7)"
    ended = run_process(command(line))
    assert (ended.status, ended.use, ended.log_tail) == (7, None, b"onetwo")
    assert (tmp_path / "logs" / "a.log").read_bytes() == b"onetwo"


def test_signal_is_a_negative_status(command: Callable[..., ProcessCommand]) -> None:
    """A process that dies on a signal has that signal's number, negated, as its status."""
    ended = run_process(command("import os; os.kill(os.getpid(), 11)"))
    assert ended.status == -signal.SIGSEGV


@pytest.mark.parametrize("session", ["", ", start_new_session=True"])
def test_time_limit_ends_the_whole_family(
    command: Callable[..., ProcessCommand], count_left: Callable[[], int], session: str
) -> None:
    """At the time limit the process and its children die, also a child in a session of its own."""
    line = f"{SLEEPER}{session}); import signal; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    begun = time.monotonic()
    ended = run_process(command(line, limit_s=0.7))
    assert ended.use
    assert time.monotonic() - begun < LATE_S
    assert count_left() == 0


@pytest.mark.parametrize("session", ["", ", start_new_session=True"])
def test_children_of_a_process_that_ended_are_killed(
    command: Callable[..., ProcessCommand], count_left: Callable[[], int], session: str
) -> None:
    """A child that outlives its parent is killed; its open output delays nothing."""
    begun = time.monotonic()
    ended = run_process(command(f"{SLEEPER}{session})"))
    assert (ended.status, ended.use) == (0, None)
    assert time.monotonic() - begun < LATE_S
    assert count_left() == 0


def test_interrupt_ends_the_whole_family(
    command: Callable[..., ProcessCommand], count_left: Callable[[], int]
) -> None:
    """Ctrl-C during a worker leaves none of its processes, and none unreaped."""
    before = list_children(os.getpid())  # servers of other tests
    timer = threading.Timer(0.7, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_process(command(f"{SLEEPER}, start_new_session=True); time.sleep(600)"))
    assert count_left() == 0
    assert list_children(os.getpid()) == before


def test_interrupt_while_cleaning_up_waits(count_left: Callable[[], int]) -> None:
    """A second Ctrl-C does not cut cleaning up short, and is not lost either."""
    done = []

    def clean_up() -> None:
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append(count_left())

    with pytest.raises(KeyboardInterrupt):
        clean_up()
    assert done == [0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_flood_is_cut_in_the_middle(command: Callable[..., ProcessCommand], tmp_path: Path) -> None:
    """A log of 50 MB keeps head, tail and the number of bytes left out."""
    line = "import os\nfor i in range(50 * 1024): os.write(1, b'x' * 1024)\nos.write(1, b'end')"
    ended = run_process(command(line))
    log = (tmp_path / "logs" / "a.log").read_bytes()
    left_out = 50 * 1024 * 1024 + 3 - LOG_HEAD_BYTES - LOG_TAIL_BYTES
    note = f"\n[... {left_out} bytes left out ...]\n".encode()
    assert len(ended.log_tail) == LOG_TAIL_BYTES
    assert ended.log_tail[-4:] == b"xend"
    assert b"x" * LOG_HEAD_BYTES + note + ended.log_tail == log


def test_log_a_little_over_the_head_is_whole(
    command: Callable[..., ProcessCommand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where head and tail meet or overlap, the file holds every byte once."""
    monkeypatch.setattr(process, "LOG_HEAD_BYTES", 10)
    monkeypatch.setattr(process, "LOG_TAIL_BYTES", 8)
    ended = run_process(command("import os; os.write(1, b'0123456789abc')"))
    assert (tmp_path / "logs" / "a.log").read_bytes() == b"0123456789abc"
    assert ended.log_tail == b"56789abc"


def test_process_that_closes_its_output_is_waited_for(command: Callable[..., ProcessCommand]) -> None:
    """A closed output is not the end of the process."""
    ended = run_process(command("import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(4)"))
    assert ended.status == 4


def test_without_process_descriptors(
    command: Callable[..., ProcessCommand], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On such systems the end and the limit are still noticed."""
    monkeypatch.delattr(os, "pidfd_open")
    ended = run_process(command("import sys; print('said'); sys.exit(5)"))
    assert (ended.status, ended.use, ended.log_tail) == (5, None, b"said\n")
    assert run_process(command("import time; time.sleep(600)", limit_s=0.3)).use


def test_missing_program_is_the_machines_fault(command: Callable[..., ProcessCommand]) -> None:
    """An interpreter that does not exist is a MachineError that names it."""
    with pytest.raises(MachineError, match=r"^/no/python cannot be started") as caught:
        run_process(replace(command(""), argv=("/no/python",)))
    assert caught.value.fix == "Check that the interpreter and the directory exist."


def test_log_that_cannot_be_written(command: Callable[..., ProcessCommand], tmp_path: Path) -> None:
    """A log below a file is refused before anything starts."""
    (tmp_path / "logs").write_text("a file", encoding="utf-8")
    with pytest.raises(Exception, match="cannot be written"):
        run_process(command("open('started', 'w')"))
    assert not (tmp_path / "started").exists()


def test_full_disk_ends_the_worker(
    command: Callable[..., ProcessCommand], count_left: Callable[[], int]
) -> None:
    """A full disk under the log ends the worker, and is the machine's fault."""
    line = "import os, time; os.write(1, b'word'); time.sleep(600)"
    with pytest.raises(MachineError, match="the disk is full"):
        run_process(replace(command(line), log=Path("/dev/full")))
    assert count_left() == 0


@pytest.mark.parametrize(
    ("written", "log", "tail"),
    [
        ("", "", ""),
        ("0123456789", "0123456789", "23456789"),
        ("0123456789abcdefgh", "0123456789abcdefgh", "abcdefgh"),
        ("0123456789abcdefghi", "0123456789\n[... 1 bytes left out ...]\nbcdefghi", "bcdefghi"),
        ("0123456789" * 3, "0123456789\n[... 12 bytes left out ...]\n23456789", "23456789"),
    ],
)
def test_a_log_keeps_ten_bytes_of_its_head_and_eight_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, log: str, tail: str
) -> None:
    """In pieces of any size, and closing it again writes nothing more."""
    monkeypatch.setattr(process, "LOG_HEAD_BYTES", 10)
    monkeypatch.setattr(process, "LOG_TAIL_BYTES", 8)
    path = tmp_path / "logs" / "a.log"
    for size in (1, 4, 30):
        file = LogFile(path)
        for start in range(0, len(written), size):
            file.write(written[start : start + size].encode())
        assert [file.close(), file.close()] == [tail.encode()] * 2
        assert path.read_bytes() == log.encode()


def test_an_alarm_ends_a_process_at_once(command: Callable[..., ProcessCommand]) -> None:
    """It is asked where it is, and its use is that of a process whose time was up."""
    reading, writing = os.pipe()
    os.write(writing, b"!")
    ended = run_process(replace(command("import time; time.sleep(600)", limit_s=500.0), alarm=reading))
    assert ended.use is not None
    assert ended.use.wall_s < LATE_S
    assert not ended.use.hangs
    assert ended.status == -signal.SIGABRT
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(("counts", "killed"), [((3, 5), 2), ((5, 5), 0), ((5, 0), 0)])
def test_kills_for_memory_are_those_of_its_time(
    command: Callable[..., ProcessCommand],
    monkeypatch: pytest.MonkeyPatch,
    counts: tuple[int, int],
    killed: int,
) -> None:
    """By the kernel's counter, which a container may lose sight of."""
    left = iter(counts)
    monkeypatch.setattr(process, "load_oom_kills", lambda: next(left))
    assert run_process(command("")).oom_kills == killed


def test_a_forked_worker_is_waited_for_by_its_server() -> None:
    """For ever where nothing else is said; a process that is there has not ended."""
    limits: list[float] = []

    def reap(limit_s: float) -> int:
        limits.append(limit_s)
        return 7

    worker = ForkedWorker(os.getpid(), io.BytesIO(), reap)
    assert (worker.poll(), worker.returncode) == (None, 0)
    assert [worker.wait(), worker.wait(3.0), worker.wait(0.0)] == [7, 7, 7]
    assert (limits, worker.returncode) == ([math.inf, 3.0, 0.0], 7)


def test_a_process_that_is_stuck_in_the_kernel_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets 5 s after the kill; all that carries its token is killed all the same."""
    stuck, asked = Mock(spec=subprocess.Popen, pid=4242), list[tuple[str, object]]()
    stuck.wait.side_effect = subprocess.TimeoutExpired("a.out", 5.0)
    monkeypatch.setattr(os, "killpg", lambda *given: asked.append(("kills", given)))
    monkeypatch.setattr(process, "end_marked", lambda token: asked.append(("ends", token)))
    with pytest.raises(MachineError, match="process 4242 does not end"):
        process.end_family(stuck, "the token")
    assert asked == [("kills", (4242, signal.SIGKILL)), ("ends", "the token")]
    stuck.wait.assert_called_once_with(5.0)


def test_what_could_not_be_started_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted in the middle, it may run without anybody knowing its number."""
    ended: list[str] = []
    monkeypatch.setattr(process, "end_marked", ended.append)
    process.end_family(None, "the token")
    assert ended == ["the token"]


def test_a_family_that_forks_while_it_is_killed_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a look finds nobody with the token; who ended meanwhile, or is another's, is no error."""
    ours, gone, others = (Mock(spec=psutil.Process) for _ in range(3))
    ours.environ.return_value = gone.environ.return_value = {"COMPILE_GATE_WORKER": "the token"}
    others.environ.return_value = {"COMPILE_GATE_WORKER": "another"}
    hidden = Mock(spec=psutil.Process)
    hidden.environ.side_effect = psutil.AccessDenied()
    gone.kill.side_effect = psutil.NoSuchProcess(1)
    looks = iter(([ours, others], [gone, hidden], [others]))
    monkeypatch.setattr(psutil, "process_iter", lambda: next(looks))
    monkeypatch.setattr(psutil, "wait_procs", Mock())
    process.end_marked("the token")
    assert [each.kill.call_count for each in (ours, gone, others, hidden)] == [1, 1, 0, 0]
    assert next(looks, None) is None


def test_a_family_that_goes_on_forking_is_not_looked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty looks, a quarter of a second each at most."""
    ours, waits = Mock(spec=psutil.Process), Mock()
    ours.environ.return_value = {"COMPILE_GATE_WORKER": "the token"}
    monkeypatch.setattr(psutil, "process_iter", lambda: [ours])
    monkeypatch.setattr(psutil, "wait_procs", waits)
    process.end_marked("the token")
    assert ours.kill.call_count == 20
    waits.assert_called_with([ours], timeout=0.25)


def test_a_worker_without_a_pipe_is_a_bug(tmp_path: Path) -> None:
    """Its log would be lost."""
    worker = ForkedWorker(os.getpid(), io.BytesIO(), lambda _: 0)
    worker.stdout = None
    with closing(LogFile(tmp_path / "a.log")) as log, pytest.raises(TypeError, match="pipe"):
        process._drain(worker, log)
