"""Publishing end to end against the fake GitHub: what is written where, and what is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape as html_unescape
from pathlib import Path
from typing import Any

import pytest
from deliveries import make_workflow_run
from fake.clock import FakeClock
from fake.faults import NO_RIGHT, SECONDARY, Fault, html
from fake.git_routes import BareRepository
from fake.server import TOKEN, FakeGitHub
from hostile_archives import ARCHIVES, make_edited, put
from records import (
    CASES,
    RUN,
    SHA,
    UNSTORED,
    make_archive,
    make_base,
    make_comparison,
    make_failing,
    make_passing,
    make_rows,
    make_unchanged,
    make_verdict,
)

from gate.decide.conclude.outcome import FailOn
from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.finding import PublishContext, Settings
from gate.github.job import JobContext
from gate.github.publish import Publication, publish
from gate.github.sticky import DEFAULT_AUTHOR
from gate.publish.submitted_verdict import WORKFLOWS
from gate.publish.telling import CommentWhen
from gate.records import (
    Cause,
    CauseKind,
    Code,
    Fact,
    Metric,
    Outcome,
    PairBase,
    Reason,
    Status,
    Tally,
    Verdict,
    name_words,
)
from gate.report.markdown import escape_text

REPOSITORY = "octo-org/models"


class Stage:
    """Pull request 7 with one finished run, whose verdict is published."""

    def __init__(self, github: FakeGitHub, client: GitHubClient) -> None:
        self.github, self.state = github, github.state
        self.state.add_pull(7, SHA)
        self.run = self.state.add_run(RUN.id, SHA)
        job = JobContext(repository=REPOSITORY)
        self.context = PublishContext(client=client, job=job, author=DEFAULT_AUTHOR, base=make_base())

    def publish(self, verdict: Verdict | None = None, **more: Any) -> Publication:
        """Publish what the run left: nothing but this verdict, if one is given."""
        if verdict is not None:
            self.state.artifacts.clear()
            self.leave(verdict)
        return publish(self.context, Settings(**{"run_id": RUN.id, **more}))

    def leave(
        self, verdict: Verdict | bytes, name: str = "compile-gate", run_id: int = RUN.id
    ) -> dict[str, Any]:
        """Leave a verdict, or an archive, as an artifact of a run."""
        archive = verdict if isinstance(verdict, bytes) else make_archive(verdict)
        return self.state.add_artifact(run_id, name, archive)

    def set_status(self, state: str, run_id: int = RUN.id) -> None:
        """Set the gate's commit status, as another run has."""
        url = f"https://github.com/{REPOSITORY}/actions/runs/{run_id}"
        fields = {"state": state, "context": "compile-gate/report", "target_url": url}
        self.state.add_status(SHA, fields)

    def add_comment(self, run_id: int, head: str) -> dict[str, Any]:
        """Let a run of a commit have told its verdict."""
        marker = f"<!-- compile-gate key=default run={run_id} attempt=1 head={head} -->"
        return self.state.add_comment(7, f"{marker}\n## PASS", DEFAULT_AUTHOR)

    def know_rules(self, *rules: str) -> None:
        """Let the base commit be judged by these files."""
        self.context = replace(self.context, base=replace(self.context.base, rules=rules))

    @property
    def comments(self) -> list[dict[str, Any]]:
        return self.state.list_comments(7)

    @property
    def body(self) -> str:
        """The one comment's text."""
        (comment,) = self.comments
        return str(comment["body"])

    @property
    def status_told(self) -> tuple[str, str]:
        return self.status["state"], self.status["description"]

    @property
    def status(self) -> dict[str, Any]:
        return self.state.statuses[SHA][0]


