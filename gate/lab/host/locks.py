"""Lock files, and the directory of those that all users of a host share.

The kernel drops the owner's lock when the process ends, however it ends. A process id could not show that:
ids are used again, and mean nothing in another container. Anybody may plant links, pipes or unreadable files
in the directory: none is followed, written or waited for.
"""

import errno
import fcntl
import os
import pwd
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from gate.errors import MachineError, UsageError

VARIABLE = "COMPILE_GATE_LOCKS"
NAME = "compile-gate-locks"
_SHARED = 0o1777  # everybody makes files, nobody removes another's
_LOCK_MODE = 0o666  # every user must be able to take every lock
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_TEMPORARY = Path("/tmp")  # noqa: S108 - shared on purpose; what is in it is checked


def take_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> int:
    """Lock an open file and return its descriptor, which is closed on failure.

    Raises:
        OSError: Another process holds the lock, or the file cannot be locked.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def make_lock_directory() -> Path:
    """Make the directory of the host's locks, unless it is there.

    Raises:
        UsageError: ``COMPILE_GATE_LOCKS`` names no directory.
        MachineError: The usual directory cannot be made, or is not what it must be.
    """
    if named := os.environ.get(VARIABLE):
        return _check_named(Path(named))
    base = _TEMPORARY if os.access(_TEMPORARY, os.W_OK) else Path(tempfile.gettempdir())
    directory = base / NAME
    try:
        _make_shared(directory)
    except OSError as error:
        what = f"{directory}: cannot be used for locks: {error.strerror}"
        raise MachineError(what, _describe_way_out(directory)) from error
    return directory


def open_lock_file(path: Path) -> int:
    """Open or make a lock file; return its descriptor.

    Raises:
        MachineError: What is there is no lock file, or this user may not open it.
    """
    try:
        descriptor = _open_or_make(path)
    except OSError as error:
        reason = "is a link" if error.errno == errno.ELOOP else f"cannot be opened: {error.strerror}"
        raise _refuse(path, reason) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise _refuse(path, "is no file of its own")
    return descriptor


def _open_or_make(path: Path) -> int:
    """Open without O_CREAT first: kernels refuse that for another user's file."""
    with suppress(FileNotFoundError):
        return os.open(path, _FLAGS)
    try:
        descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _LOCK_MODE)
    except FileExistsError:  # another run has made it meanwhile
        return os.open(path, _FLAGS)
    os.fchmod(descriptor, _LOCK_MODE)  # whatever the umask
    return descriptor


def _check_named(directory: Path) -> Path:
    if not directory.is_absolute():
        what = f"{VARIABLE}: {directory} is not an absolute path"
        raise UsageError(what, "Name the directory from the root.")
    if not directory.is_dir():
        fix = "Make it, with the rights of /tmp; in a container, mount the host's directory there."
        raise UsageError(f"{VARIABLE}: {directory} is no directory", fix)
    return directory


def _make_shared(directory: Path) -> None:
    """Make the directory with its final rights at once: another user may check it in the next moment.

    Raises:
        OSError: It cannot be made, or what is there is not as it should be.
    """
    before = os.umask(0)
    try:
        with suppress(FileExistsError):
            directory.mkdir(_SHARED)
    finally:
        os.umask(before)
    status = directory.lstat()
    user, mode = _name_user(status.st_uid), stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(errno.ENOTDIR, f"it is not a directory, and belongs to {user}")
    if mode & _SHARED != _SHARED:
        raise OSError(errno.EPERM, f"it belongs to {user} and has the mode {mode:o}, not {_SHARED:o}")


def _refuse(path: Path, reason: str) -> MachineError:
    owner = ""
    with suppress(OSError):
        status = path.lstat()
        owner = f" (of {_name_user(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):o})"
    what = f"the lock file {path}{owner} {reason}: the device cannot be locked"
    return MachineError(what, _describe_way_out(path))


def _describe_way_out(path: Path) -> str:
    return f"Have {path} removed by its owner or root, or name another directory for all in {VARIABLE}."


def _name_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
