"""Files, commits and branches of the Git data API, by what is asked and what GitHub answers."""

import base64
from typing import Any

import pytest

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.git_data import GitData, compute_blob_sha, quote_branch
from gate.github.transport import GitHubError, MissingError, RejectedError, Response, UncertainWriteError

OLD, NEW, OTHER = "a" * 40, "b" * 40, "c" * 40
GONE = MissingError("it is not there", "Look.")
LOST = UncertainWriteError("no answer", "Look.")
REFUSED = RejectedError("GitHub answers 422", "Look.")


class Answers(GitHubClient):
    """Gets these answers one after the other, or raises them, and notes what was asked."""

    def __init__(self, *answers: object) -> None:
        super().__init__(api_url="https://api.github.com", token="", repository="o/r")
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def _call(self, method: str, url: str, body: object = None) -> tuple[Any, Response]:
        self.asked.append((method, url.removeprefix("https://api.github.com/repos/o/r/git/"), body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, Response(status=200, headers={}, body=b"")


def make_ref(sha: str, branch: str = "topic/x") -> dict[str, object]:
    return {"ref": f"refs/heads/{branch}", "object": {"sha": sha}}


def make_blob(content: bytes) -> dict[str, str]:
    return {"type": "file", "content": base64.encodebytes(content).decode(), "sha": compute_blob_sha(content)}


@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (100, [100]), (101, [100, 1]), (200, [100, 100])])
def test_git_data_writes_a_hundred_files_a_tree(count: int, sizes: list[int]) -> None:
    """Each further tree is on top of the one before."""
    files = {f"baselines/{index}.json": str(index) for index in range(count)}
    client = Answers(*({"sha": f"tree {index}"} for index in range(len(sizes))))

    assert GitData(client).write_tree("base", "baselines", files) == f"tree {len(sizes) - 1}"

    bodies = [body for _, _, body in client.asked]
    assert [len(body["tree"]) for body in bodies] == sizes
    assert [body["base_tree"] for body in bodies] == ["base", "tree 0"][: len(sizes)]
    assert {entry["path"]: entry["content"] for body in bodies for entry in body["tree"]} == files
    assert {(entry["mode"], entry["type"]) for body in bodies for entry in body["tree"]} == {
        ("100644", "blob")
    }


def test_git_data_writes_a_first_tree_and_a_first_commit_on_nothing() -> None:
    """A new branch has no parent; a request whose answer was lost is sent again."""
    client = Answers(LOST, {"sha": NEW}, {"sha": NEW}, {"sha": NEW})
    data = GitData(client)

    assert data.write_tree("", "baselines", {"baselines/x": "text"}) == NEW
    assert data.write_commit(NEW, "", "first") == NEW
    assert data.write_commit(NEW, OLD, "second") == NEW

    assert client.asked[0] == client.asked[1]
    assert "base_tree" not in client.asked[0][2]
    assert client.asked[2:] == [
        ("POST", "commits", {"message": "first", "tree": NEW, "parents": []}),
        ("POST", "commits", {"message": "second", "tree": NEW, "parents": [OLD]}),
    ]


@pytest.mark.parametrize(
    ("path", "directory"),
    [("x", ""), ("baselines", "baselines"), ("baselines/../x", "baselines"), ("other/x", "baselines")],
)
def test_git_data_checks_a_path_before_any_write(path: str, directory: str) -> None:
    """It must lie below a directory, of files that are right as well."""
    client = Answers()
    with pytest.raises(UsageError, match="does not lie below"):
        GitData(client).write_tree("base", directory, {"baselines/good": "x", path: "x"})
    assert client.asked == []


@pytest.mark.parametrize(
    ("answer", "sha"),
    [(make_ref(OLD), OLD), (make_ref(OLD, "topic/xy"), ""), (GONE, ""), ([make_ref(OLD, "topic/xy")], "")],
)
def test_git_data_finds_a_branch_by_its_whole_name(answer: object, sha: str) -> None:
    """Another whose name begins so is not the branch."""
    client = Answers(answer)
    assert GitData(client).find_branch("topic/x") == sha
    assert client.asked == [("GET", "ref/heads/topic/x", None)]


