"""The workflows besides the check, under act: shards, upgrade, anchor, trend, and our own release."""

import zipfile
from dataclasses import replace
from typing import Any

import pytest
import yaml
from fake.git_routes import BareRepository
from fake.issue_routes import list_issues
from workflow_files import ROOT

from act.hub import TOOL
from act.project import BREAK, CASE, GATE_YML, MakeProject
from act.runner import BASIC, Runner, Start

DIRECTORY = ".github/workflows"
LINES = ROOT / "docs" / "images" / "trend.jsonl"
TWO_CASES = GATE_YML.replace("[{", '[{name: lost, factory: "actor:build", cases: [{expected_s: 1}]}, {', 1)


def ask(**inputs: str) -> dict[str, Any]:
    """Make the payload of a run that somebody starts by hand."""
    return {"ref": "refs/heads/main", "sender": {"login": "ada", "type": "User"}, "inputs": inputs}


def test_what_a_lost_shard_leaves_is_incomplete(make: MakeProject, runner: Runner) -> None:
    """The cases of the other shard are judged; the required check is red and names the lost one."""
    workflow = runner.hub.load_workflow("shards.yml").replace("[1, 2, 3, 4]", "[1, 2]")
    project = make({f"{DIRECTORY}/shards.yml": workflow, "gate.yml": TWO_CASES}, {"fault.json": BREAK})

    run = project.start("pull_request", project.make_pull_request("opened"), f"{DIRECTORY}/shards.yml")

    outputs = run.outputs("Join and judge")
    assert (outputs["verdict"], outputs["exit-code"]) == ("INCOMPLETE", "12"), run.text
    assert outputs["regressions"] == "1"  # by the pairs of the shard: no baseline is stored
    assert run.jobs["gate/compile-gate"] == "failure"
    assert set(run.artifacts) == {"compile-gate-shard-1", "compile-gate-shard-2", "compile-gate"}
    assert zipfile.ZipFile(run.artifacts["compile-gate-shard-2"]).namelist() == ["not-measured.txt"]
    assert any("lost" in note for note in run.annotations if note.startswith("::error"))
    assert any(CASE in note for note in run.annotations if note.startswith("::error"))


@pytest.mark.parametrize(
    ("packages", "pinned", "results", "verdict"),
    [
        ("torch==9", "constraints.txt", ("success", "success"), "PASS"),
        ("", "constraints.txt", ("success",), ""),
        ("broken", "constraints.txt", ("failure", "success"), "INCOMPLETE"),
        ("torch==9", "nothing.txt", ("failure", "success"), "INCOMPLETE"),
    ],
    ids=["another stack", "the same stack", "not installed", "not pinned"],
)
def test_an_upgrade_is_reported_unless_nothing_is_new(
    make: MakeProject, runner: Runner, packages: str, pinned: str, results: tuple[str, ...], verdict: str
) -> None:
    """Both stacks are compared; an issue says where one could not be installed.

    Other packages keep their versions, and a torch that is held below the newest release is a warning.
    """
    path = f"{DIRECTORY}/upgrade.yml"
    project = make({path: runner.hub.load_workflow("upgrade.yml"), pinned: "torch==2.13.0\n"})

    run = project.start("workflow_dispatch", ask(packages=packages), path)

    jobs = ("upgrade/old against new stack", "upgrade/issue")
    assert run.jobs == dict(zip(jobs, results, strict=False)), run.text
    assert run.outputs("Publish").get("verdict", "") == verdict
    assert ("compile-gate-details" in run.artifacts) is (verdict == "PASS")
    is_failed = "failure" in results
    why = "There is no constraints.txt." if packages == "torch==9" else "pip cannot install the new stack"
    assert any(why in note for note in run.annotations) is is_failed
    held = "pip installed torch 2.13.0, and 2.15.0 is the newest release."
    assert any(held in note for note in run.annotations) is (not packages)
    kept = "torch transformers diffusers" if packages == "broken" else "transformers diffusers"
    constrained = [line for line in runner.read_log("pip").splitlines() if "--constraint" in line]
    assert pinned != "constraints.txt" or constrained[-1].endswith(f" pytest pytest-benchmark {kept}")
    bodies = [issue["body"] for issue in list_issues(project.github.state).values()]
    assert ["The run ended with: failure." in body for body in bodies] == [True] * is_failed


def test_the_default_branch_is_compared_with_the_anchor(make: MakeProject, runner: Runner) -> None:
    """Without an anchor a notice shows how to record one; with one a slower branch is red."""
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
    """Only new history lines are taken, other files stay, and a second push is no error."""
    path, text = f"{DIRECTORY}/trend.yml", runner.hub.load_workflow("trend.yml")
    config = {path: text, "gate.yml": GATE_YML + "history: out/history\n"}
    hostile = {"out/history/old.jsonl": "overwritten", "out/history/x.html": "<script>1</script>"}
    project = make(config | hostile)
    git = project.github.state.git
    older = {"trend/history/old.jsonl": LINES.read_text(), "trend/gone.html": "", "index.html": "theirs"}
    before = git.commit(older, "gh-pages")
    start = Start(event="workflow_dispatch", payload=ask(), workflow=path, sha=project.base)

    run = runner.run(start)

    assert run.jobs == {f"trend/{name}": "success" for name in ("measure", "render", "pages")}, run.text
    listed = git.run("diff", "--no-renames", "--name-status", before, "gh-pages").splitlines()
    changes = {name: change for change, name in (line.split("\t") for line in listed)}
    assert changes.pop("trend/gone.html") == "D"
    assert set(changes.values()) == {"A"}
    assert "trend/x.html" not in changes
    rendered = zipfile.ZipFile(run.artifacts["compile-gate-pages"])
    assert rendered.read("history/old.jsonl") == LINES.read_bytes()
    assert sum(name.startswith("trend/history/") for name in changes) == 1
    assert "<html" in git.read("gh-pages:trend/index.html")
    assert "--no-deps --require-hashes --only-binary :all:" in runner.read_log("pip")
    assert f"GIT_CONFIG_VALUE_0=Authorization: Basic {BASIC}" in runner.read_log("git-settings")
    last = yaml.safe_load(text)["jobs"]["publish"]
    del last["needs"]
    alone = git.commit({path: yaml.safe_dump({"on": "workflow_dispatch", "jobs": {"publish": last}})}, "main")
    after = git.find_ref("heads/gh-pages")
    assert runner.run(replace(start, sha=alone)).code == 0
    assert git.find_ref("heads/gh-pages") == after


BUILD = """\
#!/bin/bash
set -eu
[ "$1" = 9.9.9 ] || exit 2
mkdir dist && touch "dist/compile_gate-$1.tar.gz"
"""


@pytest.mark.parametrize(("version", "is_released"), [("9.9.9", True), ("1.0.0", False)])
def test_what_was_built_is_attested_and_released(runner: Runner, version: str, is_released: bool) -> None:
    """The second job releases what the first has built; without a build nothing is released."""
    tool = BareRepository(runner.hub.directory / TOOL)
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

    asked = runner.read_log("gh").splitlines()
    if is_released:
        assert run.jobs == {"release/build": "success", "release/publish": "success"}, run.text
        assert "Subject dist/compile_gate-9.9.9.tar.gz" in run.text
        assert asked[-1].startswith("release create v9.9.9 dist/compile_gate-9.9.9.tar.gz")
        assert f"--target {sha} " in asked[-1]
    else:
        assert (run.jobs, run.artifacts) == ({"release/build": "failure"}, {})
        assert not any("v1.0.0" in line for line in asked)
