"""Artifacts of a workflow run, and the job that left one: found here, read by :mod:`gate.publish`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.github.client import GitHubClient
from gate.github.errors import find_text, find_value
from gate.github.events import parse_time
from gate.github.job import JobContext
from gate.publish.measured_run import RunRefusedError, parse_run, read_run_member
from gate.publish.submitted_verdict import CiRun, Refusal, RefusedError, parse_archive
from gate.records import Run, Verdict

MAX_VERDICT_ARCHIVE_BYTES = 16 * 1024 * 1024  # logs and reports may lie beside the verdict
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
    """List the artifacts of a run that have a name, the oldest first."""
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
    """
    found = list_artifacts(client, context.repository, run_id, name)
    kept = [one for one in found if not one.is_expired]
    if not kept:
        what = f"there is no artifact {name} in run {run_id}"
        raise RunRefusedError(what, "Look at the job that measured.")
    return parse_run(read_run_member(client.download(kept[-1].path, MAX_RUN_ARCHIVE_BYTES)))


# A step is called `Run actions/upload-artifact@...` unless the workflow names it.
_UPLOADS = re.compile("upload|artifact", re.IGNORECASE)
_SUCCESS = "success"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunJob:
    """One job of one attempt of a run. ``uploads`` are when its steps that upload began and ended."""

    name: str
    attempt: int
    began: str
    ended: str
    conclusion: str
    uploads: tuple[tuple[str, str], ...] = ()

    def was_running(self, moment: str) -> bool:
        """Whether it ran at a moment."""
        return self.began <= moment <= self.ended

    def was_uploading(self, moment: str) -> bool:
        """Whether it uploaded something at a moment."""
        return any(began <= moment <= ended for began, ended in self.uploads)


def find_own_conclusion(client: GitHubClient, repository: str, run: CiRun, artifact_name: str) -> str:
    """Find how the job ended that left an artifact; empty where there is none, or nobody can tell.

    GitHub does not say which job that was. It is the one that uploaded something when the artifact was made,
    and of its attempts the last one counts: a job that was lost when it ran again left an old artifact.
    """
    found = list_artifacts(client, repository, run.id, artifact_name)
    if not found:
        return ""
    # Those of earlier attempts too: what succeeded is not run again with what failed.
    path = f"/repos/{repository}/actions/runs/{run.id}/jobs"
    listed = client.paginate(path, {"filter": "all"}, key="jobs")
    return choose_conclusion(tuple(filter(None, map(_parse_job, listed))), found[-1].created)


def choose_conclusion(jobs: Sequence[RunJob], moment: str) -> str:
    """Choose how the job ended that made something at a moment; empty where several may have, not alike."""
    running = [job for job in jobs if job.was_running(moment)]
    likely = [job for job in running if job.was_uploading(moment)] or running
    last = [max((job for job in jobs if job.name == one.name), key=lambda job: job.attempt) for one in likely]
    ends = {job.conclusion for job in last}
    names = {job.name for job in last}
    return ends.pop() if len(names) == 1 or ends == {_SUCCESS} else ""


def _parse_job(value: Mapping[str, Any]) -> RunJob | None:
    attempt, began = find_value(value, "run_attempt"), parse_time(find_value(value, "started_at"))
    if not began:
        return None
    return RunJob(
        name=find_text(value, "name"),
        attempt=attempt if isinstance(attempt, int) else 1,
        began=began,
        ended=parse_time(find_value(value, "completed_at")),
        conclusion=find_text(value, "conclusion"),
        uploads=tuple(_list_uploads(find_value(value, "steps"))),
    )


def _list_uploads(steps: object) -> Iterator[tuple[str, str]]:
    for step in steps if isinstance(steps, list) else []:
        if _UPLOADS.search(find_text(step, "name")):
            yield parse_time(find_value(step, "started_at")), parse_time(find_value(step, "completed_at"))
