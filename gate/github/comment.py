"""One comment a pull request and key.

GitHub cannot change a comment on condition, so where three publishers race within milliseconds an older
text can come last; the workflows' concurrency group keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from gate.github.client import GitHubClient
from gate.github.errors import GitHubError, MissingError
from gate.github.sticky import (
    Action,
    Draft,
    Post,
    Sticky,
    Written,
    choose_body,
    find_displaced,
    find_oldest,
    is_same,
)

DEFAULT_AUTHOR = "github-actions[bot]"  # whom a workflow's own token writes as
_INSTALLATION = "ghs_"  # begins the tokens that have no user: a workflow's own and an app's
_ROUNDS = 3  # of writing and looking again; each loses only to another publisher


@dataclass(frozen=True, kw_only=True, slots=True)
class CommentDraft(Draft):
    """What is to be said on the pull request ``number``."""

    number: int


def find_author(client: GitHubClient, token: str) -> str:
    """Find the login that the token writes as. An installation's token cannot ask for it."""
    if token.startswith(_INSTALLATION):
        return DEFAULT_AUTHOR
    try:
        login = client.get("/user").get("login")
    except (GitHubError, AttributeError):
        return DEFAULT_AUTHOR
    return login if isinstance(login, str) and login else DEFAULT_AUTHOR


class StickyComment(Sticky[CommentDraft]):
    """The comments of one pull request; of several the others are deleted."""

    noun, key_name = "comment", "id"

    def locate(self, draft: CommentDraft) -> str:
        """Name the pull request's comments."""
        return f"/repos/{draft.repository}/issues/{draft.number}/comments"

    def list_all(self, draft: CommentDraft, since: datetime | None) -> Iterable[Mapping[str, Any]]:
        """List the pull request's comments."""
        asked = {"since": since.strftime("%Y-%m-%dT%H:%M:%SZ")} if since else None
        return self._client.paginate(self.locate(draft), asked)

    def make_fields(self, draft: CommentDraft) -> dict[str, object]:
        """Make the fields of a comment."""
        return {"body": draft.body}

    def write(self, draft: CommentDraft, has_moved: Callable[[], bool]) -> Written:
        """Make the pull request's one comment say what the draft says, unless it should not.

        ``has_moved`` is asked right before the first write.

        Raises:
            GitHubError: GitHub refuses or does not answer.
        """
        own, written = self.look(draft)
        displaced = find_displaced(own, draft)
        return replace(written or self._write(own, draft, has_moved), displaced=displaced)

    def _write(self, own: Sequence[Post], draft: CommentDraft, has_moved: Callable[[], bool]) -> Written:
        if len(own) == 1 and is_same(own[0].body, draft.body):
            return Written(action=Action.UNCHANGED, url=own[0].url)
        if has_moved():
            return Written(action=Action.SUPERSEDED)
        action = Action.UPDATED if own else Action.CREATED
        for _ in range(_ROUNDS):
            if not own:
                own = self.create(draft)
                if len(own) > 1:  # a race: no pause may lie between looking and writing
                    self._client.wait_to_write()
                    own = self.list_own(draft) or own
            kept = self._settle(own, draft)
            if kept is not None:
                return Written(action=action, url=kept.url)
            own = self.list_own(draft)
        return Written(action=action)

    def _settle(self, own: Sequence[Post], draft: CommentDraft) -> Post | None:
        """Let the oldest hold the newest text and delete the others; ``None`` where it has gone."""
        kept, body = find_oldest(own), choose_body(own, draft)
        base = f"/repos/{draft.repository}/issues/comments"
        if not is_same(kept.body, body):
            try:
                self._client.patch(f"{base}/{kept.id}", {"body": body})
            except MissingError:
                return None
        for comment in own:
            if comment.id != kept.id:
                self._client.delete(f"{base}/{comment.id}")
        return kept
