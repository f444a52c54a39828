"""The host's counters, read from this host."""

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from gate import programs
from gate.lab.host import fitness as host_module
from gate.lab.host.fitness import describe_host, read_crowd, read_host
from gate.records.run import Conditions

SPIN = "import time\nwhile time.process_time() < {seconds}: pass"


def test_counters_only_grow() -> None:
    """A second look is later, and no counter is lower."""
    before = read_host()
    time.sleep(0.05)
    after = read_host()
    assert after.at_s > before.at_s
    assert after.busy_s >= before.busy_s > 0.0
    assert after.own_s >= before.own_s > 0.0
    assert 1 <= after.cores <= (psutil.cpu_count() or 1)


def test_our_own_work_is_not_foreign() -> None:
    """A child that was waited for adds as much to our own time as to the host's."""
    before = read_host()
    subprocess.run([sys.executable, "-c", SPIN.format(seconds=0.5)], check=True)
    after = read_host()
    # The kernel counts ticks of 10 ms, sampled.
    assert after.own_s - before.own_s > 0.4
    assert after.busy_s - before.busy_s > 0.4


def test_threads_of_the_kernel_are_no_programs_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """They work for others. Another user's process may have no command line."""
    clock = itertools.count()

    def list_processes(_: object) -> list[SimpleNamespace]:
        used = (float(next(clock)), 0.0)
        lines = {"kworker": [], "chromium": ["chromium"], "hidden": None}
        return [
            SimpleNamespace(pid=-number, info={"name": name, "cpu_times": used, "cmdline": line})
            for number, (name, line) in enumerate(lines.items(), start=1)
        ]

    monkeypatch.setattr(psutil, "process_iter", list_processes)
    assert [program.partition(" ")[0] for program in read_crowd()] == ["chromium", "hidden"]


def test_the_work_of_others_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of nobody's takes time from us, and is named.

    Only three are named, and on a busy machine others are busier: the test looks at none of those.
    """
    start = f"{shlex.join([sys.executable, '-c', SPIN.format(seconds=300)])} > /dev/null 2>&1 & echo $!"
    started = subprocess.run(["sh", "-c", start], check=True, capture_output=True, text=True)
    looked_at, list_all = {int(started.stdout), os.getpid()}, psutil.process_iter
    monkeypatch.setattr(
        psutil, "process_iter", lambda names: (item for item in list_all(names) if item.pid in looked_at)
    )
    try:
        time.sleep(0.1)
        before = read_host()
        time.sleep(1.0)
        conditions = describe_host(Conditions(), (before, read_host()), threads=2)
        # Among twenty others it may have less than a tenth of a core for a while.
        while not (crowd := read_crowd()):
            pass
    finally:
        os.kill(int(started.stdout), signal.SIGKILL)
    assert conditions.foreign_cores > 0.2
    (line,) = crowd
    assert f"(pid {started.stdout.strip()}, " in line


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("usage_usec 7\nnr_throttled 3\nthrottled_usec 2500000\n", 2.5),
        ("nr_periods 9\nnr_throttled 3\nthrottled_time 1500000000\n", 1.5),
        ("usage_usec 7\n", 0.0),
    ],
    ids=["version 2", "version 1", "no quota"],
)
def test_the_quota_of_both_versions_of_control_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, expected: float
) -> None:
    """Microseconds in version 2, nanoseconds in version 1."""
    (tmp_path / "cpu.stat").write_text(content, encoding="ascii")
    monkeypatch.setattr(programs, "_CGROUPS", tmp_path)
    assert read_host().held_back_s == expected


def test_heat_events_of_all_cores_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every core that a worker may run on has its own count."""
    for core in range(psutil.cpu_count() or 1):
        directory = tmp_path / f"cpu{core}" / "thermal_throttle"
        directory.mkdir(parents=True)
        (directory / "core_throttle_count").write_text("4\n", encoding="ascii")
    monkeypatch.setattr(host_module, "CPUS", tmp_path)
    sample = read_host()
    assert sample.heat_events == 4 * sample.cores


def test_a_look_is_cheap() -> None:
    """A look takes less than 0.05 % of a trial of ten seconds or more in CPU time.

    The least of twenty: in one of them Python may collect what all tests before have left.
    """
    assert min(_time_look() for _ in range(20)) < 0.005


def _time_look() -> float:
    begun = time.process_time()
    read_host()
    return time.process_time() - begun
