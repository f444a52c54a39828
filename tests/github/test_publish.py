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
    make_archive,
    make_base,
    make_comparison,
    make_failing,
    make_passing,
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
from gate.publish.ci_run import WORKFLOWS
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


@pytest.fixture
def context(github: FakeGitHub, client: GitHubClient) -> PublishContext:
    """A pull request with one finished run."""
    github.state.add_pull(7, SHA)
    github.state.add_run(RUN.id, SHA)
    job = JobContext(repository=REPOSITORY)
    return PublishContext(client=client, job=job, author=DEFAULT_AUTHOR, base=make_base())


def publish_verdict(
    github: FakeGitHub, context: PublishContext, verdict: Verdict, **more: Any
) -> Publication:
    """Let the run leave a verdict, and publish it."""
    github.state.artifacts.clear()
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(verdict))
    return publish(context, Settings(run_id=RUN.id, **more))


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_regression(github: FakeGitHub, context: PublishContext, clock: FakeClock) -> None:
    """A regression gets a comment, a failed status, outputs, a summary and annotations."""
    published = publish_verdict(github, context, make_failing())
    comment = github.state.list_comments(7)[0]
    status = github.state.statuses[SHA][0]
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
    assert context.client.request_count <= 13
    assert clock.slept == [1.0]


def test_a_pass_is_a_sign_of_life(github: FakeGitHub, context: PublishContext) -> None:
    """A PASS sets a status and writes a comment of one line, so that silence always means trouble."""
    set_conclusion(github, "success")
    publish_verdict(github, context, make_passing())
    (comment,) = github.state.list_comments(7)
    assert "PASS: Nothing got worse: 6 comparisons in 3 cases judged." in comment["body"]
    assert github.state.statuses[SHA][0]["state"] == "success"


def test_a_pass_can_be_quiet(github: FakeGitHub, context: PublishContext) -> None:
    """Where only changes are asked for, a first PASS writes nothing; after a failure it is shown."""
    set_conclusion(github, "success")
    published = publish_verdict(github, context, make_passing(), comment=CommentWhen.ON_CHANGE)
    assert github.state.list_comments(7) == []
    assert "not written, as the settings ask" in published.summary
    github.state.add_comment(7, make_old_body(), DEFAULT_AUTHOR)
    publish_verdict(github, context, make_passing(), comment=CommentWhen.ON_CHANGE)
    assert "PASS" in github.state.list_comments(7)[0]["body"]


@pytest.mark.parametrize("when", [CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE])
def test_a_pass_that_fails_the_check_is_told(
    github: FakeGitHub, context: PublishContext, when: CommentWhen
) -> None:
    """With fail-on new a PASS in which something has no baseline is red: no reader is left without a word."""
    set_conclusion(github, "failure")
    row = make_comparison(CASES[0], Metric.PEAK_MEMORY, Status.NEW, Reason.NO_BASELINE)
    new = replace(row, baseline=None, change=None)
    verdict = make_verdict(*(one for case in CASES for one in make_unchanged(case)), new)
    assert verdict.outcome is Outcome.PASS
    publish_verdict(github, context, verdict, comment=when, fail_on=FailOn.NEW)
    assert len(github.state.list_comments(7)) == 1


