"""Names of commits in real repositories."""

import shlex
from pathlib import Path

import pytest

from gate.errors import MachineError, UsageError
from gate.revisions import (
    NothingDiffersError,
    find_tag,
    get_top,
    resolve_ancestor,
    resolve_base,
    resolve_default_base,
    resolve_ref,
)
from tests.git import run_git


def commit(top: Path, text: str) -> str:
    """Commit another ``shop.py`` and return the commit."""
    (top / "shop.py").write_text(text, encoding="utf-8")
    run_git(top, "commit", "--quiet", "--all", "--message", text)
    return run_git(top, "rev-parse", "HEAD")


def clone(top: Path, *options: str) -> Path:
    """Clone through the protocol that honours --depth."""
    directory = top.parent / "clone"
    run_git(top.parent, "clone", "--quiet", *options, f"file://{top}", str(directory))
    return directory


def test_merge_base_is_where_head_left_the_branch(repository: Path) -> None:
    """The base is the last common commit, not the branch's tip."""
    shared = run_git(repository, "rev-parse", "main")
    run_git(repository, "checkout", "--quiet", "main")
    tip = commit(repository, "later")
    run_git(repository, "checkout", "--quiet", "feature")
    base = resolve_base(repository, "main")
    assert (shared, f"merge-base with main ({shared[:7]})") == (base.commit, base.label)
    assert f"main ({tip[:7]})" == resolve_ref(repository, "main").label


def test_detached_head_and_dirty_tree_are_fine(repository: Path) -> None:
    shared = run_git(repository, "rev-parse", "main")
    run_git(repository, "checkout", "--quiet", "--detach")
    (repository / "shop.py").write_text("changed", encoding="utf-8")
    assert shared == resolve_base(repository, "main").commit == resolve_default_base(repository).commit


def test_branch_that_only_the_remote_has(repository: Path) -> None:
    """In CI's clone `main` is `origin/main`."""
    directory = clone(repository, "--branch=feature")
    assert resolve_base(directory, "main").label.startswith("merge-base with origin/main (")


@pytest.mark.parametrize("ref", ["no-such-branch", "--all", "HEAD~9", ""])
def test_unknown_ref(repository: Path, ref: str) -> None:
    """An unknown name, or an option, is refused."""
    with pytest.raises(UsageError, match="there is no branch, tag or commit") as caught:
        resolve_ref(repository, ref)
    assert caught.value.fix.startswith("Check its spelling")


def test_shallow_clone_without_the_merge_base(repository: Path) -> None:
    """A clone whose history ends too early is distinguished from unrelated histories."""
    run_git(repository, "checkout", "--quiet", "main")
    commit(repository, "later")
    directory = clone(repository, "--depth=1", "--no-single-branch", "--branch=feature")
    with pytest.raises(UsageError, match="this shallow clone lacks the commit where HEAD left") as caught:
        resolve_base(directory, "main")
    assert caught.value.fix == (
        "Run `git fetch --unshallow`, or `fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` in GitLab CI."
    )
    run_git(directory, "fetch", "--quiet", "--unshallow")
    assert run_git(repository, "rev-parse", "main~1") == resolve_base(directory, "main").commit


@pytest.mark.parametrize("ref", ["main", "origin/main"])
@pytest.mark.parametrize("depth", ["--depth=1", "--no-tags"])
def test_the_command_that_the_fix_names_brings_a_missing_branch(
    repository: Path, depth: str, ref: str
) -> None:
    """A clone in CI has one branch, detached and often shallow."""
    directory = clone(repository, depth, "--single-branch", "--branch=feature")
    run_git(directory, "checkout", "--quiet", "--detach")
    with pytest.raises(UsageError) as caught:
        resolve_base(directory, ref)

    named = caught.value.fix.split("`")[1]
    assert ("GIT_DEPTH: 0" in caught.value.fix) == ("--unshallow" in named) == (depth == "--depth=1")
    run_git(directory, *shlex.split(named)[1:])
    assert resolve_base(directory, ref).commit == run_git(repository, "rev-parse", "main")


def test_unrelated_histories(repository: Path) -> None:
    """Branches without a common commit have no merge base."""
    run_git(repository, "checkout", "--quiet", "--orphan", "other")
    commit(repository, "other")
    with pytest.raises(UsageError, match="HEAD and main have no commit in common"):
        resolve_base(repository, "main")


