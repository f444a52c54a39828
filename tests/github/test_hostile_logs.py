"""No text of strangers makes the runner of a job with a token execute a command.

Artifacts, comments, branches and GitHub's own texts go through every command that holds a token; its output
is read by the runner's rules.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from deliveries import leave_comment, make_comment, make_workflow_run
from fake.faults import Fault
from fake.git_routes import BareRepository
from fake.issue_routes import list_issues
from fake.server import FakeGitHub
from hostile_archives import ARCHIVES, MARKS, encode_verdict, put
from records import RUN, make_zip
from refreshes import CASE, make_run
from test_log import COMMANDS
from token_job import TokenJob, check_log

from gate.action.modes import run_action
from gate.files.codec import encode
from gate.publish import submitted
from gate.publish.shown import SHOWN_FILE
from gate.records.run import FailureKind
from tests.make import make_failure

TEXT = "\n".join(COMMANDS)


@pytest.fixture(autouse=True)
def git(git: BareRepository, github: FakeGitHub) -> BareRepository:
    """A repository with a pull request, and users of whom one may write."""
    head = git.find_ref("heads/topic")
    github.state.permissions = {"ada": "write", "eve": "read"}
    github.state.add_pull(7, head, branch="topic")
    github.state.add_run(RUN.id, head)
    return git


# --- verdicts ---


VERDICT_TEXTS = (
    *("comparisons.0.case_id", "environments.0", "baseline_environments.0"),
    *("causes.0.fact.names.location.0", "failures.0.stage", "base.commit"),
)
VERDICT_TROUBLE = (
    *("schema", "outcome", "comparisons.0.metric", "comparisons.0.case_id", "cases.0"),
    *("trials", "comparisons", "machine"),
)


def edit(content: bytes, *paths: str, text: str = TEXT) -> bytes:
    """Put a text at paths of a JSON file."""
    plain = json.loads(content)
    for path in paths:
        put(path, text)(plain)
    return json.dumps(plain).encode()


VERDICTS: dict[str, Callable[[], bytes]] = {
    "every text": lambda: edit(encode_verdict(), *VERDICT_TEXTS),
    **{path: (lambda path=path: edit(encode_verdict(), path)) for path in VERDICT_TROUBLE},  # type: ignore[misc]
    "key": lambda: encode_verdict().replace(b'"outcome"', json.dumps(TEXT).encode()),
    "no JSON": TEXT.encode,
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(job: TokenJob, github: FakeGitHub, name: str) -> None:
    """A verdict that is full of commands, on a pull request and as an upgrade."""
    content = VERDICTS[name]()
    github.state.add_artifact(RUN.id, "compile-gate", make_zip({SHOWN_FILE: content}))
    run = github.state.runs[RUN.id]
    delivery = {"workflow_run": make_workflow_run(run)["workflow_run"]}

    first = job.run("publish", "--run-id", "100", event_name="workflow_run", event=delivery)
    run["event"] = "schedule"
    second = job.run("publish", "--issue", "--run-id", "100", event_name="schedule")

    assert [published.outputs["verdict"] for published in (first, second)] == ["INCOMPLETE"] * 2
    assert len(github.state.list_comments(7)) == len(list_issues(github.state)) == 1


@pytest.mark.parametrize("name", VERDICTS)
def test_what_is_accepted(job: TokenJob, github: FakeGitHub, git: BareRepository, name: str) -> None:
    """The same verdicts when a writer accepts a regression, with a command as the reason."""
    head = git.find_ref("heads/topic")
    github.state.add_artifact(RUN.id, "compile-gate", make_zip({SHOWN_FILE: VERDICTS[name]()}))
    event = leave_comment(github, '/accept-regression reason="##[add-mask]a ::set-env name=x::y"')

    log = job.run("accept-regression", "--head-sha", head, event_name="issue_comment", event=event).log

    assert "compile-gate: " in log or "accepts " in log
    assert not any(word in log for word in ("add-mask", "set-env", "pwn"))


# An archive for each sentence that one is refused with: test_artifact.py plays the whole corpus.
REFUSED = ("zip slip", "cut in half", "many members", "lone surrogate", "newer schema")


@pytest.mark.parametrize("name", REFUSED)
def test_archives(
    job: TokenJob, github: FakeGitHub, git: BareRepository, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a malicious archive is shown or stored by any command that reads one."""
    monkeypatch.setattr(submitted, "RUN_MEMBER", SHOWN_FILE)  # as theirs is called
    head, state = git.find_ref("heads/topic"), github.state
    state.add_artifact(RUN.id, "compile-gate", ARCHIVES[name]())
    comment = leave_comment(github, '/accept-regression reason="worth it"')
    given = ("--head-sha", head)

    runs = [
        job.run("publish", "--run-id", "100"),
        job.run("accept-regression", *given, event_name="issue_comment", event=comment),
        job.run("propose", *given, "--head-ref", "topic"),
    ]
    state.runs[RUN.id]["event"] = "schedule"
    runs.append(job.run("publish", "--issue", "--run-id", "100"))

    assert [run.code for run in runs] == [0, 2, 2, 0]
    assert [runs[index].outputs["verdict"] for index in (0, 3)] == ["INCOMPLETE"] * 2
    posts = [*state.list_comments(7), *list_issues(state).values()]
    assert posts[2]["body"].startswith("`/accept-regression` is refused: the ")
    outputs = [post["body"] for post in posts] + [run.log + run.summary for run in runs]
    assert [(mark, text) for mark in MARKS for text in outputs if mark in text] == []
    assert state.runs[RUN.id]["run_attempt"] == 1
    assert not any("/git/" in write or "/pulls" in write for write in github.list_writes())


