"""Neighbours: that two processes can use the device in turn, as the arms of a live pair do."""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import pytest
import torch

from gate.device_tests.report import DeviceReport
from gate.measure.device.opening import open_device
from gate.measure.rounds import time_calls

_BLOCK_S = 0.030  # as the blocks of a live pair
_TURNS = 30
_GPU_EDGE, _CPU_EDGE = 2048, 256
_SIZING_CALLS = 200


def serve_blocks(line: Connection, device: str) -> None:
    """Time a block at first and each time that something comes in; send its seconds per call."""
    opened = open_device(device)
    edge = _GPU_EDGE if opened.kind.is_gpu else _CPU_EDGE
    left = torch.randn(edge, edge, device=opened.name)

    def run() -> torch.Tensor:
        return torch.mm(left, left)

    time_calls(run, opened, _SIZING_CALLS)
    calls = max(1, int(_BLOCK_S * _SIZING_CALLS / time_calls(run, opened, _SIZING_CALLS)))
    while True:
        line.send(time_calls(run, opened, calls) / calls)
        line.recv()


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
def _start(device_name: str) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    own, other = context.Pipe()
    process = context.Process(target=serve_blocks, args=(other, device_name))
    process.start()
    other.close()  # else its end is not seen
    try:
        own.recv()
        yield own
    finally:
        process.kill()
        process.join()


def _run_block(line: Connection) -> float:
    line.send(None)
    return float(line.recv())
