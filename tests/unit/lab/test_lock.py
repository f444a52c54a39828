"""The host's lock: two runs of any users never measure at the same time."""

import getpass
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gate.errors import MachineError, UsageError
from gate.lab.host import locks
from gate.lab.host.device_lock import describe_holder, lock_device
from gate.lab.host.locks import VARIABLE, make_lock_directory, open_lock_file
from gate.records.events import Event, LockAwaited, ignore_event

HOLDER = """
import os, sys
from gate.records.events import ignore_event
from gate.lab.host.device_lock import lock_device
os.setuid(int(sys.argv[1]))  # after the imports: another user may not read this interpreter
with lock_device("cpu", 5.0, ignore_event):
    print("held", flush=True)
    sys.stdin.read()
"""
NOBODY = 65534  # a user that is not root
ONLY_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="acts as another user")


def start_holder(directory: Path, user: int | None = None) -> subprocess.Popen[str]:
    """Start another process, of this user or another, that holds the lock until its input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(os.getuid() if user is None else user)],
        env={**os.environ, VARIABLE: str(directory)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture(autouse=True)
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks are in the test's own directory."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = start_holder(tmp_path)
    yield process
    release(process)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory in place of /tmp that every user can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o1777)
        monkeypatch.delenv(VARIABLE)
        monkeypatch.setattr(locks, "_TEMPORARY", directory)
        yield directory


def release(holder: subprocess.Popen[str]) -> None:
    """End the other process."""
    if holder.poll() is None:
        holder.communicate()


def test_held_lock_is_refused_and_names_the_holder(holder: subprocess.Popen[str]) -> None:
    """After the time limit the error names process and user, and the option to wait longer."""
    events: list[Event] = []
    with pytest.raises(MachineError) as caught, lock_device("cpu", 0.6, events.append):
        pytest.fail("the lock was held by another process")
    named = f"process {holder.pid} of {getpass.getuser()}"
    assert f"cpu is in use by another run of compile-gate ({named})" == caught.value.what
    assert "--lock-timeout" in caught.value.fix
    assert "lock_timeout_s" in caught.value.fix
    assert [LockAwaited(device="cpu", holder=named, limit_s=0.6)] == events


def test_waits_until_it_is_free(holder: subprocess.Popen[str]) -> None:
    """A lock that becomes free within the limit is taken."""
    timer = threading.Timer(0.3, release, [holder])
    timer.start()
    with lock_device("cpu", 20.0, ignore_event):
        assert f"process {os.getpid()} of {getpass.getuser()}" == describe_holder("cpu")
    timer.join()
    assert describe_holder("cpu") == ""


def test_killed_holder_holds_nothing(holder: subprocess.Popen[str]) -> None:
    """A killed run leaves no lock, and is not named as holder."""
    holder.kill()
    holder.communicate()
    assert describe_holder("cpu") == ""
    with lock_device("cpu", 0.0, ignore_event):
        pass


def test_devices_are_independent(holder: subprocess.Popen[str]) -> None:
    """A run on another device does not wait."""
    with lock_device("GPU-1", 0.0, ignore_event):
        assert describe_holder("cpu") == f"process {holder.pid} of {getpass.getuser()}"


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "[" * 500, '{"pid": 1}', '{"pid": 1, "space": 1}', '{"pid": "x", "space": SPACE}'),
        *('{"pid": -1, "space": SPACE}', '{"pid": 1e99, "space": SPACE}', '{"pid": 4194305, "space": SPACE}'),
    ],
)
def test_holder_that_cannot_be_seen(tmp_path: Path, content: str) -> None:
    """The file may be of another container, or anybody's: no process is named."""
    space = Path("/proc/self/ns/pid").stat().st_ino
    with lock_device("cpu", 0.0, ignore_event):
        (tmp_path / "cpu.lock").write_text(content.replace("SPACE", str(space)))
        assert describe_holder("cpu").startswith("a run that cannot be seen from here")


def plant_link(path: Path) -> None:
    """Plant a link to a file of the victim's."""
    path.symlink_to(path.parent / "victim")


