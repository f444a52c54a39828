"""Arms: refs, directories and interpreters, with real git and a real second interpreter."""

import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from gate.errors import UsageError
from gate.installation import MODELS
from gate.lab.arms.arms import ArmOptions, open_arms, resolve_arms
from gate.lab.arms.worktrees import list_worktrees
from gate.records.codes import Code
from gate.revisions import NothingDiffersError
from tests.git import run_git
from tests.words import describe_measuring

pytestmark = pytest.mark.usefixtures("scratch_root")


def read_side(directory: str) -> str:
    """The side whose code is in an arm's directory."""
    return Path(directory, "shop.py").read_text(encoding="utf-8").split("'")[1]


def test_ref_against_the_working_tree(repository: Path, scratch_root: Path) -> None:
    """Base is a checkout of the ref, head the working tree; afterwards only the latter is left."""
    commits = [run_git(repository, "rev-parse", name) for name in ("main", "feature")]
    with open_arms(ArmOptions(directory=repository, base="main")) as arms:
        base, head = arms.base, arms.head
        assert ("base", "head") == (read_side(base.arm.directory), read_side(head.arm.directory))
        assert (base.arm.directory, str(repository)) == (base.arm.checkout, base.arm.origin)
    assert (f"main ({commits[0][:7]})", f"working tree ({commits[1][:7]})") == (base.label, head.label)
    assert commits == [base.provenance.commit, head.provenance.commit]
    assert (base.arm.name, head.arm.name) == ("base", "head")
    assert (head.arm.directory, head.arm.checkout, head.notes) == (str(repository), "", ())
    assert head.commit == ""
    assert (list_worktrees(repository), list(scratch_root.iterdir())) == ((), [])


def test_a_base_can_have_a_name_for_readers(repository: Path) -> None:
    """The commit is the ref's, the name the caller's."""
    commit = run_git(repository, "rev-parse", "main")
    named = ArmOptions(directory=repository, base=commit, base_name="the anchor v1")
    with open_arms(named) as arms:
        assert (arms.base.label, arms.base.commit) == (f"the anchor v1 ({commit[:7]})", commit)


def test_reference_models_under_test(repository: Path) -> None:
    """In the gate's own repository the base has its commit's reference models; elsewhere it has none."""
    with open_arms(ArmOptions(directory=repository, base="main")) as arms:
        assert arms.base.arm.models == ""
    models = repository / "gate" / "models"
    shutil.copytree(MODELS, models, ignore=shutil.ignore_patterns("__pycache__"))
    run_git(repository, "add", ".")
    run_git(repository, "commit", "--quiet", "-m", "models")
    with open_arms(ArmOptions(directory=repository, base="HEAD")) as arms:
        assert arms.base.arm.models == str(Path(arms.base.arm.directory, "gate", "models"))
        assert arms.head.arm.models == ""


def test_a_directory_of_the_same_checkout(repository: Path) -> None:
    """A copy of an older state within the repository stands for its top, and is another program."""
    old = repository / "old"
    old.mkdir()
    (old / "shop.py").write_text("SIDE = 'older'\n", encoding="utf-8")
    run_git(repository, "add", ".")
    run_git(repository, "commit", "--quiet", "-m", "old")
    with open_arms(ArmOptions(directory=repository, base=str(old))) as arms:
        assert (arms.base.arm.checkout, arms.base.arm.origin) == (str(old), str(repository))
        assert read_side(arms.base.arm.directory) == "older"


def test_two_refs(repository: Path) -> None:
    """Both refs are checked out; the working tree is not looked at."""
    run_git(repository, "checkout", "--quiet", "main")
    with open_arms(ArmOptions(directory=repository, base="main", head="feature")) as arms:
        assert ("base", "head") == (read_side(arms.base.arm.directory), read_side(arms.head.arm.directory))
        assert len(list_worktrees(repository)) == 2
        assert [arms.base.commit, arms.head.commit] == [
            run_git(repository, "rev-parse", name) for name in ("main", "feature")
        ]
    assert list_worktrees(repository) == ()


def test_one_ref_on_both_sides(repository: Path) -> None:
    """The same ref twice gives two checkouts of it."""
    with open_arms(ArmOptions(directory=repository, base="main", head="main")) as arms:
        assert ("base", "base") == (read_side(arms.base.arm.directory), read_side(arms.head.arm.directory))
        assert arms.base.arm.directory != arms.head.arm.directory


def test_without_a_base_it_is_the_merge_base(repository: Path) -> None:
    """It is the commit where the working tree left the default branch."""
    with open_arms(ArmOptions(directory=repository)) as arms:
        assert arms.base.label.startswith("merge-base with main (")
        assert read_side(arms.base.arm.directory) == "base"


