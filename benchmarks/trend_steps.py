"""What `trend` finds: planted steps, false alarms in years without change; and what a large history takes.

    python benchmarks/trend_steps.py [--years 1000] [--steps 300] [--seed 1] [--otava]
    python benchmarks/trend_steps.py --scale DIRECTORY [--runs 2000] [--cases 50]

A year is 365 nightly values of one case and metric; noise is of natural logarithms. In *normal* it is
independent, 3 %; *heavy* has Student's t with 3 degrees of freedom; *outliers* has one night in fifty that is
off by 4 to 15 %; *wandering* has half of its variance in a machine that drifts from night to night (AR(1),
0.8). A step is found where one is told within seven nights of it. With --otava the same series go through
otava as well, which has to be installed. --scale writes a history of so many runs and renders it, and tells
seconds and memory.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gate.cli import main as run_command
from gate.decide.stats import compute_rate
from gate.records.cases import Metric
from gate.report.trend import find_steps
from gate.store.history import Figures, HistoryHead, HistoryKind, append_line, make_history_line

NIGHTS, SD, SIZES, NEAR = 365, 0.03, (0.02, 0.03, 0.05, 0.10), 7
METRIC = Metric.COMPILED_LATENCY
Find = Callable[[Sequence[float]], list[int]]


def draw_normal(rng: random.Random) -> Iterator[float]:
    """Independent noise."""
    while True:
        yield rng.gauss(0, SD)


def draw_heavy(rng: random.Random) -> Iterator[float]:
    """Student's t with three degrees of freedom, of the same standard deviation."""
    while True:
        yield SD * rng.gauss(0, 1) / math.sqrt(2 * rng.gammavariate(1.5, 1.0))


def draw_outliers(rng: random.Random) -> Iterator[float]:
    """One night in fifty is off."""
    for move in draw_normal(rng):
        stray = rng.choice((-1, 1)) * rng.uniform(0.04, 0.15) if rng.random() < 0.02 else 0.0  # noqa: PLR2004
        yield move + stray


def draw_wandering(rng: random.Random) -> Iterator[float]:
    """The machine drifts from night to night."""
    noise_sd, level, keep = SD / math.sqrt(2), 0.0, 0.8
    while True:
        level = keep * level + math.sqrt(1 - keep**2) * rng.gauss(0, noise_sd)
        yield level + rng.gauss(0, noise_sd)


WORLDS: Mapping[str, Callable[[random.Random], Iterator[float]]] = {
    "normal": draw_normal,
    "heavy": draw_heavy,
    "outliers": draw_outliers,
    "wandering": draw_wandering,
}


def draw_year(rng: random.Random, world: str, size: float, at: int) -> list[float]:
    """A year of values, higher by ``size`` from a night on."""
    moves = WORLDS[world](rng)
    return [0.010 * math.exp(next(moves)) * (1 + size * (night >= at)) for night in range(NIGHTS)]


def find_ours(values: Sequence[float]) -> list[int]:
    """Find steps as `trend` does."""
    return [step.position for step in find_steps(METRIC, values)]


def find_otava(values: Sequence[float]) -> list[int]:
    """Find steps as otava does by default."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found] # noqa: PLC0415

    return [point.index for point in compute_change_points(list(values))[0]]


def judge(name: str, find: Find, options: argparse.Namespace) -> None:
    """Print a row for each world."""
    for world in WORLDS:
        rng = random.Random(f"{options.seed} {world}")  # noqa: S311 - noise
        alarms = sum(len(find(draw_year(rng, world, 0.0, 0))) for _ in range(options.years))
        figures_text = [f"{alarms / options.years:.3f} false alarms a year"]
        for size in SIZES:
            hits = 0
            for _ in range(options.steps):
                at = rng.randrange(30, NIGHTS - 30)
                hits += any(abs(step - at) <= NEAR for step in find(draw_year(rng, world, size, at)))
            rate = compute_rate(hits, options.steps)
            figures_text.append(f"+{size:.0%} {hits / options.steps:.1%} ({rate.low:.1%} to {rate.high:.1%})")
        print(f"{name:5} {world:9}: {', found of '.join(figures_text)}", flush=True)


def write_history(path: Path, runs: int, cases: int, seed: int) -> None:
    """Write a history: every tenth case gets 5 % slower in its middle, torch is upgraded twice."""
    rng, begun = random.Random(seed), datetime(2026, 1, 1, tzinfo=UTC)  # noqa: S311 - noise
    metrics = [metric for metric in Metric if metric in (*NOISY, *STILL)]
    for run in range(runs):
        by_world: dict[str, dict[Metric, Figures]] = {}
        for case in range(cases):
            slower = 1.05 if case % 10 == 0 and run >= runs // 2 else 1.0
            by_world[f"model_{case}/inference-float32-smoke-default"] = {
                metric: _draw_figures(rng, metric, slower) for metric in metrics
            }
        head = HistoryHead(
            id="",
            kind=HistoryKind.CHECK,
            created=(begun + timedelta(minutes=36 * run)).isoformat(timespec="seconds"),
            machine="cpu: generated data, 2 threads",
            commit=f"{run:040x}",
            torch=("2.11.0", "2.12.0", "2.13.0")[3 * run // runs],
        )
        append_line(path, make_history_line(head, by_world))


NOISY = {
    Metric.COMPILED_LATENCY: 0.010,
    Metric.EAGER_LATENCY: 0.020,
    Metric.WARM_SPEEDUP: 2.0,
    Metric.COLD_COMPILE_TIME: 12.0,
    Metric.WARM_COMPILE_TIME: 3.0,
    Metric.PEAK_MEMORY: 3e8,
    Metric.MEMORY_RATIO: 0.9,
    Metric.DRIFT: 0.1,
}
STILL = {
    Metric.GRAPH_BREAKS: 0.0,
    Metric.RECOMPILES: 0.0,
    Metric.UNIQUE_GRAPHS: 1.0,
    Metric.EAGER_FALLBACKS: 0.0,
}


def _draw_figures(rng: random.Random, metric: Metric, slower: float) -> Figures:
    if metric in STILL:
        return (STILL[metric],)
    centre = NOISY[metric] * math.exp(rng.gauss(0, SD)) * (slower if metric is METRIC else 1.0)
    return (centre, centre * 0.98, centre * 1.02)


def measure_scale(options: argparse.Namespace) -> int:
    """Write a large history and render it."""
    path, out = Path(options.scale) / "history.jsonl", Path(options.scale) / "site"
    write_history(path, options.runs, options.cases, options.seed)
    size = path.stat().st_size / 1e6
    began, used = time.perf_counter(), time.process_time()
    code = run_command(["trend", str(path), "--out", str(out)])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pages = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    print(
        f"{options.runs} runs x {options.cases} cases ({size:.0f} MB): {seconds:.1f} s, {processor:.1f} s of"
        f" CPU time, {peak:.0f} MiB at most, {pages:.1f} MB of pages"
    )
    return code


def main() -> int:
    """Judge steps, or measure the scale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--years", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--otava", action="store_true")
    parser.add_argument("--scale", metavar="DIRECTORY")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--cases", type=int, default=50)
    options = parser.parse_args()
    if options.scale:
        return measure_scale(options)
    judge("trend", find_ours, options)
    if options.otava:
        judge("otava", find_otava, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
