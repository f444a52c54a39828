"""Changed files that a case may read without importing them: a real repository."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gate
from gate.lab.arms import outputs
from gate.lab.arms.changes import Changes, read_changes
from gate.lab.arms.outputs import find_outputs
from tests.git import run_git

STORED = (
    "model.py",
    "old.py",
    "data/weights.bin",
    "README.md",
    ".github/workflows/ci.yml",
    "baselines/a.json",
)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with one commit."""
    for name in STORED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    run_git(tmp_path, "init", "-q")
    run_git(tmp_path, "add", "-A")
    run_git(tmp_path, "commit", "-q", "-m", "Begin")
    return tmp_path


def read(top: Path) -> Changes | None:
    return read_changes(top, run_git(top, "rev-parse", "HEAD"), (top / "out", top / "baselines"))


def test_what_imports_show_or_nobody_reads_is_no_other_change(top: Path) -> None:
    """Python, which imports show; texts, GitHub's files, our own directories and ignored files."""
    for name in ("model.py", "new.py", "README.md", ".github/workflows/ci.yml", "baselines/a.json"):
        (top / name).write_text("2\n")
    for name in ("out", "__pycache__"):
        (top / name).mkdir()
    (top / "__pycache__" / "model.cpython-311.pyc").write_bytes(b"")
    (top / "out" / "run.json").write_text("{}")
    (top / "some.log").write_text("ignored")
    assert read(top) == Changes(python=("model.py", "new.py"))


@pytest.mark.parametrize(
    "name",
    ["data/weights.bin", "data/new.json", "pyproject.toml", "op.cpp", "ops/setup.py", "hatch_build.py"],
)
def test_a_file_that_a_case_may_open_is_another_change(top: Path, name: str) -> None:
    """Changed or new, for a case or for the build of an extension."""
    (top / name).parent.mkdir(exist_ok=True)
    (top / name).write_text("2\n")
    assert read(top) == Changes(other=(name,))


def test_python_that_is_gone_is_another_change(top: Path) -> None:
    """If it is removed, moved or now a link, an import may find another module."""
    (top / "old.py").unlink()
    assert read(top) == Changes(other=("old.py",))
    (top / "old.py").symlink_to("model.py")
    assert read(top) == Changes(other=("old.py",))
    (top / "old.py").rename(top / "newer.py")
    assert read(top) == Changes(python=("newer.py",), other=("old.py",))


def test_committed_changes_count_as_well(top: Path) -> None:
    """The base is a commit before the last one."""
    base = run_git(top, "rev-parse", "HEAD")
    (top / "data" / "weights.bin").write_text("2\n")
    run_git(top, "commit", "-q", "-a", "-m", "Train on")
    assert read_changes(top, base, ()) == Changes(other=("data/weights.bin",))


def test_without_gits_answer_nothing_is_known(tmp_path: Path) -> None:
    """Outside of a repository, or for a commit that it lacks."""
    assert read_changes(tmp_path, "HEAD", ()) is None


def test_a_change_of_thousands_of_files_is_not_looked_at(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker would get the list."""
    monkeypatch.setattr("gate.lab.arms.changes.MAX_CHANGED", 1)
    (top / "model.py").write_text("2\n")
    assert read(top) == Changes(python=("model.py",))
    (top / "new.py").write_text("2\n")
    assert read(top) is None


def test_a_name_that_is_no_utf8_is_written_in_utf8(top: Path) -> None:
    """Requests and run.json can hold it."""
    for name in (b"mod\xff.py", b"data\xff.bin"):
        (top / os.fsdecode(name)).write_text("1")
    assert read(top) == Changes(python=("mod\ufffd.py",), other=("data\ufffd.bin",))


LOOK = """
import sys
from pathlib import Path
from gate.lab.arms.changes import read_changes
changes = read_changes(Path.cwd(), "HEAD", ())
Path(sys.argv[1]).write_text(" ".join(changes.other))
"""


def look(top: Path, command: str) -> str:
    """Read the changes in a process that a shell starts as LOOK in ``command``, and its open files."""
    result = top.parent / "result"
    python = shlex.join([sys.executable, "-c", LOOK, str(result)])
    environment = {**os.environ, "PYTHONPATH": str(Path(gate.__file__).parents[1])}
    subprocess.run(["sh", "-c", command.replace("LOOK", python)], cwd=top, env=environment, check=True)
    return result.read_text()


@pytest.fixture
def below(top: Path, tmp_path: Path) -> Path:
    """The same repository with a directory next to it."""
    return Path(shutil.copytree(top, tmp_path / "below" / "top"))


@pytest.mark.parametrize(
    "command",
    [
        "LOOK > same.txt",
        "LOOK 2> same.txt",
        "LOOK >> same.txt 2>&1",
        "LOOK | tee same.txt",
        "LOOK 2>&1 | cat | tee same.txt",
        "LOOK | cat > same.txt",
    ],
)
def test_our_own_output_is_no_change(below: Path, command: str) -> None:
    """A file that our streams write, directly or through a pipe, changes during the run."""
    assert look(below, command) == ""


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("sleep 60 > same.txt & LOOK > ../same.txt; kill $!", "same.txt"),
        ("sleep 60 > same.txt & LOOK | tee ../same.txt; kill $!", "same.txt"),
        ("sleep 60 > other.txt & LOOK > same.txt; kill $!", "other.txt"),
        ("echo 1 > same.txt; LOOK < same.txt", "same.txt"),  # read
        ("echo 1 > same.txt; LOOK | cat - same.txt", "same.txt"),
        ("ln -s ../same.txt same.txt; LOOK > same.txt", "same.txt"),  # the link itself is new
        ("LOOK > data/weights.bin", "data/weights.bin"),  # overwritten: the base has another one
    ],
)
def test_what_another_program_writes_is_a_change_under_any_name(
    below: Path, command: str, changed: str
) -> None:
    """So is a file that is only read, and a file of the commit."""
    assert look(below, command) == changed


def test_where_proc_shows_nothing_no_output_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In such a container every file counts, and the shortcut is lost."""
    (tmp_path / "same.txt").touch()
    with (tmp_path / "same.txt").open("w") as file:
        kept = os.dup(1)
        try:
            os.dup2(file.fileno(), 1)
            assert find_outputs([tmp_path / "same.txt"]) == {tmp_path / "same.txt"}
            monkeypatch.setattr(outputs, "_PROC", tmp_path)
            assert find_outputs([tmp_path / "same.txt"]) == frozenset()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