@pytest.fixture
def stage(github: FakeGitHub, client: GitHubClient) -> Stage:
    """Return a pull request with one finished run."""
    return Stage(github, client)


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_regression(stage: Stage, clock: FakeClock) -> None:
    """A regression gets a comment, a failed status, outputs, a summary and annotations."""
    published = stage.publish(make_failing())
    comment = stage.comments[0]
    status = stage.status
    assert not any(line.startswith("::warning") for line in published.lines)
    assert comment["body"].startswith(f"<!-- compile-gate key=default run=100 attempt=1 head={SHA} -->\n## ")
    assert (status["state"], status["context"]) == ("failure", "compile-gate/report")
    assert status["description"] == "REGRESSION: 1 regressed, 5 unchanged"
    assert published.outputs == {
        "verdict": "REGRESSION",
        "regressions": 1,
        "improvements": 0,
        "inconclusive": 0,
        "cases": 3,
        "environment-id": "cuda-h200-torch2.13.0-" + str(published.outputs["environment-id"])[-8:],
        "head-sha": SHA,
        "pr-number": 7,
        "status-state": "failure",
        "comment-url": comment["html_url"],
    }
    assert "## " in published.summary
    assert "Comment on pull request 7: created." in published.summary
    assert published.lines[0].startswith("::error title=compile-gate::REGRESSION: 1 regressed")
    assert stage.context.client.request_count <= 13
    assert clock.slept == [1.0]


def test_a_pass_is_a_sign_of_life(stage: Stage) -> None:
    """A PASS sets a status and writes a comment of one line, so that silence always means trouble."""
    stage.run["conclusion"] = "success"
    stage.publish(make_passing())
    assert "PASS: Nothing got worse: 6 comparisons in 3 cases judged." in stage.body
    assert stage.status["state"] == "success"


def test_a_pass_can_be_quiet(stage: Stage) -> None:
    """Where only changes are asked for, a first PASS writes nothing; after a failure it is shown."""
    stage.run["conclusion"] = "success"
    published = stage.publish(make_passing(), comment=CommentWhen.ON_CHANGE)
    assert stage.comments == []
    assert "not written, as the settings ask" in published.summary
    stage.add_comment(99, "b" * 40)
    stage.publish(make_passing(), comment=CommentWhen.ON_CHANGE)
    assert "PASS" in stage.body


@pytest.mark.parametrize("when", [CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE])
def test_a_pass_that_fails_the_check_is_told(stage: Stage, when: CommentWhen) -> None:
    """With fail-on new a PASS in which something has no baseline is red: no reader is left without a word."""
    stage.run["conclusion"] = "failure"
    row = make_comparison(CASES[0], Metric.PEAK_MEMORY, Status.NEW, Reason.NO_BASELINE)
    new = replace(row, baseline=None, change=None)
    verdict = make_verdict(*make_rows(), new)
    assert verdict.outcome is Outcome.PASS
    stage.publish(verdict, comment=when, fail_on=FailOn.NEW)
    assert len(stage.comments) == 1


@pytest.mark.parametrize("when", [CommentWhen.ALWAYS, CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE])
def test_a_failed_run_is_never_told_as_pass(stage: Stage, when: CommentWhen) -> None:
    """A run that failed with a verdict of PASS is red in the status, the comment and the annotations."""
    published = stage.publish(make_passing(), comment=when)
    heading = stage.body.splitlines()[1]
    assert heading == "## \N{CROSS MARK} The run ended with failure, although its verdict is PASS"
    assert stage.status["state"] == "failure"
    assert published.lines[0].startswith("::error ")


BASE_SHA = "b" * 40


