"""Canaries: fixed micro-workloads that know nothing of the measured code, so they tell the machine's mood."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

from gate.measure.device import Device

REPEATS = 5  # the median leaves out two disturbances
# Sizes so that each call takes a few milliseconds, and all canaries some tens.
_MATMUL_SIZE = {"cpu": 384, "cuda": 4096}
_COPY_BYTES = {"cpu": 16 * 2**20, "cuda": 256 * 2**20}  # well above the caches
# A copy takes 0.2 ms at 3 TB/s, of which launching and waiting are up to a tenth, and a matrix product in
# bfloat16 as long: so many in a sample that it takes some milliseconds.
_CALLS: Mapping[str, Mapping[str, int]] = {"cuda": {"copy": 20, "matmul": 20}}
_WAKING_S = 0.5  # until an idle GPU has raised its clock
_LOOP_STEPS = 50_000
_LAUNCHES = 500


def run_canaries(device: Device) -> dict[str, tuple[float, ...]]:
    """Run each canary ``REPEATS`` times; seconds by name, of one call where a sample makes several."""
    canaries = _make_canaries(device)
    if device.kind == "cuda":
        _leave_idle_clock(canaries["matmul"], device)
    calls = _CALLS.get(device.kind, {})
    return {name: _time_canary(run, device, calls.get(name, 1)) for name, run in canaries.items()}


def compute_medians(*groups: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
    """Compute each canary's median over all groups of times."""
    names = {name for group in groups for name in group}
    return {
        name: statistics.median([time_s for group in groups for time_s in group.get(name, ())])
        for name in sorted(names)
    }


def _make_canaries(device: Device) -> dict[str, Callable[[], object]]:
    left, source = _make_operands(device)
    product, target = torch.empty_like(left), torch.empty_like(source)
    canaries: dict[str, Callable[[], object]] = {
        "matmul": lambda: torch.mm(left, left, out=product),
        "copy": lambda: target.copy_(source),
        "python": _loop,
    }
    if device.kind == "cuda":
        counter = torch.zeros(1, device=device.name)
        canaries["launch"] = lambda: [counter.add_(1) for _ in range(_LAUNCHES)]
    return canaries


def _make_operands(device: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """Make a matrix and the bytes to copy; on a GPU random, since constants run faster and cooler."""
    size, place = _MATMUL_SIZE[device.kind], device.name
    shape, copied = (size, size), (_COPY_BYTES[device.kind],)
    if device.kind == "cpu":
        return torch.full(shape, 0.5, device=place), torch.ones(copied, dtype=torch.uint8, device=place)
    own = torch.Generator(place)  # the workload's random numbers stay as they are
    own.manual_seed(0)
    matrix = torch.randn(shape, generator=own, device=place, dtype=torch.bfloat16)
    return matrix, torch.randint(0, 256, copied, generator=own, device=place, dtype=torch.uint8)


def _leave_idle_clock(run: Callable[[], object], device: Device) -> None:
    begun = time.perf_counter()
    while time.perf_counter() - begun < _WAKING_S:
        run()
        device.synchronize()


def _time_canary(run: Callable[[], object], device: Device, calls: int) -> tuple[float, ...]:
    run()
    times_s = []
    for _ in range(REPEATS):
        device.synchronize()
        begun = time.perf_counter()
        for _ in range(calls):
            run()
        device.synchronize()
        times_s.append((time.perf_counter() - begun) / calls)
    return tuple(times_s)


def _loop() -> int:
    total = 0
    for step in range(_LOOP_STEPS):
        total ^= step
    return total