def test_outside_a_repository(tmp_path: Path) -> None:
    """The fix names what works without one."""
    with pytest.raises(UsageError, match="is not in a git repository") as caught:
        resolve_ref(tmp_path, "main")
    assert "a directory with its files" in caught.value.fix


def test_bare_repository(repository: Path) -> None:
    """A repository without files is refused."""
    bare = clone(repository, "--bare")
    with pytest.raises(UsageError, match="is in a repository without a working tree"):
        get_top(bare)


def test_no_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git the error names git."""
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(MachineError, match="git cannot be run") as caught:
        resolve_ref(repository, "main")
    assert caught.value.fix.startswith("Install git")


def test_repository_of_somebody_else(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fix has the setting that makes git trust another user's checkout."""
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    message = (
        "fatal: detected dubious ownership in repository\\n\\tgit config --global --add safe.directory x"
    )
    git.write_text(f'#!/bin/sh\nprintf "{message}" >&2\nexit 128\n', encoding="utf-8")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent))
    with pytest.raises(UsageError) as caught:
        get_top(repository)
    assert caught.value.fix == f"Run `git config --global --add safe.directory {repository}`."


def test_default_base_is_what_the_remote_calls_its_branch(repository: Path) -> None:
    """The default base is the remote's default branch."""
    run_git(repository, "branch", "--quiet", "--move", "main", "trunk")
    run_git(repository, "checkout", "--quiet", "trunk")
    directory = clone(repository)
    run_git(directory, "checkout", "--quiet", "feature")
    assert resolve_default_base(directory).label.startswith("merge-base with origin/trunk (")


def test_default_base_that_is_unknown(repository: Path) -> None:
    """Without a usual name the argument is required."""
    run_git(repository, "branch", "--quiet", "--move", "main", "trunk")
    with pytest.raises(UsageError, match="cannot find out which branch") as caught:
        resolve_default_base(repository)
    assert caught.value.fix == "Name it: `check --base BRANCH`, or `ab BRANCH`."


def test_default_base_on_the_default_branch(repository: Path) -> None:
    """On the branch itself there is no base, which is an error at once."""
    run_git(repository, "checkout", "--quiet", "main")
    with pytest.raises(UsageError, match="HEAD is part of main, and nothing is uncommitted"):
        resolve_default_base(repository)


def test_variables_of_a_hook_do_not_lead_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT_DIR of a hook is ignored."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert get_top(repository) == repository


def test_an_ancestor_is_what_head_was_made_from(repository: Path) -> None:
    """Head itself is one; a branch that went on is not, and the fix names the command."""
    shared = run_git(repository, "rev-parse", "main")
    assert resolve_ancestor(repository, "main").commit == shared
    assert resolve_ancestor(repository, "HEAD").commit == run_git(repository, "rev-parse", "feature")
    run_git(repository, "checkout", "--quiet", "main")
    tip = commit(repository, "later")
    run_git(repository, "checkout", "--quiet", "feature")
    with pytest.raises(UsageError, match=rf"HEAD was not made from main \({tip[:7]}\)") as caught:
        resolve_ancestor(repository, "main")
    assert "`git log HEAD`" in caught.value.fix


def test_a_shallow_clone_does_not_know_ancestors(repository: Path) -> None:
    """It is refused with that fix."""
    directory = clone(repository, "--depth=1", "--no-single-branch", "--branch=feature")
    with pytest.raises(UsageError, match="HEAD was not made from") as caught:
        resolve_ancestor(directory, "main")
    assert "git fetch --unshallow" in caught.value.fix


def test_a_users_columns_join_no_names(repository: Path) -> None:
    """Two tags of one commit are two lines, whatever git's settings."""
    run_git(repository, "config", "column.ui", "always")
    for name in ("v1", "v2"):
        run_git(repository, "tag", name)
    assert find_tag(repository, "HEAD", "v2") == "v2"


def test_a_commit_is_called_by_the_tag_that_was_asked_for(repository: Path) -> None:
    """Of several tags the given one, else the first by name, or none."""
    shared = run_git(repository, "rev-parse", "main")
    assert find_tag(repository, shared) == ""
    run_git(repository, "tag", "v2", "main")
    run_git(repository, "tag", "--annotate", "--message", "x", "v1", "main")
    assert (find_tag(repository, shared), find_tag(repository, shared, "v2")) == ("v1", "v2")
    assert find_tag(repository, shared, "main") == "v1"