@pytest.mark.parametrize(
    ("history", "sha", "named"),
    [
        ([BASE_SHA, "c" * 40], BASE_SHA, True),
        (["c" * 40, BASE_SHA], BASE_SHA, True),
        (["c" * 40], BASE_SHA, False),
        (None, BASE_SHA, False),
        (["v1.0"], "v1.0", False),
    ],
    ids=["earlier", "tip", "elsewhere", "unknown", "no commit id"],
)
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_the_base_is_named_where_github_has_it(
    stage: Stage, history: list[str] | None, sha: str, named: bool
) -> None:
    """The artifact names a commit; it is linked only if it is one of the pull request's base branch."""
    if history is not None:
        stage.state.history["main"] = history
    verdict = make_failing(base=PairBase(commit=sha), tally=Tally(pairs=3, paired_cases=1))
    published = stage.publish(verdict)
    assert (f"against [{sha[:12]}](https://github.com/{REPOSITORY}/commit/{sha})" in stage.body) is named
    assert (sha in stage.body) is named
    assert not any(line.startswith("::warning") for line in published.lines)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("zoo/model.py:29", "New graph break at zoo/model.py:29; why is in the run's summary."),
        ("zoo/gone.py:29", "There are new graph breaks; their places are in the run's summary."),
        ("zoo/@octocat.py:29", "There are new graph breaks; their places are in the run's summary."),
    ],
)
def test_a_place_is_named_where_the_change_has_that_file(
    stage: Stage, tmp_path: Path, place: str, told: str
) -> None:
    """The artifact may call any line its own; one of a module of the commit that was measured is named."""
    repository = BareRepository.create(tmp_path / "bare.git")
    files = {"zoo/model.py": "print()", "zoo/@octocat.py": ""}
    head = repository.commit(files, branch="topic")
    stage.state.git = repository  # type: ignore[attr-defined]
    stage.state.add_pull(7, head)
    stage.state.add_run(RUN.id, head)
    fact = Fact(code=Code.GRAPH_BREAK, names=name_words(reason="evil", location=place))
    verdict = replace(
        make_failing(),
        causes=(Cause(case_id=CASES[0].id, kind=CauseKind.GRAPH_BREAK, weight=0.9, fact=fact),),
    )
    measured = replace(verdict, provenance=replace(verdict.provenance, commit=head))
    published = stage.publish(measured)
    assert html_unescape(stage.body).count(told) == 1
    assert "evil" not in stage.body
    assert not any(line.startswith("::warning") for line in published.lines)


INCONCLUSIVE = make_verdict(
    make_comparison(CASES[0], Metric.COMPILED_LATENCY, Status.INCONCLUSIVE, Reason.UNSETTLED)
)
WANTED = [
    (CommentWhen.ALWAYS, make_passing(), True),
    (CommentWhen.ON_CHANGE, make_passing(), False),
    (CommentWhen.ON_CHANGE, INCONCLUSIVE, True),
    (CommentWhen.ON_CHANGE, make_failing(), True),
    (CommentWhen.ON_FAILURE, INCONCLUSIVE, False),
    (CommentWhen.ON_FAILURE, make_failing(), True),
    (CommentWhen.NEVER, make_failing(), False),
]


@pytest.mark.parametrize(("when", "verdict", "wanted"), WANTED)
def test_when(stage: Stage, when: CommentWhen, verdict: Verdict, wanted: bool) -> None:
    """The setting says when a first comment is written."""
    stage.run["conclusion"] = "success"
    stage.publish(verdict, comment=when)
    assert (len(stage.comments) == 1) is wanted


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
def test_state(stage: Stage, verdict: Verdict, conclusion: str, fail_on: FailOn, state: str) -> None:
    """The status follows the verdict, and never says success over a run that failed."""
    stage.run["conclusion"] = conclusion
    published = stage.publish(verdict, fail_on=fail_on)
    assert stage.status["state"] == state
    assert published.outputs["status-state"] == state


def test_status_of_a_newer_run(stage: Stage) -> None:
    """A pull request that was closed and opened again has two runs: the newer one's status holds."""
    stage.set_status("success", 101)
    stage.state.add_run(101, SHA)
    published = stage.publish(make_failing())
    assert [status["state"] for status in stage.state.statuses[SHA]] == ["success"]
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
def test_status_of_no_newer_run(stage: Stage, fields: dict[str, str | None]) -> None:
    """The status of an older run, of none or of another context is no reason to be silent."""
    stage.state.add_status(SHA, {"state": "success", "context": "compile-gate/report"} | fields)
    stage.publish(make_failing())
    assert stage.status["state"] == "failure"


@pytest.mark.parametrize(("started", "state"), [("12:00:00", "success"), ("10:30:00", "failure")])
def test_a_run_that_was_started_again_is_newer(stage: Stage, started: str, state: str) -> None:
    """Of two runs of one commit the one that began last holds, whichever has the higher number."""
    stage.set_status("success", 101)
    stage.state.add_run(101, SHA)["run_started_at"] = f"2026-11-01T{started}Z"
    stage.run |= {"run_attempt": 2, "run_started_at": "2026-11-01T11:30:00Z"}
    stage.add_comment(101, SHA)
    stage.publish(make_failing())
    assert stage.status["state"] == state
    assert ("REGRESSION" in stage.body) is (state == "failure")


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


