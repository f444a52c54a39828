"""Authors, pull requests, commits and words of a command in a comment."""

from collections.abc import Callable
from typing import Any

import pytest
from deliveries import ASKED, make_comment
from fake.faults import NO_RIGHT, Fault
from fake.server import FakeGitHub
from fake.state import FORK_ID, OWNER, REPO_ID
from refreshes import make_context

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.comment_command import authorize as authorize_command
from gate.github.comment_command import describe_protection, find_command, make_outputs
from gate.github.transport import GitHubError
from gate.publish.comment_commands import (
    ACCEPT_COMMAND,
    REFRESH_COMMAND,
    AuthorizedCommand,
    CommandRefusedError,
    CommandWords,
    parse_words,
    split_command,
)

HEAD = "a" * 40
REFRESH = f"{REFRESH_COMMAND} select=tag:smoke"
ACCEPT = f'{ACCEPT_COMMAND} reason="worth it"'
both = pytest.mark.parametrize("body", [REFRESH, ACCEPT])


def authorize(client: GitHubClient, event: dict[str, Any], name: str = "") -> AuthorizedCommand | None:
    """Decide about the command that a comment begins with, or about another."""
    name = name or event["comment"]["body"].split()[0]
    context = make_context("issue_comment", event)
    return authorize_command(client, context, name)


@pytest.fixture
def ready(github: FakeGitHub) -> FakeGitHub:
    """A pull request from a branch of the repository, and a user who may write."""
    github.state.add_pull(7, HEAD, branch="topic")
    github.state.permissions = {"octocat": "write"}
    return github


def test_a_refresh_is_pinned_to_the_head_of_the_moment(ready: FakeGitHub) -> None:
    """GitHub names commit and branch, the comment the selection; two requests decide."""
    authorization = authorize(ready.client, make_comment(REFRESH))

    assert make_outputs(REFRESH_COMMAND, authorization) == {
        "authorized": "true",
        "head-sha": HEAD,
        "head-ref": "topic",
        "select": "tag:smoke",
        "pr-number": 7,
    }
    assert [(seen.method, seen.path) for seen in ready.requests] == [
        ("GET", f"/repos/{OWNER}/models/collaborators/octocat/permission"),
        ("GET", f"/repos/{OWNER}/models/pulls/7"),
    ]


@pytest.mark.parametrize(("owner", "repository"), [("mallory", FORK_ID), (OWNER, REPO_ID)])
def test_a_writer_accepts_the_head_of_the_moment_also_a_forks(
    ready: FakeGitHub, owner: str, repository: int
) -> None:
    """Nothing of the fork runs; GitHub names the author and the commit."""
    ready.state.add_pull(7, HEAD, owner=owner)
    assert authorize(ready.client, make_comment(ACCEPT)) == AuthorizedCommand(
        author="octocat",
        asked=ASKED,
        head_sha=HEAD,
        head_branch="topic",
        head_repository=repository,
        pr_number=7,
        words=CommandWords(reason="worth it"),
    )
    assert ready.list_writes() == []


@both
def test_a_permission_that_cannot_be_asked_for_is_none(ready: FakeGitHub, body: str) -> None:
    """A 403 of the permission API refuses the command."""
    ready.fail("GET", r"/permission$", Fault(status=403, message=NO_RIGHT))

    with pytest.raises(GitHubError):
        authorize(ready.client, make_comment(body))


def test_a_forks_code_is_not_measured(ready: FakeGitHub) -> None:
    """Whatever the commenter's rights; a deleted fork's repository is null."""
    ready.state.add_pull(7, HEAD, owner="mallory")
    ready.state.pulls[7]["head"]["repo"] = None

    with pytest.raises(CommandRefusedError, match="comes from a fork"):
        authorize(ready.client, make_comment(REFRESH))
    ready.violations.clear()  # GitHub's description says that it is never null; GitHub sends it all the same


@both
@pytest.mark.parametrize(
    ("comment", "words"),
    [
        (lambda body: make_comment(body) | {"issue": {"number": 7}}, "works on pull requests only"),
        (lambda body: make_comment(body) | {"issue": {"number": 8, "pull_request": {}}}, "is closed"),
        *((lambda body, kind=kind: make_comment(body, kind=kind), "by a person") for kind in ("Bot", "")),
        (lambda body: make_comment(body, "eve"), "needs the right to write"),
        (lambda body: make_comment(body) | {"repository": {"id": 4711}}, "does not name"),
    ],
)
def test_a_refusal_names_its_reason(
    ready: FakeGitHub, body: str, comment: Callable[[str], dict[str, Any]], words: str
) -> None:
    """An issue, a closed pull request, a bot and an unknown user."""
    ready.state.add_pull(8, HEAD)["state"] = "closed"

    with pytest.raises(CommandRefusedError, match=words):
        authorize(ready.client, comment(body))


def test_a_comment_command_gets_a_pull_of_this_repository_alone(ready: FakeGitHub) -> None:
    """An answer about another repository's is none about the comment's."""
    ready.state.pulls[7]["base"]["repo"]["id"] = 4711

    with pytest.raises(CommandRefusedError, match="does not name the pull request's head") as caught:
        authorize(ready.client, make_comment(ACCEPT))
    assert caught.value.fix == "Try again later."


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": 5}, (5, ASKED, "octocat")),
        ({"id": "5", "created_at": "soon", "user": None}, (0, "", None)),
    ],
)
def test_find_command_in_a_comment(fields: dict[str, Any], expected: tuple[object, ...]) -> None:
    """What GitHub does not say is no id, no time and nobody."""
    context = make_context("issue_comment", make_comment(ACCEPT, **fields))

    command = find_command(context, ACCEPT_COMMAND)

    assert command is not None
    assert (command.comment_id, command.created, command.user.get("login")) == expected
    assert (command.number, command.is_on_pull, command.words) == (7, True, ('reason="worth', 'it"'))


