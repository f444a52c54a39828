"""Published are results of the gate, of this change, of the newest attempt, that can be read."""

import json
from dataclasses import replace

import pytest
from deliveries import make_workflow_run
from fake.faults import Fault
from hostile_archives import make_edited, put
from publishing import REPOSITORY, Publisher
from records import ENVIRONMENT_ID, GREEN, RUN, SHA, make_base, make_failing, make_passing

from gate.errors import UsageError
from gate.github.job import JobContext
from gate.publish.results import CommentWhen, describe_finding, describe_outputs, is_wanted, make_finding
from gate.publish.shown import make_shown
from gate.publish.submitted import WORKFLOWS, CiRun
from gate.records.run import Environment
from gate.records.verdict import Outcome, Status, Verdict
from tests.hosts import CPU_HOST, CUDA_HOST


@pytest.mark.parametrize(
    "path", [".github/workflows/other.yml", "octo-org/models/.github/workflows/x.yml@main"]
)
def test_run_of_another_workflow(publisher: Publisher, path: str) -> None:
    """A change that adds a workflow under the gate's name gets nothing published."""
    publisher.run["path"] = path
    publisher.leave(make_passing())
    with pytest.raises(UsageError, match="is of another workflow file than"):
        publisher.publish(comment=CommentWhen.ALWAYS)
    assert publisher.github.list_writes() == []


@pytest.mark.parametrize("path", ["{}", "octo-org/models/{}@refs/heads/main", "{}@main"])
def test_run_of_the_named_workflow(publisher: Publisher, path: str) -> None:
    """The gate may be in another file, which GitHub may name with repository and ref."""
    publisher.run["path"] = path.format(".github/workflows/perf.yml")
    publisher.publish(make_failing(), workflow=".github/workflows/perf.yml")
    assert len(publisher.comments) == 1


def test_answer_about_another_run(publisher: Publisher) -> None:
    """GitHub's answer about another run is refused."""
    other = json.dumps(publisher.run | {"id": 4711}).encode()
    publisher.github.fail("GET", r"/actions/runs/100$", Fault(status=200, body=other))
    published = publisher.publish(make_failing())
    assert "about another run than 100" in published.summary
    assert publisher.github.list_writes() == []


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", "startup_failure"])
def test_no_result(publisher: Publisher, conclusion: str) -> None:
    """A run without an artifact is INCOMPLETE, an error and a comment."""
    publisher.run["conclusion"] = conclusion
    published = publisher.publish()
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert publisher.status["state"] == "error"
    assert "there is no verdict" in publisher.body


def test_silence(publisher: Publisher) -> None:
    """A run that waits for an approval publishes nothing."""
    publisher.run["conclusion"] = "action_required"
    published = publisher.publish()
    assert publisher.github.list_writes() == []
    assert "nothing to publish" in published.summary


def test_a_skipped_run_is_reported(publisher: Publisher) -> None:
    """GitHub counts a skipped check as passed: status and comment show that nothing was measured."""
    publisher.leave_pass()
    publisher.run["conclusion"] = "skipped"
    publisher.state.files[7] = [".github/workflows/gate.yml"]
    publisher.know_rules("gate.yml", WORKFLOWS)
    published = publisher.publish(make_passing())  # which is of an attempt that was not skipped
    status = publisher.status
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert (status["state"], status["description"]) == (
        "error",
        "no result: all jobs of the run were skipped: GitHub counts that as passed, but nothing was measured",
    )
    assert "there is no verdict" in publisher.body
    assert "All jobs of the run were skipped" in publisher.body
    assert "A condition (`if:`) of the gate's workflow skipped it." in publisher.body
    assert "edits the gate's configuration: .github (1 file)" in publisher.body


@pytest.mark.parametrize(
    ("name", "created", "is_told"),
    [
        ("base_ref_changed", "2026-11-01T11:00:00Z", False),
        ("automatic_base_change_succeeded", "2026-11-01T11:30:00Z", False),
        ("base_ref_changed", "2026-11-01T10:59:59Z", True),
        ("renamed", "2026-11-01T11:30:00Z", True),
    ],
)
def test_a_run_for_another_base_is_not_published(
    publisher: Publisher, name: str, created: str, is_told: bool
) -> None:
    """Started again, it still compares with the old base."""
    publisher.leave_pass()
    publisher.run |= {"conclusion": "success", "run_started_at": "2026-11-01T11:45:00Z"}
    publisher.state.add_event(7, name, created)
    published = publisher.publish(make_passing())
    status = publisher.status
    assert published.outputs["verdict"] == ("PASS" if is_told else "INCOMPLETE")
    assert status["state"] == ("success" if is_told else "error")
    assert ("The pull request got another base branch after the run began" in publisher.body) is not is_told


