"""The run of the gate whose regression is accepted: which one it is, and starting it again."""

from __future__ import annotations

from gate.github.client import GitHubClient, quote_part
from gate.github.context import JobContext
from gate.github.errors import GitHubError, MissingError, UncertainWriteError
from gate.github.events import got_other_base, parse_workflow_run
from gate.github.payload import find_text
from gate.publish.ci_run import CiRun
from gate.publish.commands import CommandRefusedError


def find_failed_run(
    client: GitHubClient, context: JobContext, workflow: str, head_sha: str, pr_number: int
) -> CiRun:
    """Find the newest run for the head of a pull request, which must have failed.

    ``workflow`` is the path of the file that runs the gate.

    Raises:
        CommandRefusedError: There is none, it has not ended or not failed, or it was for another base.
        GitHubError: GitHub could not be asked.
    """
    name = workflow.rpartition("/")[2]  # GitHub takes the file's name for its workflow
    path = f"{context.path}/actions/workflows/{quote_part(name)}/runs"
    query = {"event": "pull_request", "head_sha": head_sha}
    try:
        found = [run for run in client.paginate(path, query, key="workflow_runs") if _is_of(run, head_sha)]
    except MissingError:
        raise CommandRefusedError(
            "the repository has no workflow of the name that this one is told",
            "Where your gate lies in another file, name that in the input workflow.",
        ) from None
    if not found:
        raise CommandRefusedError(f"the gate has not run for {head_sha[:12]}", "Wait until it has ended.")
    newest = max(found, key=lambda run: parse_workflow_run(run).id)
    if find_text(newest, "status") != "completed":
        raise CommandRefusedError(
            f"the gate still runs for {head_sha[:12]}", "Wait until it has ended, and look at what it says."
        )
    run = parse_workflow_run(newest)
    if run.conclusion != "failure":
        raise CommandRefusedError(
            f"the gate ended with {run.conclusion} for {head_sha[:12]}", "Only what failed can be accepted."
        )
    _check_base(client, context, pr_number, run.created)
    return run


def _is_of(run: object, head_sha: str) -> bool:
    return find_text(run, "head_sha") == head_sha and find_text(run, "event") == "pull_request"


def _check_base(client: GitHubClient, context: JobContext, pr_number: int, created: str) -> None:
    """Check that the pull request still has the base that the run was for."""
    if got_other_base(client, context, pr_number, created):
        raise CommandRefusedError(
            "the pull request got another base branch after the gate ran",
            "Push a commit, which may be an empty one, so that it is measured against the new base.",
        )


def rerun_failed_jobs(client: GitHubClient, context: JobContext, run: CiRun) -> None:
    """Start the failed jobs of a run again, with its own event and commit; those that passed stay.

    Raises:
        GitHubError: GitHub refuses, as it does for runs of more than 30 days ago.
    """
    path = f"{context.path}/actions/runs/{run.id}"
    try:
        client.post(f"{path}/rerun-failed-jobs", {})
    except UncertainWriteError:
        # It may have begun: asking again would be refused then, and look like a failure.
        if parse_workflow_run(client.get(path)).attempt <= run.attempt:
            client.post(f"{path}/rerun-failed-jobs", {})
    except GitHubError:
        # Somebody else, or this job's earlier attempt, was faster.
        if parse_workflow_run(client.get(path)).attempt <= run.attempt:
            raise
