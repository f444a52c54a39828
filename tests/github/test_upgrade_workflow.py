"""The workflow of an upgrade, run step by step: old stack, new stack, comparison, issue."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from action.composite import ActionRun, Job, run_composite, run_job
from action.expressions import fill, is_due
from action.samples import ACTION, commit, make_job, record_gate
from fake.issue_routes import list_issues
from fake.server import TOKEN, FakeGitHub
from records import SHA
from workflow_files import ROOT, load

JOBS: dict[str, Any] = load(ROOT / ".github/workflows/upgrade.yml")["jobs"]
RUN_ID = 77
# Stands in for the interpreter: ``-m venv --clear DIR`` puts a copy of itself there, ``pip install`` writes
# down the last package that it is asked for, and cannot install one that is called broken.
STAND_IN = """\
#!/bin/bash
set -eu
case "$2" in
  venv) mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
  pip) list="$(dirname "$0")/list"
    if [ "$3" = freeze ]; then cat "$list"; exit; fi
    case "${@: -1}" in broken*) echo "ERROR: No matching distribution found for ${@: -1}"; exit 1 ;; esac
    printf '%s\\n' "${@: -1}" > "$list" ;;
esac
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """The job that measures, on a host whose ``python3`` is the stand-in; what it uses is only looked at."""
    job = make_job(tmp_path / "a host")
    job.temporary = job.temporary.rename(tmp_path / "runner temp")
    (job.workspace / "constraints.txt").write_text("torch==2.13.0\n")
    stand_in = tmp_path / "bin" / "python3"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    job.environ["PATH"] = f"{stand_in.parent}:{job.environ['PATH']}"
    return job


def compare(job: Job, packages: str = "") -> tuple[ActionRun, dict[str, str]]:
    """Run the job that measures; return what came of it, and what it gave to the action."""
    given = record_gate(job)
    return run_job(JOBS["compare"], job, {"inputs": {"packages": packages, "select": ""}}), given


def is_told(run: ActionRun, *, is_cancelled: bool = False) -> bool:
    """Whether the job that writes the issue runs after the job that measured."""
    status = {"success": run.succeeded, "failure": not run.succeeded, "cancelled": is_cancelled}
    return is_due(JOBS["report"]["if"], {"needs": {"compare": {"outputs": run.outputs}}}, status)


def test_a_new_stack_is_compared_and_told(job: Job) -> None:
    """The action is given both interpreters, by paths that hold in a container too."""
    run, given = compare(job, "torch transformers diffusers==9")

    assert run.outputs == {"changed": "true"}
    assert given["base-python"] == f"{job.temporary}/old/bin/python"
    assert given["head-python"] == f"{job.temporary}/new/bin/python"
    assert Path(given["head-python"]).exists()
    assert (given["python"], given["select"], given["fail-on"]) == ("python3", "", "never")
    assert is_told(run)
    assert not is_told(run, is_cancelled=True)


def test_the_same_stack_is_neither_compared_nor_told(job: Job) -> None:
    """Equal lists of packages are no upgrade."""
    run, given = compare(job)

    assert run.outputs == {"changed": "false"}
    assert [step.name for step in run.steps if step.outcome == "success"][-1] == "Say what is new"
    assert given == {}
    assert not is_told(run)


@pytest.mark.parametrize(
    ("packages", "constraints", "failed", "said"),
    [
        ("torch==2.14.0 broken", True, "Install the new stack", "pip cannot install the new stack"),
        ("", False, "Install the old stack", "There is no constraints.txt."),
    ],
)
def test_what_cannot_be_installed_is_told(
    job: Job, packages: str, constraints: bool, failed: str, said: str
) -> None:
    """The step that failed says which stack it was and why, nothing is compared, and the issue is written."""
    if not constraints:
        (job.workspace / "constraints.txt").unlink()

    run, given = compare(job, packages)

    assert [step.name for step in run.steps if step.outcome == "failure"] == [failed]
    assert f"::error title=upgrade::{said}" in run.log
    assert given == {}
    assert run.outputs == {"changed": ""}
    assert is_told(run)


def test_the_issue_of_a_stack_that_cannot_be_installed(github: FakeGitHub, job: Job, tmp_path: Path) -> None:
    """The second job, on the real action: an open issue that says how the run ended and links to it."""
    started = github.state.add_run(RUN_ID, SHA, branch="main", event="schedule")
    started |= {"status": "in_progress", "conclusion": None}
    run, _ = compare(job, "broken")
    results = {"compare": {"outputs": run.outputs, "result": "success" if run.succeeded else "failure"}}
    contexts = {"needs": results, "github": {"token": TOKEN}}
    reporter = make_job(tmp_path / "reporter")
    reporter.environ |= {"GITHUB_API_URL": github.api_url, "GITHUB_EVENT_NAME": "schedule", "no_proxy": "*"}
    (reporter.workspace / "gate.yml").write_text("version: 1\nreference_models: false\n")
    commit(reporter.workspace, "main")
    given = {name: fill(value, contexts) for name, value in JOBS["report"]["steps"][-1]["with"].items()}

    told = run_composite(ACTION, reporter, {**given, "python": sys.executable})

    assert told.succeeded, told.log
    (issue,) = list_issues(github.state).values()
    assert issue["state"] == "open"
    assert "The run ended with: failure." in issue["body"]
    assert started["html_url"] in issue["body"]
    assert told.outputs["issue-url"] == issue["html_url"]
