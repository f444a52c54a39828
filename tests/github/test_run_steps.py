"""Every `run:` step of every workflow, run on the real command: what needs a network is a stand-in."""

from __future__ import annotations

import shutil
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

# The suite itself, and what builds the site and the distributions, which tools do.
ELSEWHERE = {
    *(("ci.yml", "test"), ("docs.yml", "build"), ("package.yml", "build")),
    *(("release.yml", "build"), ("release.yml", "publish")),
}
JOBS = [
    (path, name)
    for path in WORKFLOWS
    for name, job in list_jobs(path)
    if any("run" in step for step in job["steps"]) and (path.name, name) not in ELSEWHERE
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
LINE = ROOT / "docs" / "images" / "trend.jsonl"
OWN = "2026-11-25-0123456789abcdef.jsonl"


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


def run(
    job: Job, path: Path, name: str, repository: str = "octo-org/compile-gate", **needs: Mapping[str, Any]
) -> ActionRun:
    """Run a job of a workflow whose other jobs went well; ``repository`` has the called workflow."""
    others = {one: {"result": "success", "outputs": {}} for one, _ in list_jobs(path)}
    contexts = {
        "github": {"token": "t0ken", "event": {"changes": {}}},
        "inputs": {"packages": "", "select": "", "python": "python3"},
        "job": {"workflow_repository": repository, "workflow_sha": "0" * 40},
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


def put_pages(top: Path) -> None:
    """Put what the jobs of the trend clone and download: pages of a documentation, ours, and an artifact."""
    pages = top / "pages"
    (pages / "trend" / "history").mkdir(parents=True)
    (top / "line" / "deep").mkdir(parents=True)
    (top / "new" / "history").mkdir(parents=True)
    for name in ("index.html", "api.html", "trend/gone-case.html"):
        (pages / name).write_text("theirs")
    shutil.copy(LINE, pages / "trend" / "history" / "old.jsonl")
    for place in (top / "line", top / "new" / "history"):
        shutil.copy(LINE, place / OWN)
        (place / "old.jsonl").write_text("overwritten")
        (place / "x.html").write_text("<script>1</script>")
    (top / "new" / "index.html").write_text("rendered")
    (top / "compile-gate").symlink_to(ROOT)


@pytest.mark.parametrize(("path", "name"), JOBS, ids=[f"{name_file(path)}-{name}" for path, name in JOBS])
def test_every_step_ends_well(job: Job, path: Path, name: str) -> None:
    """Where all is as it should be no step fails, and none is left out but where nothing is to be done."""
    leave_target_run(job.workspace)
    if path.name == "trend.yml":
        put_pages(job.workspace)
        serve_pages(job)

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


TREND = ROOT / "examples" / "workflows" / "trend.yml"


def serve_pages(job: Job) -> Path:
    """Let the job's clone of the pages be one of a server, on which the site is."""
    server = job.temporary / "server"
    bare = server / "octo-org" / "models"
    pages = job.workspace / "pages"
    commit(pages, "docs, and a trend")
    run_git(pages, "branch", "--move", "gh-pages")
    run_git(job.temporary, "clone", "--quiet", "--bare", str(pages), str(bare))
    job.environ["GITHUB_SERVER_URL"] = f"file://{server}"
    return bare


def list_site(bare: Path) -> set[str]:
    return set(run_git(bare, "ls-tree", "-r", "--name-only", "gh-pages").split())


def test_pages_are_rendered_without_a_token_and_of_lines_alone(job: Job) -> None:
    """Of an artifact that measured code wrote only new lines are taken; packages have hashes."""
    put_pages(job.workspace)

    done = run(job, TREND, "render")

    assert done.succeeded, done.log
    trend = job.workspace / "pages" / "trend"
    assert sorted(path.name for path in (trend / "history").iterdir()) == [OWN, "old.jsonl"]
    assert (trend / "history" / "old.jsonl").read_bytes() == LINE.read_bytes()
    assert "<html" in (trend / "index.html").read_text()
    assert not (trend / "gone-case.html").exists()
    assert (job.workspace / "pages" / "index.html").read_text() == "theirs"
    (asked,) = (job.temporary.parent / "bin" / "asked").read_text().splitlines()
    assert "--no-deps --require-hashes --only-binary :all:" in asked
    lists = [job.workspace / one for one in asked.split() if one.endswith(".txt")]
    assert [path.name for path in lists] == ["requirements.txt", "trend.txt"]
    assert all("--hash=sha256:" in path.read_text() for path in lists)
    assert "t0ken" not in str(load(TREND)["jobs"]["render"])


@pytest.mark.parametrize(("workflow", "name"), [("check", "check"), ("respond", "measure")])
def test_a_runner_that_is_too_old_is_told_before_anything_is_cloned(
    job: Job, workflow: str, name: str
) -> None:
    """It does not know which repository the workflow is of: checkout would clone the caller's own for it."""
    done = run(job, ROOT / ".github" / "workflows" / f"{workflow}.yml", name, repository="")

    assert not done.succeeded
    assert "This runner is too old for a called workflow: update it to 2.334 or later" in done.log
    assert done.steps[0].code == 2
    assert [step.outcome for step in done.steps if step.name.startswith("Clone")] == ["skipped"] * 2


def test_pages_are_pushed_beside_what_else_is_there(job: Job) -> None:
    """A documentation on the same branch keeps its files; ours is replaced as a whole, old lines stay."""
    put_pages(job.workspace)
    bare = serve_pages(job)

    done = run(job, TREND, "publish")

    assert done.succeeded, done.log
    ours = {"trend/index.html", f"trend/history/{OWN}", "trend/history/old.jsonl"}
    assert list_site(bare) == {"index.html", "api.html", *ours}
    assert run_git(bare, "show", "gh-pages:index.html") == "theirs"
    assert run_git(bare, "show", "gh-pages:trend/history/old.jsonl") == LINE.read_text().strip()


def test_the_token_is_in_no_command_line(job: Job) -> None:
    """Git is handed it by its environment, for the server of the job alone; it is in no line of the log."""
    put_pages(job.workspace)
    serve_pages(job)
    seen = job.temporary / "seen"
    spy = f'#!/bin/bash\nprintf "%s\\n" "$*" >> "{seen}"\nenv | grep ^GIT_CONFIG >> "{seen}.env"\n'
    put_program(job.temporary.parent / "bin" / "git", f'{spy}exec "{shutil.which("git")}" "$@"\n')

    done = run(job, TREND, "publish")

    basic = "eC1hY2Nlc3MtdG9rZW46dDBrZW4="  # x-access-token:t0ken
    assert done.succeeded, done.log
    assert not {"t0ken", basic} & set(f"{seen.read_text()} {done.log}".replace(":", " ").split())
    handed = set(Path(f"{seen}.env").read_text().splitlines())
    assert {
        f"GIT_CONFIG_KEY_0=http.{job.environ['GITHUB_SERVER_URL']}/.extraHeader",
        f"GIT_CONFIG_VALUE_0=Authorization: Basic {basic}",
    } <= handed


def test_a_run_that_brings_nothing_new_is_no_failure(job: Job) -> None:
    """A job that is run again finds its line there: it pushes nothing, and is green."""
    put_pages(job.workspace)
    bare = serve_pages(job)
    assert run(job, TREND, "publish").succeeded
    tip = run_git(bare, "rev-parse", "gh-pages")

    done = run(job, TREND, "publish")

    assert done.succeeded, done.log
    assert run_git(bare, "rev-parse", "gh-pages") == tip
