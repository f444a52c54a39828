"""Every error the tool raises on purpose, and the exit codes scripts rely on.

    GateError
    ├── UsageError         2   the caller or a file they wrote: what is wrong, and the fix
    │   └── FileError      2   a file, the key inside it, what is wrong, and the fix
    ├── MachineError       4   no such device, no compiler, a held lock, a full disk
    ├── NothingComparedError 3 there is nothing to compare with, so nothing is measured
    ├── IncompleteError   12   a planned case did not come back whole
    └── InterruptedRunError 130 Ctrl-C: what was measured is on disk

Anything else that escapes is a bug in compile-gate (exit 1).
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar


class ExitCode(IntEnum):
    """An interface, documented in the README."""

    PASS = 0
    BUG = 1
    USAGE = 2
    NOTHING_COMPARED = 3
    MACHINE = 4
    REGRESSION = 10
    INCONCLUSIVE = 11
    INCOMPLETE = 12
    INTERRUPTED = 130


class GateError(Exception):
    """``others`` went wrong at the same time: all the mistakes of a file are reported at once."""

    exit_code = ExitCode.BUG

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.others: tuple[GateError, ...] = ()

    def __str__(self) -> str:
        return "\n".join(f"{error.what}\n{error.fix}" for error in (self, *self.others))


class UsageError(GateError):
    """A wrong option or an impossible request."""

    exit_code = ExitCode.USAGE


class FileError(UsageError):
    """``key`` is the path inside the file (``models[2].factory``), or empty."""

    def __init__(self, file: str, key: str, problem: str, fix: str) -> None:
        where = f"{file}: {key}: " if key else f"{file}: "
        super().__init__(where + problem, fix)
        self.file = file
        self.key = key
        self.problem = problem


class MachineError(GateError):
    """Nothing is known about the code."""

    exit_code = ExitCode.MACHINE


class NothingComparedError(GateError):
    """Measuring would be in vain."""

    exit_code = ExitCode.NOTHING_COMPARED


class IncompleteError(GateError):
    """A planned case crashed, hung or is missing."""

    exit_code = ExitCode.INCOMPLETE


class InterruptedRunError(GateError):
    """The user stopped the run; completed trials are kept."""

    exit_code = ExitCode.INTERRUPTED


E = TypeVar("E", bound=GateError)


def join_errors(errors: Sequence[E]) -> E:
    """Join errors, at least one, into the first of them."""
    flat: list[GateError] = []
    for error in errors:
        flat += [error, *error.others]
    errors[0].others = tuple(flat[1:])
    return errors[0]
