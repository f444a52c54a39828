"""Clocks: that what is timed is what the device did, and that it repeats, for two processes in turn too."""

import importlib
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch

from gate.device_tests.plugin import DeviceReport
from gate.measure import canaries
from gate.measure.device.choice import open_device
from gate.measure.device.device import Device
from gate.measure.rounds import time_calls
from gate.selftest import planted
from gate.sizes import MIB

_GPU_EDGE, _CPU_EDGE = 4096, 384  # of a square matrix: some hundred microseconds and more
_TINY_CALLS = 2000
_BUSY_CALLS = 50
_REPEATS = 9  # the median leaves out four
_CANARY_RUNS = 8
_IDLE_S = 5.0  # until an idle card has lowered its clock
_WARM_S = 4.0
_WARMUP_S = 1.0  # what a trial's side gets on a GPU
_BURN_S = 0.005
_TICK_S = 1e-6
_COPY_BYTES = 256 * MIB  # of the copy canary on a GPU
# Of an H100's 3.35 TB/s and 990 TFLOP/s, what large copies and products reach.
_COPY_TB_S = (2.4, 3.1)
_PRODUCT_TFLOP_S = (400.0, 850.0)
_ESTIMATED = "H100 80GB HBM3"  # of this card's name; other boards have less, or more, of everything
_BLOCK_S = 0.030  # as the blocks of a live pair
_TURNS = 30
_TURN_GPU_EDGE, _TURN_CPU_EDGE = 2048, 256
_SIZING_CALLS = 200


def make_product(device: Device) -> Callable[[], torch.Tensor]:
    size = _GPU_EDGE if device.kind.is_gpu else _CPU_EDGE
    left = torch.randn(size, size, device=device.name)
    return lambda: torch.mm(left, left)


def make_graphed(device: Device) -> Any:  # noqa: ANN401 - a compiled function
    """Make a graphed call with two intermediates of 64 MiB that no fusion removes."""
    value = torch.randn(_GPU_EDGE, _GPU_EDGE, device=device.name)
    compiled = torch.compile(
        lambda matrix: ((matrix @ matrix) @ (matrix @ matrix)).sum(), mode="reduce-overhead"
    )

    def step() -> object:
        device.mark_step()
        with torch.no_grad():
            return compiled(value)

    return step


def test_wall_agrees_with_events_when_busy(device: Device, report: DeviceReport) -> None:
    """A synchronized wall clock and the device's events agree on calls that keep it busy."""
    report.check_range(_compare_clocks(device, make_product(device), _BUSY_CALLS), 0.97, 1.03)


def test_wall_agrees_with_events_when_launch_bound(device: Device, report: DeviceReport) -> None:
    """They agree within 10 % on calls that take longer to launch than to run."""
    tiny = torch.ones(8, device=device.name)
    report.check_range(_compare_clocks(device, lambda: tiny.add_(1), _TINY_CALLS), 0.9, 1.1)


def _compare_clocks(device: Device, run: Callable[[], object], calls: int) -> float:
    ratios = []
    time_calls(run, device, calls)
    for _ in range(_REPEATS):
        wall_s = time_calls(run, device, calls) / calls
        ratios.append(wall_s / measure_device_s(device, run, calls))
    return statistics.median(ratios)


def measure_device_s(device: Device, run: Callable[[], object], calls: int) -> float:
    start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's
    device.synchronize()
    start.record()
    for _ in range(calls):
        run()
    end.record()
    device.synchronize()
    return float(start.elapsed_time(end)) * 1e-3 / calls


def test_a_launch_returns_before_its_work_is_done(device: Device, report: DeviceReport) -> None:
    """Only a synchronized clock sees the work: launching a product takes less than half of its time."""
    run = make_product(device)
    time_calls(run, device, _BUSY_CALLS)
    begun = time.perf_counter()
    run()
    launched_s = time.perf_counter() - begun
    device.synchronize()
    report.check_range(launched_s / (time_calls(run, device, _BUSY_CALLS) / _BUSY_CALLS), 0.0, 0.5)


def test_wall_agrees_with_tritons_benchmark(device: Device, report: DeviceReport) -> None:
    """Of calls that keep the device busy, Triton's own benchmark sees the same time within 3 %."""
    run, benchmark = make_product(device), importlib.import_module("triton.testing").do_bench
    time_calls(run, device, _BUSY_CALLS)
    ratios = [
        time_calls(run, device, _BUSY_CALLS) / _BUSY_CALLS / (benchmark(run, return_mode="median") * 1e-3)
        for _ in range(_REPEATS)
    ]
    report.check_range(statistics.median(ratios), 0.97, 1.03)


