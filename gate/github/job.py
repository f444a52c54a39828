"""How a step talks to its runner: outputs, the job summary, annotations.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from gate.files.disk import describe_write_error

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
    rendered = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
    return f"::{level} {rendered}::{_escape(message[:_MAX_MESSAGE])}"


def _escape(text: str) -> str:
    """Escape what ends a command, and show what would turn or hide the text as a question mark."""
    shown = "".join(char if char.isprintable() or char in "\r\n" else "?" for char in text)
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
