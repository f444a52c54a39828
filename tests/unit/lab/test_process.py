"""Processes: nothing survives, no log fills the disk, the end is reported."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gate.errors import MachineError
from gate.lab.workers import process
from gate.lab.workers.process import (
    LOG_HEAD_BYTES,
    LOG_TAIL_BYTES,
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
