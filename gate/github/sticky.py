"""One comment or issue a key: found by marker and author, and kept up to date with the newest run.

Publishers may race, and answers may be lost. So whoever creates a post lists them again, keeps our *oldest*
one with the *newest* run's text, and deletes the other comments, or closes the other issues. GitHub cannot
change a comment on condition; the workflows' concurrency group keeps publishers apart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from gate.github.client import GitHubClient
from gate.github.job import find_text
from gate.github.run_events import find_workflow_run
from gate.github.transport import UncertainWriteError
from gate.publish.body import Marker, parse_marker

NOT_PLANNED = "not_planned"
# Of the author's issues, those touched last; ours is touched by every run. Ten requests.
MAX_LISTED = 1000
DEFAULT_AUTHOR = "github-actions[bot]"  # whom a workflow's own token writes as


class Action(StrEnum):
    """What was done with a draft; the value is shown."""

    CREATED = "created"
    UPDATED = "updated"
    CLOSED = "closed: there is nothing left to report"
    REOPENED = "opened again"
    MUTED = "updated and left closed: somebody closed it as not planned"
    UNCHANGED = "already says this"
    NEWER = "left alone: it shows a newer run"
    SUPERSEDED = "left alone: the pull request has moved on"
    NOT_WANTED = "not written, as the settings ask"


# What else an action changes of an issue.
_STATES: Mapping[Action, Mapping[str, object]] = {
    Action.REOPENED: {"state": "open"},
    Action.CLOSED: {"state": "closed", "state_reason": "completed"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Post:
    """``id`` stands in GitHub's paths."""

    id: int
    body: str
    url: str
    marker: Marker
    title: str  # of an issue
    is_open: bool
    is_muted: bool  # where it is closed: as not planned


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """``is_wanted`` is whether to post it where there is no post yet.

    An issue that is not wanted is closed if it ``may_close``.
    ``workflow`` is the file whose runs are published there. A comment has no ``title``.
    """

    workflow: str
    marker: Marker
    body: str
    title: str = ""
    is_wanted: bool = True
    may_close: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    action: Action
    url: str = ""


class StickyComment:
    noun = "comment"
    key_name = "id"  # of the field that GitHub's paths call a post by

    def __init__(self, client: GitHubClient, author: str, path: str) -> None:
        self._client = client
        self._author = author
        self._path = path  # at which posts are made and listed

    def list_all(self) -> Iterable[Mapping[str, Any]]:
        return self._client.paginate(self._path)

    def change(self, post: Post, fields: Mapping[str, object]) -> None:
        self._client.patch(f"issues/comments/{post.id}", fields)

    def retire(self, post: Post, kept: Post) -> None:
        del kept
        self._client.delete(f"issues/comments/{post.id}")

    def choose_action(self, kept: Post, draft: Draft, *, has_news: bool) -> Action:
        del kept, draft
        return Action.UPDATED if has_news else Action.UNCHANGED

    def write(self, draft: Draft, has_moved: Callable[[], bool]) -> Written:
        """``has_moved`` is called right before the first write."""
        self._client.wait_to_write()  # now, so that no pause lies between looking and writing
        posts = self.list_own(draft)
        if posts and max(post.marker.order for post in posts) > draft.marker.order:
            return Written(action=Action.NEWER, url=_choose_oldest(posts).url)
        if not posts and not draft.is_wanted:
            return Written(action=Action.NOT_WANTED)
        action, fields = self._plan(posts, draft)
        if len(posts) == 1 and not fields:
            return Written(action=action, url=_choose_oldest(posts).url)
        if has_moved():
            return Written(action=Action.SUPERSEDED)
        posts = posts or self.create(draft)
        kept, (_, fields) = _choose_oldest(posts), self._plan(posts, draft)
        if fields:
            self.change(kept, fields)
        for post in posts:
            if post.id != kept.id:
                self.retire(post, kept)
        return Written(action=action, url=kept.url)

    def _plan(self, posts: Sequence[Post], draft: Draft) -> tuple[Action, dict[str, object]]:
        if not posts:
            return Action.CREATED, {}
        kept, newest = _choose_oldest(posts), max(posts, key=lambda post: post.marker.order)
        # The text of the newest run, whoever wrote it.
        fields = _list_fields(newest if newest.marker.order > draft.marker.order else draft)
        has_news = not _is_same(kept.body, fields["body"])
        action = self.choose_action(kept, draft, has_news=has_news)
        return action, {**(fields if has_news else {}), **_STATES.get(action, {})}

    def create(self, draft: Draft) -> Sequence[Post]:
        for _ in range(2):
            made = self._post(draft)
            listed = self.list_own(draft)
            if made is not None:
                return listed if any(post.id == made.id for post in listed) else (*listed, made)
            if any(post.marker == draft.marker for post in listed):
                return listed
        what = f"The {self.noun} was sent twice without an answer"
        raise UncertainWriteError(what, f"Look at the {self.noun}s.")

    def list_own(self, draft: Draft) -> Sequence[Post]:
        values = (value for value in self.list_all() if find_text(value, "user.login") == self._author)
        posts = [post for value in values if (post := self._parse(value, draft)) is not None]
        return [replace(post, marker=_check_marker(self._client, draft, post.marker)) for post in posts]

    def _post(self, draft: Draft) -> Post | None:
        """``None`` where no answer confirms it."""
        try:
            made = self._client.post(self._path, _list_fields(draft))
        except UncertainWriteError:
            return None
        return self._parse(made, draft) if isinstance(made, dict) else None

    def _parse(self, value: Mapping[str, Any], draft: Draft) -> Post | None:
        """GitHub lists pull requests among issues."""
        number, body = value.get(self.key_name), find_text(value, "body")
        marker = parse_marker(body)
        if not isinstance(number, int) or marker is None or "pull_request" in value:
            return None
        if marker.key != draft.marker.key:
            return None
        return Post(
            id=number,
            body=body,
            url=find_text(value, "html_url"),
            marker=marker,
            title=find_text(value, "title"),
            is_open=value.get("state") == "open",
            is_muted=value.get("state_reason") == NOT_PLANNED,
        )


