import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.errors import FileError, GateError, MachineError, UsageError
from gate.files import disk
from gate.files.disk import (
    describe_write_error,
    is_present,
    list_cut_short,
    load_bytes,
    load_lines,
    read_written_ns,
    write_atomic,
)


def fail_with(number: int) -> Callable[..., None]:
    """Make a replacement for a system call that fails."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_file_is_written_with_its_directories(tmp_path: Path) -> None:
    """Parents are made, and no temporary file stays."""
    path = tmp_path / "a" / "b" / "run.json"
    write_atomic(path, "ä\n")
    assert path.read_bytes() == "ä\n".encode()
    assert [path] == list(path.parent.iterdir())


def test_a_link_that_leads_nowhere_names_where_it_leads(tmp_path: Path) -> None:
    """The name is there, so "does not exist" alone would puzzle."""
    (tmp_path / "run.json").symlink_to("gone.json")
    for name, problem in (("run.json", "is a link to gone.json"), ("other.json", "does not exist")):
        with pytest.raises(FileError) as caught:
            load_bytes(tmp_path / name, 10)
        assert caught.value.problem.startswith(problem)


def test_a_file_gets_the_rights_that_the_umask_leaves(tmp_path: Path) -> None:
    """Artifacts are read by other users than the one that wrote them."""
    old = os.umask(0o022)
    try:
        write_atomic(tmp_path / "x", "1")
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (errno.ENOSPC, MachineError, "the disk is full"),
        (errno.EDQUOT, MachineError, "the disk is full"),
        (errno.EROFS, MachineError, "Read-only file system"),
        (errno.EFBIG, MachineError, "File too large"),  # than `ulimit -f` allows
        (errno.EIO, MachineError, "Input/output error"),
        (errno.EACCES, UsageError, "Permission denied"),
        (errno.ENOTDIR, UsageError, "Not a directory"),
    ],
)
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[GateError], words: str
) -> None:
    """The temporary file is gone and the error is named."""
    path = tmp_path / "run.json"
    path.write_text("old", encoding="utf-8")
    for owner, call in ((os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, call, fail_with(number))
            with pytest.raises(error, match=words) as caught:
                write_atomic(path, "new")
        assert str(path) in caught.value.what
    assert path.read_text(encoding="utf-8") == "old"
    assert [path] == list(tmp_path.iterdir())


def test_a_file_is_whole_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves the old one or the new one."""
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
    write_atomic(tmp_path / "run.json", ["new", "er"])
    assert sizes == [5]


def test_a_directory_that_may_not_be_written_into_is_the_users_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary file never was."""
    monkeypatch.setattr(Path, "open", fail_with(errno.EACCES))
    with pytest.raises(UsageError, match="Permission denied"):
        write_atomic(tmp_path / "run.json", "new")


def test_an_interrupt_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes in the middle of a write."""

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "run.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_directory_is_the_users_error(tmp_path: Path) -> None:
    """As the real system call reports; the file is named, not what would be below it."""
    (tmp_path / "out").write_text("", encoding="utf-8")
    for name in ("run.json", "a/run.json"):
        with pytest.raises(UsageError, match=f": {tmp_path / 'out'} is not a directory"):
            write_atomic(tmp_path / "out" / name, "x")
    (tmp_path / "dir").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        write_atomic(tmp_path / "dir", "x")


def test_a_full_device_is_reported_plainly() -> None:
    """The kernel's own full device gives the same error number that is handled."""
    with pytest.raises(OSError, match="No space left") as caught, Path("/dev/full").open("w") as file:
        file.write("x")
    error = describe_write_error(Path("x"), caught.value)
    assert error.what == "x: cannot be written: the disk is full"
    assert error.fix == "Free some space and run again."


def test_rights_that_are_another_users_name_him(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first run in a container leaves root's files: the fix names the owner."""
    left = tmp_path / "logs"
    left.mkdir()
    refused = PermissionError(errno.EACCES, "Permission denied", str(left / "server.log"))
    plain = "Check the path and its rights, or choose another directory."
    assert describe_write_error(left / "server.log", refused).fix == plain
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    fix = f"Check the path and its rights ({left} belongs to {left.owner()}), or choose another directory."
    assert describe_write_error(left / "server.log", refused).fix == fix


def test_a_file_that_is_gone_was_never_written(tmp_path: Path) -> None:
    """One that is there was written when its file system says."""
    path = tmp_path / "run.json"
    assert read_written_ns(path) == 0
    path.write_text("", encoding="utf-8")
    os.utime(path, ns=(1, 7_000_000_000))
    assert read_written_ns(path) == 7_000_000_000


def test_what_a_killed_writer_left_is_listed(tmp_path: Path) -> None:
    """Of this file alone."""
    names = (".run.json.0a1b.tmp", ".other.json.0a1b.tmp", "run.json")
    for name in names:
        (tmp_path / name).write_text("", encoding="utf-8")
    assert list_cut_short(tmp_path / "run.json") == [tmp_path / names[0]]


def test_a_name_is_present_whatever_it_is(tmp_path: Path) -> None:
    """A link that leads nowhere is; what is below a file is not."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to("gone")
    names = ("file", "link", ".", "gone", "file/below")
    assert [is_present(tmp_path / name) for name in names] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("name", "problem"), [("nul\0", ".*embedded null.*"), ("x" * 300, "File name too long")]
)
def test_a_name_that_cannot_be_looked_for_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    """It is neither present nor absent."""
    with pytest.raises(FileError) as caught:
        is_present(tmp_path / name)
    assert re.fullmatch(f"cannot be read: {problem}", caught.value.problem)


def test_a_file_is_read_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too long to be parsed comes in pieces; all together have a limit."""
    path = tmp_path / "run.json"
    path.write_bytes(b"{\n12345678\n}")
    assert [*load_lines(path, 12)] == [b"{\n", b"12345678\n", b"}"]
    lines = load_lines(path, 11)
    assert [next(lines), next(lines)] == [b"{\n", b"12345678\n"]
    with pytest.raises(FileError, match="is larger than 11 bytes"):
        next(lines)
    monkeypatch.setattr(disk, "MAX_JSON_BYTES", 4)
    assert [*load_lines(path, 12)] == [b"{\n", b"12345", b"678\n", b"}"]


@pytest.mark.parametrize(
    ("number", "error", "fix"),
    [
        (errno.ENOSPC, MachineError, "Free some space and run again."),
        (errno.EDQUOT, MachineError, "Free some space and run again."),
        (errno.EROFS, MachineError, "Choose a directory on a writable file system."),
        (errno.EMFILE, MachineError, "Check the machine's disk, memory and open files, then run again."),
        (errno.ENOMEM, MachineError, "Check the machine's disk, memory and open files, then run again."),
        (errno.ENAMETOOLONG, UsageError, "Check the path and its rights, or choose another directory."),
        (None, UsageError, "Check the path and its rights, or choose another directory."),
    ],
)
def test_an_error_of_writing_is_the_machines_or_the_users(
    tmp_path: Path, number: int | None, error: type[GateError], fix: str
) -> None:
    """By its number; one without a number is not the machine's."""
    refused = OSError(number, "refused") if number else OSError("refused")
    described = describe_write_error(tmp_path / "run.json", refused)
    assert (type(described), described.fix) == (error, fix)
