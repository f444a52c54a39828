"""Canaries: fixed micro-workloads without measured code, which show how fast the machine is now."""

import time
from collections.abc import Callable

import torch

from gate.measure.device.device import Device
from gate.measure.rounds import time_calls

REPEATS = 5  # the median leaves out two disturbances
_LOOP_STEPS = 50_000
_LAUNCHES = 500


def run_canaries(device: Device) -> dict[str, tuple[float, ...]]:
    """Return ``REPEATS`` times of each canary by its name, in seconds a call."""
    canaries = _make_canaries(device)
    begun = time.perf_counter()
    while time.perf_counter() - begun < device.kind.canaries.waking_s:  # until an idle clock has risen
        canaries["matmul"]()
        device.synchronize()
    calls = dict.fromkeys(("matmul", "copy"), device.kind.canaries.calls)
    return {name: _time_canary(run, device, calls.get(name, 1)) for name, run in canaries.items()}


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
    sizes, name = device.kind.canaries, device.name
    shape, copied = (sizes.matmul_size, sizes.matmul_size), (sizes.copy_bytes,)
    if not device.kind.is_gpu:
        return torch.full(shape, 0.5, device=name), torch.ones(copied, dtype=torch.uint8, device=name)
    generator = torch.Generator(name)  # the workload's random numbers stay as they are
    generator.manual_seed(0)
    matrix = torch.randn(shape, generator=generator, device=name, dtype=torch.bfloat16)
    return matrix, torch.randint(0, 256, copied, generator=generator, device=name, dtype=torch.uint8)


def _time_canary(run: Callable[[], object], device: Device, calls: int) -> tuple[float, ...]:
    run()
    return tuple(time_calls(run, device, calls) / calls for _ in range(REPEATS))


def _loop() -> int:
    total = 0
    for step in range(_LOOP_STEPS):
        total ^= step
    return total
