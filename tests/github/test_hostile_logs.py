"""Whatever strangers wrote, the runner of a job with a token executes no command but the job's own.

Artifacts, comments, branches and GitHub's own words go through every command that holds a token, as a
job runs it; what it printed is read by the rules of the runner.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import records
from action.composite import parse_command_file
from deliveries import leave_comment, make_comment, make_workflow_run
from fake.faults import Fault
from fake.git_routes import BareRepository
from fake.server import FakeGitHub
from fake.state import REPO_ID
from hostile_archives import ARCHIVES, COSTLY, encode_verdict, put
from records import RUN, make_zip
from refreshes import CASE, GATE_YML, make_run
from runner_log import STOP, list_commands
from test_log import COMMANDS

from gate.action.modes import run_action
from gate.cli import main
from gate.files.codec import encode
from gate.publish import submitted
from gate.publish.shown import SHOWN_FILE
from gate.records.run import FailureKind
from tests.make import make_failure

TEXT = "\n".join(COMMANDS)
OUTPUTS = re.compile(r"[a-z-]+")


@pytest.fixture
def git(bare: BareRepository, github: FakeGitHub) -> BareRepository:
    """A repository with a pull request, and people of whom one may write."""
    bare.commit({"gate.yml": "version: 1\nreference_models: false\n"}, branch="main")
    head = bare.commit({"gate.yml": GATE_YML}, branch="topic")
    github.state.permissions = {"ada": "write", "eve": "read"}
    github.state.add_pull(7, head, branch="topic")
    github.state.add_run(RUN.id, head)
    return bare


class Job:
    """Runs commands in this process as steps of a job, and reads what its runner would."""

    def __init__(
        self, github: FakeGitHub, place: Path, patch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self._place, self._patch, self._capfd = place, patch, capfd
        patch.setattr(time, "sleep", lambda _: None)
        place.mkdir()
        (place / "gate.yml").write_text(records.GATE_YML)
        patch.chdir(place)
        self._environ = github.environ | {
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": str(RUN.id),
            "GITHUB_WORKSPACE": str(place),
        }

    def run(self, arguments: list[str], event_name: str = "", event: dict[str, Any] | None = None) -> str:
        """Run a command, check what its runner executes and stores, and return what it printed."""
        files = {name: self._place / name for name in ("event", "output", "summary")}
        files["event"].write_text(json.dumps({"repository": {"id": REPO_ID}, **(event or {})}))
        for name in ("output", "summary"):
            files[name].write_text("")
        more = {
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(files["event"]),
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
        }
        for name, value in (self._environ | more).items():
            self._patch.setenv(name, value)
        code = main(arguments)
        return self.check(code, files["output"].read_text())

    def check(self, code: int, outputs: str = "") -> str:
        """Check what was printed since the last time."""
        told = self._capfd.readouterr()
        assert code in {0, 2, 4}, told.err
        assert "Traceback" not in told.err
        check_log(told.out)
        check_log(told.err)
        assert all(OUTPUTS.fullmatch(name) for name in parse_command_file(outputs))
        return told.out + told.err


def check_log(log: str) -> None:
    """Check that a runner finds our annotations in it, also where it does not know of stopping."""
    for found in list_commands(log.replace(STOP, "x")):
        assert found.name in {"error", "notice", "warning"}, log
        assert found.properties.startswith("title=compile-gate"), log
    assert all(len(line) < 5000 and (line.isprintable() or not line) for line in log.split("\n"))


@pytest.fixture
def job(
    github: FakeGitHub,
    git: BareRepository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Job:
    assert git.path.exists()
    return Job(github, tmp_path / "job", monkeypatch, capfd)


# --- verdicts ---


VERDICT_TEXTS = (
    *("comparisons.0.case_id", "environments.0", "baseline_environments.0"),
    *("causes.0.fact.names.location.0", "failures.0.stage", "base.commit"),
)
VERDICT_TROUBLE = (
    *("schema", "outcome", "comparisons.0.metric", "comparisons.0.case_id", "cases.0"),
    *("trials", "comparisons", "machine"),
)


def edit(content: bytes, *places: str, text: str = TEXT) -> bytes:
    """Put a text at places of a JSON file."""
    plain = json.loads(content)
    for place in places:
        put(place, text)(plain)
    return json.dumps(plain).encode()


VERDICTS: dict[str, Callable[[], bytes]] = {
    "every text": lambda: edit(encode_verdict(), *VERDICT_TEXTS),
    **{place: (lambda place=place: edit(encode_verdict(), place)) for place in VERDICT_TROUBLE},  # type: ignore[misc]
    "key": lambda: encode_verdict().replace(b'"outcome"', json.dumps(TEXT).encode()),
    "no JSON": TEXT.encode,
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(job: Job, github: FakeGitHub, git: BareRepository, name: str) -> None:
    """A verdict that is full of commands, on a pull request and as an upgrade."""
    content = VERDICTS[name]()
    github.state.add_artifact(RUN.id, "compile-gate", make_zip({SHOWN_FILE: content}))
    run = github.state.runs[RUN.id]
    delivery = {"workflow_run": make_workflow_run(run)["workflow_run"]}

    told = job.run(["github", "publish", "--run-id", "100"], "workflow_run", delivery)
    run["event"] = "schedule"
    told += job.run(["github", "publish", "--issue", "--run-id", "100"], "schedule")

    assert told
    assert git.find_ref("heads/main")


@pytest.mark.parametrize("name", VERDICTS)
def test_what_is_accepted(job: Job, github: FakeGitHub, git: BareRepository, name: str) -> None:
    """The same verdicts where a writer accepts what regressed, with a reason that is a command."""
    head = git.find_ref("heads/topic")
    github.state.add_artifact(RUN.id, "compile-gate", make_zip({SHOWN_FILE: VERDICTS[name]()}))
    event = leave_comment(github, '/accept-regression reason="##[add-mask]a ::set-env name=x::y"')

    told = job.run(["github", "accept-regression", "--head-sha", head], "issue_comment", event)

    assert "compile-gate: " in told or "accepts " in told
    assert not any(word in told for word in ("add-mask", "set-env", "pwn"))


@pytest.mark.parametrize("name", [name for name in ARCHIVES if name not in COSTLY])
def test_archives(
    job: Job, github: FakeGitHub, git: BareRepository, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archives that hurt, given to each command that reads one."""
    monkeypatch.setattr(submitted, "RUN_MEMBER", SHOWN_FILE)  # as theirs is called
    head = git.find_ref("heads/topic")
    github.state.runs[RUN.id]["event"] = "schedule"
    github.state.add_artifact(RUN.id, "compile-gate", ARCHIVES[name]())

    job.run(["github", "publish", "--run-id", "100"])
    job.run(["github", "publish", "--issue", "--run-id", "100"])
    told = job.run(["github", "propose", "--head-sha", head, "--head-ref", "topic"])

    assert "compile-gate: " in told
    assert len(told) < 3000


