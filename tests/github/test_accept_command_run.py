"""The run of the gate that a comment refers to, and its second start."""

from dataclasses import replace
from typing import Any

import pytest
from fake.faults import NO_RIGHT, Fault
from fake.server import FakeGitHub
from refreshes import make_request

from gate.github.accept_command import get_failed_run, rerun_failed_jobs
from gate.github.client import GitHubClient
from gate.github.transport import DeniedError, GitHubError
from gate.publish.comment_commands import CommandRefusedError
from gate.publish.submitted import CiRun

HEAD = "a" * 40
CREATED = "2026-11-01T11:00:00Z"  # of every run that the fake GitHub makes
RERUN = "POST /repos/octo-org/models/actions/runs/100/rerun-failed-jobs"


@pytest.fixture(autouse=True)
def _stage(github: FakeGitHub) -> None:
    """Pull request 7 of a fork, whose gate ran once and failed."""
    github.state.add_pull(7, HEAD, owner="mallory")
    github.state.add_run(100, HEAD, owner="mallory")


def get_run(client: GitHubClient, workflow: str = ".github/workflows/gate.yml") -> CiRun:
    return get_failed_run(client, workflow, make_request(head_sha=HEAD))


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_the_newest_run_for_the_head_is_found(github: FakeGitHub) -> None:
    """A reopened pull request has two; runs of other commits, events and files do not count."""
    github.state.add_run(101, HEAD, owner="mallory")
    github.state.add_run(102, "b" * 40, owner="mallory")
    github.state.add_run(103, HEAD, owner="mallory", event="merge_group")
    github.state.add_run(104, HEAD, owner="mallory")["path"] = ".github/workflows/ci.yml"

    assert get_run(github.client).id == 101


@pytest.mark.parametrize(("owner", "branch"), [("octo-org", "topic"), ("mallory", "other")])
def test_another_pull_requests_run_of_the_commit_does_not_count(
    github: FakeGitHub, owner: str, branch: str
) -> None:
    """One from another fork or branch was compared with its own base."""
    github.state.add_pull(8, HEAD, owner=owner, branch=branch)
    github.state.add_run(101, HEAD, owner=owner, branch=branch)

    assert get_run(github.client).id == 100

    del github.state.runs[100]
    with pytest.raises(CommandRefusedError, match="has not run"):
        get_run(github.client)


def test_the_run_that_began_last_is_the_newest(github: FakeGitHub) -> None:
    """An older run that was started again has measured last."""
    github.state.add_run(101, HEAD, owner="mallory")["conclusion"] = "success"
    github.state.runs[100] |= {"run_attempt": 2, "run_started_at": "2026-11-01T11:10:00Z"}

    assert get_run(github.client).id == 100


@pytest.mark.parametrize("created", ["2026-11-01T12:00:00Z", "2026-11-01T12:30:00Z"])
def test_a_run_after_the_comment_is_refused(github: FakeGitHub, created: str) -> None:
    """Its author saw nothing of it: the run was started again after a push."""
    github.state.runs[100] |= {"created_at": created, "run_started_at": created}

    with pytest.raises(CommandRefusedError, match="the commit was measured after the comment") as caught:
        get_run(github.client)
    assert "comment again" in caught.value.fix


def test_a_run_that_was_started_again_after_the_comment_is_fine(github: FakeGitHub) -> None:
    """Its author could see the commit: one more attempt changes nothing."""
    github.state.runs[100] |= {"run_attempt": 2, "run_started_at": "2026-11-01T12:30:00Z"}

    assert get_run(github.client).id == 100


@pytest.mark.parametrize("lacking", ["comment", "run"])
def test_without_a_time_from_github_nothing_is_accepted(github: FakeGitHub, lacking: str) -> None:
    """It is unknown then whether the author could see the run."""
    if lacking == "run":
        github.state.runs[100]["created_at"] = "soon"
    request = make_request(head_sha=HEAD, **({"asked": ""} if lacking == "comment" else {}))

    with pytest.raises(CommandRefusedError, match="does not say whether"):
        get_failed_run(github.client, ".github/workflows/gate.yml", request)
    github.violations.clear()  # GitHub's description promises a time


@pytest.mark.parametrize("state", ["open", "closed"])
def test_a_run_that_may_be_another_pull_requests_is_refused(github: FakeGitHub, state: str) -> None:
    """Of two from one branch to two bases GitHub does not name the run's."""
    github.state.add_pull(8, HEAD, owner="mallory")["state"] = state

    if state == "open":
        with pytest.raises(CommandRefusedError, match="another open pull request has this branch"):
            get_run(github.client)
    else:
        assert get_run(github.client).id == 100


