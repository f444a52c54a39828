"""One measuring run owns a device, whoever's it is: two at once would measure each other."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from gate.errors import MachineError
from gate.lab.host.locks import VARIABLE, make_lock_directory, open_lock_file, take_lock
from gate.records.events import LockAwaited, Observer

_POLL_S = 0.5  # how late a waiter notices that the device is free
_MAX_BYTES = 200  # of a holder's record; more was not written by one
_ELSEWHERE = "a run that cannot be seen from here, in another container most likely"


@contextmanager
def lock_device(key: str, limit_s: float, observe: Observer) -> Iterator[None]:
    """Lock the device called ``key`` on this host; wait up to ``limit_s`` seconds for it.

    Raises:
        MachineError: Another run still holds it, and is named if it can be; or the lock file is not one.
        UsageError: ``COMPILE_GATE_LOCKS`` names no directory.
    """
    path, deadline = _make_path(key), time.monotonic() + limit_s
    descriptor = _try_lock(path)
    if descriptor is None:
        observe(LockAwaited(device=key, holder=_name_holder(path), limit_s=limit_s))
    while descriptor is None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise MachineError(
                f"{key} is in use by another run of compile-gate ({_name_holder(path)})",
                f"Wait for it, end it, or wait longer than {limit_s:g} s: --lock-timeout, or lock_timeout_s.",
            )
        time.sleep(min(_POLL_S, left_s))
        descriptor = _try_lock(path)
    try:
        _write(descriptor, json.dumps({"pid": os.getpid(), "space": _read_pid_namespace()}))
        yield
    finally:
        _write(descriptor, "")
        os.close(descriptor)  # and with it goes the lock


def describe_holder(key: str) -> str:
    """Empty where nobody holds the device. Raises as :func:`lock_device`."""
    path = _make_path(key)
    if not path.exists():
        return ""
    descriptor = _try_lock(path, fcntl.LOCK_SH)
    if descriptor is None:
        return _name_holder(path)
    os.close(descriptor)
    return ""


def _make_path(key: str) -> Path:
    return make_lock_directory() / f"{key}.lock"


def _try_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    """``None`` where another process holds the lock."""
    try:
        return take_lock(open_lock_file(path), kind)
    except BlockingIOError:
        return None
    except OSError as error:
        what = f"{path}: cannot be locked: {error.strerror}"
        raise MachineError(what, f"Name a directory on a local disk in {VARIABLE}.") from error


def _name_holder(path: Path) -> str:
    # It may just be letting go, and anybody may have written to the file.
    expected = (MachineError, OSError, psutil.Error, LookupError, TypeError, ValueError, OverflowError)
    with suppress(*expected), os.fdopen(open_lock_file(path), "rb") as file:
        record = json.loads(file.read(_MAX_BYTES))
        if record["space"] == _read_pid_namespace():
            process = psutil.Process(int(record["pid"]))
            return f"process {process.pid} of {process.username()}"
    return _ELSEWHERE


def _write(descriptor: int, text: str) -> None:
    with suppress(OSError):  # a full disk: the lock holds, its holder is not named
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _read_pid_namespace() -> int:
    """Read the name space of process ids: an id means another process in another container."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - follows a link that is no path
    except OSError:
        return 0
