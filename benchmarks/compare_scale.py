"""What large runs cost: seconds of processor time and peak memory of each step, by the number of cases.

    python benchmarks/compare_scale.py [--cases 250 1000 5000 20000] [--trials 10] [--blocks 30]

Runs are invented: 12 metrics, with the spread that real ones have. Each step is a fresh process, imports
included in its memory and not in its seconds; one that takes longer than --limit seconds is ended and told as
such. `estimate` is milliseconds for one more trial in the middle of the run: what the line of progress adds
to it. Exits 1 when 1,000 cases miss 3 s or 400 MB to load and decide, 20,000
miss 60 s or 2 GB, or when a case of the largest size takes twice what one of the smallest does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from gate.check.measurer import LaneMeasurer
from gate.check.schedule import want_whole
from gate.check.work import Answer, Unit, UnitResult
from gate.cli import main as run_command
from gate.cli.output import append_run
from gate.decide.evidence.values import compute_values
from gate.decide.verdict import decide_verdict
from gate.errors import InterruptedRunError
from gate.files.codec import RUN, VERDICT
from gate.metrics import SPECS
from gate.project.config import make_default_config
from gate.records.cases import Case, Metric, Policy
from gate.records.events import ignore_event
from gate.records.run import Baseline, Conditions, Environment, Place, Provenance, Run, Trial
from gate.report import FORMATS, render
from gate.store.baselines import encode_baseline, load_baselines
from gate.store.history import HistoryKind

SIZES = (250, 1000, 5000, 20_000)
# Seconds and MB to load a run and to decide on it, by the number of cases.
BOUNDS = {1000: (3.0, 400.0), 20_000: (60.0, 2048.0)}
MAX_GROWTH = 2.0
SHARDS = 4
RUN_FILE, BASELINES, COMPARED = "run.json", "baselines", "compared"
SAMPLE_DECIMALS = 10  # as the lab rounds; to ask it would import torch
ONE_MORE = 20  # trials that are added, for the mean of one
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


def write_size(directory: Path, cases: int, trials: int, blocks: int) -> None:
    """Write the files of a size that the steps begin with: baselines, a run, its shards, its verdict."""
    baselines = make_baselines(make_run(cases, trials, blocks, seed=0))
    for number, one in enumerate(baselines):
        path = directory / BASELINES / "cpu" / f"model{number}" / "a.json"
        path.parent.mkdir(parents=True)
        path.write_text(encode_baseline(one))
    run = make_run(cases, trials, blocks, seed=1)
    RUN.save(run, directory / RUN_FILE)
    for number in range(SHARDS):
        own = run.cases[number::SHARDS]
        ids = {case.id for case in own}
        part = replace(run, cases=own, trials=tuple(one for one in run.trials if one.case_id in ids))
        RUN.save(part, directory / f"shard{number}.json")


def load(directory: Path) -> float:
    """Load the run."""
    begun = time.process_time()
    RUN.load(directory / RUN_FILE)
    return time.process_time() - begun


def decide(directory: Path) -> float:
    """Decide on the loaded run by the loaded baselines."""
    run, baselines = RUN.load(directory / RUN_FILE), load_baselines(directory / BASELINES)
    policy = Policy(thresholds={metric: spec.threshold for metric, spec in SPECS.items()})
    begun = time.process_time()
    decide_verdict(run, baselines, policy)
    return time.process_time() - begun


def compare(directory: Path) -> float:
    """Run the command `compare`, with all that it writes."""
    return call("compare", directory / BASELINES, directory / RUN_FILE, "--out", directory / COMPARED)


def merge(directory: Path) -> float:
    """Run the command `merge` on four shards."""
    shards = (directory / f"shard{number}.json" for number in range(SHARDS))
    return call("merge", *shards, "--out", directory / "merged")


def report(directory: Path) -> float:
    """Load what `compare` decided and render every report."""
    begun = time.process_time()
    verdict = VERDICT.load(directory / COMPARED / "verdict.json")
    for name in FORMATS:
        render(verdict, name)
    return time.process_time() - begun


def append(directory: Path) -> float:
    """Append the loaded run to a history."""
    run = RUN.load(directory / RUN_FILE)
    config = replace(make_default_config(), history=directory / "history.jsonl")
    begun = time.process_time()
    append_run(config, run, HistoryKind.CHECK)
    return time.process_time() - begun


def save(directory: Path) -> float:
    """Save the loaded run."""
    run = RUN.load(directory / RUN_FILE)
    begun = time.process_time()
    RUN.save(run, directory / "saved.json")
    return time.process_time() - begun


def estimate(directory: Path) -> float:
    """Estimate what is left after half of the run, before and after each trial as the lab does."""
    first, *_ = grow(directory)
    engine = InstantLane()
    measurer = LaneMeasurer(engine=engine, save=lambda _: None, keep=lambda _: None, observe=ignore_event)
    with contextlib.suppress(InterruptedRunError):
        measurer.add_trials(
            first, want_whole(case.id for case in first.cases), 2 * len(first.trials) // len(first.cases)
        )
    return (engine.asked_s[-1] - engine.asked_s[0]) / (len(engine.asked_s) - 1)


class InstantLane:
    """A lane that gives a trial at once, ONE_MORE times, and is interrupted then."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        self._unit: Unit | None = None

    def list_lanes(self) -> dict[str, Place]:
        """The one."""
        place = Place(host="host", device="", cores="0-1")
        return {place.name: place}

    def read_s(self) -> float:
        """Read the clock."""
        return time.monotonic()

    def submit(self, lane: str, unit: Unit) -> None:
        """Remember what is asked, and when."""
        del lane
        self.asked_s.append(time.process_time())
        self._unit = unit

    def wait(self, limit_s: float) -> Answer:
        """Give the trial."""
        del limit_s
        if self._unit is None or len(self.asked_s) > ONE_MORE:
            raise KeyboardInterrupt
        trial = Trial(case_id=self._unit.run.cases[0].id, index=self._unit.index)
        return Answer(lane=next(iter(self.list_lanes())), part=UnitResult(trials=(trial,)))

    def end(self, lane: str) -> None:
        """Do nothing: it always answers."""


