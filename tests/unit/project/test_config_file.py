"""The search for gate.yml."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gate.errors import FileError
from gate.project.config import find_config, load_config
from tests.users import act_as_ordinary_user


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a gate.yml at its top; the test works two directories below."""
    top = tmp_path / "repository"
    (top / "src" / "model").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "gate.yml").write_text("version: 1\ntrials: 2\n", encoding="utf-8")
    monkeypatch.chdir(top / "src" / "model")
    return top


def test_the_nearest_above_holds(top: Path) -> None:
    """A subdirectory uses the project's own, whose paths stay relative to it."""
    assert find_config() == Path("../../gate.yml")
    config = load_config(None)
    assert (config.trials, config.is_found, config.source) == (2, True, "../../gate.yml")
    assert config.out.resolve() == top / "out"
    (top / "src" / "gate.yml").write_text("version: 1\n", encoding="utf-8")
    assert find_config() == Path("../gate.yml")
    Path("gate.yml").write_text("version: 1\n", encoding="utf-8")
    assert find_config() == Path("gate.yml")


@pytest.mark.parametrize("is_worktree", [False, True])
def test_the_top_of_the_repository_is_the_last(top: Path, is_worktree: bool) -> None:
    """Above it is another project; a worktree's .git is a file."""
    mark = top / "src" / ".git"
    if is_worktree:
        mark.write_text("gitdir: elsewhere\n", encoding="utf-8")
    else:
        mark.mkdir()
    assert find_config() is None
    assert not load_config(None).is_found


def test_a_link_that_leads_nowhere_is_no_missing_file(top: Path) -> None:
    """It is a configuration that somebody meant to have."""
    Path("gate.yml").symlink_to(top / "elsewhere.yml")
    with pytest.raises(FileError, match="does not exist"):
        load_config(None)


@pytest.mark.parametrize("directory", [".", "..", "../.."])
def test_another_spelling_is_named(top: Path, directory: str) -> None:
    """gate.yaml would not be read, and the reference models measured in its place."""
    (top / "gate.yml").unlink()
    Path(directory, "gate.yaml").write_text("version: 1\ntrials: 2\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"gate\.yaml: is not read: the file is called gate\.yml") as caught:
        load_config(None)
    assert "Rename it" in caught.value.fix


def test_both_spellings_are_no_mistake(top: Path) -> None:
    """gate.yml is there, and is read."""
    (top / "gate.yaml").write_text("version: 1\n", encoding="utf-8")
    assert find_config() == Path("../../gate.yml")


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory ``project/src`` below one without the right to look into it."""
    closed, here = tmp_path / "closed", tmp_path / "closed" / "project" / "src"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    closed.chmod(0)
    yield here
    closed.chmod(0o700)


@pytest.mark.usefixtures("closed")
def test_a_directory_that_may_not_be_looked_into_is_an_error() -> None:
    """It may hold a gate.yml, so the defaults would be a guess."""
    denied = r"^\.\./\.\./gate\.yml: .*Permission denied"
    with act_as_ordinary_user(), pytest.raises(FileError, match=denied):
        find_config()


@pytest.mark.usefixtures("closed")
def test_a_project_below_a_closed_directory_is_found() -> None:
    """Its own directories are readable, as with ``sudo -u`` in place."""
    Path("../gate.yml").write_text("version: 1\n", encoding="utf-8")
    with act_as_ordinary_user():
        assert find_config() == Path("../gate.yml")
