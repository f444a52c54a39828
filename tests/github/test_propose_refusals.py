"""A proposal hides nothing and brings nothing back: its sources, and what stops it."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from fake.faults import NO_RIGHT, Fault
from fake.git_routes import NOT_PERMITTED
from refreshes import (
    BRANCH,
    CASE,
    GATE_YML,
    OTHER,
    POLICY,
    Topic,
    load_definitions,
    make_context,
    make_gate_yml,
    make_run,
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

# --- the branch ---


def push_on(topic: Topic) -> None:
    topic.push({"model.py": "x = 2\n"})


def push_over(topic: Topic) -> None:
    topic.git.run("update-ref", "-d", "refs/heads/topic")
    topic.push({"gate.yml": GATE_YML, "clean.py": "x\n"})


def remove(topic: Topic) -> None:
    topic.git.run("update-ref", "-d", "refs/heads/topic")


@pytest.mark.parametrize("move", [push_on, push_over, remove])
def test_a_branch_that_moved_on_gets_no_proposal(topic: Topic, move: Any) -> None:
    """Commits that were pushed away, perhaps a secret, would come back with the measured commit."""
    head = topic.push({"secrets.env": "KEY=1\n"})
    move(topic)

    error = topic.refuse(make_run(head))

    assert error.what.startswith(f"the branch is not at {head[:12]} any more")
    assert "Ask for the refresh again" in error.fix


def test_a_push_while_the_proposal_is_written_stops_it(topic: Topic) -> None:
    """The branch is checked again before anything points to the new commit."""
    topic.github.call_before("POST", r"/git/commits$", lambda: push_on(topic))

    with pytest.raises(UsageError, match="any more"):
        topic.propose()

    assert not topic.git.find_ref(f"heads/{BRANCH}")
    assert [write for write in topic.github.list_writes() if "/refs" in write or "/pulls" in write] == []


# --- the registry ---


def test_a_definition_that_the_run_makes_up_is_refused(topic: Topic) -> None:
    """It would replace stored values by those of something else."""
    run = topic.make_run(latency_s=0.030, cases=(CASE, OTHER))
    forged = (replace(run.cases[0], definition="1234567890abcdef"), run.cases[1])

    error = topic.refuse(replace(run, cases=forged))

    registry = f"the registry of {topic.head[:12]}"
    assert error.what == f"the run defines cases differently than {registry}: {CASE}"
    assert "merge it first and refresh the default branch" in error.fix


def test_a_definition_that_the_branch_changed_is_the_branchs(topic: Topic) -> None:
    """The measured commit's registry counts, not the default branch's."""
    gate_yml = make_gate_yml("bert", factory="bench:another")
    topic.push({"gate.yml": gate_yml})
    run = topic.make_run()
    cases = (replace(run.cases[0], definition=load_definitions(gate_yml)[CASE]),)

    topic.propose(replace(run, cases=cases))

    assert "recorded for the first time" in topic.body


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
def test_the_registry_is_read_wherever_it_lies(topic: Topic, files: dict[str, str], config: str) -> None:
    """In gate.yml or in another file, as data through the API."""
    head = topic.git.commit(files, branch="elsewhere")

    cases = load_cases_at(GitData(topic.client), head, config)

    assert {case.id: case.definition for case in cases} == load_definitions(GATE_YML)
    assert topic.github.list_writes() == []


def test_without_a_configuration_the_reference_models_are_the_registry(topic: Topic) -> None:
    """As in every other command."""
    head = topic.git.commit({"x": "y"}, branch="elsewhere")

    cases = load_cases_at(GitData(topic.client), head, "none/gate.yml")

    assert "bert/inference-float32-smoke-default" in {case.id for case in cases}


@pytest.mark.parametrize(
    "registry",
    ["/etc/passwd", "../../../../../../etc/passwd", "missing.yml", ".", "..", "link.yml", "a/../../x.yml"],
)
def test_a_registry_outside_of_the_repository_is_not_read(topic: Topic, registry: str) -> None:
    """A branch's configuration must not name files of the machine that reads it."""
    text = f"version: 1\nreference_models: false\nregistry: ['{registry}']\n"
    topic.git.commit({"gate.yml": text}, branch="elsewhere")
    blob = topic.git.run("hash-object", "-w", "--stdin", stdin=b"/etc/passwd")
    tree = topic.git.write_tree(
        topic.git.run("rev-parse", "elsewhere^{tree}"), [{"path": "link.yml", "mode": "120000", "sha": blob}]
    )

    with pytest.raises(UsageError, match="of the measured commit, or a registry") as caught:
        load_cases_at(GitData(topic.client), topic.git.run("commit-tree", tree, "-m", "x"), "gate.yml")

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
def test_a_registry_that_cannot_be_used_is_reported_without_its_words(topic: Topic, text: str) -> None:
    """A job with a token does not repeat the branch's text."""
    topic.push({"gate.yml": text})

    with pytest.raises(Exception, match=r"gate\.yml|cannot be used") as caught:
        topic.propose()

    assert not any(word in str(caught.value) for word in ("##[", "::", "octocat", "xxx", "4242424242"))
    assert topic.github.list_writes() == []


# --- the run ---


