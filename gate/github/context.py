"""What GitHub tells a job about itself, read from the environment; never from anything measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gate.errors import FileError, UsageError
from gate.files.untrusted import load_bytes, parse_json

MAX_EVENT_BYTES = 32 * 1024 * 1024  # GitHub caps webhook payloads at 25 MB
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_SHA = re.compile(r"[0-9a-f]{40}")


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
    def path(self) -> str:
        """The start of the repository's paths in the API."""
        return f"/repos/{self.repository}"

    @property
    def owner(self) -> str:
        """The account that the repository belongs to."""
        return self.repository.partition("/")[0]

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
    return JobContext(
        repository=check_repository(environ.get("GITHUB_REPOSITORY", "")),
        server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        event_name=environ.get("GITHUB_EVENT_NAME", ""),
        sha=environ.get("GITHUB_SHA", ""),
        run_id=environ.get("GITHUB_RUN_ID", ""),
        workspace=Path(environ.get("GITHUB_WORKSPACE") or Path.cwd()),
        event=load_payload(environ),
    )


def check_repository(name: str) -> str:
    """Check the name of a repository, ``owner/name``, which becomes part of every path.

    Raises:
        UsageError: It is none.
    """
    if not _REPOSITORY.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise UsageError(
            f"GITHUB_REPOSITORY is {name[:80]!r}, not owner/name", "Run this in GitHub Actions, or set it."
        )
    return name


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


def is_sha(text: object) -> bool:
    """Whether this is a whole commit id."""
    return isinstance(text, str) and _SHA.fullmatch(text) is not None