def grow(top: Path, branch: str, commits: int = 1, start: str = "") -> list[str]:
    """Check out a branch, a new one from ``start``, and commit on it; return the commits."""
    run_git(top, "checkout", "--quiet", *(("-B", branch, start) if start else (branch,)))
    return [
        commit(top, f"{branch} {number} {run_git(top, 'rev-parse', 'HEAD')[:7]}") for number in range(commits)
    ]


def point(top: Path, ref: str, to: str) -> None:
    """Let a remote's branch or a tag be a commit, as after a fetch."""
    run_git(top, "update-ref", ref, to)


@pytest.fixture
def history(repository: Path) -> tuple[Path, list[str]]:
    """A repository on ``topic``, two commits after five of a main branch without a name here."""
    merged = grow(repository, "trunk", 5, start="main")
    run_git(repository, "branch", "--quiet", "--delete", "--force", "main")
    grow(repository, "topic", 2, start=merged[-1])
    return repository, merged


def test_a_renamed_main_branch_is_found_though_the_clone_still_names_the_old_one(
    history: tuple[Path, list[str]],
) -> None:
    """origin/HEAD is origin/master with two commits; origin/main has all five."""
    top, merged = history
    point(top, "refs/remotes/origin/master", merged[1])
    run_git(top, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/master")
    point(top, "refs/remotes/origin/main", merged[4])
    assert resolve_default_base(top).label == f"merge-base with origin/main ({merged[4][:7]})"


def test_a_fork_that_is_behind_gives_way_to_its_upstream(history: tuple[Path, list[str]]) -> None:
    """The base is upstream's main if the fork's is older."""
    top, merged = history
    point(top, "refs/remotes/origin/main", merged[0])
    point(top, "refs/remotes/upstream/main", merged[4])
    assert resolve_default_base(top).label == f"merge-base with upstream/main ({merged[4][:7]})"


def test_a_tag_that_is_called_main_is_no_branch(history: tuple[Path, list[str]]) -> None:
    """The tag is the measured commit; the base is of origin/main."""
    top, merged = history
    point(top, "refs/tags/main", run_git(top, "rev-parse", "HEAD"))
    point(top, "refs/tags/origin/main", run_git(top, "rev-parse", "HEAD"))
    point(top, "refs/remotes/origin/main", merged[3])
    assert resolve_default_base(top).commit == merged[3]


def test_a_tag_alone_is_no_main_branch(history: tuple[Path, list[str]]) -> None:
    """Without a usual branch name the argument is required."""
    top, merged = history
    point(top, "refs/tags/main", merged[3])
    with pytest.raises(UsageError, match="cannot find out which branch"):
        resolve_default_base(top)


@pytest.mark.parametrize("branch", ["main", "topic"])
def test_unpushed_commits_on_local_main_are_part_of_the_change(
    history: tuple[Path, list[str]], branch: str
) -> None:
    """The base is origin/main, which lacks two local commits."""
    top, merged = history
    point(top, "refs/remotes/origin/main", merged[4])
    unpushed = grow(top, "main", 2, start=merged[4])
    if branch == "topic":
        grow(top, "topic", 1, start=unpushed[-1])
    assert resolve_default_base(top).label == f"merge-base with origin/main ({merged[4][:7]})"


def test_a_colleagues_remote_that_merged_half_of_the_branch_is_no_base(
    history: tuple[Path, list[str]],
) -> None:
    """Only origin, upstream and the branch's own remote count."""
    top, merged = history
    point(top, "refs/remotes/origin/main", merged[4])
    point(top, "refs/remotes/colleague/main", run_git(top, "rev-parse", "HEAD~1"))
    assert resolve_default_base(top).commit == merged[4]


@pytest.mark.parametrize(("remote", "expected"), [("team", 3), ("", 1)])
def test_the_branchs_own_remote_is_asked_too(
    history: tuple[Path, list[str]], remote: str, expected: int
) -> None:
    """``git push -u team`` makes it the branch's own."""
    top, merged = history
    point(top, "refs/remotes/origin/main", merged[1])
    point(top, "refs/remotes/team/main", merged[3])
    if remote:
        run_git(top, "config", "branch.topic.remote", remote)
    assert resolve_default_base(top).commit == merged[expected]


def test_a_remote_that_has_all_of_head_counts_only_if_all_do(history: tuple[Path, list[str]]) -> None:
    """The fork merged the pull request, and upstream did not."""
    top, merged = history
    point(top, "refs/remotes/origin/main", run_git(top, "rev-parse", "HEAD"))
    point(top, "refs/remotes/upstream/main", merged[4])
    assert resolve_default_base(top).commit == merged[4]
    point(top, "refs/remotes/upstream/main", run_git(top, "rev-parse", "HEAD"))
    with pytest.raises(NothingDiffersError, match="HEAD is part of origin/main"):
        resolve_default_base(top)


def test_local_main_counts_where_no_remote_has_one(history: tuple[Path, list[str]]) -> None:
    """The nearer of main and master counts, but not the branch that is checked out."""
    top, merged = history
    point(top, "refs/remotes/origin/topic", merged[4])
    point(top, "refs/heads/master", merged[1])
    point(top, "refs/heads/main", merged[3])
    assert resolve_default_base(top).label == f"merge-base with main ({merged[3][:7]})"
    grow(top, "master", 1)
    assert resolve_default_base(top).label == f"merge-base with main ({merged[1][:7]})"


def test_of_what_cannot_be_compared_the_first_counts_and_the_other_is_named(
    history: tuple[Path, list[str]],
) -> None:
    """Head merged a line of each remote; an unrelated third does not count."""
    top, merged = history
    (ours,) = grow(top, "ours", 1, start=merged[0])
    (theirs,) = grow(top, "theirs", 1, start=merged[0])
    run_git(top, "checkout", "--quiet", "-B", "topic", ours)
    run_git(top, "merge", "--quiet", "--strategy=ours", "--message", "both", theirs)
    point(top, "refs/remotes/origin/main", ours)
    point(top, "refs/remotes/upstream/main", theirs)
    run_git(top, "checkout", "--quiet", "--orphan", "other")
    run_git(top, "commit", "--quiet", "--message", "another history")
    point(top, "refs/remotes/origin/master", run_git(top, "rev-parse", "HEAD"))
    run_git(top, "checkout", "--quiet", "topic")
    base = resolve_default_base(top)
    assert (base.label, base.other) == (
        f"merge-base with origin/main ({ours[:7]})",
        f"merge-base with upstream/main ({theirs[:7]})",
    )


def test_the_other_is_named_though_a_third_is_nearer_than_the_first(
    history: tuple[Path, list[str]],
) -> None:
    """The branch's own remote is ahead of origin; upstream is on another line."""
    top, merged = history
    ours = grow(top, "ours", 2, start=merged[0])
    (theirs,) = grow(top, "theirs", 1, start=merged[0])
    run_git(top, "checkout", "--quiet", "-B", "topic", ours[1])
    run_git(top, "merge", "--quiet", "--strategy=ours", "--message", "both", theirs)
    point(top, "refs/remotes/origin/main", ours[0])
    point(top, "refs/remotes/upstream/main", theirs)
    point(top, "refs/remotes/team/main", ours[1])
    run_git(top, "config", "branch.topic.remote", "team")
    base = resolve_default_base(top)
    assert (base.commit, base.other) == (ours[1], f"merge-base with upstream/main ({theirs[:7]})")


@pytest.mark.parametrize("ref", ["refs/remotes/origin/master", "refs/heads/master"])
def test_a_main_branch_that_is_called_master_is_found(history: tuple[Path, list[str]], ref: str) -> None:
    """On a remote and locally."""
    top, merged = history
    point(top, ref, merged[3])
    assert resolve_default_base(top).commit == merged[3]


def test_a_history_of_its_own_has_no_base(history: tuple[Path, list[str]]) -> None:
    """The only main branch shares no commit with head."""
    top, merged = history
    point(top, "refs/remotes/origin/main", merged[4])
    run_git(top, "checkout", "--quiet", "--orphan", "other")
    run_git(top, "commit", "--quiet", "--message", "another history")
    with pytest.raises(UsageError, match=r"^HEAD and origin/main have no commit in common"):
        resolve_default_base(top)


def test_a_shallow_clone_names_what_it_lacks(history: tuple[Path, list[str]]) -> None:
    """Another main branch does not replace one that was not fetched."""
    top, merged = history
    run_git(top, "branch", "--quiet", "main", merged[4])
    directory = clone(top, "--depth=1", "--no-single-branch")
    run_git(directory, "checkout", "--quiet", "topic")
    with pytest.raises(UsageError, match="this shallow clone lacks the commit"):
        resolve_default_base(directory)
