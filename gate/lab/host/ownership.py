"""What a run owns of its host for as long as it lives: its device, and a scratch directory.

A file says so, and its owner holds a lock on it. The kernel lets go of that when the process ends, however it
ends: a lock that can be had belongs to nobody. A process id could not tell that: it is used again, and means
nothing in another container that shares the directory.

One measuring run owns a device, whoever's it is: two at once would measure each other. These locks lie in one
directory for all users of a host. Whoever may make files there may also plant them: a link to a file of
somebody else's, a pipe that never opens, a file that others may not read. None of it is followed, written or
waited for; it is told.
"""

import errno
import fcntl
import hashlib
import json
import os
import platform
import pwd
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from gate.errors import MachineError, UsageError
from gate.lab.workers.process import defer_interrupts
from gate.programs import read_text
from gate.records.events import LockAwaited, Observer


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> int:
    """Lock an open file and return its descriptor; close it where another process holds the lock.

    Raises:
        OSError: One does, or the file cannot be locked.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


VARIABLE = "COMPILE_GATE_LOCKS"
NAME = "compile-gate-locks"
_SHARED = 0o1777  # everybody makes files, nobody removes another's
_LOCK_MODE = 0o666  # every user must be able to take every lock
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
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
    with suppress(FileNotFoundError):
        return os.open(path, _FLAGS)
    try:
        descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _LOCK_MODE)
    except FileExistsError:  # another run has made it meanwhile
        return os.open(path, _FLAGS)
    os.fchmod(descriptor, _LOCK_MODE)  # whatever the umask
    return descriptor


def _check_named(place: Path) -> Path:
    if not place.is_absolute():
        raise UsageError(f"{VARIABLE}: {place} is not an absolute path", "Name the directory from the root.")
    if not place.is_dir():
        fix = "Make it, with the rights of /tmp; in a container, mount the host's directory there."
        raise UsageError(f"{VARIABLE}: {place} is no directory", fix)
    return place


def _make_shared(place: Path) -> None:
    """Make the directory with its final rights at once: another user may look at it in the next moment.

    Raises:
        OSError: It cannot be made, or what is there is not as it should be.
    """
    before = os.umask(0)
    try:
        with suppress(FileExistsError):
            place.mkdir(_SHARED)
    finally:
        os.umask(before)
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
    path, deadline = _find_path(key), time.monotonic() + limit_s
    descriptor = _try_lock(path)
    if descriptor is None:
        observe(LockAwaited(device=key, holder=_describe_holder(path), limit_s=limit_s))
    while descriptor is None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise MachineError(
                f"{key} is in use by another run of compile-gate ({_describe_holder(path)})",
                f"Wait for it, end it, or wait longer than {limit_s:g} s: --lock-timeout, or lock_timeout_s.",
            )
        time.sleep(min(_POLL_S, left_s))
        descriptor = _try_lock(path)
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


def _try_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    """Open and lock the file; ``None`` where somebody else holds it."""
    try:
        return _lock(open_lock_file(path), kind)
    except BlockingIOError:
        return None
    except OSError as error:
        told = f"{path}: cannot be locked: {error.strerror}"
        raise MachineError(told, f"Name a directory on a local disk in {VARIABLE}.") from error


def _describe_holder(path: Path) -> str:
    """Describe the run that holds the file; it may just be letting go, and anybody may have written to it."""
    told = (MachineError, OSError, psutil.Error, LookupError, TypeError, ValueError, OverflowError)
    with suppress(*told), open(open_lock_file(path), "rb") as file:
        said = json.loads(file.read(_MAX_BYTES))
        if said["space"] == _find_space():
            process = psutil.Process(int(said["pid"]))
            return f"process {process.pid} of {process.username()}"
    return _ELSEWHERE


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


PREFIX = "compile-gate-"
OWNER_FILE = "owner.lock"


def name_prefix(host: str) -> str:
    """What the scratch directories of a host begin with: a repository's list may name those of several."""
    return f"{PREFIX}{hashlib.sha256(host.encode()).hexdigest()[:6]}-"


_OWN_PREFIX = name_prefix(f"{platform.node()} {read_text(Path('/etc/machine-id'))}")
_NAME = re.compile(_OWN_PREFIX + r"[a-z0-9_]{8}")  # as tempfile makes them

# Inductor takes its compiler commands apart as a shell would, so a blank or a quote in the scratch
# directory's path breaks the C++ compile; a colon would split PYTHONPATH, a comma a linker option.
# Letters of any language are fine.
_SAFE_PATH = re.compile(r"[\w/.+@%=~-]+")


@contextmanager
def open_scratch(place: Path | None = None) -> Iterator[Path]:
    """Make a scratch directory that is this process's own, and remove it at the end.

    What processes that were killed have left in the same place is removed first.

    Args:
        place: Where to make it; where others' scratch is, by default.

    Raises:
        MachineError: No directory can be made whose path a compiler can take.
    """
    place = place or find_scratch_place()
    remove_leftovers(place)
    with defer_interrupts():
        path, owner = _make_owned(place)
    try:
        yield path
    finally:
        with defer_interrupts():
            _remove(path)
            os.close(owner)  # and with it goes the lock


def find_scratch_place() -> Path:
    """Find the directory for scratch: ``TMPDIR``, or the system's.

    Raises:
        MachineError: It cannot be written to, or compilers cannot take its path.
    """
    try:
        place = Path(tempfile.gettempdir()).resolve()
    except OSError as error:
        raise MachineError(
            f"no temporary directory can be made: {error.strerror}", "Set TMPDIR to a writable directory."
        ) from error
    if not _SAFE_PATH.fullmatch(str(place)):
        raise MachineError(
            f"scratch cannot be put into {place}: C++ compilers stumble over characters of its path",
            "Set TMPDIR to a writable directory without blanks or quotes in its path, such as /tmp.",
        )
    return place


def is_scratch_name(name: str) -> bool:
    """Whether a directory is called as scratch directories of this host are."""
    return _NAME.fullmatch(name) is not None


def remove_leftovers(place: Path) -> None:
    """Remove the scratch directories of processes that are no more from ``place``."""
    for path in place.glob(f"{PREFIX}*"):
        if is_abandoned(path):
            _remove(path)


def is_abandoned(path: Path) -> bool:
    """Whether ``path`` is a scratch directory of ours whose owner is no more."""
    try:
        if path.is_symlink() or path.stat().st_uid != os.getuid():
            return False  # planted by somebody else, who could make us remove what is not ours
        os.close(_lock(os.open(path / OWNER_FILE, os.O_RDWR | os.O_NOFOLLOW)))
    except OSError:  # its owner lives, or it never had one; where that cannot be known it is left alone
        return False
    return True


def _remove(path: Path) -> None:
    """Remove a scratch directory, the owner's file last: a kill in between must not hide the rest."""
    with suppress(OSError):
        for inner in path.iterdir():
            if inner.name != OWNER_FILE and inner.is_dir() and not inner.is_symlink():
                shutil.rmtree(inner, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


def _make_owned(place: Path) -> tuple[Path, int]:
    """Make a directory; it gets the name of scratch once it is owned, or others would take it for left."""
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{_OWN_PREFIX}", dir=place))
        owner = _lock(os.open(fresh / OWNER_FILE, os.O_RDWR | os.O_CREAT, 0o600))
        path = fresh.rename(place / fresh.name.removeprefix("."))
    except OSError as error:
        raise MachineError(
            f"no temporary directory can be made in {place}: {error.strerror}",
            "Set TMPDIR to a writable directory.",
        ) from error
    return path, owner
