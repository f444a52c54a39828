"""One child process: its log of bounded size, its time limit, and the end of everything it started.

A compiler that the child starts may leave its process group, so every descendant carries a token in its
environment: at the end whatever still carries it is killed.
"""

import math
import os
import secrets
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from gate.errors import MachineError
from gate.files.disk import describe_write_error
from gate.programs import MOST_WALL_LIMITS, Clock, TimeLimit, TimeUse, answer_signals, read_counters
from gate.sizes import KIB, MIB

TOKEN_VARIABLE = "COMPILE_GATE_WORKER"  # noqa: S105 - the name of a variable, not a secret

LOG_HEAD_BYTES = 4 * MIB  # enough for any traceback and compiler message; a flood stops here
LOG_TAIL_BYTES = 256 * KIB  # the end shows why a process died, so it is kept however long the log is
_CHUNK_BYTES = 64 * KIB  # a pipe's capacity on Linux
_DRAIN_CHUNKS = 32  # more cannot be in the pipe of a family that has ended
_POLL_S = 0.05  # only where the operating system cannot announce the end of a process
_SWEEPS = 20  # a family that forks while it is being killed needs more than one look
_LAST_WORDS_S = 2.0  # a traceback takes milliseconds; a core dump may take longer, and is not wanted
_REAP_S = 5.0  # SIGKILL takes longer than this only for a process stuck in the kernel


class LogFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        with self._describe_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)
        self._room = LOG_HEAD_BYTES
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._left_out = 0

    def write(self, chunk: bytes) -> None:
        head, rest = chunk[: self._room], chunk[self._room :]
        self._room -= len(head)
        self._put(head)
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        self._left_out += len(rest)
        while self._tail_bytes - len(self._tail[0]) >= LOG_TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    def close(self) -> bytes:
        tail = b"".join(self._tail)[-LOG_TAIL_BYTES:]
        if not self._file.closed:
            with self._file:
                if self._left_out > len(tail):
                    self._put(f"\n[... {self._left_out - len(tail)} bytes left out ...]\n".encode())
                self._put(tail[-self._left_out :] if self._left_out else b"")
        return tail

    def _put(self, content: bytes) -> None:
        if content:
            with self._describe_errors():
                self._file.write(content)

    @contextmanager
    def _describe_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise describe_write_error(self._path, error) from error


class ForkedWorker:
    def __init__(self, pid: int, stdout: IO[bytes], reap: Callable[[float], int]) -> None:
        self.pid = pid
        self.stdout: IO[bytes] | None = stdout
        self._reap = reap
        self.returncode = 0

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)  # not reaped yet: the number is still its own

    def poll(self) -> int | None:
        """Only asked where the system cannot announce the end of a process.

        Its server keeps an ended worker until it is reaped: one that is gone was killed along with its
        server.
        """
        return None if psutil.pid_exists(self.pid) else -signal.SIGKILL

    def wait(self, timeout: float | None = None) -> int:
        self.returncode = self._reap(math.inf if timeout is None else timeout)
        return self.returncode