@both
@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("sha", "is_head"),
    [(HEAD, True), (HEAD[:7], True), ("b" * 40, False), ("b" * 7, False)],
)
def test_a_commit_in_the_comment_must_be_the_head(
    client: GitHubClient, body: str, sha: str, is_head: bool
) -> None:
    """A reviewer can name the commit that they read, so a later push is refused."""
    event = make_comment(f"{body} {sha}")

    if is_head:
        assert authorize(client, event) is not None
    else:
        with pytest.raises(
            CommandRefusedError, match=f"is not the head of the pull request, which is {HEAD[:12]}"
        ):
            authorize(client, event)


@both
@pytest.mark.parametrize(
    ("action", "comment"),
    [("edited", "{}"), ("deleted", "{}"), ("created", "please {}"), ("created", "/accept-regressions {}")],
)
def test_what_is_no_new_command_asks_for_nothing(
    ready: FakeGitHub, body: str, action: str, comment: str
) -> None:
    """Edited and deleted comments, and other first words, send no request."""
    event = make_comment(comment.format(body)) | {"action": action}

    assert authorize(ready.client, event, body.split(maxsplit=1)[0]) is None
    assert ready.requests == []


@pytest.mark.parametrize(
    ("name", "event"), [(REFRESH_COMMAND, "pull_request_target"), (ACCEPT_COMMAND, "workflow_dispatch")]
)
def test_other_events_cannot_ask(client: GitHubClient, name: str, event: str) -> None:
    """A workflow that another event starts gets an error."""
    with pytest.raises(UsageError, match=f"cannot be asked for by the event '{event}'"):
        authorize_command(client, make_context(event, {}), name)


@pytest.mark.usefixtures("ready")
def test_a_dispatch_is_for_its_branch_and_its_commit(client: GitHubClient) -> None:
    """The permission of the user who starts it is checked too."""
    event = {
        "ref": "refs/heads/feature/x",
        "inputs": {"select": "bert/*"},
        "sender": {"login": "octocat", "type": "User"},
    }
    context = make_context("workflow_dispatch", event, sha=HEAD)

    authorization = authorize_command(client, context, REFRESH_COMMAND)

    words = CommandWords(select="bert/*")
    assert authorization == AuthorizedCommand(
        head_sha=HEAD, head_branch="feature/x", words=words, author="octocat"
    )
    assert make_outputs(REFRESH_COMMAND, authorization)["pr-number"] == ""


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"ref": "refs/tags/v1"}, "is for a branch"),
        ({"ref": "refs/heads/x", "inputs": {"select": "$(id)"}}, "is not a selection"),
        ({"ref": "refs/heads/x", "sender": {"login": "reader", "type": "User"}}, "needs the right to write"),
    ],
)
def test_a_dispatch_that_may_not_go_on(client: GitHubClient, event: dict[str, Any], words: str) -> None:
    """A tag, a wrong selection, and a user who may only read."""
    sender = {"sender": {"login": "octocat", "type": "User"}}

    with pytest.raises(UsageError, match=words):
        authorize_command(
            client, make_context("workflow_dispatch", sender | event, sha=HEAD), REFRESH_COMMAND
        )


def parse_body(body: str) -> CommandWords | None:
    """Parse a comment's text as a refresh; ``None`` if it is none."""
    words = split_command(body, REFRESH_COMMAND)
    return None if words is None else parse_words(REFRESH_COMMAND, words)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("/refresh-baselines", CommandWords()),
        ("  /refresh-baselines  \r\nbecause of #12\n", CommandWords()),
        (
            "/refresh-baselines select=tag:smoke,!bert/* abcdef1",
            CommandWords(select="tag:smoke,!bert/*", sha="abcdef1"),
        ),
        ("/refresh-baselines abcdef1 select=a", CommandWords(select="a", sha="abcdef1")),
        ("/refresh-baselines-now", None),
        ("> /refresh-baselines", None),
        ("thanks!\n/refresh-baselines", None),
        ("", None),
    ],
)
def test_the_command_is_the_first_line(body: str, expected: CommandWords | None) -> None:
    """Quotes, other first words and other commands do not count; words may come in any order."""
    assert parse_body(body) == expected


@pytest.mark.parametrize(
    "words",
    [
        "tag:smoke",
        "select=",
        "select=$(id)",
        "select=-x",
        "ABCDEF1",
        "abcdef",
        "a" * 41,
        "select=a select=b",
        "--help",
    ],
)
def test_a_word_that_means_nothing_is_an_error(words: str) -> None:
    """A mistyped selection must not refresh everything."""
    with pytest.raises(CommandRefusedError, match=r"^word [12] after the command cannot be read\n"):
        parse_body(f"/refresh-baselines {words}")


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
@pytest.mark.parametrize(
    ("environments", "warning"),
    [
        ({}, "There is no environment refresh-baselines"),
        ({"refresh-baselines": []}, "The environment refresh-baselines has no reviewers."),
        ({"refresh-baselines": ["wait_timer", "branch_policy"]}, "has no reviewers."),
        ({"refresh-baselines": ["required_reviewers"]}, ""),
    ],
)
def test_an_environment_that_nobody_guards_is_reported(
    ready: FakeGitHub, environments: dict[str, list[str]], warning: str
) -> None:
    """A missing environment, or one without reviewers, would let the refresh run on its own."""
    ready.state.environments = environments

    lack = describe_protection(ready.client)

    assert warning in lack
    assert bool(lack) is bool(warning)
