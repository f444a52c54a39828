"""The commit status: what branch protection can ask for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gate.github.client import GitHubClient
from gate.github.errors import UncertainWriteError

MAX_DESCRIPTION = 140  # GitHub's limit, in characters


class State(StrEnum):
    """States of a commit status that a finished run can have."""

    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"  # there is no verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitStatus:
    """One status of one commit; ``context`` tells it from others'."""

    context: str
    state: State
    description: str
    url: str


def set_status(client: GitHubClient, repository: str, sha: str, status: CommitStatus) -> None:
    """Set a commit's status; one whose fate is unknown is looked for before it is sent again.

    Raises:
        GitHubError: GitHub refuses or does not answer.
    """
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
        listed = client.paginate(f"/repos/{repository}/commits/{sha}/statuses")
        newest = next((found for found in listed if found.get("context") == status.context), {})
        if not _says(newest, body):
            client.post(path, body)


def _says(found: dict[str, Any], body: dict[str, str]) -> bool:
    return all(found.get(key) == value for key, value in body.items())


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 3] + "..."
