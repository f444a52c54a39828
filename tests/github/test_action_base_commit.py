"""What is asked of git about a base commit and about acceptances, with a stand-in for git."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from records import ENTRY

from gate.action import base_commit
from gate.action.base_commit import REF, collect_accepted, find_base, list_parents
from gate.errors import UsageError
from gate.git import GitAnswer
from gate.store.commit_files import MAX_COMMIT_BYTES, load_commit_file, name_commit_file, render_commit_file

HEAD, BASE, OTHER, MERGE = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)
TOP = Path("/work")


class Git:
    """Answers by the words of a command, or with status 1; ``asked`` has all commands.

    A text is the output of a command that ends well, a number its status.
    """

    def __init__(self, answers: Mapping[str, str | int | GitAnswer], monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        monkeypatch.setattr(base_commit, "ask_git", self.ask)
        monkeypatch.setattr(base_commit, "is_true", lambda *words, **_: self.ask(*words).is_good)
        monkeypatch.setattr(base_commit, "read_git", self._read)

    def ask(self, _: Path, *words: str, **__: object) -> GitAnswer:
        command = " ".join(words)
        self.asked.append(command)
        answer = self.answers.get(command, 1)
        if isinstance(answer, GitAnswer):
            return answer
        return (
            GitAnswer(status=answer)
            if isinstance(answer, int)
            else GitAnswer(status=0, output=answer.encode())
        )

    def _read(self, top: Path, *words: str, **_: object) -> bytes:
        answer = self.ask(top, *words)
        if not answer.is_good:
            raise UsageError(f"git {words[0]} refuses", "Mend it.")
        return answer.output


def name_check(sha: str) -> str:
    return f"rev-parse --verify --quiet --end-of-options {sha}^{{commit}}"


def make_commit(*parents: str) -> str:
    lines = "".join(f"parent {parent}\n" for parent in parents)
    return f"tree {OTHER}\n{lines}author a <b> 1 +0000\n\nparent of nothing\n"


CHECKOUT = {"rev-parse --show-toplevel": "/work\n", "rev-parse HEAD": f"{MERGE}\n"}
PULL = {"pull_request": {"head": {"sha": HEAD}, "base": {"sha": BASE, "ref": "main"}}}
GROUP = {"merge_group": {"head_sha": HEAD, "base_sha": BASE}}
ENVIRON = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "octo-org/models"}
ORIGIN = {"config --get remote.origin.url": "https://github.com/octo-org/models\n"}
FETCHED = {f"rev-parse --verify --quiet {REF}^{{commit}}": OTHER}
NO_MERGE = {"cat-file commit HEAD": make_commit(OTHER)}
ON_HEAD = {**CHECKOUT, "rev-parse HEAD": f"{HEAD}\n"}
WHOLE = {"rev-parse --is-shallow-repository": "false\n"}
TIP = {"rev-parse --verify --quiet --end-of-options refs/remotes/origin/main^{commit}": f"{OTHER}\n"}


def contain(sha: str) -> dict[str, str | int]:
    """HEAD has the commit."""
    return {f"merge-base --is-ancestor {sha} HEAD": ""}


def meet(sha: str, fork: str) -> dict[str, str | int]:
    """HEAD left the commit's history at ``fork``."""
    return {f"merge-base {sha} HEAD": f"{fork}\n"}