def test_a_run_that_a_push_cancelled_is_silent(publisher: Publisher) -> None:
    """Its commit is not what will be merged; the new commit's run publishes its own."""
    publisher.run["conclusion"] = "cancelled"
    publisher.state.pulls[7]["head"]["sha"] = "e" * 40
    published = publisher.publish()
    assert publisher.github.list_writes() == []
    assert published.summary == "There is nothing to publish: the run ended with cancelled.\n"


def test_newer_attempt(publisher: Publisher) -> None:
    """While a newer attempt is under way, the older one's verdict is not published."""
    payload = make_workflow_run(publisher.run)
    publisher.run |= {"run_attempt": 2, "conclusion": None, "status": "in_progress"}
    publisher.job = JobContext(repository=REPOSITORY, event_name="workflow_run", event=payload)
    published = publisher.publish()
    assert publisher.github.list_writes() == []
    assert "a newer attempt of the run has begun" in published.summary


def test_verdict_of_a_newer_version(publisher: Publisher) -> None:
    """The publisher is older than the gate: the comment names which of the two to update."""
    publisher.leave(make_edited(put("schema", "compile-gate/shown/4")))
    publisher.publish()
    body = publisher.body
    assert "a newer compile-gate than the workflow that publishes it uses" in body
    assert "- The check itself counts. To see verdicts here again, merge the new version" in body
    assert "See the run's log" not in body
    assert publisher.status["state"] == "error"


@pytest.mark.parametrize(
    ("verdict", "run", "wanted"),
    [
        (make_passing(), GREEN, {CommentWhen.ALWAYS}),
        (make_failing(), RUN, {CommentWhen.ALWAYS, CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE}),
        (make_passing(), RUN, {CommentWhen.ALWAYS, CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE}),
        (make_passing(outcome=Outcome.INCONCLUSIVE), GREEN, {CommentWhen.ALWAYS, CommentWhen.ON_CHANGE}),
    ],
    ids=["pass", "worse", "a pass of a run that failed", "inconclusive"],
)
def test_a_first_comment_is_wanted_as_the_setting_says(
    verdict: Verdict, run: CiRun, wanted: set[CommentWhen]
) -> None:
    """A failure is one of the gate, or of the run for another reason."""
    finding = make_finding(make_shown(verdict), make_base(), run)

    assert {when for when in CommentWhen if is_wanted(finding, when)} == wanted


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, (0, 0, 0)),
        ({Status.REGRESSED: 4, Status.IMPROVED: 5, Status.INCONCLUSIVE: 6, Status.NEW: 7}, (4, 5, 6)),
    ],
)
def test_outputs_count_what_was_found(counts: dict[Status, int], expected: tuple[int, ...]) -> None:
    """What did not occur is 0; without a machine its id is empty."""
    outputs = describe_outputs(Outcome.PASS, counts, 9, CUDA_HOST)

    assert tuple(outputs[name] for name in ("regressions", "improvements", "inconclusive")) == expected
    assert (outputs["verdict"], outputs["cases"]) == ("PASS", 9)
    assert outputs["environment-id"] == ENVIRONMENT_ID
    assert describe_outputs(Outcome.PASS, counts, 9, None)["environment-id"] == ""


@pytest.mark.parametrize(
    ("environment", "expected"), [(CUDA_HOST, ENVIRONMENT_ID), (CPU_HOST, "")], ids=["known", "unknown"]
)
def test_only_a_machine_with_baselines_is_named_in_outputs(environment: Environment, expected: str) -> None:
    """Whoever measured could have made another one up."""
    finding = make_finding(make_shown(make_passing(environment=environment)), make_base(), GREEN)

    outputs = describe_finding(finding)

    assert (outputs["environment-id"], outputs["cases"], outputs["head-sha"]) == (expected, 3, SHA)
    assert describe_finding(replace(finding, verdict=None))["environment-id"] == ""
