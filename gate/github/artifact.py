"""Artifacts of a workflow run, found and downloaded; what is in them is read by :mod:`gate.publish`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gate.github.client import GitHubClient
from gate.github.context import JobContext
from gate.github.events import parse_time
from gate.github.payload import find_text
from gate.publish.ci_run import CiRun
from gate.publish.measured_run import RunRefusedError, parse_run, read_run_member
from gate.publish.submitted_verdict import Refusal, RefusedError, parse_archive
from gate.records import Run, Verdict

MAX_VERDICT_ARCHIVE_BYTES = 8 * 1024 * 1024  # logs and reports may lie beside the verdict
MAX_RUN_ARCHIVE_BYTES = 16 * 1024 * 1024  # a run is compressed to about a tenth


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """One artifact, as the API tells it."""

    id: int
    created: str
    is_expired: bool
    size_bytes: int
    path: str  # of its archive, in the API


def list_artifacts(client: GitHubClient, repository: str, run_id: int, name: str) -> list[Artifact]:
    """List the artifacts of a run that have a name, the oldest first.

    Raises:
        GitHubError: The API does not answer.
    """
    listed = client.paginate(
        f"/repos/{repository}/actions/runs/{run_id}/artifacts", {"name": name}, key="artifacts"
    )
    found = (_parse_artifact(value, repository) for value in listed if find_text(value, "name") == name)
    return sorted(filter(None, found), key=lambda one: one.id)


def _parse_artifact(value: Mapping[str, Any], repository: str) -> Artifact | None:
    number, size = value.get("id"), value.get("size_in_bytes")
    if not isinstance(number, int) or not isinstance(size, int):
        return None
    return Artifact(
        id=number,
        created=parse_time(value.get("created_at")),
        is_expired=value.get("expired") is not False,
        size_bytes=size,
        path=f"/repos/{repository}/actions/artifacts/{number}/zip",
    )


def fetch_verdict(client: GitHubClient, repository: str, run: CiRun, name: str) -> Verdict:
    """Fetch the verdict that a run left in the artifact ``name``.

    Raises:
        RefusedError: There is none, or none that can be believed to be one.
        GitHubError: The API or the storage does not answer.
    """
    found = list_artifacts(client, repository, run.id, name)
    if not found:
        raise RefusedError(Refusal.NO_ARTIFACT)
    newest = found[-1]
    if newest.is_expired:
        raise RefusedError(Refusal.EXPIRED)
    # A job that succeeded is not run again with the failed ones, so its artifact may be older; with
    # a run that failed, an older artifact would pass an earlier attempt's result off as this one's.
    if newest.created < run.started and run.conclusion != "success":
        raise RefusedError(Refusal.OLD_ATTEMPT)
    if newest.size_bytes > MAX_VERDICT_ARCHIVE_BYTES:
        raise RefusedError(Refusal.TOO_LARGE)
    return parse_archive(client.download(newest.path, MAX_VERDICT_ARCHIVE_BYTES))


def fetch_run(client: GitHubClient, context: JobContext, run_id: int, name: str) -> Run:
    """Fetch the ``run.json`` that a workflow run left in the artifact ``name``.

    Raises:
        RunRefusedError: There is none, or none that can be used.
        GitHubError: The API or the storage does not answer.
    """
    found = list_artifacts(client, context.repository, run_id, name)
    kept = [one for one in found if not one.is_expired]
    if not kept:
        what = f"there is no artifact {name} in run {run_id}"
        raise RunRefusedError(what, "Look at the job that measured.")
    return parse_run(read_run_member(client.download(kept[-1].path, MAX_RUN_ARCHIVE_BYTES)))
