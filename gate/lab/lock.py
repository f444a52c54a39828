"""One measuring run a device and host: two at once would measure each other."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from gate.disk import make_private_directory
from gate.errors import MachineError
from gate.lab.events import LockAwaited, Observer

_POLL_S = 0.5  # how late a waiter notices that the device is free


@contextmanager
def hold_device(key: str, limit_s: float, observe: Observer, directory: Path | None = None) -> Iterator[None]:
    """Hold the host-wide lock of the device called ``key``; waits up to ``limit_s`` seconds for it.

    Raises:
        MachineError: Another run still holds it after that; its process id is named when known.
    """
    place = make_lock_directory() if directory is None else directory
    lock = FileLock(place / f"{key}.lock", poll_interval=_POLL_S)
    try:
        _acquire(lock, limit_s, key, observe)
    except Timeout:
        raise MachineError(
            f"{key} is in use by another run of compile-gate{_format_holder(load_holder(key, place))}",
            f"Wait for it, end it, or wait longer than {limit_s:g} s with `lock_timeout_s` in gate.yml.",
        ) from None
    holder = place / f"{key}.holder"
    try:
        holder.write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def load_holder(key: str, directory: Path | None = None) -> int:
    """Tell which process holds the device; 0 when none does or it is not known."""
    place = make_lock_directory() if directory is None else directory
    try:
        pid = json.loads((place / f"{key}.holder").read_text(encoding="utf-8"))["pid"]
    except (OSError, ValueError, KeyError, TypeError):  # nobody holds it, or is just about to
        return 0
    return pid if isinstance(pid, int) and pid > 0 and psutil.pid_exists(pid) else 0


def make_lock_directory() -> Path:
    """Make the directory of this user's locks: one a host, whatever ``TMPDIR`` says.

    Raises:
        MachineError: It cannot be made, or it is somebody else's.
    """
    shared = Path("/tmp")  # noqa: S108 - the directory below is ours alone, and checked to be
    base = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
    place = base / f"compile-gate-locks-{os.getuid()}"
    try:
        return make_private_directory(place)
    except OSError as error:
        raise MachineError(
            f"{place}: cannot be used: {error.strerror}",
            "Have it removed, or make the temporary directory writable, and run again.",
        ) from error


def _acquire(lock: FileLock, limit_s: float, key: str, observe: Observer) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = _format_holder(load_holder(key, Path(lock.lock_file).parent))
        observe(LockAwaited(device=key, holder=holder.strip(), limit_s=limit_s))
        lock.acquire(timeout=limit_s)


def _format_holder(pid: int) -> str:
    return f" (process {pid})" if pid else ""
