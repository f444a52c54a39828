"""What the fake GitHub answers, as a table of handlers.

A handler takes ``(state, query)`` and returns ``(status, value)`` or ``(status, value, headers)``;
``query`` has the path's parameters, the URL's query and the decoded body. A list is paginated.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fake.contract import make_example
from fake.state import OWNER, REPO, State

MAX_BODY_CHARS = 65_536  # GitHub's limit of a comment


@dataclass(frozen=True, kw_only=True)
class Query:
    """One request as a handler sees it."""

    path: dict[str, str]
    query: dict[str, str]
    body: Any
    storage_url: str


Handler = Callable[[State, Query], tuple[Any, ...]]
ROUTES: list[tuple[str, re.Pattern[str], str, Handler]] = []
_REPO = "/repos/{owner}/{repo}"


def route(method: str, template: str) -> Callable[[Handler], Handler]:
    """Answer ``method`` on a path template of GitHub's description; ``{name+}`` may hold slashes."""
    pattern = re.sub(r"\\\{(\w+)\\\+\\\}", r"(?P<\1>.+)", re.escape(template))
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", pattern)

    def add(handler: Handler) -> Handler:
        ROUTES.append((method, re.compile(pattern + "$"), template, handler))
        return handler

    return add


def not_found() -> tuple[int, Any]:
    return 404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}


def invalid(resource: str, field: str, code: str) -> tuple[int, Any]:
    error = {"resource": resource, "field": field, "code": code}
    return 422, {"message": "Validation Failed", "errors": [error], "documentation_url": "https://docs"}


@route("GET", f"{_REPO}/actions/runs/{{run_id}}")
def get_run(state: State, query: Query) -> tuple[Any, ...]:
    run = state.runs.get(int(query.path["run_id"]))
    return (200, run) if run else not_found()


@route("GET", f"{_REPO}/actions/workflows/{{workflow_id}}/runs")
def list_runs(state: State, query: Query) -> tuple[Any, ...]:
    path = f".github/workflows/{query.path['workflow_id']}"
    if path not in state.workflows:
        return not_found()
    wanted = {key: query.query[key] for key in ("event", "head_sha") if key in query.query}
    runs = [run for run in state.runs.values() if run["path"] == path]
    newest_first = sorted(runs, key=lambda run: -run["id"])
    return 200, {"workflow_runs": [r for r in newest_first if wanted.items() <= r.items()]}


@route("POST", f"{_REPO}/actions/runs/{{run_id}}/rerun-failed-jobs")
def rerun_failed_jobs(state: State, query: Query) -> tuple[Any, ...]:
    run = state.runs.get(int(query.path["run_id"]))
    if run is None:
        return not_found()
    if run["status"] != "completed" or run["conclusion"] != "failure":
        return 403, {"message": "This workflow run cannot be retried", "documentation_url": "https://docs"}
    now = state.make_time()
    run |= {"status": "queued", "conclusion": None, "run_attempt": run["run_attempt"] + 1}
    run |= {"run_started_at": now, "updated_at": now}
    return 201, {}


@route("GET", f"{_REPO}/compare/{{basehead+}}")
def compare_commits(state: State, query: Query) -> tuple[Any, ...]:
    """Whether a commit is behind a branch's tip or elsewhere; an unknown one is not found."""
    branch, _, sha = query.path["basehead"].partition("...")
    commits = state.history.get(branch)
    if commits is None:
        return not_found()
    status = "identical" if sha == commits[-1] else "behind" if sha in commits else "diverged"
    return 200, make_example(state.host, "commit-comparison") | {"status": status}


@route("GET", f"{_REPO}/actions/runs/{{run_id}}/jobs")
def list_jobs(state: State, query: Query) -> tuple[Any, ...]:
    return 200, {"jobs": state.list_jobs(int(query.path["run_id"]))}


@route("GET", f"{_REPO}/actions/runs/{{run_id}}/artifacts")
def list_artifacts(state: State, query: Query) -> tuple[Any, ...]:
    run_id = int(query.path["run_id"])
    artifacts = [a for a in state.artifacts.values() if a["workflow_run"]["id"] == run_id]
    name = query.query.get("name")
    return 200, {"artifacts": [a for a in artifacts if name in (None, a["name"])]}


@route("GET", f"{_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}")
def download_artifact(state: State, query: Query) -> tuple[Any, ...]:
    artifact = state.artifacts.get(int(query.path["artifact_id"]))
    if artifact is None:
        return not_found()
    if artifact["expired"]:
        return 410, {"message": "Artifact has expired", "documentation_url": "https://docs"}
    return 302, None, {"Location": f"{query.storage_url}/{artifact['id']}?sig=storage-secret"}


@route("GET", f"{_REPO}/pulls")
def list_pulls(state: State, query: Query) -> tuple[Any, ...]:
    wanted = query.query.get("state", "open")
    head = query.query.get("head")
    pulls = [pull for pull in state.pulls.values() if wanted in ("all", pull["state"])]
    return 200, [_simplify(state, pull) for pull in pulls if head in (None, pull["head"]["label"])]