Child = subprocess.Popen[bytes] | ForkedWorker
# Forks the worker of a command, in a session of its own; what it starts carries the token.
Fork = Callable[["ProcessCommand", str], ForkedWorker]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessCommand:
    """``log`` gets standard output and standard error."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    log: Path
    limit_s: float  # as of TimeLimit
    most_walls: float = MOST_WALL_LIMITS
    read_s: Clock = time.monotonic  # of the limit
    given: tuple[int, ...] = ()  # descriptors that the child gets, and that are closed here
    alarm: int = -1  # a descriptor that becomes readable when the child is to end at once
    fork: Fork | None = None  # None: argv is run as a program


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessExit:
    """``status`` is negative for a signal, as in :mod:`subprocess`."""

    status: int
    log_tail: bytes
    use: TimeUse | None = None  # what it had used as it was ended, if its time was up
    oom_kills: int = 0  # processes that the kernel killed for memory meanwhile, on the whole host


def run_process(command: ProcessCommand) -> ProcessExit:
    """Run to the end or the time limit; nothing that it started survives the call.

    Raises:
        MachineError: The program cannot be started, or its log cannot be written.
        KeyboardInterrupt: Ctrl-C; the family is dead by then.
    """
    token = secrets.token_hex(16)
    oom_kills = load_oom_kills()
    process: Child | None = None
    use: TimeUse | None = None
    with closing(LogFile(command.log)) as log:
        try:
            process = _start(command, token)
            limit = TimeLimit(process.pid, command.limit_s, command.most_walls, command.read_s)
            if not _wait(process, log, limit.compute_left_s, command.alarm):
                use = limit.read_use()
                _ask_where(process, log)
        finally:
            with defer_interrupts():
                end_family(process, token)
                _drain(process, log)
        return ProcessExit(
            status=process.returncode,
            log_tail=log.close(),
            use=use,
            oom_kills=max(0, load_oom_kills() - oom_kills),
        )


def load_oom_kills() -> int:
    """Processes that the kernel killed for memory since boot; 0 where it does not report them."""
    return read_counters(Path("/proc/vmstat"), "oom_kill").get("oom_kill", 0)


def end_marked(token: str) -> None:
    for _ in range(_SWEEPS):
        family = [process for process in psutil.process_iter() if _has_token(process, token)]
        if not family:
            return
        for process in family:
            with suppress(psutil.Error):  # it ended between the look and the kill
                process.kill()
        psutil.wait_procs(family, timeout=_REAP_S / _SWEEPS)


def _has_token(process: psutil.Process, token: str) -> bool:
    try:
        return process.environ().get(TOKEN_VARIABLE) == token
    except (psutil.Error, OSError):  # another user's, a zombie, or gone: none of ours that runs
        return False


def start_marked(command: ProcessCommand, token: str, output: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a program that carries ``token``, as does all that it starts.

    Raises:
        MachineError: It cannot be started.
    """
    try:
        return subprocess.Popen(
            command.argv,
            pass_fds=command.given,
            env={**command.environment, TOKEN_VARIABLE: token},
            cwd=command.directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,  # a group of its own: Ctrl-C on the terminal reaches only us
        )
    except OSError as error:
        raise MachineError(
            f"{command.argv[0]} cannot be started in {command.directory}: {error.strerror}",
            "Check that the interpreter and the directory exist.",
        ) from error


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait, so that cleaning up is never cut short."""
    pending: list[int] = []
    try:
        with answer_signals(lambda number, _: pending.append(number)):
            yield
    finally:
        for arrived in pending:
            signal.raise_signal(arrived)


def _start(command: ProcessCommand, token: str) -> Child:
    try:
        if command.fork is not None:
            return command.fork(command, token)
        return start_marked(command, token, subprocess.PIPE)
    finally:
        for descriptor in command.given:  # the child's alone now: its end is the end of the line
            os.close(descriptor)


def _wait(process: Child, log: LogFile, compute_left_s: Callable[[], float], alarm: int = -1) -> bool:
    """Copy output until the process ends; false on time-out or alarm. Sleeps in the kernel."""
    poller = select.poll()
    end = _open_end(process.pid)
    output = _get_output(process).fileno()
    os.set_blocking(output, False)
    poller.register(output, select.POLLIN)
    for descriptor in (end, alarm):
        if descriptor >= 0:
            poller.register(descriptor, select.POLLIN)
    try:
        while (left_s := compute_left_s()) > 0:
            wait_s = left_s if end >= 0 else min(left_s, _POLL_S)
            ready = [fd for fd, _ in poller.poll(1000 * wait_s)]
            if end in ready or (end < 0 and process.poll() is not None):
                return True
            if alarm in ready:
                return False
            if output in ready and not _copy_chunk(output, log):
                poller.unregister(output)  # it closed its output and lives on
        return False
    finally:
        if end >= 0:
            os.close(end)


def _ask_where(process: Child, log: LogFile) -> None:
    """Python's fault handler prints, on SIGABRT, where the process hangs."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGABRT)
    deadline = time.monotonic() + _LAST_WORDS_S
    _wait(process, log, lambda: deadline - time.monotonic())


def _get_output(process: Child) -> IO[bytes]:
    if process.stdout is None:
        raise TypeError("a worker is started with a pipe")
    return process.stdout


def can_announce_ends() -> bool:
    """Linux 5.3 announces the end of a process, unless a container forbids it."""
    if (end := _open_end(os.getpid())) >= 0:
        os.close(end)
    return end >= 0


def _open_end(pid: int) -> int:
    """Open a descriptor that becomes readable when the process ends; -1 where there is no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _copy_chunk(output: int, log: LogFile) -> bool:
    try:
        chunk = os.read(output, _CHUNK_BYTES)
    except BlockingIOError:  # nothing is there: somebody else took it, or nobody wrote
        return True
    log.write(chunk)
    return bool(chunk)


def _drain(process: Child | None, log: LogFile) -> None:
    if process is None:
        return
    with _get_output(process) as output:
        for _ in range(_DRAIN_CHUNKS):
            if not _copy_chunk(output.fileno(), log):
                break


def end_family(process: Child | None, token: str) -> None:
    """Kill a process, its group and whatever carries its token.

    Raises:
        MachineError: It is stuck in the kernel.
    """
    if process is None:  # interrupted in the middle of starting, or it could not be started
        end_marked(token)
        return
    with suppress(ProcessLookupError, PermissionError):  # the usual case: the group is empty
        os.killpg(process.pid, signal.SIGKILL)  # the leader is not reaped yet, so the id is still its own
    try:
        process.wait(_REAP_S)
    except subprocess.TimeoutExpired:
        raise MachineError(
            f"process {process.pid} does not end, even when killed: it is stuck in the kernel",
            "Look at the machine: a driver or a file system that hangs; a restart helps.",
        ) from None
    finally:
        end_marked(token)
