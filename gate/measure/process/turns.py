"""Taking turns with the other arm of a pair: the worker's end of the socket to the lab."""

from __future__ import annotations

import socket
import time


class TurnsError(Exception):
    """The lab hung up: the other arm has failed, or the run was stopped."""


class Turns:
    """Speaks with the lab as :mod:`gate.records.protocol` says."""

    def __init__(self, channel: int) -> None:
        """Take over the descriptor; compilers that the worker starts do not inherit it."""
        self._socket = socket.socket(fileno=channel)
        self._socket.set_inheritable(False)
        self._lines = self._socket.makefile("r", encoding="ascii")
        self._waited_s = 0.0

    def agree(self, super_block_s: float) -> int:
        """Tell how long a super-block takes, in seconds; return how many both arms will run.

        Raises:
            TurnsError: The lab hung up.
        """
        return int(self._ask(f"ready {super_block_s!r}", "rounds"))

    def arrive(self) -> None:
        """Tell that everything before the timing is done, and wait; raises as :meth:`agree`."""
        self._ask("loaded", "go")

    def wait(self) -> None:
        """Wait until it is this arm's turn; raises as :meth:`agree`."""
        self._ask("turn", "go")

    def take_waited_s(self) -> float:
        """Return the seconds spent waiting since the last time that this was asked."""
        waited_s, self._waited_s = self._waited_s, 0.0
        return waited_s

    def close(self) -> None:
        """Hang up."""
        self._lines.close()
        self._socket.close()

    def _ask(self, said: str, expected: str) -> str:
        begun = time.perf_counter()
        try:
            self._socket.sendall(f"{said}\n".encode("ascii"))
            word, _, rest = self._lines.readline().strip().partition(" ")
        except OSError as error:
            raise TurnsError(f"the lab hung up: {error.strerror}") from error
        finally:
            self._waited_s += time.perf_counter() - begun
        if word != expected:
            raise TurnsError("the lab hung up" if not word else f"the lab said {word!r}, not {expected!r}")
        return rest
