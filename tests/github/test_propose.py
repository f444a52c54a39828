"""Proposing baselines: through the Git data API of a fake GitHub with a real repository behind it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake.faults import Fault
from refreshes import (
    BRANCH,
    CASE,
    ENVIRONMENT,
    OTHER,
    POLICY,
    STORED,
    Topic,
    load_definitions,
    make_context,
    make_gate_yml,
    make_run,
)

from gate.errors import FileError, UsageError
from gate.files.codec import BASELINE
from gate.fingerprint import compute_environment_id
from gate.github.git_data import GitData, compute_blob_sha
from gate.github.propose import RefreshRequest, propose_refresh
from gate.github.transport import GitHubError, RejectedError
from gate.publish.proposal_text import MAX_PROPOSAL_BYTES
from gate.records.cases import Case
from gate.records.facts import Disturbance
from gate.records.run import Conditions, Provenance


def test_new_baselines_become_one_commit_on_a_branch_and_a_pull_request(topic: Topic, tmp_path: Path) -> None:
    """The branch keeps other files, and the pull request names the baselines."""
    outcome = topic.propose()

    assert topic.check(tmp_path / "clone") == f"{STORED}\ngate.yml\nsrc/model.py"
    assert topic.git.run("rev-parse", f"{BRANCH}^") == topic.head
    assert (outcome.url, outcome.trouble) == (topic.pull["html_url"], "")
    assert (topic.pull["base"]["ref"], topic.pull["head"]["ref"]) == ("topic", BRANCH)
    assert "1 case recorded for the first time: `bert/inference-float32-smoke-default`." in topic.body.lower()


def test_a_baseline_that_somebody_moved_is_replaced_where_it_lies(topic: Topic) -> None:
    """A second file of it would make every command fail after the merge."""
    topic.propose()
    moved = STORED.replace("baselines/", "baselines/ci/")
    stored = topic.read()
    topic.push({moved: stored})
    topic.propose(latency_s=0.008)
    assert topic.proposed == [moved]
    assert topic.read(moved) != stored
    assert "baselines/cpu" not in topic.git.run("ls-tree", "-r", "--name-only", BRANCH)


def test_what_is_committed_is_made_here_and_not_copied_from_the_run(topic: Topic) -> None:
    """The file has GitHub's origin and the run's time; the run's author is dropped."""
    topic.propose(reason="a new fusion pass")

    baseline = BASELINE.decode(topic.read().encode(), STORED)
    expected = Provenance(
        commit=topic.head,
        created="2026-11-01T10:00:00Z",
        author="octocat",
        reason="a new fusion pass",
        run_url="https://github.com/octo-org/models/actions/runs/77",
        gate_version="0.1.0",
    )
    assert baseline.provenance == expected


def test_a_second_proposal_of_the_same_run_writes_nothing(topic: Topic) -> None:
    """The branch stays at its commit and there is one pull request."""
    run = topic.make_run()
    first = topic.propose(run)
    tip = topic.git.find_ref(f"heads/{BRANCH}")

    second = topic.propose(run)

    assert second.url == first.url
    assert topic.git.find_ref(f"heads/{BRANCH}") == tip
    assert topic.pull["html_url"] == first.url
    assert [write for write in topic.github.list_writes() if write.endswith("/git/commits")] == [
        "POST /repos/octo-org/models/git/commits"
    ]


def test_propose_measured_values_of_a_new_environment(topic: Topic) -> None:
    """A note points out that nothing is stored of its machine; of a known one it does not."""
    topic.store(0.010)
    topic.push({"baselines/README.md": "of all environments"})
    topic.propose(latency_s=0.012)
    assert "has no baselines of this environment" not in topic.body
    topic.git.run("update-ref", "-d", f"refs/heads/{BRANCH}")
    topic.propose(environment=replace(ENVIRONMENT, cpu="Another CPU"))
    assert "has no baselines of this environment" in topic.body


def test_values_that_are_stored_already_commit_nothing(topic: Topic) -> None:
    """Merged values that a newer head measures again make no branch and no pull request."""
    topic.store(0.010)

    assert topic.propose(latency_s=0.010).url == ""
    assert topic.github.list_writes() == []


def test_a_metric_that_moved_the_wrong_way_is_asked_about(topic: Topic) -> None:
    """12 ms over a stored 10 ms gives a box to tick and a question; a reason answers it."""
    topic.store(0.010)
    run = topic.make_run(latency_s=0.012)

    outcome = topic.propose(run)

    question = f"- [ ] `{CASE}` `compiled_latency` 10.0 ms -> 12.0 ms: *why?*"
    assert question in topic.body
    assert "### 1 metric moved the wrong way" in topic.body
    assert f"| `{CASE}` | `compiled_latency` | 10.0 ms | 12.0 ms | worse |" in topic.body
    assert outcome.setbacks == 1
    assert "Moved the wrong way" in topic.git.run("log", "-1", "--format=%B", BRANCH)

    topic.propose(run, reason="the new layer <b>costs</b> @octocat this")

    assert "*why?*" not in topic.body
    assert "The reason given: the new layer &lt;b&gt;costs&lt;/b&gt; @&#8203;octocat this" in topic.body


