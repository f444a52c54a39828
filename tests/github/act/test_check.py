"""The check of a change, under act, from a repository that calls it."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
from deliveries import make_delivery

from act.project import CHECK, MakeProject, Project

GATE = "Measure and judge"
JOB = "compile-gate/check/check"
SMALL = """\
version: 1
device: cpu
threads: 1
trials: 1
max_trials: 1
counts_only: true # times would take more pairs
reference_models: false
models: [{name: small, factory: "small:build", cases: [{backend: eager}]}]
"""
MODEL = """\
import torch
from gate import Workload

def model(x):
    return torch.relu(x @ x)

def build():
    return Workload(forward=model, inputs=(torch.randn(8, 8),))
"""
BROKEN = MODEL.replace("return torch.relu(x @ x)", "y = x @ x\n    return y if y.sum().item() > 1e9 else -y")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_planted_graph_break_is_found(make: MakeProject) -> None:
    """A new graph break is red, on its line, with both artifacts, by the base's rules, not the change's."""
    change = {"small.py": BROKEN, "gate.yml": f"{SMALL}fail_on: never\n"}
    project = make({"gate.yml": SMALL, "small.py": MODEL}, change, sys.executable)

    run = project.check()

    outputs = run.outputs(GATE)
    assert (outputs["verdict"], outputs["exit-code"]) == ("REGRESSION", "10"), run.text
    assert (run.jobs, outputs["baseline-sha"]) == ({JOB: "failure"}, project.base)
    assert any("touches what it is judged by (gate.yml)" in note for note in run.annotations)
    assert any("file=small.py,line=6" in note for note in run.annotations if note.startswith("::error"))
    assert "REGRESSION" in run.summary
    details = zipfile.ZipFile(run.artifacts["compile-gate-details"]).namelist()
    assert {"report.html", "run.json", "verdict.json"} <= set(details)
    shown = zipfile.ZipFile(run.artifacts["compile-gate"]).read("shown.json")
    assert json.loads(shown)["outcome"] == "REGRESSION"


def test_a_forks_names_are_neither_run_nor_believed(project: Project, tmp_path: Path) -> None:
    """An unchanged model passes, whatever names the branch and title have and measured code prints."""
    canary = tmp_path / "canary"
    name = f"x\"$(touch${{IFS}}{canary})'`touch${{IFS}}{canary}`"
    title = f"::set-output name=verdict::REGRESSION\n##[error]title $(touch {canary})"

    run = project.check({"title": title, "body": title}, ref=name, label=f"mallory:{name}")

    outputs = run.outputs(GATE)
    assert (outputs["verdict"], outputs["exit-code"]) == ("PASS", "0"), run.text
    assert outputs["baseline-sha"] == project.base
    assert run.jobs == {JOB: "success"}
    assert [note.partition(" ")[0] for note in run.annotations] == ["::notice"]
    assert set(run.artifacts) == {"compile-gate", "compile-gate-details"}
    assert not canary.exists()
    assert "::error::believed" in run.text
    assert "believed" not in outputs


def test_a_merge_group_is_compared_with_what_it_is_put_on(project: Project) -> None:
    """The base is the commit that the queue names."""
    payload = make_delivery("merge_group", "checks_requested")
    payload["merge_group"] |= {"base_sha": project.base, "head_sha": project.merged}

    run = project.start("merge_group", payload, CHECK, sha=project.merged)

    outputs = run.outputs(GATE)
    assert (outputs["verdict"], outputs["baseline-sha"]) == ("PASS", project.base), run.text
    assert run.jobs == {JOB: "success"}


def test_without_a_usable_base_there_is_no_verdict(make: MakeProject) -> None:
    """The error names the file, the exit code is 2, and no artifact could pass for a verdict."""
    run = make({"gate.yml": "version: 1\nmodel: []\n"}).check()

    assert run.outputs(GATE)["exit-code"] == "2"
    assert run.jobs == {JOB: "failure"}
    errors = [note for note in run.annotations if note.startswith("::error")]
    assert ["gate.yml" in note for note in errors] == [True]
    assert run.artifacts == {}
