"""Every error the tool raises on purpose, and the exit codes scripts rely on.

    GateError
    ├── UsageError         2   the caller or a file they wrote: what is wrong, and the fix
    │   └── FileError      2   a file, the key inside it, what is wrong, and the fix
    ├── MachineError       4   no such device, no compiler, a held lock, a full disk
    └── InterruptedRunError 130 Ctrl-C: what was measured is on disk

Anything else that escapes is a bug in compile-gate (exit 1).
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes: an interface, documented in the README."""

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
    """Base of all intended errors: ``what`` went wrong and the ``fix``, one line each."""

    exit_code = ExitCode.BUG

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n{self.fix}"


class UsageError(GateError):
    """A wrong option or an impossible request."""

    exit_code = ExitCode.USAGE


class FileError(UsageError):
    """A file that cannot be used. ``key`` is the path inside it (``models[2].factory``), or empty."""

    def __init__(self, file: str, key: str, problem: str, fix: str) -> None:
        where = f"{file}: {key}: " if key else f"{file}: "
        super().__init__(where + problem, fix)
        self.file = file
        self.key = key
        self.problem = problem


class MachineError(GateError):
    """The machine cannot do what was asked: nothing is known about the code."""

    exit_code = ExitCode.MACHINE


class InterruptedRunError(GateError):
    """The user stopped the run; completed trials are kept."""

    exit_code = ExitCode.INTERRUPTED
