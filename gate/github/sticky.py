"""What is told in one place a key, such as a comment: found by marker and author, kept by the newest run.

Publishers may race, requests may be lost and answers too. So whoever creates looks again afterwards,
keeps the *oldest* own one and sees to it that it holds the *newest* run's text: one is left in every order.
Other comments are deleted. An issue cannot be: the others are closed without their marker.

Somebody who closes the issue as *not planned* has had enough: it is kept up to date and stays closed until
a person opens it again.

GitHub cannot change a comment on condition, so where publishers race within seconds an older text can come
last; the workflows' concurrency group keeps them apart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from gate.github.client import GitHubClient
from gate.github.events import find_workflow_run
from gate.github.job import find_text
from gate.github.transport import UncertainWriteError
from gate.publish.body import Marker, parse_marker

NOT_PLANNED = "not_planned"
# Of the author's issues, those touched last; ours is touched by every run. Ten requests.
MAX_LISTED = 1000


class Action(StrEnum):
    """What became of a draft; the value is shown."""

    CREATED = "created"
    UPDATED = "updated"
    CLOSED = "closed: there is nothing left to report"
    REOPENED = "opened again"
    MUTED = "updated and left closed: somebody closed it as not planned"
    UNCHANGED = "already says this"
    NEWER = "left alone: it shows a newer run"
    SUPERSEDED = "left alone: the pull request has moved on"
    NOT_WANTED = "not written, as the settings ask"


@dataclass(frozen=True, kw_only=True, slots=True)
class Post:
    """One comment or issue of ours. ``id`` is what GitHub's paths call it by."""

    id: int
    body: str
    url: str
    marker: Marker
    title: str = ""  # of an issue
    is_open: bool = True
    is_muted: bool = False  # closed as not planned


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """What is to be said. ``is_wanted`` is whether something is to be told where nothing has been yet.

    ``workflow`` is the file whose runs are published there. A comment has no ``title``.
    """

    workflow: str
    marker: Marker
    body: str
    title: str = ""
    is_wanted: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What became of a draft."""

    action: Action
    url: str = ""


class StickyComment:
    """The comments of one pull request, as far as they are ours; of several the others are deleted."""

    noun = "comment"
    key_name = "id"  # of the field that GitHub's paths call a post by

    def __init__(self, client: GitHubClient, author: str, place: str) -> None:
        self._client = client
        self._author = author
        self._place = place  # the path at which posts are made and listed

    def list_all(self) -> Iterable[Mapping[str, Any]]:
        """List what there is, of anybody."""
        return self._client.paginate(self._place)

    def change(self, post: Post, fields: Mapping[str, object]) -> None:
        """Change fields of a post."""
        self._client.patch(f"issues/comments/{post.id}", fields)

    def retire(self, post: Post, kept: Post) -> None:
        """Take back a post beside the one that is kept."""
        del kept
        self._client.delete(f"issues/comments/{post.id}")

    def choose_action(self, kept: Post, draft: Draft, *, has_news: bool) -> Action:
        """Choose what becomes of the post that is kept."""
        del kept, draft
        return Action.UPDATED if has_news else Action.UNCHANGED

    def write(self, draft: Draft, has_moved: Callable[[], bool]) -> Written:
        """Make the one post of this key say what the draft says, unless it should not.

        The oldest of ours holds the newest text, and the others are retired; without any, one is posted.
        ``has_moved`` is asked right before the first write.
        """
        self._client.wait_to_write()  # now, so that no pause lies between looking and writing
        own = self.list_own(draft)
        if own and max(post.marker.order for post in own) > draft.marker.order:
            return Written(action=Action.NEWER, url=_find_oldest(own).url)
        if not own and not draft.is_wanted:
            return Written(action=Action.NOT_WANTED)
        action, fields = self._plan(own, draft)
        if len(own) == 1 and not fields:
            return Written(action=action, url=own[0].url)
        if has_moved():
            return Written(action=Action.SUPERSEDED)
        own = own or self.create(draft)
        kept, (_, fields) = _find_oldest(own), self._plan(own, draft)
        if fields:
            self.change(kept, fields)
        for post in own:
            if post.id != kept.id:
                self.retire(post, kept)
        return Written(action=action, url=kept.url)

    def _plan(self, own: Sequence[Post], draft: Draft) -> tuple[Action, dict[str, object]]:
        """Plan what becomes of the oldest of ours, and which of its fields change; without one it is made."""
        if not own:
            return Action.CREATED, {}
        kept, newest = _find_oldest(own), max(own, key=lambda post: post.marker.order)
        # The text of the newest run, whoever wrote it.
        fields = _list_fields(newest if newest.marker.order > draft.marker.order else draft)
        has_news = not _is_same(kept.body, fields["body"])
        action = self.choose_action(kept, draft, has_news=has_news)
        return action, {**(fields if has_news else {}), **_STATES.get(action, {})}

    def create(self, draft: Draft) -> Sequence[Post]:
        """Post, and list all of ours that there are then."""
        for _ in range(2):
            made = self._post(draft)
            listed = self.list_own(draft)
            if made is None and all(post.marker != draft.marker for post in listed):
                continue
            post = self._parse(made, draft) if made else None
            missing = post is not None and all(post.id != other.id for other in listed)
            return (*listed, post) if post is not None and missing else listed
        what = f"The {self.noun} was sent twice without an answer"
        raise UncertainWriteError(what, f"Look at the {self.noun}s.")

    def list_own(self, draft: Draft) -> Sequence[Post]:
        """List our own posts of the draft's key, none trusted further than its marker goes."""
        own = (value for value in self.list_all() if find_text(value, "user.login") == self._author)
        posts = [post for value in own if (post := self._parse(value, draft)) is not None]
        return [replace(post, marker=_check_marker(self._client, draft, post.marker)) for post in posts]

    def _post(self, draft: Draft) -> Mapping[str, Any] | None:
        """Post once; ``None`` where the answer does not say that it is there now."""
        try:
            made = self._client.post(self._place, _list_fields(draft))
        except UncertainWriteError:
            return None
        return made if isinstance(made, dict) and isinstance(made.get(self.key_name), int) else None

    def _parse(self, value: Mapping[str, Any], draft: Draft) -> Post | None:
        """Parse a post of this key; GitHub lists pull requests among issues."""
        number, body = value.get(self.key_name), value.get("body")
        marker = parse_marker(body) if isinstance(body, str) else None
        ours = marker is not None and marker.key == draft.marker.key and "pull_request" not in value
        if not isinstance(number, int) or not isinstance(body, str) or marker is None or not ours:
            return None
        is_open = value.get("state", "open") == "open"
        return Post(
            id=number,
            body=body,
            url=str(value.get("html_url") or ""),
            marker=marker,
            title=str(value.get("title") or ""),
            is_open=is_open,
            is_muted=not is_open and value.get("state_reason") == NOT_PLANNED,
        )