def test_a_main_branch_that_is_as_near_is_noted(repository: Path) -> None:
    """Head merged the main branches of two remotes, which diverged: the note names the second."""
    for remote in ("origin", "upstream"):
        run_git(repository, "checkout", "--quiet", "--detach", "main")
        run_git(repository, "commit", "--quiet", "--allow-empty", "--message", remote)
        run_git(repository, "update-ref", f"refs/remotes/{remote}/main", "HEAD")
    run_git(repository, "checkout", "--quiet", "feature")
    for remote in ("origin", "upstream"):
        run_git(repository, "merge", "--quiet", "--message", remote, f"{remote}/main")
    with open_arms(ArmOptions(directory=repository)) as arms:
        (note,) = arms.base.notes
    commit = run_git(repository, "rev-parse", "upstream/main")
    assert arms.base.label.startswith("merge-base with origin/main (")
    assert (note.code, note.name("other")) == (
        Code.OTHER_MAIN,
        f"merge-base with upstream/main ({commit[:7]})",
    )


def test_uncommitted_changes_on_the_default_branch(repository: Path) -> None:
    """Their base is the commit below them; without changes there is nothing to compare."""
    run_git(repository, "checkout", "--quiet", "main")
    with (
        pytest.raises(UsageError, match="HEAD is part of main"),
        open_arms(ArmOptions(directory=repository)),
    ):
        pass
    (repository / "shop.py").write_text("SIDE = 'changed'\n", encoding="utf-8")
    with open_arms(ArmOptions(directory=repository)) as arms:
        assert (read_side(arms.base.arm.directory), read_side(arms.head.arm.directory)) == ("base", "changed")


@pytest.mark.parametrize(
    ("base", "text", "differs"), [("HEAD", "", False), ("HEAD", "SIDE = 'dirty'", True), ("main", "", True)]
)
def test_a_commit_is_no_merge_base_of_itself(repository: Path, base: str, text: str, differs: bool) -> None:
    """It has no base; the commit with changes, and another commit, have one."""
    if text:
        (repository / "shop.py").write_text(text, encoding="utf-8")
    with nullcontext() if differs else pytest.raises(NothingDiffersError):
        resolve_arms(ArmOptions(directory=repository, base=base, from_merge_base=True))


def test_merge_base_on_request(repository: Path) -> None:
    """`check --base main` means where head left main, without main's later commits."""
    run_git(repository, "checkout", "--quiet", "main")
    (repository / "shop.py").write_text("SIDE = 'later'\n", encoding="utf-8")
    run_git(repository, "commit", "--quiet", "--all", "--message", "later")
    run_git(repository, "checkout", "--quiet", "feature")
    with open_arms(ArmOptions(directory=repository, base="main", from_merge_base=True)) as arms:
        assert read_side(arms.base.arm.directory) == "base"
    with open_arms(ArmOptions(directory=repository, base="main")) as arms:
        assert read_side(arms.base.arm.directory) == "later"


def test_dirty_tree_is_noted(repository: Path) -> None:
    """Uncommitted changes are part of head, as its label and a note state."""
    (repository / "shop.py").write_text("SIDE = 'dirty'\n", encoding="utf-8")
    with open_arms(ArmOptions(directory=repository, base="main")) as arms:
        assert read_side(arms.head.arm.directory) == "dirty"
    assert arms.head.label.endswith(", uncommitted changes)")
    assert [note.code for note in arms.head.notes] == [Code.UNCOMMITTED]


def test_directories_need_no_git(tmp_path: Path) -> None:
    """Two directories are used as they are; the base's replaces the head's on search paths."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.py").write_text(f"SIDE = '{name}'\n", encoding="utf-8")
    old = tmp_path / "old"
    with open_arms(ArmOptions(directory=tmp_path / "new", base=str(old))) as arms:
        assert ("old", "new") == (read_side(arms.base.arm.directory), read_side(arms.head.arm.directory))
    assert (arms.base.label, arms.head.label) == (str(old), "working tree")
    assert (arms.base.arm.checkout, arms.base.arm.origin) == (str(old), str(tmp_path / "new"))
    assert old.is_dir()


def test_ref_wins_over_a_directory_of_the_same_name(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`main` is the branch, `./main` the directory."""
    monkeypatch.chdir(repository)
    Path("main").mkdir()
    with open_arms(ArmOptions(directory=Path(), base="main")) as arms:
        assert arms.base.label.startswith("main (")
    with open_arms(ArmOptions(directory=Path(), base="./main")) as arms:
        assert arms.base.arm.directory == str(repository / "main")