def test_no_status(stage: Stage) -> None:
    """An empty context sets no status."""
    published = stage.publish(make_failing(), status="")
    assert stage.state.statuses == {}
    assert published.outputs["status-state"] == ""


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


def leave_pass(stage: Stage) -> None:
    """What an earlier attempt of the run said of the commit: a green status, and a comment of it."""
    stage.set_status("success")
    stage.add_comment(RUN.id, SHA)
    stage.run["run_attempt"] = 2


def test_a_skipped_run_is_told(stage: Stage) -> None:
    """GitHub counts a skipped check as passed, so status and comment say that nothing was measured."""
    leave_pass(stage)
    stage.run["conclusion"] = "skipped"
    stage.state.files[7] = [".github/workflows/gate.yml"]
    stage.know_rules("gate.yml", WORKFLOWS)
    published = stage.publish()
    status = stage.status
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert (status["state"], status["description"]) == (
        "error",
        "no result: all jobs of the run were skipped: GitHub counts that as passed, but nothing was measured",
    )
    assert "there is no verdict" in stage.body
    assert "All jobs of the run were skipped" in stage.body
    assert "A condition (`if:`) of the gate's workflow skipped it." in stage.body
    assert "touches the rules that judge changes: .github (1 file)" in stage.body


def test_a_skipped_run_s_artifact_is_not_its_result(stage: Stage) -> None:
    """What lies there is of an attempt that was not skipped."""
    stage.run["conclusion"] = "skipped"
    published = stage.publish(make_passing())
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert stage.status["state"] == "error"


@pytest.mark.parametrize("place", ["artifacts", "download", "storage"])
@pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=404), Fault(status=410), Fault()])
def test_a_verdict_that_cannot_be_fetched_leaves_no_earlier_one_standing(
    stage: Stage, place: str, fault: Fault
) -> None:
    """An earlier attempt said PASS: that is taken back where this one's result cannot be had."""
    leave_pass(stage)
    stage.github.fail(*PLACES[place], replace(fault, times=99))
    published = stage.publish(make_failing())
    status = stage.status
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert (status["state"], status["description"]) == (
        "error",
        "no result: the result of the run could not be fetched from GitHub",
    )
    assert "The result of the run could not be fetched from GitHub." in stage.body
    assert "Trouble: The verdict could not be fetched: " in published.summary
    assert published.lines[-1].startswith("::warning title=compile-gate::The verdict could not be fetched: ")


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
    leave_pass(stage)
    stage.run |= {"conclusion": "success", "run_started_at": "2026-11-01T11:45:00Z"}
    stage.state.add_event(7, name, created)
    published = stage.publish(make_passing())
    status = stage.status
    assert published.outputs["verdict"] == ("PASS" if is_told else "INCOMPLETE")
    assert status["state"] == ("success" if is_told else "error")
    assert ("The pull request got another base branch after the run began" in stage.body) is not is_told


RETARGET = 101


def add_retarget(stage: Stage, conclusion: str = "failure") -> None:
    """The pull request gets another base after its run has ended, and gate-retarget has run for that."""
    stage.state.add_event(7, "base_ref_changed", "2026-11-01T12:30:00Z")
    run = stage.state.add_run(RETARGET, SHA)
    run |= {"path": ".github/workflows/gate-retarget.yml", "name": "gate-retarget", "conclusion": conclusion}


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_a_base_that_is_changed_after_a_pass_takes_it_back(stage: Stage) -> None:
    """When gate-retarget has failed, the gate's own run is told to be of another base, everywhere."""
    leave_pass(stage)
    stage.publish(make_passing())
    add_retarget(stage)

    published = stage.publish(run_id=RETARGET)

    status = stage.status
    assert (status["state"], status["target_url"]) == ("error", stage.run["html_url"])
    assert "The pull request got another base branch after the run began" in stage.body
    assert published.outputs["verdict"] == "INCOMPLETE"


