"""Markers that name a run that there is none of.

A comment is ours by its author and its first line. Another workflow that writes under the same name
may let a stranger choose that line, and one that claims the newest of all runs would keep every later
verdict from being told. So what claims to be newer is looked up.
"""

from __future__ import annotations

from dataclasses import replace

from gate.github.client import GitHubClient
from gate.github.errors import MissingError
from gate.github.events import load_workflow_run
from gate.publish.body import Marker


def check_marker(client: GitHubClient, repository: str, found: Marker, ours: Marker) -> Marker:
    """Return a marker as it was found, or as the oldest of all where it names a newer run that is none.

    Raises:
        GitHubError: GitHub does not tell.
    """
    if found.order <= ours.order:
        return found
    try:
        run = load_workflow_run(client, repository, found.run_id)
    except MissingError:
        return replace(found, run_id=0, attempt=0)
    is_told = run.head_sha == found.head_sha and run.attempt >= found.attempt
    return found if is_told else replace(found, run_id=0, attempt=0)
