"""Canaries: fixed micro-workloads without measured code, so they show how fast the machine is now."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

from gate.measure.device.device import Device
from gate.measure.timing.rounds import time_calls
from gate.records import DType

REPEATS = 5  # the median leaves out two disturbances
_LOOP_STEPS = 50_000
_LAUNCHES = 500


def run_canaries(device: Device) -> dict[str, tuple[float, ...]]:
    """Run each canary ``REPEATS`` times; seconds by name, of one call where a sample makes several."""
    canaries = _make_canaries(device)
    _leave_idle_clock(canaries["matmul"], device)
    calls = dict.fromkeys(("matmul", "copy"), device.kind.canaries.calls)
    return {name: _time_canary(run, device, calls.get(name, 1)) for name, run in canaries.items()}


def measure_flops_per_s(device: Device, dtype: DType) -> float:
    """Measure how many operations a second the device does at best, in products of matrices of ``dtype``."""
    left = _make_operands(device)[0].to(getattr(torch, dtype))
    product = torch.empty_like(left)
    times_s = _time_canary(lambda: torch.mm(left, left, out=product), device, device.kind.canaries.calls)
    return 2 * len(left) ** 3 / statistics.median(times_s)


def measure_bytes_per_s(device: Device) -> float:
    """Measure how many bytes a second the device reads and writes at best, in a large copy."""
    _, source = _make_operands(device)
    target = torch.empty_like(source)
    times_s = _time_canary(lambda: target.copy_(source), device, device.kind.canaries.calls)
    return 2 * source.nbytes / statistics.median(times_s)


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
    if device.kind.is_gpu:
        counter = torch.zeros(1, device=device.name)
        canaries["launch"] = lambda: [counter.add_(1) for _ in range(_LAUNCHES)]
    return canaries


def _make_operands(device: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """Make a matrix and the bytes to copy; on a GPU random, since constants run faster and cooler."""
    sizes, place = device.kind.canaries, device.name
    shape, copied = (sizes.matmul_size, sizes.matmul_size), (sizes.copy_bytes,)
    if not device.kind.is_gpu:
        return torch.full(shape, 0.5, device=place), torch.ones(copied, dtype=torch.uint8, device=place)
    own = torch.Generator(place)  # the workload's random numbers stay as they are
    own.manual_seed(0)
    matrix = torch.randn(shape, generator=own, device=place, dtype=torch.bfloat16)
    return matrix, torch.randint(0, 256, copied, generator=own, device=place, dtype=torch.uint8)


def _leave_idle_clock(run: Callable[[], object], device: Device) -> None:
    begun = time.perf_counter()
    while time.perf_counter() - begun < device.kind.canaries.waking_s:
        run()
        device.synchronize()


def _time_canary(run: Callable[[], object], device: Device, calls: int) -> tuple[float, ...]:
    run()
    return tuple(time_calls(run, device, calls) / calls for _ in range(REPEATS))


def _loop() -> int:
    total = 0
    for step in range(_LOOP_STEPS):
        total ^= step
    return total