def plant_hard_link(path: Path) -> None:
    """Plant a second name of a file of the victim's."""
    path.hardlink_to(path.parent / "victim")


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (plant_link, "is a link"),
        (plant_hard_link, "is no file of its own"),
        (os.mkfifo, "is no file of its own"),
        (Path.mkdir, "cannot be opened: Is a directory"),
    ],
)
def test_planted_file_is_reported_and_left_alone(
    tmp_path: Path, plant: Callable[[Path], None], message: str
) -> None:
    """A run neither hangs on it, writes through it nor takes it for a free device."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    plant(tmp_path / "cpu.lock")
    owner = re.escape(f"(of {getpass.getuser()}, mode ")
    with (
        pytest.raises(MachineError, match=rf"cpu\.lock {owner}\d+\) {message}") as caught,
        lock_device("cpu", 0.0, ignore_event),
    ):
        pytest.fail("there is no lock to be had")
    assert VARIABLE in caught.value.fix
    assert victim.read_text() == "precious"


def test_existing_file_is_not_asked_to_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels refuse O_CREAT for another user's file in a shared directory."""
    os.close(open_lock_file(tmp_path / "cpu.lock"))
    asked: list[int] = []
    real = os.open

    def note_flags(path: str, flags: int, *mode: int) -> int:
        asked.append(flags)
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", note_flags)
    os.close(open_lock_file(tmp_path / "cpu.lock"))
    assert [0] == [flags & os.O_CREAT for flags in asked]


def test_directory_is_of_all_users(shared: Path) -> None:
    """Everybody may make locks and nobody may remove another's, whatever the umask."""
    before = os.umask(0o077)
    try:
        directory = make_lock_directory()
        os.close(open_lock_file(directory / "cpu.lock"))
    finally:
        os.umask(before)
    assert (shared / "compile-gate-locks", 0o1777) == (directory, directory.stat().st_mode & 0o7777)
    assert (directory / "cpu.lock").stat().st_mode & 0o777 == 0o666
    assert [directory] == list(shared.iterdir())
    assert directory == make_lock_directory()


@ONLY_ROOT
@pytest.mark.parametrize(
    ("mode", "message"), [(0o700, "has the mode 700, not 1777"), (0o777, "has the mode 777, not 1777")]
)
def test_another_users_closed_directory_is_reported(shared: Path, mode: int, message: str) -> None:
    """Its owner could keep others out, or remove locks."""
    directory = shared / "compile-gate-locks"
    directory.mkdir()
    directory.chmod(mode)
    os.chown(directory, NOBODY, -1)
    with pytest.raises(MachineError, match=message) as caught:
        make_lock_directory()
    assert "nobody" in caught.value.what
    assert VARIABLE in caught.value.fix


def test_planted_link_for_the_directory_is_reported(shared: Path, tmp_path: Path) -> None:
    """Nobody else may choose the directory of the locks."""
    (shared / "compile-gate-locks").symlink_to(tmp_path)
    with pytest.raises(MachineError, match="it is not a directory"):
        make_lock_directory()


@ONLY_ROOT
@pytest.mark.usefixtures("shared")
def test_two_users_exclude_each_other() -> None:
    """One user's lock makes the other wait, and can be taken afterwards."""
    directory = make_lock_directory()
    other = start_holder(directory, NOBODY)
    assert (directory / "cpu.lock").stat().st_uid == NOBODY
    try:
        with pytest.raises(MachineError, match="of nobody"), lock_device("cpu", 0.0, ignore_event):
            pytest.fail("another user holds it")
    finally:
        release(other)
    with lock_device("cpu", 0.0, ignore_event):
        assert json.loads((directory / "cpu.lock").read_text())["pid"] == os.getpid()


@ONLY_ROOT
@pytest.mark.usefixtures("shared")
def test_another_user_can_take_what_root_left() -> None:
    """The file's rights do not depend on who ran first."""
    directory = make_lock_directory()
    with lock_device("cpu", 0.0, ignore_event):
        pass
    release(start_holder(directory, NOBODY))
    assert (directory / "cpu.lock").stat().st_uid == os.getuid()


def test_named_directory_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner is responsible for its rights."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert tmp_path == make_lock_directory()


@pytest.mark.parametrize(
    ("value", "message"), [("locks", "is not an absolute path"), ("/no/such/locks", "is no directory")]
)
def test_named_directory_must_be_there(value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory made inside a container would lock nobody out."""
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(UsageError, match=f"{VARIABLE}: {value} {message}"):
        make_lock_directory()


def test_unset_and_empty_are_alike(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow's variable without a value names no directory."""
    monkeypatch.setenv(VARIABLE, "")
    assert make_lock_directory() == shared / "compile-gate-locks"