@route("GET", f"{_REPO}/commits/{{commit_sha}}/pulls")
def list_pulls_of_commit(state: State, query: Query) -> tuple[Any, ...]:
    """All that contain the commit: open, closed and merged ones."""
    sha = query.path["commit_sha"]
    pulls = [
        pull
        for number, pull in state.pulls.items()
        if sha in (pull["head"]["sha"], *state.contained.get(number, ()))
    ]
    return 200, [_simplify(state, pull) for pull in pulls]


def _simplify(state: State, pull: dict[str, Any]) -> dict[str, Any]:
    simple: dict[str, Any] = make_example(state.host, "pull-request-simple-items")
    return simple | {key: pull[key] for key in ("number", "state", "locked", "title", "head", "base")}


@route("GET", f"{_REPO}/pulls/{{pull_number}}")
def get_pull(state: State, query: Query) -> tuple[Any, ...]:
    pull = state.pulls.get(int(query.path["pull_number"]))
    return (200, pull) if pull else not_found()


@route("GET", f"{_REPO}/pulls/{{pull_number}}/files")
def list_files(state: State, query: Query) -> tuple[Any, ...]:
    example = make_example(state.host, "diff-entry-items")
    names = state.files.get(int(query.path["pull_number"]), [])
    return 200, [example | {"filename": name} for name in names]


@route("GET", f"{_REPO}/issues/{{issue_number}}/events")
def list_events(state: State, query: Query) -> tuple[Any, ...]:
    return 200, state.events.get(int(query.path["issue_number"]), [])


@route("GET", f"{_REPO}/issues/{{issue_number}}/comments")
def list_comments(state: State, query: Query) -> tuple[Any, ...]:
    since = query.query.get("since", "")
    comments = state.list_comments(int(query.path["issue_number"]))
    return 200, [comment for comment in comments if comment["updated_at"] >= since]


@route("POST", f"{_REPO}/issues/{{issue_number}}/comments")
def add_comment(state: State, query: Query) -> tuple[Any, ...]:
    number = int(query.path["issue_number"])
    if state.pulls.get(number, {}).get("locked"):
        message = "Unable to create comment because issue is locked."
        return 403, {"message": message, "documentation_url": "https://docs"}
    if len(query.body["body"]) > MAX_BODY_CHARS:
        return invalid("IssueComment", "body", "body is too long (maximum is 65536 characters)")
    return 201, state.add_comment(number, query.body["body"], state.author)


@route("PATCH", f"{_REPO}/issues/comments/{{comment_id}}")
def change_comment(state: State, query: Query) -> tuple[Any, ...]:
    comment = state.comments.get(int(query.path["comment_id"]))
    if comment is None:
        return not_found()
    if len(query.body["body"]) > MAX_BODY_CHARS:
        return invalid("IssueComment", "body", "body is too long (maximum is 65536 characters)")
    comment |= {"body": query.body["body"], "updated_at": state.make_time()}
    return 200, comment


@route("GET", f"{_REPO}/issues/comments/{{comment_id}}")
def get_comment(state: State, query: Query) -> tuple[Any, ...]:
    comment = state.comments.get(int(query.path["comment_id"]))
    return (200, comment) if comment else not_found()


@route("DELETE", f"{_REPO}/issues/comments/{{comment_id}}")
def delete_comment(state: State, query: Query) -> tuple[Any, ...]:
    comment = state.comments.pop(int(query.path["comment_id"]), None)
    return (204, None) if comment else not_found()


@route("POST", f"{_REPO}/issues/comments/{{comment_id}}/reactions")
def add_reaction(state: State, query: Query) -> tuple[Any, ...]:
    comment_id = int(query.path["comment_id"])
    if comment_id not in state.comments:
        return not_found()
    content, reactions = query.body["content"], state.reactions.setdefault(comment_id, [])
    is_new = content not in reactions
    reactions += [content] if is_new else []
    return 201 if is_new else 200, make_example(state.host, "reaction") | {"content": content}


@route("POST", f"{_REPO}/statuses/{{sha}}")
def add_status(state: State, query: Query) -> tuple[Any, ...]:
    if len(query.body.get("description") or "") > 140:
        return invalid("Status", "description", "description is too long (maximum is 140 characters)")
    return 201, state.add_status(query.path["sha"], query.body)


@route("GET", f"{_REPO}/commits/{{ref}}/statuses")
def list_statuses(state: State, query: Query) -> tuple[Any, ...]:
    return 200, state.statuses.get(query.path["ref"], [])


def find_route(method: str, path: str) -> tuple[Handler, dict[str, str], str] | None:
    """The handler, the path's parameters and the template; ``None`` for another repository."""
    for known_method, pattern, template, handler in ROUTES:
        match = pattern.match(path)
        if known_method == method and match:
            parameters = match.groupdict()
            if parameters.get("owner", OWNER) != OWNER or parameters.get("repo", REPO) != REPO:
                continue
            return handler, parameters, template
    return None
