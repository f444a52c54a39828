"""Neighbours: that two processes can use the device in turn, as the arms of a live pair do."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gate.contact.assumptions import CPU, CUDA, Place, assume
from gate.contact.findings import AssumptionResult, expect_range
from gate.measure.device.opening import open_device
from gate.measure.timing.rounds import time_calls

_CHILD = "import sys; from gate.contact.neighbours import serve_blocks; serve_blocks(*sys.argv[1:])"
_BLOCK_S = 0.030  # as the blocks of a live pair
_TURNS = 30
_EDGE = {CPU: 256, CUDA: 2048}
_SIZING_CALLS = 200
_END_S = 10.0

Process = subprocess.Popen[str]


def serve_blocks(device: str) -> None:
    """Time a block each time that a line comes in, and print its seconds per call."""
    opened = open_device(device)
    left = torch.randn(_EDGE[opened.kind.name], _EDGE[opened.kind.name], device=opened.name)

    def run() -> torch.Tensor:
        return torch.mm(left, left)

    time_calls(run, opened, _SIZING_CALLS)
    calls = max(1, int(_BLOCK_S * _SIZING_CALLS / time_calls(run, opened, _SIZING_CALLS)))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        sys.stdout.write(f"{time_calls(run, opened, calls) / calls}\n")
        sys.stdout.flush()


@assume(limit_s=180)
def arms_in_turn_are_alike(place: Place) -> dict[str, AssumptionResult]:
    """Blocks of two processes in turn: arm against arm the median is within 2 %, the deviation below 2 %.

    A block after the other's takes what one after its own does, within 1 %.
    """
    with _start(place) as first, _start(place) as second:
        alone = [_run_block(first) for _ in range(_TURNS)]
        turns = [(_run_block(first), _run_block(second)) for _ in range(_TURNS)]
    place.keep("turns.json", {"alone": alone, "turns": turns})
    ratios = [one / other for one, other in turns]
    added = statistics.median(one for one, _ in turns) / statistics.median(alone) - 1
    return {
        "median": expect_range(statistics.median(ratios), 0.98, 1.02),
        "deviation": expect_range(statistics.stdev(ratios), 0.0, 0.02),
        "after the other's": expect_range(100 * added, -1.0, 1.0, "%"),
    }


@contextmanager
def _start(place: Place) -> Iterator[Process]:
    command = (sys.executable, "-P", "-c", _CHILD, place.name)
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