# --- runs ---


RUN_TEXTS = (
    *("environment.device_model", "environment.torch", "provenance.author"),
    *("provenance.run_url", "selection"),
)
RUN_TROUBLE = (
    *("schema", "cases.0.id", "cases.0.task", "cases.0.definition", "failures.0.stage", "failures.0.case_id"),
    *("failures.0.kind", "provenance.commit", "trials.0.case_id", "trials", "trials.0.samples", "wall_s"),
    *("provenance.created", "trials.0.started", "trials.0.arm"),
)


def encode_run(head: str) -> bytes:
    """Encode a run with a failure, whose stage the measured side names."""
    failure = make_failure(CASE, TEXT, trial=9, kind=FailureKind.ERROR)
    plain = {"schema": "compile-gate/run/1", **encode(make_run(head, failures=(failure,)))}
    return json.dumps(plain).encode()


ALL_RUN_TROUBLE = (*RUN_TROUBLE, "every text", "key", "key of samples", "no JSON", "unfit")
SPELLINGS = {"v2": COMMANDS[0], "v1": COMMANDS[2]}  # by themselves where a text may come through


@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        *(pytest.param(trouble, TEXT, id=f"{trouble}-all") for trouble in ALL_RUN_TROUBLE),
        *(
            pytest.param(trouble, text, id=f"{trouble}-{spelling}")
            for trouble in ("every text", "unfit", "failures.0.case_id", "key")
            for spelling, text in SPELLINGS.items()
        ),
    ],
)
def test_runs(job: TokenJob, github: FakeGitHub, git: BareRepository, trouble: str, text: str) -> None:
    """A run whose every word is a command, of either spelling, or all of them as lines."""
    head = git.find_ref("heads/topic")
    content = encode_run(head)
    if trouble == "every text":
        content = edit(content, *RUN_TEXTS, text=text).replace(b'"failures": [', b'"failures": [], "x": [')
        content = json.dumps({key: item for key, item in json.loads(content).items() if key != "x"}).encode()
    elif trouble in RUN_TROUBLE:
        content = edit(content, trouble, text=text)
    elif trouble.startswith("key"):
        old = b'"compiled_latency"' if trouble == "key of samples" else b'"selection"'
        content = content.replace(old, json.dumps(text).encode())
    elif trouble == "no JSON":
        content = text.encode()
    github.state.add_artifact(RUN.id, "compile-gate", make_zip({"run.json": content}))

    log = job.run("propose", "--head-sha", head, "--head-ref", "topic").log

    assert len(log) < 3000
    assert ("The new baselines are proposed" in log) is (trouble == "every text"), log
    assert not any(word in log for word in ("add-mask", "set-env", "pwn", "authorized::true"))


# --- comments and branches ---


@pytest.mark.parametrize("command", [*COMMANDS, "@octocat", "select=" + "x" * 600])
@pytest.mark.parametrize("asked", ["refresh-baselines", "accept-regression"])
def test_comments(job: TokenJob, github: FakeGitHub, command: str, asked: str) -> None:
    """Anybody may comment, and the first words are read before the permission is checked."""
    event = leave_comment(github, f"/{asked} {command} reason={command}\n{TEXT}", "eve")

    log = job.run("authorize", "--command", asked, event_name="issue_comment", event=event).log

    assert "after the command cannot be read" in log or "right to write" in log or "reason" in log
    assert not any(word in log for word in ("add-mask", "set-env", "pwn"))


@pytest.mark.parametrize("command", COMMANDS)
def test_names_from_github(job: TokenJob, github: FakeGitHub, command: str) -> None:
    """A branch, an event, a login and an error of GitHub may have any text."""
    github.state.pulls[7]["head"]["ref"] = command
    event = make_comment("/refresh-baselines", "ada")
    runs = [
        job.run("authorize", event_name="issue_comment", event=event),
        job.run("authorize", event_name=command, event=event),
        job.run("authorize", event_name="issue_comment", event=make_comment("/refresh-baselines", command)),
        job.run(
            "authorize", event_name="workflow_dispatch", event={"ref": command, "inputs": {"select": command}}
        ),
    ]
    github.fail(
        "GET",
        "/permission$",
        Fault(status=403, message=command, headers={"X-Accepted-GitHub-Permissions": "a"}),
    )
    runs.append(job.run("authorize", event_name="issue_comment", event=event))
    github.fail("GET", "/actions/runs/100$", Fault(status=422, message=command))
    runs.append(job.run("publish", "--run-id", "100"))
    github.violations.clear()  # names as GitHub would not give them
    assert [run.code for run in runs] == [0, 2, 2, 2, 4, 0]
    words = ("by the event", "by a person", "a refresh is for a branch", "answers 403", "answers 422")
    assert [word for word, run in zip(words, runs[1:], strict=True) if word not in run.log] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_inputs_of_the_action(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A refused input is shown in an annotation, and is no other command."""
    monkeypatch.chdir(tmp_path)
    for name in ("HEAD_REF", "HEAD_SHA", "REASON", "RUN_ID", "WORKING_DIRECTORY", "CONFIG", "STATUS"):
        environ = {"INPUT_MODE": "propose-baselines", "INPUT_TOKEN": "t", f"INPUT_{name}": command}
        assert run_action(environ) == 2
        printed = capfd.readouterr()
        check_log(printed.out)
        check_log(printed.err)
        assert "::error title=compile-gate::" in printed.out
