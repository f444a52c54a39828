"""From a comment that may accept a regression to an approval, and the check started again.

What regressed is what the gate's own run left as its artifact. Anybody could have written that, so of it
only cases that the default branch knows, metrics and numbers are taken.
"""

from __future__ import annotations

from dataclasses import replace

from gate.github.approval_branch import store_approval
from gate.github.artifact import fetch_verdict
from gate.github.client import GitHubClient
from gate.github.context import JobContext
from gate.github.errors import GitHubError
from gate.github.gate_run import find_failed_run, rerun_failed_jobs
from gate.github.git_data import GitData
from gate.publish.approval import (
    Accepted,
    ApprovalTerms,
    make_approval,
    weigh_approval,
    write_message,
)
from gate.publish.commands import AcceptRequest, CommandRefusedError
from gate.publish.submitted_verdict import RefusedError


def accept_regression(
    client: GitHubClient, context: JobContext, request: AcceptRequest, terms: ApprovalTerms
) -> Accepted:
    """Accept what regressed in the newest run for the head of a pull request, and start that run again.

    Raises:
        CommandRefusedError: There is nothing that could be accepted; nothing was written.
        GitHubError: GitHub does not do its part; nothing is accepted.
    """
    run = find_failed_run(client, context, terms.workflow, request.head_sha, request.pr_number)
    try:
        verdict = fetch_verdict(client, context.repository, run, terms.artifact_name)
    except RefusedError as error:
        raise CommandRefusedError(error.refusal.value, "Run the check again.") from None
    approval, rows = make_approval(verdict, request, terms)
    # Stored before the run starts, whose clone must find it.
    store_approval(GitData(client, context.path), approval, write_message(request, approval))
    trouble = ""
    try:
        rerun_failed_jobs(client, context, run)
    except GitHubError as error:
        trouble = f"{error.what}. {error.fix}"
    return replace(weigh_approval(verdict, approval, rows, terms.today), run_url=run.url, trouble=trouble)
