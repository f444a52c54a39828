"""Memory of the process: parsing what Linux tells, and seeing what a call takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gate.measure.device import process_memory
from gate.measure.device.device import CpuDevice
from gate.measure.device.process_memory import compute_resident_growth, parse_status

STATUS = "Name:\tpython\nVmPeak:\t  900000 kB\nVmHWM:\t    5000 kB\nVmRSS:\t    4000 kB\nThreads:\t2\n"


def test_status_is_parsed_in_bytes() -> None:
    """What /proc calls kB is 1024 bytes."""
    assert parse_status(STATUS, "VmHWM") == 5000 * 1024
    assert parse_status(STATUS, "VmRSS") == 4000 * 1024


def test_missing_key_is_an_error() -> None:
    """A kernel that does not tell must not look like 0 bytes."""
    with pytest.raises(OSError, match="has no VmSwap"):
        parse_status(STATUS, "VmSwap")


def test_growth_is_peak_above_the_start() -> None:
    """A peak of 6000 kB after starting from 4000 kB is 2000 kB of growth."""
    after = STATUS.replace("5000", "6000").replace("4000", "4100")
    assert compute_resident_growth(STATUS, after) == 2000 * 1024


def test_growth_is_never_negative() -> None:
    """The kernel's counters are batched: a peak slightly below the start is no growth."""
    assert compute_resident_growth(STATUS, STATUS.replace("5000", "3990")) == 0


def test_memory_of_a_call_is_seen() -> None:
    """A call that holds 64 MiB for a moment grows by about that, whatever was freed before."""
    del_first = bytearray(128 * 2**20)
    del del_first
    size = 64 * 2**20
    growth = CpuDevice().measure_growth(lambda: bytearray(b"x" * (size // 2)) + bytearray(0))
    assert size * 0.4 < growth < size * 1.7


COUNT_FAULTS = """\
import resource, sys
from gate.measure.device import process_memory

def cycle():
    block = bytearray(40 * 2**20)
    del block

for prepare in sys.argv[1:]:
    getattr(process_memory, prepare)()
    cycle()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        cycle()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not process_memory.can_hold_memory(), reason="another C library than glibc")
def test_held_memory_is_not_taken_from_the_system_again() -> None:
    """Ten times 40 MiB are 102,400 pages, for a heap that gives them back; for one that does not, none."""
    command = [sys.executable, "-c", COUNT_FAULTS, "settle_heap", "hold_freed_memory", "settle_heap"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    settled, held, again = map(int, done.stdout.split())
    assert held < 100
    assert min(settled, again) > 1000
