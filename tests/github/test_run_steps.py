"""The `run:` steps of workflows that `act/` does not run, on the real command: a network has a stand-in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from action.composite import ActionRun, Job, run_job
from action.samples import commit, make_job, record_gate
from refreshes import GATE_YML
from workflow_files import ROOT, WORKFLOWS, list_jobs, load, name_file

from gate.devices import TARGET_KIND
from gate.files.codec import RUN
from gate.lab.arms.checkouts import hash_changes
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.records.run import CodeIdentity, Provenance
from tests.git import run_git
from tests.hosts import CUDA_HOST
from tests.make import make_pair, make_run

# The suite itself, what builds the site and the distributions, which tools do, and what runs under act.
ELSEWHERE = {"ci.yml", "docs.yml", "package.yml"}
ELSEWHERE |= {"release.yml", "respond.yml", "shards.yml", "anchor.yml", "trend.yml", "upgrade.yml"}
JOBS = [
    (path, name)
    for path in WORKFLOWS
    for name, job in list_jobs(path)
    if any("run" in step for step in job["steps"]) and path.name not in ELSEWHERE
]
# Stands in for an interpreter that can reach a package index: `-m pip` writes down what it is asked for, an
# environment is the real interpreter with the gate's command, whose `ab` only reads its options.
PYTHON = """\
#!/bin/bash
set -eu
case "${1-} ${2-}" in
  "-m venv") bin="${@: -1}/bin"; mkdir -p "$bin"; cp "$0" "$bin/python"; cp "${0%/*}/compile-gate" "$bin" ;;
  "-m pip") [[ $3 == freeze ]] || printf '%s\\n' "$*" >> "$(dirname "$0")/asked" ;;
  *) exec REAL "$@" ;;
esac
"""
COMMAND = """\
#!/bin/bash
set -eu
case "$1" in
  ab) exec REAL -c 'import sys; from gate.cli.parser import *; make_parser().parse_args(sys.argv[1:])' "$@" ;;
  *) exec REAL -m gate "$@" ;;
esac
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job in a checkout with two commits; no clone and no artifact is made, and no action runs."""
    job = make_job(tmp_path)
    job.environ |= {"PYTHON": "python3", "GITHUB_SERVER_URL": "https://github.com"}
    for name, text in {"python3": PYTHON, "python": PYTHON, "compile-gate": COMMAND}.items():
        put_program(tmp_path / "bin" / name, text.replace("REAL", sys.executable))
    job.environ["PATH"] = f"{tmp_path / 'bin'}:{job.environ['PATH']}"
    (job.workspace / "gate.yml").write_text(GATE_YML)
    (job.workspace / ".gitignore").write_text("out/\npages/\n")
    commit(job.workspace, "base")
    (job.workspace / "constraints.txt").write_text("torch==2.13.0\n")
    commit(job.workspace, "head")
    record_gate(job)
    return job


def put_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run(job: Job, path: Path, name: str, **needs: Mapping[str, Any]) -> ActionRun:
    """Run a job of a workflow whose other jobs went well."""
    others = {one: {"result": "success", "outputs": {}} for one, _ in list_jobs(path)}
    contexts = {
        "github": {"token": "t0ken", "event": {"changes": {}}},
        "inputs": {"packages": "", "select": "", "python": "python3"},
        "job": {"workflow_repository": "octo-org/compile-gate", "workflow_sha": "0" * 40},
        "matrix": {"shard": "1"},
        "strategy": {"job-total": "4"},
        "needs": others | needs,
    }
    return run_job(load(path)["jobs"][name], job, contexts)


def leave_target_run(top: Path) -> None:
    """Leave what `ab --target` would: the code of one of two cases is the base's."""
    cases = load_cases(load_config(top / "gate.yml"))
    run = make_run(
        *chain.from_iterable(make_pair(cases[0].id, at, identity=CodeIdentity(digest="a")) for at in (1, 2)),
        cases=cases,
        environment=replace(CUDA_HOST, device_kind=TARGET_KIND, device_model="cuda:sm_90"),
        provenance=Provenance(commit=run_git(top, "rev-parse", "HEAD")),
        changes=hash_changes(top),
        base=cases,
    )
    RUN.save(run, top / "out" / "run.json")
    (top / "out" / "report.md").write_text("# the report\n")


@pytest.mark.parametrize(("path", "name"), JOBS, ids=[f"{name_file(path)}-{name}" for path, name in JOBS])
def test_every_step_ends_well(job: Job, path: Path, name: str) -> None:
    """Where all is as it should be no step fails, and none is left out but where nothing is to be done."""
    leave_target_run(job.workspace)

    steps = {step.name: step for step in run(job, path, name).steps}

    wanted = [step["name"] for step in load(path)["jobs"][name]["steps"] if "run" in step]
    assert [
        (one, steps[one].outcome, steps[one].log) for one in wanted if steps[one].outcome != "success"
    ] == []


def test_a_target_names_what_a_gpu_must_measure(job: Job) -> None:
    """The summary has the report and the cases whose code is another, by the real command."""
    leave_target_run(job.workspace)
    path = ROOT / "examples" / "workflows" / "target.yml"

    summary = run(job, path, "compile").summary

    assert summary.startswith("# the report\n### Cases whose code changed\n```\n")
    assert "left out: 1 of 2 cases" in summary
    assert "lstm/training-float32-smoke-default" in summary
