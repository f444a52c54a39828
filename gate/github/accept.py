"""``/accept-regression``: what a comment takes responsibility for, and whether its author may.

    /accept-regression [select=bert/*] [metric=compiled_latency] [commit] reason="why it is worth it"

Whoever may write to the repository may; nothing of the change is run for it, so a fork's will do. It is
for the commit that is the head now, if that was being measured when the comment was written.

What regressed is what the gate's own run left as its artifact. Anybody could have written that, so of it
only cases that the default branch knows, metrics and numbers are taken.
"""

from __future__ import annotations

from dataclasses import replace

from gate.errors import UsageError
from gate.github.approval_branch import store_approval
from gate.github.artifact import fetch_verdict
from gate.github.client import GitHubClient
from gate.github.command import CommentCommand, check_asked_commit, find_command, load_pull, read_command
from gate.github.context import JobContext
from gate.github.errors import GitHubError
from gate.github.gate_run import find_failed_run, rerun_failed_jobs
from gate.github.git_data import GitData
from gate.publish.approval import Accepted, ApprovalTerms, make_approval, weigh_approval, write_message
from gate.publish.commands import ACCEPT_COMMAND, AcceptRequest, CommandRefusedError, parse_accept_words
from gate.publish.submitted_verdict import RefusedError


def find_acceptance(context: JobContext) -> CommentCommand | None:
    """Find the comment that accepts a regression, if one started this job.

    Raises:
        UsageError: The workflow was started by something else than a comment.
    """
    if context.event_name != "issue_comment":
        raise UsageError(
            f"a regression cannot be accepted by the event {context.event_name!r}",
            "Start this workflow by issue_comment.",
        )
    return find_command(context, ACCEPT_COMMAND)


def authorize_acceptance(
    client: GitHubClient, context: JobContext, command: CommentCommand | None
) -> AcceptRequest | None:
    """Decide about the comment that started this job; None where it accepts nothing.

    Raises:
        CommandRefusedError: It does, and may not; the message says why.
        GitHubError: GitHub could not be asked: nothing goes on then.
    """
    if command is None:
        return None
    author, words = read_command(client, context, command, parse_accept_words)
    head = load_pull(client, context, command)
    check_asked_commit(words.sha, head)
    return AcceptRequest(
        author=author,
        asked=command.created,
        head_sha=head.sha,
        head_branch=head.ref,
        head_repository=head.repository,
        pr_number=command.number,
        words=words,
    )


def accept_regression(
    client: GitHubClient, context: JobContext, request: AcceptRequest, terms: ApprovalTerms
) -> Accepted:
    """Accept what regressed in the newest run for the head of a pull request, and start that run again.

    Raises:
        CommandRefusedError: There is nothing that could be accepted; nothing was written.
        GitHubError: GitHub does not do its part; nothing is accepted.
    """
    run = find_failed_run(client, context, terms.workflow, request)
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
