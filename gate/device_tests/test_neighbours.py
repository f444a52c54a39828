"""Neighbours: that two processes can use the device in turn, as the arms of a live pair do."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from gate.device_tests.report import DeviceReport
from gate.measure.device.opening import open_device
from gate.measure.rounds import time_calls

_CHILD = "import sys; from gate.device_tests.test_neighbours import serve_blocks; serve_blocks(*sys.argv[1:])"
_BLOCK_S = 0.030  # as the blocks of a live pair
_TURNS = 30
_GPU_EDGE, _CPU_EDGE = 2048, 256
_SIZING_CALLS = 200
_END_S = 10.0

Process = subprocess.Popen[str]


def serve_blocks(device: str) -> None:
    """Time a block each time that a line comes in, and print its seconds per call."""
    opened = open_device(device)
    edge = _GPU_EDGE if opened.kind.is_gpu else _CPU_EDGE
    left = torch.randn(edge, edge, device=opened.name)

    def run() -> torch.Tensor:
        return torch.mm(left, left)

    time_calls(run, opened, _SIZING_CALLS)
    calls = max(1, int(_BLOCK_S * _SIZING_CALLS / time_calls(run, opened, _SIZING_CALLS)))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        sys.stdout.write(f"{time_calls(run, opened, calls) / calls}\n")
        sys.stdout.flush()


@pytest.mark.cpu
def test_arms_in_turn_are_alike(device_name: str, report: DeviceReport) -> None:
    """Blocks of two processes in turn: arm against arm the median is within 2 %, the deviation below 2 %.

    A block after the other's takes what one after its own does, within 1 %.
    """
    with _start(device_name) as first, _start(device_name) as second:
        alone = [_run_block(first) for _ in range(_TURNS)]
        turns = [(_run_block(first), _run_block(second)) for _ in range(_TURNS)]
    report.keep("turns.json", {"alone": alone, "turns": turns})
    ratios = [one / other for one, other in turns]
    added = statistics.median(one for one, _ in turns) / statistics.median(alone) - 1
    report.check_range(statistics.median(ratios), 0.98, 1.02, part="median")
    report.check_range(statistics.stdev(ratios), 0.0, 0.02, part="deviation")
    report.check_range(100 * added, -1.0, 1.0, "%", "after the other's")


@contextmanager
def _start(device_name: str) -> Iterator[Process]:
    command = (sys.executable, "-P", "-c", _CHILD, device_name)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        _read_line(process)
        yield process
    finally:
        process.kill()
        process.communicate(timeout=_END_S)


def _run_block(process: Process) -> float:
    if process.stdin is None:
        raise TypeError("started without a pipe")
    process.stdin.write("\n")
    process.stdin.flush()
    return float(_read_line(process))


def _read_line(process: Process) -> str:
    if process.stdout is None:
        raise TypeError("started without a pipe")
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the other process ended with status {process.wait(_END_S)}")
    return line
