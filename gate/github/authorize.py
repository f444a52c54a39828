"""May this refresh of baselines go on, at which commit and for which branch?

A comment ``/refresh-baselines [select=...] [sha]`` on a pull request, or a dispatch by hand, makes a
GPU host run a branch's code. So: only a branch of this repository, only on the word of somebody who
could push to it anyway (the permission API is asked; what the payload says of its author is not
believed), and pinned to the commit that is the head now, so that a later push is not what is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gate.errors import UsageError
from gate.github.client import GitHubClient, quote_part
from gate.github.context import JobContext, find_text, find_value, is_sha
from gate.github.errors import MissingError

COMMAND = "/refresh-baselines"
USAGE = f"Write: {COMMAND} [select=tag:smoke] [commit]"
# What the API calls admin and write; it maps maintain to write, and roles of one's own to their base.
WRITERS = frozenset(("admin", "write"))
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})")
_SELECT = re.compile(r"select=([A-Za-z0-9_!*?\[][A-Za-z0-9_.,:/!*?\[\]-]{0,499})")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_BRANCH = "refs/heads/"


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshCommand:
    """What a comment asks for; ``sha`` may be the beginning of a commit id, or empty."""

    select: str = ""
    sha: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Authorization:
    """A refresh that may go on. ``pr_number`` is 0 for one that was dispatched by hand."""

    head_sha: str
    head_ref: str
    select: str
    author: str
    pr_number: int = 0


def parse_command(body: str) -> RefreshCommand | None:
    """Parse a comment; None where its first line is not the command.

    Raises:
        UsageError: It is, and has a word that means nothing.
    """
    lines = body.strip().splitlines()
    words = lines[0].split() if lines else []
    if not words or words[0] != COMMAND:
        return None
    found: dict[str, str] = {}
    for word in words[1:]:
        select, commit = _SELECT.fullmatch(word), _COMMIT.fullmatch(word)
        key, value = ("select", select[1]) if select else ("sha", commit[0] if commit else "")
        if not value or key in found:
            shown = "".join(char if char.isprintable() else "?" for char in word[:60])
            raise UsageError(f"{COMMAND}: cannot read {shown!r}", USAGE)
        found[key] = value
    return RefreshCommand(**found)


def authorize_refresh(client: GitHubClient, context: JobContext) -> Authorization | None:
    """Decide about the event that started this job; None where nobody asked for a refresh.

    Raises:
        UsageError: Somebody did, and may not; the message says why.
        GitHubError: GitHub could not be asked: nothing goes on then.
    """
    if context.event_name == "issue_comment":
        return _authorize_comment(client, context)
    if context.event_name == "workflow_dispatch":
        return _authorize_dispatch(client, context)
    raise UsageError(
        f"a refresh cannot be asked for by the event {context.event_name!r}",
        "Start this workflow by issue_comment or workflow_dispatch.",
    )


def _authorize_comment(client: GitHubClient, context: JobContext) -> Authorization | None:
    event = context.event
    command = parse_command(find_text(event, "comment.body"))
    if command is None or find_text(event, "action") != "created":
        return None  # an edited comment asks for nothing: it may have been a harmless one before
    number = find_value(event, "issue.number")
    if not isinstance(number, int) or find_value(event, "issue.pull_request") is None:
        raise UsageError(f"{COMMAND} works on pull requests only", "Comment on a pull request.")
    author = _check_writer(client, context, find_value(event, "comment.user"))
    pull = client.get(f"{context.path}/pulls/{number}")
    head_sha, head_ref = _check_pull(pull, context)
    if command.sha and not head_sha.startswith(command.sha):
        raise UsageError(
            f"{COMMAND}: {command.sha} is not the head of pull request {number}, which is {head_sha[:12]}",
            "Look at what was pushed since, then ask for that commit.",
        )
    return Authorization(
        head_sha=head_sha, head_ref=head_ref, select=command.select, author=author, pr_number=number
    )


def _authorize_dispatch(client: GitHubClient, context: JobContext) -> Authorization:
    ref = find_text(context.event, "ref")
    if not ref.startswith(_BRANCH) or not is_sha(context.sha):
        raise UsageError("a refresh is for a branch", "Choose a branch when you start the workflow.")
    asked = find_text(context.event, "inputs.select").strip()
    if asked and not _SELECT.fullmatch(f"select={asked}"):
        raise UsageError("the input select is not a selection", "Write it as in tag:smoke,bert/*.")
    return Authorization(
        head_sha=context.sha,
        head_ref=ref.removeprefix(_BRANCH),
        select=asked,
        author=_check_writer(client, context, find_value(context.event, "sender")),
    )


def _check_writer(client: GitHubClient, context: JobContext, user: object) -> str:
    """Ask GitHub what somebody may do here, and return their login."""
    login = find_text(user, "login")
    if not _LOGIN.fullmatch(login) or find_text(user, "type") != "User":
        raise UsageError("a refresh must be asked for by a person", USAGE)
    denied = UsageError(
        f"{login} may not refresh baselines: that needs the right to write to {context.repository}",
        "Ask somebody who has it to comment.",
    )
    try:
        answer = client.get(f"{context.path}/collaborators/{quote_part(login)}/permission")
    except MissingError:
        raise denied from None
    if find_value(answer, "permission") not in WRITERS or find_text(answer, "user.login") != login:
        raise denied
    return login


def _check_pull(pull: object, context: JobContext) -> tuple[str, str]:
    """Check that a pull request is open and of this repository; return its head's commit and branch."""
    if find_text(pull, "state") != "open":
        raise UsageError("the pull request is closed", "Reopen it, or refresh on its base branch.")
    ids = [find_value(pull, f"{side}.repo.id") for side in ("head", "base")]
    ids.append(find_value(context.event, "repository.id"))
    if not isinstance(ids[0], int) or len(set(ids)) != 1:
        raise UsageError(
            "the pull request comes from a fork: its code must not run where a refresh does",
            "Push the branch to this repository after reviewing it, and ask there.",
        )
    head_sha, head_ref = find_value(pull, "head.sha"), find_text(pull, "head.ref")
    if not isinstance(head_sha, str) or not is_sha(head_sha) or not head_ref:
        raise UsageError("GitHub does not tell the pull request's head", "Try again later.")
    return head_sha, head_ref


def make_outputs(authorization: Authorization | None) -> Mapping[str, object]:
    """Make the outputs that the following jobs are given."""
    if authorization is None:
        return {"authorized": "false"}
    return {
        "authorized": "true",
        "head-sha": authorization.head_sha,
        "head-ref": authorization.head_ref,
        "select": authorization.select,
        "pr-number": authorization.pr_number or "",
    }
