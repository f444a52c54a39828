"""The scratch directory of a run, which is removed at its end, or by the next run if it was killed."""

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
from gate.lab.host.locks import take_lock
from gate.lab.workers.process import defer_interrupts
from gate.programs import read_text

PREFIX = "compile-gate-"
OWNER_FILE = "owner.lock"
# Inductor takes its compiler commands apart as a shell would, so a blank or a quote in the scratch
# directory's path breaks the C++ compile; a colon would split PYTHONPATH, a comma a linker option.
# Letters of any language are fine.
_SAFE_PATH = re.compile(r"[\w/.+@%=~-]+")


def name_prefix(host: str) -> str:
    """One for each host: a repository's list of worktrees may name those of several."""
    return f"{PREFIX}{hashlib.sha256(host.encode()).hexdigest()[:6]}-"


_OWN_PREFIX = name_prefix(f"{platform.node()} {read_text(Path('/etc/machine-id'))}")


_NAME = re.compile(_OWN_PREFIX + r"[a-z0-9_]{8}")  # as tempfile makes them


@contextmanager
def open_scratch(parent: Path | None = None) -> Iterator[Path]:
    """Make a scratch directory in ``parent``, and remove it at the end; leftovers of killed runs go first.

    Raises:
        MachineError: No directory can be made whose path a compiler can take.
    """
    parent = parent or get_scratch_root()
    remove_leftovers(parent)
    with defer_interrupts():
        path, owner = _make_owned(parent)
    try:
        yield path
    finally:
        with defer_interrupts():
            _remove(path)
            os.close(owner)  # and with it goes the lock


def get_scratch_root() -> Path:
    """``TMPDIR``, or the system's.

    Raises:
        MachineError: It cannot be written to, or compilers cannot take its path.
    """
    try:
        directory = Path(tempfile.gettempdir()).resolve()
    except OSError as error:
        raise MachineError(
            f"no temporary directory can be made: {error.strerror}", "Set TMPDIR to a writable directory."
        ) from error
    if not _SAFE_PATH.fullmatch(str(directory)):
        raise MachineError(
            f"scratch cannot be put into {directory}: C++ compilers stumble over characters of its path",
            "Set TMPDIR to a writable directory without blanks or quotes in its path, such as /tmp.",
        )
    return directory


def is_scratch_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def remove_leftovers(parent: Path) -> None:
    for path in parent.glob(f"{PREFIX}*"):
        if is_abandoned(path):
            _remove(path)


def is_abandoned(path: Path) -> bool:
    try:
        if path.is_symlink() or path.stat().st_uid != os.getuid():
            return False  # planted by somebody else, who could make us remove what is not ours
        os.close(take_lock(os.open(path / OWNER_FILE, os.O_RDWR | os.O_NOFOLLOW)))
    except OSError:  # its owner lives, or it never had one; where that cannot be known it is left alone
        return False
    return True


def _remove(path: Path) -> None:
    """Remove the owner's file last: a kill in between must not hide the rest."""
    with suppress(OSError):
        for inner in path.iterdir():
            if inner.name != OWNER_FILE and inner.is_dir() and not inner.is_symlink():
                shutil.rmtree(inner, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


def _make_owned(parent: Path) -> tuple[Path, int]:
    """The name of scratch comes once the directory is owned, or others would take it for a leftover."""
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{_OWN_PREFIX}", dir=parent))
        owner = take_lock(os.open(fresh / OWNER_FILE, os.O_RDWR | os.O_CREAT, 0o600))
        path = fresh.rename(parent / fresh.name.removeprefix("."))
    except OSError as error:
        raise MachineError(
            f"no temporary directory can be made in {parent}: {error.strerror}",
            "Set TMPDIR to a writable directory.",
        ) from error
    return path, owner
