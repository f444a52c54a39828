"""Clocks: that what is timed is what the device did, and that it repeats."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import torch

from gate.contact.assumptions import CPU, CUDA, Place, assume
from gate.contact.findings import AssumptionResult, claim, expect_range, find_memory_speed, tell
from gate.measure.timing import canary
from gate.measure.timing.rounds import time_calls
from gate.selftest.planted import ops

_PRODUCT = {CPU: 384, CUDA: 4096}  # edge of a square matrix: some hundred microseconds and more
_TINY_CALLS = 2000
_BUSY_CALLS = 50
_REPEATS = 9  # the median leaves out four
_CANARY_RUNS = 8
_IDLE_S = 5.0  # until an idle card has lowered its clock
_WARM_S = 4.0
_WARMUP_S = 1.0  # what a trial's side gets on a GPU
_BURN_S = 0.005
_TICK_S = 1e-6
_COPY_BYTES = 256 * 2**20  # of the copy canary on a GPU
# Of an H100's 3.35 TB/s and 990 TFLOP/s, what large copies and products reach.
_COPY_TB_S = (2.4, 3.1)
_PRODUCT_TFLOP_S = (400.0, 850.0)


def make_product(place: Place) -> Callable[[], torch.Tensor]:
    """Make a call that keeps the device busy."""
    size = _PRODUCT[place.device.kind.name]
    left = torch.randn(size, size, device=place.device.name)
    return lambda: torch.mm(left, left)


@assume(CUDA)
def wall_agrees_with_events_when_busy(place: Place) -> AssumptionResult:
    """A synchronized wall clock and the device's events tell the same of calls that keep it busy."""
    return expect_range(_compare_clocks(place, make_product(place), _BUSY_CALLS), 0.97, 1.03)


@assume(CUDA)
def wall_agrees_with_events_when_launch_bound(place: Place) -> AssumptionResult:
    """They tell about the same of calls that launching takes longer than running."""
    tiny = torch.ones(8, device=place.device.name)
    return expect_range(_compare_clocks(place, lambda: tiny.add_(1), _TINY_CALLS), 0.9, 1.1)


def _compare_clocks(place: Place, run: Callable[[], object], calls: int) -> float:
    device, ratios = place.device, []
    time_calls(run, device, calls)
    for _ in range(_REPEATS):
        wall_s = time_calls(run, device, calls) / calls
        ratios.append(wall_s / (device.measure_device_s(run, calls) or wall_s))
    return statistics.median(ratios)


@assume(CUDA)
def a_launch_returns_before_its_work_is_done(place: Place) -> AssumptionResult:
    """Only a synchronized clock sees the work: launching a product takes less than half of its time."""
    run, device = make_product(place), place.device
    time_calls(run, device, _BUSY_CALLS)
    begun = time.perf_counter()
    run()
    launched_s = time.perf_counter() - begun
    device.synchronize()
    return expect_range(launched_s / (time_calls(run, device, _BUSY_CALLS) / _BUSY_CALLS), 0.0, 0.5)


@assume(judged=(CPU, CUDA))
def the_host_clock_resolves_a_microsecond(place: Place) -> AssumptionResult:
    """Two readings of the host's clock are less than a microsecond apart: 0.01 % of a block of 10 ms."""
    del place
    ticks = [after - before for before, after in pairwise(time.perf_counter() for _ in range(1000))]
    return claim(statistics.median(ticks) < _TICK_S, f"{1e9 * statistics.median(ticks):.0f} ns a reading")


@assume()
def canaries_repeat(place: Place) -> dict[str, AssumptionResult]:
    """Each canary's median repeats to 1 %: a machine shift is called at 3 %."""
    runs = [canary.run_canaries(place.device) for _ in range(_CANARY_RUNS)]
    place.keep("canaries.json", runs)
    medians = {name: [statistics.median(one[name]) for one in runs] for name in runs[0]}
    return {
        f"{name} of {1e3 * statistics.median(times_s):.3f} ms": expect_range(
            100 * statistics.stdev(times_s) / statistics.mean(times_s), 0.0, 1.0, "%"
        )
        for name, times_s in medians.items()
    }


