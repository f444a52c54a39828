"""Checkouts of other commits, in real repositories."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gate.errors import MachineError
from gate.git import MissingContentError
from gate.lab.arms.worktrees import list_worktrees, open_worktree, remove_leftover_worktrees
from gate.lab.host.scratch import OWNER_FILE, name_prefix, open_scratch
from tests.git import run_git

HOLDER = """
import sys, tempfile, time
from pathlib import Path
top, commit, tempfile.tempdir = sys.argv[1:]
from gate.lab.host.scratch import open_scratch
from gate.lab.arms.worktrees import open_worktree
with open_scratch() as scratch, open_worktree(Path(top), commit, scratch / "base") as path:
    print(path, flush=True)
    time.sleep(600)
"""


def kill_holder(top: Path, commit: str, scratch_root: Path) -> Path:
    """Let a process check a commit out and kill it; return the checkout."""
    command = [sys.executable, "-c", HOLDER, str(top), commit, str(scratch_root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
    assert (left / "shop.py").exists()
    return left


def test_checkout_is_there_and_gone(repository: Path, tmp_path: Path) -> None:
    """After the block neither the files nor git's note of them are left."""
    path = tmp_path / "base"
    with open_worktree(repository, run_git(repository, "rev-parse", "main"), path):
        assert (path / "shop.py").read_text(encoding="utf-8") == "SIDE = 'base'\n"
        assert list_worktrees(repository) == (path,)
        (path / "made.txt").write_text("by a measured model", encoding="utf-8")
    assert (path.exists(), list_worktrees(repository)) == (False, ())
    assert run_git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_checkout_is_gone_after_an_error(
    repository: Path, tmp_path: Path, error: type[BaseException]
) -> None:
    """Ctrl-C and exceptions within the block leave no checkout."""
    path = tmp_path / "base"
    with pytest.raises(error), open_worktree(repository, "main", path):
        raise error
    assert (path.exists(), list_worktrees(repository)) == (False, ())


def test_checkout_that_fails_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    """A commit that cannot be checked out is a MachineError, and nothing stays registered."""
    path = tmp_path / "base"
    with pytest.raises(MachineError, match="git cannot check"), open_worktree(repository, "f" * 40, path):
        pytest.fail("there is no such commit")
    assert (path.exists(), list_worktrees(repository)) == (False, ())


def test_a_base_that_a_partial_clone_lacks_is_named(repository: Path, tmp_path: Path) -> None:
    """Its remote is out of reach: the fix is about the clone, not the disk."""
    run_git(repository, "config", "uploadpack.allowFilter", "true")
    clone, path = tmp_path / "clone", tmp_path / "base"
    remote = repository.rename(tmp_path / "remote")
    run_git(tmp_path, "clone", "--quiet", "--filter=blob:none", remote.as_uri(), str(clone))
    commit = run_git(clone, "rev-parse", "origin/main")
    remote.rename(tmp_path / "gone")
    with pytest.raises(MissingContentError, match="lacks the content"), open_worktree(clone, commit, path):
        pytest.fail("its files are not here")
    assert (path.exists(), list_worktrees(clone)) == (False, ())


def test_hooks_do_not_run(repository: Path, tmp_path: Path) -> None:
    """The user's post-checkout hook does not know of the checkout."""
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    hook.chmod(0o755)
    with open_worktree(repository, "main", tmp_path / "base"):
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_leftover_of_a_kill_is_removed(repository: Path, scratch_root: Path, is_there: bool) -> None:
    """Whether or not its directory is gone already."""
    left = kill_holder(repository, "main", scratch_root)
    if not is_there:
        with open_scratch():  # another run, perhaps in another repository
            pass
        assert not left.exists()
    assert list_worktrees(repository) == (left,)
    remove_leftover_worktrees(repository)
    assert (list_worktrees(repository), list(scratch_root.iterdir())) == ((), [])


def test_worktree_of_another_host_stays(repository: Path, scratch_root: Path) -> None:
    """Another host that shares the repository may be using it in a directory not seen here."""
    elsewhere = scratch_root / f"{name_prefix('another host')}abcdefgh" / "base"
    run_git(repository, "worktree", "add", "--quiet", "--detach", str(elsewhere))
    shutil.rmtree(elsewhere.parent)
    remove_leftover_worktrees(repository)
    assert list_worktrees(repository) == (elsewhere,)


def test_worktrees_in_use_and_of_the_user_stay(repository: Path, scratch_root: Path) -> None:
    """A living run's checkout, and the user's own worktree, even a missing one."""
    users, missing, alike = (scratch_root / name for name in ("own", "missing", "compile-gate-mine/base"))
    for path in (users, missing, alike):
        run_git(repository, "worktree", "add", "--quiet", "--detach", str(path))
    run_git(repository, "worktree", "lock", str(users))
    for path in (missing / "shop.py", missing / ".git"):
        path.unlink(missing_ok=True)
    missing.rmdir()
    with open_scratch() as scratch, open_worktree(repository, "main", scratch / "base") as ours:
        remove_leftover_worktrees(repository)
        assert {users, missing, alike, ours} == set(list_worktrees(repository))
        assert (scratch / OWNER_FILE).exists()
    assert {users, missing, alike} == set(list_worktrees(repository))
