"""Publishing an upgrade end to end against the fake GitHub: what the issue says, and what it never does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake.clock import FakeClock
from fake.issue_routes import add_issue, list_issues
from fake.server import TOKEN, FakeGitHub
from hostile_archives import ARCHIVES, MARKS
from publishing import FOR_GOOD, make_faults
from records import (
    CASES,
    ENVIRONMENT_ID,
    GATE_YML,
    RUN,
    SHA,
    make_archive,
    make_base,
    make_comparison,
    make_unchanged,
    make_verdict,
)

from gate.cli import main
from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.finding import Settings
from gate.github.job import JobContext
from gate.github.publish import Publication, publish
from gate.github.sticky import DEFAULT_AUTHOR
from gate.publish.body import MAX_BODY_BYTES, make_marker, render_body
from gate.publish.results import CommentWhen, list_upgrade_steps, make_upgrade_finding
from gate.publish.shown import make_shown
from gate.publish.submitted import Refusal
from gate.publish.trusted import TrustedResult
from gate.records.cases import Case, Metric
from gate.records.verdict import Comparison, MachineShift, Outcome, PairBase, Reason, Status, Tally, Verdict
from tests.golden_files import check_golden
from tests.hosts import CUDA_HOST

NEW_STACK = replace(CUDA_HOST, torch="2.14.0+cu130", device_uuid="GPU-2")
UPGRADED = replace(RUN, event="schedule", head_branch="main", conclusion="success")


def pair(
    case: Case, metric: Metric, status: Status, values: tuple[float, float] = (0.01, 0.01)
) -> Comparison:
    """A comparison that five pairs decided."""
    reason = {Status.UNCHANGED: Reason.BELOW_THRESHOLD, Status.INCONCLUSIVE: Reason.UNSETTLED}
    row = make_comparison(case, metric, status, reason.get(status, Reason.BEYOND_BAR), values)
    return replace(row, pairs=5, more_pairs=2 if status is Status.INCONCLUSIVE else None)


def make_upgrade(*rows: Comparison, **more: Any) -> Verdict:
    """A verdict of the old stack, which the base commit has baselines of, against a new one."""
    quiet = [
        replace(row, pairs=5, reason=Reason.BELOW_THRESHOLD)
        for case in CASES
        for row in make_unchanged(case)
        if all((row.case_id, row.metric) != (one.case_id, one.metric) for one in rows)
    ]
    stacks = {
        "environment": NEW_STACK,
        "baseline_environments": (ENVIRONMENT_ID,),
        "base": PairBase(label="torch 2.13.0", other_stack=True),
        "base_environment": CUDA_HOST,
        "tally": Tally(pairs=15, paired_cases=3),
        "machine": MachineShift(),
    }
    return make_verdict(*rows, *quiet, **{**stacks, **more})


def make_worse(**more: Any) -> Verdict:
    return make_upgrade(
        pair(CASES[0], Metric.COMPILED_LATENCY, Status.REGRESSED, (0.010, 0.013)),
        pair(CASES[1], Metric.COMPILED_LATENCY, Status.IMPROVED, (0.010, 0.008)),
        pair(CASES[0], Metric.GRAPH_BREAKS, Status.REGRESSED, (0, 1)),
        **more,
    )


def make_findings() -> dict[str, TrustedResult]:
    """Every situation that a reader can meet, by name."""
    verdicts = {
        "worse": make_worse(),
        "better": make_upgrade(pair(CASES[1], Metric.COMPILED_LATENCY, Status.IMPROVED, (0.010, 0.008))),
        "unsettled": make_upgrade(
            pair(CASES[2], Metric.COMPILED_LATENCY, Status.INCONCLUSIVE, (0.01, 0.0104))
        ),
        "same_stack": make_upgrade(environment=CUDA_HOST),
    }
    findings = {
        name: make_upgrade_finding(make_shown(one), make_base(), UPGRADED) for name, one in verdicts.items()
    }
    findings["no_result"] = TrustedResult(
        run=replace(UPGRADED, conclusion="failure"), refusal=Refusal.NO_ARTIFACT
    )
    return findings


@pytest.mark.parametrize("name", sorted(make_findings()))
def test_golden(name: str) -> None:
    """Each situation's issue reads as its golden file."""
    check_golden(f"issue/{name}.md", render_body(make_marker("h200", UPGRADED), make_findings()[name]))


