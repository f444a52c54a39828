"""The comment's life: found by marker and author, the newest run wins, races leave one comment."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from fake.clock import FakeClock
from fake.faults import Fault
from fake.server import FakeGitHub
from records import SHA

from gate.github.client import GitHubClient, Patience
from gate.github.sticky import DEFAULT_AUTHOR, Action, Draft, StickyComment, Written
from gate.github.transport import DeniedError, UncertainWriteError
from gate.publish.body import Marker, render_marker

WORKFLOW = ".github/workflows/gate.yml"


@pytest.fixture(autouse=True)
def _pull(github: FakeGitHub) -> None:
    github.state.add_pull(7, SHA)
    for run_id in range(99, 111):
        github.state.add_run(run_id, SHA)["run_attempt"] = 2


def make_draft(run_id: int = 100, attempt: int = 1, text: str = "text", **more: Any) -> Draft:
    marker = Marker(key="default", run_id=run_id, attempt=attempt, head_sha=SHA)
    body = f"{render_marker(marker)}\n{text} of run {run_id}.{attempt}"
    return Draft(**({"workflow": WORKFLOW} | more), marker=marker, body=body)


def make_sticky(client: GitHubClient) -> StickyComment:
    return StickyComment(client, DEFAULT_AUTHOR, "issues/7/comments")


def stay() -> bool:
    """The pull request's head did not move."""
    return False


def write(client: GitHubClient, draft: Draft) -> Written:
    return make_sticky(client).write(draft, stay)


def list_bodies(github: FakeGitHub) -> list[str]:
    return [comment["body"] for comment in github.state.list_comments(7)]


@pytest.mark.parametrize("others", [0, 30, 31, 150])
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_among_others(github: FakeGitHub, others: int) -> None:
    """Our comment is created once and found again behind any number of others."""
    for index in range(others):
        github.state.add_comment(7, f"comment {index}")
    assert write(github.client, make_draft(100)).action is Action.CREATED
    for index in range(others):
        github.state.add_comment(7, f"later comment {index}")
    assert write(github.client, make_draft(101)).action is Action.UPDATED
    ours = [body for body in list_bodies(github) if "compile-gate" in body]
    assert ours == [make_draft(101).body]
    assert len(github.requests) <= 12


def test_same_again(github: FakeGitHub) -> None:
    """The same text is not written twice, even where GitHub trimmed it and changed its line ends.

    One request shows it: neither the run nor the pull request is looked up.
    """
    draft = make_draft()
    comment = github.state.add_comment(7, draft.body.replace("\n", "\r\n") + "\r\n", DEFAULT_AUTHOR)
    written = make_sticky(github.client).write(draft, pytest.fail)
    assert written == Written(action=Action.UNCHANGED, url=comment["html_url"])
    assert [seen.method for seen in github.requests] == ["GET"]


def test_the_same_run_with_another_text(github: FakeGitHub) -> None:
    """Whoever publishes an attempt again replaces its text."""
    github.state.add_comment(7, make_draft(100, text="old").body, DEFAULT_AUTHOR)
    assert write(github.client, make_draft(100, text="new")).action is Action.UPDATED
    assert list_bodies(github) == [make_draft(100, text="new").body]


@pytest.mark.parametrize(
    ("theirs", "ours", "action"),
    [
        ("2026-11-01T11:00:00Z", "2026-11-01T12:00:00Z", Action.UPDATED),
        ("2026-11-01T12:00:00Z", "2026-11-01T12:00:00Z", Action.NEWER),
        ("2026-11-01T13:00:00Z", "2026-11-01T12:00:00Z", Action.NEWER),
    ],
)
def test_a_run_that_was_started_again(github: FakeGitHub, theirs: str, ours: str, action: Action) -> None:
    """Of two runs of one commit the one that was started last is the newer, whatever their numbers."""
    github.state.runs[101]["run_started_at"] = theirs
    github.state.add_comment(7, make_draft(101).body, DEFAULT_AUTHOR)
    draft = make_draft(100, 2)
    draft = replace(draft, marker=replace(draft.marker, started=ours))
    assert write(github.client, draft).action is action