# --- runs ---


RUN_TEXTS = (
    *("environment.device_model", "environment.torch", "provenance.author"),
    *("provenance.run_url", "selection", "trials.0.arm"),
)
RUN_TROUBLE = (
    *("schema", "cases.0.id", "cases.0.task", "cases.0.definition", "failures.0.stage", "failures.0.case_id"),
    *("failures.0.kind", "provenance.commit", "trials.0.case_id", "trials", "trials.0.samples", "wall_s"),
    *("provenance.created", "trials.0.started"),
)


def encode_run(head: str) -> bytes:
    """Encode a run with a failure, whose stage is the measured side's word."""
    failure = make_failure(CASE, TEXT, trial=9, kind=FailureKind.ERROR)
    plain = {"schema": "compile-gate/run/1", **encode(make_run(head, failures=(failure,)))}
    return json.dumps(plain).encode()


@pytest.mark.parametrize("place", [*RUN_TROUBLE, "every text", "key", "key of samples", "no JSON", "unfit"])
@pytest.mark.parametrize("text", [TEXT, COMMANDS[0], COMMANDS[2]], ids=["all", "v2", "v1"])
def test_runs(job: Job, github: FakeGitHub, git: BareRepository, place: str, text: str) -> None:
    """A run whose every word is a command, of either spelling, or all of them as lines."""
    head = git.find_ref("heads/topic")
    content = encode_run(head)
    if place == "every text":
        content = edit(content, *RUN_TEXTS, text=text).replace(b'"failures": [', b'"failures": [], "x": [')
        content = json.dumps({key: item for key, item in json.loads(content).items() if key != "x"}).encode()
    elif place in RUN_TROUBLE:
        content = edit(content, place, text=text)
    elif place.startswith("key"):
        old = b'"compiled_latency"' if place == "key of samples" else b'"selection"'
        content = content.replace(old, json.dumps(text).encode())
    elif place == "no JSON":
        content = text.encode()
    github.state.add_artifact(RUN.id, "compile-gate", make_zip({"run.json": content}))

    told = job.run(["github", "propose", "--head-sha", head, "--head-ref", "topic"])

    assert len(told) < 3000
    assert ("The new baselines are proposed" in told) is (place == "every text"), told
    assert not any(word in told for word in ("add-mask", "set-env", "pwn", "authorized::true"))


