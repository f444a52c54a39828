"""A comment becomes stored acceptances, a second run of the check, and an answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from deliveries import leave_comment
from fake.faults import NO_RIGHT, Fault
from fake.git_routes import BareRepository
from fake.server import TOKEN, FakeGitHub
from hostile_archives import INJECTED
from records import CASES, make_archive, make_comparison, make_failing, make_regressed, make_verdict
from runner_log import list_commands
from token_job import Ran, TokenJob

from gate.publish.comment_commands import MAX_ACCEPTED_ROWS
from gate.records.cases import Acceptance, Case, Metric
from gate.records.codes import Code
from gate.records.verdict import Reason, Status, Verdict
from gate.store.commit_files import BRANCH, decode_commit_file, name_commit_file
from tests.words import make_facts

HEAD = "a" * 40
COMMAND = '/accept-regression reason="the new attention"'
RUN_ID = 100


@dataclass(frozen=True, kw_only=True)
class Asked(Ran):
    answers: list[str]


Ask = Callable[..., Asked]


@pytest.fixture
def ask(job: TokenJob, github: FakeGitHub, git: BareRepository) -> Ask:
    """Comment on pull request 7 of a fork, whose gate failed, and run the job that holds the token."""
    assert git.find_ref("heads/main")
    github.state.permissions = {"ada": "write", "eve": "read"}
    github.state.add_pull(7, HEAD, owner="mallory")
    github.state.add_run(RUN_ID, HEAD, owner="mallory")

    def run(body: str = COMMAND, author: str = "ada", head_sha: str = HEAD, *options: str) -> Asked:
        event = leave_comment(github, body, author)
        given = ("--head-sha", head_sha, *options)
        ran = job.run("accept-regression", *given, event_name="issue_comment", event=event)
        answers = [comment["body"] for comment in github.state.list_comments(7)[1:]]
        assert TOKEN not in "".join(answers)
        return Asked(**vars(ran), answers=answers)

    return run


def leave(github: FakeGitHub, verdict: Verdict) -> None:
    """Add the artifact of the gate's run."""
    github.state.add_artifact(RUN_ID, "compile-gate", make_archive(verdict))


def load(git: BareRepository) -> tuple[Acceptance, ...]:
    text = git.read(f"{BRANCH}:{name_commit_file(HEAD)}")
    return decode_commit_file(text.encode(), "the file", HEAD).acceptances


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_a_writers_comment_becomes_an_acceptance_and_the_check_runs_again(
    ask: Ask, github: FakeGitHub, git: BareRepository
) -> None:
    """It is stored for the head under GitHub's name of the author; the run is at its second attempt."""
    leave(github, make_failing())

    asked = ask()

    assert asked.code == 0, asked.log
    (entry,) = load(git)
    assert (entry.case, entry.metric, entry.allowance) == (CASES[0].id, Metric.COMPILED_LATENCY, 0.33)
    assert (entry.author, entry.reason) == ("ada", "the new attention")
    assert github.state.runs[RUN_ID]["run_attempt"] == 2
    assert list(github.state.reactions.values()) == [["eyes", "rocket"]]
    (answer,) = asked.answers
    assert f"Accepted for commit {HEAD[:12]} alone, until " in answer
    assert f"| `{CASES[0].id}` | compiled latency | +30.6 % | 33 % |" in answer
    assert "Now [the check](https://github.com/octo-org/models/actions/runs/100) runs again" in answer
    assert asked.summary.startswith("Accepted for commit")
    message = git.run("log", "-1", "--format=%B", BRANCH)
    assert message == f"Accept 1 regression of {HEAD[:12]}\n\nBy ada, on pull request 7."
    writes = [write for write in github.list_writes() if "/issues/" not in write]
    assert [write.rpartition("/")[2] for write in writes] == ["trees", "commits", "refs", "rerun-failed-jobs"]


def test_neither_reason_nor_author_is_repeated_in_the_repositorys_name(ask: Ask, github: FakeGitHub) -> None:
    """The comment above has both; nobody is mentioned."""
    leave(github, make_failing())

    asked = ask('/accept-regression reason="@octo-org/all ![x](https://evil.example) ##[add-mask]a"')

    assert asked.code == 0
    for text in (*asked.answers, asked.summary):
        assert "evil" not in text
        assert "@" not in text
    assert {command.name for command in list_commands(asked.log)} == {"stop-commands"}


@pytest.mark.parametrize("author", ["eve", "stranger"])
def test_who_may_not_write_changes_nothing(ask: Ask, github: FakeGitHub, author: str) -> None:
    """The job that writes checks the permission again."""
    leave(github, make_failing())

    asked = ask(COMMAND, author)

    assert asked.code == 2
    assert "`/accept-regression` is refused: this needs the right to write" in asked.answers[0]
    assert github.state.runs[RUN_ID]["run_attempt"] == 1
    assert not any("/git/" in write for write in github.list_writes())


def test_a_push_after_the_comment_is_not_accepted(ask: Ask, github: FakeGitHub) -> None:
    """The commit that was authorised must still be the head."""
    leave(github, make_failing())

    asked = ask(COMMAND, "ada", "b" * 40)

    assert asked.code == 2
    assert "somebody pushed" in asked.answers[0]
    assert not any("/git/" in write for write in github.list_writes())


