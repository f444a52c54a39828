"""Hand-made runs of a refresh, the context of its jobs, and the branch that it is for."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from fake.git_routes import BareRepository
from fake.server import FakeGitHub
from fake.state import FORK_ID, REPO_ID

from gate.errors import UsageError
from gate.files.yaml_in import decode_yaml
from gate.fingerprint import compute_environment_id
from gate.github.client import GitHubClient
from gate.github.job import JobContext
from gate.github.propose import ProposalOutcome, RefreshRequest, propose_refresh
from gate.metrics import SPECS
from gate.project.config import make_config
from gate.project.entries import GateFile
from gate.project.registry import load_cases
from gate.publish.comment_commands import AuthorizedCommand, CommandWords
from gate.records.cases import Case, Metric, Policy
from gate.records.run import Provenance, Run
from tests import make
from tests.git import run_git
from tests.hosts import CPU_HOST

CASE = "bert/inference-float32-smoke-default"
OTHER = "lstm/training-float32-smoke-default"


def make_gate_yml(*models: str, factory: str = "bench:make", task: str = "inference") -> str:
    """Make a configuration whose registry has one case of each model, and nothing else."""
    entries = "".join(
        f"  - {{name: {name}, factory: '{factory}', cases: [{{task: {task}}}]}}\n" for name in models
    )
    return f"version: 1\nreference_models: false\nmodels:\n{entries}"


GATE_YML = (
    make_gate_yml("bert") + "  - {name: lstm, factory: 'bench:make', cases: [{task: training}]}\n"
)  # CASE and OTHER


def list_cases(gate_yml: str) -> tuple[Case, ...]:
    file, _ = decode_yaml(GateFile, gate_yml.encode(), "gate.yml")
    return load_cases(make_config(file))


def load_definitions(gate_yml: str) -> dict[str, str]:
    """The definition of each case of a configuration."""
    return {case.id: case.definition for case in list_cases(gate_yml)}


DEFINITIONS = load_definitions(GATE_YML)
ENVIRONMENT = replace(CPU_HOST, torch="2.13.0")
STORED = f"baselines/{compute_environment_id(ENVIRONMENT)}/{CASE}.json"
BRANCH = "compile-gate/baselines/pr-7"
POLICY = Policy(thresholds={metric: spec.threshold for metric, spec in SPECS.items()})


def make_run(commit: str, latency_s: float = 0.010, cases: tuple[str, ...] = (CASE,), **changes: Any) -> Run:
    """Make a run of three trials a case; only the compiled latency and the graph breaks are measured."""
    samples = [{Metric.COMPILED_LATENCY: latency_s, Metric.GRAPH_BREAKS: 0.0}] * 3
    parts: dict[str, Any] = {
        "cases": tuple(
            Case(id=name, model=name.split("/")[0], definition=DEFINITIONS.get(name, "d1")) for name in cases
        ),
        "environment": ENVIRONMENT,
        "provenance": Provenance(commit=commit, created="2026-11-01T10:00:00Z", author="mallory <b>"),
        "trials_planned": 3,
    }
    trials = chain.from_iterable(make.make_trials(case_id, samples) for case_id in cases)
    return replace(make.make_run(*trials, **parts), **changes)


def make_request(**changes: Any) -> AuthorizedCommand:
    """Make the request to accept what regressed at the head of pull request 7, which is a fork's."""
    fields: dict[str, Any] = {
        "author": "octocat",
        "asked": "2026-11-01T12:00:00Z",
        "head_sha": "a" * 40,
        "head_branch": "topic",
        "head_repository": FORK_ID,
        "pr_number": 7,
        "words": CommandWords(reason="worth it"),
    }
    return AuthorizedCommand(**(fields | changes))


def make_context(event_name: str, event: dict[str, Any], sha: str = "") -> JobContext:
    """Make the context of a job on the fake GitHub; the event names the repository as GitHub would."""
    return JobContext(
        repository="octo-org/models",
        event_name=event_name,
        sha=sha,
        run_id="77",
        workspace=Path.cwd(),
        event={"repository": {"id": REPO_ID, "full_name": "octo-org/models"}, **event},
    )


class Topic:
    """The branch that pull request 7 is from, and for which baselines are proposed."""

    def __init__(self, github: FakeGitHub, client: GitHubClient, git: BareRepository) -> None:
        self.github, self.client, self.git = github, client, git

    @property
    def head(self) -> str:
        return self.git.find_ref("heads/topic")

    def push(self, files: dict[str, str]) -> str:
        """Push files to the branch, and return its new head."""
        return self.git.commit(files, branch="topic")

    def make_run(self, **changes: Any) -> Run:
        """Make the run of a machine that measured the head."""
        return make_run(self.head, **changes)

    def propose(
        self,
        run: Run | None = None,
        *,
        reason: str = "",
        directory: str = "baselines",
        run_id: str = "77",
        **changes: Any,
    ) -> ProposalOutcome:
        """Propose what a run recorded: by default one of the head, with these changes."""
        run = run or self.make_run(**changes)
        request = RefreshRequest(
            head_sha=run.provenance.commit,
            head_ref="topic",
            directory=directory,
            reason=reason,
            author="octocat",
            pr_number=7,
        )
        context = replace(make_context("issue_comment", {}), run_id=run_id)
        return propose_refresh(self.client, context, request, run, POLICY)

    def refuse(self, run: Run | None = None, **changes: Any) -> UsageError:
        """Propose what is refused before anything is written; return the reason."""
        with pytest.raises(UsageError) as caught:
            self.propose(run, **changes)
        assert self.github.list_writes() == []
        return caught.value

    def store(self, latency_s: float) -> None:
        """Push a baseline with this latency to the branch, as if its proposal had been merged."""
        self.propose(latency_s=latency_s)
        self.push({STORED: self.read()})
        self.git.run("update-ref", "-d", f"refs/heads/{BRANCH}")
        self.github.state.pulls.clear()
        self.github.requests.clear()

    def read(self, path: str = STORED) -> str:
        return self.git.read(f"{BRANCH}:{path}")

    @property
    def proposed(self) -> list[str]:
        return self.git.run("diff", "--name-only", "topic", BRANCH).split()

    @property
    def pull(self) -> dict[str, Any]:
        """The one pull request that was opened."""
        (pull,) = self.github.state.pulls.values()
        return pull

    @property
    def body(self) -> str:
        return str(self.pull["body"])

    def check(self, clone: Path) -> str:
        """Clone the repository, let git check it, and return the clone's files on the proposal's branch."""
        run_git(
            clone.parent, "clone", "--quiet", "--no-local", "--branch", BRANCH, str(self.git.path), str(clone)
        )
        assert run_git(clone, "fsck", "--full", "--strict") == ""
        return run_git(clone, "ls-files")
