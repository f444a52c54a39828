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
_LOOP_STEPS = 50_000
_LAUNCHES = 500


def run_canaries(device: Device) -> dict[str, tuple[float, ...]]:
    """Run each canary ``REPEATS`` times; seconds by name."""
    return {name: _time_canary(run, device) for name, run in _make_canaries(device).items()}


def compute_medians(*groups: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
    """Compute each canary's median over all groups of times."""
    names = {name for group in groups for name in group}
    return {
        name: statistics.median([time_s for group in groups for time_s in group.get(name, ())])
        for name in sorted(names)
    }


def _make_canaries(device: Device) -> dict[str, Callable[[], object]]:
    size, place = _MATMUL_SIZE[device.kind], device.name
    left = torch.full((size, size), 0.5, device=place)
    product = torch.empty_like(left)
    source = torch.ones(_COPY_BYTES[device.kind], dtype=torch.uint8, device=place)
    target = torch.empty_like(source)
    canaries: dict[str, Callable[[], object]] = {
        "matmul": lambda: torch.mm(left, left, out=product),
        "copy": lambda: target.copy_(source),
        "python": _loop,
    }
    if device.kind == "cuda":
        counter = torch.zeros(1, device=place)
        canaries["launch"] = lambda: [counter.add_(1) for _ in range(_LAUNCHES)]
    return canaries


def _time_canary(run: Callable[[], object], device: Device) -> tuple[float, ...]:
    run()
    times_s = []
    for _ in range(REPEATS):
        device.synchronize()
        begun = time.perf_counter()
        run()
        device.synchronize()
        times_s.append(time.perf_counter() - begun)
    return tuple(times_s)


def _loop() -> int:
    total = 0
    for step in range(_LOOP_STEPS):
        total ^= step
    return total