def test_nothing_of_the_artifact_is_told() -> None:
    """Texts of whoever measured are in no issue."""
    for finding in make_findings().values():
        body = render_body(make_marker("default", UPGRADED), finding)
        assert "whoever measured" not in body
        assert "Mallory" not in body


def test_only_release_numbers_are_told_of_the_stacks() -> None:
    """An environment that names itself @all is told as none; so is a base that the repository lacks."""
    sides = (replace(NEW_STACK, torch="9.9@all"), replace(NEW_STACK, torch="2.14@all"))
    hostile = make_worse(base_environment=sides[0], environment=sides[1])

    body = render_body(
        make_marker("k", UPGRADED), make_upgrade_finding(make_shown(hostile), make_base(), UPGRADED)
    )

    assert "@" not in body
    assert "From torch 9.9 to 2.14: 3 cases" in body


def test_levels() -> None:
    """An upgrade of thousands of cases that all got worse fits, also where a comment may hold little."""
    cases = tuple(Case(id=f"model_{index:04}/test", model=f"model_{index:04}") for index in range(2000))
    rows = (pair(case, Metric.COMPILED_LATENCY, Status.REGRESSED, (0.01, 0.02)) for case in cases)
    sides = {"environment": NEW_STACK, "base_environment": CUDA_HOST}
    verdict = make_verdict(*rows, cases=cases, base=PairBase(), **sides)
    finding = make_upgrade_finding(make_shown(verdict), make_base(cases), UPGRADED)

    body = render_body(make_marker("default", UPGRADED), finding)

    assert len(body.encode()) <= MAX_BODY_BYTES
    assert "From torch 2.13.0 to 2.14.0: 2,000 cases of 2,000 models, measured side by side." in body
    assert "too long" in render_body(make_marker("default", UPGRADED), finding, 500)


def test_steps_name_a_few_cases() -> None:
    """The command can be copied, however many cases got worse: of many it names the models."""
    cases = tuple(Case(id=f"m{index}/t", model=f"m{index}") for index in range(9))
    rows = (pair(case, Metric.COMPILED_LATENCY, Status.REGRESSED, (0.01, 0.02)) for case in cases)

    steps = list_upgrade_steps(make_verdict(*rows, cases=cases))

    assert steps[1].endswith("--select m0,m1,m2,m3,m4,m5,m6,m7,m8`")


@pytest.mark.parametrize(
    ("status", "first"),
    [
        (Status.FAILED, "Stay on the old stack"),
        (Status.MISSING, "Read the log of the run"),
        (Status.INCONCLUSIVE, "Start the workflow `upgrade` again"),
        (Status.UNCHANGED, "Take the new stack"),
    ],
)
def test_only_what_is_broken_on_the_new_stack_says_to_stay(status: Status, first: str) -> None:
    """A case without a pair may have failed on the old stack, or there was no time for it."""
    verdict = make_upgrade(pair(CASES[0], Metric.COMPILED_LATENCY, status))

    assert list_upgrade_steps(verdict)[0].startswith(first)


@pytest.mark.parametrize("can_refresh", [True, False])
def test_an_upgrade_names_a_workflow_only_where_the_repository_has_it(can_refresh: bool) -> None:
    """Without gate-refresh.yml the new stack's baselines are recorded by hand."""
    base = replace(make_base(), can_refresh=can_refresh)

    (step,) = make_upgrade_finding(make_shown(make_upgrade()), base, UPGRADED).steps

    assert ("`gate-refresh`" in step) is can_refresh
    assert ("`compile-gate baseline refresh`" in step) is not can_refresh


def test_an_upgrade_of_which_nothing_was_judged_is_not_to_be_taken() -> None:
    """All of it is quarantined: whatever else there is to do, it is not that."""
    rows = tuple(replace(row, decides=False) for row in make_upgrade().comparisons)
    verdict = replace(make_upgrade(), comparisons=rows, outcome=Outcome.NOTHING_COMPARED)

    assert list_upgrade_steps(verdict) == ()


@pytest.fixture(autouse=True)
def _run(github: FakeGitHub) -> None:
    """A run of the default branch that is still going on, as it is for a job of its own."""
    run = github.state.add_run(RUN.id, SHA, branch="main", event="schedule")
    run |= {"status": "in_progress", "conclusion": None}


