"""A job of GitHub Actions: what it is told, and how it talks to its runner.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands

The runner reads commands out of a step's output: ``::name::`` at the start of a line, ``##[name]``
anywhere in one. It compares texts by culture, so it also finds them with invisible characters in
between. A command with a token reads words of strangers (artifacts, comments, branches), and one of them
may end up in a message. So all that it prints goes through :func:`make_line`, line by line, whoever
prints it: a traceback of Python's is no exception. Its own annotations go by :func:`write_annotations`.
"""

import io
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from gate.errors import FileError, UsageError
from gate.files.disk import describe_write_error, load_bytes
from gate.files.untrusted import parse_json

MAX_EVENT_BYTES = 32 * 1024 * 1024  # GitHub caps webhook payloads at 25 MB
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
BRANCH_PATTERN = r"(?!-)(?!.*(?:\.\.|//|@\{))[^\x00-\x20\x7f~^:?*\[\\]{1,244}"  # begins no option


@dataclass(frozen=True, kw_only=True, slots=True)
class JobContext:
    """One job of a workflow. ``event`` is the payload of the webhook that started it."""

    repository: str  # owner/name
    server_url: str = "https://github.com"
    event_name: str = ""
    sha: str = ""
    run_id: str = ""
    workspace: Path = Path()
    event: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def run_url(self) -> str:
        """The page of this run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


def load_context(environ: Mapping[str, str]) -> JobContext:
    """Load the context of the job that this process runs in.

    Raises:
        UsageError: This is no job of GitHub Actions.
        FileError: The payload of its event cannot be read.
    """
    name = environ.get("GITHUB_REPOSITORY", "")  # becomes part of every path
    if not _REPOSITORY.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise UsageError(
            f"GITHUB_REPOSITORY is {name[:80]!r}, not owner/name", "Run this in GitHub Actions, or set it."
        )
    return JobContext(
        repository=name,
        server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        event_name=environ.get("GITHUB_EVENT_NAME", ""),
        sha=environ.get("GITHUB_SHA", ""),
        run_id=environ.get("GITHUB_RUN_ID", ""),
        workspace=Path(environ.get("GITHUB_WORKSPACE") or Path.cwd()),
        event=load_payload(environ),
    )


def load_payload(environ: Mapping[str, str]) -> dict[str, object]:
    """Load the payload of the event that started the workflow; empty outside GitHub Actions.

    Raises:
        FileError: It cannot be read.
    """
    path = environ.get("GITHUB_EVENT_PATH", "")
    if not path:
        return {}
    try:
        event = parse_json(load_bytes(Path(path), MAX_EVENT_BYTES), path)
    except FileError as error:
        fix = "GitHub Actions writes that file: run this in a job of it, or unset the variable."
        raise FileError(f"GITHUB_EVENT_PATH: {path}", "", error.problem, fix) from None
    return event if isinstance(event, dict) else {}


def find_value(payload: object, path: str) -> object:
    """Find a part in nested mappings by its path, as ``pull_request.head.sha``; None where it is missing."""
    value = payload
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def find_text(payload: object, path: str, pattern: re.Pattern[str] | None = None) -> str:
    """Find a text; empty where it is missing, is none, or does not match."""
    value = find_value(payload, path)
    return value if isinstance(value, str) and (pattern is None or pattern.fullmatch(value)) else ""


MAX_SUMMARY_BYTES = 1024 * 1024 - 1024  # GitHub's limit of a step is 1 MiB, and refuses all beyond
MAX_ANNOTATIONS = 9  # GitHub shows 10 of a type for a step; a composite action is one step
_MAX_MESSAGE = 4000  # GitHub's limit is 4,096 characters
_CUT = "\n\n*Cut short: the whole report is in the artifact.*\n"


def write_outputs(environ: Mapping[str, str], outputs: Mapping[str, object]) -> None:
    """Set outputs of the step; outside GitHub Actions there is nobody to tell, so nothing is done.

    Every value is written with a delimiter that it cannot know, so none can forge another output.

    Raises:
        MachineError, UsageError: The runner's file cannot be written.
    """
    if not (path := environ.get("GITHUB_OUTPUT")):
        return
    lines = []
    for name, value in outputs.items():
        delimiter = f"end-{secrets.token_hex(16)}"
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    _append(Path(path), "".join(lines).encode())


def append_summary(environ: Mapping[str, str], markdown: str) -> None:
    """Append to the job summary, cut to what GitHub takes; outside GitHub Actions nothing is done.

    Raises:
        MachineError, UsageError: The runner's file cannot be written.
    """
    if not (path := environ.get("GITHUB_STEP_SUMMARY")):
        return
    target = Path(path)
    room = MAX_SUMMARY_BYTES - (target.stat().st_size if target.exists() else 0)
    content = (markdown.rstrip("\n") + "\n").encode()
    if len(content) > room:
        cut = content[: max(0, room - len(_CUT))].decode(errors="ignore")
        content = (cut + _CUT).encode() if cut else b""
    _append(target, content)


def _append(path: Path, content: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(content)
    except OSError as error:
        raise describe_write_error(path, error) from error


def render_annotation(level: str, message: str, title: str = "compile-gate", place: str = "") -> str:
    """Render a workflow command: ``level`` is notice, warning or error; ``place`` is ``file.py:12``."""
    properties = {"title": title}
    if place:
        file, _, line = place.rpartition(":")
        properties |= {"file": file, "line": line}
    escaped = {
        name: _escape(value).replace(":", "%3A").replace(",", "%2C") for name, value in properties.items()
    }
    rendered = ",".join(f"{name}={value}" for name, value in escaped.items())
    return f"::{level} {rendered}::{_escape(message[:_MAX_MESSAGE])}"


def _escape(text: str) -> str:
    """Escape what ends a command, and show what would turn or hide the text as a question mark."""
    shown = "".join(char if char.isprintable() or char in "\r\n" else "?" for char in text)
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


MAX_LINE = 600  # characters: a sentence of ours and its fix, with a path or two in them
# Printable ASCII is what no comparison overlooks; of the rest anything may be invisible to it.
_MARK = re.compile(r":(?=[^\x20-\x7e]*:)|#(?=[^\x20-\x7e]*#[^\x20-\x7e]*\[)")


def make_line(text: str, limit: int = MAX_LINE) -> str:
    """Make a text one harmless line of at most ``limit`` characters.

    Control characters, such that turn the direction of writing and all others that show nothing
    become ``?``, line ends become spaces, and what begins a command to the runner is broken by a space.
    """
    line = "".join(
        char if char.isprintable() else " " if char.isspace() else "?" for char in text[: limit + 1]
    )
    line = _MARK.sub(r"\g<0> ", line)
    return line if len(line) <= limit else line[: limit - 3] + "..."


class GuardedLog(io.TextIOBase):
    """A text stream that passes on whole lines, each made harmless; ``token`` stops and resumes commands.

    An empty token is for where no runner listens: then there is nothing to stop.
    """

    def __init__(self, target: TextIO, token: str) -> None:
        self._target = target
        self._token = token
        self._rest = ""

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


def write_log(line: str) -> None:
    """Write a line to the log at once: what follows may take its time."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write_annotations(annotations: Iterable[str]) -> None:
    """Write annotations to the standard output; they are commands to the runner, and nothing else may be."""
    lines = list(annotations)
    if isinstance(sys.stdout, GuardedLog):
        sys.stdout.write_commands(lines)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
