"""The commit status: what branch protection can ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gate.github.client import GitHubClient
from gate.github.errors import MissingError, UncertainWriteError
from gate.github.events import load_workflow_run

_RUN = re.compile(r"/actions/runs/([0-9]{1,18})(?:/|$)")
MAX_DESCRIPTION = 140  # GitHub's limit, in characters


class State(StrEnum):
    """States of a commit status that a finished run can have."""

    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"  # there is no verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitStatus:
    """One status of one commit; ``context`` tells it from others', and ``url`` is the page of a run.

    ``started`` is when the attempt of that run began, as ``2026-11-01T12:00:00Z``.
    """

    context: str
    state: State
    description: str
    url: str
    run_id: int
    started: str


def set_status(client: GitHubClient, repository: str, sha: str, status: CommitStatus) -> bool:
    """Set a commit's status, unless it tells of a newer run; return whether it was set.

    A commit has several runs where a pull request was closed and opened again, and the older one may
    be told last. One whose fate is unknown is looked for before it is sent again.

    Raises:
        GitHubError: GitHub refuses or does not answer.
    """
    other = _find_run(_find_newest(client, repository, sha, status.context))
    if other > status.run_id and _began_later(client, repository, other, status):
        return False
    body = {
        "context": status.context,
        "state": status.state.value,
        "description": _shorten(status.description),
        "target_url": status.url,
    }
    path = f"/repos/{repository}/statuses/{sha}"
    try:
        client.post(path, body)
    except UncertainWriteError:
        newest = _find_newest(client, repository, sha, status.context)
        if not body.items() <= newest.items():
            client.post(path, body)
    return True


def _began_later(client: GitHubClient, repository: str, run_id: int, status: CommitStatus) -> bool:
    """Whether another run, of a higher number, is the newer one: ours may have been started again since."""
    try:
        return load_workflow_run(client, repository, run_id).started >= status.started
    except MissingError:  # it was deleted, or the address is made up
        return False


def _find_newest(client: GitHubClient, repository: str, sha: str, context: str) -> dict[str, Any]:
    """Find the status in force, which GitHub lists first; empty where there is none."""
    listed = client.paginate(f"/repos/{repository}/commits/{sha}/statuses")
    return next((found for found in listed if found.get("context") == context), {})


def _find_run(found: dict[str, Any]) -> int:
    match = _RUN.search(str(found.get("target_url")))
    return int(match[1]) if match else 0


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 3] + "..."