@pytest.mark.parametrize("when", [CommentWhen.ALWAYS, CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE])
def test_a_failed_run_is_never_told_as_pass(
    github: FakeGitHub, context: PublishContext, when: CommentWhen
) -> None:
    """A run that failed with a verdict of PASS is red in the status, the comment and the annotations."""
    published = publish_verdict(github, context, make_passing(), comment=when)
    (comment,) = github.state.list_comments(7)
    heading = comment["body"].splitlines()[1]
    assert heading == "## \N{CROSS MARK} The run ended with failure, although its verdict is PASS"
    assert github.state.statuses[SHA][0]["state"] == "failure"
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
    github: FakeGitHub, context: PublishContext, history: list[str] | None, sha: str, named: bool
) -> None:
    """The artifact names a commit; it is linked only if it is one of the pull request's base branch."""
    if history is not None:
        github.state.history["main"] = history
    verdict = make_failing(base=PairBase(commit=sha), tally=Tally(pairs=3, paired_cases=1))
    published = publish_verdict(github, context, verdict)
    (comment,) = github.state.list_comments(7)
    assert (f"against [{sha[:12]}](https://github.com/{REPOSITORY}/commit/{sha})" in comment["body"]) is named
    assert (sha in comment["body"]) is named
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
    github: FakeGitHub, context: PublishContext, tmp_path: Path, place: str, told: str
) -> None:
    """The artifact may call any line its own; one of a module of the commit that was measured is named."""
    repository = BareRepository.create(tmp_path / "bare.git")
    files = {"zoo/model.py": "print()", "zoo/@octocat.py": ""}
    head = repository.commit(files, branch="topic")
    github.state.git = repository  # type: ignore[attr-defined]
    github.state.add_pull(7, head)
    github.state.add_run(RUN.id, head)
    fact = Fact(code=Code.GRAPH_BREAK, names=name_words(reason="evil", location=place))
    verdict = replace(
        make_failing(),
        causes=(Cause(case_id=CASES[0].id, kind=CauseKind.GRAPH_BREAK, weight=0.9, fact=fact),),
    )
    measured = replace(verdict, provenance=replace(verdict.provenance, commit=head))
    published = publish_verdict(github, context, measured)
    (comment,) = github.state.list_comments(7)
    assert html_unescape(comment["body"]).count(told) == 1
    assert "evil" not in comment["body"]
    assert not any(line.startswith("::warning") for line in published.lines)


def make_old_body() -> str:
    return f"<!-- compile-gate key=default run=99 attempt=1 head={'b' * 40} -->\nold"


def set_conclusion(github: FakeGitHub, conclusion: str) -> None:
    github.state.runs[RUN.id]["conclusion"] = conclusion


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
def test_when(
    github: FakeGitHub, context: PublishContext, when: CommentWhen, verdict: Verdict, wanted: bool
) -> None:
    """The setting says when a first comment is written."""
    set_conclusion(github, "success")
    publish_verdict(github, context, verdict, comment=when)
    assert (len(github.state.list_comments(7)) == 1) is wanted


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
def test_state(
    github: FakeGitHub,
    context: PublishContext,
    verdict: Verdict,
    conclusion: str,
    fail_on: FailOn,
    state: str,
) -> None:
    """The status follows the verdict, and never says success over a run that failed."""
    set_conclusion(github, conclusion)
    published = publish_verdict(github, context, verdict, fail_on=fail_on)
    assert github.state.statuses[SHA][0]["state"] == state
    assert published.outputs["status-state"] == state


def test_status_of_a_newer_run(github: FakeGitHub, context: PublishContext) -> None:
    """A pull request that was closed and opened again has two runs: the newer one's status holds."""
    url = "https://github.com/octo-org/models/actions/runs/101"
    newer = {"state": "success", "context": "compile-gate/report", "target_url": url}
    github.state.add_status(SHA, newer)
    github.state.add_run(101, SHA)
    published = publish_verdict(github, context, make_failing())
    assert [status["state"] for status in github.state.statuses[SHA]] == ["success"]
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
def test_status_of_no_newer_run(
    github: FakeGitHub, context: PublishContext, fields: dict[str, str | None]
) -> None:
    """The status of an older run, of none or of another context is no reason to be silent."""
    github.state.add_status(SHA, {"state": "success", "context": "compile-gate/report"} | fields)
    publish_verdict(github, context, make_failing())
    assert github.state.statuses[SHA][0]["state"] == "failure"


@pytest.mark.parametrize(("started", "state"), [("12:00:00", "success"), ("10:30:00", "failure")])
def test_a_run_that_was_started_again_is_newer(
    github: FakeGitHub, context: PublishContext, started: str, state: str
) -> None:
    """Of two runs of one commit the one that began last holds, whichever has the higher number."""
    url = "https://github.com/octo-org/models/actions/runs/101"
    github.state.add_status(SHA, {"state": "success", "context": "compile-gate/report", "target_url": url})
    github.state.add_run(101, SHA)["run_started_at"] = f"2026-11-01T{started}Z"
    github.state.runs[RUN.id] |= {"run_attempt": 2, "run_started_at": "2026-11-01T11:30:00Z"}
    marker = f"<!-- compile-gate key=default run=101 attempt=1 head={SHA} -->"
    github.state.add_comment(7, f"{marker}\n## PASS", DEFAULT_AUTHOR)
    publish_verdict(github, context, make_failing())
    (comment,) = github.state.list_comments(7)
    assert github.state.statuses[SHA][0]["state"] == state
    assert ("REGRESSION" in comment["body"]) is (state == "failure")


