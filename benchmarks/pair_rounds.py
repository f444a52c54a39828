"""How many rounds a live pair needs: what more of them take from the variance between pairs.

    python benchmarks/pair_rounds.py bert/inference-float32-smoke-default --pairs 12 [--block-ms 10]

Both arms are of the same code, so every change that a pair shows is noise. What is printed for each number
of super-blocks is the standard deviation of that change over the pairs, compiled's and eager's, when only
the first so many of a pair are looked at, and the seconds that they took. Variance that stays however many
there are is between processes: there only more pairs help. After Kalibera and Jones, "Rigorous benchmarking
in reasonable time" (ISMM 2013): repeat at the level that varies, by its cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median, stdev
from unittest.mock import patch

from pair_seconds import Spent, measure_pairs

from gate.decide.evidence.pairs import Pair, collect_paired
from gate.devices import CPU, KINDS
from gate.lab.trials.bench import LabSettings
from gate.lab.workers import turns
from gate.records.cases import Metric
from gate.records.protocol import BLOCKS_PER_ARM, Sampling
from gate.records.run import BASE_ARM, Trial

BLOCKS_PER_SIDE = 2  # of a super-block
LOOKED_AT = (1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
LATENCIES = (Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP)


def main() -> None:
    """Measure, and print the table."""
    options = parse_options()
    settings = LabSettings(out=options.out, sampling=Sampling(super_blocks=options.super_blocks))
    kind = replace(CPU, live_block_s=options.block_ms / 1000)
    all_rounds = patch.object(turns, "has_enough_rounds", has_all_rounds)
    with patch.dict(KINDS, {CPU.name: kind}), all_rounds:
        measured = list(measure_pairs(options.case, options.pairs, settings))[1:]
    print("| super-blocks | seconds of a pair | compiled varies by | eager | speedup |")
    print("| --- | --- | --- | --- | --- |")
    for super_blocks in (number for number in LOOKED_AT if number <= options.super_blocks):
        print(describe(measured, super_blocks, options.super_blocks))


def has_all_rounds(base_s: Sequence[float], _head_s: Sequence[float], *, wanted: int, **_: float) -> bool:
    """Whether a pair has the rounds that are asked for, whatever they tell."""
    return len(base_s) >= BLOCKS_PER_ARM * wanted


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case")
    parser.add_argument("--pairs", type=int, default=12, help="after the one that compiles")
    parser.add_argument("--super-blocks", type=int, default=30, help="of each pair")
    parser.add_argument("--block-ms", type=float, default=1000 * CPU.live_block_s, help="of both arms")
    parser.add_argument("--out", type=Path, default=Path("pair-rounds"))
    return parser.parse_args()


def describe(measured: Sequence[Spent], super_blocks: int, of: int) -> str:
    """One row: what the pairs would have shown with the first so many super-blocks alone."""
    paired = collect_paired([_cut(pair.trials, super_blocks) for pair in measured])
    seconds = median(pair.wall_s - pair.timed_s * (1 - super_blocks / of) for pair in measured)
    varies = (f"{stdev(paired[metric].changes):.2%}" for metric in LATENCIES)
    return f"| {super_blocks} | {seconds:.1f} | {' | '.join(varies)} |"


def _cut(trials: Sequence[Trial], super_blocks: int) -> Pair:
    blocks = super_blocks * BLOCKS_PER_SIDE

    def cut_times(times: Mapping[Metric, tuple[float, ...]]) -> dict[Metric, tuple[float, ...]]:
        return {metric: values[:blocks] for metric, values in times.items()}

    cut = {
        trial.arm: replace(
            trial, samples=cut_times(trial.samples), undisturbed_s=cut_times(trial.undisturbed_s)
        )
        for trial in trials
    }
    base = cut.pop(BASE_ARM)
    (head,) = cut.values()
    return Pair(base=base, head=head)


if __name__ == "__main__":
    main()
