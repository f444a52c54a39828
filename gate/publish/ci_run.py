"""A run of CI that measured something, as its host tells it."""

from __future__ import annotations

from dataclasses import dataclass

WORKFLOWS = ".github"  # what runs the gate is as much of a rule as what it judges by


MERGE_GROUP = "merge_group"
SCHEDULE = "schedule"
PULL_REQUEST_EVENTS = frozenset({"pull_request", "pull_request_target"})


@dataclass(frozen=True, kw_only=True, slots=True)
class CiRun:
    """One run of a workflow, as the API tells it."""

    id: int
    attempt: int
    event: str  # what started it: "pull_request", "merge_group", "schedule"
    conclusion: str  # "success", "failure", "cancelled", ...; "" while it is running
    head_sha: str
    head_branch: str
    head_owner: str  # "" where the head's repository is gone
    head_repository: int  # id; 0 where it is gone
    repository: int  # id
    started: str  # ISO 8601, UTC: when this attempt began
    created: str = ""  # when the first one did, with the event that all of them are for
    url: str
    path: str = ""  # of the workflow's file: ".github/workflows/gate.yml"; "" where GitHub does not tell

    @property
    def is_of_pull_request(self) -> bool:
        """Whether a pull request started it."""
        return self.event in PULL_REQUEST_EVENTS

    @property
    def decides_merging(self) -> bool:
        """Whether what it measured is what is to be merged: of a pull request, or of a merge queue."""
        return self.is_of_pull_request or self.event == MERGE_GROUP