@pytest.mark.parametrize(
    "path", [".github/workflows/other.yml", "octo-org/models/.github/workflows/x.yml@main"]
)
def test_run_of_another_workflow(github: FakeGitHub, context: PublishContext, path: str) -> None:
    """A change that brings a workflow of the gate's name gets nothing told in the repository's name."""
    github.state.runs[RUN.id]["path"] = path
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(make_passing()))
    with pytest.raises(UsageError, match="is of another workflow file than"):
        publish(context, Settings(run_id=RUN.id, comment=CommentWhen.ALWAYS))
    assert github.list_writes() == []


@pytest.mark.parametrize("path", ["{}", "octo-org/models/{}@refs/heads/main", "{}@main"])
def test_run_of_the_named_workflow(github: FakeGitHub, context: PublishContext, path: str) -> None:
    """The gate may lie in another file, and GitHub may tell it with its repository and ref."""
    github.state.runs[RUN.id]["path"] = path.format(".github/workflows/perf.yml")
    publish_verdict(github, context, make_failing(), workflow=".github/workflows/perf.yml")
    assert len(github.state.list_comments(7)) == 1


def test_answer_about_another_run(github: FakeGitHub, context: PublishContext) -> None:
    """What GitHub answers about some other run is not taken for this one's."""
    other = json.dumps(github.state.runs[RUN.id] | {"id": 4711}).encode()
    github.fail("GET", r"/actions/runs/100$", Fault(status=200, body=other))
    published = publish_verdict(github, context, make_failing())
    assert "about another run than 100" in published.summary
    assert github.list_writes() == []


def test_no_status(github: FakeGitHub, context: PublishContext) -> None:
    """An empty context sets no status."""
    published = publish_verdict(github, context, make_failing(), status="")
    assert github.state.statuses == {}
    assert published.outputs["status-state"] == ""


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", "startup_failure"])
def test_no_result(github: FakeGitHub, context: PublishContext, conclusion: str) -> None:
    """A run that left nothing is INCOMPLETE, an error and a comment."""
    set_conclusion(github, conclusion)
    published = publish(context, Settings(run_id=RUN.id))
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert github.state.statuses[SHA][0]["state"] == "error"
    assert "there is no verdict" in github.state.list_comments(7)[0]["body"]


def test_silence(github: FakeGitHub, context: PublishContext) -> None:
    """A run that waits for an approval has nothing to publish."""
    set_conclusion(github, "action_required")
    published = publish(context, Settings(run_id=RUN.id))
    assert github.list_writes() == []
    assert "nothing to publish" in published.summary


def leave_pass(github: FakeGitHub) -> None:
    """What an earlier attempt of the run said of the commit: a green status, and a comment of it."""
    url = f"https://github.com/octo-org/models/actions/runs/{RUN.id}"
    github.state.add_status(SHA, {"state": "success", "context": "compile-gate/report", "target_url": url})
    marker = f"<!-- compile-gate key=default run={RUN.id} attempt=1 head={SHA} -->"
    github.state.add_comment(7, f"{marker}\n## PASS", DEFAULT_AUTHOR)
    github.state.runs[RUN.id]["run_attempt"] = 2


