"""Where a pull request's base branch was changed: the run whose verdict has to be taken back.

The workflow ``gate-retarget`` fails then and measures nothing, so what is told is the gate's own run for the
same commit, of which it is known by now that it judged another change.
"""

from __future__ import annotations

from dataclasses import replace

from gate.github.client import GitHubClient, quote_part
from gate.github.context import JobContext
from gate.github.events import Target, parse_workflow_run
from gate.github.payload import find_text
from gate.publish.ci_run import CiRun

WORKFLOW = ".github/workflows/gate-retarget.yml"


def is_of_retarget(run: CiRun, repository: str) -> bool:
    """Whether a run is of the workflow that takes back what was said of another base."""
    return run.path in {WORKFLOW, f"{repository}/{WORKFLOW}"}


def find_outdated(client: GitHubClient, job: JobContext, target: Target, workflow: str) -> Target | None:
    """Find what a failed run of ``gate-retarget`` takes back: the newest run of ``workflow`` for its commit.

    ``None`` where there is nothing to take back: the run did not fail, the pull request has moved on, or
    the gate's run has not ended, and is told when it has.

    Raises:
        GitHubError: GitHub does not tell.
    """
    run = target.run
    if run.conclusion != "failure" or target.pull is None:
        return None
    path = f"{job.path}/actions/workflows/{quote_part(workflow.rpartition('/')[2])}/runs"
    listed = client.paginate(path, {"head_sha": run.head_sha}, key="workflow_runs")
    ours = [(parse_workflow_run(one), find_text(one, "status")) for one in listed]
    # One commit may be a fork's head too, whose runs are for another pull request.
    found = [
        (one, status)
        for one, status in ours
        if one.is_of_pull_request
        and (one.head_sha, one.head_repository) == (run.head_sha, run.head_repository)
    ]
    if not found:
        return None
    newest, status = max(found, key=lambda pair: pair[0].id)
    return replace(target, run=newest) if status == "completed" else None
