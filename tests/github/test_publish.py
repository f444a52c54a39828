"""Publishing end to end with the fake GitHub: the comment, its names, and several gates of a run."""

from dataclasses import replace
from html import unescape as html_unescape
from pathlib import Path
from typing import Any

import pytest
from fake.clock import FakeClock
from fake.faults import NO_RIGHT, Fault
from fake.git_routes import BareRepository
from publishing import INCONCLUSIVE, REPOSITORY, Publisher
from records import CASES, RUN, SHA, make_comparison, make_failing, make_passing, make_rows, make_verdict

from gate.decide.conclude.exit_codes import FailOn
from gate.github.publish import Publication
from gate.publish.results import CommentWhen
from gate.publish.submitted import WORKFLOWS
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.verdict import Cause, PairBase, Reason, Status, Tally, Verdict
from gate.report.markdown import escape_text


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_regression(publisher: Publisher, clock: FakeClock) -> None:
    """A regression gets a comment, a failed status, outputs, a summary and annotations."""
    published = publisher.publish(make_failing())
    comment = publisher.comments[0]
    status = publisher.status
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
    assert published.lines == ()  # the measuring job has printed them
    assert len(publisher.github.requests) <= 14
    assert clock.slept == [1.0]


def test_a_pass_is_a_sign_of_life(publisher: Publisher) -> None:
    """A PASS sets a status and writes a comment of one line, so silence always means trouble."""
    publisher.run["conclusion"] = "success"
    publisher.publish(make_passing())
    assert "PASS: Nothing got worse: 6 comparisons in 3 cases judged." in publisher.body
    assert publisher.status["state"] == "success"


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
    publisher: Publisher, history: list[str] | None, sha: str, named: bool
) -> None:
    """The artifact's commit is linked only if the pull request's base branch has it."""
    if history is not None:
        publisher.state.history["main"] = history
    verdict = make_failing(base=PairBase(commit=sha), tally=Tally(pairs=3, paired_cases=1))
    published = publisher.publish(verdict)
    assert (f"against [{sha[:12]}](https://github.com/{REPOSITORY}/commit/{sha})" in publisher.body) is named
    assert (sha in publisher.body) is named
    assert "REGRESSION" in publisher.body
    assert not any(line.startswith("::warning") for line in published.lines)


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("zoo/model.py:29", "New graph break at zoo/model.py:29; why is in the run's summary."),
        ("zoo/gone.py:29", "There are new graph breaks; their places are in the run's summary."),
        ("zoo/@octocat.py:29", "There are new graph breaks; their places are in the run's summary."),
    ],
)
def test_a_place_is_named_where_the_change_has_that_file(
    publisher: Publisher, tmp_path: Path, location: str, sentence: str
) -> None:
    """The artifact may name any line; one of a module of the measured commit is shown."""
    repository = BareRepository.create(tmp_path / "bare.git")
    files = {"zoo/model.py": "print()", "zoo/@octocat.py": ""}
    head = repository.commit(files, branch="topic")
    publisher.state.git = repository
    publisher.state.add_pull(7, head)
    publisher.state.add_run(RUN.id, head)
    fact = Fact(code=Code.GRAPH_BREAK, names=name_words(reason="evil", location=location))
    verdict = replace(
        make_failing(),
        causes=(Cause(case_id=CASES[0].id, weight=0.9, fact=fact),),
    )
    measured = replace(verdict, provenance=replace(verdict.provenance, commit=head))
    published = publisher.publish(measured)
    assert html_unescape(publisher.body).count(sentence) == 1
    assert "evil" not in publisher.body
    assert not any(line.startswith("::warning") for line in published.lines)


NEW_ROW = replace(
    make_comparison(CASES[0], Metric.PEAK_MEMORY, Status.NEW, Reason.NO_BASELINE), baseline=None, change=None
)
PARTLY_NEW = make_verdict(*make_rows(), NEW_ROW)  # a PASS, which is red where everything must have a baseline