@pytest.mark.parametrize(
    ("base", "words"),
    [("./nowhere", "./nowhere is not a directory"), ("nowhere", "no branch, tag or commit 'nowhere'")],
)
def test_base_that_is_nothing(repository: Path, base: str, words: str) -> None:
    """What is neither a ref nor a directory is refused as what it looks like."""
    with pytest.raises(UsageError, match=words), open_arms(ArmOptions(directory=repository, base=base)):
        pytest.fail("there is no base")


def test_configuration_in_a_subdirectory(repository: Path) -> None:
    """A gate.yml below the repository's top means the same path in the checkout."""
    run_git(repository, "checkout", "--quiet", "main")
    (repository / "perf").mkdir()
    (repository / "perf" / "shop.py").write_text("SIDE = 'inner'\n", encoding="utf-8")
    run_git(repository, "add", "perf")
    run_git(repository, "commit", "--quiet", "--message", "perf")
    with open_arms(ArmOptions(directory=repository / "perf", base="main")) as arms:
        assert Path(arms.base.arm.checkout, "perf") == Path(arms.base.arm.directory)
        assert read_side(arms.base.arm.directory) == "inner"


def test_base_without_that_subdirectory(repository: Path) -> None:
    """A directory that base lacks is empty in its arm, with a note."""
    (repository / "perf").mkdir()
    with open_arms(ArmOptions(directory=repository / "perf", base="main")) as arms:
        assert list(Path(arms.base.arm.directory).iterdir()) == []
        assert tuple(map(describe_measuring, arms.base.notes)) == (
            f"{arms.base.label} has no directory perf",
        )


ALLOW = ("-c", "protocol.file.allow=always")  # git clones no submodule from a path otherwise


@pytest.fixture
def vendored(repository: Path, tmp_path: Path) -> Path:
    """Main has a submodule with another one in it; the feature, checked out, has newer commits of both."""
    places = [tmp_path / "inner", tmp_path / "outer"]
    for path in places:
        path.mkdir()
        run_git(path, "init", "--quiet")
        save(path, "code.py", "base")
    run_git(places[1], *ALLOW, "submodule", "--quiet", "add", str(places[0]), "deep/inner")
    save(places[1], "code.py", "base, with an inner one")
    run_git(repository, "checkout", "--quiet", "main")
    run_git(repository, *ALLOW, "submodule", "--quiet", "add", str(places[1]), "vendor/outer")
    run_git(repository, *ALLOW, "submodule", "--quiet", "update", "--init", "--recursive")
    save(repository, "shop.py", "base")
    run_git(repository, "checkout", "--quiet", "-B", "feature")
    for path in (repository / "vendor/outer/deep/inner", repository / "vendor/outer", repository):
        save(path, "code.py", "head")
    return repository


def save(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text, encoding="utf-8")
    run_git(repository, "add", "--all")
    run_git(repository, "commit", "--quiet", "--message", text)


def read_vendored(directory: str) -> list[str]:
    """The code of both submodules of an arm; empty where there is none."""
    files = [Path(directory) / "vendor/outer" / name for name in ("code.py", "deep/inner/code.py")]
    return [file.read_text(encoding="utf-8") if file.exists() else "" for file in files]


BOTH = ["base, with an inner one", "base"]


