"""The host's lock: two runs never measure each other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gate.errors import MachineError
from gate.lab.events import Event, LockAwaited, ignore_event
from gate.lab.lock import hold_device, load_holder, make_lock_directory

HOLDER = """
import sys, time
from pathlib import Path
from gate.lab.events import ignore_event
from gate.lab.lock import hold_device
with hold_device("cpu", 5.0, ignore_event, Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def release(holder: subprocess.Popen[str]) -> None:
    """Let the other process end."""
    holder.communicate()


def test_held_lock_is_refused_and_names_the_holder(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    """After the time limit the error names the holding process and how to wait longer; it was announced."""
    events: list[Event] = []
    try:
        with (
            pytest.raises(MachineError) as caught,
            hold_device("cpu", 0.6, events.append, tmp_path),
        ):
            pytest.fail("the lock was held by another process")
    finally:
        release(holder)
    assert f"cpu is in use by another run of compile-gate (process {holder.pid})" == caught.value.what
    assert "lock_timeout_s" in caught.value.fix
    assert [LockAwaited(device="cpu", holder=f"(process {holder.pid})", limit_s=0.6)] == events


def test_waits_until_it_is_free(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    """A lock that becomes free within the limit is taken."""
    timer = threading.Timer(0.3, release, [holder])
    timer.start()
    with hold_device("cpu", 20.0, ignore_event, tmp_path):
        assert os.getpid() == load_holder("cpu", tmp_path)
    timer.join()
    assert load_holder("cpu", tmp_path) == 0


def test_killed_holder_holds_nothing(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    """A run that was killed leaves no lock behind, and is not named as holder."""
    holder.kill()
    release(holder)
    assert load_holder("cpu", tmp_path) == 0
    with hold_device("cpu", 0.0, ignore_event, tmp_path):
        pass


def test_devices_are_independent(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    """A run on another device does not wait."""
    with hold_device("GPU-1", 0.0, ignore_event, tmp_path):
        pass
    release(holder)


def test_damaged_holder_file_is_nobody(tmp_path: Path) -> None:
    """A holder file that cannot be read names nobody."""
    for content in ("", "{", "[]", '{"pid": "x"}', '{"pid": -1}'):
        (tmp_path / "cpu.holder").write_text(content, encoding="utf-8")
        assert load_holder("cpu", tmp_path) == 0


def test_directory_is_ours_alone() -> None:
    """The lock directory belongs to this user and is closed to others."""
    found = make_lock_directory().lstat()
    assert (os.getuid(), 0o700) == (found.st_uid, found.st_mode & 0o777)
