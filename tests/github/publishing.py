"""A run that is published on the fake GitHub, and the ways in which GitHub fails meanwhile."""

from dataclasses import replace
from typing import Any

from fake.faults import NO_RIGHT, SECONDARY, Fault, html
from fake.issue_routes import add_issue, list_issues
from fake.server import FakeGitHub
from records import CASES, RUN, SHA, make_archive, make_base, make_comparison, make_verdict

from gate.github.client import GitHubClient
from gate.github.finding import Settings
from gate.github.job import JobContext
from gate.github.publish import Publication, publish
from gate.github.sticky import DEFAULT_AUTHOR
from gate.publish.results import CommentWhen
from gate.records.cases import Metric
from gate.records.verdict import Reason, Status, Verdict

REPOSITORY = "octo-org/models"
INCONCLUSIVE = make_verdict(
    make_comparison(CASES[0], Metric.COMPILED_LATENCY, Status.INCONCLUSIVE, Reason.UNSETTLED)
)


class Publisher:
    """Pull request 7 with one finished run, whose verdict is published."""

    def __init__(self, github: FakeGitHub, client: GitHubClient) -> None:
        self.github, self.client, self.state = github, client, github.state
        self.job, self.base = JobContext(repository=REPOSITORY), make_base()
        self.usual: dict[str, Any] = {}  # settings that are not a pull request's
        self.state.add_pull(7, SHA)
        self.run = self.state.add_run(RUN.id, SHA)

    def publish(self, verdict: Verdict | None = None, **more: Any) -> Publication:
        """Publish the run's artifacts: this verdict alone, if one is given."""
        if verdict is not None:
            self.state.artifacts.clear()
            self.leave(verdict)
        settings = Settings(**{"run_id": RUN.id, "base": self.base, **self.usual, **more})
        return publish(self.client, self.job, settings)

    def leave(
        self, verdict: Verdict | bytes, name: str = "compile-gate", run_id: int = RUN.id
    ) -> dict[str, Any]:
        """Add a verdict, or an archive, as an artifact of a run."""
        archive = verdict if isinstance(verdict, bytes) else make_archive(verdict)
        return self.state.add_artifact(run_id, name, archive)

    def set_status(self, state: str, run_id: int = RUN.id) -> None:
        """Set the gate's commit status, as another run would."""
        url = f"https://github.com/{REPOSITORY}/actions/runs/{run_id}"
        fields = {"state": state, "context": "compile-gate/report", "target_url": url}
        self.state.add_status(SHA, fields)

    def add_comment(self, run_id: int, head: str) -> dict[str, Any]:
        """Add the comment of another run."""
        marker = f"<!-- compile-gate key=default run={run_id} attempt=1 head={head} -->"
        return self.state.add_comment(7, f"{marker}\n## PASS", DEFAULT_AUTHOR)

    def know_rules(self, *rules: str) -> None:
        """Set the files by which the base commit is judged."""
        self.base = replace(self.base, rules=rules)

    def be_upgrade(self) -> None:
        """Make the run one of an upgrade, still in progress, as a job of its own sees it."""
        self.run |= {"event": "schedule", "head_branch": "main", "status": "in_progress", "conclusion": None}
        self.usual = {"issue": True, "conclusion": "success", "key": "h200", "comment": CommentWhen.ON_CHANGE}

    @property
    def issues(self) -> list[dict[str, Any]]:
        return list(list_issues(self.state).values())

    @property
    def issue(self) -> dict[str, Any]:
        (issue,) = self.issues
        return issue

    def add_issue(self) -> None:
        """Add the issue of an earlier run of the upgrade."""
        body = f"<!-- compile-gate key=h200 run=9 attempt=1 head={SHA} -->\nold"
        add_issue(self.state, {"body": body}, DEFAULT_AUTHOR)

    def leave_pass(self) -> None:
        """Add the green status and the comment of an earlier attempt of the run."""
        self.set_status("success")
        self.add_comment(RUN.id, SHA)
        self.run["run_attempt"] = 2

    @property
    def comments(self) -> list[dict[str, Any]]:
        return self.state.list_comments(7)

    @property
    def body(self) -> str:
        """The one comment's text."""
        (comment,) = self.comments
        return str(comment["body"])

    @property
    def status_told(self) -> tuple[str, str]:
        return self.status["state"], self.status["description"]

    @property
    def status(self) -> dict[str, Any]:
        return self.state.statuses[SHA][0]


def make_faults() -> dict[str, Fault]:
    reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999"}
    return {
        "401": Fault(status=401, message="Bad credentials"),
        "403 rights": Fault(status=403, message=NO_RIGHT),
        "403 primary": Fault(status=403, message="API rate limit exceeded", headers=reset),
        "403 secondary": Fault(status=403, message=SECONDARY),
        "403 retry-after": Fault(status=403, message=SECONDARY, headers={"Retry-After": "9999"}),
        "403 HTML": html(403),
        "404": Fault(status=404, message="Not Found"),
        "410": Fault(status=410, message="Gone"),
        "422": Fault(status=422, message="Validation Failed"),
        "429": Fault(status=429, message="slow down"),
        "500": Fault(status=500),
        "502 HTML": html(502),
        "503": Fault(status=503, headers={"Retry-After": "5"}),
        "reset": Fault(),
        "lost": Fault(applied=True),  # it took effect, and the answer never came
        "truncated": Fault(truncate=True),
        "broken JSON": Fault(status=200, body=b'{"id": '),
        "wrong JSON": Fault(status=200, body=b'"text"'),
        "list": Fault(status=200, body=b"[]"),
        "object": Fault(status=200, body=b"{}"),
        "empty": Fault(status=200, body=b""),
    }


# One such answer keeps nothing from being published.
TRANSIENT = frozenset({"500", "502 HTML", "503", "reset", "lost", "truncated"})
FOR_GOOD = ("401", "403 secondary", "502 HTML", "reset", "truncated", "empty")