def test_a_newer_commit_whose_run_was_started_earlier(github: FakeGitHub) -> None:
    """The run of another commit is the newer by its number."""
    newer = replace(make_draft(101).marker, head_sha="b" * 40)
    github.state.runs[101] |= {"head_sha": newer.head_sha, "run_started_at": "2026-11-01T11:00:00Z"}
    github.state.add_comment(7, render_marker(newer), DEFAULT_AUTHOR)
    draft = make_draft(100, 2)
    draft = replace(draft, marker=replace(draft.marker, started="2026-11-01T12:00:00Z"))
    assert write(github.client, draft).action is Action.NEWER


@pytest.mark.parametrize("newer", [make_draft(101), make_draft(100, 2)])
def test_newer_run(github: FakeGitHub, newer: Draft) -> None:
    """A comment of a newer run, or of a newer attempt, is left alone."""
    comment = github.state.add_comment(7, newer.body, DEFAULT_AUTHOR)
    assert write(github.client, make_draft(100)) == Written(action=Action.NEWER, url=comment["html_url"])
    assert github.list_writes() == []


FORGED = (
    Marker(key="default", run_id=int("9" * 19), attempt=1, head_sha=SHA),
    Marker(key="default", run_id=110, attempt=999, head_sha=SHA),
    Marker(key="default", run_id=110, attempt=1, head_sha="f" * 40),
)


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("run_id", [1, 100])
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_marker_of_a_run_that_is_none(github: FakeGitHub, run_id: int, forged: Marker) -> None:
    """A first line that a stranger chose must not silence verdicts for ever."""
    github.state.add_comment(7, f"{render_marker(forged)}\nnews", DEFAULT_AUTHOR)
    assert write(github.client, make_draft(run_id)).action is Action.UPDATED
    assert list_bodies(github) == [make_draft(run_id).body]


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_marker_of_another_workflows_run(github: FakeGitHub) -> None:
    """A newer run of another workflow silences no verdict."""
    github.state.runs[110]["path"] = ".github/workflows/lint.yml"
    github.state.add_comment(7, make_draft(110).body, DEFAULT_AUTHOR)
    assert write(github.client, make_draft(100)).action is Action.UPDATED
    assert list_bodies(github) == [make_draft(100).body]


def test_foreign_markers(github: FakeGitHub) -> None:
    """A marker in somebody else's comment, in a quote or of another key does not count."""
    foreign = [
        github.state.add_comment(7, make_draft(999).body, "mallory"),
        github.state.add_comment(7, make_draft(999).body, "other[bot]"),
        github.state.add_comment(7, "> " + make_draft(999).body, DEFAULT_AUTHOR),
        github.state.add_comment(7, make_draft(999).body.replace("key=default", "key=gpu"), DEFAULT_AUTHOR),
    ]
    before = [comment["body"] for comment in foreign]
    assert write(github.client, make_draft(100)).action is Action.CREATED
    assert list_bodies(github) == [*before, make_draft(100).body]


def test_comment_of_nobody(github: FakeGitHub) -> None:
    """A comment whose author's account is gone is passed over."""
    github.state.add_comment(7, make_draft(999).body)["user"] = None
    assert write(github.client, make_draft(100)).action is Action.CREATED


def test_a_comment_is_looked_for_after_the_pause_between_writes(github: FakeGitHub, clock: FakeClock) -> None:
    """Nothing of another publisher's comes between looking and writing."""
    slept: list[list[float]] = []
    github.client.post("issues/7/comments", {"body": "somebody's"})
    github.call_before("GET", "/comments$", lambda: slept.append([*clock.slept]))
    assert write(github.client, make_draft()).action is Action.CREATED
    assert slept == [[1.0], [1.0]]


def test_not_wanted(github: FakeGitHub) -> None:
    """No first comment is written where none is wanted; an existing one is updated."""
    draft = make_draft(101, is_wanted=False)
    assert write(github.client, draft).action is Action.NOT_WANTED
    assert github.list_writes() == []
    github.state.add_comment(7, make_draft(100).body, DEFAULT_AUTHOR)
    assert write(github.client, draft).action is Action.UPDATED
    assert list_bodies(github) == [draft.body]


@pytest.mark.parametrize("exists", [True, False])
def test_moved(github: FakeGitHub, exists: bool) -> None:
    """Nothing is written once the head has moved."""
    if exists:
        github.state.add_comment(7, make_draft(99).body, DEFAULT_AUTHOR)
    written = make_sticky(github.client).write(make_draft(100), lambda: True)
    assert written.action is Action.SUPERSEDED
    assert github.list_writes() == []


