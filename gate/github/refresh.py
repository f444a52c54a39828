"""May this refresh of baselines go on, at which commit and for which branch?

A comment ``/refresh-baselines [select=...] [sha]`` on a pull request, or a dispatch by hand, makes a
GPU host run a branch's code. So: only a branch of this repository, only on the word of somebody who
could push to it anyway, and pinned to the commit that is the head now, so that a later push is not
what is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.command import (
    CommentCommand,
    check_asked_commit,
    check_writer,
    find_command,
    load_pull,
    read_command,
)
from gate.github.context import JobContext, is_sha
from gate.github.errors import MissingError, find_text, find_value
from gate.publish.commands import (
    REFRESH_COMMAND,
    AcceptRequest,
    CommandRefusedError,
    parse_refresh_words,
    parse_select,
)

ENVIRONMENT = "refresh-baselines"  # of the job that measures, in gate-refresh.yml
_BRANCH = "refs/heads/"
# Rules of an environment that let nobody say no: a pause, and which branch's workflow may use it.
_RULES_WITHOUT_REVIEW = frozenset(("wait_timer", "branch_policy"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Authorization:
    """A refresh that may go on. ``pr_number`` is 0 for one that was dispatched by hand."""

    head_sha: str
    head_ref: str
    select: str
    author: str
    pr_number: int = 0


def authorize_refresh(
    client: GitHubClient, context: JobContext, command: CommentCommand | None
) -> Authorization | None:
    """Decide about the event that started this job; None where nobody asked for a refresh.

    ``command`` is what :func:`find_refresh` found.

    Raises:
        CommandRefusedError: A comment did, and may not; the message says why.
        UsageError: The same of a dispatch by hand, or the event is another.
        GitHubError: GitHub could not be asked: nothing goes on then.
    """
    if context.event_name == "issue_comment":
        return _authorize_comment(client, context, command) if command is not None else None
    if context.event_name == "workflow_dispatch":
        return _authorize_dispatch(client, context)
    raise UsageError(
        f"a refresh cannot be asked for by the event {context.event_name!r}",
        "Start this workflow by issue_comment or workflow_dispatch.",
    )


def find_refresh(context: JobContext) -> CommentCommand | None:
    """Find the comment that asks for a refresh, if one started this job."""
    return find_command(context, REFRESH_COMMAND) if context.event_name == "issue_comment" else None


def _authorize_comment(client: GitHubClient, context: JobContext, command: CommentCommand) -> Authorization:
    author, words = read_command(client, context, command, parse_refresh_words)
    head = load_pull(client, context, command)
    if head.is_fork:
        raise CommandRefusedError(
            "the pull request comes from a fork: its code must not run where a refresh does",
            "Push the branch to this repository after reviewing it, and ask there.",
        )
    check_asked_commit(words.sha, head)
    return Authorization(
        head_sha=head.sha, head_ref=head.ref, select=words.select, author=author, pr_number=command.number
    )


def _authorize_dispatch(client: GitHubClient, context: JobContext) -> Authorization:
    ref = find_text(context.event, "ref")
    if not ref.startswith(_BRANCH) or not is_sha(context.sha):
        raise UsageError("a refresh is for a branch", "Choose a branch when you start the workflow.")
    asked = find_text(context.event, "inputs.select").strip()
    if asked and not parse_select(f"select={asked}"):
        raise UsageError("the input select is not a selection", "Write it as in tag:smoke,bert/*.")
    return Authorization(
        head_sha=context.sha,
        head_ref=ref.removeprefix(_BRANCH),
        select=asked,
        author=check_writer(client, context, find_value(context.event, "sender")),
    )


def describe_protection(client: GitHubClient, context: JobContext) -> str:
    """Describe what the environment of the job that measures lacks; empty where somebody must approve.

    Raises:
        GitHubError: GitHub does not tell.
    """
    try:
        environment = client.get(f"{context.path}/environments/{ENVIRONMENT}")
    except MissingError:
        return f"There is no environment {ENVIRONMENT}: GitHub makes it when it is first used. {_ADVICE}"
    rules = find_value(environment, "protection_rules")
    kinds = {find_text(rule, "type") for rule in rules} if isinstance(rules, list) else set()
    return (
        "" if kinds - _RULES_WITHOUT_REVIEW else f"The environment {ENVIRONMENT} has no reviewers. {_ADVICE}"
    )


_ADVICE = "Nobody has to approve what a refresh runs: add required reviewers in the repository's settings."


def make_outputs(request: Authorization | AcceptRequest | None) -> Mapping[str, object]:
    """Make the outputs that the following jobs are given."""
    if request is None:
        return {"authorized": "false"}
    outputs = {"authorized": "true", "head-sha": request.head_sha, "pr-number": request.pr_number or ""}
    if isinstance(request, Authorization):
        outputs |= {"head-ref": request.head_ref, "select": request.select}
    return outputs
