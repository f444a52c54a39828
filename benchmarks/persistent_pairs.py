"""Whether pairs of one check are more alike than those of different checks, by checks that were run anyway.

    python benchmarks/persistent_pairs.py DIRECTORY/out/unchanged-*/run.json

Takes recorded checks of the same commits, as ``complete_checks.py`` leaves them. Pairs of a check share its
compile, directories and servers; what all of that adds stays the same in each of them, and no number of pairs
averages it away. For each latency a line: the standard deviation of ln(head / base) within a check, what
differs between the checks of a case beyond that, and the F test of its being nothing, over all cases together
(each about its own mean over the checks). ``forked_pairs.py`` does the same with pairs of its own, and tells
what of it a new compile or other directories would change.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from scipy import stats

from gate.decide.evidence.pairs import compute_pair_changes, list_pairs
from gate.files import codec
from gate.metrics import LATENCIES
from gate.records import Metric, Run


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    runs = [codec.load_run(path) for path in parser.parse_args().runs]
    print("| latency | cases | checks of a case | pairs | within a check | between checks, more | F | p |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for metric in LATENCIES:
        print(describe(metric, collect(runs, metric)))


def collect(runs: Iterable[Run], metric: Metric) -> list[list[list[float]]]:
    """Collect the changes of the pairs: by case, then by check; of two pairs and two checks at least."""
    cases: dict[str, list[list[float]]] = {}
    for run in runs:
        for case_id, pairs in list_pairs(run).items():
            live = [pair for pair in pairs if pair.is_live]
            changes = [one[metric] for one in compute_pair_changes(live)]
            if len(changes) > 1:
                cases.setdefault(case_id, []).append(changes)
    return [checks for checks in cases.values() if len(checks) > 1]


def describe(metric: Metric, cases: Sequence[Sequence[Sequence[float]]]) -> str:
    """One row: the analysis of variance of checks within cases."""
    checks = [check for case in cases for check in case]
    pairs = sum(map(len, checks))
    if not checks:
        return f"| {metric.value} | 0 | | | | | | |"
    within_df, between_df = pairs - len(checks), len(checks) - len(cases)
    within = sum(sum_squares(check, fmean(check)) for check in checks) / within_df
    between = 0.0
    for case in cases:
        centre = fmean(change for check in case for change in check)
        between += sum(len(check) * (fmean(check) - centre) ** 2 for check in case)
    between /= between_df
    more = math.sqrt(max(0.0, (between - within) * len(checks) / pairs))
    ratio = between / within
    cells = (
        metric.value,
        str(len(cases)),
        f"{len(checks) / len(cases):.1f}",
        str(pairs),
        f"{100 * math.sqrt(within):.2f} %",
        f"{100 * more:.2f} %",
        f"{ratio:.2f} ({between_df} and {within_df})",
        f"{stats.f.sf(ratio, between_df, within_df):.2f}",
    )
    return f"| {' | '.join(cells)} |"


def sum_squares(values: Iterable[float], centre: float) -> float:
    """Sum the squares of what values are away from a centre."""
    return sum((value - centre) ** 2 for value in values)


if __name__ == "__main__":
    main()
