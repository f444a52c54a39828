"""One measuring run a device and host, whoever's it is: two at once would measure each other."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from gate.errors import MachineError
from gate.lab.host.lock_place import VARIABLE, find_lock_directory, is_current, open_lock_file
from gate.records.events import LockAwaited, Observer

_POLL_S = 0.5  # how late a waiter notices that the device is free
_MAX_BYTES = 200  # of what a holder says of itself; more was not written by one
_ELSEWHERE = "a run that cannot be seen from here, in another container most likely"


@contextmanager
def hold_device(key: str, limit_s: float, observe: Observer, directory: Path | None = None) -> Iterator[None]:
    """Hold the host-wide lock of the device called ``key``; waits up to ``limit_s`` seconds for it.

    Raises:
        MachineError: Another run still holds it after that, and is named when it can be; or the lock
            file is not one.
        UsageError: ``COMPILE_GATE_LOCKS`` names no directory.
    """
    path = _find_path(key, directory)
    descriptor = _acquire(path, limit_s, key, observe)
    try:
        _write(descriptor, json.dumps({"pid": os.getpid(), "space": _find_space()}))
        yield
    finally:
        _write(descriptor, "")
        os.close(descriptor)  # and with it goes the lock


def find_holder(key: str, directory: Path | None = None) -> str:
    """Describe who holds the device, in words; empty when nobody does.

    Raises as :func:`hold_device`.
    """
    path = _find_path(key, directory)
    if not path.exists():
        return ""
    descriptor = _try_lock(path, fcntl.LOCK_SH)
    if descriptor is None:
        return _describe_holder(path)
    os.close(descriptor)
    return ""


def make_lock_directory() -> Path:
    """Find or make the directory of the host's locks; raises as :func:`hold_device`."""
    return find_lock_directory(os.environ)


def _find_path(key: str, directory: Path | None) -> Path:
    return (make_lock_directory() if directory is None else directory) / f"{key}.lock"


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
    while True:
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
        if is_current(descriptor, path):
            return descriptor
        os.close(descriptor)  # removed after it was opened: others lock the one that came after it


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
