"""Jobs that hold a token, through the shipped action: what they propose, tell, answer and refuse.

Jobs are separate, as on GitHub: nothing but outputs and artifacts goes from one to the next. Whole chains of
them run under act, in ``act/test_respond.py``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from action.composite import ActionRun, Job, parse_action, run_composite
from action.samples import ACTION, commit, make_job
from deliveries import make_comment, make_workflow_run
from fake.git_routes import BareRepository
from fake.server import TOKEN, FakeGitHub
from fake.state import REPO_ID
from records import SHA, make_archive, make_passing, make_zip
from refreshes import GATE_YML, STORED, make_run

from gate.cli import main
from gate.files.codec import RUN

RUN_ID = 77
DECLARED = set(parse_action(ACTION.read_text())["outputs"])


@pytest.fixture
def git(bare: BareRepository, github: FakeGitHub) -> BareRepository:
    """The repository: a default branch, a topic branch, pull request 7 from it, and two people."""
    bare.commit({"gate.yml": "version: 1\nreference_models: false\n"}, branch="main")
    head = bare.commit({"gate.yml": GATE_YML, "model.py": "x = 1\n"}, branch="topic")
    github.state.permissions = {"ada": "write", "eve": "read"}
    github.state.add_pull(7, head, branch="topic")
    github.state.add_run(RUN_ID, head)
    return bare


class Jobs:
    """Runs the action in a fresh job each time, in a clone of the default branch."""

    def __init__(self, github: FakeGitHub, git: BareRepository, python: Path, place: Path) -> None:
        self._github, self._git, self._python, self._place = github, git, python, place
        self._count = 0
        self.logs: list[str] = []

    def run(self, name: str, event: dict[str, Any], inputs: dict[str, str]) -> ActionRun:
        self._count += 1
        job: Job = make_job(self._place / f"job {self._count}", {"repository": {"id": REPO_ID}, **event})
        job.environ |= {"GITHUB_API_URL": self._github.api_url, "GITHUB_EVENT_NAME": name, "no_proxy": "*"}
        shutil.rmtree(job.workspace)
        clone = ["git", "clone", "--quiet", "--branch", "main", str(self._git.path), str(job.workspace)]
        subprocess.run(clone, check=True, capture_output=True)
        run = run_composite(ACTION, job, {"python": str(self._python), "token": TOKEN, **inputs})
        # What a command sets and action.yml does not pass on would be lost in silence.
        assert set(run.steps[0].outputs) <= DECLARED
        self.logs += [run.log, run.summary, json.dumps(run.outputs)]
        return run


@pytest.fixture
def jobs(github: FakeGitHub, git: BareRepository, bare_python: Path, tmp_path: Path) -> Jobs:
    """Jobs on this repository; the token must be in nothing that any of them said."""
    return Jobs(github, git, bare_python, tmp_path)


def leave_run(github: FakeGitHub, head: str, members: dict[str, bytes] | None = None) -> None:
    """Leave the artifact that the job that measures leaves."""
    content = RUN.encode(make_run(head)).encode()
    github.state.add_artifact(RUN_ID, "compile-gate", make_zip(members or {"run.json": content}))


def list_answers(github: FakeGitHub) -> list[str]:
    return [comment["body"] for comment in github.state.list_comments(7)]


def propose_after(jobs: Jobs, head: str, conclusion: str) -> ActionRun:
    """Run the job that proposes, for a comment, after one that measured and ended so."""
    inputs = {"mode": "propose-baselines", "conclusion": conclusion, "head-sha": head, "head-ref": "topic"}
    event = make_comment("/refresh-baselines", "ada", id=0)
    return jobs.run("issue_comment", event, inputs | {"pr-number": "7"})


def test_a_pull_request_that_is_not_opened_is_told_with_the_reason(
    jobs: Jobs, github: FakeGitHub, git: BareRepository
) -> None:
    """The log and the summary have GitHub's own words in brackets, behind the page to open it on."""
    github.state.may_open_pulls = False
    leave_run(github, git.find_ref("heads/topic"))
    proposed = propose_after(jobs, git.find_ref("heads/topic"), "success")
    start = "The new baselines are on a branch; open the pull request yourself: https://github.com/"
    for text in (proposed.log, proposed.summary):
        line = next(one for one in text.splitlines() if one.startswith(start))
        assert "?expand=1 (" in line
        assert line.endswith(")")


