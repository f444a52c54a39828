"""Simulates whole bisections through the code that ships: how often the right commit is named.

    python benchmarks/bisect_errors.py [--commits 32] [--slower 0.10] [--bisections 250] [--seed 1]

Each bisection has the ends held against each other, each step told to be at the good end's level or at the
bad end's (one that 24 pairs leave open is skipped), and what was found held against the commit before it.

Pairs vary as drawn: normal noise of the row's standard deviation, with one pair in fifty off by 4 to 15 %, as
in benchmarks/draws.py. Right: the commit that has the slowdown, and seen again. Wrong: another one, and
seen again. The rest says that it could not tell. Intervals are exact, 95 %.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from functools import partial

from draws import POLICY, Drawer
from world_requests import make_measurer
from worlds import Fault, World

from gate.bisect.search import (
    OpenPairs,
    find_row,
    make_judge,
    rank_list,
    read_mark,
    search_first,
    settle_ends,
    settle_metric,
    settle_step,
)
from gate.decide.stats import compute_rate
from gate.records.cases import Metric
from gate.records.studies import Mark

CASE_ID = "m0/a"
METRIC = Metric.COMPILED_LATENCY
SDS = (0.006, 0.016, 0.020, 0.031, 0.048)
RIGHT, WRONG, UNTOLD = "right", "wrong", "could not tell"


def open_pairs(rng: random.Random, sd: float, slower: float) -> OpenPairs:
    """What measures one commit against another that is so much faster, and the run that it begins."""
    fault = Fault(metric=METRIC, amount=slower) if slower else Fault()
    drawer = Drawer(str(rng.random()), World(cases=1, pair_sd=sd, spread=0.0), fault)
    run = drawer.make_run(has_base=True)
    return OpenPairs(measurer=make_measurer(drawer), run=run, limit_s=math.inf)


def bisect_once(rng: random.Random, sd: float, slower: float, commits: int) -> tuple[str, int]:
    """One bisection: what came of it, and all the pairs that it took."""
    first = rng.randint(1, commits)
    ends = settle_ends(open_pairs(rng, sd, slower), POLICY, METRIC)
    row, pairs = find_row(ends, POLICY, METRIC), ends.pair_counts[CASE_ID]
    if row is None or read_mark(row) is not Mark.BAD:
        return UNTOLD, pairs
    judge = make_judge(ends, POLICY, row)

    def ask(point: str) -> Mark:
        nonlocal pairs
        pair_run = open_pairs(rng, sd, slower if int(point) >= first else 0.0)
        run, mark = settle_step(pair_run, judge)
        pairs += run.pair_counts[CASE_ID]
        return mark or Mark.SKIP

    points = [str(number) for number in range(commits + 1)]
    candidates = search_first(partial(rank_list, points), points[0], points[-1], ask, {})
    if candidates is None or len(candidates) > 1:
        return UNTOLD, pairs
    named = int(next(iter(candidates)))
    pair = open_pairs(rng, sd, slower if named == first else 0.0)
    run = settle_metric(pair, judge.policy, judge.metric)
    pairs += run.pair_counts[CASE_ID]
    if read_mark(find_row(run, judge.policy, METRIC)) is not Mark.BAD:
        return UNTOLD, pairs
    return RIGHT if named == first else WRONG, pairs


def describe(count: int, total: int) -> str:
    """A share with its interval."""
    rate = compute_rate(count, total)
    return f"{count / total:6.1%} ({rate.low:.1%} to {rate.high:.1%})"


def main() -> int:
    """Print a row for each noise of pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commits", type=int, default=32)
    parser.add_argument("--slower", type=float, default=0.10)
    parser.add_argument("--bisections", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.bisections} bisections of {options.commits} commits, {options.slower:.0%} slower")
    for sd in SDS:
        rng = random.Random(f"{options.seed} {sd}")  # noqa: S311 - noise
        ends = [bisect_once(rng, sd, options.slower, options.commits) for _ in range(options.bisections)]
        tally = Counter(end for end, _ in ends)
        shares = ", ".join(f"{name} {describe(tally[name], len(ends))}" for name in (RIGHT, WRONG, UNTOLD))
        print(
            f"pairs vary by {sd:.1%}: {shares}; {sum(pairs for _, pairs in ends) / len(ends):.0f} pairs each"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