@pytest.mark.parametrize("kind", ["checkout", "linked", "own directory", "not checked out"])
def test_submodules_come_from_the_objects_that_the_clone_has(
    vendored: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Base's commits, also of the inner one, need no network; head's own stay as they are."""
    top = vendored
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "none")
    if kind == "linked":
        top = tmp_path / "linked"
        run_git(vendored, "worktree", "add", "--quiet", "--detach", str(top))
    elif kind == "own directory":  # as git before 1.7.8 made them, and as a clone in place is
        kept = vendored / ".git/modules/vendor/outer"
        (vendored / "vendor/outer/.git").unlink()
        run_git(vendored, f"--git-dir={kept}", "config", "--unset", "core.worktree")
        kept.rename(vendored / "vendor/outer/.git")
        inner = vendored / "vendor/outer/.git/modules/deep/inner"
        run_git(vendored, "config", "--file", str(inner / "config"), "--unset", "core.worktree")
        (vendored / "vendor/outer/deep/inner/.git").write_text(f"gitdir: {inner}\n")
    elif kind == "not checked out":
        run_git(vendored, "submodule", "--quiet", "deinit", "--force", "--all")
    with open_arms(ArmOptions(directory=top, base="main")) as arms:
        assert read_vendored(arms.base.arm.directory) == BOTH
        assert arms.base.notes == ()
        assert not arms.base.provenance.dirty
    assert not Path(arms.base.arm.directory).exists()
    if kind == "checkout":
        assert read_vendored(str(vendored)) == ["head", "head"]
        assert run_git(vendored, "status", "--porcelain") == ""


def test_submodules_that_the_clone_lacks_are_noted(vendored: Path, tmp_path: Path) -> None:
    """They stay empty, and a note names their paths."""
    plain = tmp_path / "plain"
    run_git(tmp_path, "clone", "--quiet", str(vendored), str(plain))
    run_git(plain, "branch", "--quiet", "main", "origin/main")
    for top, empty in ((plain, "vendor/outer"), (vendored, "vendor/outer/deep/inner")):
        shutil.rmtree(vendored / ".git/modules/vendor/outer/modules")
        shutil.rmtree(vendored / "vendor/outer/deep")
        (vendored / ".git/modules/vendor/outer/modules").mkdir()
        (vendored / "vendor/outer/deep").mkdir()
        with open_arms(ArmOptions(directory=top, base="main")) as arms:
            note = f"submodules of {arms.base.label} are empty: this clone has no objects of {empty}"
            assert note in map(describe_measuring, arms.base.notes)
            assert read_vendored(arms.base.arm.directory)[1] == ""


def test_a_submodule_of_that_name_elsewhere_is_not_read(repository: Path, tmp_path: Path) -> None:
    """A commit must not make the gate read a repository outside of the clone."""
    other = tmp_path / "other"
    run_git(tmp_path, "init", "--quiet", str(other))
    save(other, "code.py", "secret")
    run_git(repository, "checkout", "--quiet", "main")
    path = os.path.relpath(other / ".git", repository / ".git" / "modules")
    (repository / ".gitmodules").write_text(f'[submodule "{path}"]\n\tpath = vendor/outer\n\turl = x\n')
    commit = run_git(other, "rev-parse", "HEAD")
    run_git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},vendor/outer")
    run_git(repository, "add", ".gitmodules")
    run_git(repository, "commit", "--quiet", "--message", "a name that leads out")
    with open_arms(ArmOptions(directory=repository, base="main")) as arms:
        assert read_vendored(arms.base.arm.directory) == ["", ""]


def test_interpreters_on_one_code(
    repository: Path, make_interpreter: Callable[..., Path], scratch_root: Path
) -> None:
    """Without a base the working tree is on both sides, labelled by torch."""
    pythons = [str(make_interpreter(torch=f"__version__ = '{version}'")) for version in ("8.0", "9.0")]
    options = ArmOptions(directory=repository, base_python=pythons[0], head_python=pythons[1])
    with open_arms(options) as arms:
        assert arms.base.arm.directory == arms.head.arm.directory == str(repository)
        assert pythons == [arms.base.arm.python, arms.head.arm.python]
        source = arms.base.arm.variables["PYTHONPATH"].split(":")[0]
        assert source == arms.head.arm.variables["PYTHONPATH"].split(":")[0]
    assert [arms.base.label, arms.head.label] == [
        f"torch 8.0 ({pythons[0]})",
        f"torch 9.0 ({pythons[1]})",
    ]
    assert list(scratch_root.iterdir()) == []


def test_one_interpreter_on_both_sides_compares_the_code(
    repository: Path, make_interpreter: Callable[..., Path]
) -> None:
    """The same tree on the same interpreter would be compared with itself."""
    python = str(make_interpreter(torch="__version__ = '8.0'"))
    options = ArmOptions(directory=repository, base_python=python, head_python=python)
    with open_arms(options) as arms:
        assert arms.base.label.startswith("merge-base with main (")
        assert read_side(arms.base.arm.directory) == "base"


def test_code_and_interpreter_at_once(repository: Path, make_interpreter: Callable[..., Path]) -> None:
    """Where code and stack differ, the label names both."""
    python = str(make_interpreter(torch="__version__ = '8.0'"))
    options = ArmOptions(directory=repository, base="main", base_python=python, head_python=python)
    with open_arms(options) as arms:
        assert arms.base.label.endswith(f"), torch 8.0 ({python})")
        assert arms.head.label.startswith("working tree (")
        assert read_side(arms.base.arm.directory) == "base"


def test_interpreter_that_cannot_be_used_leaves_nothing(repository: Path, scratch_root: Path) -> None:
    """A wrong interpreter is refused before anything is checked out."""
    options = ArmOptions(directory=repository, base="main", head_python="/no/python")
    with pytest.raises(UsageError, match="--head-python"), open_arms(options):
        pytest.fail("there is no interpreter")
    assert (list_worktrees(repository), list(scratch_root.iterdir())) == ((), [])