def test_a_skipped_run_is_told(github: FakeGitHub, context: PublishContext) -> None:
    """GitHub counts a skipped check as passed, so status and comment say that nothing was measured."""
    leave_pass(github)
    set_conclusion(github, "skipped")
    github.state.files[7] = [".github/workflows/gate.yml"]
    base = replace(context.base, rules=("gate.yml", WORKFLOWS))
    published = publish(replace(context, base=base), Settings(run_id=RUN.id))
    status, (comment,) = github.state.statuses[SHA][0], github.state.list_comments(7)
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert (status["state"], status["description"]) == (
        "error",
        "no result: all jobs of the run were skipped: GitHub counts that as passed, but nothing was measured",
    )
    assert "there is no verdict" in comment["body"]
    assert "All jobs of the run were skipped" in comment["body"]
    assert "A condition (`if:`) of the gate's workflow skipped it." in comment["body"]
    assert "touches the rules that judge changes: .github (1 file)" in comment["body"]


def test_a_skipped_run_s_artifact_is_not_its_result(github: FakeGitHub, context: PublishContext) -> None:
    """What lies there is of an attempt that was not skipped."""
    set_conclusion(github, "skipped")
    published = publish_verdict(github, context, make_passing())
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert github.state.statuses[SHA][0]["state"] == "error"


@pytest.mark.parametrize("place", ["artifacts", "download", "storage"])
@pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=404), Fault(status=410), Fault()])
def test_a_verdict_that_cannot_be_fetched_leaves_no_earlier_one_standing(
    github: FakeGitHub, context: PublishContext, place: str, fault: Fault
) -> None:
    """An earlier attempt said PASS: that is taken back where this one's result cannot be had."""
    leave_pass(github)
    github.fail(*PLACES[place], replace(fault, times=99))
    published = publish_verdict(github, context, make_failing())
    status, (comment,) = github.state.statuses[SHA][0], github.state.list_comments(7)
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert (status["state"], status["description"]) == (
        "error",
        "no result: the result of the run could not be fetched from GitHub",
    )
    assert "The result of the run could not be fetched from GitHub." in comment["body"]
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
def test_a_run_for_another_base_is_not_told(
    github: FakeGitHub, context: PublishContext, name: str, created: str, is_told: bool
) -> None:
    """Started again, it measures against the base that it began with, which is another change."""
    leave_pass(github)
    github.state.runs[RUN.id] |= {"conclusion": "success", "run_started_at": "2026-11-01T11:45:00Z"}
    github.state.add_event(7, name, created)
    published = publish_verdict(github, context, make_passing())
    status, (comment,) = github.state.statuses[SHA][0], github.state.list_comments(7)
    assert published.outputs["verdict"] == ("PASS" if is_told else "INCOMPLETE")
    assert status["state"] == ("success" if is_told else "error")
    assert ("The pull request got another base branch after the run began" in comment["body"]) is not is_told


RETARGET = 101


def add_retarget(github: FakeGitHub, conclusion: str = "failure") -> None:
    """The pull request gets another base after its run has ended, and gate-retarget has run for that."""
    github.state.add_event(7, "base_ref_changed", "2026-11-01T12:30:00Z")
    run = github.state.add_run(RETARGET, SHA)
    run |= {"path": ".github/workflows/gate-retarget.yml", "name": "gate-retarget", "conclusion": conclusion}


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_a_base_that_is_changed_after_a_pass_takes_it_back(
    github: FakeGitHub, context: PublishContext
) -> None:
    """When gate-retarget has failed, the gate's own run is told to be of another base, everywhere."""
    leave_pass(github)
    publish_verdict(github, context, make_passing())
    add_retarget(github)

    published = publish(context, Settings(run_id=RETARGET))

    status, (comment,) = github.state.statuses[SHA][0], github.state.list_comments(7)
    assert (status["state"], status["target_url"]) == ("error", github.state.runs[RUN.id]["html_url"])
    assert "The pull request got another base branch after the run began" in comment["body"]
    assert published.outputs["verdict"] == "INCOMPLETE"


def test_of_several_runs_the_newest_of_the_same_head_is_taken_back(
    github: FakeGitHub, context: PublishContext
) -> None:
    """A fork's run of the same commit, and one that no pull request started, are of something else."""
    leave_pass(github)
    add_retarget(github)
    github.state.add_run(99, SHA)
    github.state.add_run(110, SHA, owner="mallory")
    github.state.add_run(111, SHA, event="push")

    publish(context, Settings(run_id=RETARGET))

    status = github.state.statuses[SHA][0]
    assert (status["state"], status["target_url"]) == ("error", github.state.runs[RUN.id]["html_url"])