def _list_fields(text: Draft | Post) -> dict[str, str]:
    return {"body": text.body, **({"title": text.title} if text.title else {})}


def _check_marker(client: GitHubClient, draft: Draft, marker: Marker) -> Marker:
    """Keep a marker, or make it the oldest of all where its run is not newer than the draft's.

    A workflow that writes under our name may let a stranger choose the marker, and a made-up newest run would
    block every later verdict: so newer runs are looked up, and must be of the same workflow. Of two runs of
    one commit, the lower number is newer where it was started again since.
    """
    ours = draft.marker
    if marker.order <= ours.order:
        return marker
    run = find_workflow_run(client, marker.run_id)
    is_true = (
        run is not None
        and (run.head_sha == marker.head_sha and run.attempt >= marker.attempt)
        and (run.head_sha != ours.head_sha or run.started >= ours.started)
        and run.path == draft.workflow
    )
    return marker if is_true else replace(marker, run_id=0)


def _choose_oldest(posts: Sequence[Post]) -> Post:
    return min(posts, key=lambda post: post.id)


def _is_same(text: str, other: str) -> bool:
    """GitHub may trim texts and change line ends."""
    return text.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


class StickyIssue(StickyComment):
    noun = "issue"
    key_name = "number"

    def list_all(self) -> Iterable[Mapping[str, Any]]:
        """A racing publisher's issue is among those touched last."""
        query = {"state": "all", "creator": self._author, "sort": "updated", "direction": "desc"}
        return islice(self._client.paginate(self._path, query), MAX_LISTED)

    def change(self, post: Post, fields: Mapping[str, object]) -> None:
        self._client.patch(f"issues/{post.id}", fields)

    def retire(self, post: Post, kept: Post) -> None:
        fields = {"body": f"Continued in #{kept.id}.", "state": "closed", "state_reason": NOT_PLANNED}
        self.change(post, fields)

    def choose_action(self, kept: Post, draft: Draft, *, has_news: bool) -> Action:
        if not draft.is_wanted and draft.may_close and kept.is_open:
            return Action.CLOSED
        if draft.is_wanted and not kept.is_open:
            return Action.MUTED if kept.is_muted else Action.REOPENED
        return super().choose_action(kept, draft, has_news=has_news)
