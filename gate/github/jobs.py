"""The job of a run that left a verdict, among those of other gates and of anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.github.artifact import list_artifacts
from gate.github.client import GitHubClient
from gate.github.events import parse_time
from gate.github.payload import find_text, find_value
from gate.publish.ci_run import CiRun

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

    Raises:
        GitHubError: The API does not answer.
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
