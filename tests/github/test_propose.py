"""Proposing baselines: through the Git data API of a fake GitHub with a real repository behind it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake import git_routes
from fake.faults import Fault
from fake.git_routes import BareRepository
from fake.server import FakeGitHub
from refreshes import (
    BRANCH,
    CASE,
    ENVIRONMENT,
    GATE_YML,
    OTHER,
    POLICY,
    STORED,
    load_definitions,
    make_context,
    make_gate_yml,
    make_run,
    propose,
)

from gate.errors import FileError, UsageError
from gate.files.codec import BASELINE
from gate.fingerprint import compute_environment_id
from gate.github.client import GitHubClient, Patience
from gate.github.git_data import GitData, compute_blob_sha
from gate.github.propose import RefreshRequest, propose_refresh
from gate.github.transport import GitHubError, RejectedError
from gate.publish.proposal_text import MAX_PROPOSAL_BYTES
from gate.records.cases import Case
from gate.records.facts import Disturbance
from gate.records.run import Conditions, Provenance
from tests.make import make_failure


@pytest.fixture
def git(bare: BareRepository, github: FakeGitHub) -> BareRepository:
    """The repository behind the fake GitHub, with a branch that a pull request is for."""
    bare.commit({"gate.yml": GATE_YML, "src/model.py": "x = 1\n"}, branch="topic")
    github.state.permissions = {}
    return bare


def check_repository(git: BareRepository, place: Path) -> str:
    """Clone the repository, let git check it, and return the clone's files on the proposal's branch."""
    subprocess.run(
        ["git", "clone", "--quiet", "--no-local", "--branch", BRANCH, str(git.path), str(place)],
        check=True,
        capture_output=True,
    )
    checked = subprocess.run(
        ["git", "-C", str(place), "fsck", "--full", "--strict"], check=True, capture_output=True, text=True
    )
    assert checked.stdout == ""
    listed = subprocess.run(["git", "-C", str(place), "ls-files"], check=True, capture_output=True, text=True)
    return listed.stdout


def test_new_baselines_become_one_commit_on_a_branch_and_a_pull_request(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, tmp_path: Path
) -> None:
    """A clone of the branch has the baselines beside untouched files, and the pull request names them."""
    head = git.find_ref("heads/topic")

    outcome = propose(client, make_run(head))

    assert check_repository(git, tmp_path / "clone") == f"{STORED}\ngate.yml\nsrc/model.py\n"
    assert git.run("rev-parse", f"{BRANCH}^") == head
    (pull,) = github.state.pulls.values()
    assert (outcome.url, outcome.trouble) == (pull["html_url"], "")
    assert (pull["base"]["ref"], pull["head"]["ref"]) == ("topic", BRANCH)
    assert (
        "1 case recorded for the first time: `bert/inference-float32-smoke-default`." in pull["body"].lower()
    )


def test_a_baseline_that_somebody_moved_is_replaced_where_it_lies(
    client: GitHubClient, git: BareRepository
) -> None:
    """A second file of it would be refused by every command, once it is merged."""
    propose(client, make_run(git.find_ref("heads/topic")))
    moved = STORED.replace("baselines/", "baselines/ci/")
    stored = git.read(f"{BRANCH}:{STORED}")
    git.commit({"gate.yml": GATE_YML, moved: stored}, branch="topic")
    propose(client, make_run(git.find_ref("heads/topic"), latency_s=0.008))
    files = git.run("ls-tree", "-r", "--name-only", BRANCH).split()
    assert [path for path in files if path.startswith("baselines/")] == [moved]
    assert git.read(f"{BRANCH}:{moved}") != stored


def test_what_is_committed_is_made_here_and_not_copied_from_the_run(
    client: GitHubClient, git: BareRepository
) -> None:
    """The origin in the file is GitHub's: the run's author is dropped, its time of measuring is kept."""
    head = git.find_ref("heads/topic")

    propose(client, make_run(head), reason="a new fusion pass")

    text = git.read(f"{BRANCH}:{STORED}")
    baseline = BASELINE.decode(text.encode(), STORED)
    expected = Provenance(
        commit=head,
        created="2026-11-01T10:00:00Z",
        author="octocat",
        reason="a new fusion pass",
        run_url="https://github.com/octo-org/models/actions/runs/77",
        gate_version="0.1.0",
    )
    assert baseline.provenance == expected


def test_a_second_proposal_of_the_same_run_writes_nothing(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """The branch stays at its commit and there is one pull request."""
    run = make_run(git.find_ref("heads/topic"))
    first = propose(client, run)
    tip = git.find_ref(f"heads/{BRANCH}")

    second = propose(client, run)

    assert second.url == first.url
    assert git.find_ref(f"heads/{BRANCH}") == tip
    assert len(github.state.pulls) == 1
    assert [write for write in github.list_writes() if write.endswith("/git/commits")] == [
        "POST /repos/octo-org/models/git/commits"
    ]


def test_values_that_are_stored_already_commit_nothing(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """Once merged, the same values from the newer head change nothing: no branch, no pull request."""
    git.commit({STORED: _store(client, github, git, latency_s=0.010)}, branch="topic")
    github.requests.clear()

    outcome = propose(client, make_run(git.find_ref("heads/topic"), latency_s=0.010))

    assert outcome.url == ""
    assert github.list_writes() == []


def test_a_metric_that_moved_the_wrong_way_is_asked_about(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """A latency of 12 ms over a stored 10 ms is a box to tick and a question; a reason answers it."""
    git.commit({STORED: _store(client, github, git, latency_s=0.010)}, branch="topic")
    run = make_run(git.find_ref("heads/topic"), latency_s=0.012)

    outcome = propose(client, run)

    (pull,) = github.state.pulls.values()
    question = f"- [ ] `{CASE}` `compiled_latency` 10.0 ms -> 12.0 ms: *why?*"
    assert question in pull["body"]
    assert "### 1 metric moved the wrong way" in pull["body"]
    assert f"| `{CASE}` | `compiled_latency` | 10.0 ms | 12.0 ms | worse |" in pull["body"]
    assert outcome.setbacks == 1
    assert "Moved the wrong way" in git.run("log", "-1", "--format=%B", BRANCH)

    propose(client, run, reason="the new layer <b>costs</b> @octocat this")

    assert "*why?*" not in pull["body"]
    assert "The reason given: the new layer &lt;b&gt;costs&lt;/b&gt; @&#8203;octocat this" in pull["body"]


def test_a_machine_that_was_disturbed_is_told_in_numbers(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """With what is recorded for want of quiet trials; the run's own words for it are left out."""
    run = make_run(git.find_ref("heads/topic"))
    disturbances = (Disturbance.CROWDED, Disturbance.THROTTLED)
    unfit = Conditions(disturbances=disturbances, foreign_cores=1.5, throttled=("@octocat <b>",))
    trials = (replace(run.trials[0], conditions=unfit), *run.trials[1:])

    propose(client, replace(run, trials=trials))

    (pull,) = github.state.pulls.values()
    assert pull["body"].split("\n\n")[1] == (
        "- The machine was disturbed during 1 of 3 trials: other programs kept 1.5 of 2 cores busy,"
        " the device lowered its clocks.\n"
        "- Disturbed trials are recorded too of bert/inference-float32-smoke-default: fewer than 3 others"
        " came back. Record again on a quiet machine."
    )
    assert "octocat <b>" not in pull["body"]


