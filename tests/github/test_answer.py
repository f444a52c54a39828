"""The answer to a command repeats nothing of the comment, and decides nothing."""

from contextlib import redirect_stdout
from io import StringIO

import pytest
from deliveries import leave_comment
from fake.faults import NO_RIGHT, SECONDARY, Fault
from fake.server import FakeGitHub
from refreshes import make_context

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.comment_command import GOES_ON, Answerer, authorize
from gate.github.transport import GitHubError
from gate.publish.comment_commands import REFRESH_COMMAND, CommandRefusedError

HEAD = "a" * 40
HOSTILE = "/refresh-baselines @octo-org/all ![x](https://evil.example/x.png) ##[add-mask]true"


@pytest.fixture
def ready(github: FakeGitHub) -> FakeGitHub:
    """Pull request 7 from a branch of the repository, and somebody who may write."""
    github.state.add_pull(7, HEAD, branch="topic")
    github.state.permissions = {"octocat": "write", "eve": "read"}
    return github


def ask(
    github: FakeGitHub, client: GitHubClient, body: str, author: str = "octocat", kind: str = "User"
) -> tuple[int, list[str], Exception | None]:
    """Comment, decide and answer; return the comment's id, the log's lines and the error."""
    event = leave_comment(github, body, author, kind)
    context, raised = make_context("issue_comment", event), None
    answerer = Answerer(client, context, REFRESH_COMMAND)
    with redirect_stdout(StringIO()) as printed:
        try:
            with answerer.answering():
                authorization = authorize(client, context, REFRESH_COMMAND)
            if authorization is not None:
                answerer.react(GOES_ON)
        except (UsageError, GitHubError) as error:
            raised = error
    notes = [line for line in printed.getvalue().splitlines() if "asking again" not in line]
    return event["comment"]["id"], notes, raised


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_a_refresh_that_goes_on_gets_eyes_and_a_rocket(ready: FakeGitHub) -> None:
    """Two reactions and no comment: the job that proposes comments on the result."""
    asked, notes, error = ask(ready, ready.client, "/refresh-baselines")

    assert (ready.state.reactions, notes, error) == ({asked: ["eyes", "rocket"]}, [], None)
    assert len(ready.state.list_comments(7)) == 1


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
@pytest.mark.parametrize(
    ("body", "author", "why"),
    [
        ("/refresh-baselines", "eve", "this needs the right to write to the repository."),
        ("/refresh-baselines", "stranger", "this needs the right to write to the repository."),
        (HOSTILE, "octocat", "word 1 after the command cannot be read."),
        ("/refresh-baselines select=a @everyone", "octocat", "word 2 after the command cannot be read."),
        (f"/refresh-baselines {'b' * 40}", "octocat", "the commit in the command is not the head"),
    ],
)
def test_a_refusal_is_answered_with_why(ready: FakeGitHub, body: str, author: str, why: str) -> None:
    """A reaction and a comment with reason, fix and addressee, and nothing of the command."""
    asked, notes, error = ask(ready, ready.client, body, author)

    assert isinstance(error, UsageError)
    assert (ready.state.reactions, notes) == ({asked: ["eyes", "confused"]}, [])
    (answer,) = (comment["body"] for comment in ready.state.list_comments(7)[1:])
    assert answer.startswith("`/refresh-baselines` is refused: ")
    assert why in answer
    assert error.fix in answer
    assert f"https://github.com/octo-org/models/issues/7#issuecomment-{asked}" in answer
    for mark in ("evil", "octo-org/all", "everyone", "##[", "b" * 40, author):
        assert mark not in answer


def test_a_question_that_github_does_not_answer_is_reported_to_the_commenter(ready: FakeGitHub) -> None:
    """The job fails, and the answer shows what to do."""
    ready.fail("GET", r"/permission$", Fault(status=403, message=NO_RIGHT))

    asked, _, error = ask(ready, ready.client, "/refresh-baselines")

    assert isinstance(error, GitHubError)
    assert ready.state.reactions == {asked: ["eyes", "confused"]}
    assert "Comment again later." in ready.state.list_comments(7)[1]["body"]


@pytest.mark.parametrize("kind", ["Bot", "Organization"])
def test_a_bot_is_not_answered(ready: FakeGitHub, kind: str) -> None:
    """Two bots that answer each other would never end."""
    _, _, error = ask(ready, ready.client, "/refresh-baselines", kind=kind)

    assert isinstance(error, UsageError)
    assert ready.list_writes() == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=403, message=NO_RIGHT),
        Fault(status=403, message=SECONDARY, headers={"Retry-After": "60"}),
        Fault(status=404, message="Not Found"),
        Fault(status=422, message="Validation Failed"),
        Fault(status=500),
        Fault(),
        Fault(truncate=True),
    ],
    ids=["no right", "limit", "gone", "invalid", "500", "reset", "truncated"],
)
@pytest.mark.parametrize("is_writer", [True, False])
def test_trouble_in_answering_changes_no_decision(ready: FakeGitHub, fault: Fault, is_writer: bool) -> None:
    """Without the right to react or comment the decision is the same, and the log reports it."""
    broken = Fault(**{**vars(fault), "times": 9})
    ready.fail("POST", r"/(reactions|comments)$", broken)

    _, notes, error = ask(ready, ready.client, "/refresh-baselines", "octocat" if is_writer else "eve")

    assert (error is None) is is_writer
    assert len(notes) == (2 if is_writer else 3)
    assert all(line.startswith("The comment could not be answered: POST ") for line in notes)


@pytest.mark.parametrize("author", ["eve", "stranger"])
def test_a_strangers_words_that_mean_nothing_get_no_comment(ready: FakeGitHub, author: str) -> None:
    """The permission is checked first: otherwise anybody could make the bot comment."""
    asked, _, error = ask(ready, ready.client, HOSTILE, author)

    assert isinstance(error, CommandRefusedError)
    assert "needs the right to write" in error.what
    assert ready.state.reactions == {asked: ["eyes", "confused"]}
    assert len(ready.state.list_comments(7)) == 1
