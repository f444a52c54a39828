"""One issue a key, closed while there is nothing to tell.

An issue cannot be deleted. Of two that racing publishers made, the oldest is kept and the other is closed
without its marker. Somebody who closes the issue as *not planned* has had enough: it is kept up to date
and stays closed until a person opens it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from gate.github.sticky import (
    NOT_PLANNED,
    Action,
    Draft,
    Post,
    Sticky,
    Written,
    choose_body,
    find_oldest,
    is_same,
)

# Of the author's issues, those touched last; ours is touched by every run. Ten requests.
MAX_LISTED = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class IssueDraft(Draft):
    """What is to be said under a title, in an issue that is to be open where it is wanted."""

    title: str


class StickyIssue(Sticky[IssueDraft]):
    """The issues of one repository."""

    noun, key_name = "issue", "number"

    def locate(self, draft: IssueDraft) -> str:
        """Name the repository's issues."""
        return f"/repos/{draft.repository}/issues"

    def list_all(self, draft: IssueDraft, since: datetime | None) -> Iterable[Mapping[str, Any]]:
        """List the author's issues: a racing publisher's is among those touched last."""
        del since
        asked = {"state": "all", "creator": self._author, "sort": "updated", "direction": "desc"}
        return islice(self._client.paginate(self.locate(draft), asked), MAX_LISTED)

    def make_fields(self, draft: IssueDraft) -> dict[str, object]:
        """Make the fields of an issue."""
        return {"title": draft.title, "body": draft.body}

    def write(self, draft: IssueDraft) -> Written:
        """Make the one issue of this key say what the draft says, and open or close it.

        Raises:
            GitHubError: GitHub refuses or does not answer.
        """
        own, written = self.look(draft)
        if written is not None:
            return written
        if own:
            return self._settle(own, draft)
        return Written(action=Action.CREATED, url=self._settle(self.create(draft), draft).url)

    def _settle(self, own: Sequence[Post], draft: IssueDraft) -> Written:
        """Let the oldest hold the newest text in the right state, and retire the others."""
        kept, body = find_oldest(own), choose_body(own, draft)
        fields: dict[str, object] = {} if is_same(kept.body, body) else {"body": body}
        action = _choose_action(kept, draft, has_news=bool(fields))
        if action is Action.REOPENED:
            fields |= {"state": "open"}
        if action is Action.CLOSED:
            fields |= {"state": "closed", "state_reason": "completed"}
        if fields:
            self._client.patch(f"{self.locate(draft)}/{kept.id}", fields)
        for issue in own:
            if issue.id != kept.id:
                said = {"body": f"Continued in #{kept.id}.", "state": "closed", "state_reason": NOT_PLANNED}
                self._client.patch(f"{self.locate(draft)}/{issue.id}", said)
        return Written(action=action, url=kept.url)


def _choose_action(kept: Post, draft: IssueDraft, *, has_news: bool) -> Action:
    if not draft.is_wanted and kept.is_open:
        return Action.CLOSED
    if draft.is_wanted and not kept.is_open:
        return Action.MUTED if kept.is_muted else Action.REOPENED
    return Action.UPDATED if has_news else Action.UNCHANGED