def test_of_several_runs_the_newest_of_the_same_head_is_taken_back(stage: Stage) -> None:
    """A fork's run of the same commit, and one that no pull request started, are of something else."""
    leave_pass(stage)
    add_retarget(stage)
    stage.state.add_run(99, SHA)
    stage.state.add_run(110, SHA, owner="mallory")
    stage.state.add_run(111, SHA, event="push")

    stage.publish(run_id=RETARGET)

    status = stage.status
    assert (status["state"], status["target_url"]) == ("error", stage.run["html_url"])


@pytest.mark.parametrize("why", ["passed", "pushed", "none", "running"])
def test_a_changed_base_that_takes_nothing_back_is_silent(stage: Stage, why: str) -> None:
    """An edited title, a commit that is no head any more, and a gate that has not ended: it will be told."""
    add_retarget(stage, "success" if why == "passed" else "failure")
    if why == "pushed":
        stage.state.pulls[7]["head"]["sha"] = "e" * 40
    if why == "none":
        del stage.state.runs[RUN.id]
    if why == "running":
        stage.run |= {"status": "in_progress", "conclusion": None}

    published = stage.publish(run_id=RETARGET)

    assert stage.github.list_writes() == []
    assert "There is nothing to publish" in published.summary


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
    job = JobContext(repository=REPOSITORY, event_name="workflow_run", event=payload)
    stage.context = replace(stage.context, job=job)
    published = stage.publish()
    assert stage.github.list_writes() == []
    assert "a newer attempt of the run has begun" in published.summary


def test_hostile_artifact(stage: Stage) -> None:
    """A rejected artifact is told as such, with nothing of it."""
    stage.leave(ARCHIVES["unknown key"]())
    published = stage.publish()
    body = stage.body
    assert "not one that this compile-gate reads" in body
    assert "script" not in body + published.summary + "".join(published.lines)


NEWER = put("schema", "compile-gate/verdict/1.5")


def test_verdict_of_a_newer_minor_version(stage: Stage) -> None:
    """It is told without what is new in it, which is foreign text like any other."""

    def add_news(plain: dict[str, Any]) -> None:
        NEWER(plain)
        plain["script"] = "<script>@octocat</script>"
        plain["comparisons"][0]["note"] = "![x](https://evil.example)"

    stage.leave(make_edited(add_news))
    published = stage.publish(comment=CommentWhen.ALWAYS)
    body = stage.body
    assert published.outputs["verdict"] == "PASS"
    assert not any(mark in body + published.summary for mark in ("script", "octocat", "evil"))


@pytest.mark.parametrize("schema", ["compile-gate/verdict/4", "compile-gate/verdict/4.1"])
def test_verdict_of_a_newer_version(stage: Stage, schema: str) -> None:
    """The publisher is older than the gate: the comment says which of the two to change, and what counts."""
    stage.leave(make_edited(put("schema", schema)))
    published = stage.publish()
    body = stage.body
    assert "a newer compile-gate than the workflow that publishes it uses" in body
    assert "- The check itself counts. To see verdicts here again, merge the new version" in body
    assert "See the run's log" not in body
    assert stage.status["state"] == "error"
    assert "newer compile-gate" in published.lines[0]


def test_superseded(stage: Stage) -> None:
    """When the head moves while publishing, the comment is left alone and the summary says so."""
    old = stage.add_comment(99, "b" * 40)["body"]

    def move() -> None:
        stage.state.pulls[7]["head"]["sha"] = "e" * 40

    stage.github.call_before("GET", "/comments$", move)
    published = stage.publish(make_failing())
    assert [comment["body"] for comment in stage.comments] == [old]
    assert "left alone: the pull request has moved on" in published.summary
    assert not any(line.startswith("::warning") for line in published.lines)


def test_closed(stage: Stage) -> None:
    """A closed pull request gets no comment; the commit still gets its status."""
    stage.state.pulls[7]["state"] = "closed"
    published = stage.publish(make_failing())
    assert stage.comments == []
    assert stage.status["state"] == "failure"
    assert "closed or merged" in published.summary


def test_merge_group(stage: Stage) -> None:
    """A merge queue's run gets a status and a summary."""
    stage.run["event"] = "merge_group"
    published = stage.publish(make_failing())
    assert stage.comments == []
    assert stage.status["state"] == "failure"
    assert "merge queue" in published.summary


