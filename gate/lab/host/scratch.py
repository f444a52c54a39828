"""Scratch directories: made with an owner, removed at the end, and after a kill by the next run.

The owner holds a lock on a file in the directory for as long as it lives. The kernel lets go of it
when the process ends, however it ends, so a lock that can be had belongs to nobody. A process id could
not tell that: it is used again, and means nothing in another container that shares the directory.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gate.errors import MachineError
from gate.lab.workers.process import defer_interrupts
from gate.programs import read_text

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
def open_scratch() -> Iterator[Path]:
    """Make a scratch directory that is this process's own, and remove it at the end.

    What processes that were killed have left in the same place is removed first.

    Raises:
        MachineError: No directory can be made whose path a compiler can take.
    """
    place = find_scratch_place()
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
    owner = path / OWNER_FILE
    try:
        if path.is_symlink() or owner.is_symlink() or path.stat().st_uid != os.getuid():
            return False  # planted by somebody else, who could make us remove what is not ours
        if not owner.is_file():
            return False
        os.close(_lock(owner))
    except OSError:  # its owner lives; or it cannot be known, and then it is left alone
        return False
    return True


def _remove(path: Path) -> None:
    """Remove a scratch directory, the owner's file last: a kill in between must not hide the rest."""
    with suppress(OSError):
        for inner in path.iterdir():
            if inner.name != OWNER_FILE and inner.is_dir() and not inner.is_symlink():
                shutil.rmtree(inner, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


def _lock(owner: Path) -> int:
    """Open and lock the owner's file.

    Raises:
        OSError: It cannot be opened, or another process holds it.
    """
    descriptor = os.open(owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _make_owned(place: Path) -> tuple[Path, int]:
    """Make a directory; it gets the name of scratch once it is owned, or others would take it for left."""
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{_OWN_PREFIX}", dir=place))
        owner = _lock(fresh / OWNER_FILE)
        path = fresh.rename(place / fresh.name.removeprefix("."))
    except OSError as error:
        raise MachineError(
            f"no temporary directory can be made in {place}: {error.strerror}",
            "Set TMPDIR to a writable directory.",
        ) from error
    return path, owner
