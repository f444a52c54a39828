"""Memory of the process: Linux's files, and what a call takes."""

import subprocess
import sys
from pathlib import Path

import pytest

from gate.measure.device import cpu
from gate.measure.device.cpu import CpuDevice, read_status

STATUS = "Name:\tpython\nVmPeak:\t  900000 kB\nVmHWM:\t    5000 kB\nVmRSS:\t    4000 kB\nThreads:\t2\n"


@pytest.fixture
def status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in place of Linux's status of this process, and one in place of clear_refs."""
    path = tmp_path / "status"
    path.write_text(STATUS)
    monkeypatch.setattr(cpu, "_STATUS", path)
    monkeypatch.setattr(cpu, "_CLEAR_REFS", tmp_path / "clear_refs")
    return path


@pytest.mark.usefixtures("status")
def test_status_is_read_in_bytes() -> None:
    """What /proc calls kB is 1024 bytes."""
    assert read_status("VmHWM") == 5000 * 1024
    assert read_status("VmRSS") == 4000 * 1024


@pytest.mark.usefixtures("status")
def test_missing_key_is_an_error() -> None:
    """An unknown value must not look like 0 bytes."""
    with pytest.raises(OSError, match="has no VmSwap"):
        read_status("VmSwap")


@pytest.mark.parametrize(("peak", "kib"), [("6000", 2000), ("3990", 0)])
def test_growth_is_peak_above_the_start(status: Path, peak: str, kib: int) -> None:
    """A peak of 6000 kB after starting from 4000 kB is 2000 kB of growth.

    It is never negative: the kernel's counters are batched, so a peak may be slightly below the start.
    """
    device = CpuDevice()
    device.start_peak()
    status.write_text(STATUS.replace("5000", peak).replace("4000", "4100"))
    assert device.read_peak() == kib * 1024


def test_memory_of_a_call_is_seen() -> None:
    """A call that holds 64 MiB for a moment grows by about that, whatever was freed before."""
    del_first = bytearray(128 * 2**20)
    del del_first
    size = 64 * 2**20
    growth = CpuDevice().measure_growth(lambda: bytearray(b"x" * (size // 2)) + bytearray(0))
    assert size * 0.4 < growth < size * 1.7


COUNT_FAULTS = """\
import resource, sys
from gate.measure.device import cpu

def cycle():
    block = bytearray(40 * 2**20)
    del block

for prepare in sys.argv[1:]:
    {"settle": cpu.settle_heap, "hold": cpu.CpuDevice().keep_freed_memory}[prepare]()
    cycle()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        cycle()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_held_memory_is_not_taken_from_the_system_again() -> None:
    """Ten times 40 MiB are 102,400 pages, for a heap that gives them back; for one that does not, none."""
    command = [sys.executable, "-c", COUNT_FAULTS, "settle", "hold", "settle"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    settled, held, again = map(int, done.stdout.split())
    assert held < 100
    assert min(settled, again) > 1000
