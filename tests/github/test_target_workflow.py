"""The workflow that judges for a target, step by step with the real command, without a network."""

import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from action.samples import commit, make_job
from action.step import Workspace, run_bash
from refreshes import GATE_YML
from workflow_files import ROOT, load

from gate.devices import TARGET_KIND
from gate.files.codec import RUN
from gate.lab.arms.changes import hash_changes
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.records.run import CodeIdentity, Provenance
from tests.git import run_git
from tests.hosts import CUDA_HOST
from tests.make import make_pair, make_run

# Stands in for an interpreter that can reach a package index: `-m pip` installs nothing, an
# environment is the real interpreter with the gate's command, whose `ab` only reads its options.
PYTHON = """\
#!/bin/bash
set -eu
case "${1-} ${2-}" in
  "-m venv") bin="${@: -1}/bin"; mkdir -p "$bin"; cp "$0" "$bin/python"; cp "${0%/*}/compile-gate" "$bin" ;;
  "-m pip") ;;
  *) exec "REAL" "$@" ;;
esac
"""
COMMAND = """\
#!/bin/bash
set -eu
case "$1" in
  ab) exec "REAL" -c 'import sys; from gate.cli.parser import *; make_parser().parse_args()' "$@" ;;
  *) exec "REAL" -m gate "$@" ;;
esac
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A job in a checkout with two commits; no clone and no artifact is made."""
    job = make_job(tmp_path)
    (tmp_path / "bin").mkdir()
    for name, text in {"python3": PYTHON, "compile-gate": COMMAND}.items():
        (tmp_path / "bin" / name).write_text(text.replace("REAL", sys.executable))
        (tmp_path / "bin" / name).chmod(0o755)
    job.environ["PATH"] = f"{tmp_path / 'bin'}:{job.environ['PATH']}"
    (job.workspace / "gate.yml").write_text(GATE_YML)
    (job.workspace / ".gitignore").write_text("out/\n")
    commit(job.workspace, "base")
    commit(job.workspace, "head")
    return job


def leave_target_run(top: Path) -> None:
    """Write the results of `ab --target`: the code of one of two cases is the base's."""
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


def test_a_target_names_what_a_gpu_must_measure(workspace: Workspace) -> None:
    """The summary has the real command's report and the cases whose code differs."""
    leave_target_run(workspace.workspace)
    steps = load(ROOT / "examples" / "workflows" / "target.yml")["jobs"]["compile"]["steps"]

    runs = [run_bash(workspace, step["run"], step.get("env", {})) for step in steps if "run" in step]

    assert [run.code for run in runs] == [0, 0, 0], [run.log for run in runs]
    summary = runs[-1].summary
    assert summary.startswith("# the report\n### Cases whose code changed\n```\n")
    assert "left out: 1 of 2 cases" in summary
    assert "lstm/training-float32-smoke-default" in summary
