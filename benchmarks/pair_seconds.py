"""Where a pair's seconds go: of a first one that compiles, and of later ones that only time latencies.

    python benchmarks/pair_seconds.py bert/inference-float32-smoke-default --pairs 5

Both arms are of the same code. A line for each pair: the seconds of its wall time, and of each stage by
arm; stages of both arms overlap where nothing is timed. *Timed* is what was spent in blocks that count,
with the calls that lead them in.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from gate.lab.arms.arms import make_working_tree_arm
from gate.lab.trials.bench import LabSettings
from gate.lab.trials.opening import open_base_bench, open_bench, prime_bench
from gate.lab.trials.pairs import make_sides, measure_pair, plan_pair
from gate.project.config import apply_options, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Metric
from gate.records.protocol import Stage
from gate.records.run import BASE_ARM, Pairing, Trial
from gate.report.words.facts import describe_failure

TIMED = (Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """One pair: its wall time in seconds, and its trials."""

    wall_s: float
    trials: Sequence[Trial]

    @property
    def timed_s(self) -> float:
        """Seconds of both arms' rounds."""
        return sum(trial.stages_s.get(Stage.ROUNDS, 0.0) for trial in self.trials)


def main() -> None:
    """Measure, and print a line for each pair and the medians of the later ones."""
    options = parse_options()
    later = []
    for index, spent in enumerate(
        measure_pairs(options.case, options.pairs, LabSettings(out=options.out)), start=1
    ):
        later += [spent] if index > 1 else []
        print(describe_pair(index, spent), flush=True)
    print(describe_later(later))


def measure_pairs(selected: str, pairs: int, settings: LabSettings) -> Iterator[Spent]:
    """Measure live pairs of a case's latencies, this code in both arms: one that compiles, and more."""
    config = load_config(None)
    (case,) = choose_cases(apply_options(config, select=selected), load_cases(config)).cases
    with open_bench(make_working_tree_arm(Path.cwd()), replace(settings, threads=config.threads)) as bench:
        prime_bench(bench)
        base, _ = open_base_bench(bench, replace(bench.arm, name=BASE_ARM))
        sides = make_sides(base, bench, case, case)
        for index in range(1, pairs + 2):
            begun = time.monotonic()
            measured = measure_pair(sides, plan_pair(TIMED, index, "cpu", Pairing.LIVE))
            if measured.failures:
                sys.exit(describe_failure(measured.failures[0]))
            yield Spent(wall_s=time.monotonic() - begun, trials=measured.trials)


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case")
    parser.add_argument("--pairs", type=int, default=5, help="after the one that compiles")
    parser.add_argument("--out", type=Path, default=Path("pair-seconds"))
    return parser.parse_args()


def describe_pair(index: int, spent: Spent) -> str:
    """One line: the wall time, what was timed, and each arm's stages."""
    arms = (
        f"{trial.arm}: " + " ".join(f"{stage} {seconds:.2f}" for stage, seconds in trial.stages_s.items())
        for trial in spent.trials
    )
    return f"pair {index}: {spent.wall_s:.1f} s, timed {spent.timed_s:.1f} s; {'; '.join(arms)}"


def describe_later(later: Sequence[Spent]) -> str:
    """The medians of the pairs that compiled nothing."""
    wall_s, timed_s = median(pair.wall_s for pair in later), median(pair.timed_s for pair in later)
    return f"later pairs: {wall_s:.1f} s, timed {timed_s:.1f} s ({timed_s / wall_s:.0%})"


if __name__ == "__main__":
    main()
