"""A command in a comment on a pull request: what was asked, by whom, whether they may, and the answer.

    command = find_command(context, "/refresh-baselines")     # None: the comment asks for nothing
    check_writer(client, context, command.user)               # the permission API decides
    pull = load_pull(client, context, command)                # its head, as of now

Whoever may comment may write anything, so every refusal is a sentence of ours: nothing of the comment
is in it, and it may be told to everybody.

An answer decides nothing. Trouble with one is told in the log, and little time is spent on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from gate.github.client import GitHubClient, Patience, quote_part
from gate.github.context import JobContext, is_sha
from gate.github.errors import GitHubError, MissingError, find_text, find_value
from gate.github.events import parse_time
from gate.publish.commands import CommandRefusedError, split_command

# What the API calls admin and write; it maps maintain to write, and roles of one's own to their base.
WRITERS = frozenset(("admin", "write"))
W = TypeVar("W")
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommentCommand:
    """A command. ``words`` follow it on the comment's first line, and are foreign; ``user`` wrote it."""

    name: str
    words: tuple[str, ...]
    number: int  # of the pull request, or of an issue, where commands do nothing
    comment_id: int
    created: str  # as 2026-11-01T12:00:00Z; "" where GitHub does not tell
    user: Mapping[str, object]
    is_on_pull: bool

    @property
    def is_by_person(self) -> bool:
        """Whether a person wrote it, and no bot that repeats what somebody said."""
        return self.user.get("type") == "User"


@dataclass(frozen=True, kw_only=True, slots=True)
class PullHead:
    """What a pull request proposes, as GitHub tells it now."""

    sha: str
    ref: str
    repository: int  # id; 0 where it is gone
    is_fork: bool  # or of a repository that is gone


def find_command(context: JobContext, name: str) -> CommentCommand | None:
    """Find the command in the comment that started this job; None where there is none.

    An edited comment asks for nothing: it may have been a harmless one before.
    """
    event = context.event
    words = split_command(find_text(event, "comment.body"), name)
    number, comment_id = find_value(event, "issue.number"), find_value(event, "comment.id")
    user = find_value(event, "comment.user")
    if words is None or find_text(event, "action") != "created" or not isinstance(number, int):
        return None
    return CommentCommand(
        name=name,
        words=words,
        number=number,
        comment_id=comment_id if isinstance(comment_id, int) else 0,
        created=parse_time(find_value(event, "comment.created_at")),
        user=user if isinstance(user, Mapping) else {},
        is_on_pull=find_value(event, "issue.pull_request") is not None,
    )


def check_writer(client: GitHubClient, context: JobContext, user: object) -> str:
    """Ask GitHub what somebody may do here, and return their login.

    What the event says of them is not believed.

    Raises:
        CommandRefusedError: They may not write, or are no person.
        GitHubError: GitHub could not be asked: nothing goes on then.
    """
    login = find_text(user, "login")
    if not _LOGIN.fullmatch(login) or find_text(user, "type") != "User":
        raise CommandRefusedError("this must be asked for by a person", "Write the comment yourself.")
    denied = CommandRefusedError(
        "this needs the right to write to the repository", "Ask somebody who has it to comment."
    )
    try:
        answer = client.get(f"{context.path}/collaborators/{quote_part(login)}/permission")
    except MissingError:
        raise denied from None
    if find_value(answer, "permission") not in WRITERS or find_text(answer, "user.login") != login:
        raise denied
    return login


def read_command(
    client: GitHubClient, context: JobContext, command: CommentCommand, parse: Callable[[tuple[str, ...]], W]
) -> tuple[str, W]:
    """Check who wrote a command, then what it says; return the login and the parsed words.

    Raises:
        CommandRefusedError, GitHubError: As :func:`check_writer`; or the words mean nothing.
    """
    try:
        words = parse(command.words)
    except CommandRefusedError:
        try:
            check_writer(client, context, command.user)
        except CommandRefusedError as denied:
            denied.is_told = False
            raise denied from None
        raise
    return check_writer(client, context, command.user), words