def test_the_parents_of_a_commit_are_read_from_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of its message may look like one."""
    Git({"cat-file commit HEAD": make_commit(BASE, HEAD), f"cat-file commit {OTHER}": ""}, monkeypatch)

    assert list_parents(TOP) == (BASE, HEAD)
    assert list_parents(TOP, OTHER) == ()


@pytest.mark.parametrize(
    ("event", "answers", "sha", "lacking"),
    [
        (GROUP, {**ON_HEAD, **contain(BASE), name_check(BASE): ""}, BASE, name_check(BASE)),
        (GROUP, {**CHECKOUT, **contain(HEAD), **contain(BASE), name_check(BASE): ""}, BASE, ""),
        (
            PULL,
            {**CHECKOUT, "cat-file commit HEAD": make_commit(BASE, HEAD), name_check(BASE): ""},
            BASE,
            name_check(BASE),
        ),
        (PULL, {**ON_HEAD, **NO_MERGE, **WHOLE, **TIP, **meet(OTHER, BASE)}, BASE, ""),
        (
            PULL,
            {
                **ON_HEAD,
                **NO_MERGE,
                **WHOLE,
                **TIP,
                **meet(OTHER, HEAD),
                **meet(BASE, MERGE),
                name_check(BASE): "",
            },
            MERGE,
            name_check(BASE),
        ),
        (
            PULL,
            {**ON_HEAD, **NO_MERGE, **WHOLE, **meet(BASE, MERGE), name_check(BASE): ""},
            MERGE,
            name_check(BASE),
        ),
        (
            {"pull_request": {"head": {"sha": HEAD}, "base": {"sha": BASE, "ref": ""}}},
            {
                **ON_HEAD,
                **NO_MERGE,
                **WHOLE,
                **meet(BASE, MERGE),
                name_check(BASE): "",
                name_check("refs/remotes/origin/"): OTHER,
                **meet(OTHER, OTHER),
            },
            MERGE,
            "",
        ),
        (
            PULL,
            {
                **CHECKOUT,
                "cat-file commit HEAD": make_commit(BASE, OTHER),
                **contain(HEAD),
                **WHOLE,
                **meet(BASE, MERGE),
                name_check(BASE): "",
            },
            MERGE,
            "",
        ),
    ],
    ids=[
        *("group", "a later group", "trial merge", "fork point", "merged already"),
        *("no base branch", "nameless base branch", "merge of another head"),
    ],
)
def test_a_base_is_found_and_must_be_in_the_clone(
    monkeypatch: pytest.MonkeyPatch,
    event: dict[str, object],
    answers: dict[str, str | int],
    sha: str,
    lacking: str,
) -> None:
    """The message of a missing one names it, and the depth that has it."""
    git = Git(answers, monkeypatch)

    base = find_base(event, TOP)

    assert base is not None
    assert base.sha == sha
    if lacking:
        del git.answers[lacking]
        with pytest.raises(UsageError, match=f"the base commit {BASE} is not in this clone") as caught:
            find_base(event, TOP)
        assert "fetch-depth: 0" in caught.value.fix


@pytest.mark.parametrize("shallow", ["true\n", ""])
@pytest.mark.parametrize(
    ("event", "answers", "what"),
    [
        (GROUP, CHECKOUT, "whether HEAD has the merge group's commit"),
        (GROUP, {**ON_HEAD, name_check(BASE): ""}, "whether HEAD has the merge group's base commit"),
        (PULL, {**CHECKOUT, **NO_MERGE}, "whether HEAD has the pull request's commit"),
        (PULL, {**ON_HEAD, **NO_MERGE, **TIP, **meet(OTHER, BASE)}, "where this change left the base branch"),
        (
            PULL,
            {**ON_HEAD, **NO_MERGE, name_check(BASE): "", **meet(BASE, MERGE)},
            "where this change left the base",
        ),
    ],
)
def test_what_a_shallow_clone_answers_about_history_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
    event: dict[str, object],
    answers: dict[str, str | int],
    what: str,
    shallow: str,
) -> None:
    """It might be another answer with all of the history."""
    Git({**answers, "rev-parse --is-shallow-repository": shallow}, monkeypatch)

    with pytest.raises(UsageError, match=f"^this clone is shallow: it does not show {what}"):
        find_base(event, TOP)


@pytest.mark.parametrize(
    ("event", "answers", "what"),
    [
        (GROUP, {**CHECKOUT, **WHOLE}, "does not have the merge group's commit"),
        (PULL, {**CHECKOUT, **NO_MERGE, **WHOLE}, "does not have the pull request's commit"),
        (
            PULL,
            {**ON_HEAD, **NO_MERGE, **WHOLE, **TIP},
            "HEAD and the base branch origin/main have no commit",
        ),
        (
            {"pull_request": {"head": {"sha": HEAD}, "base": {"sha": "main", "ref": "main"}}},
            {**ON_HEAD, **NO_MERGE, **WHOLE},
            "names no base and head commit",
        ),
        (
            {"pull_request": {"head": {"sha": "topic"}, "base": {"sha": BASE, "ref": "main"}}},
            {**ON_HEAD, **NO_MERGE, **WHOLE},
            "names no base and head commit",
        ),
    ],
)
def test_a_checkout_of_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, event: dict[str, object], answers: dict[str, str | int], what: str
) -> None:
    """Else another change would be measured, or be compared with another base."""
    Git(answers, monkeypatch)

    with pytest.raises(UsageError, match=what) as caught:
        find_base(event, TOP)
    assert "Let actions/checkout take what the event names" in caught.value.fix


def store(commit: str, text: str, size: int = 0) -> dict[str, str | int]:
    """The branch of acceptances has this file of a commit."""
    name = name_commit_file(commit)
    return {
        f"ls-tree {REF} -- {name}": f"100644 blob {OTHER}\t{name}",
        f"cat-file -s {REF}:{name}": str(size or len(text)),
        f"cat-file blob {REF}:{name}": text,
    }


ACCEPTED = store(HEAD, render_commit_file(HEAD, (ENTRY,)))
READ = {**ORIGIN, **FETCHED, **ON_HEAD}


@pytest.mark.parametrize(
    "checkout",
    [ON_HEAD, {**CHECKOUT, "cat-file commit HEAD": make_commit(BASE, HEAD)}],
    ids=["the head", "its trial merge"],
)
def test_the_acceptances_of_what_is_checked_out_are_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checkout: dict[str, str | int]
) -> None:
    """In a directory that is made for them; the note names who accepted."""
    Git({**ORIGIN, **FETCHED, **ACCEPTED, **checkout}, monkeypatch)

    accepted = collect_accepted(PULL, ENVIRON, tmp_path / "new" / "rules")

    (file,) = accepted.files
    assert Path(file) == tmp_path / "new" / "rules" / name_commit_file(HEAD)
    assert load_commit_file(Path(file)).commit == HEAD
    assert accepted.notes == (f"Accepted of commit {HEAD[:12]}: 1 of what regressed, by ada.",)
    assert accepted.warnings == ()


@pytest.mark.parametrize(("size", "is_read"), [(MAX_COMMIT_BYTES, True), (MAX_COMMIT_BYTES + 1, False)])
def test_a_file_of_acceptances_has_a_largest_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, is_read: bool
) -> None:
    """A larger one is not even asked for."""
    git = Git({**READ, **store(HEAD, render_commit_file(HEAD, (ENTRY,)), size)}, monkeypatch)

    accepted = collect_accepted(PULL, ENVIRON, tmp_path)

    assert len(accepted.files) == is_read
    assert len(accepted.warnings) == (not is_read)
    assert any(command.startswith("cat-file blob") for command in git.asked) is is_read


@pytest.mark.parametrize(
    ("event", "changes", "notes", "warnings"),
    [
        ({}, {}, 0, 0),
        ({"pull_request": {"head": {"sha": "topic"}}}, {}, 0, 0),
        (PULL, dict.fromkeys(FETCHED, 1), 1, 0),
        (PULL, dict.fromkeys(ACCEPTED, 1), 0, 1),
        (PULL, {f"ls-tree {REF} -- {name_commit_file(HEAD)}": ""}, 1, 0),
        (PULL, {"rev-parse HEAD": OTHER, **NO_MERGE}, 0, 1),
        (PULL, {"config --get remote.origin.url": "https://github.com/fork/models"}, 0, 1),
        (GROUP, {"rev-parse HEAD": OTHER}, 0, 1),
    ],
    ids=[
        *("a push", "no commit", "no branch", "git fails", "no file"),
        *("another commit", "a fork's clone", "another group"),
    ],
)
def test_without_a_usable_file_nothing_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    event: dict[str, object],
    changes: dict[str, str | int],
    notes: int,
    warnings: int,
) -> None:
    """What may surprise somebody who accepted is a warning, the rest a note."""
    Git({**READ, **WHOLE, **ACCEPTED, **changes}, monkeypatch)

    accepted = collect_accepted(event, ENVIRON, tmp_path)

    assert accepted.files == ()
    assert (len(accepted.notes), len(accepted.warnings)) == (notes, warnings)


@pytest.mark.parametrize(
    ("shallow", "end"), [("false\n", "compile-gate/acceptances."), ("true\n", "checkout.")]
)
def test_a_note_says_whether_the_clone_would_have_the_branch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shallow: str, end: str
) -> None:
    """A shallow clone has one branch alone."""
    Git({**CHECKOUT, "rev-parse --is-shallow-repository": shallow}, monkeypatch)

    (note,) = collect_accepted(PULL, ENVIRON, tmp_path).notes

    assert note.endswith(end)


def test_each_pull_request_of_a_group_has_a_file_also_where_nothing_was_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One of them cannot take for another that baselines are missing; an old git is warned of."""
    first, second = "1" * 40, "2" * 40
    answers = {
        f"rev-list --first-parent {BASE}..{HEAD}": f"{first}\n{second}\n",
        f"cat-file commit {first}": make_commit(BASE, "3" * 40),
        f"cat-file commit {second}": make_commit(first),
        f"ls-tree {REF} -- {name_commit_file(second)}": "",
        f"log --max-count=50 --format= --name-only {REF} -- acceptances": "",
        "merge-tree --write-tree HEAD HEAD": 128,
        "version": "git version 2.34.1",
        **store("3" * 40, render_commit_file("3" * 40, (ENTRY,))),
    }
    Git({**READ, **answers}, monkeypatch)

    accepted = collect_accepted(GROUP, ENVIRON, tmp_path / "rules")

    files = [load_commit_file(Path(file)) for file in accepted.files]
    assert [(file.commit, len(file.accepted)) for file in files] == [("3" * 40, 1), (second, 0)]
    assert len(accepted.notes) == 2
    assert [warning[:18] for warning in accepted.warnings] == ["git version 2.34.1"]