def test_a_machine_that_was_disturbed_is_reported_in_numbers(topic: Topic) -> None:
    """The text counts disturbed trials, without the run's own words."""
    run = topic.make_run()
    disturbances = (Disturbance.CROWDED, Disturbance.THROTTLED)
    unfit = Conditions(disturbances=disturbances, foreign_cores=1.5, throttled=("@octocat <b>",))
    trials = (replace(run.trials[0], conditions=unfit), *run.trials[1:])

    topic.propose(replace(run, trials=trials))

    assert topic.body.split("\n\n")[1] == (
        "- The machine was disturbed during 1 of 3 trials: other programs kept 1.5 of 2 cores busy,"
        " the device lowered its clocks.\n"
        "- Disturbed trials are recorded too of bert/inference-float32-smoke-default: fewer than 3 others"
        " came back. Record again on a quiet machine."
    )
    assert "octocat <b>" not in topic.body


def test_a_newer_head_moves_the_branch_and_keeps_the_pull_request(topic: Topic) -> None:
    """A pull request has one branch and one proposal, at its newest head."""
    first = topic.propose()
    head = topic.push({"src/model.py": "x = 2\n"})

    second = topic.propose(latency_s=0.011)

    assert second.url == first.url == topic.pull["html_url"]
    assert topic.git.run("rev-parse", f"{BRANCH}^") == head


@pytest.mark.parametrize("route", [r"/git/trees$", r"/git/commits$", r"/git/refs$", r"/pulls$"])
def test_an_answer_that_is_lost_neither_loses_nor_doubles_anything(
    topic: Topic, route: str, tmp_path: Path
) -> None:
    """Each write took effect before the connection broke; one branch and one pull request follow."""
    topic.github.fail("POST", route, Fault(truncate=True))

    outcome = topic.propose()

    assert STORED in topic.check(tmp_path / "clone")
    assert topic.pull["html_url"] == outcome.url


def test_a_branch_that_rules_forbid_is_an_error_that_names_it(topic: Topic) -> None:
    """A rule set that refuses the branch is an error, and no pull request is opened."""
    topic.github.fail("POST", r"/git/refs$", Fault(status=422, times=1))

    with pytest.raises(GitHubError, match="the branch compile-gate/baselines/pr-7 cannot be made"):
        topic.propose()

    assert topic.github.state.pulls == {}


def test_a_run_of_another_commit_than_was_authorised_writes_nothing(topic: Topic) -> None:
    """It may have measured anything."""
    request = RefreshRequest(head_sha=topic.head, head_ref="topic", directory="baselines", pr_number=7)

    with pytest.raises(UsageError, match="did not measure the commit"):
        propose_refresh(topic.client, make_context("issue_comment", {}), request, make_run("c" * 40), POLICY)

    assert topic.github.list_writes() == []


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
def test_a_case_that_the_registry_does_not_make_is_refused(topic: Topic, case_id: str) -> None:
    """A run's cases must be those of the measured commit, so no path or text of it is used."""
    error = topic.refuse(cases=(CASE, case_id))

    assert error.what == f"1 of the run's 2 cases is none that the registry of {topic.head[:12]} makes"
    assert case_id not in str(error)


@pytest.mark.parametrize(
    "path", ["gate.yml", "baselines", "baselines/../gate.yml", "/baselines/x", "baselinesx/y", ""]
)
def test_nothing_outside_the_baselines_can_be_written(topic: Topic, path: str) -> None:
    """A path outside the directory is refused before any request."""
    with pytest.raises(UsageError, match="does not lie below"):
        GitData(topic.client).write_tree("0" * 40, "baselines", {path: "x"})

    assert topic.github.list_writes() == []


def test_a_directory_of_which_github_lists_a_part_is_not_used(topic: Topic) -> None:
    """A baseline that is not listed would count as absent."""
    topic.push({STORED: "x"})
    topic.github.state.truncates_trees = True

    with pytest.raises(GitHubError, match="does not list all files"):
        GitData(topic.client).list_files(topic.git.run("rev-parse", "topic^{tree}"), "baselines")


def test_an_executable_file_is_listed_and_a_link_is_not(topic: Topic) -> None:
    """A script may be executable, and its lines are named; what a link points to may lie outside."""
    modes = {"run.py": "100755", "link.py": "120000", "plain.py": "100644"}
    tree = topic.git.write_tree(
        "", [{"path": path, "mode": mode, "content": "x"} for path, mode in modes.items()]
    )

    assert {*GitData(topic.client).list_files(tree, "")} == {"run.py", "plain.py"}