# --- comments and branches ---


@pytest.mark.parametrize("command", [*COMMANDS, "@octocat", "select=" + "x" * 600])
@pytest.mark.parametrize("asked", ["refresh-baselines", "accept-regression"])
def test_comments(job: Job, github: FakeGitHub, command: str, asked: str) -> None:
    """Anybody may comment, and the first words are read before it is asked who wrote them."""
    event = leave_comment(github, f"/{asked} {command} reason={command}\n{TEXT}", "eve")

    told = job.run(["github", "authorize", "--command", asked], "issue_comment", event)

    assert "after the command cannot be read" in told or "right to write" in told or "reason" in told
    assert not any(word in told for word in ("add-mask", "set-env", "pwn"))


@pytest.mark.parametrize("command", COMMANDS)
def test_names_that_github_tells(job: Job, github: FakeGitHub, command: str) -> None:
    """A branch, an event, a login and an error of GitHub's may be called anything."""
    github.state.pulls[7]["head"]["ref"] = command
    event = make_comment("/refresh-baselines", "ada")
    job.run(["github", "authorize"], "issue_comment", event)
    job.run(["github", "authorize"], command, event)
    job.run(["github", "authorize"], "issue_comment", make_comment("/refresh-baselines", command))
    job.run(["github", "authorize"], "workflow_dispatch", {"ref": command, "inputs": {"select": command}})
    github.fail(
        "GET",
        "/permission$",
        Fault(status=403, message=command, headers={"X-Accepted-GitHub-Permissions": "a"}),
    )
    job.run(["github", "authorize"], "issue_comment", event)
    github.fail("GET", "/actions/runs/100$", Fault(status=422, message=command))
    job.run(["github", "publish", "--run-id", "100"])
    github.violations.clear()  # names as GitHub would not give them


@pytest.mark.parametrize("command", COMMANDS)
def test_inputs_of_the_action(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What an input is refused for is told in an annotation; another command it is not."""
    monkeypatch.chdir(tmp_path)
    for name in ("HEAD_REF", "HEAD_SHA", "REASON", "RUN_ID", "WORKING_DIRECTORY", "CONFIG", "STATUS"):
        environ = {"INPUT_MODE": "propose-baselines", "INPUT_TOKEN": "t", f"INPUT_{name}": command}
        assert run_action(environ) == 2
        told = capfd.readouterr()
        check_log(told.out)
        check_log(told.err)
        assert "::error title=compile-gate::" in told.out