@pytest.mark.parametrize(
    ("url", "name", "is_own"),
    [
        ("https://github.com/octo-org/models", "octo-org/models", True),
        ("https://me@github.com/Octo-Org/models.git", "octo-org/Models", True),
        ("git@github.com:octo-org/models.git", "octo-org/models", True),
        ("https://github.com/octo-org/models", "octo-org/model.", False),
        ("https://github.com/fork/models", "octo-org/models", False),
        ("https://github.com/", "", False),
        ("github.com:", "", False),
        ("", "octo-org/models", False),
    ],
)
def test_a_clone_is_of_the_jobs_repository_by_its_address(
    monkeypatch: pytest.MonkeyPatch, url: str, name: str, is_own: bool
) -> None:
    """A name is no pattern, and none is no name."""
    Git({"config --get remote.origin.url": f"{url}\n"}, monkeypatch)

    assert base_commit._is_own_repository(TOP, {**ENVIRON, "GITHUB_REPOSITORY": name}) is is_own


@pytest.mark.parametrize(("status", "is_old"), [(0, False), (1, False), (128, True), (2, True), (-1, True)])
def test_a_git_that_cannot_merge_without_a_checkout_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, status: int, is_old: bool
) -> None:
    """A merge with conflicts is one."""
    Git({"merge-tree --write-tree HEAD HEAD": status}, monkeypatch)

    assert bool(base_commit._warn_old_git(TOP)) is is_old