def publish_run(client: GitHubClient, **more: Any) -> Publication:
    usual = {"conclusion": "success", "key": "h200", "comment": CommentWhen.ON_CHANGE}
    settings = Settings(run_id=RUN.id, base=make_base(), issue=True, **{**usual, **more})
    return publish(client, JobContext(repository="octo-org/models"), settings)


def publish_verdict(github: FakeGitHub, client: GitHubClient, verdict: Verdict, **more: Any) -> Publication:
    """Let the run leave a verdict, and publish it."""
    github.state.artifacts.clear()
    github.state.add_artifact(RUN.id, "compile-gate", make_archive(verdict))
    return publish_run(client, **more)


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_an_upgrade_that_got_worse(github: FakeGitHub, client: GitHubClient, clock: FakeClock) -> None:
    """An issue with the paragraph on top, outputs and a summary, in few requests."""
    published = publish_verdict(github, client, make_worse())

    (issue,) = list_issues(github.state).values()
    assert (issue["title"], issue["state"]) == ("compile-gate: upgrade of the stack (h200)", "open")
    first, second, _, third = issue["body"].splitlines()[:4]
    assert first == f"<!-- compile-gate key=h200 run=100 attempt=1 head={SHA} -->"
    assert second.startswith("## \N{CROSS MARK} REGRESSION: 2 metrics worse in bert: ")
    assert third.startswith("From torch 2.13.0 to 2.14.0: 3 cases of 3 models, measured side by side.")
    assert published.outputs == {
        "verdict": "REGRESSION",
        "regressions": 2,
        "improvements": 1,
        "inconclusive": 0,
        "cases": 3,
        "environment-id": "",
        "head-sha": SHA,
        "issue-url": issue["html_url"],
    }
    assert "Issue of h200: created." in published.summary
    assert published.lines == ()
    assert len(github.requests) <= 8
    assert clock.slept == []
    assert TOKEN not in str(published)


def test_a_pass_is_quiet_and_closes_what_was_open(github: FakeGitHub, client: GitHubClient) -> None:
    """A first PASS opens nothing; after trouble it is said, and the issue is closed."""
    publish_verdict(github, client, make_upgrade())
    assert list_issues(github.state) == {}
    add_issue(
        github.state,
        {"body": f"<!-- compile-gate key=h200 run=9 attempt=1 head={SHA} -->\nold"},
        DEFAULT_AUTHOR,
    )

    published = publish_verdict(github, client, make_upgrade())

    (issue,) = list_issues(github.state).values()
    assert issue["state"] == "closed"
    assert "PASS: Nothing got worse" in issue["body"]
    assert "Issue of h200: closed" in published.summary


@pytest.mark.parametrize("when", [CommentWhen.ALWAYS, CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE])
def test_a_pass_by_hand_takes_nothing_back(
    github: FakeGitHub, client: GitHubClient, when: CommentWhen
) -> None:
    """A run of chosen cases or of a chosen stack leaves the issue as it is, and says so in its summary."""
    publish_verdict(github, client, make_worse())
    (before,) = (dict(issue) for issue in list_issues(github.state).values())
    github.state.runs[RUN.id]["event"] = "workflow_dispatch"

    published = publish_verdict(github, client, make_upgrade(), comment=when)

    (issue,) = list_issues(github.state).values()
    assert (issue["state"], issue["body"]) == ("open", before["body"])
    assert "PASS: Nothing got worse" in published.summary
    assert "The issue was left alone" in published.summary
    assert published.outputs["issue-url"] == ""


def test_a_failure_by_hand_is_told(github: FakeGitHub, client: GitHubClient) -> None:
    """What got worse opens the issue, whoever asked."""
    github.state.runs[RUN.id]["event"] = "workflow_dispatch"
    publish_verdict(github, client, make_worse())
    (issue,) = list_issues(github.state).values()
    assert issue["state"] == "open"


@pytest.mark.parametrize(
    ("when", "verdict", "is_open"),
    [
        (CommentWhen.ALWAYS, make_upgrade(), True),
        (CommentWhen.ON_CHANGE, make_upgrade(), False),
        (CommentWhen.ON_CHANGE, make_worse(), True),
        (CommentWhen.ON_FAILURE, make_worse(), True),
        (CommentWhen.NEVER, make_worse(), False),
    ],
)
def test_when(
    github: FakeGitHub, client: GitHubClient, when: CommentWhen, verdict: Verdict, is_open: bool
) -> None:
    """The setting says when there is to be an open issue."""
    publish_verdict(github, client, verdict, comment=when)

    assert bool(list_issues(github.state)) is is_open


