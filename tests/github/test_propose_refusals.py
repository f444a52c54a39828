"""A proposal hides nothing and brings nothing back: what it is made from, and what stops it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from fake.faults import NO_RIGHT, Fault
from fake.git_routes import BareRepository
from fake.server import FakeGitHub
from refreshes import (
    BRANCH,
    CASE,
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

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.git_data import GitData
from gate.github.propose import RefreshRequest, load_cases_at, propose_refresh
from gate.github.transport import GitHubError
from gate.records.cases import Metric
from gate.records.run import FailureKind, Trial
from gate.store.baselines import MAX_BASELINE_BYTES
from tests.make import make_failure


@pytest.fixture
def git(bare: BareRepository) -> BareRepository:
    """The repository behind the fake GitHub: a default branch, and one that a pull request is for."""
    bare.commit({"gate.yml": "version: 1\nreference_models: false\n"}, branch="main")
    bare.commit({"gate.yml": GATE_YML}, branch="topic")
    return bare


# --- the branch ---


def push_on(git: BareRepository) -> None:
    git.commit({"model.py": "x = 2\n"}, branch="topic")


def push_over(git: BareRepository) -> None:
    git.run("update-ref", "-d", "refs/heads/topic")
    git.commit({"gate.yml": GATE_YML, "clean.py": "x\n"}, branch="topic")


def remove(git: BareRepository) -> None:
    git.run("update-ref", "-d", "refs/heads/topic")


@pytest.mark.parametrize("move", [push_on, push_over, remove])
def test_a_branch_that_moved_on_gets_no_proposal(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, move: Any
) -> None:
    """What was pushed away, a secret perhaps, would come back with the measured commit."""
    head = git.commit({"secrets.env": "KEY=1\n"}, branch="topic")
    move(git)

    with pytest.raises(UsageError, match=f"the branch is not at {head[:12]} any more") as caught:
        propose(client, make_run(head))

    assert "Ask for the refresh again" in caught.value.fix
    assert github.list_writes() == []


def test_a_push_while_the_proposal_is_written_stops_it(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """The branch is looked at once more before anything points to the new commit."""
    head = git.find_ref("heads/topic")
    github.call_before("POST", r"/git/commits$", lambda: push_on(git))

    with pytest.raises(UsageError, match="any more"):
        propose(client, make_run(head))

    assert not git.find_ref(f"heads/{BRANCH}")
    assert [write for write in github.list_writes() if "/refs" in write or "/pulls" in write] == []


# --- the registry ---


def test_a_definition_that_the_run_makes_up_is_refused(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """With a definition of its own a run would turn the stored values into those of something else."""
    head = git.find_ref("heads/topic")
    run = make_run(head, latency_s=0.030, cases=(CASE, OTHER))
    forged = (replace(run.cases[0], definition="1234567890abcdef"), run.cases[1])

    with pytest.raises(UsageError) as caught:
        propose(client, replace(run, cases=forged))

    assert caught.value.what == f"the run defines cases differently than the registry of {head[:12]}: {CASE}"
    assert "merge it first and refresh the default branch" in caught.value.fix
    assert github.list_writes() == []


def test_a_definition_that_the_branch_changed_is_the_branchs(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """The registry counts that the measured commit has, not the default branch's."""
    gate_yml = make_gate_yml("bert", factory="bench:another")
    head = git.commit({"gate.yml": gate_yml}, branch="topic")
    run = make_run(head)
    cases = (replace(run.cases[0], definition=load_definitions(gate_yml)[CASE]),)

    propose(client, replace(run, cases=cases))

    (pull,) = github.state.pulls.values()
    assert "recorded for the first time" in pull["body"]


LAYOUTS: list[tuple[dict[str, str], str]] = [
    ({"gate.yml": GATE_YML}, "gate.yml"),
    ({"perf/gate.yml": "version: 1\nreference_models: false\nregistry: [more/m.yml]\n",
      "perf/more/m.yml": GATE_YML.replace("reference_models: false\n", "")}, "perf/gate.yml"),
    ({"perf/gate.yml": "version: 1\nreference_models: false\nregistry: [../m.yml, x/../../n.yml]\n",
      "m.yml": "version: 1\nmodels:\n  - {name: bert, factory: 'bench:make', cases: [{}]}\n",
      "n.yml": "version: 1\nmodels:\n  - {name: lstm, factory: 'bench:make', cases: [{task: training}]}\n"},
     "perf/gate.yml"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "config"), LAYOUTS)
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_the_registry_is_read_wherever_it_lies(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, files: dict[str, str], config: str
) -> None:
    """In gate.yml, in a file below it, beside it or above it: through the API, as data."""
    head = git.commit(files, branch="elsewhere")

    cases = load_cases_at(GitData(client), head, config)

    assert {case.id: case.definition for case in cases} == load_definitions(GATE_YML)
    assert github.list_writes() == []