@pytest.mark.parametrize(
    ("merged", "tree", "before", "expected"),
    [
        ("t1", "t1", "t0", True),
        ("t1", "t2", "t0", False),
        ("t1", "t1", "t1", False),
        ("t1", GitAnswer(status=128, output=b"t1"), "t0", False),
        (GitAnswer(status=1, output=b"t1"), "t1", "t0", False),
        (128, "t1", "t0", True),
    ],
    ids=["alike", "another tree", "empty", "no tree", "conflicts", "old git"],
)
def test_a_squashed_commit_has_the_files_of_the_merge(
    monkeypatch: pytest.MonkeyPatch,
    *,
    merged: str | int | GitAnswer,
    tree: str | GitAnswer,
    before: str,
    expected: bool,
) -> None:
    """One that changes nothing is nobody's; an old git goes by what was changed."""
    answers = {
        f"merge-tree --write-tree {BASE} {HEAD}": merged,
        f"rev-parse {OTHER}^{{tree}}": tree,
        f"rev-parse {BASE}^{{tree}}": before,
    }
    Git(answers, monkeypatch)
    asked: list[object] = []

    def compare(*commits: object) -> bool:
        asked.append(commits)
        return True

    monkeypatch.setattr(base_commit, "_has_same_changes", compare)

    assert base_commit._is_squashed(TOP, HEAD, OTHER, BASE) is expected
    assert asked == ([(TOP, HEAD, OTHER, BASE)] if merged == 128 else [])


