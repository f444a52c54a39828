"""``/accept-regression``: what a comment takes responsibility for, and whether its author may.

    /accept-regression [select=bert/*] [metric=compiled_latency] [commit] reason="why it is worth it"

Whoever may write to the repository may; nothing of the change is run for it, so a fork's will do. It is
for the commit that is the head now.
"""

from __future__ import annotations

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.command import CommentCommand, check_asked_commit, check_writer, find_command, load_pull
from gate.github.context import JobContext
from gate.publish.commands import ACCEPT_COMMAND, AcceptRequest, parse_accept_words


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
    words = parse_accept_words(command.words)
    author = check_writer(client, context, command.user)
    head = load_pull(client, context, command)
    check_asked_commit(words.sha, head)
    return AcceptRequest(author=author, head_sha=head.sha, pr_number=command.number, words=words)