def _list_fields(text: Draft | Post) -> dict[str, str]:
    return {"body": text.body, **({"title": text.title} if text.title else {})}


def _check_marker(client: GitHubClient, draft: Draft, found: Marker) -> Marker:
    """Return a marker as it was found, or as the oldest of all where the run that it names is not newer.

    Of two runs of one commit, the one of the lower number is the newer where it was started again since.
    A post is ours by its author and its first line. Another workflow that writes under the same name may
    let a stranger choose that line, and one that claims the newest of all runs would keep every later
    verdict from being shown. So what claims to be newer is looked up. A run of another workflow never is:
    nobody tells its verdict here, and any pull request starts some.
    """
    ours = draft.marker
    if found.order <= ours.order:
        return found
    run = find_workflow_run(client, found.run_id)
    is_true = (
        run is not None
        and (run.head_sha == found.head_sha and run.attempt >= found.attempt)
        and (run.head_sha != ours.head_sha or run.started >= ours.started)
        and run.path == draft.workflow
    )
    return found if is_true else replace(found, run_id=0, attempt=0)


def _find_oldest(own: Sequence[Post]) -> Post:
    return min(own, key=lambda post: post.id)


def _is_same(one: str, other: str) -> bool:
    """Whether two texts are the same to GitHub, which may trim them and change line ends."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


DEFAULT_AUTHOR = "github-actions[bot]"  # whom a workflow's own token writes as


class StickyIssue(StickyComment):
    """The issues of one repository: they cannot be deleted, and are closed and opened instead."""

    noun = "issue"
    key_name = "number"

    def list_all(self) -> Iterable[Mapping[str, Any]]:
        """List the author's issues: a racing publisher's is among those touched last."""
        asked = {"state": "all", "creator": self._author, "sort": "updated", "direction": "desc"}
        return islice(self._client.paginate(self._place, asked), MAX_LISTED)

    def change(self, post: Post, fields: Mapping[str, object]) -> None:
        """Change an issue."""
        self._client.patch(f"issues/{post.id}", fields)

    def retire(self, post: Post, kept: Post) -> None:
        """Close an issue without its marker, and point to the one that is kept."""
        said = {"body": f"Continued in #{kept.id}.", "state": "closed", "state_reason": NOT_PLANNED}
        self.change(post, said)

    def choose_action(self, kept: Post, draft: Draft, *, has_news: bool) -> Action:
        """Open the issue while there is something to report, and close it after."""
        if not draft.is_wanted and kept.is_open:
            return Action.CLOSED
        if draft.is_wanted and not kept.is_open:
            return Action.MUTED if kept.is_muted else Action.REOPENED
        return super().choose_action(kept, draft, has_news=has_news)


_STATES: Mapping[Action, Mapping[str, object]] = {
    Action.REOPENED: {"state": "open"},
    Action.CLOSED: {"state": "closed", "state_reason": "completed"},
}
