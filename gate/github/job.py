"""A job of GitHub Actions: its event, and how it talks to its runner.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands

The runner reads commands from a step's output, even with invisible characters in between. Foreign text
(comments, branches) may get into a message or a traceback. So a command with a token prints everything
through :func:`make_line`.
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
from gate.sizes import KIB, MIB

MAX_EVENT_BYTES = 32 * MIB  # GitHub caps webhook payloads at 25 MB
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
BRANCH_PATTERN = r"(?!-)(?!.*(?:\.\.|//|@\{))[^\x00-\x20\x7f~^:?*\[\\]{1,244}"  # begins no option
MAX_SUMMARY_BYTES = MIB - KIB  # GitHub's limit of a step is 1 MiB, and refuses all beyond
MAX_ANNOTATIONS = 9  # GitHub shows 10 of a type for a step; a composite action is one step
_MAX_MESSAGE = 4000  # GitHub's limit is 4,096 characters
_CUT = "\n\n*Cut short: the whole report is in the artifact.*\n"
MAX_LINE = 600  # characters: a sentence of ours and its fix, with a path or two in them
# Printable ASCII is what no comparison overlooks; of the rest anything may be invisible to it.
_MARK = re.compile(r":(?=[^\x20-\x7e]*:)|#(?=[^\x20-\x7e]*#[^\x20-\x7e]*\[)")


@dataclass(frozen=True, kw_only=True, slots=True)
class JobContext:
    """``event`` is the payload of the webhook that started the job."""

    repository: str  # owner/name
    server_url: str = "https://github.com"
    event_name: str = ""
    sha: str = ""
    run_id: str = ""
    workspace: Path = Path()
    event: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def run_url(self) -> str:
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


def load_context(environ: Mapping[str, str]) -> JobContext:
    """Read the context from variables and the payload.

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
    """Empty outside GitHub Actions; raises FileError where it cannot be read."""
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
    """``path`` is as ``pull_request.head.sha``."""
    value = payload
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def find_text(payload: object, path: str, pattern: re.Pattern[str] | None = None) -> str:
    value = find_value(payload, path)
    return value if isinstance(value, str) and (pattern is None or pattern.fullmatch(value)) else ""


def write_outputs(environ: Mapping[str, str], outputs: Mapping[str, object]) -> None:
    """Outside GitHub Actions nothing is written. With random delimiters no value can forge another output.

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
    """The text is cut to what GitHub takes; else as :func:`write_outputs`."""
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


def render_annotation(level: str, message: str, title: str = "compile-gate", location: str = "") -> str:
    """``level`` is notice, warning or error; ``location`` is ``file.py:12``."""
    properties = {"title": title}
    if location:
        file, _, line = location.rpartition(":")
        properties |= {"file": file, "line": line}
    escaped = {
        name: _escape(value).replace(":", "%3A").replace(",", "%2C") for name, value in properties.items()
    }
    rendered = ",".join(f"{name}={value}" for name, value in escaped.items())
    return f"::{level} {rendered}::{_escape(message[:_MAX_MESSAGE])}"


def _escape(text: str) -> str:
    shown = "".join(char if char.isprintable() or char in "\r\n" else "?" for char in text)
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def make_line(text: str, limit: int = MAX_LINE) -> str:
    """Make a text one line without commands to the runner: what is not printable becomes ``?``."""
    line = "".join(
        char if char.isprintable() else " " if char.isspace() else "?" for char in text[: limit + 1]
    )
    line = _MARK.sub(r"\g<0> ", line)
    return line if len(line) <= limit else line[: limit - 3] + "..."


class GuardedLog(io.TextIOBase):
    """Passes on whole lines, made harmless. ``token`` stops commands; empty where no runner listens."""

    def __init__(self, target: TextIO, token: str) -> None:
        self._target = target
        self._token = token
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, rest = (self._rest + text).split("\n")
        self._rest = rest[: MAX_LINE + 1]  # what is beyond is not shown anyway
        self._target.writelines(f"{make_line(line)}\n" for line in lines)
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def finish(self) -> None:
        if self._rest:
            self.write("\n")
        self.flush()

    def stop_commands(self) -> None:
        """In case a line escapes this guard."""
        if self._token:
            self._target.write(f"::stop-commands::{self._token}\n")

    def resume_commands(self) -> None:
        if self._token:
            self._target.write(f"::{self._token}::\n")

    def write_commands(self, commands: Iterable[str]) -> None:
        self.finish()
        self.resume_commands()
        self._target.writelines(f"{command}\n" for command in commands)
        self.stop_commands()


@contextmanager
def guard_output(environ: Mapping[str, str]) -> Iterator[None]:
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
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write_annotations(annotations: Iterable[str]) -> None:
    lines = list(annotations)
    if isinstance(sys.stdout, GuardedLog):
        sys.stdout.write_commands(lines)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
