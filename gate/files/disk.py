"""Files on disk: read up to a size; written so that a reader sees the old content or the new, never half."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gate.errors import FileError, GateError, MachineError, UsageError
from gate.files.untrusted import MAX_JSON_BYTES, check_size

IGNORE_ALL = "*\n"  # what a directory of results has as its .gitignore
_FULL = {errno.ENOSPC, errno.EDQUOT}
_MACHINE = {errno.EROFS, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def is_present(path: Path) -> bool:
    """A link that leads nowhere is present.

    Raises:
        FileError: A directory above may not be looked into.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise _refuse_reading(path, error) from None
    return True


def load_bytes(path: Path, limit: int, fix: str = "") -> bytes:
    """Read a regular file of at most ``limit`` bytes; ``fix`` is as in :func:`check_size`.

    Raises:
        FileError: It does not exist, is not a regular file, cannot be read or is too large.
    """
    with _open(path) as file:
        data = file.read(limit + 1)
    check_size(len(data), limit, str(path), fix)
    return data


def load_lines(path: Path, limit: int) -> Iterator[bytes]:
    """A line that is too long to be parsed comes in pieces. Raises as :func:`load_bytes`."""
    with _open(path) as file:
        size = 0
        while line := file.readline(MAX_JSON_BYTES + 1):
            size += len(line)
            check_size(size, limit, str(path))
            yield line


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileError(str(path), "", "is not a regular file", "Name a file.")
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        if path.is_symlink():
            problem = f"is a link to {path.readlink()}, which does not exist"
            raise FileError(str(path), "", problem, "Correct the link, or remove it.") from None
        raise FileError(str(path), "", "does not exist", "Check the path.") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _refuse_reading(path, error) from None


def _refuse_reading(path: Path, error: Exception) -> FileError:
    problem = getattr(error, "strerror", None) or str(error)
    return FileError(str(path), "", f"cannot be read: {problem}", "Check the path and its rights.")


def write_atomic(path: Path, text: str | Iterable[str]) -> None:
    """Replace ``path`` by ``text``, or its parts, in UTF-8: temporary file, fsync, rename.

    Missing directories are made. On any failure the target is as it was and no temporary file is left.

    Raises:
        MachineError: The disk is full or read-only.
        UsageError: The path cannot be written: rights, or a file where a directory should be.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("x", encoding="utf-8", newline="\n") as file:
                file.writelines([text] if isinstance(text, str) else text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:  # Ctrl-C too must not leave a temporary file behind
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise describe_write_error(path, error) from error


def list_cut_short(path: Path) -> list[Path]:
    return list(path.parent.glob(f".{path.name}.*.tmp"))


def read_written_ns(path: Path) -> int:
    """By the clock of the file system; 0 where the file is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def describe_write_error(path: Path, error: OSError) -> GateError:
    if error.errno in _FULL:
        return MachineError(f"{path}: cannot be written: the disk is full", "Free some space and run again.")
    if file := _find_obstacle(path, error):
        what = f"{path}: cannot be written: {file} is not a directory"
        return UsageError(what, "Name another directory, or remove that file.")
    what = f"{path}: cannot be written: {error.strerror or error}"
    if error.errno == errno.EROFS:
        return MachineError(what, "Choose a directory on a writable file system.")
    if error.errno in _MACHINE:
        return MachineError(what, "Check the machine's disk, memory and open files, then run again.")
    return UsageError(what, f"Check the path and its rights{_name_owner(path)}, or choose another directory.")


def _name_owner(path: Path) -> str:
    try:
        nearest = next(directory for directory in (path, *path.absolute().parents) if directory.exists())
        return "" if nearest.stat().st_uid == os.geteuid() else f" ({nearest} belongs to {nearest.owner()})"
    except (KeyError, OSError):
        return ""


def _find_obstacle(path: Path, error: OSError) -> Path | None:
    above: Mapping[int | None, Sequence[Path]]
    above = {errno.EEXIST: (path, *path.parents), errno.ENOTDIR: path.parents}
    return next((file for file in above.get(error.errno, ()) if file.exists() and not file.is_dir()), None)
