"""A repository that calls our workflows, with pull request 7, on the fake GitHub."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deliveries import leave_comment, make_delivery
from fake.server import FakeGitHub
from fake.state import REPO_ID

from act.hub import merge
from act.runner import ActRun, Runner, Start

NAME = "octo-org/models"
CHECK, RESPOND = (f".github/workflows/compile-gate{name}.yml" for name in ("", "-respond"))
# One case, which the actors in place of workers measure in a second; `fault.json` plants a fault.
GATE_YML = """\
version: 1
reference_models: false
sampling: {super_blocks: 3}
models: [{name: actor, factory: "actor:build", cases: [{expected_s: 1}]}]
"""
CASE = "actor/inference-float32-smoke-default"
MakeProject = Callable[..., "Project"]
BREAK = '{"fault": "graph_break", "amount": 0}'


@dataclass(frozen=True, kw_only=True)
class Project:
    """The repository; ``base`` is the default branch, ``head`` the pull request's commit."""

    github: FakeGitHub
    runner: Runner
    base: str
    head: str
    merged: str

    def check(self, texts: Mapping[str, str] | None = None, **head: str) -> ActRun:
        """Run the check of the pull request; ``texts`` and ``head`` go into the event."""
        payload = self.make_pull_request("opened")
        payload["pull_request"] |= texts or {}
        payload["pull_request"]["head"] |= head
        return self.start("pull_request", payload, CHECK)

    def make_pull_request(self, action: str, **more: Any) -> dict[str, Any]:
        """Make the payload of an event of the pull request."""
        payload = make_delivery("pull_request", "opened") | {"action": action, "number": 7, **more}
        payload["pull_request"]["head"] |= {"sha": self.head, "ref": "topic"}
        payload["pull_request"]["base"] |= {"sha": self.base, "ref": "main"}
        return payload

    def comment(self, body: str, author: str, workflow: str = RESPOND) -> ActRun:
        """Let somebody comment on the pull request, and run what that starts."""
        return self.start("issue_comment", leave_comment(self.github, body, author), workflow)

    def start(self, event: str, payload: dict[str, Any], workflow: str, sha: str = "") -> ActRun:
        """Run a workflow of the repository, for an event; ``sha`` defaults to the default branch."""
        payload["repository"] = {
            "id": REPO_ID,
            "full_name": NAME,
            "name": "models",
            "default_branch": "main",
            "owner": {"login": "octo-org"},
        }
        start = Start(
            event=event,
            payload=payload,
            workflow=workflow,
            sha=sha or self.base,
            environ={"GITHUB_API_URL": self.github.api_url},
            inputs=payload.get("inputs") or {},
        )
        if event == "pull_request":
            start = replace(start, ref="refs/pull/7/merge", sha=self.merged)
        run = self.github.state.add_run(start.id, start.sha, branch="main", event=event)
        run |= {"path": workflow, "status": "in_progress", "conclusion": None}
        self.github.call_before("GET", f"/actions/runs/{start.id}/artifacts", lambda: self.upload(start.id))
        return self.runner.run(start)

    def upload(self, run_id: int) -> None:
        """Add what a run has uploaded by now to GitHub's artifacts."""
        state = self.github.state
        uploaded = {
            artifact["name"]
            for artifact in state.artifacts.values()
            if artifact["workflow_run"]["id"] == run_id
        }
        for name, path in self.runner.list_artifacts(run_id).items():
            if name not in uploaded:
                state.add_artifact(run_id, name, path.read_bytes())

    @property
    def comments(self) -> list[str]:
        """The bodies of the pull request's comments."""
        return [comment["body"] for comment in self.github.state.list_comments(7)]


def make_project(
    runner: Runner, github: FakeGitHub, files: Mapping[str, str], change: Mapping[str, str]
) -> Project:
    """Make the repository anew: ``files``, a ``change`` of them, and a failed check."""
    repository = runner.hub.create(NAME)
    written = {"gate.yml": GATE_YML, "actor.py": "", ".gitignore": "out/\n", **files}
    base = repository.commit(written, "main")
    repository.run("branch", "topic", "main")
    head = repository.commit(change, "topic")
    merged = merge(repository, base, head)
    state = github.state
    state.git, state.workflows = repository, {CHECK, RESPOND}
    state.permissions, state.history = {"ada": "write", "eve": "read"}, {"main": [base]}
    state.add_pull(7, head, base_sha=base)
    state.add_run(100, head).update(path=CHECK, name="compile-gate")
    return Project(github=github, runner=runner, base=base, head=head, merged=merged)
