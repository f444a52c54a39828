"""Fixtures of all unit tests: real git, real repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> Git:
    """Run git as Ada, whatever the machine's own settings are: ``git(directory, "status")``."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def run(directory: Path, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    return run


@pytest.fixture
def repository(tmp_path: Path, git: Git) -> Path:
    """A repository on branch ``feature``, one commit after ``main``, each with its own ``shop.py``."""
    top = tmp_path / "project"
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    for branch, side in (("main", "base"), ("feature", "head")):
        git(top, "checkout", "--quiet", "-B", branch)
        (top / "shop.py").write_text(f"SIDE = {side!r}\n", encoding="utf-8")
        git(top, "add", "shop.py")
        git(top, "commit", "--quiet", "--message", side)
    return top