@pytest.mark.parametrize("why", ["passed", "pushed", "none", "running"])
def test_a_changed_base_that_takes_nothing_back_is_silent(
    github: FakeGitHub, context: PublishContext, why: str
) -> None:
    """An edited title, a commit that is no head any more, and a gate that has not ended: it will be told."""
    add_retarget(github, "success" if why == "passed" else "failure")
    if why == "pushed":
        github.state.pulls[7]["head"]["sha"] = "e" * 40
    if why == "none":
        del github.state.runs[RUN.id]
    if why == "running":
        github.state.runs[RUN.id] |= {"status": "in_progress", "conclusion": None}

    published = publish(context, Settings(run_id=RETARGET))

    assert github.list_writes() == []
    assert "There is nothing to publish" in published.summary


def test_a_run_that_a_push_cancelled_is_silent(github: FakeGitHub, context: PublishContext) -> None:
    """Its commit is not what is to be merged; the run of the new one tells its own verdict."""
    set_conclusion(github, "cancelled")
    github.state.pulls[7]["head"]["sha"] = "e" * 40
    published = publish(context, Settings(run_id=RUN.id))
    assert github.list_writes() == []
    assert published.summary == "There is nothing to publish: the run ended with cancelled.\n"


def test_newer_attempt(github: FakeGitHub, context: PublishContext) -> None:
    """While a newer attempt of the run is under way, the older one's verdict is not told."""
    payload = make_workflow_run(github.state.runs[RUN.id])
    github.state.runs[RUN.id] |= {"run_attempt": 2, "conclusion": None, "status": "in_progress"}
    job = JobContext(repository=REPOSITORY, event_name="workflow_run", event=payload)
    published = publish(replace(context, job=job), Settings(run_id=RUN.id))
    assert github.list_writes() == []
    assert "a newer attempt of the run has begun" in published.summary


def test_hostile_artifact(github: FakeGitHub, context: PublishContext) -> None:
    """A rejected artifact is told as such, with nothing of it."""
    github.state.add_artifact(RUN.id, "compile-gate", ARCHIVES["unknown key"]())
    published = publish(context, Settings(run_id=RUN.id))
    body = github.state.list_comments(7)[0]["body"]
    assert "not one that this compile-gate reads" in body
    assert "script" not in body + published.summary + "".join(published.lines)


NEWER = put("schema", "compile-gate/verdict/1.5")


def test_verdict_of_a_newer_minor_version(github: FakeGitHub, context: PublishContext) -> None:
    """It is told without what is new in it, which is foreign text like any other."""

    def add_news(plain: dict[str, Any]) -> None:
        NEWER(plain)
        plain["script"] = "<script>@octocat</script>"
        plain["comparisons"][0]["note"] = "![x](https://evil.example)"

    github.state.add_artifact(RUN.id, "compile-gate", make_edited(add_news))
    published = publish(context, Settings(run_id=RUN.id, comment=CommentWhen.ALWAYS))
    body = github.state.list_comments(7)[0]["body"]
    assert published.outputs["verdict"] == "PASS"
    assert not any(mark in body + published.summary for mark in ("script", "octocat", "evil"))


@pytest.mark.parametrize("schema", ["compile-gate/verdict/4", "compile-gate/verdict/4.1"])
def test_verdict_of_a_newer_version(github: FakeGitHub, context: PublishContext, schema: str) -> None:
    """The publisher is older than the gate: the comment says which of the two to change, and what counts."""
    github.state.add_artifact(RUN.id, "compile-gate", make_edited(put("schema", schema)))
    published = publish(context, Settings(run_id=RUN.id))
    body = github.state.list_comments(7)[0]["body"]
    assert "a newer compile-gate than the workflow that publishes it uses" in body
    assert "- The check itself counts. To see verdicts here again, merge the new version" in body
    assert "See the run's log" not in body
    assert github.state.statuses[SHA][0]["state"] == "error"
    assert "newer compile-gate" in published.lines[0]


