"""The commit's one status: the run that it shows, and runs that set none."""

import pytest
from publishing import INCONCLUSIVE, Publisher
from records import CASES, SHA, UNSTORED, make_failing, make_passing, make_rows, make_unchanged, make_verdict

from gate.decide.conclude.exit_codes import FailOn
from gate.records.verdict import Verdict
from gate.report.markdown import escape_text


@pytest.mark.parametrize(
    ("verdict", "conclusion", "fail_on", "state"),
    [
        (make_passing(), "success", FailOn.REGRESSION, "success"),
        (INCONCLUSIVE, "success", FailOn.REGRESSION, "success"),
        (INCONCLUSIVE, "failure", FailOn.INCONCLUSIVE, "failure"),
        (make_failing(), "success", FailOn.NEVER, "success"),
        (make_failing(), "failure", FailOn.REGRESSION, "failure"),
        (make_passing(), "failure", FailOn.REGRESSION, "failure"),
        (make_passing(), "cancelled", FailOn.REGRESSION, "failure"),
    ],
)
def test_state(publisher: Publisher, verdict: Verdict, conclusion: str, fail_on: FailOn, state: str) -> None:
    """The status follows the verdict, and is never success for a failed run."""
    publisher.run["conclusion"] = conclusion
    published = publisher.publish(verdict, fail_on=fail_on)
    assert publisher.status["state"] == state
    assert published.outputs["status-state"] == state


def test_status_of_a_newer_run(publisher: Publisher) -> None:
    """A reopened pull request has two runs: the newer one's status holds."""
    publisher.set_status("success", 101)
    publisher.state.add_run(101, SHA)
    published = publisher.publish(make_failing())
    assert [status["state"] for status in publisher.state.statuses[SHA]] == ["success"]
    assert published.outputs["status-state"] == ""
    assert "Commit status: left alone: it shows a newer run." in published.summary
    assert not any(line.startswith("::warning") for line in published.lines)


@pytest.mark.parametrize(
    "fields",
    [
        {"target_url": "https://github.com/octo-org/models/actions/runs/99"},
        {"target_url": "https://evil.example/actions/runs/101x9"},
        {"target_url": "https://github.com/octo-org/models/actions/runs/101"},  # which is not there any more
        {"target_url": None},
        {"target_url": "https://github.com/octo-org/models/actions/runs/101", "context": "another"},
    ],
)
def test_status_of_no_newer_run(publisher: Publisher, fields: dict[str, str | None]) -> None:
    """A status of an older run, of none or of another context is replaced."""
    publisher.state.add_status(SHA, {"state": "success", "context": "compile-gate/report"} | fields)
    publisher.publish(make_failing())
    assert publisher.status["state"] == "failure"


@pytest.mark.parametrize(("started", "state"), [("12:00:00", "success"), ("10:30:00", "failure")])
def test_a_run_that_was_started_again_is_newer(publisher: Publisher, started: str, state: str) -> None:
    """Of two runs of one commit the one that began last holds, whatever their numbers."""
    publisher.set_status("success", 101)
    publisher.state.add_run(101, SHA)["run_started_at"] = f"2026-11-01T{started}Z"
    publisher.run |= {"run_attempt": 2, "run_started_at": "2026-11-01T11:30:00Z"}
    publisher.add_comment(101, SHA)
    publisher.publish(make_failing())
    assert publisher.status["state"] == state
    assert ("REGRESSION" in publisher.body) is (state == "failure")


@pytest.mark.parametrize(
    ("length", "description"), [(139, "x" * 139), (140, "x" * 140), (141, f"{'x' * 137}...")]
)
def test_publish_makes_a_status_of_140_characters(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch, length: int, description: str
) -> None:
    """GitHub refuses a longer description."""
    monkeypatch.setattr("gate.github.publish.describe_outcome", lambda _: "x" * length)
    publisher.publish(make_failing())
    assert publisher.status_told == ("failure", description)


def test_no_status(publisher: Publisher) -> None:
    """An empty context sets no status."""
    published = publisher.publish(make_failing(), status="")
    assert publisher.state.statuses == {}
    assert published.outputs["status-state"] == ""


NOTHING_STORED = make_verdict(*make_rows(**UNSTORED))
PARTLY_STORED = make_verdict(*make_unchanged(CASES[1]), NOTHING_STORED.comparisons[0])


@pytest.mark.parametrize(
    ("verdict", "fail_on"), [(NOTHING_STORED, FailOn.REGRESSION), (PARTLY_STORED, FailOn.NEW)]
)
def test_a_green_merge_group_without_baselines_gets_no_red_status(
    publisher: Publisher, verdict: Verdict, fail_on: FailOn
) -> None:
    """The check knew the acceptances of its pull requests; the publisher does not."""
    publisher.run |= {"event": "merge_group", "conclusion": "success"}
    published = publisher.publish(verdict, fail_on=fail_on)
    assert publisher.state.statuses.get(SHA, []) == []
    assert published.outputs["status-state"] == ""
    assert "No commit status: the check of this merge group is green" in published.summary


@pytest.mark.parametrize(
    ("verdict", "conclusion"),
    [(NOTHING_STORED, "failure"), (make_failing(), "success"), (make_failing(), "failure")],
)
def test_a_merge_group_that_fails_gets_a_red_status(
    publisher: Publisher, verdict: Verdict, conclusion: str
) -> None:
    """Its check is red, or it found more than a lack of baselines."""
    publisher.run |= {"event": "merge_group", "conclusion": conclusion}
    published = publisher.publish(verdict)
    assert (publisher.status["state"], publisher.comments) == ("failure", [])
    assert "merge queue" in published.summary


@pytest.mark.parametrize("event", ["workflow_dispatch", "push", "schedule"])
def test_other_runs_set_no_status(publisher: Publisher, event: str) -> None:
    """A run by hand does not turn the pull request's failed status green."""
    publisher.set_status("failure", 99)
    publisher.run |= {"event": event, "conclusion": "success"}
    published = publisher.publish(make_passing())
    assert [status["state"] for status in publisher.state.statuses[SHA]] == ["failure"]
    assert published.outputs["status-state"] == ""
    assert f"No commit status: the run was started by {escape_text(event)}." in published.summary


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_one_status_cannot_be_of_two_pull_requests(publisher: Publisher) -> None:
    """Two pull requests with one head have a verdict each, so the status is an error."""
    publisher.state.add_pull(8, SHA)
    publisher.run["conclusion"] = "success"
    published = publisher.publish(make_passing())
    assert publisher.status_told == (
        "error",
        "no result is published: 2 open pull requests have this head, to different bases",
    )
    assert published.outputs["status-state"] == "error"
    assert [publisher.state.list_comments(number) for number in (7, 8)] == [[], []]


def test_a_pass_of_one_pull_request_takes_back_no_failure_of_another(publisher: Publisher) -> None:
    """A second pull request with the same commit passes: the status is an error then."""
    publisher.publish(make_failing())
    publisher.state.add_pull(8, SHA, owner="mallory")
    publisher.state.add_run(101, SHA, owner="mallory")["conclusion"] = "success"
    publisher.leave(make_passing(), run_id=101)
    published = publisher.publish(run_id=101)
    status = publisher.status
    reason = "no result is published: another open pull request has this head"
    assert (status["state"], status["description"]) == ("error", reason)
    assert "Commit status: an error, since another open pull request has this head." in published.summary
    (other,) = publisher.state.list_comments(8)
    assert "PASS" in other["body"]
