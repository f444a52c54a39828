"""Calls of git: its reasons, time limit, and nothing of a repository that runs."""

import shutil
from pathlib import Path

import pytest

from gate.errors import MachineError, UsageError
from gate.git import ask_git, find_checkout, find_distrust, is_true, read_git, trust_checkout
from tests.git import run_git


def put_git(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a script before the real git on PATH."""
    directory.mkdir(exist_ok=True)
    (directory / "git").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (directory / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")


def make_spy(directory: Path) -> str:
    """Make a program that leaves a trace, and return its path."""
    spy = directory / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {directory / 'ran'}\n", encoding="utf-8")
    spy.chmod(0o755)
    return str(spy)


def test_a_directory_laid_out_as_a_repository_runs_nothing(repository: Path, tmp_path: Path) -> None:
    """Committed files cannot name a program that git runs in its directory."""
    inner = repository / "models"
    run_git(repository, "init", "--quiet", "--bare", str(inner))
    for setting in (("core.bare", "false"), ("core.worktree", str(repository))):
        run_git(inner, "config", "--file", str(inner / "config"), *setting)
    run_git(inner, "config", "--file", str(inner / "config"), "core.fsmonitor", make_spy(tmp_path))

    answer = ask_git(inner, "status", "--porcelain")

    assert not answer.is_good
    assert "bare repository" in answer.complaint
    assert not (tmp_path / "ran").exists()


def test_a_monitor_that_an_earlier_job_left_is_not_started(repository: Path, tmp_path: Path) -> None:
    """A program that an earlier job left in ``.git/config`` is not run."""
    run_git(repository, "config", "core.fsmonitor", make_spy(tmp_path))

    assert ask_git(repository, "status", "--porcelain").is_good
    assert not (tmp_path / "ran").exists()


def test_gits_reason_is_the_fatal_line(repository: Path) -> None:
    """Neither advice nor a path is the reason."""
    answer = ask_git(repository, "rev-parse", "--verify", "no-such-ref")

    assert answer.complaint == "fatal: Needed a single revision"
    with pytest.raises(UsageError, match=r"git rev-parse failed in .*: Needed a single revision"):
        read_git(repository, "rev-parse", "--verify", "no-such-ref")


def test_a_git_that_hangs_is_a_matter_of_the_machine(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended after its time, as an error of the machine."""
    put_git(tmp_path / "bin", "exec sleep 60", monkeypatch)

    with pytest.raises(MachineError, match=r"git status hangs \(0\.\d CPU seconds in \d s\)"):
        read_git(repository, "status", limit_s=0.2)


def test_callers_repository_does_not_replace_ours(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT_DIR of a hook is ignored, and settings of the caller count."""
    other = tmp_path / "other"
    run_git(tmp_path, "init", "--quiet", str(other))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "gate.test")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "kept")

    assert ask_git(repository, "rev-parse", "--show-toplevel").said == str(repository)
    assert ask_git(repository, "config", "gate.test").said == "kept"


def test_a_checkout_of_somebody_else_is_trusted_on_request(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused with git's reason, and read once trusted, with the user's settings."""
    real = shutil.which("git")
    put_git(tmp_path / "bin", f'GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec "{real}" "$@"', monkeypatch)
    (tmp_path / "mine").write_text("[gate]\n\ttest = mine\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "mine"))
    (repository / "sub").mkdir()

    with pytest.raises(UsageError, match=r"git does not trust .*: it belongs to another user"):
        read_git(repository, "rev-parse", "HEAD")
    assert "does not trust" in str(find_distrust(repository))  # as doctor says
    environ = trust_checkout(
        {"GIT_CONFIG_GLOBAL": str(tmp_path / "mine")}, repository / "sub", tmp_path / "global"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", environ["GIT_CONFIG_GLOBAL"])
    assert find_distrust(repository) is None

    assert len(read_git(repository, "rev-parse", "HEAD")) == 41
    assert ask_git(repository, "config", "gate.test").said == "mine"


def test_outside_a_checkout_there_is_nothing_to_trust(tmp_path: Path) -> None:
    """No file is written and the environment stays."""
    assert find_checkout(tmp_path) is None
    assert trust_checkout({"HOME": "/x"}, tmp_path, tmp_path / "global") == {"HOME": "/x"}
    assert not (tmp_path / "global").exists()


def test_an_error_of_git_is_not_a_no(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit status is yes, no, or an error of the machine."""
    assert is_true(repository, "cat-file", "-e", "HEAD")
    assert not is_true(repository, "cat-file", "-e", "HEAD~9")
    put_git(tmp_path / "bin", "exec sleep 60", monkeypatch)
    with pytest.raises(MachineError, match="git cat-file hangs"):
        is_true(repository, "cat-file", "-e", "HEAD", limit_s=0.2)