@pytest.mark.parametrize(
    ("when", "verdict", "conclusion", "wanted"),
    [
        (CommentWhen.ALWAYS, make_passing(), "success", True),
        (CommentWhen.ON_CHANGE, make_passing(), "success", False),
        (CommentWhen.ON_CHANGE, INCONCLUSIVE, "success", True),
        (CommentWhen.ON_CHANGE, make_failing(), "success", True),
        (CommentWhen.ON_CHANGE, PARTLY_NEW, "failure", True),
        (CommentWhen.ON_CHANGE, make_passing(), "failure", True),  # the run failed after its verdict
        (CommentWhen.ON_FAILURE, INCONCLUSIVE, "success", False),
        (CommentWhen.ON_FAILURE, make_failing(), "success", True),
        (CommentWhen.ON_FAILURE, PARTLY_NEW, "failure", True),
        (CommentWhen.ON_FAILURE, make_passing(), "failure", True),
        (CommentWhen.NEVER, make_failing(), "success", False),
    ],
)
def test_when(
    publisher: Publisher, when: CommentWhen, verdict: Verdict, conclusion: str, wanted: bool
) -> None:
    """The setting decides when a first comment is written; a red check always gets one."""
    publisher.run["conclusion"] = conclusion
    fail_on = FailOn.NEW if verdict is PARTLY_NEW else FailOn.REGRESSION
    published = publisher.publish(verdict, comment=when, fail_on=fail_on)
    assert (len(publisher.comments) == 1) is wanted
    is_quiet = not wanted and when is not CommentWhen.NEVER
    assert ("not written, as the settings ask" in published.summary) is is_quiet


def test_superseded(publisher: Publisher) -> None:
    """When the head moves while publishing, the comment is left alone and the summary says so."""
    old = publisher.add_comment(99, "b" * 40)["body"]

    def move() -> None:
        publisher.state.pulls[7]["head"]["sha"] = "e" * 40

    publisher.github.call_before("GET", "/comments$", move)
    published = publisher.publish(make_failing())
    assert [comment["body"] for comment in publisher.comments] == [old]
    assert "left alone: the pull request has moved on" in published.summary
    assert not any(line.startswith("::warning") for line in published.lines)


def test_closed(publisher: Publisher) -> None:
    """A closed pull request gets no comment; the commit still gets its status."""
    publisher.state.pulls[7]["state"] = "closed"
    published = publisher.publish(make_failing())
    assert publisher.comments == []
    assert publisher.status["state"] == "failure"
    assert "closed or merged" in published.summary


TOUCHED = [
    ([], ""),
    (["src/model.py", "gate.yml.bak", "baselines2/x"], ""),
    (["gate.yml"], "gate.yml (1 file)"),
    ([".github/workflows/gate.yml", "gate.yml"], ".github (1 file), gate.yml (1 file)"),
    (["baselines/a/b.json", "gate.yml", "baselines/a/c.json"], "baselines (2 files), gate.yml (1 file)"),
]


@pytest.mark.parametrize(("files", "named"), TOUCHED)
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_touched_rules(publisher: Publisher, files: list[str], named: str) -> None:
    """The comment flags a change of the rules, by our names of them."""
    publisher.state.files[7] = files
    publisher.know_rules("gate.yml", "baselines", WORKFLOWS)
    publisher.publish(make_failing())
    assert ("edits the gate's configuration" in publisher.body) is bool(named)
    assert named in publisher.body


def test_many_files(publisher: Publisher) -> None:
    """Of thousands of changed files the first 300 are read, with a note."""
    publisher.state.files[7] = [f"@evil/{index}" for index in range(999)]
    publisher.know_rules("gate.yml")
    publisher.publish(make_failing())
    assert "Only the first 300 files were examined." in publisher.body
    assert "evil" not in publisher.body
    assert len(publisher.github.requests) <= 20


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
@pytest.mark.parametrize(("comments", "requests"), [(0, 14), (30, 14), (31, 14), (150, 16)])
def test_request_count(publisher: Publisher, comments: int, requests: int) -> None:
    """Publishing takes few requests, however many comments there are."""
    for index in range(comments):
        publisher.state.add_comment(7, f"comment {index}")
    publisher.publish(make_failing())
    assert len(publisher.github.requests) == requests


