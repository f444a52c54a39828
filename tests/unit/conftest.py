"""A real repository for all unit tests."""

import shutil
from pathlib import Path

import pytest

from tests.git import run_git


@pytest.fixture(scope="session")
def made_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that :func:`repository` copies."""
    top = tmp_path_factory.mktemp("repository") / "project"
    top.mkdir()
    run_git(top, "init", "--quiet", "--initial-branch=main")
    for branch, side in (("main", "base"), ("feature", "head")):
        run_git(top, "checkout", "--quiet", "-B", branch)
        (top / "shop.py").write_text(f"SIDE = {side!r}\n", encoding="utf-8")
        run_git(top, "add", "shop.py")
        run_git(top, "commit", "--quiet", "--message", side)
    return top


@pytest.fixture
def repository(made_repository: Path, tmp_path: Path) -> Path:
    """A repository on branch ``feature``, one commit after ``main``, each with its own ``shop.py``."""
    return Path(shutil.copytree(made_repository, tmp_path / "project"))
