"""Payloads of events: GitHub's published examples, ones derived from them, and comments with commands."""

import copy
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from fake.server import FakeGitHub
from fake.state import REPO_ID
from jsonschema import Draft7Validator

_PAYLOADS = Path(__file__).parent / "payloads"
# Where the published examples do not keep to the published schema.
_NEWEST = -1  # the last example of each event is the one that does


@cache
def _load(name: str) -> Any:
    return json.loads(gzip.decompress((_PAYLOADS / f"{name}.json.gz").read_bytes()))


def make_delivery(event: str, action: str) -> dict[str, Any]:
    """Make a fresh payload from the newest published example."""
    examples = [example for example in _load("examples")[event] if example["action"] == action]
    payload: dict[str, Any] = copy.deepcopy(examples[_NEWEST])
    return payload


def list_faults(event: str, payload: dict[str, Any]) -> list[str]:
    """List where a payload breaks GitHub's schema of its event."""
    schema = {**_load("schema"), "$ref": f"#/definitions/{event}${payload['action']}"}
    return [
        f"{list(e.absolute_path)}: {e.message[:200]}" for e in Draft7Validator(schema).iter_errors(payload)
    ]


def make_workflow_run(run: dict[str, Any]) -> dict[str, Any]:
    """Make the payload of a completed workflow_run that is about ``run``, an object of the API."""
    payload = make_delivery("workflow_run", "completed")
    about = payload["workflow_run"]
    same = ("id", "head_sha", "head_branch", "event", "conclusion", "run_attempt", "html_url")
    about |= {key: run[key] for key in (*same, "created_at", "run_started_at")}
    about["pull_requests"] = []  # as for every run of a fork
    for key in ("repository", "head_repository"):
        about[key] |= {"id": run[key]["id"], "full_name": run[key]["full_name"], "name": run[key]["name"]}
        about[key]["owner"] |= {"login": run[key]["owner"]["login"]}
    return payload


ASKED = "2026-11-01T12:00:00Z"


def make_comment(body: str, author: str = "octocat", kind: str = "User", **more: Any) -> dict[str, Any]:
    """Make the event of a comment on pull request 7, as far as the gate reads it.

    It calls everybody OWNER, which must not count. ``more`` are fields of the comment.
    """
    user = {"login": author, "type": kind}
    comment = {"id": 1, "body": body, "user": user, "created_at": ASKED, "author_association": "OWNER"}
    issue = {"number": 7, "pull_request": {"url": "https://x"}}
    return {
        "action": "created",
        "repository": {"id": REPO_ID},
        "issue": issue,
        "comment": comment | more,
    }


def leave_comment(github: FakeGitHub, body: str, author: str = "ada", kind: str = "User") -> dict[str, Any]:
    """Add a comment to pull request 7, and make its event."""
    comment = github.state.add_comment(7, body, author)
    return make_comment(body, author, kind, id=comment["id"], created_at=comment["created_at"])