def test_a_run_of_a_deleted_fork_is_found(github: FakeGitHub) -> None:
    """Neither the pull request nor its run has a repository any more."""
    github.state.runs[100]["head_repository"] = None
    request = make_request(head_sha=HEAD, head_repository=0)

    assert get_failed_run(github.client, ".github/workflows/gate.yml", request).id == 100
    # GitHub's description does not say that a run's head repository can be gone, but it can.
    github.violations.clear()


CASES: list[tuple[dict[str, Any], str]] = [
    ({"status": "queued", "conclusion": None}, "still runs"),
    ({"status": "in_progress", "conclusion": None}, "still runs"),
    ({"conclusion": "success"}, "ended with success"),
    ({"conclusion": "cancelled"}, "ended with cancelled"),
    ({"head_sha": "b" * 40}, "has not run for aaaaaaaaaaaa"),
]


@pytest.mark.parametrize(("changes", "words"), CASES)
def test_only_a_run_that_ended_and_failed_will_do(
    github: FakeGitHub, changes: dict[str, Any], words: str
) -> None:
    """An older failed run must not replace the newest."""
    github.state.runs[100] |= changes
    if "head_sha" not in changes:
        github.state.add_run(99, HEAD, owner="mallory")

    with pytest.raises(CommandRefusedError, match=words):
        get_run(github.client)


def test_a_workflow_that_is_not_there_is_reported(client: GitHubClient) -> None:
    """The message names the wrong input."""
    with pytest.raises(CommandRefusedError, match="no workflow of the name") as caught:
        get_run(client, ".github/workflows/gait.yml")
    assert "the input workflow" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "created", "is_refused"),
    [
        ("base_ref_changed", "2026-11-01T11:30:00Z", True),
        ("automatic_base_change_succeeded", "2026-11-01T11:30:00Z", True),
        ("base_ref_changed", "2026-11-01T10:30:00Z", False),
        ("renamed", "2026-11-01T11:30:00Z", False),
    ],
)
def test_a_run_for_another_base_is_not_started_again(
    github: FakeGitHub, name: str, created: str, is_refused: bool
) -> None:
    """It would be green for a change that was never compared with its new base."""
    github.state.add_event(7, name, created)

    if is_refused:
        with pytest.raises(CommandRefusedError, match="another base branch"):
            get_run(github.client)
    else:
        assert get_run(github.client).id == 100


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_the_failed_jobs_start_again(github: FakeGitHub) -> None:
    """One request puts the run at its second attempt."""
    rerun_failed_jobs(github.client, get_run(github.client))

    assert github.list_writes() == [RERUN]
    assert (github.state.runs[100]["run_attempt"], github.state.runs[100]["status"]) == (2, "queued")


@pytest.mark.parametrize(("fault", "asked"), [(Fault(truncate=True), 1), (Fault(status=502), 2)])
def test_what_is_lost_starts_them_once(github: FakeGitHub, fault: Fault, asked: int) -> None:
    """If the jobs had begun when the connection broke, no second request follows; otherwise one does."""
    run = get_run(github.client)
    github.fail("POST", r"/rerun-failed-jobs$", replace(fault))

    rerun_failed_jobs(github.client, run)

    assert github.list_writes() == [RERUN] * asked
    assert github.state.runs[100]["run_attempt"] == 2


def test_a_run_that_somebody_started_meanwhile_is_fine(github: FakeGitHub) -> None:
    """GitHub refuses a second start; the first one is enough."""
    run = get_run(github.client)
    github.state.runs[100] |= {"status": "queued", "conclusion": None, "run_attempt": 2}

    rerun_failed_jobs(github.client, run)

    assert github.state.runs[100]["run_attempt"] == 2


def test_a_refusal_is_an_error(github: FakeGitHub) -> None:
    """A token without the right, or a run of 31 days ago."""
    run = get_run(github.client)
    github.fail("POST", r"/rerun-failed-jobs$", Fault(status=403, message=NO_RIGHT))

    with pytest.raises(DeniedError):
        rerun_failed_jobs(github.client, run)


def test_a_question_that_is_not_answered_goes_nowhere(github: FakeGitHub) -> None:
    """Without an answer whether the base was changed, nothing is accepted."""
    github.fail("GET", r"/events$", Fault(status=403, message=NO_RIGHT))

    with pytest.raises(GitHubError):
        get_run(github.client)
