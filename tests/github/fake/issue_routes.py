"""The fake GitHub's issues; pull requests are among them, as on GitHub."""

from typing import Any

from fake.contract import make_example
from fake.routes import MAX_BODY_CHARS, Query, invalid, not_found, route
from fake.state import OWNER, REPO, State

_REPO = "/repos/{owner}/{repo}"
_TOO_LONG = "body is too long (maximum is 65536 characters)"


def list_issues(state: State) -> dict[int, dict[str, Any]]:
    """The issues of the fake GitHub, by number."""
    issues: dict[int, dict[str, Any]] = state.__dict__.setdefault("issues", {})
    return issues


def add_issue(state: State, fields: dict[str, Any], author: str) -> dict[str, Any]:
    with state.lock:
        issue: dict[str, Any] = make_example(state.host, "issue")
        # GitHub's description lists no null among the reasons, so an issue without one lacks the key.
        for key in ("pull_request", "closed_by", "state_reason"):
            issue.pop(key, None)
        now, number = state.make_time(), next(state.ids)
        issue |= {"assignee": None, "milestone": None, "assignees": [], "labels": [], "locked": False}
        issue |= {"number": number, "id": number, "state": "open", "closed_at": None}
        issue |= {"created_at": now, "updated_at": now, "user": state.make_user(author)}
        issue |= {"html_url": f"https://github.com/{OWNER}/{REPO}/issues/{number}"}
        issue |= {"title": "An issue", "body": ""} | fields
        list_issues(state)[number] = issue
        return issue


@route("GET", f"{_REPO}/issues")
def get_issues(state: State, query: Query) -> tuple[Any, ...]:
    wanted, creator = query.query.get("state", "open"), query.query.get("creator")
    issues = [
        issue
        for issue in list_issues(state).values()
        if wanted in ("all", issue["state"]) and creator in (None, issue["user"]["login"])
    ]
    is_newest_first = query.query.get("direction", "desc") == "desc"
    return 200, sorted(issues, key=lambda issue: str(issue["updated_at"]), reverse=is_newest_first)


@route("POST", f"{_REPO}/issues")
def create_issue(state: State, query: Query) -> tuple[Any, ...]:
    if len(query.body.get("body") or "") > MAX_BODY_CHARS:
        return invalid("Issue", "body", _TOO_LONG)
    return 201, add_issue(state, query.body, state.author)


@route("PATCH", f"{_REPO}/issues/{{issue_number}}")
def change_issue(state: State, query: Query) -> tuple[Any, ...]:
    issue = list_issues(state).get(int(query.path["issue_number"]))
    if issue is None:
        return not_found()
    if len(query.body.get("body") or "") > MAX_BODY_CHARS:
        return invalid("Issue", "body", _TOO_LONG)
    issue |= query.body | {"updated_at": state.make_time()}
    if query.body.get("state") == "closed":
        issue |= {
            "closed_at": issue["updated_at"],
            "state_reason": query.body.get("state_reason", "completed"),
        }
    if query.body.get("state") == "open":
        issue |= {"closed_at": None, "state_reason": "reopened"}
    return 200, issue
