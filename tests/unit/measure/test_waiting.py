"""How long this process's threads waited for a processor, by the kernel's own account."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from gate.measure.turns import ThreadWaits

SPIN_S = 0.6
_SPIN = "import time\nwhile True: pass"


@contextmanager
def share_a_core() -> Iterator[None]:
    """Keep this process, and another one that never sleeps, on one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with subprocess.Popen((sys.executable, "-c", _SPIN)) as other:
            try:
                yield
            finally:
                other.kill()
    finally:
        os.sched_setaffinity(0, allowed)


def spin() -> None:
    end = time.monotonic() + SPIN_S
    while time.monotonic() < end:
        pass


def test_a_core_that_another_program_shares_is_waited_for() -> None:
    """Two that never sleep have half a core each; a tenth of the time is certainly exceeded."""
    with share_a_core(), closing(ThreadWaits()) as waits:
        waits.update_threads()
        before_s = waits.read_s()
        spin()
        assert SPIN_S / 10 < waits.read_s() - before_s < 2 * SPIN_S


def test_sleeping_is_no_waiting() -> None:
    """A sleeping thread wants no processor; the least of ten, since on a busy machine waking up waits."""
    with closing(ThreadWaits()) as waits:
        waits.update_threads()
        waited_s = []
        for _ in range(10):
            before_s = waits.read_s()
            time.sleep(0.02)
            waited_s.append(waits.read_s() - before_s)
        assert min(waited_s) < 0.01


def test_a_thread_that_began_later_counts_once_it_was_found() -> None:
    """A model's pool that starts at its first call counts as well."""
    with closing(ThreadWaits()) as waits:
        waits.update_threads()
        stop = threading.Event()
        other = threading.Thread(target=stop.wait)
        other.start()
        thread_id = str(other.native_id)
        assert thread_id not in waits._files
        waits.update_threads()
        assert thread_id in waits._files
        stop.set()
        other.join()
        while Path("/proc/self/task", thread_id).exists():  # Python has left it, and the kernel not yet
            time.sleep(0.001)
        waits.read_s()  # of a thread that has ended nothing is asked
        waits.update_threads()
        assert thread_id not in waits._files


def test_files_are_closed() -> None:
    """A worker that watches twice holds no more files than before."""
    held = len(list(Path("/proc/self/fd").iterdir()))
    with closing(ThreadWaits()) as waits:
        waits.update_threads()
    assert len(list(Path("/proc/self/fd").iterdir())) == held
