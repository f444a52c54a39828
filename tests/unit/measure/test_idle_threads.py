"""Letting a process's own threads fall asleep before another measures."""

import hashlib
import threading
import time
from pathlib import Path

import pytest

from gate.measure import turns

WORK = bytes(200_000_000)  # a hash sum of it takes a tenth of a second or more


def test_waits_until_a_busy_thread_has_ended() -> None:
    """A thread at work outside of Python's lock, as OpenMP's are, is waited for.

    By the thread's own clock: on a busy machine nobody knows when it ends.
    """
    used_s: list[float] = []
    started, looked = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        hashlib.sha256(WORK)
        used_s.append(time.thread_time())
        looked.wait()

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    assert turns.await_idle_threads(limit_s=60)
    seen_s = time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))
    looked.set()
    thread.join()
    assert seen_s >= 0.9 * used_s[0]


def test_thread_that_never_sleeps_is_waited_for_in_vain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A model may have threads of its own that are always at work; the wait has an end."""
    monkeypatch.setattr(turns, "_TASKS", tmp_path)
    (tmp_path / "17").mkdir()
    (tmp_path / "17" / "stat").write_text("17 (a (busy) thread) R 1 1", encoding="ascii")
    assert not turns.await_idle_threads(limit_s=0.001)


def test_process_of_one_thread_does_not_wait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A thread that ends during the look is not waited for."""
    monkeypatch.setattr(turns, "_TASKS", tmp_path)
    (tmp_path / "17").mkdir()  # a thread without a state: it is gone
    assert turns.await_idle_threads(limit_s=0.0)


def test_sleeping_threads_are_not_waited_for() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert turns.await_idle_threads(limit_s=0.2)
    finally:
        done.set()
        thread.join()
