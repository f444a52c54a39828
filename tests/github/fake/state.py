"""What the fake GitHub knows: one repository with pull requests, runs, artifacts, comments, statuses."""

import itertools
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from fake.contract import make_example

OWNER = "octo-org"
REPO = "models"
BOT = "github-actions[bot]"
REPO_ID = 1000
FORK_ID = 2000


class State:
    """Plain objects as GitHub would answer them, made from GitHub's own examples."""

    def __init__(self, host: str, api_url: str) -> None:
        self.host = host
        self.api_url = api_url
        self.lock = threading.RLock()
        self.ids = itertools.count(5000)
        self.seconds = itertools.count()
        self.author = BOT  # whom the token's comments are by
        self.pulls: dict[int, dict[str, Any]] = {}
        self.history: dict[str, list[str]] = {}  # branch -> commits, where a test asks which are on it
        self.contained: dict[int, list[str]] = {}  # commits of a pull request below its head
        self.files: dict[int, list[str]] = {}  # names of the files that a pull request changes
        self.workflows = {".github/workflows/gate.yml"}
        self.runs: dict[int, dict[str, Any]] = {}
        self.events: dict[int, list[dict[str, Any]]] = {}  # of an issue or a pull request
        self.jobs: dict[int, list[dict[str, Any]]] = {}  # of a run, where a test says which it had
        self.artifacts: dict[int, dict[str, Any]] = {}
        self.archives: dict[int, bytes] = {}
        self.comments: dict[int, dict[str, Any]] = {}
        self.reactions: dict[int, list[str]] = {}  # comment -> what it got
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.git: Any = None  # the BareRepository behind it, where a test needs one
        self.permissions: dict[str, str] = {}  # login -> the permission API's answer
        self.environments: dict[str, list[str]] = {}  # name -> kinds of its protection rules
        self.may_open_pulls = True
        self.truncates_trees = False

    def make_time(self) -> str:
        """A second later than the time before."""
        start = datetime(2026, 11, 1, 12, tzinfo=UTC)
        moment = start + timedelta(seconds=next(self.seconds))
        return moment.isoformat().replace("+00:00", "Z")

    def make_user(self, login: str) -> dict[str, Any]:
        user: dict[str, Any] = make_example(self.host, "issue-comment")["user"]
        return user | {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}

    def add_comment(self, number: int, body: str, author: str = "octocat") -> dict[str, Any]:
        with self.lock:
            now = self.make_time()
            comment: dict[str, Any] = make_example(self.host, "issue-comment")
            url = f"{self.api_url}/repos/{OWNER}/{REPO}/issues"
            comment |= {"id": next(self.ids), "body": body, "user": self.make_user(author)}
            comment |= {"created_at": now, "updated_at": now, "issue_url": f"{url}/{number}"}
            comment["html_url"] = (
                f"https://github.com/{OWNER}/{REPO}/pull/{number}#issuecomment-{comment['id']}"
            )
            self.comments[comment["id"]] = comment
            return comment

    def list_comments(self, number: int) -> list[dict[str, Any]]:
        with self.lock:
            comments = [c for c in self.comments.values() if c["issue_url"].endswith(f"/issues/{number}")]
            return sorted(comments, key=lambda comment: comment["id"])

    def add_pull(
        self,
        number: int,
        head_sha: str,
        *,
        owner: str = OWNER,
        branch: str = "topic",
        base_sha: str = "b" * 40,
    ) -> dict[str, Any]:
        """Add an open pull request, from a fork when ``owner`` is another."""
        pull: dict[str, Any] = make_example(self.host, "pull-request")
        pull |= {"number": number, "state": "open", "locked": False, "title": "A change"}
        _name_repository(pull["head"]["repo"], owner)
        pull["head"]["repo"]["fork"] = owner != OWNER
        pull["head"] |= {"sha": head_sha, "ref": branch, "label": f"{owner}:{branch}"}
        _name_repository(pull["base"]["repo"], OWNER)
        pull["base"] |= {"sha": base_sha, "ref": "main", "label": f"{OWNER}:main"}
        self.pulls[number] = pull
        return pull

    def add_run(
        self,
        run_id: int,
        head_sha: str,
        *,
        owner: str = OWNER,
        branch: str = "topic",
        event: str = "pull_request",
    ) -> dict[str, Any]:
        """Add a completed, failed run (which is what a regression leaves behind)."""
        run: dict[str, Any] = make_example(self.host, "workflow-run")
        run |= {"id": run_id, "head_sha": head_sha, "head_branch": branch, "event": event, "run_attempt": 1}
        run |= {"path": ".github/workflows/gate.yml", "name": "gate"}
        run |= {"status": "completed", "conclusion": "failure", "pull_requests": []}
        run |= {"created_at": "2026-11-01T11:00:00Z", "run_started_at": "2026-11-01T11:00:00Z"}
        run["html_url"] = f"https://github.com/{OWNER}/{REPO}/actions/runs/{run_id}"
        _name_repository(run["repository"], OWNER)
        _name_repository(run["head_repository"], owner)
        self.runs[run_id] = run
        return run

    def add_job(self, run_id: int, name: str, conclusion: str, **times: str) -> dict[str, Any]:
        """Add a job of a run, which uploads when it ends; ``began`` and ``ended`` default to now."""
        now = self.make_time()
        began, ended = times.get("began", now), times.get("ended", now)
        job: dict[str, Any] = make_example(self.host, "job-paginated")["jobs"][0]
        attempt = self.runs[run_id]["run_attempt"]
        job |= {"id": next(self.ids), "run_id": run_id, "name": name, "run_attempt": attempt}
        job |= {"status": "completed", "conclusion": conclusion, "started_at": began, "completed_at": ended}
        job |= {"created_at": began}
        step = {"name": "Upload the verdict", "number": 1, "status": "completed", "conclusion": "success"}
        uploaded = times.get("uploaded", ended)
        job["steps"] = [step | {"started_at": uploaded, "completed_at": uploaded}]
        self.jobs.setdefault(run_id, []).append(job)
        return job

    def list_jobs(self, run_id: int) -> list[dict[str, Any]]:
        """The jobs of a run; unless a test adds them, each artifact has one that ended as the run did."""
        if run_id in self.jobs:
            return self.jobs[run_id]
        ended = self.runs[run_id]["conclusion"] or "success"
        for item in [a for a in self.artifacts.values() if a["workflow_run"]["id"] == run_id]:
            times = dict.fromkeys(("began", "ended"), item["created_at"])
            self.add_job(run_id, f"job of {item['name']}", ended, **times)
        return self.jobs.pop(run_id, [])

    def add_event(self, number: int, name: str, created: str) -> None:
        """Add an event of a pull request, as GitHub lists it."""
        event: dict[str, Any] = make_example(self.host, "issue-event-for-issue-items")
        event |= {"id": next(self.ids), "event": name, "created_at": created}
        self.events.setdefault(number, []).append(event)

    def add_artifact(self, run_id: int, name: str, archive: bytes) -> dict[str, Any]:
        artifact: dict[str, Any] = make_example(self.host, "artifact-paginated")["artifacts"][0]
        now = self.make_time()
        artifact |= {"id": next(self.ids), "name": name, "size_in_bytes": len(archive), "expired": False}
        artifact |= {"created_at": now, "updated_at": now}
        run = self.runs[run_id]
        artifact["workflow_run"] = (artifact.get("workflow_run") or {}) | {
            "id": run_id,
            "head_sha": run["head_sha"],
        }
        self.artifacts[artifact["id"]] = artifact
        self.archives[artifact["id"]] = archive
        return artifact

    def add_status(self, sha: str, fields: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            status: dict[str, Any] = make_example(self.host, "status")
            status |= {"target_url": None, "description": None, "context": "default"} | fields
            status |= {"id": next(self.ids), "created_at": self.make_time()}
            self.statuses.setdefault(sha, []).insert(0, status)
            return status


def _name_repository(repository: dict[str, Any], owner: str) -> None:
    """Give an example's repository this one's name, or a fork's."""
    number = REPO_ID if owner == OWNER else FORK_ID
    repository |= {"id": number, "full_name": f"{owner}/{REPO}", "name": REPO}
    repository["owner"] |= {"login": owner}
