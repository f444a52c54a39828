"""The provenance of a run."""

import os
import re
import shutil
from pathlib import Path

import pytest

import gate
from gate.errors import MachineError
from gate.lab.arms import provenance
from gate.lab.arms.changes import Changes, hash_changes, read_changes
from gate.lab.arms.provenance import load_provenance, make_run_url
from tests.git import run_git

ACTIONS = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "owner/repo",
    "GITHUB_RUN_ID": "42",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    run_git(tmp_path, "init", "-q")
    run_git(tmp_path, "config", "user.name", "Ada")
    (tmp_path / "model.py").write_text("1\n", encoding="utf-8")
    run_git(tmp_path, "add", "model.py")
    run_git(tmp_path, "commit", "-q", "-m", "One")
    return tmp_path


def test_clean_checkout(repository: Path) -> None:
    """Commit, author, time and version of a clean checkout."""
    provenance = load_provenance(repository, {})
    assert (run_git(repository, "rev-parse", "HEAD"), False, "Ada", "") == (
        provenance.commit,
        provenance.dirty,
        provenance.author,
        provenance.run_url,
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", provenance.created)
    assert provenance.gate_version == gate.__version__


def test_changed_file_is_dirty(repository: Path) -> None:
    """A change to a tracked file makes the checkout dirty."""
    (repository / "model.py").write_text("2\n", encoding="utf-8")
    assert load_provenance(repository, {}).dirty


def test_untracked_file_is_not_dirty(repository: Path) -> None:
    """Outputs next to the code do not make it dirty."""
    (repository / "out.json").write_text("{}", encoding="utf-8")
    assert not load_provenance(repository, {}).dirty


def test_other_repository_of_a_hook_is_not_asked(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT_DIR, which hooks set, has no effect."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert load_provenance(repository, {}).commit


def test_outside_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a repository there is no commit, and nothing is dirty."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    provenance = load_provenance(tmp_path, {})
    assert (provenance.commit, provenance.dirty) == ("", False)


def test_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a git program there is no commit either."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert load_provenance(repository, {}).commit == ""


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, ""),
        (ACTIONS, "https://github.com/owner/repo/actions/runs/42"),
        ({**ACTIONS, "GITHUB_RUN_ATTEMPT": "1"}, "https://github.com/owner/repo/actions/runs/42"),
        ({**ACTIONS, "GITHUB_RUN_ATTEMPT": "3"}, "https://github.com/owner/repo/actions/runs/42/attempts/3"),
    ],
)
def test_run_url(environ: dict[str, str], expected: str) -> None:
    """On GitHub Actions the link leads to the run, and to the attempt when it is not the first."""
    assert expected == make_run_url(environ)


def test_actor_is_the_author(repository: Path) -> None:
    """On GitHub Actions the author is the user who started the run."""
    assert load_provenance(repository, {"GITHUB_ACTOR": "grace"}).author == "grace"


def test_a_status_that_does_not_come_is_not_a_clean_checkout(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes would be measured without a note."""
    git_itself = shutil.which("git")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "git"
    slow = r'case "$*" in *\ status\ *) exec sleep 60;; esac'
    script.write_text(f'#!/bin/sh\n{slow}\nexec "{git_itself}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setattr(provenance, "STATUS_LIMIT_S", 0.5)

    with pytest.raises(MachineError, match="git status hangs"):
        load_provenance(repository, {})


def test_every_edit_changes_the_hash(repository: Path) -> None:
    """A tracked file's, staged or not, and a new code file; not another new file.

    The project may be in a subdirectory: its models may import from outside.
    """
    model, fresh, notes = (repository / name for name in ("model.py", "new.cu", "notes.txt"))
    project = repository / "bench"
    project.mkdir()
    seen = [hash_changes(project)]
    model.write_text("2\n", encoding="utf-8")
    seen.append(hash_changes(project))
    fresh.write_text("1\n", encoding="utf-8")
    seen.append(hash_changes(project))
    fresh.write_text("2\n", encoding="utf-8")
    seen.append(hash_changes(project))
    assert len(set(seen)) == 4
    notes.write_text("1\n", encoding="utf-8")
    run_git(repository, "add", "model.py")
    assert hash_changes(project) == seen[-1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.abbrev", "20"),
        ("diff.noprefix", "true"),
        ("diff.context", "0"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.suppressBlankEmpty", "true"),
        ("color.ui", "always"),
    ],
)
def test_settings_of_git_do_not_change_the_hash(repository: Path, key: str, value: str) -> None:
    """Two hosts with the same edit agree, however git abbreviates ids and files."""
    model = repository / "model.py"
    model.write_text("1\n\n", encoding="utf-8")  # its second line is shown as it stays
    run_git(repository, "commit", "-q", "-a", "-m", "Two")
    model.write_text("2\n\n", encoding="utf-8")
    before = hash_changes(repository)
    run_git(repository, "config", key, value)
    assert hash_changes(repository) == before


@pytest.mark.parametrize(
    ("user", "modules"),
    [
        ("", ""),
        ("[diff]\nexternal = /bin/true", ""),
        ("[color]\nui = always", ""),
        ("[diff]\nignoreSubmodules = all", ""),
        ("", "all"),
    ],
    ids=["none", "another program shows diffs", "colours", "the user ignores submodules", ".gitmodules does"],
)
def test_an_edit_in_a_submodule_is_a_change(
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    user: str,
    modules: str,
) -> None:
    """Each further edit and new file changes the hash, whatever settings hide."""
    other, settings = tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("home") / "gitconfig"
    run_git(other, "clone", "-q", str(repository), ".")
    add = ("submodule", "--quiet", "add", str(other), "layers")
    run_git(repository, "-c", "protocol.file.allow=always", *add)
    if modules:
        run_git(repository, "config", "--file", ".gitmodules", "submodule.layers.ignore", modules)
    run_git(repository, "add", "--all")
    run_git(repository, "commit", "-q", "-m", "Add a submodule")
    settings.write_text(user, encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    hashes = [hash_changes(repository)]
    assert read_changes(repository, "HEAD", ()) == Changes()
    for name, content in (("model.py", "2\n"), ("model.py", "3\n"), ("new.py", "1\n")):
        (repository / "layers" / name).write_text(content, encoding="utf-8")
        hashes.append(hash_changes(repository))
    assert len(set(hashes)) == 4
    assert load_provenance(repository).dirty
    assert read_changes(repository, "HEAD", ()) == Changes(other=("layers",))


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_git_is_set_not_to_show_is_a_change(repository: Path, flag: str) -> None:
    """The flag itself is none: a file as committed is no change."""
    run_git(repository, "update-index", flag, "model.py")
    before = hash_changes(repository)
    assert (load_provenance(repository).dirty, read_changes(repository, "HEAD", ())) == (False, Changes())
    (repository / "model.py").write_text("2\n", encoding="utf-8")
    assert hash_changes(repository) != before
    assert load_provenance(repository).dirty
    assert read_changes(repository, "HEAD", ()) == Changes(python=("model.py",))


def test_outside_of_git_nobody_knows_what_changed(tmp_path: Path) -> None:
    """The hash is empty."""
    assert hash_changes(tmp_path) == ""
