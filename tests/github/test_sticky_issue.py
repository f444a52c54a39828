"""What an issue has and a comment has not: it is closed and opened, and one of several stays."""

import threading
from typing import Any

import pytest
from fake.issue_routes import add_issue, list_issues
from fake.server import FakeGitHub
from records import SHA

from gate.github.client import GitHubClient, Patience
from gate.github.sticky import DEFAULT_AUTHOR, Action, Draft, StickyIssue, Written
from gate.publish.body import Marker, render_marker

WORKFLOW = ".github/workflows/upgrade.yml"
IssueStates = list[tuple[str, str, str | None]]


@pytest.fixture(autouse=True)
def _runs(github: FakeGitHub) -> None:
    for run_id in range(99, 105):
        github.state.add_run(run_id, SHA)["path"] = WORKFLOW


def make_draft(run_id: int = 100, key: str = "h200", **more: Any) -> Draft:
    marker = Marker(key=key, run_id=run_id, attempt=1, head_sha=SHA)
    body = f"{render_marker(marker)}\ntext of run {run_id}"
    title = f"Upgrade of run {run_id}"
    return Draft(**({"workflow": WORKFLOW} | more), marker=marker, title=title, body=body)


def write(client: GitHubClient, draft: Draft) -> Written:
    return StickyIssue(client, DEFAULT_AUTHOR, "issues").write(draft, lambda: False)


def list_states(github: FakeGitHub) -> IssueStates:
    """Last line, state and reason of each issue, oldest first."""
    issues = (issue for _, issue in sorted(list_issues(github.state).items()))
    return [(issue["body"].splitlines()[-1], issue["state"], issue.get("state_reason")) for issue in issues]


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_a_life(github: FakeGitHub) -> None:
    """Created, updated, closed when the trouble is over, opened again: always the same issue."""
    quiet = write(github.client, make_draft(99, is_wanted=False))
    created = write(github.client, make_draft(100))
    updated = write(github.client, make_draft(101))
    closed = write(github.client, make_draft(102, is_wanted=False))
    assert list_states(github) == [("text of run 102", "closed", "completed")]
    passed = write(github.client, make_draft(103, is_wanted=False))
    reopened = write(github.client, make_draft(104))

    assert quiet == Written(action=Action.NOT_WANTED)
    actions = [written.action for written in (created, updated, closed, passed, reopened)]
    assert actions == [
        Action.CREATED,
        Action.UPDATED,
        Action.CLOSED,
        Action.UPDATED,
        Action.REOPENED,
    ]
    assert len({written.url for written in (created, updated, closed, passed, reopened)}) == 1
    assert list_states(github) == [("text of run 104", "open", "reopened")]
    assert [issue["title"] for issue in list_issues(github.state).values()] == ["Upgrade of run 104"]


def test_somebody_who_has_had_enough_is_heard(github: FakeGitHub) -> None:
    """An issue closed as not planned is updated and stays closed, until a person opens it."""
    write(github.client, make_draft(100))
    (issue,) = list_issues(github.state).values()
    issue |= {"state": "closed", "state_reason": "not_planned"}

    assert write(github.client, make_draft(101)).action is Action.MUTED
    assert list_states(github) == [("text of run 101", "closed", "not_planned")]
    issue |= {"state": "open", "state_reason": "reopened"}
    assert write(github.client, make_draft(102)).action is Action.UPDATED
    assert list_states(github) == [("text of run 102", "open", "reopened")]


def test_an_issue_stays_open_while_it_may_not_be_closed(github: FakeGitHub) -> None:
    """A run that shows nothing wrong, and not all, updates the issue and leaves it open."""
    write(github.client, make_draft(100))
    kept = write(github.client, make_draft(101, is_wanted=False, may_close=False))
    assert kept.action is Action.UPDATED
    assert list_states(github) == [("text of run 101", "open", None)]


def test_one_issue_a_key(github: FakeGitHub) -> None:
    """Two environments have two issues, and neither touches the other's."""
    write(github.client, make_draft(100, key="h200"))
    write(github.client, make_draft(100, key="cpu"))
    write(github.client, make_draft(101, key="cpu"))

    assert [text for text, _, _ in list_states(github)] == ["text of run 100", "text of run 101"]


def test_foreign_markers(github: FakeGitHub) -> None:
    """A marker in somebody else's issue, in a pull request or in a quote does not count."""
    marked = make_draft(900).body
    add_issue(github.state, {"body": marked}, "octocat")
    example = {"url": "https://x", "html_url": "https://x", "diff_url": "https://x", "patch_url": "https://x"}
    add_issue(github.state, {"body": marked, "pull_request": example}, DEFAULT_AUTHOR)
    add_issue(github.state, {"body": f"> {marked}"}, DEFAULT_AUTHOR)

    assert write(github.client, make_draft(100)).action is Action.CREATED
    assert len(list_issues(github.state)) == 4


@pytest.mark.parametrize("others", [99, 100, 250])
def test_among_others(github: FakeGitHub, others: int) -> None:
    """Our issue is found on any page of the author's issues."""
    write(github.client, make_draft(100))
    for index in range(others):
        add_issue(github.state, {"body": f"issue {index}"}, DEFAULT_AUTHOR)

    assert write(github.client, make_draft(101)).action is Action.UPDATED
    assert len(github.requests) <= 8


def test_the_list_is_bounded(github: FakeGitHub) -> None:
    """Of thousands of issues the thousand updated last are read: ten requests."""
    for index in range(1200):
        add_issue(github.state, {"body": f"issue {index}"}, DEFAULT_AUTHOR)

    assert write(github.client, make_draft(100, is_wanted=False)).action is Action.NOT_WANTED
    assert len(github.requests) == 10


@pytest.mark.parametrize("seed", range(4))
def test_a_race_leaves_one_open_issue_of_the_newest_run(github: FakeGitHub, seed: int) -> None:
    """Two publishers at once, by schedule and by hand: one issue is kept, the other closed."""
    runs = [100, 101] if seed % 2 else [101, 100]
    barrier = threading.Barrier(2, timeout=60)
    github.call_before("POST", "/issues$", barrier.wait)

    def publish(run_id: int) -> None:
        patience = Patience(exchange_s=60.0)
        write(github.connect(patience), make_draft(run_id))

    threads = [threading.Thread(target=publish, args=(run_id,)) for run_id in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    issues = list_states(github)
    assert [state for _, state, _ in issues] == ["open", "closed"]
    assert issues[0][0] == "text of run 101"
    first = min(list_issues(github.state))
    assert list_issues(github.state)[first]["title"] == "Upgrade of run 101"
    assert issues[1][0].startswith("Continued in #")