RUN = make_run("a" * 40)
FAILURE = make_failure(CASE, "##[error]", trial=3, kind=FailureKind.ERROR, stage="compile")
HUGE = tuple(replace(trial, workload={"x": "y" * MAX_BASELINE_BYTES}) for trial in RUN.trials)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"cases": ()}, "the run's cases are none or more than 1000"),
        (
            {"failures": (replace(FAILURE, stage="compile\n::set-output name=x::y"),)},
            f"not fit to be recorded: {CASE} (failed in an unknown stage)",
        ),
        ({"failures": (FAILURE,)}, f"not fit to be recorded: {CASE} (failed in compile)"),
        ({"trials": RUN.trials[:2]}, f"not fit to be recorded: {CASE} (2 of 3 trials)"),
        ({"trials": ()}, f"not fit to be recorded: {CASE} (0 of 3 trials)"),
        ({"finished": False}, "the run was stopped before its end"),
        # Megabytes of what it says of its workload would be in the repository for good.
        ({"trials": HUGE}, "a case of the run would make a larger file than a baseline may be"),
    ],
)
def test_a_run_that_is_not_fit_is_reported_in_our_words(
    topic: Topic, changes: dict[str, Any], what: str
) -> None:
    """Known cases and stages are named; other names of the run are not."""
    assert topic.refuse(**changes).what == what


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
    topic: Topic, samples: dict[Metric, tuple[float, ...]]
) -> None:
    """They are refused if no file can hold them, and shown otherwise."""
    run = topic.make_run()
    trials = tuple(Trial(case_id=CASE, index=index, samples=samples) for index in range(3))

    with suppress(UsageError):
        topic.propose(replace(run, trials=trials))

    stored = topic.github.state.pulls and topic.read()
    assert not stored or "Infinity" not in stored
    assert bool(stored) is bool(topic.github.list_writes())


def test_a_registry_of_a_thousand_files_is_not_read(topic: Topic) -> None:
    """Each would be a request, and the token has a thousand an hour."""
    names = ", ".join(f"m{index}.yml" for index in range(1000))
    head = topic.git.commit({"gate.yml": f"version: 1\nregistry: [{names}]\n"}, branch="elsewhere")

    with pytest.raises(UsageError, match="of the measured commit, or a registry"):
        load_cases_at(GitData(topic.client), head, "gate.yml")

    assert len(topic.github.requests) == 1


class _Commit(GitData):
    """A commit of these files, each of which is a request."""

    def __init__(self, client: GitHubClient, files: dict[str, str]) -> None:
        super().__init__(client)
        self._files = files

    def fetch_file(self, path: str, ref: str, limit_bytes: int) -> bytes | None:
        del ref, limit_bytes
        return self._files[path].encode() if path in self._files else None


@pytest.mark.parametrize(("count", "is_read"), [(50, True), (51, False)])
def test_propose_loads_cases_of_fifty_registries(client: GitHubClient, count: int, is_read: bool) -> None:
    """More are not asked for."""
    names = [f"m{index}.yml" for index in range(count)]
    model = "models:\n  - {name: bert, factory: 'bench:make', cases: [{}]}\n"
    files = dict.fromkeys(names, "version: 1\n") | {
        "gate.yml": f"version: 1\nreference_models: false\nregistry: [{', '.join(names)}]\n{model}"
    }
    commit = _Commit(client, files)
    if is_read:
        assert [case.id for case in load_cases_at(commit, "a" * 40, "gate.yml")] == [CASE]
        del files["m49.yml"]
    with pytest.raises(UsageError, match="of the measured commit, or a registry"):
        load_cases_at(commit, "a" * 40, "gate.yml")


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
def test_a_branch_that_is_refused_is_explained(topic: Topic, fault: Fault) -> None:
    """github.token may not write workflow files, whatever the job's rights."""
    topic.github.fail("POST", r"/git/refs$", Fault(**vars(fault)))

    with pytest.raises(GitHubError) as caught:
        topic.propose()

    assert "github.token may not write it: merge that change first" in caught.value.fix


def test_where_pull_requests_are_forbidden_the_branch_is_left_with_a_link(topic: Topic) -> None:
    """The link quotes a branch's signs, which could end it or begin another part."""
    topic.github.state.may_open_pulls = False
    head = topic.git.commit({"gate.yml": GATE_YML}, branch="fix/#7-100%")
    request = RefreshRequest(head_sha=head, head_ref="fix/#7-100%", directory="baselines")
    context = make_context("workflow_dispatch", {})

    outcome = propose_refresh(topic.client, context, request, make_run(head), POLICY)

    branch = "fix/%237-100%25"
    assert outcome.url == (
        f"https://github.com/octo-org/models/compare/{branch}...compile-gate/baselines/{branch}?expand=1"
    )
    assert topic.git.find_ref("heads/compile-gate/baselines/fix/#7-100%")
    assert NOT_PERMITTED in outcome.trouble


def test_a_run_in_words_of_its_own_is_read_as_data(topic: Topic) -> None:
    """Text of measured code is in the files, as JSON, and nowhere else."""
    run = topic.make_run()
    words = "@octocat ![x](https://evil.example) <!-- -->"
    trials = tuple(replace(trial, workload={words: words}) for trial in run.trials)

    topic.propose(replace(run, trials=trials, selection=words))

    texts = json.dumps([topic.pull["title"], topic.body, topic.git.run("log", "-1", "--format=%B", BRANCH)])
    assert not any(word in texts for word in ("octocat", "evil", "<!--"))