# --- several gates of one run ---


def publish_gate(publisher: Publisher, name: str, key: str = "") -> Publication:
    key = key or name
    return publisher.publish(artifact_name=f"gate-{name}", key=key, status=f"gate/{key}")


def read_heading(publisher: Publisher, key: str) -> str:
    bodies = [str(comment["body"]) for comment in publisher.comments]
    (body,) = (body for body in bodies if f" key={key} " in body)
    return body.splitlines()[1]


def read_states(publisher: Publisher) -> dict[str, str]:
    return {status["context"]: status["state"] for status in reversed(publisher.state.statuses[SHA])}


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_each_gate_of_a_run_is_judged_by_its_own_job(publisher: Publisher) -> None:
    """Gate a passed and b regressed in two jobs: a is green, b red, each comment is its own."""
    for name, verdict, conclusion in (("a", make_passing(), "success"), ("b", make_failing(), "failure")):
        artifact = publisher.leave(verdict, f"gate-{name}")
        times = {"began": "2026-11-01T11:59:00Z", "ended": "2026-11-01T13:00:00Z"}
        publisher.state.add_job(RUN.id, name, conclusion, uploaded=artifact["created_at"], **times)

    for name in "ab":
        assert not any("::warning" in line for line in publish_gate(publisher, name).lines)

    assert read_states(publisher) == {"gate/a": "success", "gate/b": "failure"}
    assert read_heading(publisher, "a").startswith("## ✅ `a`: PASS")
    assert read_heading(publisher, "b").startswith("## ❌ `b`: REGRESSION")


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out"])
def test_a_job_that_died_after_its_upload_does_not_pass(publisher: Publisher, conclusion: str) -> None:
    """Its verdict is PASS and its conclusion is not: red, whatever the other job did."""
    for name, ended in (("a", conclusion), ("b", "success")):
        artifact = publisher.leave(make_passing(), f"gate-{name}")
        times = dict.fromkeys(("began", "ended"), artifact["created_at"])
        publisher.state.add_job(RUN.id, name, ended, **times)

    for name in "ab":
        publish_gate(publisher, name)

    assert read_states(publisher) == {"gate/a": "failure", "gate/b": "success"}
    assert f"The run ended with {escape_text(conclusion)}" in read_heading(publisher, "a")


# --- one artifact of several jobs ---

SPAN = {"began": "2026-11-01T11:59:00Z", "ended": "2026-11-01T13:00:00Z"}


def run_machine(publisher: Publisher, name: str, conclusion: str, verdict: Verdict) -> dict[str, Any]:
    """Let a job upload its verdict in place of an earlier one."""
    publisher.state.artifacts.clear()
    artifact = publisher.leave(verdict)
    return publisher.state.add_job(RUN.id, name, conclusion, uploaded=artifact["created_at"], **SPAN)


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
@pytest.mark.parametrize(
    "names", [("check (gpu-a)", "check (gpu-b)"), ("gate (a) / check", "gate (b) / check"), ("on a", "on b")]
)
def test_a_matrix_does_not_pass_by_its_last_job(publisher: Publisher, names: tuple[str, str]) -> None:
    """Both machines upload under one name, so the first one's REGRESSION is gone: its job is named."""
    run_machine(publisher, names[0], "failure", make_failing())
    other = run_machine(publisher, names[1], "success", make_passing())
    other["steps"].append(other["steps"][0] | {"name": "Post Run actions/checkout@v7"})

    publisher.publish()

    assert publisher.status_told[0] == "failure"
    assert "but the run ended with failure" in publisher.status_told[1]
    assert "The run ended with failure, although its verdict is PASS" in publisher.body
    assert f"/{RUN.id}): {names[0]} failed and left no verdict. Fix it and push." in publisher.body


