"""What leaving out disturbed calls does to live pairs: their changes with it and with all calls.

    python benchmarks/disturbed_pairs.py DIRECTORY/out/*/run.json

Takes recorded runs of unchanged code, or of code whose eager side is unchanged, that had pairs on a CPU. A
line for each latency of each case: how many pairs, how many of their pairs of blocks had undisturbed calls
in both arms, and the root of the mean square of their changes, of undisturbed calls and of all. The last
column is what the undisturbed blocks within a pair make one expect (a bootstrap of its blocks): where it is
as large as the changes are, more blocks take what more pairs do.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

from gate.decide.evidence.pairs import Pair, compare_latency, list_pairs
from gate.decide.stats import compute_hodges_lehmann
from gate.files import codec
from gate.metrics import LATENCIES
from gate.records.cases import Metric

RESAMPLES = 100


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    pairs: dict[str, list[Pair]] = {}
    for path in parser.parse_args().runs:
        for case_id, case_pairs in list_pairs(codec.RUN.load(path).trials).items():
            pairs.setdefault(case_id, []).extend(pair for pair in case_pairs if pair.is_live)
    print("| case | metric | pairs | blocks left | undisturbed calls | all calls | expected from blocks |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for metric in LATENCIES:
        for case_id, members in pairs.items():
            print(describe(case_id.split("/")[0], metric, members))
        print(describe("all", metric, [pair for members in pairs.values() for pair in members]))


def describe(name: str, metric: Metric, pairs: Sequence[Pair]) -> str:
    """One row."""
    changes = [list(list_changes(pair, metric)) for pair in pairs]
    blocks = sum(len(pair.base.samples.get(metric, ())) for pair in pairs)
    whole = [
        Pair(base=replace(pair.base, undisturbed_s={}), head=replace(pair.head, undisturbed_s={}))
        for pair in pairs
    ]
    cells = (
        name,
        metric.value,
        str(len(pairs)),
        f"{sum(map(len, changes)) / max(blocks, 1):.0%}",
        f"{compute_rms(compare(pairs, metric)):.1%}",
        f"{compute_rms(compare(whole, metric)):.1%}",
        f"{compute_rms([estimate_error(values) for values in changes if len(values) > 1]):.1%}",
    )
    return f"| {' | '.join(cells)} |"


def compare(pairs: Iterable[Pair], metric: Metric) -> list[float]:
    """Compute the change of each pair (logarithm)."""
    changes = (compare_latency(pair.base, pair.head, metric) for pair in pairs)
    return [change for change in changes if change is not None]


def list_changes(pair: Pair, metric: Metric) -> Iterator[float]:
    """List the changes of a pair's blocks that have undisturbed calls in both arms."""
    arms = pair.base.undisturbed_s.get(metric, ()), pair.head.undisturbed_s.get(metric, ())
    for base, head in zip(*arms, strict=False):
        if base > 0 and head > 0:
            yield math.log(head / base)


def estimate_error(changes: Sequence[float]) -> float:
    """Estimate the standard error of what these blocks say of a pair."""
    generator = random.Random(0)  # noqa: S311 - repeatable, not secret
    drawn = (generator.choices(changes, k=len(changes)) for _ in range(RESAMPLES))
    return stdev(map(compute_hodges_lehmann, drawn))


def compute_rms(values: Sequence[float]) -> float:
    """Compute the root of the mean square; of nothing, not a number."""
    return math.sqrt(fmean(value**2 for value in values)) if values else math.nan


if __name__ == "__main__":
    main()