def grow(directory: Path) -> list[Run]:
    """Half of the run, unfinished, and what becomes of it trial by trial."""
    whole = RUN.load(directory / RUN_FILE)
    half = len(whole.trials) // 2
    return [replace(whole, finished=False, trials=whole.trials[: half + more]) for more in range(ONE_MORE)]


def call(*arguments: str | Path) -> float:
    """Call the command line, whose output is of no interest; return its seconds."""
    begun = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        run_command(list(map(str, arguments)))
    return time.process_time() - begun


STEPS = {step.__name__: step for step in (load, decide, compare, merge, report, append, save, estimate)}
PER_TRIAL = ("estimate",)


def read_peak_mb() -> float:
    """Peak resident memory of this process in MB; getrusage would report a larger parent's instead."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return float(line.split()[1]) / 1024


def measure_step(name: str, directory: Path, limit_s: float) -> tuple[float, float] | None:
    """Seconds and MB of a step in a process of its own; ``None`` where it failed or took too long."""
    command = [sys.executable, __file__, "--step", name, str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=True)
    except subprocess.TimeoutExpired:
        print(f"{name}: not done in {limit_s:.0f} s", file=sys.stderr)
        return None
    except subprocess.CalledProcessError as error:
        print(f"{name}: {error}\n{error.stderr}", file=sys.stderr)
        return None
    seconds, peak_mb = json.loads(done.stdout)
    return seconds, peak_mb


def write_row(name: str, found: list[tuple[float, float] | None]) -> str:
    """A row of the table: seconds, or milliseconds a trial, and MB of each size."""
    factor, unit = (1000, " ms") if name in PER_TRIAL else (1, " s")
    cells = [f"{one[0] * factor:.2f}{unit}, {one[1]:.0f} MB" if one else "-" for one in found]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> int:
    """Measure each size and say whether the bounds hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, nargs="+", default=SIZES)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=30, help="samples of each latency per trial")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="of each step")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        seconds = STEPS[options.step[0]](Path(options.step[1]))
        print(json.dumps([seconds, read_peak_mb()]))
        return 0
    table: dict[str, list[tuple[float, float] | None]] = {name: [] for name in STEPS}
    for cases in options.cases:
        with tempfile.TemporaryDirectory() as directory:
            write_size(Path(directory), cases, options.trials, options.blocks)
            for name, row in table.items():
                row.append(measure_step(name, Path(directory), options.limit))
                print(f"{cases} cases: {write_row(name, row[-1:])}", file=sys.stderr, flush=True)
    print(f"| step | {' | '.join(f'{cases:,} cases' for cases in options.cases)} |")
    print("|---" * (len(options.cases) + 1) + "|")
    for name, row in table.items():
        print(write_row(name, row))
    return 0 if holds_bounds(options.cases, table) else 1


def holds_bounds(sizes: list[int], table: dict[str, list[tuple[float, float] | None]]) -> bool:
    """Whether everything was done, within its bounds, and linear."""
    if not all(map(all, table.values())):
        return False
    judged = [
        [table[name][index] or (0.0, 0.0) for name in ("load", "decide")] for index in range(len(sizes))
    ]
    costs = [sum(seconds for seconds, _ in one) / cases for cases, one in zip(sizes, judged, strict=True)]
    fits = (
        cost * cases <= BOUNDS[cases][0] and max(peak for _, peak in one) <= BOUNDS[cases][1]
        for cases, cost, one in zip(sizes, costs, judged, strict=True)
        if cases in BOUNDS
    )
    return all(fits) and costs[-1] <= MAX_GROWTH * costs[0]


if __name__ == "__main__":
    sys.exit(main())
