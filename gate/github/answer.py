"""The answer to a comment's command: a reaction, and at most one comment.

An answer decides nothing. Trouble with one is told in the log, and little time is spent on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from gate.github.authorize import CommentCommand
from gate.github.client import GitHubClient, Patience
from gate.github.errors import GitHubError
from gate.github.job import JobContext
from gate.publish.commands import CommandRefusedError

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
