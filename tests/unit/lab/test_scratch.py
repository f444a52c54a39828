"""Scratch directories are owned, removed, and never anybody else's."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.errors import MachineError
from gate.lab.host.scratch import OWNER_FILE, get_scratch_root, is_abandoned, is_scratch_name, open_scratch

HOLDER = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from gate.lab.host.scratch import open_scratch
with open_scratch() as path:
    (path / "cache").mkdir()
    (path / "cache" / "kernel.so").write_text("x")
    print(path, flush=True)
    time.sleep(600)
"""

StartHolder = Callable[[], tuple["subprocess.Popen[str]", Path]]


@pytest.fixture
def start_holder(scratch_root: Path) -> StartHolder:
    """Start a process that owns a scratch directory for ten minutes."""

    def start() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(scratch_root)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    return start


def test_scratch_of_its_own_place_is_cleared_by_the_next_there(scratch_root: Path, tmp_path: Path) -> None:
    """Ray's sockets need a short path: the next run removes what a killed one left."""
    short = tmp_path / "short"
    short.mkdir()
    with open_scratch(short) as path:
        assert path.parent == short
        left = short / path.name[:-1].ljust(len(path.name), "x")
        shutil.copytree(path, left)
    assert list(short.iterdir()) == [left]
    with open_scratch(short) as path:
        assert list(short.iterdir()) == [path]
    assert list(scratch_root.iterdir()) == []


def test_directory_is_gone_at_the_end(scratch_root: Path) -> None:
    """A scratch directory has its prefix within the block, and is gone after it."""
    with open_scratch() as path:
        (path / "deep" / "er").mkdir(parents=True)
        assert [path] == list(scratch_root.iterdir())
        assert is_scratch_name(path.name)
    assert list(scratch_root.iterdir()) == []


def test_directory_is_gone_after_an_error(scratch_root: Path) -> None:
    """Ctrl-C within the block leaves nothing."""
    with pytest.raises(KeyboardInterrupt), open_scratch():
        raise KeyboardInterrupt
    assert list(scratch_root.iterdir()) == []


def test_what_a_killed_process_left_is_removed(scratch_root: Path, start_holder: StartHolder) -> None:
    """A living owner's directory stays; after a SIGKILL the next start removes it."""
    process, left = start_holder()
    with process:
        with open_scratch():
            assert (left / "cache" / "kernel.so").exists()
            assert not is_abandoned(left)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert is_abandoned(left)
        with open_scratch() as path:
            assert [path] == list(scratch_root.iterdir())


def test_two_of_one_process_do_not_disturb_each_other(scratch_root: Path) -> None:
    """A second scratch directory of the same process leaves the first alone."""
    with open_scratch() as first, open_scratch() as second:
        assert {first, second} == set(scratch_root.iterdir())


def test_what_is_not_ours_stays(scratch_root: Path, tmp_path: Path) -> None:
    """Directories without an owner's file, files, and planted links."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / OWNER_FILE).touch()
    (scratch_root / "compile-gate-locks-0").mkdir()
    (scratch_root / "compile-gate-notes").touch()
    (scratch_root / "compile-gate-abcdefgh").symlink_to(victim)
    with open_scratch():
        pass
    assert ["compile-gate-abcdefgh", "compile-gate-locks-0", "compile-gate-notes"] == sorted(
        path.name for path in scratch_root.iterdir()
    )
    assert victim.is_dir()


def test_directory_of_another_user_stays(scratch_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its user has to remove it."""
    left = scratch_root / "compile-gate-abcdefgh"
    left.mkdir()
    (left / OWNER_FILE).touch()
    assert is_abandoned(left)
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    assert not is_abandoned(left)


@pytest.mark.parametrize(
    "name", ["with blank", "quote'", 'quote"', "back\\slash", "a:b", "a,b", "$HOME", "a;b"]
)
def test_unsafe_path_is_refused(scratch_root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the character of TMPDIR that breaks compilers, and the variable."""
    monkeypatch.setattr(tempfile, "tempdir", str(scratch_root / name))
    with pytest.raises(MachineError, match="stumble over") as caught:
        get_scratch_root()
    assert str(scratch_root / name) in caught.value.what
    assert caught.value.fix.startswith("Set TMPDIR")


@pytest.mark.parametrize(
    "name",
    ["/tmp", "/var/folders/zz/zyx_1+2/T", "/home/josé/tmp", "/mnt/c/Users/A~1/t@x=y%z-1.0"],  # noqa: S108
)
def test_usual_paths_are_safe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Usual names of temporary directories pass."""
    monkeypatch.setattr(tempfile, "tempdir", name)
    assert get_scratch_root() == Path(name)