def test_a_stored_baseline_is_checked_against_its_id(topic: Topic) -> None:
    """A blob larger than any baseline is not used."""
    topic.push({STORED: "x" * 100})

    with pytest.raises(GitHubError, match="cannot be used"):
        GitData(topic.client).fetch_blob(compute_blob_sha(b"x" * 100), limit_bytes=99)


def test_a_damaged_stored_baseline_is_named(topic: Topic) -> None:
    """Otherwise the values that it held would vanish silently."""
    topic.push({STORED: "{}"})

    with pytest.raises(FileError, match=CASE):
        topic.propose()


def test_many_files_are_written_in_several_trees(topic: Topic, tmp_path: Path) -> None:
    """150 baselines are two requests and one commit, and the pull request's text stays within limits."""
    gate_yml = make_gate_yml(*(f"model{index}_" + "x" * 90 for index in range(150)))
    topic.push({"gate.yml": gate_yml})
    definitions = load_definitions(gate_yml)
    cases = tuple(
        Case(id=name, model=name.split("/")[0], definition=hashed) for name, hashed in definitions.items()
    )

    topic.propose(replace(topic.make_run(cases=tuple(definitions)), cases=cases))

    assert len(topic.check(tmp_path / "clone").splitlines()) == 152
    assert topic.github.list_writes().count("POST /repos/octo-org/models/git/trees") == 2
    assert len(topic.body.encode()) <= MAX_PROPOSAL_BYTES


# --- several proposals of one commit ---


GPU = replace(ENVIRONMENT, cpu="Another CPU")
ON_GPU = f"{compute_environment_id(GPU)}/{CASE}.json"


def test_proposals_list_others_of_their_commit(topic: Topic, tmp_path: Path) -> None:
    """The branch and the body have both selections and both machines."""
    topic.store(0.010)

    topic.propose(latency_s=0.012, reason="the new layer", run_id="1")
    topic.propose(cases=(OTHER,), run_id="2")
    last = topic.propose(environment=GPU, run_id="3")

    expected = {STORED, STORED.replace(CASE, OTHER), f"baselines/{ON_GPU}"}
    assert set(topic.proposed) == expected
    assert STORED in topic.check(tmp_path / "clone")
    assert (last.url, topic.pull["title"]) == (
        topic.pull["html_url"],
        "Refresh 3 baselines of 2 environments",
    )
    for number in range(1, 4):
        assert f"[this run](https://github.com/octo-org/models/actions/runs/{number})" in topic.body
    assert "The reason given: the new layer" in topic.body
    assert f"| `{CASE}` | `compiled_latency` | 10.0 ms | 12.0 ms | worse |" in topic.body
    assert topic.body.count("recorded for the first time") == 2


def test_each_directory_has_a_branch_and_a_pull_request(topic: Topic) -> None:
    """Two gates of one repository, also if no branch may have the directory's name."""
    topic.propose()
    topic.propose(directory="my gate/.b")

    refs = [pull["head"]["ref"] for pull in topic.github.state.pulls.values()]
    assert refs == [BRANCH, "compile-gate/my-gate/-b/pr-7"]


def test_what_is_measured_again_replaces_what_was_proposed_of_it(topic: Topic) -> None:
    """The newer values of the same case replace the older, in one section."""
    topic.propose(latency_s=0.012, run_id="1")
    topic.propose(latency_s=0.011, run_id="2")

    assert topic.proposed == [STORED]
    assert '"run_url":"https://github.com/octo-org/models/actions/runs/2"' in "".join(topic.read().split())
    assert "actions/runs/1)" not in topic.body


def test_a_newer_commits_proposal_replaces_those_of_the_commit_before(topic: Topic) -> None:
    """The older values are of code that is no longer there."""
    topic.propose(cases=(OTHER,))
    head = topic.push({"src/model.py": "x = 2\n"})
    topic.propose()

    assert topic.proposed == [STORED]
    assert topic.git.run("rev-parse", f"{BRANCH}^") == head


@pytest.mark.parametrize("is_stale", [False, True])
def test_two_proposals_at_once_lose_neither(topic: Topic, is_stale: bool) -> None:
    """Another machine's commit comes first: it stays, and this one is made again on top."""
    if is_stale:
        topic.propose(latency_s=0.020)
        topic.push({"src/model.py": "x = 2\n"})
    write, faster = GitData.write_commit, [topic.make_run(environment=GPU)]

    def write_commit(self: GitData, *arguments: Any) -> str:
        commit = write(self, *arguments)
        if faster:
            topic.propose(faster.pop())
        return commit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GitData, "write_commit", write_commit)
        with pytest.raises(RejectedError, match="moved on meanwhile"):
            topic.propose()

    assert topic.proposed == [f"baselines/{ON_GPU}"]
    topic.propose()
    assert set(topic.proposed) == {STORED, f"baselines/{ON_GPU}"}
    assert topic.body.count("recorded for the first time") == 2