def test_duplicates(github: FakeGitHub) -> None:
    """Of several comments of ours the oldest is kept and gets the text; the others are deleted."""
    comments = [github.state.add_comment(7, make_draft(run).body, DEFAULT_AUTHOR) for run in (98, 97, 99)]
    other = github.state.add_comment(7, "somebody's")
    assert write(github.client, make_draft(100)).action is Action.UPDATED
    left = github.state.list_comments(7)
    assert [comment["id"] for comment in left] == [comments[0]["id"], other["id"]]
    assert left[0]["body"] == make_draft(100).body


@pytest.mark.parametrize(
    "fault",
    [Fault(applied=True), Fault(status=502, applied=True), Fault(truncate=True), Fault(), Fault(status=504)],
    ids=["reset after", "502 after", "cut short", "reset before", "504 before"],
)
def test_lost_answer(github: FakeGitHub, fault: Fault) -> None:
    """A POST whose answer is lost leads to one comment, whether it took effect or not."""
    github.fail("POST", "/comments$", Fault(**vars(fault)))
    assert write(github.client, make_draft()).action is Action.CREATED
    assert list_bodies(github) == [make_draft().body]


def test_a_comment_that_is_not_listed_yet_is_the_one(github: FakeGitHub) -> None:
    """GitHub's lists lag: what it answers to the creation is used."""
    github.fail("GET", "/comments$", Fault(status=200, body=b"[]", times=2))
    written = write(github.client, make_draft())
    (comment,) = github.state.list_comments(7)
    assert written == Written(action=Action.CREATED, url=comment["html_url"])
    assert len(github.list_writes()) == 1


def test_lost_twice(github: FakeGitHub) -> None:
    """After two lost answers in a row the client gives up; nothing is doubled."""
    github.fail("POST", "/comments$", Fault(times=2))
    with pytest.raises(UncertainWriteError):
        write(github.client, make_draft())
    assert list_bodies(github) == []


def test_locked(github: FakeGitHub) -> None:
    """A locked conversation is an error that is reported."""
    github.state.pulls[7]["locked"] = True
    with pytest.raises(DeniedError, match="issue is locked"):
        write(github.client, make_draft())


def race(github: FakeGitHub, *runs: int) -> None:
    """Release the publishers once all have listed the comments and none has written."""
    barrier = threading.Barrier(len(runs), timeout=60)

    def meet() -> bool:
        barrier.wait()
        return False

    def publish(run_id: int) -> None:
        make_sticky(github.connect(Patience(exchange_s=60.0))).write(make_draft(run_id), meet)

    with ThreadPoolExecutor(len(runs)) as pool:
        for run_id in runs:
            pool.submit(publish, run_id)


@pytest.mark.parametrize("order", [(100, 101), (101, 100), (100, 100)])
def test_race(github: FakeGitHub, order: tuple[int, int]) -> None:
    """Two publishers that both saw no comment leave one, with the newer run's text."""
    race(github, *order)
    assert list_bodies(github) == [make_draft(max(order)).body]


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_find_login(github: FakeGitHub) -> None:
    """GitHub names the token's login; otherwise comments are the workflow's own."""
    github.state.author = "our-app[bot]"
    assert github.client.find_login() == "our-app[bot]"
    github.fail("POST", "/graphql$", Fault(status=401))
    assert github.client.find_login() == ""
    github.fail("POST", "/graphql$", Fault(status=200, body=b'{"data": null, "errors": []}'))
    assert github.client.find_login() == ""


@pytest.mark.parametrize("seed", range(8))
def test_race_of_many(github: FakeGitHub, seed: int) -> None:
    """In any order of requests, four racing publishers leave one comment, of one run."""
    chance = random.Random(seed)
    pauses = [chance.uniform(0.0, 0.03) for _ in range(64)]
    for method in ("GET", "POST", "PATCH", "DELETE"):
        github.call_before(method, "/comments", lambda: time.sleep(pauses.pop() if pauses else 0.0))
    runs = chance.sample(range(100, 110), 4)
    before = github.state.add_comment(7, "somebody's")["body"]
    race(github, *runs)
    assert list_bodies(github) in [[before, make_draft(run_id).body] for run_id in runs]
