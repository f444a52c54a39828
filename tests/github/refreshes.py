"""Hand-made runs of a refresh, and the context of its jobs."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from fake.state import FORK_ID, REPO_ID

from gate.files.yaml_in import decode_yaml
from gate.fingerprint import compute_environment_id
from gate.github.client import GitHubClient
from gate.github.job import JobContext
from gate.github.propose import ProposalOutcome, RefreshRequest, propose_refresh
from gate.metrics import SPECS
from gate.project.config import make_config
from gate.project.entries import GateFile
from gate.project.registry import load_cases
from gate.publish.commands import AuthorizedCommand, CommandWords
from gate.records.cases import Case, Metric, Policy
from gate.records.run import Provenance, Run
from tests import make
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


def load_definitions(gate_yml: str) -> dict[str, str]:
    """Load what the cases of a configuration are defined as."""
    file, _ = decode_yaml(GateFile, gate_yml.encode(), "gate.yml")
    return {case.id: case.definition for case in load_cases(make_config(file))}


DEFINITIONS = load_definitions(GATE_YML)
ENVIRONMENT = replace(CPU_HOST, torch="2.13.0")
STORED = f"baselines/{compute_environment_id(ENVIRONMENT)}/{CASE}.json"
BRANCH = "compile-gate/baselines/pr-7"
POLICY = Policy(thresholds={metric: spec.threshold for metric, spec in SPECS.items()})


def make_run(commit: str, latency_s: float = 0.010, cases: tuple[str, ...] = (CASE,), **changes: Any) -> Run:
    """Make a run of three trials a case; only the compiled latency and the graph breaks are measured."""
    samples = [{Metric.COMPILED_LATENCY: latency_s, Metric.GRAPH_BREAKS: 0.0}] * 3
    made: dict[str, Any] = {
        "cases": tuple(
            Case(id=name, model=name.split("/")[0], definition=DEFINITIONS.get(name, "d1")) for name in cases
        ),
        "environment": ENVIRONMENT,
        "provenance": Provenance(commit=commit, created="2026-11-01T10:00:00Z", author="mallory <b>"),
        "trials_planned": 3,
    }
    trials = chain.from_iterable(make.make_trials(case_id, samples) for case_id in cases)
    return replace(make.make_run(*trials, **made), **changes)


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


def propose(
    client: GitHubClient,
    run: Run,
    event: dict[str, Any] | None = None,
    *,
    reason: str = "",
    directory: str = "baselines",
    run_id: str = "77",
) -> ProposalOutcome:
    """Propose what a run recorded for the branch of pull request 7."""
    request = RefreshRequest(
        head_sha=run.provenance.commit,
        head_ref="topic",
        directory=directory,
        reason=reason,
        author="octocat",
        pr_number=7,
    )
    context = replace(make_context("issue_comment", event or {}), run_id=run_id)
    return propose_refresh(client, context, request, run, POLICY)
