"""The jobs of a run: which job left an artifact, and which jobs of its kind failed and left none.

Both follow from the names and times of the steps that upload.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gate.github.client import GitHubClient
from gate.github.job import find_text, find_value
from gate.github.run_events import parse_time

SUCCESS = "success"
FAILURE = "failure"
_NO_FAILURE = frozenset({SUCCESS, "skipped", "neutral", ""})  # the last one has not ended yet
# A step is called `Run actions/upload-artifact@...` unless the workflow names it.
_UPLOADS = re.compile("upload|artifact", re.IGNORECASE)
_CLEANS = "Post "  # begins the name of a step that tidies up: only of those that ran
_MATRIX = re.compile(r" \([^()]*\)")  # `check (gpu-a)`, `compile-gate (gpu-a) / check`


@dataclass(frozen=True, kw_only=True, slots=True)
class RunJob:
    """One attempt of a job. ``uploads`` are its steps that upload, by index: when each began and ended."""

    name: str
    attempt: int
    began: str
    ended: str
    conclusion: str
    steps: tuple[str, ...] = ()
    uploads: Mapping[int, tuple[str, str]] = field(default_factory=dict)  # by the step's index
    failed_step: str = ""  # the first that failed

    def find_uploads(self, moments: Collection[str]) -> set[int]:
        spans = self.uploads.items()
        return {at for at, (began, ended) in spans if any(began <= moment <= ended for moment in moments)}

    def is_like(self, other: "RunJob") -> bool:
        names = [_MATRIX.sub("", job.name) for job in (self, other)]
        return names[0] == names[1] or bool(self.steps and self.steps == other.steps)


def list_jobs(client: GitHubClient, run_id: int) -> tuple[RunJob, ...]:
    """Of all attempts: what succeeded is not run again with what failed."""
    listed = client.paginate(f"actions/runs/{run_id}/jobs", {"filter": "all"}, key="jobs")
    return tuple(filter(None, map(_parse_job, listed)))


def find_failed_step(jobs: Sequence[RunJob]) -> str:
    return next((job.failed_step for job in jobs if job.failed_step and _is_last(job, jobs)), "")


def choose_owners(jobs: Sequence[RunJob], moment: str) -> tuple[RunJob, ...]:
    """Choose the job that uploaded when an artifact was made; several where each may have.

    A job's last attempt counts: one that was lost when it ran again left an old artifact.
    """
    running = [job for job in jobs if job.began <= moment <= job.ended]
    likely = [job for job in running if job.find_uploads([moment])] or running
    lost = {job.name for job in likely if not _is_last(job, jobs)}
    return tuple(job for job in jobs if _is_last(job, jobs) and (job in likely or job.name in lost))


def choose_conclusion(jobs: Sequence[RunJob], moment: str) -> str:
    """Empty where several jobs may have left the artifact, not all with success."""
    conclusions = [owner.conclusion for owner in choose_owners(jobs, moment)]
    if len(conclusions) == 1:
        return conclusions.pop()
    return SUCCESS if set(conclusions) == {SUCCESS} else ""


def name_lost(jobs: Sequence[RunJob], moment: str, other_times: Collection[str]) -> tuple[str, ...]:
    """Name the jobs that failed, do the same as the owner, and left no artifact.

    ``other_times`` are when other artifacts were made.
    """
    owners = choose_owners(jobs, moment)
    steps = {at for owner in owners for at in owner.find_uploads([moment])}
    failed = [job for job in jobs if _is_last(job, jobs) and job.conclusion not in _NO_FAILURE]
    alike = [job for job in failed if [job] != [*owners] and any(map(job.is_like, owners))]
    return tuple(job.name for job in alike if not _left_own(job, jobs, steps, (moment, *other_times)))


def _left_own(job: RunJob, jobs: Sequence[RunJob], steps: Collection[int], moments: Collection[str]) -> bool:
    """Whether more was made during a job's ``steps`` than steps of other jobs account for."""
    made = [moment for moment in moments if job.find_uploads([moment]) & {*(steps or job.uploads)}]
    others = sum(len(other.find_uploads(made)) for other in jobs if other.name != job.name)
    return len(made) > others


def _is_last(job: RunJob, jobs: Sequence[RunJob]) -> bool:
    return job.attempt == max(same.attempt for same in jobs if same.name == job.name)


def _parse_job(value: object) -> RunJob | None:
    attempt, began = find_value(value, "run_attempt"), parse_time(find_value(value, "started_at"))
    if not began:
        return None
    listed = find_value(value, "steps")
    steps = listed if isinstance(listed, list) else []
    names = [find_text(step, "name") for step in steps]
    ends = [find_text(step, "conclusion") for step in steps]
    return RunJob(
        name=find_text(value, "name"),
        attempt=attempt if isinstance(attempt, int) else 1,
        began=began,
        ended=parse_time(find_value(value, "completed_at")),
        conclusion=find_text(value, "conclusion"),
        steps=tuple(name for name in names if not name.startswith(_CLEANS)),
        failed_step=next((names[at] for at, end in enumerate(ends) if end == FAILURE), ""),
        uploads={
            at: (parse_time(find_value(step, "started_at")), parse_time(find_value(step, "completed_at")))
            for at, step in enumerate(steps)
            if _UPLOADS.search(names[at])
        },
    )