@pytest.mark.parametrize(
    ("old", "answers", "expected"),
    [
        (OLD, [{}], True),
        ("", [{}], True),
        (OLD, [REFUSED, make_ref(OTHER)], False),  # moved on
        (OLD, [REFUSED, make_ref(NEW)], True),  # by a request of ours whose answer was lost
        ("", [REFUSED, make_ref(OTHER)], False),
        ("", [LOST, make_ref(NEW)], True),
        ("", [LOST, GONE], False),
        (OLD, [REFUSED, make_ref(OLD)], None),
        ("", [REFUSED, GONE], None),
    ],
)
def test_git_data_advances_a_branch_that_has_not_moved(
    old: str, answers: list[object], expected: bool | None
) -> None:
    """Where nobody moved it and GitHub refuses all the same, rules forbid it."""
    client = Answers(*answers)
    if expected is None:
        with pytest.raises(RejectedError, match="the branch topic/x cannot be made"):
            GitData(client).advance_branch("topic/x", old, NEW)
    else:
        assert GitData(client).advance_branch("topic/x", old, NEW) is expected
    made = ("POST", "refs", {"ref": "refs/heads/topic/x", "sha": NEW})
    moved = ("PATCH", "refs/heads/topic/x", {"sha": NEW, "force": False})
    assert client.asked[0] == (moved if old else made)


def test_git_data_forces_a_branch() -> None:
    """Its commits of an older head are dropped."""
    client = Answers({})
    GitData(client).force_branch("topic/#1", NEW)
    assert client.asked == [("PATCH", "refs/heads/topic/%231", {"sha": NEW, "force": True})]
    assert quote_branch("a b/c%") == "a%20b/c%25"


@pytest.mark.parametrize(("limit_bytes", "is_read"), [(5, True), (4, False)])
def test_git_data_fetches_a_blob_within_its_limit(limit_bytes: int, is_read: bool) -> None:
    """What is larger, damaged or another blob is an error."""
    blob = make_blob(b"12345")
    data = GitData(Answers(blob, blob, {"content": "%"}))
    if is_read:
        assert data.fetch_blob(blob["sha"], limit_bytes) == b"12345"
    else:
        with pytest.raises(GitHubError, match="cannot be used"):
            data.fetch_blob(blob["sha"], limit_bytes)
    for sha in (OLD, blob["sha"]):
        with pytest.raises(GitHubError, match="cannot be used"):
            data.fetch_blob(sha, 5)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(make_blob(b"x"), b"x"), (make_blob(b"x") | {"type": "symlink"}, None), (GONE, None)],
)
def test_git_data_fetches_a_regular_file(answer: object, expected: bytes | None) -> None:
    """A link could lead anywhere; what is missing is no error."""
    assert GitData(Answers(answer)).fetch_file("a/b.yml", "main", 1) == expected


def test_git_data_lists_files_below_a_directory() -> None:
    """Regular ones, by their paths from the top; a directory that is not there has none."""
    top = {
        "tree": [{"path": "perf", "type": "blob", "sha": "1"}, {"path": "base", "type": "tree", "sha": "2"}]
    }
    modes = {"a": "100644", "b/c": "100755", "link": "120000", "b": "040000"}
    below = {"tree": [{"path": path, "mode": mode, "sha": path} for path, mode in modes.items()]}
    client = Answers(top, below, top)

    assert GitData(client).list_files(OLD, "base") == {"base/a": "a", "base/b/c": "b/c"}
    assert GitData(client).list_files(OLD, "perf") == {}
    assert [url for _, url, _ in client.asked] == [f"trees/{OLD}", "trees/2?recursive=1", f"trees/{OLD}"]


@pytest.mark.parametrize("answer", [{"tree": [], "truncated": True}, {"tree": None}, []])
def test_git_data_lists_all_files_or_none(answer: object) -> None:
    """A file that is not listed would count as absent."""
    with pytest.raises(GitHubError, match="does not list all files"):
        GitData(Answers(answer)).list_files(OLD, "")