def test_superseded(github: FakeGitHub, context: PublishContext) -> None:
    """When the head moves while publishing, the comment is left alone and the summary says so."""
    old = github.state.add_comment(7, make_old_body(), DEFAULT_AUTHOR)["body"]

    def move() -> None:
        github.state.pulls[7]["head"]["sha"] = "e" * 40

    github.call_before("GET", "/comments$", move)
    published = publish_verdict(github, context, make_failing())
    assert [comment["body"] for comment in github.state.list_comments(7)] == [old]
    assert "left alone: the pull request has moved on" in published.summary
    assert not any(line.startswith("::warning") for line in published.lines)


def test_closed(github: FakeGitHub, context: PublishContext) -> None:
    """A closed pull request gets no comment; the commit still gets its status."""
    github.state.pulls[7]["state"] = "closed"
    published = publish_verdict(github, context, make_failing())
    assert github.state.list_comments(7) == []
    assert github.state.statuses[SHA][0]["state"] == "failure"
    assert "closed or merged" in published.summary


def test_merge_group(github: FakeGitHub, context: PublishContext) -> None:
    """A merge queue's run gets a status and a summary."""
    github.state.runs[RUN.id]["event"] = "merge_group"
    published = publish_verdict(github, context, make_failing())
    assert github.state.list_comments(7) == []
    assert github.state.statuses[SHA][0]["state"] == "failure"
    assert "merge queue" in published.summary


UNSTORED = make_verdict(
    *(
        replace(row, status=Status.NEW, reason=Reason.NO_BASELINE, baseline=None, change=None)
        for case in CASES
        for row in make_unchanged(case)
    )
)
PARTLY_UNSTORED = make_verdict(*make_unchanged(CASES[1]), UNSTORED.comparisons[0])


@pytest.mark.parametrize(
    ("verdict", "fail_on"), [(UNSTORED, FailOn.REGRESSION), (PARTLY_UNSTORED, FailOn.NEW)]
)
def test_a_green_merge_group_without_baselines_gets_no_red_status(
    github: FakeGitHub, context: PublishContext, verdict: Verdict, fail_on: FailOn
) -> None:
    """The check counted that its pull requests were accepted so, which is not known here."""
    github.state.runs[RUN.id] |= {"event": "merge_group", "conclusion": "success"}
    published = publish_verdict(github, context, verdict, fail_on=fail_on)
    assert github.state.statuses.get(SHA, []) == []
    assert published.outputs["status-state"] == ""
    assert "No commit status: the check of this merge group is green" in published.summary


@pytest.mark.parametrize(
    ("verdict", "conclusion"),
    [(UNSTORED, "failure"), (make_failing(), "success"), (make_failing(), "failure")],
)
def test_a_merge_group_that_fails_gets_a_red_status(
    github: FakeGitHub, context: PublishContext, verdict: Verdict, conclusion: str
) -> None:
    """Its check is red, or what it found is no lack of baselines: an accepted change is no regression."""
    github.state.runs[RUN.id] |= {"event": "merge_group", "conclusion": conclusion}
    publish_verdict(github, context, verdict)
    assert github.state.statuses[SHA][0]["state"] == "failure"


@pytest.mark.parametrize("event", ["workflow_dispatch", "push", "schedule"])
def test_other_runs_set_no_status(github: FakeGitHub, context: PublishContext, event: str) -> None:
    """A run by hand at a pull request's head does not turn the status that failed there into a green one."""
    failed = {"state": "failure", "context": "compile-gate/report", "target_url": None}
    github.state.add_status(SHA, failed)
    github.state.runs[RUN.id] |= {"event": event, "conclusion": "success"}
    published = publish_verdict(github, context, make_passing())
    assert [status["state"] for status in github.state.statuses[SHA]] == ["failure"]
    assert published.outputs["status-state"] == ""
    assert f"No commit status: the run was started by {escape_text(event)}." in published.summary


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_one_status_cannot_tell_of_two_pull_requests(github: FakeGitHub, context: PublishContext) -> None:
    """Two pull requests with one head have a verdict each, so the commit's one status is an error."""
    github.state.add_pull(8, SHA)
    set_conclusion(github, "success")
    published = publish_verdict(github, context, make_passing())
    status = github.state.statuses[SHA][0]
    assert (status["state"], status["description"]) == (
        "error",
        "no result is published: 2 open pull requests have this head, to different bases",
    )
    assert published.outputs["status-state"] == "error"
    assert [github.state.list_comments(number) for number in (7, 8)] == [[], []]


