"""How the job of a workflow run ended that left an artifact, and which jobs left none."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.github.client import GitHubClient
from gate.github.events import parse_time
from gate.github.job import find_text, find_value

SUCCESS = "success"
SKIPPED = "skipped"
# A step is called `Run actions/upload-artifact@...` unless the workflow names it.
_UPLOADS = re.compile("upload|artifact", re.IGNORECASE)
_OF_MATRIX = " ("  # of a job's name, before its part of a matrix: `check (gpu-a)`
_HARMLESS = frozenset({SUCCESS, SKIPPED, "neutral", ""})


@dataclass(frozen=True, kw_only=True, slots=True)
class RunJob:
    """One job of one attempt of a run. ``uploads`` are when its steps that upload began and ended."""

    name: str
    attempt: int
    began: str
    ended: str
    conclusion: str
    uploads: tuple[tuple[str, str], ...] = ()


def find_own_conclusion(client: GitHubClient, run_id: int, created: str) -> str:
    """Find how the job ended that left an artifact, ``created`` then; empty where nobody can tell.

    GitHub does not say which job that was. It is the one that uploaded something when the artifact was made,
    and of its attempts the last one counts: a job that was lost when it ran again left an old artifact.
    """
    # Those of earlier attempts too: what succeeded is not run again with what failed.
    listed = client.paginate(f"actions/runs/{run_id}/jobs", {"filter": "all"}, key="jobs")
    jobs = tuple(filter(None, map(_parse_job, listed)))
    own = choose_conclusion(jobs, created)
    if own != SUCCESS or not list_lost(jobs, created, ()):
        return own
    made = client.paginate(f"actions/runs/{run_id}/artifacts", {}, key="artifacts")
    lost = list_lost(jobs, created, [parse_time(find_value(value, "created_at")) for value in made])
    return lost[0].conclusion if lost else own


def choose_conclusion(jobs: Sequence[RunJob], moment: str) -> str:
    """Choose how the job ended that made something at a moment; empty where several may have, not alike."""
    last = _list_makers(jobs, moment)
    ends = {job.conclusion for job in last}
    names = {job.name for job in last}
    return ends.pop() if len(names) == 1 or ends == {SUCCESS} else ""


def list_lost(jobs: Sequence[RunJob], moment: str, made: Iterable[str]) -> list[RunJob]:
    """List jobs that failed and whose results another job wrote over, or that left none.

    Of a matrix with the job that made something at a ``moment``, or with an upload, when nothing was ``made``
    that is still there.
    """
    kinds = {job.name.partition(_OF_MATRIX)[0] for job in _list_makers(jobs, moment)}
    times = (moment, *made)
    return [
        job
        for job in {job.name: job for job in sorted(jobs, key=lambda job: job.attempt)}.values()
        if job.conclusion not in _HARMLESS
        and (job.uploads or job.name.partition(_OF_MATRIX)[0] in kinds)
        and not any(began <= time <= ended for began, ended in job.uploads for time in times)
    ]


def _list_makers(jobs: Sequence[RunJob], moment: str) -> list[RunJob]:
    """List the last attempts of the jobs that may have made something at a moment."""
    running = [job for job in jobs if job.began <= moment <= job.ended]
    likely = [job for job in running if any(began <= moment <= ended for began, ended in job.uploads)]
    names = [job.name for job in likely or running]
    return [max((job for job in jobs if job.name == name), key=lambda job: job.attempt) for name in names]


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
        if _UPLOADS.search(find_text(step, "name")) and find_text(step, "conclusion") != SKIPPED:
            yield parse_time(find_value(step, "started_at")), parse_time(find_value(step, "completed_at"))
