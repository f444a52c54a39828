"""The composition root: a command's module is imported when it runs, so that ``--help`` stays instant.

Standard streams never change an exit code: a reader that went away (``| head``), a closed descriptor
(``>&-``), an encoding that lacks a character. A full disk behind standard output is an error.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import traceback
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gate.cli.github_commands import GITHUB
from gate.cli.parser import answer_shell, make_parser, place_arguments
from gate.errors import ExitCode, GateError, UsageError
from gate.programs import answer_signals
from gate.report.clean import PLAINLY, clean_message

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer  # of collections.abc from Python 3.12 on


_INPUT, _OUTPUT, _ERROR = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Errors of the user are two lines on stderr; a full disk behind stdout is exit 4."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    with guard_streams() as output:
        with _guard_output(arguments):
            code = _run_arguments(arguments)
        sys.stdout.flush()
        if output and (loss := output.get_loss()):
            print(f"compile-gate: standard output cannot be written: {loss.strerror}", file=sys.stderr)
            print("Free some space, or write it elsewhere, and run again.", file=sys.stderr)
            return int(ExitCode.MACHINE)
    return code


def _run_arguments(arguments: Sequence[str]) -> int:
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could stand at its cursor
        answer_shell(parser)
    try:
        options = parser.parse_args(place_arguments(arguments))
    except SystemExit as stopped:  # --help, --version and wrong options
        return int(stopped.code or ExitCode.PASS)
    if "run" not in options:  # no command, or one that only has others below it
        options.show_help()
        return int(ExitCode.PASS)
    # A service manager stops jobs with SIGTERM, a lost terminal with SIGHUP, which nohup has ignored.
    # Both are as Ctrl-C, so that workers die, checkouts go and files are kept.
    ending = [
        number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL
    ]
    with answer_signals(signal.default_int_handler, ending):
        return _run_command(options)


def _guard_output(arguments: Sequence[str]) -> AbstractContextManager[None]:
    """Also of its errors, and of errors in its arguments."""
    if GITHUB.name not in arguments[:1]:
        return nullcontext()
    from gate.github.job import guard_output  # noqa: PLC0415 - as every command's own imports

    return guard_output(os.environ)


def _describe_rights(path: Path, error: PermissionError) -> GateError:
    """Another user left the file: root in a container."""
    from gate.files.disk import describe_write_error  # noqa: PLC0415 - for few commands

    what = f"{path} cannot be read or written: {error.strerror}"
    return UsageError(what, describe_write_error(path, error).fix)


def _print_error(error: GateError) -> int:
    for reported in (error, *error.others):
        print(f"compile-gate: {clean_message(reported.what)}\n{clean_message(reported.fix)}", file=sys.stderr)
    return int(error.exit_code)


def _run_command(options: Namespace) -> int:
    module_name, _, function_name = options.run.partition(":")
    try:
        _check_directory()
        command = getattr(importlib.import_module(module_name), function_name)
        return int(command(options))
    except GateError as error:
        return _print_error(error)
    except KeyboardInterrupt:
        print("compile-gate: stopped.", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the one place where a bug is turned into exit code 1
        if isinstance(error, PermissionError) and isinstance(error.filename, str):
            return _print_error(_describe_rights(Path(error.filename), error))
        traceback.print_exc()
        print(
            "compile-gate: this is a bug in compile-gate, not in your code.\n"
            "Please report it with the traceback above and the output of `compile-gate doctor`.",
            file=sys.stderr,
        )
        return int(ExitCode.BUG)


def _check_directory() -> None:
    """Every relative path would fail in its own way where the directory is gone.

    Raises:
        UsageError: It is gone.
    """
    try:
        Path.cwd()
    except OSError as error:
        what = f"the current directory cannot be used: {error.strerror}"
        raise UsageError(what, "Change to one that exists, and run again.") from None


class Descriptor(io.FileIO):
    """From the first failure on, what is written there is dropped."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, data: Buffer) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            _open_null(self.fileno())
            return memoryview(data).nbytes

    def get_loss(self) -> OSError | None:
        """Why output that had a reader was lost."""
        return None if isinstance(self.failure, BrokenPipeError) else self.failure


@contextmanager
def guard_streams() -> Iterator[Descriptor | None]:
    """Gives the descriptor behind the output; ``None`` where a caller has replaced the stream."""
    for number in (_INPUT, _OUTPUT, _ERROR):
        _ensure_open(number)
    before = sys.stdout, sys.stderr
    output = Descriptor(_OUTPUT) if sys.stdout is sys.__stdout__ else None
    if output:
        sys.stdout = _make_stream(output, before[0], line_buffering=output.isatty())
    if sys.stderr is sys.__stderr__:
        sys.stderr = _make_stream(Descriptor(_ERROR), before[1], line_buffering=True)
    try:
        yield output
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _make_stream(raw: Descriptor, old: TextIO | None, *, line_buffering: bool) -> TextIO:
    encoding = old.encoding if old else "utf-8"
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding, PLAINLY, line_buffering=line_buffering)


def _ensure_open(number: int) -> None:
    """Where a caller closed it, the next file would get its number, and the reports with it."""
    try:
        os.fstat(number)
    except OSError:
        _open_null(number)


def _open_null(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