def test_a_pass_of_one_pull_request_takes_back_no_failure_of_another(
    github: FakeGitHub, context: PublishContext
) -> None:
    """Somebody opens another one with the same commit, where it passes: the status is an error then."""
    publish_verdict(github, context, make_failing())
    github.state.add_pull(8, SHA, owner="mallory")
    github.state.add_run(101, SHA, owner="mallory")["conclusion"] = "success"
    github.state.add_artifact(101, "compile-gate", make_archive(make_passing()))
    published = publish(context, Settings(run_id=101))
    status = github.state.statuses[SHA][0]
    told = "no result is published: another open pull request has this head"
    assert (status["state"], status["description"]) == ("error", told)
    assert "Commit status: an error, since another open pull request has this head." in published.summary
    (other,) = github.state.list_comments(8)
    assert "PASS" in other["body"]


def test_a_pass_of_a_closed_pull_request_takes_back_no_failure(
    github: FakeGitHub, context: PublishContext
) -> None:
    """It is closed before its run is told; the commit is still another one's head."""
    publish_verdict(github, context, make_failing())
    github.state.add_pull(8, SHA, branch="other")["state"] = "closed"
    github.state.add_run(101, SHA, branch="other")["conclusion"] = "success"
    github.state.add_artifact(101, "compile-gate", make_archive(make_passing()))
    publish(context, Settings(run_id=101))
    assert github.state.statuses[SHA][0]["state"] == "error"


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
def test_touched_rules(github: FakeGitHub, context: PublishContext, files: list[str], named: str) -> None:
    """A change of what it is judged by is flagged in the comment, by our names for it only."""
    github.state.files[7] = files
    base = replace(context.base, rules=("gate.yml", "baselines", WORKFLOWS))
    publish_verdict(github, replace(context, base=base), make_failing())
    body = github.state.list_comments(7)[0]["body"]
    assert ("touches the rules that judge changes" in body) is bool(named)
    assert named in body