@pytest.mark.cpu(judged=True)
def test_the_host_clock_resolves_a_microsecond(report: DeviceReport) -> None:
    """Two readings of the host's clock are less than a microsecond apart: 0.01 % of a block of 10 ms."""
    ticks = [after - before for before, after in pairwise(time.perf_counter() for _ in range(1000))]
    report.check(statistics.median(ticks) < _TICK_S, f"{1e9 * statistics.median(ticks):.0f} ns a reading")


@pytest.mark.cpu
def test_canaries_repeat(device: Device, report: DeviceReport) -> None:
    """Each canary's median repeats to 1 %: a machine shift is called at 3 %."""
    runs = [canaries.run_canaries(device) for _ in range(_CANARY_RUNS)]
    report.keep("canaries.json", runs)
    medians = {name: [statistics.median(times[name]) for times in runs] for name in runs[0]}
    for name, times_s in medians.items():
        part = f"{name} of {1e3 * statistics.median(times_s):.3f} ms"
        report.check_range(100 * statistics.stdev(times_s) / statistics.mean(times_s), 0.0, 1.0, "%", part)


def test_canaries_are_as_fast_as_the_card(device: Device, report: DeviceReport) -> None:
    """A copy of 256 MiB is bound by memory and a product by arithmetic, not by launching either."""
    medians = {name: statistics.median(times_s) for name, times_s in canaries.run_canaries(device).items()}
    copy_tb_s = 2 * _COPY_BYTES / 1e12 / medians["copy"]
    product_tflop_s = 2 * _GPU_EDGE**3 / 1e12 / medians["matmul"]
    report_rates(report, device.identify().model, copy_tb_s, product_tflop_s)


def report_rates(report: DeviceReport, model: str, copy_tb_s: float, product_tflop_s: float) -> None:
    estimates = expect_estimates(report, model)
    estimates.check_range(copy_tb_s, *_COPY_TB_S, "TB/s", "copy")
    estimates.check_range(product_tflop_s, *_PRODUCT_TFLOP_S, "TFLOP/s", "bfloat16 product")


def expect_estimates(report: DeviceReport, model: str) -> DeviceReport:
    return report if _ESTIMATED in model else replace(report, meant_for=f"an {_ESTIMATED}")


@pytest.mark.cpu
def test_a_second_of_work_warms_up(device: Device, report: DeviceReport) -> None:
    """After a second of work a block takes what it takes after four, within 2 %: the clock has risen."""
    run = make_product(device)
    run()
    device.synchronize()
    time.sleep(_IDLE_S if device.kind.is_gpu else 0.0)
    seen: list[tuple[float, float]] = []
    begun = time.perf_counter()
    while (elapsed_s := time.perf_counter() - begun) < (_WARM_S if device.kind.is_gpu else 2 * _WARMUP_S):
        seen.append((elapsed_s, time_calls(run, device, _BUSY_CALLS)))
    report.keep("clock-rise.json", seen)
    late_s = statistics.median(block_s for at_s, block_s in seen if at_s > seen[-1][0] - _WARMUP_S / 2)
    warm = [block_s for at_s, block_s in seen if _WARMUP_S <= at_s < _WARMUP_S + _WARMUP_S / 2]
    report.check_range(100 * (statistics.median(warm) / late_s - 1), -2.0, 2.0, "%", "after a second")
    report.note(f"the first block {100 * (seen[0][1] / late_s - 1):+.1f} %", "idle before")


@pytest.mark.cpu
def test_a_planted_burn_lasts_as_long_as_it_says(device: Device, report: DeviceReport) -> None:
    """A planted slowdown of 5 ms takes 5 ms, within 3 %: the clock it counts in was measured warm."""
    ticket = planted.make_ticket().to(device.name)
    planted.prepare_burn()
    times_s = [time_calls(lambda: planted.burn(ticket, _BURN_S), device, 20) / 20 for _ in range(_REPEATS)]
    report.check_range(statistics.median(times_s) / _BURN_S, 0.97, 1.03)


def serve_blocks(line: Connection, device: str) -> None:
    """Time a block at first and each time that something comes in; send its seconds per call."""
    opened = open_device(device)
    edge = _TURN_GPU_EDGE if opened.kind.is_gpu else _TURN_CPU_EDGE
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
    ratios = [first_s / second_s for first_s, second_s in turns]
    added = statistics.median(first_s for first_s, _ in turns) / statistics.median(alone) - 1
    report.check_range(statistics.median(ratios), 0.98, 1.02, part="median")
    report.check_range(statistics.stdev(ratios), 0.0, 0.02, part="deviation")
    report.check_range(100 * added, -1.0, 1.0, "%", "after the other's")


@contextmanager
def _start(device_name: str) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    line, far_end = context.Pipe()
    process = context.Process(target=serve_blocks, args=(far_end, device_name))
    process.start()
    far_end.close()  # else its end is not seen
    try:
        line.recv()
        yield line
    finally:
        process.kill()
        process.join()


def _run_block(line: Connection) -> float:
    line.send(None)
    return float(line.recv())