def load_pull(client: GitHubClient, context: JobContext, command: CommentCommand) -> PullHead:
    """Load the head of the pull request that a command is about.

    Raises:
        CommandRefusedError: It is no open pull request of this repository.
        GitHubError: GitHub could not be asked.
    """
    if not command.is_on_pull:
        raise CommandRefusedError(f"{command.name} works on pull requests only", "Comment on a pull request.")
    pull = client.get(f"{context.path}/pulls/{command.number}")
    if find_text(pull, "state") != "open":
        raise CommandRefusedError("the pull request is closed", "Reopen it, and ask again.")
    here, base = find_value(context.event, "repository.id"), find_value(pull, "base.repo.id")
    sha, ref = find_text(pull, "head.sha"), find_text(pull, "head.ref")
    if not isinstance(here, int) or base != here or not is_sha(sha) or not ref:
        raise CommandRefusedError("GitHub does not name the pull request's head", "Try again later.")
    found = find_value(pull, "head.repo.id")
    repository = found if isinstance(found, int) else 0
    return PullHead(sha=sha, ref=ref, repository=repository, is_fork=repository != here)


def check_asked_commit(asked: str, head: PullHead) -> None:
    """Check that a commit that a command names is the head; an empty one names none.

    Raises:
        CommandRefusedError: It is not: somebody pushed after it was looked at.
    """
    if not head.sha.startswith(asked):
        raise CommandRefusedError(
            f"the commit in the command is not the head of the pull request, which is {head.sha[:12]}",
            "Look at what was pushed since, then ask for that commit.",
        )


# Of all waiting for answers, and of one request: the decision must not wait for a smiley.
ANSWER_WAIT_S = 5.0
ANSWER_EXCHANGE_S = 10.0
_NO_ANSWER = ("GitHub could not be asked whether this is allowed", "Comment again later.")


class Reaction(StrEnum):
    """Reactions in GitHub's words."""

    READ = "eyes"
    GOES_ON = "rocket"
    REFUSED = "confused"


class Answerer:
    """Answers one comment; what goes wrong with that is told to ``tell``, and is no error."""

    def __init__(
        self,
        client: GitHubClient,
        context: JobContext,
        command: CommentCommand | None,
        tell: Callable[[str], None],
    ) -> None:
        self._client = client
        self._context = context
        # A bot gets no answer: two bots could go on talking for ever.
        self._command = command if command is not None and command.is_by_person else None
        self._tell = tell

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Show that the command was read, and tell why it is refused where the block raises that."""
        self.react(Reaction.READ)
        try:
            yield
        except CommandRefusedError as error:
            if error.is_told:
                self.refuse(error.what, error.fix)
            else:
                self.react(Reaction.REFUSED)
            raise
        except GitHubError:
            self.refuse(*_NO_ANSWER)
            raise

    def react(self, reaction: Reaction) -> None:
        """React to the comment."""
        if self._command is not None and self._command.comment_id:
            path = f"{self._context.path}/issues/comments/{self._command.comment_id}/reactions"
            self._attempt(lambda: self._client.post(path, {"content": reaction.value}))

    def refuse(self, what: str, fix: str) -> None:
        """React, and say why in one comment: ``what`` and ``fix`` are sentences of ours."""
        self.react(Reaction.REFUSED)
        if self._command is not None:
            self.comment(f"`{self._command.name}` is refused: {what}. {fix}")

    def comment(self, text: str) -> None:
        """Write one comment: ``text`` is Markdown of ours."""
        if self._command is not None:
            path = f"{self._context.path}/issues/{self._command.number}/comments"
            body = render_answer(self._context, self._command, text)
            self._attempt(lambda: self._client.post(path, {"body": body}))

    def _attempt(self, do: Callable[[], Any]) -> None:
        try:
            do()
        except GitHubError as error:
            self._tell(f"The comment could not be answered: {error.what}. {error.fix}")


def render_answer(context: JobContext, command: CommentCommand, text: str) -> str:
    """Render the comment that answers a command, and names it."""
    page = f"{context.server_url}/{context.repository}/issues/{command.number}"
    asked = f"[this comment]({page}#issuecomment-{command.comment_id})" if command.comment_id else "a comment"
    return (
        f"{text}\n\n<sub>In answer to {asked}; [the run]({context.run_url}). Written by compile-gate.</sub>\n"
    )


def make_patience(tell: Callable[[str], None]) -> Patience:
    """Make the little patience of the client that answers."""
    return Patience(max_wait_s=ANSWER_WAIT_S, exchange_s=ANSWER_EXCHANGE_S, tell=tell)