def test_without_a_configuration_the_reference_models_are_the_registry(
    client: GitHubClient, git: BareRepository
) -> None:
    """As everywhere else."""
    head = git.commit({"x": "y"}, branch="elsewhere")

    cases = load_cases_at(GitData(client), head, "none/gate.yml")

    assert "bert/inference-float32-smoke-default" in {case.id for case in cases}


@pytest.mark.parametrize(
    "registry",
    ["/etc/passwd", "../../../../../../etc/passwd", "missing.yml", ".", "..", "link.yml", "a/../../x.yml"],
)
def test_a_registry_outside_of_the_repository_is_not_read(
    client: GitHubClient, git: BareRepository, registry: str
) -> None:
    """A branch's configuration names files of the branch, and none of the machine that reads it."""
    text = f"version: 1\nreference_models: false\nregistry: ['{registry}']\n"
    git.commit({"gate.yml": text}, branch="elsewhere")
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"/etc/passwd")
    tree = git.write_tree(
        git.run("rev-parse", "elsewhere^{tree}"), [{"path": "link.yml", "mode": "120000", "sha": blob}]
    )

    with pytest.raises(UsageError, match="of the measured commit, or a registry") as caught:
        load_cases_at(GitData(client), git.run("commit-tree", tree, "-m", "x"), "gate.yml")

    assert "root:" not in str(caught.value)
    assert registry not in caught.value.what.removeprefix("gate.yml of")


@pytest.mark.parametrize(
    "text",
    [
        "##[add-mask]a\n",
        "version: 1\n::add-mask::a: 1\n",
        "version: 424242424242\n",
        "version: 1\nmodels: [{name: '@octocat', factory: 'a:b', cases: [{}]}]\n",
        "version: 1\nregistry: *x\n",
        "- " * 40_000,
        "x" * 2_000_000,
    ],
)
def test_a_registry_that_cannot_be_used_is_told_without_its_words(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, text: str
) -> None:
    """The branch's own text is not repeated by a job with a token."""
    head = git.commit({"gate.yml": text}, branch="topic")

    with pytest.raises(Exception, match=r"gate\.yml|cannot be used") as caught:
        propose(client, make_run(head))

    assert not any(word in str(caught.value) for word in ("##[", "::", "octocat", "xxx", "4242424242"))
    assert github.list_writes() == []


# --- the run ---


@pytest.mark.parametrize(
    ("failures", "trials", "what"),
    [
        (
            [("compile\n::set-output name=x::y", 3)],
            3,
            f"{CASE} (failed in an unknown stage)",
        ),
        ([("compile", 3)], 3, f"{CASE} (failed in compile)"),
        ([], 2, f"{CASE} (2 of 3 trials)"),
    ],
)
def test_a_run_that_is_not_fit_is_told_in_our_words(
    client: GitHubClient,
    git: BareRepository,
    failures: list[tuple[str, int]],
    trials: int,
    what: str,
) -> None:
    """Known cases and stages are named; what the run calls them is not."""
    run = make_run(git.find_ref("heads/topic"))
    failed = tuple(
        make_failure(CASE, "##[error]", trial=trial, kind=FailureKind.ERROR, stage=stage)
        for stage, trial in failures
    )

    with pytest.raises(UsageError) as caught:
        propose(client, replace(run, failures=failed, trials=run.trials[:trials]))

    assert caught.value.what == f"not fit to be recorded: {what}"


