"""The branch that holds acceptances of commits, and concurrent writers of it."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import records
from fake.faults import NO_RIGHT, Fault
from fake.git_routes import BareRepository
from fake.server import FakeGitHub

from gate.errors import FileError
from gate.github.accept_command import MAX_TRIES, store_acceptances
from gate.github.client import GitHubClient
from gate.github.finding import find_acceptances
from gate.github.git_data import GitData
from gate.github.transport import DeniedError, GitHubError, RejectedError
from gate.publish.comment_commands import CommandRefusedError
from gate.records.cases import Metric
from gate.store.commit_files import (
    BRANCH,
    MAX_ACCEPTED,
    MAX_COMMIT_BYTES,
    name_commit_file,
    render_commit_file,
)

COMMIT, OTHER_COMMIT = "a" * 40, "b" * 40
FILE = name_commit_file(COMMIT)
ENTRY = replace(records.ENTRY, commit=COMMIT)
OTHER = replace(ENTRY, metric=None, allowance=0.0, author="bob", commit=OTHER_COMMIT)
REFS = "/repos/octo-org/models/git/refs"


@pytest.fixture
def data(client: GitHubClient, git: BareRepository) -> GitData:
    assert git.find_ref("heads/main")
    return GitData(client)


def list_files(git: BareRepository) -> list[str]:
    return git.run("ls-tree", "-r", "--name-only", BRANCH).splitlines()


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_the_first_acceptance_makes_a_branch_that_holds_nothing_else(
    data: GitData, git: BareRepository, tmp_path: Path
) -> None:
    """The branch has no history and no file of the default branch."""
    commit = store_acceptances(data, (ENTRY,), "Accept")

    assert git.find_ref(f"heads/{BRANCH}") == commit
    assert list_files(git) == [FILE]
    assert git.run("rev-list", "--count", BRANCH) == "1"
    assert find_acceptances(data, COMMIT) == (ENTRY,)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-local", str(git.path), str(clone)], check=True)
    fsck = ["git", "-C", str(clone), "fsck", "--full", "--strict"]
    assert subprocess.run(fsck, check=True, capture_output=True, text=True).stdout == ""


def test_each_commit_has_a_file_of_its_own(data: GitData, git: BareRepository) -> None:
    """The second commit of the branch is a child of the first, whose file stays as it is."""
    first = store_acceptances(data, (ENTRY,), "Accept")
    second = store_acceptances(data, (OTHER,), "Accept too")

    assert git.run("rev-parse", f"{BRANCH}^") == first
    assert git.run("log", "-1", "--format=%s", second) == "Accept too"
    assert list_files(git) == [FILE, name_commit_file(OTHER_COMMIT)]
    assert find_acceptances(data, COMMIT) == (ENTRY,)
    assert find_acceptances(data, OTHER_COMMIT) == (OTHER,)


def test_what_was_accepted_of_a_commit_before_stays(data: GitData) -> None:
    """A second comment adds entries; for the same case and metric the newer one holds."""
    store_acceptances(data, (ENTRY,), "Accept")
    more = replace(ENTRY, metric=Metric.GRAPH_BREAKS, allowance=2.0)
    again = replace(ENTRY, author="bob", allowance=0.4)
    store_acceptances(data, (more, again), "Accept more")

    assert find_acceptances(data, COMMIT) == (again, more)


def test_the_same_again_writes_no_commit(data: GitData, git: BareRepository) -> None:
    """A job that runs again changes nothing."""
    first = store_acceptances(data, (ENTRY,), "Accept")
    assert store_acceptances(data, (ENTRY,), "Accept") == first
    assert git.run("rev-list", "--count", BRANCH) == "1"


def test_nothing_is_found_where_nothing_was_accepted(data: GitData) -> None:
    """Neither without the branch nor without the file."""
    assert find_acceptances(data, COMMIT) == ()
    store_acceptances(data, (OTHER,), "Accept")
    assert find_acceptances(data, COMMIT) == ()


@pytest.mark.parametrize("is_first", [True, False])
def test_two_comments_at_once_both_count(
    data: GitData, github: FakeGitHub, git: BareRepository, is_first: bool
) -> None:
    """An acceptance that is stored between reading and writing stays, and ours follows it."""
    if not is_first:
        git.commit({"acceptances/README": "x"}, branch=BRANCH)
    others = iter([render_commit_file(OTHER_COMMIT, (OTHER,))])

    def interfere() -> None:
        for text in others:
            git.commit({name_commit_file(OTHER_COMMIT): text}, branch=BRANCH)

    github.call_before("POST" if is_first else "PATCH", r"/git/refs", interfere)
    store_acceptances(data, (ENTRY,), "Accept")

    assert find_acceptances(data, COMMIT) == (ENTRY,)
    assert find_acceptances(data, OTHER_COMMIT) == (OTHER,)


def test_a_branch_that_never_rests_is_given_up(
    data: GitData, github: FakeGitHub, git: BareRepository
) -> None:
    """After so many tries it is an error; what others wrote stays."""
    git.commit({"acceptances/README": "x"}, branch=BRANCH)
    count = iter(range(100))
    github.call_before(
        "PATCH", r"/git/refs", lambda: git.commit({f"acceptances/{next(count)}": "x"}, branch=BRANCH)
    )
    with pytest.raises(RejectedError, match=f"moved on {MAX_TRIES} times"):
        store_acceptances(data, (ENTRY,), "Accept")
    assert FILE not in list_files(git)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_lost_answer_neither_loses_nor_doubles(
    data: GitData, github: FakeGitHub, git: BareRepository, method: str
) -> None:
    """The branch was moved and the connection broke."""
    if method == "PATCH":
        git.commit({"acceptances/README": "x"}, branch=BRANCH)
    github.fail(method, r"/git/refs", Fault(truncate=True))
    commit = store_acceptances(data, (ENTRY,), "Accept")
    assert git.find_ref(f"heads/{BRANCH}") == commit
    assert find_acceptances(data, COMMIT) == (ENTRY,)


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(status=422, times=9), RejectedError),
        (Fault(status=403, message=NO_RIGHT, times=9), DeniedError),
    ],
)
def test_a_rule_that_forbids_it_is_reported(
    data: GitData,
    github: FakeGitHub,
    git: BareRepository,
    exists: bool,
    fault: Fault,
    error: type[GitHubError],
) -> None:
    """A protected branch, or a token that may not write, is an error after one try."""
    if exists:
        git.commit({"acceptances/README": "x"}, branch=BRANCH)
    github.fail("PATCH" if exists else "POST", r"/git/refs", replace(fault))
    with pytest.raises(error):
        store_acceptances(data, (ENTRY,), "Accept")
    assert sum("/git/refs" in write for write in github.list_writes()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 1\n",
        render_commit_file(OTHER_COMMIT, (OTHER,)),
        render_commit_file(COMMIT, (ENTRY,)).replace("ada", "a b"),
    ],
)
def test_a_broken_file_is_neither_used_nor_written_over(
    data: GitData, git: BareRepository, text: str
) -> None:
    """It is empty, cut short, another commit's, or has an impossible author."""
    git.commit({FILE: text}, branch=BRANCH)
    with pytest.raises(FileError):
        find_acceptances(data, COMMIT)
    with pytest.raises(CommandRefusedError, match="is not written over") as caught:
        store_acceptances(data, (ENTRY,), "Accept")
    assert FILE in caught.value.fix
    assert git.read(f"{BRANCH}:{FILE}") == text + ("" if text.endswith("\n") else "\n")


def test_a_file_beyond_all_bounds_is_refused(data: GitData, git: BareRepository) -> None:
    """Anybody who can push there can make it as large as they like."""
    git.commit({FILE: "#" * (MAX_COMMIT_BYTES + 1)}, branch=BRANCH)
    with pytest.raises(GitHubError, match="cannot be used"):
        find_acceptances(data, COMMIT)


def test_a_commit_takes_no_more_than_a_person_reads(data: GitData) -> None:
    """The entries of several comments together are bounded, in number and in bytes."""
    entries = tuple(replace(ENTRY, case=f"model{index}/x") for index in range(MAX_ACCEPTED))
    store_acceptances(data, entries, "Accept")
    of_a_mebibyte = tuple(replace(entry, reason="x" * 3000) for entry in entries[:400])
    for more, commit in (((ENTRY,), COMMIT), (of_a_mebibyte, OTHER_COMMIT)):
        with pytest.raises(CommandRefusedError, match="more than 1000"):
            store_acceptances(data, tuple(replace(entry, commit=commit) for entry in more), "Accept")