def test_values_that_are_stored_already_are_answered(
    jobs: Jobs, github: FakeGitHub, git: BareRepository
) -> None:
    """Nothing changed: no pull request follows, and whoever asked is told."""
    leave_run(github, git.find_ref("heads/topic"))
    assert propose_after(jobs, git.find_ref("heads/topic"), "success").succeeded
    text = git.read(f"compile-gate/baselines/pr-7:{STORED}")
    head = git.commit({"gate.yml": GATE_YML, STORED: text}, branch="topic")
    github.state.artifacts.clear()
    leave_run(github, head)

    run = propose_after(jobs, head, "success")

    assert (run.succeeded, run.outputs["pull-request-url"]) == (True, ""), run.log
    assert list_answers(github)[-1].startswith("Nothing changed: ")


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "skipped"])
def test_what_could_not_be_measured_is_answered(
    jobs: Jobs, github: FakeGitHub, git: BareRepository, conclusion: str
) -> None:
    """An artifact of an earlier attempt is not proposed; the job is red and the comment is answered."""
    head = git.find_ref("heads/topic")
    leave_run(github, head)

    run = propose_after(jobs, head, conclusion)

    assert not run.succeeded
    assert f"the job that measures ended with {conclusion}" in run.log
    (answer,) = list_answers(github)
    assert answer.startswith("The baselines could not be measured: ")
    assert github.list_writes() == ["POST /repos/octo-org/models/issues/7/comments"]


def test_a_refused_run_is_answered_without_its_words(
    jobs: Jobs, github: FakeGitHub, git: BareRepository
) -> None:
    """What is wrong with it stands in the log; the comment has a fixed sentence."""
    head = git.find_ref("heads/topic")
    leave_run(github, head, {"run.json": b'{"@octo-org/all": 1}'})

    run = propose_after(jobs, head, "success")

    assert not run.succeeded
    (answer,) = list_answers(github)
    assert answer.startswith("No baselines are proposed: the log of the job that proposes says why.\n")
    assert "octo-org/all" not in answer


def test_a_reader_gets_nothing(jobs: Jobs, github: FakeGitHub) -> None:
    """Refused, whatever the event calls them; the following jobs see ``authorized`` false."""
    run = jobs.run(
        "issue_comment", make_comment("/refresh-baselines", "eve", id=0), {"mode": "authorize-command"}
    )

    assert (run.steps[0].code, run.outputs["authorized"], run.outputs["head-sha"]) == (2, "false", "")
    assert "this needs the right to write to the repository" in run.log
    assert github.list_writes() == ["POST /repos/octo-org/models/issues/7/comments"]  # the answer


def test_other_comments_are_no_error(jobs: Jobs) -> None:
    """The job ends well and nothing follows."""
    run = jobs.run("issue_comment", make_comment("nice", "eve", id=0), {"mode": "authorize-command"})

    assert (run.succeeded, run.outputs["authorized"]) == (True, "false")


@pytest.mark.parametrize(
    "members",
    [
        {"verdict.json": b"{}"},
        {"run.json": b"not JSON"},
        {"run.json": b'{"schema": "compile-gate/run/1"}'},
        {"../run.json": b"{}"},
        {"run.json": b"[" * 100_000},
        {"run.json": b'{"schema": "compile-gate/run/1", "wall_s": ' + b"9" * 5000 + b"}"},
        {"run.json": b" " * (40 * 1024 * 1024)},
    ],
    ids=["another file", "no JSON", "empty", "outside", "deep", "long number", "large"],
)
def test_a_hostile_run_proposes_nothing(
    github: FakeGitHub,
    git: BareRepository,
    members: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whatever measured code left in place of a run: a message, exit code 2, and nothing written."""
    head = git.find_ref("heads/topic")
    leave_run(github, head, members)
    job = make_job(tmp_path / "job", {"repository": {"id": REPO_ID}})
    job.environ |= {"GITHUB_API_URL": github.api_url, "GITHUB_EVENT_NAME": "workflow_dispatch"}
    for name, value in (job.environ | {"GITHUB_TOKEN": TOKEN, "no_proxy": "*"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(job.workspace))
    monkeypatch.chdir(job.workspace)
    (job.workspace / "gate.yml").write_text("version: 1\nreference_models: false\n")

    code = main(["github", "propose", "--head-sha", head, "--head-ref", "topic"])

    told = capfd.readouterr()
    assert code == 2
    assert "Traceback" not in told.err
    assert TOKEN not in told.out + told.err
    assert github.list_writes() == []


def test_a_pass_is_told_too(jobs: Jobs, github: FakeGitHub) -> None:
    """By default a pass gets its comment, so that a missing one always means trouble."""
    github.state.runs[RUN_ID] |= {"head_sha": SHA, "conclusion": "success"}
    github.state.pulls[7]["head"] |= {"sha": SHA}
    github.state.add_artifact(RUN_ID, "compile-gate", make_archive(make_passing()))

    run = jobs.run("workflow_run", make_workflow_run(github.state.runs[RUN_ID]), {"mode": "publish"})

    assert run.succeeded, run.log
    (comment,) = github.state.comments.values()
    assert (run.outputs["status-state"], run.outputs["comment-url"]) == ("success", comment["html_url"])
    assert "PASS: Nothing got worse" in comment["body"]


def test_the_head_is_never_cloned_by_what_holds_a_token(git: BareRepository, tmp_path: Path) -> None:
    """The clone of these tests, like the workflow's, is the default branch: the topic's file is not there."""
    place = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--branch", "main", str(git.path), str(place)], check=True)

    assert not (place / "model.py").exists()
    assert commit(place, "unchanged") != ""
