"""Workers stay on the cores that are near the GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gate.lab.host import gpu
from gate.lab.host.gpu import find_near_cores, parse_cores, stay_near, write_cores

BUS = "00000000:17:00.0"
ASK = "import os; print(sorted(os.sched_getaffinity(0)))"


@pytest.mark.parametrize(
    ("text", "found"), [("0-2,8\n", {0, 1, 2, 8}), ("3\n", {3}), ("\n", set()), ("0-1,4-5", {0, 1, 4, 5})]
)
def test_cores_as_the_kernel_lists_them(text: str, found: set[int]) -> None:
    """Ranges with both ends, and single cores."""
    assert parse_cores(text) == found
    assert parse_cores(write_cores(found)) == found


def test_cores_are_written_as_spans() -> None:
    """A single core is no span."""
    assert write_cores([3, 0, 2, 8, 1]) == "0-3,8"
    assert not write_cores([])


def attach(devices: Path, text: str) -> Path:
    """Return a directory of devices, one of which is attached to these cores."""
    (devices / "0000:17:00.0").mkdir(parents=True)
    (devices / "0000:17:00.0" / "local_cpulist").write_text(text)
    return devices


def test_the_address_is_the_one_of_nvidia_smi(tmp_path: Path) -> None:
    """nvidia-smi writes the domain with eight digits, the kernel with four, and letters small."""
    devices = attach(tmp_path, "0-3\n")
    assert find_near_cores(BUS, devices) == {0, 1, 2, 3}
    assert find_near_cores("00000000:C1:00.0", devices) == frozenset()
    assert find_near_cores("", devices) == find_near_cores("[N/A]", devices) == frozenset()


def test_what_is_started_stays_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is started within runs on the near core only; afterwards all are back."""
    before = os.sched_getaffinity(0)
    near = min(before)
    monkeypatch.setattr(gpu, "find_near_cores", lambda _: frozenset({near}))
    with stay_near(BUS, threads=1):
        told = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout
    assert told.strip() == f"[{near}]"
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("near", "threads"), [(frozenset(), 1), (frozenset({0}), 2)])
def test_nobody_is_held_to_too_few(
    monkeypatch: pytest.MonkeyPatch, near: frozenset[int], threads: int
) -> None:
    """Where the system does not say, or fewer cores are near than a worker has threads, all stay allowed."""
    before = os.sched_getaffinity(0)
    monkeypatch.setattr(gpu, "find_near_cores", lambda _: near)
    with stay_near(BUS, threads=threads):
        assert os.sched_getaffinity(0) == before