NOTHING_STORED = make_verdict(*make_rows(**UNSTORED))
PARTLY_STORED = make_verdict(*make_unchanged(CASES[1]), NOTHING_STORED.comparisons[0])


@pytest.mark.parametrize(
    ("verdict", "fail_on"), [(NOTHING_STORED, FailOn.REGRESSION), (PARTLY_STORED, FailOn.NEW)]
)
def test_a_green_merge_group_without_baselines_gets_no_red_status(
    stage: Stage, verdict: Verdict, fail_on: FailOn
) -> None:
    """The check counted that its pull requests were accepted so, which is not known here."""
    stage.run |= {"event": "merge_group", "conclusion": "success"}
    published = stage.publish(verdict, fail_on=fail_on)
    assert stage.state.statuses.get(SHA, []) == []
    assert published.outputs["status-state"] == ""
    assert "No commit status: the check of this merge group is green" in published.summary


@pytest.mark.parametrize(
    ("verdict", "conclusion"),
    [(NOTHING_STORED, "failure"), (make_failing(), "success"), (make_failing(), "failure")],
)
def test_a_merge_group_that_fails_gets_a_red_status(stage: Stage, verdict: Verdict, conclusion: str) -> None:
    """Its check is red, or what it found is no lack of baselines: an accepted change is no regression."""
    stage.run |= {"event": "merge_group", "conclusion": conclusion}
    stage.publish(verdict)
    assert stage.status["state"] == "failure"


@pytest.mark.parametrize("event", ["workflow_dispatch", "push", "schedule"])
def test_other_runs_set_no_status(stage: Stage, event: str) -> None:
    """A run by hand at a pull request's head does not turn the status that failed there into a green one."""
    stage.set_status("failure", 99)
    stage.run |= {"event": event, "conclusion": "success"}
    published = stage.publish(make_passing())
    assert [status["state"] for status in stage.state.statuses[SHA]] == ["failure"]
    assert published.outputs["status-state"] == ""
    assert f"No commit status: the run was started by {escape_text(event)}." in published.summary


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_one_status_cannot_tell_of_two_pull_requests(stage: Stage) -> None:
    """Two pull requests with one head have a verdict each, so the commit's one status is an error."""
    stage.state.add_pull(8, SHA)
    stage.run["conclusion"] = "success"
    published = stage.publish(make_passing())
    assert stage.status_told == (
        "error",
        "no result is published: 2 open pull requests have this head, to different bases",
    )
    assert published.outputs["status-state"] == "error"
    assert [stage.state.list_comments(number) for number in (7, 8)] == [[], []]


def test_a_pass_of_one_pull_request_takes_back_no_failure_of_another(stage: Stage) -> None:
    """Somebody opens another one with the same commit, where it passes: the status is an error then."""
    stage.publish(make_failing())
    stage.state.add_pull(8, SHA, owner="mallory")
    stage.state.add_run(101, SHA, owner="mallory")["conclusion"] = "success"
    stage.leave(make_passing(), run_id=101)
    published = stage.publish(run_id=101)
    status = stage.status
    told = "no result is published: another open pull request has this head"
    assert (status["state"], status["description"]) == ("error", told)
    assert "Commit status: an error, since another open pull request has this head." in published.summary
    (other,) = stage.state.list_comments(8)
    assert "PASS" in other["body"]


def test_a_pass_of_a_closed_pull_request_takes_back_no_failure(stage: Stage) -> None:
    """It is closed before its run is told; the commit is still another one's head."""
    stage.publish(make_failing())
    stage.state.add_pull(8, SHA, branch="other")["state"] = "closed"
    stage.state.add_run(101, SHA, branch="other")["conclusion"] = "success"
    stage.leave(make_passing(), run_id=101)
    stage.publish(run_id=101)
    assert stage.status["state"] == "error"