@pytest.mark.parametrize("name", ["unknown key", "deep", "case twice", "no JSON", "zip slip"])
def test_hostile_artifacts(github: FakeGitHub, client: GitHubClient, name: str) -> None:
    """Read as a pull request's is, on which the whole corpus is tried: it is not published."""
    github.state.add_artifact(RUN.id, "compile-gate", ARCHIVES[name]())

    published = publish_run(client)

    told = str(published) + "".join(issue["body"] for issue in list_issues(github.state).values())
    assert [mark for mark in MARKS if mark in told] == []
    assert published.outputs["verdict"] == "INCOMPLETE"


@pytest.mark.parametrize(
    ("conclusion", "told"), [("success", "(slower)"), ("failure", "there is no verdict")]
)
def test_an_earlier_attempts_result_counts_only_where_its_job_succeeded(
    github: FakeGitHub, client: GitHubClient, conclusion: str, told: str
) -> None:
    """When only the report is run again the measurement stands; when measuring failed anew it does not."""
    github.state.runs[RUN.id] |= {"run_attempt": 2, "run_started_at": "2027-01-01T00:00:00Z"}

    publish_verdict(github, client, make_worse(), conclusion=conclusion)

    (issue,) = list_issues(github.state).values()
    assert told in issue["body"]


@pytest.mark.parametrize("more", [{"event": "pull_request"}, {"owner": "mallory"}])
def test_a_pull_requests_run_is_no_upgrade(
    github: FakeGitHub, client: GitHubClient, more: dict[str, str]
) -> None:
    """A fork's run, whatever it calls itself, cannot write the repository's issue."""
    github.state.add_run(RUN.id, SHA, **more)

    with pytest.raises(UsageError, match="measured a pull request"):
        publish_verdict(github, client, make_worse())
    assert github.list_writes() == []


PLACES = {
    "list": ("GET", r"/issues$"),
    "create": ("POST", r"/issues$"),
    "change": ("PATCH", r"/issues/\d+$"),
}


@pytest.mark.parametrize(
    ("fault", "times"), [*((fault, 1) for fault in make_faults()), *((fault, 99) for fault in FOR_GOOD)]
)
@pytest.mark.parametrize("place", PLACES)
def test_faults(
    github: FakeGitHub,
    client: GitHubClient,
    place: str,
    fault: str,
    times: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whatever fails wherever: no crash, no second issue, no changed verdict, no token to be seen."""
    if place == "change":
        old = f"<!-- compile-gate key=h200 run=9 attempt=1 head={SHA} -->\nold"
        add_issue(github.state, {"body": old}, DEFAULT_AUTHOR)
    broken = make_faults()[fault]
    broken.times = times
    github.fail(*PLACES[place], broken)

    published = publish_verdict(github, client, make_worse())

    assert published.outputs["verdict"] == "REGRESSION"
    assert len(list_issues(github.state)) <= 1
    assert len(github.requests) <= 30
    assert TOKEN not in f"{published} {capfd.readouterr()} {list_issues(github.state)}"
    assert ("Trouble" in published.summary) == any(line.startswith("::warning") for line in published.lines)


def test_the_command(
    github: FakeGitHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As a job calls it: settings from options, registry from the checkout, outputs to the runner."""
    (tmp_path / "gate.yml").write_text(GATE_YML)
    (tmp_path / "event.json").write_text(json.dumps({"schedule": "17 2 * * *"}))
    environ = github.environ | {
        "GITHUB_EVENT_NAME": "schedule",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    github.state.add_artifact(RUN.id, "upgrade", make_archive(make_worse()))

    options = ("--conclusion=success", "--artifact-name=upgrade", "--comment-key=h200")
    code = main(["github", "publish", "--issue", "--run-id=100", *options])

    assert code == 0
    (issue,) = list_issues(github.state).values()
    assert issue["html_url"] in (tmp_path / "output").read_text()
    assert "`bert` +30.0 %" in (tmp_path / "summary").read_text()
    assert TOKEN not in str(capfd.readouterr())
