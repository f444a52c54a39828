"""One issue a key: found by marker and author, kept by the newest run, closed while there is nothing to tell.

An issue cannot be deleted. Of two that racing publishers made, the oldest is kept and the other is closed
without its marker. Somebody who closes the issue as *not planned* has had enough: it is kept up to date
and stays closed until a person opens it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from gate.github.body import Marker, parse_marker
from gate.github.client import GitHubClient
from gate.github.errors import UncertainWriteError
from gate.github.forged import check_marker

# Of the author's issues, those touched last; ours is touched by every run. Ten requests.
MAX_LISTED = 1000
_MUTED = "not_planned"


class IssueAction(StrEnum):
    """What became of the issue; the value is shown."""

    CREATED = "created"
    UPDATED = "updated"
    CLOSED = "closed: there is nothing to tell any more"
    REOPENED = "opened again"
    MUTED = "updated and left closed: somebody closed it as not planned"
    UNCHANGED = "already says this"
    NEWER = "left alone: it tells of a newer run"
    NOT_WANTED = "not written, as the settings ask"


@dataclass(frozen=True, kw_only=True, slots=True)
class Issue:
    """One issue of ours."""

    number: int
    body: str
    url: str
    marker: Marker
    is_open: bool
    is_muted: bool  # closed as not planned


@dataclass(frozen=True, kw_only=True, slots=True)
class IssueWish:
    """What is to be said. ``is_wanted`` is whether there should be an open issue at all."""

    repository: str
    title: str
    marker: Marker
    body: str
    is_wanted: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenIssue:
    """What became of a wish."""

    action: IssueAction
    url: str = ""


class IssueBoard:
    """The issues of one repository, as far as they are ours."""

    def __init__(self, client: GitHubClient, author: str) -> None:
        self._client = client
        self._author = author

    def write(self, wish: IssueWish) -> WrittenIssue:
        """Make the one issue of this key say what is wished, and open or close it.

        Raises:
            GitHubError: GitHub refuses or does not answer.
        """
        self._client.wait_to_write()  # now, so that no pause lies between looking and writing
        own = self._list_own(wish)
        if own and max(issue.marker.order for issue in own) > wish.marker.order:
            return WrittenIssue(action=IssueAction.NEWER, url=_find_oldest(own).url)
        if not own and not wish.is_wanted:
            return WrittenIssue(action=IssueAction.NOT_WANTED)
        if own:
            return self._settle(own, wish)
        settled = self._settle(self._create(wish), wish)
        return WrittenIssue(action=IssueAction.CREATED, url=settled.url)

    def _create(self, wish: IssueWish) -> Sequence[Issue]:
        """Post, and list all issues of this key that there are then."""
        made = self._post(wish)
        if made is None:
            found = self._list_own(wish)
            if any(issue.marker == wish.marker for issue in found):
                return found
            made = self._post(wish)
        if made is None:
            raise UncertainWriteError("The issue was sent twice without an answer", "Look at the issues.")
        self._author = _get_login(made) or self._author  # an app's token writes under the app's name
        issue = _parse_issue(made, wish.marker.key)
        listed = self._list_own(wish)
        missing = issue is not None and all(issue.number != other.number for other in listed)
        return (*listed, issue) if issue is not None and missing else listed

    def _post(self, wish: IssueWish) -> Mapping[str, Any] | None:
        """Post once; ``None`` where the answer does not say that there is an issue now."""
        try:
            made = self._client.post(f"/repos/{wish.repository}/issues", _make_fields(wish))
        except UncertainWriteError:
            return None
        return made if isinstance(made, dict) and isinstance(made.get("number"), int) else None

    def _settle(self, own: Sequence[Issue], wish: IssueWish) -> WrittenIssue:
        """Let the oldest hold the newest text in the right state, and retire the others."""
        kept = _find_oldest(own)
        newest = max(own, key=lambda issue: issue.marker.order)
        body = newest.body if newest.marker.order > wish.marker.order else wish.body
        fields: dict[str, object] = {} if _is_same(kept.body, body) else {"body": body}
        action = _choose_action(kept, wish, has_news=bool(fields))
        if action is IssueAction.REOPENED:
            fields |= {"state": "open"}
        if action is IssueAction.CLOSED:
            fields |= {"state": "closed", "state_reason": "completed"}
        base = f"/repos/{wish.repository}/issues"
        if fields:
            self._client.patch(f"{base}/{kept.number}", fields)
        for issue in own:
            if issue.number != kept.number:
                said = {"body": f"Continued in #{kept.number}.", "state": "closed", "state_reason": _MUTED}
                self._client.patch(f"{base}/{issue.number}", said)
        return WrittenIssue(action=action, url=kept.url)

    def _list_own(self, wish: IssueWish) -> Sequence[Issue]:
        asked = {"state": "all", "creator": self._author, "sort": "updated", "direction": "desc"}
        listed = islice(self._client.paginate(f"/repos/{wish.repository}/issues", asked), MAX_LISTED)
        parsed = (
            _parse_issue(value, wish.marker.key) for value in listed if _get_login(value) == self._author
        )
        return [self._distrust(issue, wish) for issue in parsed if issue is not None]

    def _distrust(self, issue: Issue, wish: IssueWish) -> Issue:
        marker = check_marker(self._client, wish.repository, issue.marker, wish.marker)
        return replace(issue, marker=marker)


def _make_fields(wish: IssueWish) -> dict[str, str]:
    return {"title": wish.title, "body": wish.body}


def _choose_action(kept: Issue, wish: IssueWish, *, has_news: bool) -> IssueAction:
    if not wish.is_wanted and kept.is_open:
        return IssueAction.CLOSED
    if wish.is_wanted and not kept.is_open:
        return IssueAction.MUTED if kept.is_muted else IssueAction.REOPENED
    return IssueAction.UPDATED if has_news else IssueAction.UNCHANGED


def _parse_issue(value: Mapping[str, Any], key: str) -> Issue | None:
    """Parse an issue of this key; GitHub lists pull requests among issues."""
    number, body = value.get("number"), value.get("body")
    marker = parse_marker(body) if isinstance(body, str) else None
    ours = marker is not None and marker.key == key and "pull_request" not in value
    if not isinstance(number, int) or not isinstance(body, str) or marker is None or not ours:
        return None
    is_open = value.get("state") == "open"
    return Issue(
        number=number,
        body=body,
        url=str(value.get("html_url") or ""),
        marker=marker,
        is_open=is_open,
        is_muted=not is_open and value.get("state_reason") == _MUTED,
    )


def _get_login(value: Mapping[str, Any]) -> str:
    user = value.get("user")
    login = user.get("login") if isinstance(user, dict) else None
    return login if isinstance(login, str) else ""


def _find_oldest(own: Sequence[Issue]) -> Issue:
    return min(own, key=lambda issue: issue.number)


def _is_same(one: str, other: str) -> bool:
    """Whether two texts are the same to GitHub, which may trim them and change line ends."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
