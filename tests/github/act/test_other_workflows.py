"""The workflows beside the check, under act: shards, upgrade, anchor, trend, and our own release."""

from __future__ import annotations

import zipfile
from typing import Any

import pytest
from fake.git_routes import BareRepository
from fake.issue_routes import list_issues
from workflow_files import ROOT

from act.hub import TOOL
from act.project import BREAK, CASE, GATE_YML, MakeProject
from act.runner import Runner, Start

DIRECTORY = ".github/workflows"
LINES = ROOT / "docs" / "images" / "trend.jsonl"
TWO_CASES = GATE_YML.replace("[{", '[{name: lost, factory: "actor:build", cases: [{expected_s: 1}]}, {', 1)


def ask(**inputs: str) -> dict[str, Any]:
    """Make the payload of a run that somebody starts by hand."""
    return {"ref": "refs/heads/main", "sender": {"login": "ada", "type": "User"}, "inputs": inputs}


def test_what_a_lost_shard_leaves_is_incomplete(make: MakeProject, runner: Runner) -> None:
    """The cases of the shard that came back are judged; the required check is red and names the other."""
    workflow = runner.hub.load_workflow("shards.yml").replace("[1, 2, 3, 4]", "[1, 2]")
    project = make({f"{DIRECTORY}/shards.yml": workflow, "gate.yml": TWO_CASES}, {"fault.json": BREAK})

    run = project.start("pull_request", project.make_pull_request("opened"), f"{DIRECTORY}/shards.yml")

    outputs = run.outputs("Join and judge")
    assert (outputs["verdict"], outputs["exit-code"]) == ("INCOMPLETE", "12"), run.text
    assert run.jobs["gate/compile-gate"] == "failure"
    assert set(run.artifacts) == {"compile-gate-shard-1", "compile-gate-shard-2", "compile-gate"}
    assert zipfile.ZipFile(run.artifacts["compile-gate-shard-2"]).namelist() == ["not-measured.txt"]
    assert any("lost" in note for note in run.annotations if note.startswith("::error"))
    assert any(CASE in note for note in run.annotations if note.startswith("::warning"))


@pytest.mark.parametrize(
    ("packages", "results", "verdict"),
    [
        ("torch==9", ("success", "success"), "PASS"),
        ("", ("success",), ""),
        ("broken", ("failure", "success"), "INCOMPLETE"),
    ],
    ids=["another stack", "the same stack", "one that cannot be installed"],
)
def test_an_upgrade_is_told_unless_nothing_is_new(
    make: MakeProject, runner: Runner, packages: str, results: tuple[str, ...], verdict: str
) -> None:
    """Both stacks are compared and told of; an issue says where one could not be installed."""
    path = f"{DIRECTORY}/upgrade.yml"
    project = make({path: runner.hub.load_workflow("upgrade.yml"), "constraints.txt": "torch==2.13.0\n"})

    run = project.start("workflow_dispatch", ask(packages=packages), path)

    jobs = ("upgrade/old against new stack", "upgrade/issue")
    assert run.jobs == dict(zip(jobs, results, strict=False)), run.text
    assert run.outputs("Publish").get("verdict", "") == verdict
    assert ("compile-gate-details" in run.artifacts) is (verdict == "PASS")
    is_failed = "failure" in results
    assert any("pip cannot install the new stack" in note for note in run.annotations) is is_failed
    bodies = [issue["body"] for issue in list_issues(project.github.state).values()]
    assert ["The run ended with: failure." in body for body in bodies] == [True] * is_failed


def test_the_default_branch_is_held_against_the_anchor(make: MakeProject, runner: Runner) -> None:
    """Without an anchor a notice says how to record one; with one the branch is red for what is worse."""
    path = f"{DIRECTORY}/anchor.yml"
    project = make({path: runner.hub.load_workflow("anchor.yml")})
    anchor = f"version: 1\ncommit: {project.base}\ncreated: 2026-11-01T12:00:00Z\nreason: a release\n"
    files = {"baselines/anchor.yml": anchor, "fault.json": BREAK}
    worse = project.github.state.git.commit(files, "main")

    without = project.start("workflow_dispatch", ask(), path)
    compared = project.start("workflow_dispatch", ask(), path, worse)

    assert (set(without.jobs.values()), without.artifacts) == ({"success"}, {})
    assert "compile-gate baseline anchor REF --reason TEXT" in without.annotations[0]
    outputs = compared.outputs("Compare")
    assert (outputs["verdict"], outputs["exit-code"]) == ("REGRESSION", "10"), compared.text
    assert set(compared.artifacts) == {"compile-gate"}


def test_a_trend_is_measured_rendered_and_pushed(make: MakeProject, runner: Runner) -> None:
    """Pages and line are on gh-pages after the third job; an older page of ours goes, all else stays."""
    path = f"{DIRECTORY}/trend.yml"
    config = {"gate.yml": GATE_YML + "history: out/history\n"}
    project = make({path: runner.hub.load_workflow("trend.yml"), **config})
    git, line = project.github.state.git, LINES.read_text()
    older = {"trend/history/old.jsonl": line, "trend/gone.html": "", "index.html": "theirs"}
    before = git.commit(older, "gh-pages")

    run = project.start("workflow_dispatch", ask(), path)

    assert run.jobs == {f"trend/{name}": "success" for name in ("measure", "render", "pages")}, run.text
    changes = dict(
        line.split("\t")[::-1] for line in git.run("diff", "--name-status", before, "gh-pages").split("\n")
    )
    assert changes.pop("trend/gone.html") == "D"
    assert set(changes.values()) == {"A"}
    assert sum(name.startswith("trend/history/") for name in changes) == 1
    assert "<html" in git.read("gh-pages:trend/index.html")


BUILD = """\
#!/bin/bash
set -eu
[ "$1" = 9.9.9 ] || exit 2
mkdir dist && touch "dist/compile_gate-$1.tar.gz"
"""


@pytest.mark.parametrize(("version", "is_released"), [("9.9.9", True), ("1.0.0", False)])
def test_what_was_built_is_attested_and_released(runner: Runner, version: str, is_released: bool) -> None:
    """The second job has what the first has built, which is played here; without a build there is none."""
    tool = BareRepository(runner.hub.place / TOOL)
    script = {"path": "tools/build_release.sh", "mode": "100755", "content": BUILD}
    tree = tool.write_tree(f"{runner.hub.commit}^{{tree}}", [script])
    sha = tool.run("commit-tree", tree, "-m", "A build that is played")
    tool.run("update-ref", "refs/heads/release", sha)
    inputs = {"version": version}
    start = Start(
        event="workflow_dispatch",
        payload=ask(**inputs),
        workflow=f"{DIRECTORY}/release.yml",
        sha=sha,
        repository=TOOL,
        inputs=inputs,
    )

    run = runner.run(start)

    asked = runner.place / "artifacts" / str(start.id) / "gh"
    if is_released:
        assert run.jobs == {"release/build": "success", "release/publish": "success"}, run.text
        assert run.outputs("Attest") == {"attested": "dist/compile_gate-9.9.9.tar.gz"}
        assert asked.read_text().startswith("release create v9.9.9 dist/compile_gate-9.9.9.tar.gz")
        assert f"--target {sha} " in asked.read_text()
    else:
        assert (run.jobs, run.artifacts, asked.exists()) == ({"release/build": "failure"}, {}, False)
