"""Taking turns with the other arm of a pair, threads asleep: the worker's end of the socket to the lab.

OpenMP's threads go on spinning for some milliseconds after the last parallel loop (libgomp about ten, Intel's
200), in case another one follows: that is what makes small loops fast, so workers leave it as it is.
"""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

from gate.records.protocol import KEEP, LOADED, Offer, RoundPlan, format_ready, format_turn, parse_rounds

# Above the 200 ms of Intel's OpenMP. A thread that still runs then is at work, not idle.
MAX_WAIT_S = 0.25
_POLL_S = 0.0005
_TASKS = Path("/proc/self/task")  # Linux only; elsewhere nothing is waited for


def await_idle_threads(limit_s: float = MAX_WAIT_S) -> bool:
    """Sleep until no other thread of this process runs; return whether that came within ``limit_s``."""
    end = time.monotonic() + limit_s
    while _is_any_running():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def _is_any_running() -> bool:
    own = str(threading.get_native_id())
    try:
        return any(_read_state(task) == "R" for task in _TASKS.iterdir() if task.name != own)
    except FileNotFoundError:  # not Linux
        return False


def _read_state(task: Path) -> str:
    """Read a thread's state, ``R`` for a running one; "" where it has ended. See proc_pid_stat(5)."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class TurnsError(Exception):
    """The lab hung up: the other arm has failed, or the run was stopped."""


class Turns:
    """Speaks with the lab as :mod:`gate.records.protocol` says.

    What it says hands the machine over, so the threads of this process sleep before it is said, unless the
    lab lets it ``keep`` the turn.
    """

    def __init__(self, channel: int) -> None:
        """Take over the descriptor; compilers that the worker starts do not inherit it."""
        self._socket = socket.socket(fileno=channel)
        self._socket.set_inheritable(False)
        self._lines = self._socket.makefile("r", encoding="ascii")
        self._waited_s = 0.0
        self._can_rest = True  # a model's own threads may never sleep: then they are waited for once
        self._keeps = False

    def agree(self, offer: Offer) -> RoundPlan:
        """Tell what this arm would run; return what both arms will.

        Raises:
            TurnsError: The lab hung up.
        """
        _, numbers = self._ask(format_ready(offer), "rounds")
        return parse_rounds(numbers)

    def arrive(self) -> None:
        """Tell that everything before the timing is done, and wait; raises as :meth:`agree`."""
        self._ask(LOADED, "go")

    def wait(self, block_s: float = 0.0) -> bool:
        """Tell the seconds that the block before takes undisturbed, 0.0 where no call of it was.

        Then wait for the turn; raises as :meth:`agree`.

        Returns:
            Whether there is another block to run.
        """
        word, rest = self._ask(format_turn(block_s), "go", "stop")
        self._keeps = rest == KEEP
        return word == "go"

    def take_waited_s(self) -> float:
        """Return the seconds spent waiting since the last time that this was asked."""
        waited_s, self._waited_s = self._waited_s, 0.0
        return waited_s

    def close(self) -> None:
        """Hang up."""
        self._lines.close()
        self._socket.close()

    def _ask(self, said: str, *expected: str) -> tuple[str, str]:
        begun = time.perf_counter()
        if not self._keeps:
            self._can_rest = self._can_rest and await_idle_threads()
        try:
            self._socket.sendall(f"{said}\n".encode("ascii"))
            word, _, rest = self._lines.readline().strip().partition(" ")
        except OSError as error:
            raise TurnsError(f"the lab hung up: {error.strerror}") from error
        finally:
            self._waited_s += time.perf_counter() - begun
        if word not in expected:
            wanted = " or ".join(map(repr, expected))
            raise TurnsError("the lab hung up" if not word else f"the lab said {word!r}, not {wanted}")
        return word, rest