@pytest.mark.parametrize("text", sorted(set(INJECTED))[::12])
def test_no_text_of_the_artifact_is_stored_or_printed(
    ask: Ask, github: FakeGitHub, git: BareRepository, text: str
) -> None:
    """Of a well-formed verdict only the registry's case ids are stored, and no sentence is repeated."""
    slower, other = make_regressed(CASES[0])
    strange = Case(id=text, model="x")
    evil = replace(
        make_comparison(strange, Metric.COMPILED_LATENCY, Status.REGRESSED, Reason.BEYOND_BAR),
        remarks=make_facts(Code.ACCEPTED_BY, text),
    )
    verdict = make_verdict(
        replace(slower, remarks=make_facts(Code.ACCEPTED_BY, text)),
        other,
        evil,
        cases=(*CASES, strange),
        headline=make_facts(Code.REGRESSED_CASE, text),
        notes=make_facts(Code.RULES_OF, text),
    )
    leave(github, verdict)

    asked = ask()

    if asked.code == 0:
        assert [entry.case for entry in load(git)] == [CASES[0].id]
        assert "1 regression is not covered by it: the check stays red." in asked.answers[0]
    for output in (*asked.answers, asked.summary, asked.log):
        assert text not in output


def test_the_answer_names_what_stays_red(ask: Ask, github: FakeGitHub) -> None:
    """A crash in the same run is not accepted, and the answer explains that."""
    crashed = make_comparison(CASES[1], Metric.COMPILED_LATENCY, Status.FAILED, Reason.CASE_FAILED)
    leave(github, make_verdict(*make_regressed(CASES[0]), crashed))

    assert "that cannot be accepted, and the check stays red until they are" in ask().answers[0]


def test_a_first_change_without_baselines_is_taken(ask: Ask, github: FakeGitHub, git: BareRepository) -> None:
    """Nothing could be compared, and a writer accepts that for this commit."""
    new = [make_comparison(case, Metric.COMPILED_LATENCY, Status.NEW, Reason.NO_BASELINE) for case in CASES]
    leave(github, make_verdict(*new))

    asked = ask(COMMAND, "ada", HEAD, "--comment-key=new")

    assert [(entry.case, entry.metric) for entry in load(git)] == [(case.id, None) for case in CASES]
    assert {entry.gate for entry in load(git)} == {"gate.yml:new"}
    assert "the lack of baselines." in asked.answers[0]
    assert "Nothing was compared; the check says so, and is green." in asked.answers[0]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("", "Nothing was compared; the check says so, and is green."),
        ("metric=drift ", "the check stays red. Accept that without naming cases or a metric."),
        ("select=bert ", "the check stays red. Accept that without naming cases or a metric."),
    ],
)
def test_what_leaves_nothing_compared_is_green_only_if_that_was_taken(
    ask: Ask, github: FakeGitHub, git: BareRepository, words: str, answer: str
) -> None:
    """A comment that names cases or a metric does not accept a lack of baselines."""
    drift = make_comparison(CASES[0], Metric.DRIFT, Status.REGRESSED, Reason.LIMIT_EXCEEDED)
    beyond = replace(drift, baseline=None)
    new = [
        make_comparison(case, Metric.COMPILED_LATENCY, Status.NEW, Reason.NO_BASELINE) for case in CASES[1:]
    ]
    leave(github, make_verdict(beyond, *new))

    asked = ask(f'/accept-regression {words}reason="worth it"')

    assert asked.code == 0, asked.log
    assert all(entry.metric for entry in load(git)) is bool(words)
    assert answer in asked.answers[0]
    assert ("green" in asked.answers[0]) is (not words)


def test_a_run_that_cannot_be_started_again_is_reported(
    ask: Ask, github: FakeGitHub, git: BareRepository
) -> None:
    """The acceptance holds, and a warning asks somebody to start the check by hand."""
    leave(github, make_failing())
    github.fail("POST", r"/rerun-failed-jobs$", Fault(status=403, message=NO_RIGHT, times=9))

    asked = ask()

    assert asked.code == 0
    assert load(git)
    assert "It could not be started again: re-run the failed jobs of" in asked.answers[0]
    (warning,) = (command for command in list_commands(asked.log) if command.name == "warning")
    assert warning.data.startswith("Stored, but the check was not started again")


def test_what_cannot_be_stored_starts_nothing(ask: Ask, github: FakeGitHub) -> None:
    """A rule that forbids the branch is an error that the answer shows."""
    leave(github, make_failing())
    github.fail("POST", r"/git/refs$", Fault(status=422, times=9))

    asked = ask()

    assert asked.code == 4
    assert f"the branch {BRANCH} cannot be made" in asked.log
    assert github.state.runs[RUN_ID]["run_attempt"] == 1
    assert list(github.state.reactions.values()) == [["eyes", "confused"]]


@pytest.mark.parametrize("left", [0, 5])
def test_a_long_list_is_cut(
    ask: Ask, github: FakeGitHub, git: BareRepository, job: TokenJob, left: int
) -> None:
    """The answer shows the first rows and counts the rest; all are stored."""
    names = [f"model{index}" for index in range(MAX_ACCEPTED_ROWS + left)]
    models = "".join(f"  - {{name: {name}, factory: 'b:m', cases: [{{size: smoke}}]}}\n" for name in names)
    job.config.write_text(f"version: 1\nreference_models: false\nmodels:\n{models}")
    cases = tuple(Case(id=f"{name}/inference-float32-smoke-default", model=name) for name in names)
    rows = [make_regressed(case)[0] for case in cases]
    leave(github, make_verdict(*rows, cases=cases))

    asked = ask()

    assert asked.code == 0, asked.log
    assert ("... and 5 more" in asked.answers[0]) is (left == 5)
    assert "and 0 more" not in asked.answers[0]
    assert len(load(git)) == MAX_ACCEPTED_ROWS + left
