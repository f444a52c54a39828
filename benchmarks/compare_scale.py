"""Times `compare` of a large run with a baseline run: 1,000 cases x 10 trials x 12 metrics by default.

    python benchmarks/compare_scale.py [--cases 1000] [--trials 10] [--blocks 30]

Prints one line a size (a quarter, a half and the whole) with the seconds of each step and the peak
memory of a fresh process. All but ``wall_s`` are processor seconds, imports included in ``cpu_s``, so
that other work on the machine does not count. Exits 1 when the whole misses 3 s or 400 MB, or when
the time a case grows by more than half from the quarter to the whole.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gate.decide import compute_values, decide_verdict
from gate.files.codec import load_run, save_run
from gate.measure.timing.rounds import SAMPLE_DECIMALS
from gate.metrics import SPECS
from gate.records import (
    Baseline,
    Case,
    Conditions,
    Environment,
    Metric,
    Policy,
    Provenance,
    Run,
    Trial,
)

MAX_SECONDS = 3.0
MAX_MEGABYTES = 400.0
MAX_GROWTH = 1.5
HOST = Environment(
    device_kind="cpu",
    device_model="a CPU",
    device_uuid="",
    driver="",
    clocks="",
    cpu="a CPU",
    cores=2,
    threads=2,
    isa="avx2",
    torch="2.13.0",
    triton="",
    cuda="",
    python="3.11",
    compiler="g++ 12",
)
# Typical value of each measured metric and its spread between trials; with the derived
# warm_speedup these are the twelve.
TYPICAL = {
    Metric.EAGER_LATENCY: (0.020, 0.02),
    Metric.COMPILED_LATENCY: (0.010, 0.02),
    Metric.COLD_COMPILE_TIME: (12.0, 0.02),
    Metric.WARM_COMPILE_TIME: (3.0, 0.02),
    Metric.PEAK_MEMORY: (4e8, 0.001),
    Metric.MEMORY_RATIO: (0.9, 0.001),
    Metric.DRIFT: (0.02, 0.1),
    Metric.GRAPH_BREAKS: (1.0, 0.0),
    Metric.RECOMPILES: (0.0, 0.0),
    Metric.UNIQUE_GRAPHS: (2.0, 0.0),
    Metric.COMPILE_CALLS: (4e6, 0.0005),
}
BLOCKED = (Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY)


def make_run(cases: int, trials: int, blocks: int, seed: int) -> Run:
    """A run of invented values with the spread that real ones have."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    plan = tuple(
        Case(id=f"model{n}/a", model=f"model{n}", factory="m:f", definition="d") for n in range(cases)
    )
    return Run(
        cases=plan,
        environment=HOST,
        provenance=Provenance(),
        trials=tuple(make_trial(case, index, blocks, rng) for case in plan for index in range(trials)),
        finished=True,
    )


def make_trial(case: Case, index: int, blocks: int, rng: random.Random) -> Trial:
    """One trial: as many samples of each latency as there are blocks, one of everything else."""
    samples = {
        metric: tuple(
            round(value * (1 + rng.gauss(0, spread)), SAMPLE_DECIMALS)
            for _ in range(blocks if metric in BLOCKED else 1)
        )
        for metric, (value, spread) in TYPICAL.items()
    }
    return Trial(
        case_id=case.id, index=index, samples=samples, conditions=Conditions(canaries_s={"loop": 1e-3})
    )


def make_baselines(run: Run) -> tuple[Baseline, ...]:
    """One baseline a case with one value per metric and trial."""
    by_case: dict[str, dict[Metric, list[float]]] = {}
    for trial in run.trials:
        for metric, value in compute_values(trial).items():
            by_case.setdefault(trial.case_id, {}).setdefault(metric, []).append(value)
    return tuple(
        Baseline(
            case_id=case.id,
            definition=case.definition,
            environment=run.environment,
            provenance=run.provenance,
            trials={metric: tuple(values) for metric, values in by_case[case.id].items()},
        )
        for case in run.cases
    )


def measure_compare(baseline: Path, candidate: Path) -> dict[str, float]:
    """Seconds of reading both files and of the decision, and this process's peak memory in MB."""
    started = time.perf_counter()
    imported = time.process_time()
    stored = make_baselines(load_run(baseline))
    run = load_run(candidate)
    loaded = time.process_time()
    policy = Policy(thresholds={metric: spec.threshold for metric, spec in SPECS.items()})
    verdict = decide_verdict(run, stored, policy)
    decided = time.process_time()
    return {
        "comparisons": len(verdict.comparisons),
        "load_s": loaded - imported,
        "decide_s": decided - loaded,
        "wall_s": time.perf_counter() - started,
        "cpu_s": decided,
        "peak_mb": read_peak_mb(),
    }


def read_peak_mb() -> float:
    """Peak resident memory of this process in MB; getrusage would report a larger parent's instead."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return float(line.split()[1]) / 1024


def run_size(cases: int, trials: int, blocks: int) -> dict[str, float]:
    """Write two runs of a size and compare them in a fresh process, which owes nothing to making them."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in ("baseline.json", "candidate.json")]
        for seed, path in enumerate(paths):
            save_run(make_run(cases, trials, blocks, seed), path)
        command = [sys.executable, __file__, "--compare", *map(str, paths)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> int:
    """Measure the three sizes and say whether the bounds hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=30, help="samples of each latency per trial")
    parser.add_argument("--compare", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compare:
        print(json.dumps(measure_compare(*options.compare)))
        return 0
    rows = []
    for cases in (options.cases // 4, options.cases // 2, options.cases):
        figures = run_size(cases, options.trials, options.blocks)
        rows.append(figures["cpu_s"] / cases)
        print(f"{cases} cases: " + ", ".join(f"{key} {value:.2f}" for key, value in figures.items()))
    growth = rows[-1] / rows[0]
    print(f"time a case, whole over quarter: {growth:.2f}")
    fits = figures["cpu_s"] < MAX_SECONDS and figures["peak_mb"] < MAX_MEGABYTES and growth < MAX_GROWTH
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main())