def make_faults() -> dict[str, Fault]:
    reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999"}
    return {
        "401": Fault(status=401, message="Bad credentials"),
        "403 rights": Fault(status=403, message=NO_RIGHT),
        "403 primary": Fault(status=403, message="API rate limit exceeded", headers=reset),
        "403 secondary": Fault(status=403, message=SECONDARY),
        "403 retry-after": Fault(status=403, message=SECONDARY, headers={"Retry-After": "9999"}),
        "403 HTML": html(403),
        "404": Fault(status=404, message="Not Found"),
        "410": Fault(status=410, message="Gone"),
        "422": Fault(status=422, message="Validation Failed"),
        "429": Fault(status=429, message="slow down"),
        "500": Fault(status=500),
        "502 HTML": html(502),
        "503": Fault(status=503, headers={"Retry-After": "5"}),
        "reset": Fault(),
        "truncated": Fault(truncate=True),
        "broken JSON": Fault(status=200, body=b'{"id": '),
        "wrong JSON": Fault(status=200, body=b'"text"'),
        "list": Fault(status=200, body=b"[]"),
        "object": Fault(status=200, body=b"{}"),
        "empty": Fault(status=200, body=b""),
    }


TOUCHED = [
    ([], ""),
    (["src/model.py", "gate.yml.bak", "baselines2/x"], ""),
    (["gate.yml"], "gate.yml (1 file)"),
    ([".github/workflows/gate.yml", "gate.yml"], ".github (1 file), gate.yml (1 file)"),
    (["baselines/a/b.json", "gate.yml", "baselines/a/c.json"], "baselines (2 files), gate.yml (1 file)"),
]


@pytest.mark.parametrize(("files", "named"), TOUCHED)
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_touched_rules(stage: Stage, files: list[str], named: str) -> None:
    """A change of what it is judged by is flagged in the comment, by our names for it only."""
    stage.state.files[7] = files
    stage.know_rules("gate.yml", "baselines", WORKFLOWS)
    stage.publish(make_failing())
    assert ("touches the rules that judge changes" in stage.body) is bool(named)
    assert named in stage.body


def test_many_files(stage: Stage) -> None:
    """Of a change of thousands of files the first 300 are looked at, and that is said."""
    stage.state.files[7] = [f"@evil/{index}" for index in range(999)]
    stage.know_rules("gate.yml")
    stage.publish(make_failing())
    assert "Only the first 300 files were examined." in stage.body
    assert "evil" not in stage.body
    assert stage.context.client.request_count <= 20


PLACES = {
    "files": ("GET", r"/pulls/7/files$"),
    "run": ("GET", r"/actions/runs/100$"),
    "pulls": ("GET", r"models/pulls$"),
    "pulls of the commit": ("GET", r"/commits/.*/pulls$"),
    "pull": ("GET", r"/pulls/7$"),
    "events": ("GET", r"/issues/7/events$"),
    "artifacts": ("GET", r"/artifacts$"),
    "download": ("GET", r"/zip$"),
    "storage": ("GET", r"^/artifact/"),
    "comments": ("GET", r"/comments$"),
    "comment": ("POST", r"/comments$"),
    "change": ("PATCH", r"/comments/\d+$"),
    "statuses": ("GET", r"/commits/.*/statuses$"),
    "status": ("POST", r"/statuses/"),
}


FOR_GOOD = ("401", "403 secondary", "502 HTML", "reset", "truncated", "empty")


