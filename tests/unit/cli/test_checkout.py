"""The top of the repository in a job is the clone's, which need not be the workspace."""

from pathlib import Path

import pytest

from gate.cli.github import choose_checkout, load_base, to_repository_path
from gate.project.config import load_config


@pytest.mark.parametrize("name", [".", "repo", "deep/er"])
@pytest.mark.parametrize("is_file", [False, True])
def test_the_top_is_where_git_keeps_its_own(tmp_path: Path, name: str, is_file: bool) -> None:
    """``actions/checkout`` takes a ``path:``; a linked working tree has a file there."""
    top = tmp_path / name
    (top / "models").mkdir(parents=True)
    (top / ".git").touch() if is_file else (top / ".git").mkdir()

    assert choose_checkout(top / "models", tmp_path) == top.resolve()


def test_without_a_clone_the_workspace_is_the_top(tmp_path: Path) -> None:
    """Where the runner has no git, ``actions/checkout`` downloads the files alone."""
    (tmp_path / "models").mkdir()

    assert choose_checkout(tmp_path / "models", tmp_path) == tmp_path.resolve()


@pytest.mark.parametrize(
    ("path", "expected"),
    [("gate.yml", "gate.yml"), ("a/../gate.yml", "gate.yml"), ("../outside", ""), (".", ""), ("/etc", "")],
)
def test_a_path_of_the_repository_is_written_as_git_does(tmp_path: Path, path: str, expected: str) -> None:
    """From its top, with slashes; a path outside is none of it."""
    assert to_repository_path(tmp_path / path, tmp_path.resolve()) == expected


def test_rules_are_named_from_the_top_of_the_clone(tmp_path: Path) -> None:
    """As GitHub names the files of a pull request; workflows are always among them."""
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / "gate" / "more").mkdir(parents=True)
    config = clone / "gate" / "gate.yml"
    config.write_text("version: 1\nreference_models: false\nregistry: [more/models.yml]\n")
    (clone / "gate" / "more" / "models.yml").write_text("version: 1\n")

    base = load_base(load_config(config), tmp_path)

    assert base.rules == ("gate/gate.yml", "gate/more/models.yml", "gate/baselines", ".github")
