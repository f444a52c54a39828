"""Compares timed blocks, led in by untimed calls or not, with torch.utils.benchmark, on eleven models.

    python benchmarks/block_lead.py [--threads 2] [--super-blocks 12]

Eager runs before each block, as it does in a trial. Before that torch's timer makes as many calls.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.benchmark import Timer

from gate.measure.device.cpu import CpuDevice
from gate.measure.rounds import call_until_quiet, make_schedule, run_rounds, size_blocks, time_calls, warm_up
from gate.measure.workload.build import compile_function, make_step, make_subject
from gate.records.cases import Case
from gate.records.protocol import BlockSize, Sampling, Side
from gate.workload import Workload

Step = Callable[[], object]
CASE = Case(id="made/up", model="made", factory="made:up")


def make_linear(rows: int, width: int) -> Workload:
    """A block of a transformer without its attention."""
    layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    return Workload(forward=layers, inputs=(torch.randn(rows, width),))


def make_encoder(batch: int, length: int, layers: int) -> Workload:
    """Attention too."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    return Workload(forward=nn.TransformerEncoder(layer, layers), inputs=(torch.randn(batch, length, 256),))


def make_pointwise(elements: int) -> Workload:
    """Bound by memory where the tensor fits no cache."""

    def forward(value: torch.Tensor) -> torch.Tensor:
        return torch.sin(value) * torch.cos(value) + torch.tanh(value) * value

    return Workload(forward=forward, inputs=(torch.randn(elements),))


def make_convolution(batch: int, channels: int) -> Workload:
    """Convolutions."""
    layers = nn.Sequential(
        *(nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()),
        *(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()),
    )
    return Workload(forward=layers, inputs=(torch.randn(batch, 3, 64, 64),))


MODELS: dict[str, Callable[[], Workload]] = {
    "linear 8 x 128": lambda: make_linear(8, 128),
    "linear 64 x 256": lambda: make_linear(64, 256),
    "linear 64 x 512": lambda: make_linear(64, 512),
    "linear 512 x 512": lambda: make_linear(512, 512),
    "encoder 1 x 32, 2 layers": lambda: make_encoder(1, 32, 2),
    "encoder 4 x 128, 4 layers": lambda: make_encoder(4, 128, 4),
    "encoder 16 x 256, 4 layers": lambda: make_encoder(16, 256, 4),
    "pointwise 100,000": lambda: make_pointwise(100_000),
    "pointwise 4,000,000": lambda: make_pointwise(4_000_000),
    "convolution 1 x 16": lambda: make_convolution(1, 16),
    "convolution 8 x 32": lambda: make_convolution(8, 32),
}


def compare(workload: Workload, super_blocks: int, threads: int) -> tuple[float, dict[str, float]]:
    """Return torch's time of a compiled call in seconds, and median ratios to it with and without a lead."""
    device, sampling = CpuDevice(), Sampling(super_blocks=super_blocks)
    torch.compiler.reset()
    subject = make_subject(workload, CASE, device)
    steps: dict[Side, Step] = {
        Side.EAGER: make_step(subject, subject.function),
        Side.COMPILED: make_step(subject, compile_function(subject.function, subject.case)),
    }
    call_until_quiet(steps[Side.COMPILED], device, 5)
    calls = {side: warm_up(step, device, sampling) for side, step in steps.items()}
    led, _ = size_blocks(steps, calls, device)
    plain = {side: BlockSize(timed=size.timed) for side, size in led.items()}
    timer = Timer("step()", globals={"step": steps[Side.COMPILED]}, num_threads=threads)
    ratios: dict[str, list[float]] = {"led in": [], "not": []}
    all_calls_s: list[float] = []
    for _ in range(super_blocks):  # in turn: both see the same machine
        for name, sizes in (("led in", led), ("not", plain)):
            theirs: list[float] = []

            def time_blocks(
                target: Step, lead_in: Step, rounds: int, theirs: list[float] = theirs
            ) -> list[float]:
                ours = []
                for _ in range(rounds):
                    theirs.append(timer.timeit(calls[Side.COMPILED]).mean)
                    time_calls(steps[Side.EAGER], device, calls[Side.EAGER])
                    lead_in()
                    begun = time.perf_counter()
                    target()
                    ours.append(time.perf_counter() - begun)
                return ours

            rounds = run_rounds(steps, sizes, 1, time_blocks)
            calls_s = [
                seconds
                for side, seconds in zip(make_schedule(1), theirs, strict=True)
                if side is Side.COMPILED
            ]
            ratios[name] += [
                block_s / other for block_s, other in zip(rounds.times[Side.COMPILED], calls_s, strict=True)
            ]
            all_calls_s += calls_s
    return statistics.median(all_calls_s), {
        name: statistics.median(values) for name, values in ratios.items()
    }


def main() -> None:
    """Print a row a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--super-blocks", type=int, default=12)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| model | torch's time of a call | led in | not led in |\n| --- | --- | --- | --- |")
    for name, make in MODELS.items():
        torch.manual_seed(0)
        with torch.no_grad():
            time_s, ratios = compare(make(), options.super_blocks, options.threads)
        led, plain = (f"{100 * (ratios[key] - 1):+.1f} %" for key in ("led in", "not"))
        print(f"| {name} | {1e3 * time_s:.2f} ms | {led} | {plain} |", flush=True)


if __name__ == "__main__":
    main()