@pytest.mark.parametrize(
    ("fault", "times"), [*((fault, 1) for fault in make_faults()), *((fault, 99) for fault in FOR_GOOD)]
)
@pytest.mark.parametrize("place", PLACES)
def test_faults(stage: Stage, place: str, fault: str, times: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever fails wherever: no crash, nothing doubled, no changed verdict, no token to be seen."""
    if place == "change":
        stage.add_comment(99, "b" * 40)
    stage.know_rules("gate.yml")
    broken = make_faults()[fault]
    broken.times = times
    stage.github.fail(*PLACES[place], broken)
    published = stage.publish(make_failing())
    assert published.outputs.get("verdict", "") in {"", "REGRESSION", "INCOMPLETE"}
    assert len(stage.comments) <= 1
    assert len(stage.state.statuses.get(SHA, [])) <= 2
    assert stage.context.client.request_count <= 40
    told = f"{published} {capfd.readouterr()} {list(stage.state.comments.values())}"
    assert TOKEN not in told
    assert "storage-secret" not in told
    if place == "status" and times == 99:
        assert len(stage.comments) == 1  # one part's trouble is not the other's
    if place in {"comments", "comment", "change"}:
        assert stage.status["state"] == "failure"
    complains = "Trouble" in published.summary or "could not be fetched" in published.summary
    assert complains == any(line.startswith("::warning") for line in published.lines)


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
@pytest.mark.parametrize(("comments", "requests"), [(0, 13), (30, 13), (31, 13), (150, 15)])
def test_request_count(stage: Stage, comments: int, requests: int) -> None:
    """Publishing takes few requests, and none for each comment."""
    for index in range(comments):
        stage.state.add_comment(7, f"comment {index}")
    stage.publish(make_failing())
    assert stage.context.client.request_count == requests


# --- several gates of one run ---


def publish_gate(stage: Stage, name: str, key: str = "") -> Publication:
    key = key or name
    return stage.publish(artifact_name=f"gate-{name}", key=key, status=f"gate/{key}")


def read_heading(stage: Stage, key: str) -> str:
    bodies = [str(one["body"]) for one in stage.comments]
    (body,) = (one for one in bodies if f" key={key} " in one)
    return body.splitlines()[1]


def read_states(stage: Stage) -> dict[str, str]:
    return {one["context"]: one["state"] for one in reversed(stage.state.statuses[SHA])}


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_each_gate_of_a_run_is_told_by_its_own_job(stage: Stage) -> None:
    """Gate a passed and b regressed, in two jobs: a is green, b red, and each comment says whose it is."""
    for name, verdict, conclusion in (("a", make_passing(), "success"), ("b", make_failing(), "failure")):
        artifact = stage.leave(verdict, f"gate-{name}")
        times = {"began": "2026-11-01T11:59:00Z", "ended": "2026-11-01T13:00:00Z"}
        stage.state.add_job(RUN.id, name, conclusion, uploaded=artifact["created_at"], **times)

    for name in "ab":
        assert not any("::warning" in line for line in publish_gate(stage, name).lines)

    assert read_states(stage) == {"gate/a": "success", "gate/b": "failure"}
    assert read_heading(stage, "a").startswith("## ✅ `a`: PASS")
    assert read_heading(stage, "b").startswith("## ❌ `b`: REGRESSION")


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out"])
def test_a_job_that_died_after_its_upload_does_not_pass(stage: Stage, conclusion: str) -> None:
    """Its verdict says PASS, and it ended otherwise: red, whatever the other job of the run did."""
    for name, ended in (("a", conclusion), ("b", "success")):
        artifact = stage.leave(make_passing(), f"gate-{name}")
        times = dict.fromkeys(("began", "ended"), artifact["created_at"])
        stage.state.add_job(RUN.id, name, ended, **times)

    for name in "ab":
        publish_gate(stage, name)

    assert read_states(stage) == {"gate/a": "failure", "gate/b": "success"}
    assert f"The run ended with {escape_text(conclusion)}" in read_heading(stage, "a")


def test_where_jobs_are_not_told_the_run_decides(stage: Stage) -> None:
    """Trouble that is told, and no pass of a run that failed."""
    stage.leave(make_passing(), "gate-a")
    stage.github.fail("GET", r"/jobs$", Fault(status=403, message=NO_RIGHT, times=9))

    published = publish_gate(stage, "a")

    assert read_states(stage) == {"gate/a": "failure"}
    assert "Which job left the verdict could not be looked up" in "".join(published.lines)


def test_two_gates_with_one_key_are_warned_of(stage: Stage) -> None:
    """The second writes over the first, which passed unseen; told again, one gate warns of nothing."""
    for name, verdict in (("a", make_failing()), ("b", make_passing())):
        stage.leave(verdict, f"gate-{name}")

    quiet = [publish_gate(stage, "a", key="default") for _ in range(2)]
    warned = publish_gate(stage, "b", key="default")

    assert not any("::warning" in line for one in quiet for line in one.lines)
    (warning,) = (line for line in warned.lines if line.startswith("::warning"))
    assert "showed the artifact gate-a of the same run" in warning
