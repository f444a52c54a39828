"""What a job with a token prints: lines that its runner cannot take for commands to it.

The runner reads commands out of a step's output: ``::name::`` at the start of a line, ``##[name]``
anywhere in one. It compares texts by culture, so it also finds them with invisible characters in
between. A trusted command reads words of strangers (artifacts, comments, branches), and one of them
may end up in a message. So all that it prints goes through :func:`make_line`, line by line, whoever
prints it: a traceback of Python's is no exception. Its own annotations go by :func:`write_annotations`.
"""

from __future__ import annotations

import io
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

MAX_LINE = 600  # characters: a sentence of ours and its fix, with a path or two in them
# Printable ASCII is what no comparison overlooks; of the rest anything may be invisible to it.
_MARK = re.compile(r":(?=[^\x20-\x7e]*:)|#(?=[^\x20-\x7e]*#[^\x20-\x7e]*\[)")


def make_line(text: str, limit: int = MAX_LINE) -> str:
    """Make a text one harmless line of at most ``limit`` characters.

    Control characters, such that turn the direction of writing and all others that show nothing
    become ``?``, line ends become spaces, and what begins a command to the runner is broken by a space.
    """
    line = "".join(map(_show_char, text[: limit + 1]))
    line = _MARK.sub(r"\g<0> ", line)
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _show_char(char: str) -> str:
    return char if char.isprintable() else " " if char.isspace() else "?"


class GuardedLog(io.TextIOBase):
    """A text stream that passes on whole lines, each made harmless; ``token`` stops and resumes commands.

    An empty token is for where no runner listens: then there is nothing to stop.
    """

    def __init__(self, target: TextIO, token: str) -> None:
        self._target = target
        self._token = token
        self._rest = ""

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the stream behind it."""
        return self._target.fileno()

    def write(self, text: str) -> int:
        """Pass on what are whole lines by now, and keep the rest."""
        *lines, rest = (self._rest + text).split("\n")
        self._rest = rest[: MAX_LINE + 1]  # what is beyond is not shown anyway
        self._target.writelines(f"{make_line(line)}\n" for line in lines)
        return len(text)

    def flush(self) -> None:
        """Flush the stream behind it; what is no whole line yet waits."""
        self._target.flush()

    def finish(self) -> None:
        """Pass on the rest as a line of its own."""
        if self._rest:
            self.write("\n")
        self.flush()

    def stop_commands(self) -> None:
        """Tell the runner to take nothing for a command from here on, in case a line escaped this guard."""
        if self._token:
            self._target.write(f"::stop-commands::{self._token}\n")

    def resume_commands(self) -> None:
        """Tell the runner to listen again."""
        if self._token:
            self._target.write(f"::{self._token}::\n")

    def write_commands(self, commands: Iterable[str]) -> None:
        """Give commands to the runner, made by :func:`gate.github.job.render_annotation`."""
        self.finish()
        self.resume_commands()
        self._target.writelines(f"{command}\n" for command in commands)
        self.stop_commands()


@contextmanager
def guard_output(environ: Mapping[str, str]) -> Iterator[None]:
    """Let everything that this process prints meanwhile go through :class:`GuardedLog`."""
    token = secrets.token_hex(16) if environ.get("GITHUB_ACTIONS") == "true" else ""
    out, errors = GuardedLog(sys.stdout, token), GuardedLog(sys.stderr, "")
    out.stop_commands()
    out.flush()
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            yield
    finally:
        errors.finish()
        out.finish()
        out.resume_commands()
        out.flush()


def write_annotations(annotations: Iterable[str]) -> None:
    """Write annotations to the standard output; they are commands to the runner, and nothing else may be."""
    lines = list(annotations)
    if isinstance(sys.stdout, GuardedLog):
        sys.stdout.write_commands(lines)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
