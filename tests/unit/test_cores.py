"""Cores that a process may use, on this machine and in made-up control groups."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gate import programs


def test_without_limits_they_are_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments keep the ids of committed baselines."""
    monkeypatch.setattr(programs, "_CGROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(os.cpu_count() or 1)))
    assert programs.count_cores() == os.cpu_count()


def test_a_pinned_process_counts_its_own() -> None:
    """A process with an affinity of one core has one."""
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nfrom gate import programs\n"
    shown = "print(programs.count_cores(), programs.count_cores(is_pinned=True))"
    process = subprocess.run([sys.executable, "-c", code + shown], check=True, capture_output=True, text=True)
    pinned, all_of_them = map(int, process.stdout.split())
    assert (pinned, all_of_them) == (1, programs.count_cores(is_pinned=True))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, 96),
        ({"a/cpu.max": "max 100000\n", "cpu.max": "400000 100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 96),
        ({"cpu.max": "torn"}, 96),
    ],
    ids=["version 2", "no quota", "a group around it", "version 1", "no quota in version 1", "unreadable"],
)
def test_a_quota_limits_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    """A container with 1.5 of 96 cores has two."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="ascii")
    groups = "3:cpu,cpuacct:/\n2:memory:/other\n0::/a\n"
    monkeypatch.setattr(programs, "read_text", lambda path: _read(path, groups))
    monkeypatch.setattr(programs, "_CGROUPS", tmp_path)
    monkeypatch.setattr(programs, "list_cores", lambda: list(range(96)))
    assert programs.count_cores() == expected


def _read(path: Path, groups: str) -> str:
    if path == Path("/proc/self/cgroup"):
        return groups
    return path.read_text(encoding="ascii") if path.is_file() else ""
