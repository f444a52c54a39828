"""Comments, statuses and commands of a pull request, under act, from a repository that calls the workflow."""

import json
from typing import Any

import pytest
from deliveries import make_comment, make_workflow_run

from act.project import BREAK, CASE, RESPOND, MakeProject, Project
from act.runner import Runner
from gate.store.commit_files import BRANCH

JOB = "compile-gate/respond/"


def test_a_regression_is_reported_accepted_and_green(make: MakeProject) -> None:
    """A red check, a comment and a status, a writer's acceptance over two jobs, a green check."""
    project = make(change={"fault.json": BREAK})
    state = project.github.state

    red = project.check()
    assert red.outputs("Measure and judge")["exit-code"] == "10", red.text
    state.add_artifact(100, "compile-gate", red.artifacts["compile-gate"].read_bytes())

    published = project.start("workflow_run", make_workflow_run(state.runs[100]), RESPOND)
    assert published.jobs == {f"{JOB}comment and status": "success"}, published.text
    assert published.outputs("Publish")["verdict"] == "REGRESSION"
    assert state.statuses[project.head][0]["state"] == "failure"
    assert [CASE in body for body in project.comments] == [True]

    accepted = project.comment('/accept-regression reason="worth it"', "ada")
    assert accepted.jobs == {f"{JOB}{name}": "success" for name in ("authorize-acceptance", "accept")}
    assert state.runs[100]["run_attempt"] == 2
    assert BRANCH in state.git.run("for-each-ref")

    green = project.check()
    assert green.outputs("Measure and judge")["exit-code"] == "0", green.text
    assert "worth it" in green.summary


@pytest.mark.parametrize(
    ("command", "job"),
    [("/accept-regression reason=", "authorize-acceptance"), ("/refresh-baselines\n", "authorize-refresh")],
)
def test_a_strangers_command_ends_at_the_first_job(project: Project, command: str, job: str) -> None:
    """It is refused and answered; the rest of the comment is no command."""
    run = project.comment(f'{command}"$(id) ::set-output name=authorized::true"', "eve")

    assert run.jobs == {f"{JOB}{job}": "failure"}
    assert run.outputs("Authorize")["authorized"] == "false"
    assert len(project.comments) == 2


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("issue_comment", make_comment("/accept-regression") | {"issue": {"number": 8}}),
        ("issue_comment", make_comment("Nice.")),
        ("workflow_run", {"workflow_run": {"conclusion": "action_required"}}),
    ],
    ids=["issue", "remark", "approval"],
)
def test_what_asks_for_nothing_starts_no_job(project: Project, event: str, payload: dict[str, Any]) -> None:
    """A comment on an issue, one without a command, and a run that waits for approval."""
    assert project.start(event, payload, RESPOND).jobs == {}


@pytest.mark.parametrize(
    ("changes", "job"),
    [
        ({"base": {"ref": {"from": "old"}, "sha": {"from": "0" * 40}}}, {"check": "failure"}),
        ({"title": {"from": "$(id)"}}, {"check (same base)": "success"}),
    ],
    ids=["base", "title"],
)
def test_only_a_changed_base_takes_the_check_back(
    project: Project, changes: dict[str, Any], job: dict[str, str]
) -> None:
    """A new base turns the required check red; a new title turns another check green."""
    run = project.start("pull_request", project.make_pull_request("edited", changes=changes), RESPOND)

    assert run.jobs == {f"{JOB}{name}": result for name, result in job.items()}


def test_a_refresh_by_hand_becomes_a_pull_request(project: Project) -> None:
    """Three jobs authorise, measure, and propose from the uploaded artifact."""
    payload = {"inputs": {}, "ref": "refs/heads/main", "sender": {"login": "ada", "type": "User"}}

    run = project.start("workflow_dispatch", payload, RESPOND)

    jobs = ("authorize-refresh", "measure", "propose")
    assert run.jobs == {f"{JOB}{name}": "success" for name in jobs}, run.text
    assert run.outputs("Propose")["pull-request-url"] == get_proposal(project)["html_url"]


def test_a_refresh_by_comment_on_the_long_way(make: MakeProject, runner: Runner) -> None:
    """gate-refresh.yml measures the pull request's commit and commits the baselines to its branch."""
    path = ".github/workflows/gate-refresh.yml"
    project = make({path: runner.hub.load_workflow("gate-refresh.yml")}, {"fault.json": BREAK})

    run = project.comment("/refresh-baselines", "ada", path)

    names = ("authorize", "measure", "propose")
    assert run.jobs == {f"gate-refresh/{name}": "success" for name in names}, run.text
    proposal, git = get_proposal(project), project.github.state.git
    assert proposal["base"]["ref"] == "topic"
    changed = git.run("diff", "--name-only", f"{project.head}..{proposal['head']['sha']}")
    assert changed.startswith("baselines/")
    stored = json.loads(git.read(f"{proposal['head']['sha']}:{changed}"))
    assert (stored["provenance"]["author"], stored["provenance"]["commit"]) == ("ada", project.head)
    assert project.comments[-1].startswith(f"The new baselines are proposed: {proposal['html_url']}\n")


def get_proposal(project: Project) -> dict[str, Any]:
    """Find the one pull request that a run has opened."""
    (proposal,) = (pull for number, pull in project.github.state.pulls.items() if number != 7)
    return dict(proposal)