def test_a_failing_verdict_names_the_job_whose_own_is_gone(publisher: Publisher) -> None:
    """The last job's result is shown, with a note that it is not all."""
    run_machine(publisher, "check (gpu-a)", "failure", make_failing())
    run_machine(publisher, "check (gpu-b)", "failure", make_failing())

    publisher.publish()

    assert "REGRESSION" in publisher.body.splitlines()[1]
    assert "check (gpu-a) failed and left no verdict" in publisher.body
    assert "gpu-b" not in publisher.body


PASSED = (1, "check (gpu-b)", "success", make_passing())
FAILED = (1, "check (gpu-a)", "failure", make_failing())


@pytest.mark.parametrize(
    ("jobs", "conclusion", "is_lost"),
    [
        *(
            ([(1, "check (gpu-a)", end, None), PASSED], end, True)
            for end in ("failure", "cancelled", "timed_out")
        ),
        ([FAILED, PASSED, (2, "check (gpu-a)", "success", make_passing())], "success", False),
        ([FAILED, PASSED, (2, "check (gpu-a)", "failure", None)], "failure", True),
        ([FAILED, PASSED], "success", True),  # with `continue-on-error`
        ([(2, *FAILED[1:]), (2, *PASSED[1:])], "success", True),
        ([(1, "check (gpu-a)", "success", make_passing()), PASSED], "success", False),
    ],
    ids=[
        *("never began", "cancelled before", "timed out before", "passes again"),
        *("lost again", "may fail", "may fail again", "both pass"),
    ],
)
def test_a_run_passes_with_all_of_its_machines(
    publisher: Publisher, jobs: list[tuple[int, str, str, Verdict | None]], conclusion: str, is_lost: bool
) -> None:
    """Each job's last attempt counts; one without a verdict is named."""
    for attempt, name, ended, verdict in jobs:
        publisher.run["run_attempt"] = attempt
        if verdict is None:
            publisher.state.add_job(RUN.id, name, ended)["steps"] = []
        else:
            run_machine(publisher, name, ended, verdict)
    publisher.run["conclusion"] = conclusion

    publisher.publish()

    assert publisher.status_told[0] == ("failure" if is_lost else "success")
    assert ("check (gpu-a) failed and left no verdict" in publisher.body) is is_lost
    assert ("gpu" in publisher.body) is is_lost


@pytest.mark.parametrize("name", ["lint", "lint (3.12)"])
def test_a_job_that_does_something_else_does_not_fail_the_gate(publisher: Publisher, name: str) -> None:
    """It failed, and uploads logs, but never the artifact."""
    lint = publisher.state.add_job(RUN.id, name, "failure", **SPAN)
    lint["steps"].append(lint["steps"][0] | {"name": "Lint"})
    run_machine(publisher, "check (gpu-a)", "success", make_passing())

    publisher.publish()

    assert publisher.status_told[0] == "success"
    assert "lint" not in publisher.body


def test_details_of_its_own_are_no_verdict(publisher: Publisher) -> None:
    """The step that uploads the verdict counts; gpu-a's details have another name."""
    job = run_machine(publisher, "check (gpu-a)", "failure", make_failing())
    details = publisher.leave(b"", "details-a")
    other = run_machine(publisher, "check (gpu-b)", "success", make_passing())
    publisher.state.artifacts[details["id"]] = details
    for run, moment in ((job, details["created_at"]), (other, "2026-11-01T12:59:00Z")):
        step = run["steps"][0]
        run["steps"].append(step | {"name": "Upload all", "started_at": moment, "completed_at": moment})

    publisher.publish()

    assert publisher.status_told[0] == "failure"


def test_where_jobs_are_unknown_the_run_decides(publisher: Publisher) -> None:
    """Trouble is published, and no pass of a failed run."""
    publisher.leave(make_passing(), "gate-a")
    publisher.github.fail("GET", r"/jobs$", Fault(status=403, message=NO_RIGHT, times=9))

    published = publish_gate(publisher, "a")

    assert read_states(publisher) == {"gate/a": "failure"}
    assert "Which job left the verdict could not be looked up" in "".join(published.lines)