@assume(CUDA)
def canaries_are_as_fast_as_the_card(place: Place) -> dict[str, AssumptionResult]:
    """A copy of 256 MiB is bound by memory and a product by arithmetic, not by launching either."""
    medians = {name: statistics.median(one) for name, one in canary.run_canaries(place.device).items()}
    moved_tb, computed_tflop = 2 * _COPY_BYTES / 1e12, 2 * _PRODUCT[CUDA] ** 3 / 1e12
    model = place.device.identify().model
    return {
        "copy": judge_rate(moved_tb / medians["copy"], _COPY_TB_S, "TB/s", find_memory_speed(model)),
        "bfloat16 product": judge_rate(
            computed_tflop / medians["matmul"],
            _PRODUCT_TFLOP_S,
            "TFLOP/s",
            float(bool(find_memory_speed(model))),
        ),
    }


def judge_rate(found: float, of_h100: tuple[float, float], unit: str, faster: float) -> AssumptionResult:
    """Hold a rate against an H100's times ``faster``; where that is 0, nobody knows the card, tell it."""
    low, high = of_h100
    return expect_range(found, low * faster, high * faster, unit) if faster else tell(f"{found:.4g} {unit}")


@assume(limit_s=60)
def a_second_of_work_warms_up(place: Place) -> dict[str, AssumptionResult]:
    """After a second of work a block takes what it takes after four, within 2 %: the clock has risen."""
    run, device = make_product(place), place.device
    run()
    device.synchronize()
    time.sleep(_IDLE_S if place.is_gpu else 0.0)
    seen: list[tuple[float, float]] = []
    begun = time.perf_counter()
    while (elapsed_s := time.perf_counter() - begun) < (_WARM_S if place.is_gpu else 2 * _WARMUP_S):
        seen.append((elapsed_s, time_calls(run, device, _BUSY_CALLS)))
    place.keep("clock-rise.json", seen)
    late_s = statistics.median(block_s for at_s, block_s in seen if at_s > seen[-1][0] - _WARMUP_S / 2)
    warm = [block_s for at_s, block_s in seen if _WARMUP_S <= at_s < _WARMUP_S + _WARMUP_S / 2]
    first = f"the first block {100 * (seen[0][1] / late_s - 1):+.1f} %"
    return {
        "after a second": expect_range(100 * (statistics.median(warm) / late_s - 1), -2.0, 2.0, "%"),
        "idle before": tell(first),
    }


@assume(CUDA)
def the_first_sleep_counts_as_the_later_ones(place: Place) -> AssumptionResult:
    """Seen before it was calibrated warm: the first sleep after idling is off by more than 2 %."""
    time.sleep(_IDLE_S)
    rates = [_time_sleep(place) for _ in range(_REPEATS * 2)]
    steps = max(abs(after / before - 1) for before, after in pairwise(rates[_REPEATS:]))
    late = statistics.median(rates[_REPEATS:])
    return tell(f"first {100 * (rates[0] / late - 1):+.1f} %, later ones differ by up to {100 * steps:.2f} %")


def _time_sleep(place: Place) -> float:
    ticket = ops.make_ticket().to(place.device.name)
    return time_calls(lambda: ops.burn(ticket, _BURN_S), place.device, 1)


@assume()
def a_planted_burn_lasts_as_long_as_it_says(place: Place) -> AssumptionResult:
    """A planted slowdown of 5 ms takes 5 ms, within 3 %: the clock it counts in was measured warm."""
    ticket, device = ops.make_ticket().to(place.device.name), place.device
    ops.prepare_burn()
    times_s = [time_calls(lambda: ops.burn(ticket, _BURN_S), device, 20) / 20 for _ in range(_REPEATS)]
    return expect_range(statistics.median(times_s) / _BURN_S, 0.97, 1.03)
