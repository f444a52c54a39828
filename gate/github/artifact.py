"""Artifacts of a workflow run, and the job that left one: found here, read by :mod:`gate.publish`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.events import parse_time
from gate.github.job import find_text, find_value
from gate.publish.submitted import CiRun, Refusal, RefusedError, parse_archive, parse_run
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


def find_artifact(client: GitHubClient, run_id: int, name: str) -> Artifact:
    """Find the newest artifact of a run that has a name.

    Raises:
        RefusedError: There is none any more.
    """
    listed = client.paginate(f"actions/runs/{run_id}/artifacts", {"name": name}, key="artifacts")
    found = (_parse_artifact(value) for value in listed if find_text(value, "name") == name)
    newest = max(filter(None, found), key=lambda one: one.id, default=None)
    if newest is None:
        raise RefusedError(Refusal.NO_ARTIFACT)
    if newest.is_expired:
        raise RefusedError(Refusal.EXPIRED)
    return newest


def _parse_artifact(value: Mapping[str, Any]) -> Artifact | None:
    number, size = value.get("id"), value.get("size_in_bytes")
    if not isinstance(number, int) or not isinstance(size, int):
        return None
    return Artifact(
        id=number,
        created=parse_time(value.get("created_at")),
        is_expired=value.get("expired") is not False,
        size_bytes=size,
    )


def fetch_verdict(client: GitHubClient, run: CiRun, artifact: Artifact) -> Verdict:
    """Fetch the verdict that a run left in an artifact.

    Raises:
        RefusedError: There is none that can be believed to be one.
    """
    # A job that succeeded is not run again with the failed ones, so its artifact may be older; with
    # a run that failed, an older artifact would pass an earlier attempt's result off as this one's.
    if artifact.created < run.started and run.conclusion != SUCCESS:
        raise RefusedError(Refusal.OLD_ATTEMPT)
    if artifact.size_bytes > MAX_VERDICT_ARCHIVE_BYTES:
        raise RefusedError(Refusal.TOO_LARGE)
    archive = client.download(f"actions/artifacts/{artifact.id}/zip", MAX_VERDICT_ARCHIVE_BYTES)
    return parse_archive(archive)


def fetch_run(client: GitHubClient, run_id: int, name: str) -> Run:
    """Fetch the ``run.json`` that a workflow run left in the artifact ``name``.

    Raises:
        UsageError: There is none, or none that can be used.
    """
    try:
        artifact = find_artifact(client, run_id, name)
    except RefusedError:
        what = f"there is no artifact {name} in run {run_id}"
        raise UsageError(what, "Look at the job that measured.") from None
    return parse_run(client.download(f"actions/artifacts/{artifact.id}/zip", MAX_RUN_ARCHIVE_BYTES))


# A step is called `Run actions/upload-artifact@...` unless the workflow names it.
_UPLOADS = re.compile("upload|artifact", re.IGNORECASE)
SUCCESS = "success"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunJob:
    """One job of one attempt of a run. ``uploads`` are when its steps that upload began and ended."""

    name: str
    attempt: int
    began: str
    ended: str
    conclusion: str
    uploads: tuple[tuple[str, str], ...] = ()


def find_own_conclusion(client: GitHubClient, run: CiRun, artifact: Artifact) -> str:
    """Find how the job ended that left an artifact; empty where nobody can tell.

    GitHub does not say which job that was. It is the one that uploaded something when the artifact was made,
    and of its attempts the last one counts: a job that was lost when it ran again left an old artifact.
    """
    # Those of earlier attempts too: what succeeded is not run again with what failed.
    listed = client.paginate(f"actions/runs/{run.id}/jobs", {"filter": "all"}, key="jobs")
    return choose_conclusion(tuple(filter(None, map(_parse_job, listed))), artifact.created)


def choose_conclusion(jobs: Sequence[RunJob], moment: str) -> str:
    """Choose how the job ended that made something at a moment; empty where several may have, not alike."""
    running = [job for job in jobs if job.began <= moment <= job.ended]
    uploading = [job for job in running if any(began <= moment <= ended for began, ended in job.uploads)]
    likely = uploading or running
    last = [max((job for job in jobs if job.name == one.name), key=lambda job: job.attempt) for one in likely]
    ends = {job.conclusion for job in last}
    names = {job.name for job in last}
    return ends.pop() if len(names) == 1 or ends == {SUCCESS} else ""


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
