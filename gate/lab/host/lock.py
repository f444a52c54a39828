"""One measuring run a device and host, whoever's it is: two at once would measure each other.

Locks lie in one directory for all users of a host. Whoever may make files there may also plant them: a link
to a file of somebody else's, a pipe that never opens, a file that others may not read. None of it is
followed, written or waited for; it is told.
"""

import errno
import fcntl
import json
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from gate.errors import MachineError, UsageError
from gate.records.events import LockAwaited, Observer

VARIABLE = "COMPILE_GATE_LOCKS"
NAME = "compile-gate-locks"
_SHARED = 0o1777  # everybody makes files, nobody removes another's
_LOCK_MODE = 0o666  # every user must be able to take every lock
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_ATTEMPTS = 10  # to open a file that others make and remove at the same time
_TEMPORARY = Path("/tmp")  # noqa: S108 - shared on purpose; what is in it is checked


def make_lock_directory() -> Path:
    """Find the directory of the host's locks, and make the usual one where it is missing.

    Raises:
        UsageError: ``COMPILE_GATE_LOCKS`` names no directory.
        MachineError: The usual directory cannot be made, or is not what it must be.
    """
    if named := os.environ.get(VARIABLE):
        return _check_named(Path(named))
    base = _TEMPORARY if os.access(_TEMPORARY, os.W_OK) else Path(tempfile.gettempdir())
    place = base / NAME
    try:
        _make_shared(place)
        _check_shared(place)
    except OSError as error:
        told = f"{place}: cannot be used for locks: {error.strerror}"
        raise MachineError(told, _describe_way_out(place)) from error
    return place


def open_lock_file(path: Path) -> int:
    """Open a device's lock file, or make it; return its descriptor.

    Raises:
        MachineError: What is there is no lock file, or this user may not open it.
    """
    try:
        descriptor = _open_or_make(path)
    except OSError as error:
        reason = "is a link" if error.errno == errno.ELOOP else f"cannot be opened: {error.strerror}"
        raise _refuse(path, reason) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise _refuse(path, "is no file of its own")
    return descriptor


def _open_or_make(path: Path) -> int:
    """Open what is there without asking to make it: kernels refuse that for another user's file."""
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            return os.open(path, _FLAGS)
        with suppress(FileExistsError):
            descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _LOCK_MODE)
            os.fchmod(descriptor, _LOCK_MODE)  # whatever the umask
            return descriptor
    raise OSError(errno.EAGAIN, "it is made and removed over and over", str(path))


def _check_named(place: Path) -> Path:
    if not place.is_absolute():
        raise UsageError(f"{VARIABLE}: {place} is not an absolute path", "Name the directory from the root.")
    if not place.is_dir():
        fix = "Make it, with the rights of /tmp; in a container, mount the host's directory there."
        raise UsageError(f"{VARIABLE}: {place} is no directory", fix)
    return place


def _make_shared(place: Path) -> None:
    """Make the directory with its final rights at once: another user may look at it in the next moment."""
    before = os.umask(0)
    try:
        with suppress(FileExistsError):
            place.mkdir(_SHARED)
    finally:
        os.umask(before)


def _check_shared(place: Path) -> None:
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.ENOTDIR, f"it is not a directory, and belongs to {_name_user(found.st_uid)}")
    if stat.S_IMODE(found.st_mode) & _SHARED != _SHARED:
        told = f"it belongs to {_name_user(found.st_uid)} and has the mode {stat.S_IMODE(found.st_mode):o}"
        raise OSError(errno.EPERM, f"{told}, not {_SHARED:o}")


def _refuse(path: Path, reason: str) -> MachineError:
    owner = ""
    with suppress(OSError):
        found = path.lstat()
        owner = f" (of {_name_user(found.st_uid)}, mode {stat.S_IMODE(found.st_mode):o})"
    told = f"the lock file {path}{owner} {reason}: the device cannot be locked"
    return MachineError(told, _describe_way_out(path))


def _describe_way_out(path: Path) -> str:
    return f"Have {path} removed by its owner or root, or name another directory for all in {VARIABLE}."


def _name_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


_POLL_S = 0.5  # how late a waiter notices that the device is free
_MAX_BYTES = 200  # of what a holder says of itself; more was not written by one
_ELSEWHERE = "a run that cannot be seen from here, in another container most likely"


@contextmanager
def hold_device(key: str, limit_s: float, observe: Observer) -> Iterator[None]:
    """Hold the host-wide lock of the device called ``key``; waits up to ``limit_s`` seconds for it.

    Raises:
        MachineError: Another run still holds it after that, and is named when it can be; or the lock
            file is not one.
        UsageError: ``COMPILE_GATE_LOCKS`` names no directory.
    """
    path = _find_path(key)
    descriptor = _acquire(path, limit_s, key, observe)
    try:
        _write(descriptor, json.dumps({"pid": os.getpid(), "space": _find_space()}))
        yield
    finally:
        _write(descriptor, "")
        os.close(descriptor)  # and with it goes the lock


def find_holder(key: str) -> str:
    """Describe who holds the device, in words; empty when nobody does.

    Raises as :func:`hold_device`.
    """
    path = _find_path(key)
    if not path.exists():
        return ""
    descriptor = _try_lock(path, fcntl.LOCK_SH)
    if descriptor is None:
        return _describe_holder(path)
    os.close(descriptor)
    return ""


def _find_path(key: str) -> Path:
    return make_lock_directory() / f"{key}.lock"


def _acquire(path: Path, limit_s: float, key: str, observe: Observer) -> int:
    deadline = time.monotonic() + limit_s
    descriptor = _try_lock(path)
    if descriptor is None:
        observe(LockAwaited(device=key, holder=_describe_holder(path), limit_s=limit_s))
    while descriptor is None and (left_s := deadline - time.monotonic()) > 0:
        time.sleep(min(_POLL_S, left_s))
        descriptor = _try_lock(path)
    if descriptor is None:
        raise MachineError(
            f"{key} is in use by another run of compile-gate ({_describe_holder(path)})",
            f"Wait for it, end it, or wait longer than {limit_s:g} s: --lock-timeout, or lock_timeout_s.",
        )
    return descriptor


def _try_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    """Open and lock the file; ``None`` where somebody else holds it."""
    descriptor = open_lock_file(path)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        told = f"{path}: cannot be locked: {error.strerror}"
        raise MachineError(told, f"Name a directory on a local disk in {VARIABLE}.") from error
    return descriptor


def _describe_holder(path: Path) -> str:
    """Describe the run that holds the file. What the file says may have been written by anybody."""
    said = _read_holder(path)
    if not said or said.get("space") != _find_space():
        return _ELSEWHERE
    try:
        process = psutil.Process(int(said["pid"]))
        return f"process {process.pid} of {process.username()}"
    except (psutil.Error, KeyError, TypeError, ValueError, OverflowError):
        return _ELSEWHERE


def _read_holder(path: Path) -> dict[str, int]:
    with suppress(OSError, ValueError, MachineError):  # it is just being released or taken
        descriptor = open_lock_file(path)
        try:
            said = json.loads(os.pread(descriptor, _MAX_BYTES, 0))
        finally:
            os.close(descriptor)
        return said if isinstance(said, dict) else {}
    return {}


def _write(descriptor: int, text: str) -> None:
    with suppress(OSError):  # a full disk: the lock holds, its holder is not named
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _find_space() -> int:
    """Number the process ids' name space: an id means another process in another container."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - follows a link that is no path
    except OSError:
        return 0