def test_many_files(github: FakeGitHub, context: PublishContext) -> None:
    """Of a change of thousands of files the first 300 are looked at, and that is said."""
    github.state.files[7] = [f"@evil/{index}" for index in range(999)]
    base = replace(context.base, rules=("gate.yml",))
    publish_verdict(github, replace(context, base=base), make_failing())
    body = github.state.list_comments(7)[0]["body"]
    assert "Only the first 300 files were examined." in body
    assert "evil" not in body
    assert context.client.request_count <= 20


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
def test_faults(
    github: FakeGitHub,
    context: PublishContext,
    place: str,
    fault: str,
    times: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whatever fails wherever: no crash, nothing doubled, no changed verdict, no token to be seen."""
    if place == "change":
        github.state.add_comment(7, make_old_body(), DEFAULT_AUTHOR)
    context = replace(context, base=replace(context.base, rules=("gate.yml",)))
    broken = make_faults()[fault]
    broken.times = times
    github.fail(*PLACES[place], broken)
    published = publish_verdict(github, context, make_failing())
    assert published.outputs.get("verdict", "") in {"", "REGRESSION", "INCOMPLETE"}
    assert len(github.state.list_comments(7)) <= 1
    assert len(github.state.statuses.get(SHA, [])) <= 2
    assert context.client.request_count <= 40
    told = f"{published} {capfd.readouterr()} {list(github.state.comments.values())}"
    assert TOKEN not in told
    assert "storage-secret" not in told
    if place == "status" and times == 99:
        assert len(github.state.list_comments(7)) == 1  # one part's trouble is not the other's
    if place in {"comments", "comment", "change"}:
        assert github.state.statuses[SHA][0]["state"] == "failure"
    complains = "Trouble" in published.summary or "could not be fetched" in published.summary
    assert complains == any(line.startswith("::warning") for line in published.lines)


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
@pytest.mark.parametrize(("comments", "requests"), [(0, 13), (30, 13), (31, 13), (150, 15)])
def test_request_count(github: FakeGitHub, context: PublishContext, comments: int, requests: int) -> None:
    """Publishing takes few requests, and none for each comment."""
    for index in range(comments):
        github.state.add_comment(7, f"comment {index}")
    publish_verdict(github, context, make_failing())
    assert context.client.request_count == requests


# --- several gates of one run ---


def publish_gate(context: PublishContext, name: str, key: str = "") -> Publication:
    return publish(
        context,
        Settings(run_id=RUN.id, artifact_name=f"gate-{name}", key=key or name, status=f"gate/{key or name}"),
    )


def read_heading(github: FakeGitHub, key: str) -> str:
    bodies = [str(one["body"]) for one in github.state.list_comments(7)]
    (body,) = (one for one in bodies if f" key={key} " in one)
    return body.splitlines()[1]


def read_states(github: FakeGitHub) -> dict[str, str]:
    return {one["context"]: one["state"] for one in reversed(github.state.statuses[SHA])}


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_each_gate_of_a_run_is_told_by_its_own_job(github: FakeGitHub, context: PublishContext) -> None:
    """Gate a passed and b regressed, in two jobs: a is green, b red, and each comment says whose it is."""
    for name, verdict, conclusion in (("a", make_passing(), "success"), ("b", make_failing(), "failure")):
        artifact = github.state.add_artifact(RUN.id, f"gate-{name}", make_archive(verdict))
        times = {"began": "2026-11-01T11:59:00Z", "ended": "2026-11-01T13:00:00Z"}
        github.state.add_job(RUN.id, name, conclusion, uploaded=artifact["created_at"], **times)

    for name in "ab":
        assert not any("::warning" in line for line in publish_gate(context, name).lines)

    assert read_states(github) == {"gate/a": "success", "gate/b": "failure"}
    assert read_heading(github, "a").startswith("## ✅ `a`: PASS")
    assert read_heading(github, "b").startswith("## ❌ `b`: REGRESSION")


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out"])
def test_a_job_that_died_after_its_upload_does_not_pass(
    github: FakeGitHub, context: PublishContext, conclusion: str
) -> None:
    """Its verdict says PASS, and it ended otherwise: red, whatever the other job of the run did."""
    for name, ended in (("a", conclusion), ("b", "success")):
        artifact = github.state.add_artifact(RUN.id, f"gate-{name}", make_archive(make_passing()))
        times = dict.fromkeys(("began", "ended"), artifact["created_at"])
        github.state.add_job(RUN.id, name, ended, **times)

    for name in "ab":
        publish_gate(context, name)

    assert read_states(github) == {"gate/a": "failure", "gate/b": "success"}
    assert f"The run ended with {escape_text(conclusion)}" in read_heading(github, "a")


def test_where_jobs_are_not_told_the_run_decides(github: FakeGitHub, context: PublishContext) -> None:
    """Trouble that is told, and no pass of a run that failed."""
    github.state.add_artifact(RUN.id, "gate-a", make_archive(make_passing()))
    github.fail("GET", r"/jobs$", Fault(status=403, message=NO_RIGHT, times=9))

    published = publish_gate(context, "a")

    assert read_states(github) == {"gate/a": "failure"}
    assert "Which job left the verdict could not be looked up" in "".join(published.lines)


def test_two_gates_with_one_key_are_warned_of(github: FakeGitHub, context: PublishContext) -> None:
    """The second writes over the first, which passed unseen; told again, one gate warns of nothing."""
    for name, verdict in (("a", make_failing()), ("b", make_passing())):
        github.state.add_artifact(RUN.id, f"gate-{name}", make_archive(verdict))

    quiet = [publish_gate(context, "a", key="default") for _ in range(2)]
    warned = publish_gate(context, "b", key="default")

    assert not any("::warning" in line for one in quiet for line in one.lines)
    (warning,) = (line for line in warned.lines if line.startswith("::warning"))
    assert "showed the artifact gate-a of the same run" in warning