def _store(client: GitHubClient, github: FakeGitHub, git: BareRepository, latency_s: float) -> str:
    """Return the text of a baseline, by proposing it, and forget the proposal."""
    propose(client, make_run(git.find_ref("heads/topic"), latency_s=latency_s))
    text = git.read(f"{BRANCH}:{STORED}")
    git.run("update-ref", "-d", f"refs/heads/{BRANCH}")
    github.state.pulls.clear()
    return text


def test_a_newer_head_moves_the_branch_and_keeps_the_pull_request(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """The proposal for a pull request is one branch and one pull request, at its newest head."""
    first = propose(client, make_run(git.find_ref("heads/topic")))
    head = git.commit({"src/model.py": "x = 2\n"}, branch="topic")

    second = propose(client, make_run(head, latency_s=0.011))

    assert second.url == first.url
    assert git.run("rev-parse", f"{BRANCH}^") == head
    assert len(github.state.pulls) == 1


def test_where_pull_requests_are_forbidden_the_branch_is_left_with_a_link(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """An organisation may forbid it; the work is kept and the page to open it on is told."""
    github.state.may_open_pulls = False

    outcome = propose(client, make_run(git.find_ref("heads/topic")))

    assert outcome.url == f"https://github.com/octo-org/models/compare/topic...{BRANCH}?expand=1"
    assert git.find_ref(f"heads/{BRANCH}")
    assert git_routes.NOT_PERMITTED in outcome.trouble


@pytest.mark.parametrize("route", [r"/git/trees$", r"/git/commits$", r"/git/refs$", r"/pulls$"])
def test_an_answer_that_is_lost_neither_loses_nor_doubles_anything(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, route: str, tmp_path: Path
) -> None:
    """Each write took effect and the connection broke: there is still one branch and one pull request."""
    github.fail("POST", route, Fault(truncate=True))

    outcome = propose(client, make_run(git.find_ref("heads/topic")))

    assert STORED in check_repository(git, tmp_path / "clone")
    assert [pull["html_url"] for pull in github.state.pulls.values()] == [outcome.url]


def test_a_branch_that_rules_forbid_is_an_error_that_names_it(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """A rule set that refuses the branch ends in a message about the branch, and no pull request."""
    github.fail("POST", r"/git/refs$", Fault(status=422, times=1))

    with pytest.raises(GitHubError, match="the branch compile-gate/baselines/pr-7 cannot be made"):
        propose(client, make_run(git.find_ref("heads/topic")))

    assert github.state.pulls == {}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"provenance": Provenance(commit="c" * 40)}, UsageError, "did not measure the commit"),
        ({"cases": ()}, UsageError, "are none or more than"),
        (
            {"failures": (make_failure(CASE, "", trial=0, stage="warm"),)},
            UsageError,
            "not fit to be recorded",
        ),
        ({"trials": ()}, UsageError, "not fit to be recorded"),
    ],
)
def test_a_run_that_is_not_what_was_authorised_writes_nothing(
    client: GitHubClient,
    github: FakeGitHub,
    git: BareRepository,
    changes: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    """Another commit, no cases, a failed case, no trials: nothing is sent."""
    head = git.find_ref("heads/topic")
    request = RefreshRequest(head_sha=head, head_ref="topic", directory="baselines", pr_number=7)
    run = make_run(head, **changes)

    with pytest.raises(error, match=words):
        propose_refresh(client, make_context("issue_comment", {}), request, run, POLICY)

    assert github.list_writes() == []


@pytest.mark.parametrize(
    "case_id",
    [
        "../../.github/workflows/x",
        "a/../../x",
        "/etc/passwd",
        "a/b/c",
        "approved_by_security_team/merge-without-review_see_evil.example",
    ],
)
def test_a_case_that_the_registry_does_not_make_is_refused(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, case_id: str
) -> None:
    """Neither a path nor words of a run get anywhere: its cases must be those of the measured commit."""
    head = git.find_ref("heads/topic")
    with pytest.raises(UsageError) as caught:
        propose(client, make_run(head, cases=(CASE, case_id)))

    assert caught.value.what == (f"1 of the run's 2 cases is none that the registry of {head[:12]} makes")
    assert case_id not in str(caught.value)
    assert github.list_writes() == []


@pytest.mark.parametrize(
    "path", ["gate.yml", "baselines", "baselines/../gate.yml", "/baselines/x", "baselinesx/y", ""]
)
def test_nothing_outside_the_baselines_can_be_written(
    client: GitHubClient, github: FakeGitHub, path: str
) -> None:
    """The layer that writes refuses every path that is not below the directory, before anything is sent."""
    with pytest.raises(UsageError, match="does not lie below"):
        GitData(client).write_tree("0" * 40, "baselines", {path: "x"})

    assert github.list_writes() == []


def test_a_stored_baseline_is_checked_against_its_id(client: GitHubClient, git: BareRepository) -> None:
    """A blob that is larger than a baseline may be is not used."""
    git.commit({STORED: "x" * 100}, branch="topic")

    with pytest.raises(GitHubError, match="cannot be used"):
        GitData(client).load_blob(compute_blob_sha(b"x" * 100), limit_bytes=99)


def test_a_damaged_stored_baseline_is_named(client: GitHubClient, git: BareRepository) -> None:
    """A stored file that cannot be read is an error that names it: silence would hide what it held."""
    head = git.commit({STORED: "{}"}, branch="topic")

    with pytest.raises(FileError, match=CASE):
        propose(client, make_run(head))


def test_many_files_are_written_in_several_trees(
    github: FakeGitHub, git: BareRepository, tmp_path: Path
) -> None:
    """150 baselines are two requests and one commit, and the pull request's text stays within limits."""
    gate_yml = make_gate_yml(*(f"model{index}_" + "x" * 150 for index in range(150)))
    head = git.commit({"gate.yml": gate_yml}, branch="topic")
    definitions = load_definitions(gate_yml)
    cases = tuple(
        Case(id=name, model=name.split("/")[0], definition=one) for name, one in definitions.items()
    )

    # The stand-in starts a git for each file of a request.
    patience = Patience(exchange_s=30.0)
    client = github.connect(patience)
    propose(client, replace(make_run(head, cases=tuple(definitions)), cases=cases))

    assert len(check_repository(git, tmp_path / "clone").splitlines()) == 152
    assert github.list_writes().count("POST /repos/octo-org/models/git/trees") == 2
    (pull,) = github.state.pulls.values()
    assert len(pull["body"].encode()) <= MAX_PROPOSAL_BYTES


def test_two_cases_of_which_one_is_new_are_told_apart(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """What changed is counted beside what is new."""
    git.commit({STORED: _store(client, github, git, latency_s=0.010)}, branch="topic")

    propose(client, make_run(git.find_ref("heads/topic"), latency_s=0.009, cases=(CASE, OTHER)))

    (pull,) = github.state.pulls.values()
    assert "1 new, 1 changed." in pull["body"]
    assert "moved the wrong way" not in pull["body"]
    assert f"| `{CASE}` | `compiled_latency` | 10.0 ms | 9.00 ms | better |" in pull["body"]


# --- several proposals of one commit ---


def list_proposed(git: BareRepository) -> list[str]:
    return git.run("diff", "--name-only", "topic", BRANCH).split()


GPU = replace(ENVIRONMENT, cpu="Another CPU")
ON_GPU = f"{compute_environment_id(GPU)}/{CASE}.json"


def test_proposals_of_one_commit_add_up(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, tmp_path: Path
) -> None:
    """Two selections and two machines: the branch has all, and the body lists all."""
    head = git.commit({"gate.yml": GATE_YML, STORED: _store(client, github, git, 0.010)}, branch="topic")

    propose(client, make_run(head, latency_s=0.012), reason="the new layer", run_id="1")
    propose(client, make_run(head, cases=(OTHER,)), run_id="2")
    last = propose(client, make_run(head, environment=GPU), run_id="3")

    expected = {STORED, STORED.replace(CASE, OTHER), f"baselines/{ON_GPU}"}
    assert set(list_proposed(git)) == expected
    assert STORED in check_repository(git, tmp_path / "clone")
    (pull,) = github.state.pulls.values()
    assert (last.url, pull["title"]) == (pull["html_url"], "Refresh 3 baselines of 2 environments")
    for number in range(1, 4):
        assert f"[this run](https://github.com/octo-org/models/actions/runs/{number})" in pull["body"]
    assert "The reason given: the new layer" in pull["body"]
    assert f"| `{CASE}` | `compiled_latency` | 10.0 ms | 12.0 ms | worse |" in pull["body"]
    assert pull["body"].count("recorded for the first time") == 2


def test_each_directory_has_a_branch_and_a_pull_request(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """Two gates of one repository, whose directories may be called as no branch is."""
    head = git.find_ref("heads/topic")
    propose(client, make_run(head))
    propose(client, make_run(head), directory="my gate/.b")

    refs = [pull["head"]["ref"] for pull in github.state.pulls.values()]
    assert refs == [BRANCH, "compile-gate/my-gate/-b/pr-7"]


def test_what_is_measured_again_replaces_what_was_proposed_of_it(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """The newer values of the same case, and one section for them."""
    head = git.find_ref("heads/topic")
    propose(client, make_run(head, latency_s=0.012), run_id="1")
    propose(client, make_run(head, latency_s=0.011), run_id="2")

    assert list_proposed(git) == [STORED]
    assert '"run_url":"https://github.com/octo-org/models/actions/runs/2"' in "".join(
        git.read(f"{BRANCH}:{STORED}").split()
    )
    (pull,) = github.state.pulls.values()
    assert "actions/runs/1)" not in pull["body"]


def test_a_newer_commits_proposal_replaces_those_of_the_commit_before(
    client: GitHubClient, git: BareRepository
) -> None:
    """They were measured at what is no longer there."""
    propose(client, make_run(git.find_ref("heads/topic"), cases=(OTHER,)))
    head = git.commit({"src/model.py": "x = 2\n"}, branch="topic")
    propose(client, make_run(head))

    assert list_proposed(git) == [STORED]
    assert git.run("rev-parse", f"{BRANCH}^") == head


@pytest.mark.parametrize("is_stale", [False, True])
def test_two_proposals_at_once_lose_neither(
    github: FakeGitHub, client: GitHubClient, git: BareRepository, is_stale: bool
) -> None:
    """Another machine's is made while this one's commit is: it stays, and this one is asked for again."""
    if is_stale:
        propose(client, make_run(git.find_ref("heads/topic"), latency_s=0.020))
        git.commit({"src/model.py": "x = 2\n"}, branch="topic")
    head = git.find_ref("heads/topic")
    write, faster = GitData.write_commit, [make_run(head, environment=GPU)]

    def write_commit(self: GitData, *arguments: Any) -> str:
        commit = write(self, *arguments)
        if faster:
            propose(client, faster.pop())
        return commit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GitData, "write_commit", write_commit)
        with pytest.raises(RejectedError, match="moved on meanwhile"):
            propose(client, make_run(head))

    assert list_proposed(git) == [f"baselines/{ON_GPU}"]
    propose(client, make_run(head))
    assert set(list_proposed(git)) == {STORED, f"baselines/{ON_GPU}"}
    (pull,) = github.state.pulls.values()
    assert pull["body"].count("recorded for the first time") == 2