BROKEN = GitAnswer(status=128, output=b":a")


@pytest.mark.parametrize(
    ("fork", "theirs", "ours", "expected"),
    [
        (MERGE, ":a", ":a", True),
        (MERGE, ":a", ":b", False),
        (MERGE, "", "", False),
        (MERGE, BROKEN, BROKEN, False),
        (MERGE, ":a", BROKEN, False),
        (1, ":a", ":a", False),
    ],
)
def test_without_a_merge_the_same_changes_are_the_same_commit(
    monkeypatch: pytest.MonkeyPatch, fork: str | int, theirs: str | int, ours: str | int, expected: bool
) -> None:
    """A commit that the clone lacks has none."""
    diff = "diff-tree -r -z --no-renames --full-index"
    answers = {
        f"merge-base {BASE} {HEAD}": fork,
        f"{diff} {MERGE} {HEAD}": theirs,
        f"{diff} {BASE} {OTHER}": ours,
    }
    Git(answers, monkeypatch)

    assert base_commit._has_same_changes(TOP, HEAD, OTHER, BASE) is expected


@pytest.mark.parametrize(
    ("parents", "expected"),
    [((), OTHER), ((BASE,), HEAD), ((BASE, MERGE), MERGE), ((BASE, MERGE, HEAD), HEAD)],
    ids=["root", "squashed", "merge", "octopus"],
)
def test_a_groups_commit_adds_its_second_parent_or_what_was_squashed_into_it(
    monkeypatch: pytest.MonkeyPatch, parents: tuple[str, ...], expected: str
) -> None:
    """What is squashed is compared with the first parent; the commit itself stands for anything else."""
    Git({f"cat-file commit {OTHER}": make_commit(*parents)}, monkeypatch)
    monkeypatch.setattr(base_commit, "_list_accepted", lambda _: (MERGE, HEAD))
    monkeypatch.setattr(
        base_commit, "_is_squashed", lambda _, head, __, parent: (head, parent) == (HEAD, BASE)
    )

    assert base_commit._get_added_commit(TOP, OTHER) == expected


@pytest.mark.parametrize(
    ("worse", "lacking", "expected"),
    [
        (("ada", "bob", "ada"), (), "3 of what regressed, by ada, bob."),
        ((), ("bob", "bob"), "the lack of baselines, by bob."),
        (("ada",), ("bob",), "1 of what regressed, by ada; the lack of baselines, by bob."),
        ((), (), "nothing."),
    ],
)
def test_a_note_names_who_accepted_what(
    worse: tuple[str, ...], lacking: tuple[str, ...], expected: str
) -> None:
    """Each author once."""
    accepted = [replace(ENTRY, author=author) for author in worse]
    accepted += [replace(ENTRY, author=author, metric=None) for author in lacking]

    assert base_commit._describe(HEAD, accepted) == f"Accepted of commit {HEAD[:12]}: {expected}"
