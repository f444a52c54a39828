"""The job that proposes baselines, and the one that authorises it: log, answer and outputs."""

import pytest
from deliveries import make_comment
from fake.git_routes import BareRepository
from fake.server import FakeGitHub
from records import RUN as CI_RUN
from records import make_zip
from refreshes import GATE_YML, STORED, make_run
from token_job import Ran, TokenJob

from gate.files.codec import RUN


@pytest.fixture(autouse=True)
def git(git: BareRepository, github: FakeGitHub) -> BareRepository:
    """A pull request from the topic branch, with a run of it."""
    head = git.find_ref("heads/topic")
    github.state.permissions = {"ada": "write", "eve": "read"}
    github.state.add_pull(7, head, branch="topic")
    github.state.add_run(CI_RUN.id, head)
    leave(github, RUN.encode(make_run(head)).encode())
    return git


def leave(github: FakeGitHub, content: bytes) -> None:
    """Add a run as the artifact, in place of an earlier one."""
    github.state.artifacts.clear()
    github.state.add_artifact(CI_RUN.id, "compile-gate", make_zip({"run.json": content}))


def propose(job: TokenJob, head: str, conclusion: str = "success") -> Ran:
    """Run the proposing job for a comment, after a measuring job with this conclusion."""
    given = (f"--conclusion={conclusion}", f"--head-sha={head}", "--head-ref=topic", "--pr-number=7")
    event = make_comment("/refresh-baselines", "ada", id=0)
    return job.run("propose", *given, event_name="issue_comment", event=event)


def test_a_pull_request_that_is_not_opened_is_reported_with_the_reason(
    job: TokenJob, github: FakeGitHub, git: BareRepository
) -> None:
    """Log and summary link the page to open it on, with GitHub's own text in brackets."""
    github.state.may_open_pulls = False
    proposed = propose(job, git.find_ref("heads/topic"))
    start = "The new baselines are on a branch; open the pull request yourself: https://github.com/"
    for text in (proposed.log, proposed.summary):
        line = next(line for line in text.splitlines() if line.startswith(start))
        assert "?expand=1 (" in line
        assert line.endswith(")")


def test_values_that_are_stored_already_are_answered(
    job: TokenJob, github: FakeGitHub, git: BareRepository
) -> None:
    """The answer explains that no pull request follows."""
    assert propose(job, git.find_ref("heads/topic")).code == 0
    text = git.read(f"compile-gate/baselines/pr-7:{STORED}")
    head = git.commit({"gate.yml": GATE_YML, STORED: text}, branch="topic")
    leave(github, RUN.encode(make_run(head)).encode())

    run = propose(job, head)

    assert (run.code, run.outputs["pull-request-url"]) == (0, ""), run.log
    assert github.state.list_comments(7)[-1]["body"].startswith("Nothing changed: ")


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "skipped"])
def test_what_could_not_be_measured_is_answered(
    job: TokenJob, github: FakeGitHub, git: BareRepository, conclusion: str
) -> None:
    """An earlier attempt's artifact is not proposed: the job is red and the comment is answered."""
    run = propose(job, git.find_ref("heads/topic"), conclusion)

    assert run.code == 2
    assert f"the job that measures ended with {conclusion}" in run.log
    (answer,) = github.state.list_comments(7)
    assert answer["body"].startswith("The baselines could not be measured: ")
    assert github.list_writes() == ["POST /repos/octo-org/models/issues/7/comments"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"@octo-org/all": 1}',
        b'{"schema": "compile-gate/run/1"}',
        b"[" * 100_000,
        b'{"schema": "compile-gate/run/1", "wall_s": ' + b"9" * 5000 + b"}",
        b" " * (40 * 1024 * 1024),
    ],
    ids=["words", "empty", "deep", "long number", "large"],
)
def test_a_refused_run_is_answered_without_its_words(
    job: TokenJob, github: FakeGitHub, git: BareRepository, content: bytes
) -> None:
    """The log names the mistake; the answer is a fixed sentence, and nothing is written."""
    leave(github, content)

    run = propose(job, git.find_ref("heads/topic"))

    assert run.code == 2
    (answer,) = (comment["body"] for comment in github.state.list_comments(7))
    assert answer.startswith("No baselines are proposed: the log of the job that proposes says why.\n")
    assert "octo-org/all" not in answer
    assert github.list_writes() == ["POST /repos/octo-org/models/issues/7/comments"]


def test_other_comments_are_no_error(job: TokenJob, github: FakeGitHub) -> None:
    """The job is green, without an answer."""
    run = job.run("authorize", event_name="issue_comment", event=make_comment("nice", "eve", id=0))

    assert (run.code, run.outputs["authorized"], github.list_writes()) == (0, "false", [])
