"""One comment a pull request and key: found by marker and author, kept by the newest run.

Publishers may race, requests may be lost and answers too. So whoever creates looks again afterwards,
keeps the *oldest* own comment, sees to it that it holds the *newest* run's text, and deletes the others:
one comment is left in every order. GitHub cannot change a comment on condition, so where three publishers
race within milliseconds an older text can come last; the workflows' concurrency group keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from gate.github.body import Marker, parse_marker
from gate.github.client import GitHubClient
from gate.github.errors import GitHubError, MissingError, UncertainWriteError
from gate.github.forged import check_marker

DEFAULT_AUTHOR = "github-actions[bot]"  # whom a workflow's own token writes as
_INSTALLATION = "ghs_"  # begins the tokens that have no user: a workflow's own and an app's
# Comments that a racing publisher made are looked for from this long before ours: clocks differ.
_RACE = timedelta(minutes=10)
_ROUNDS = 3  # of writing and looking again; each loses only to another publisher


class Action(StrEnum):
    """What became of the comment; the value is shown."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "already says this"
    NEWER = "left alone: it tells of a newer run"
    SUPERSEDED = "left alone: the pull request has moved on"
    NOT_WANTED = "not written, as the settings ask"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """One comment of ours."""

    id: int
    body: str
    url: str
    marker: Marker


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What is to be said, where. ``may_create`` is whether a first comment is wanted at all."""

    repository: str
    number: int
    marker: Marker
    body: str
    may_create: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What became of a wish."""

    action: Action
    url: str = ""


def find_author(client: GitHubClient, token: str) -> str:
    """Find the login that the token writes as. An installation's token cannot ask for it."""
    if token.startswith(_INSTALLATION):
        return DEFAULT_AUTHOR
    try:
        login = client.get("/user").get("login")
    except (GitHubError, AttributeError):
        return DEFAULT_AUTHOR
    return login if isinstance(login, str) and login else DEFAULT_AUTHOR


class CommentBoard:
    """The comments of one pull request, as far as they are ours."""

    def __init__(self, client: GitHubClient, author: str) -> None:
        self._client = client
        self._author = author

    def write(self, wish: Wish, has_moved: Callable[[], bool]) -> Written:
        """Make the pull request's one comment say what is wished, unless it should not.

        ``has_moved`` is asked right before the first write.

        Raises:
            GitHubError: GitHub refuses or does not answer.
        """
        self._client.wait_to_write()  # now, so that no pause lies between looking and writing
        own = self._list_own(wish)
        if own and max(comment.marker.order for comment in own) > wish.marker.order:
            return Written(action=Action.NEWER, url=_find_oldest(own).url)
        if not own and not wish.may_create:
            return Written(action=Action.NOT_WANTED)
        if len(own) == 1 and _is_same(own[0].body, wish.body):
            return Written(action=Action.UNCHANGED, url=own[0].url)
        if has_moved():
            return Written(action=Action.SUPERSEDED)
        action = Action.UPDATED if own else Action.CREATED
        for _ in range(_ROUNDS):
            if not own:
                own = self._create(wish)
                if len(own) > 1:  # a race: no pause may lie between looking and writing
                    self._client.wait_to_write()
                    own = self._list_own(wish) or own
            kept = self._settle(own, wish)
            if kept is not None:
                return Written(action=action, url=kept.url)
            own = self._list_own(wish)
        return Written(action=action)

    def _create(self, wish: Wish) -> Sequence[Comment]:
        """Post, and list all comments of ours that there are then."""
        made = self._post(wish)
        if made is None:
            found = self._list_own(wish)
            if any(comment.marker == wish.marker for comment in found):
                return found
            made = self._post(wish)
        if made is None:
            raise UncertainWriteError(
                "The comment was sent twice without an answer", "Look at the pull request."
            )
        author = _get_login(made) or self._author
        since = _parse_time(made.get("created_at")) if author == self._author else None
        self._author = author  # an app's token writes under the app's name, so older ones may be found now
        listed = self._list_own(wish, since - _RACE if since else None)
        comment = _parse_comment(made, wish.marker.key)
        missing = comment is not None and all(comment.id != other.id for other in listed)
        return (*listed, comment) if comment is not None and missing else listed

    def _post(self, wish: Wish) -> Mapping[str, Any] | None:
        """Post once; ``None`` where the answer does not say that there is a comment now."""
        path = f"/repos/{wish.repository}/issues/{wish.number}/comments"
        try:
            made = self._client.post(path, {"body": wish.body})
        except UncertainWriteError:
            return None
        return made if isinstance(made, dict) and isinstance(made.get("id"), int) else None

    def _settle(self, own: Sequence[Comment], wish: Wish) -> Comment | None:
        """Let the oldest hold the newest text and delete the others; ``None`` where it has gone."""
        kept = _find_oldest(own)
        newest = max(own, key=lambda comment: comment.marker.order)
        body = newest.body if newest.marker.order > wish.marker.order else wish.body
        base = f"/repos/{wish.repository}/issues/comments"
        if not _is_same(kept.body, body):
            try:
                self._client.patch(f"{base}/{kept.id}", {"body": body})
            except MissingError:
                return None
        for comment in own:
            if comment.id != kept.id:
                self._client.delete(f"{base}/{comment.id}")
        return kept

    def _list_own(self, wish: Wish, since: datetime | None = None) -> Sequence[Comment]:
        path = f"/repos/{wish.repository}/issues/{wish.number}/comments"
        asked = {"since": since.strftime("%Y-%m-%dT%H:%M:%SZ")} if since else None
        listed = self._client.paginate(path, asked)
        parsed = (
            _parse_comment(value, wish.marker.key) for value in listed if _get_login(value) == self._author
        )
        return [self._distrust(comment, wish) for comment in parsed if comment is not None]

    def _distrust(self, comment: Comment, wish: Wish) -> Comment:
        marker = check_marker(self._client, wish.repository, comment.marker, wish.marker)
        return replace(comment, marker=marker)


def _parse_comment(value: Mapping[str, Any], key: str) -> Comment | None:
    number, body = value.get("id"), value.get("body")
    marker = parse_marker(body) if isinstance(body, str) else None
    if not isinstance(number, int) or not isinstance(body, str) or marker is None or marker.key != key:
        return None
    return Comment(id=number, body=body, url=str(value.get("html_url") or ""), marker=marker)


def _get_login(value: Mapping[str, Any]) -> str:
    user = value.get("user")
    login = user.get("login") if isinstance(user, dict) else None
    return login if isinstance(login, str) else ""


def _find_oldest(own: Sequence[Comment]) -> Comment:
    return min(own, key=lambda comment: comment.id)


def _is_same(one: str, other: str) -> bool:
    """Whether two texts are the same to GitHub, which may trim them and change line ends."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


def _parse_time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None