@pytest.mark.parametrize(
    "samples",
    [
        {Metric.COMPILED_LATENCY: (5e-324,), Metric.EAGER_LATENCY: (1e308,)},
        {Metric.COMPILED_LATENCY: (1e308, 1e308), Metric.EAGER_LATENCY: (5e-324, 1e-300)},
        {Metric.DRIFT: (1e308, 1e308, 1e308)},
        {Metric.PEAK_MEMORY: (1e308, 1e308)},
        {Metric.GRAPH_BREAKS: (-1e308, 1e308)},
        {
            Metric.COLD_COMPILE_TIME: (1e308,),
            Metric.EAGER_LATENCY: (2e-323,),
            Metric.COMPILED_LATENCY: (1e-323,),
        },
    ],
)
def test_numbers_that_no_measurement_gives_end_in_no_traceback(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, samples: dict[Metric, tuple[float, ...]]
) -> None:
    """They are refused where they do not fit into a file, and are shown where they do."""
    run = make_run(git.find_ref("heads/topic"))
    trials = tuple(Trial(case_id=CASE, index=index, samples=samples) for index in range(3))

    with suppress(UsageError):
        propose(client, replace(run, trials=trials))

    stored = github.state.pulls and git.read(f"{BRANCH}:{STORED}")
    assert not stored or "Infinity" not in stored
    assert bool(stored) is bool(github.list_writes())


def test_a_file_larger_than_a_baseline_may_be_is_not_proposed(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """What a run says of its workload is stored: megabytes of it would be in the repository for good."""
    run = make_run(git.find_ref("heads/topic"))
    trials = tuple(replace(trial, workload={"x": "y" * MAX_BASELINE_BYTES}) for trial in run.trials)

    with pytest.raises(UsageError, match="a larger file than a baseline may be"):
        propose(client, replace(run, trials=trials))

    assert github.list_writes() == []


def test_a_registry_of_a_thousand_files_is_not_read(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """Each would be a request, and the token has a thousand an hour."""
    names = ", ".join(f"m{index}.yml" for index in range(1000))
    head = git.commit({"gate.yml": f"version: 1\nregistry: [{names}]\n"}, branch="elsewhere")

    with pytest.raises(UsageError, match="of the measured commit, or a registry"):
        load_cases_at(GitData(client), head, "gate.yml")

    assert len(github.requests) == 1


# --- what GitHub refuses ---


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=403, message=NO_RIGHT),
        Fault(status=422, message="refusing to allow"),
        Fault(status=404, message="Not Found"),
    ],
    ids=lambda fault: str(fault.status),
)
def test_a_branch_that_is_refused_is_explained(
    client: GitHubClient, github: FakeGitHub, git: BareRepository, fault: Fault
) -> None:
    """github.token may not write workflow files, whatever the job is given."""
    github.fail("POST", r"/git/refs$", Fault(**vars(fault)))

    with pytest.raises(GitHubError) as caught:
        propose(client, make_run(git.find_ref("heads/topic")))

    assert "github.token may not write it: merge that change first" in caught.value.fix


def test_a_link_to_compare_is_quoted(client: GitHubClient, github: FakeGitHub, git: BareRepository) -> None:
    """A branch may be called with signs that end a link, or begin another part of it."""
    github.state.may_open_pulls = False
    head = git.commit({"gate.yml": GATE_YML}, branch="fix/#7-100%")
    request = RefreshRequest(head_sha=head, head_ref="fix/#7-100%", directory="baselines")
    context = make_context("workflow_dispatch", {})

    outcome = propose_refresh(client, context, request, make_run(head), POLICY)

    branch = "fix/%237-100%25"
    assert outcome.url == (
        f"https://github.com/octo-org/models/compare/{branch}...compile-gate/baselines/{branch}?expand=1"
    )


def test_a_run_in_words_of_its_own_is_read_as_data(
    client: GitHubClient, github: FakeGitHub, git: BareRepository
) -> None:
    """What measured code says of itself is in the files, as JSON, and nowhere else."""
    run = make_run(git.find_ref("heads/topic"))
    words = "@octocat ![x](https://evil.example) <!-- -->"
    trials = tuple(replace(trial, workload={words: words}) for trial in run.trials)

    propose(client, replace(run, trials=trials, selection=words))

    (pull,) = github.state.pulls.values()
    told = json.dumps([pull["title"], pull["body"], git.run("log", "-1", "--format=%B", BRANCH)])
    assert not any(word in told for word in ("octocat", "evil", "<!--"))


def test_a_run_that_was_stopped_is_not_proposed(client: GitHubClient, git: BareRepository) -> None:
    """Though it has three trials of each case."""
    run = replace(make_run(git.find_ref("heads/topic")), finished=False)
    with pytest.raises(UsageError, match="the run was stopped before its end"):
        propose(client, run)
