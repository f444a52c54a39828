"""Which results are told: those of the gate, of this change, of the newest attempt, that can be read."""

from __future__ import annotations

import json

import pytest
from deliveries import make_workflow_run
from fake.faults import Fault
from hostile_archives import make_edited, put
from publishing import REPOSITORY, Stage
from records import make_failing, make_passing

from gate.errors import UsageError
from gate.github.job import JobContext
from gate.publish.results import CommentWhen
from gate.publish.submitted import WORKFLOWS


@pytest.mark.parametrize(
    "path", [".github/workflows/other.yml", "octo-org/models/.github/workflows/x.yml@main"]
)
def test_run_of_another_workflow(stage: Stage, path: str) -> None:
    """A change that brings a workflow of the gate's name gets nothing told in the repository's name."""
    stage.run["path"] = path
    stage.leave(make_passing())
    with pytest.raises(UsageError, match="is of another workflow file than"):
        stage.publish(comment=CommentWhen.ALWAYS)
    assert stage.github.list_writes() == []


@pytest.mark.parametrize("path", ["{}", "octo-org/models/{}@refs/heads/main", "{}@main"])
def test_run_of_the_named_workflow(stage: Stage, path: str) -> None:
    """The gate may lie in another file, and GitHub may tell it with its repository and ref."""
    stage.run["path"] = path.format(".github/workflows/perf.yml")
    stage.publish(make_failing(), workflow=".github/workflows/perf.yml")
    assert len(stage.comments) == 1


def test_answer_about_another_run(stage: Stage) -> None:
    """What GitHub answers about some other run is not taken for this one's."""
    other = json.dumps(stage.run | {"id": 4711}).encode()
    stage.github.fail("GET", r"/actions/runs/100$", Fault(status=200, body=other))
    published = stage.publish(make_failing())
    assert "about another run than 100" in published.summary
    assert stage.github.list_writes() == []


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", "startup_failure"])
def test_no_result(stage: Stage, conclusion: str) -> None:
    """A run that left nothing is INCOMPLETE, an error and a comment."""
    stage.run["conclusion"] = conclusion
    published = stage.publish()
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert stage.status["state"] == "error"
    assert "there is no verdict" in stage.body


def test_silence(stage: Stage) -> None:
    """A run that waits for an approval has nothing to publish."""
    stage.run["conclusion"] = "action_required"
    published = stage.publish()
    assert stage.github.list_writes() == []
    assert "nothing to publish" in published.summary


def test_a_skipped_run_is_told(stage: Stage) -> None:
    """GitHub counts a skipped check as passed, so status and comment say that nothing was measured."""
    stage.leave_pass()
    stage.run["conclusion"] = "skipped"
    stage.state.files[7] = [".github/workflows/gate.yml"]
    stage.know_rules("gate.yml", WORKFLOWS)
    published = stage.publish(make_passing())  # which is of an attempt that was not skipped
    status = stage.status
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert (status["state"], status["description"]) == (
        "error",
        "no result: all jobs of the run were skipped: GitHub counts that as passed, but nothing was measured",
    )
    assert "there is no verdict" in stage.body
    assert "All jobs of the run were skipped" in stage.body
    assert "A condition (`if:`) of the gate's workflow skipped it." in stage.body
    assert "edits the gate's configuration: .github (1 file)" in stage.body


@pytest.mark.parametrize(
    ("name", "created", "is_told"),
    [
        ("base_ref_changed", "2026-11-01T11:00:00Z", False),
        ("automatic_base_change_succeeded", "2026-11-01T11:30:00Z", False),
        ("base_ref_changed", "2026-11-01T10:59:59Z", True),
        ("renamed", "2026-11-01T11:30:00Z", True),
    ],
)
def test_a_run_for_another_base_is_not_told(stage: Stage, name: str, created: str, is_told: bool) -> None:
    """Started again, it measures against the base that it began with, which is another change."""
    stage.leave_pass()
    stage.run |= {"conclusion": "success", "run_started_at": "2026-11-01T11:45:00Z"}
    stage.state.add_event(7, name, created)
    published = stage.publish(make_passing())
    status = stage.status
    assert published.outputs["verdict"] == ("PASS" if is_told else "INCOMPLETE")
    assert status["state"] == ("success" if is_told else "error")
    assert ("The pull request got another base branch after the run began" in stage.body) is not is_told


def test_a_run_that_a_push_cancelled_is_silent(stage: Stage) -> None:
    """Its commit is not what is to be merged; the run of the new one tells its own verdict."""
    stage.run["conclusion"] = "cancelled"
    stage.state.pulls[7]["head"]["sha"] = "e" * 40
    published = stage.publish()
    assert stage.github.list_writes() == []
    assert published.summary == "There is nothing to publish: the run ended with cancelled.\n"


def test_newer_attempt(stage: Stage) -> None:
    """While a newer attempt of the run is under way, the older one's verdict is not told."""
    payload = make_workflow_run(stage.run)
    stage.run |= {"run_attempt": 2, "conclusion": None, "status": "in_progress"}
    stage.job = JobContext(repository=REPOSITORY, event_name="workflow_run", event=payload)
    published = stage.publish()
    assert stage.github.list_writes() == []
    assert "a newer attempt of the run has begun" in published.summary


def test_verdict_of_a_newer_version(stage: Stage) -> None:
    """The publisher is older than the gate: the comment says which of the two to change, and what counts."""
    stage.leave(make_edited(put("schema", "compile-gate/shown/4")))
    stage.publish()
    body = stage.body
    assert "a newer compile-gate than the workflow that publishes it uses" in body
    assert "- The check itself counts. To see verdicts here again, merge the new version" in body
    assert "See the run's log" not in body
    assert stage.status["state"] == "error"
