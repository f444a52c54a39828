"""Simulates whole bisections through the code that ships: how often the right commit is named.

    python benchmarks/bisect_errors.py [--commits 32] [--slower 0.10] [--bisections 300] [--seed 1]

Each bisection has the ends held against each other, half of what was seen as the threshold, each step
settled by at most 16 pairs (a step that they leave open is skipped), and what was found held against the
commit before it. Pairs vary as drawn: normal noise of the row's standard deviation, with one pair in fifty
off by 4 to 15 %, as in benchmarks/pair_power.py. Right: the commit that has the slowdown, and seen again.
Wrong: another one, and seen again. The rest says that it could not tell. Intervals are exact, 95 %.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pair_power import POLICY, Request, Temper, make_rehearsal, make_run

from gate.check import check_pairs, count_pairs
from gate.check.bisect import ListSearch, make_suspect, read_mark, search_first, split_difference
from gate.decide import judge_pairs
from gate.decide.stats.rate import compute_rate
from gate.records import Case, Comparison, Metric, Policy
from gate.records.bisection import Mark

CASE = Case(id="m/a", model="m", factory="m:f", definition="d")
METRIC = Metric.COMPILED_LATENCY
SDS = (0.006, 0.016, 0.031, 0.048)
RIGHT, WRONG, UNTOLD = "right", "wrong", "could not tell"


def hold(rng: random.Random, sd: float, slower: float, policy: Policy) -> tuple[Comparison | None, int]:
    """Hold one commit against another that is so much faster; the comparison, and the pairs it took."""
    temper = Temper(common=0.0, own=0.0, process=0.0, compile_sd=0.03, live_sd=sd, compile_pair_sd=0.03)
    moved: Mapping[str, float] = {CASE.id: math.log1p(slower)} if slower else {}
    request = Request(rng=rng, cases=(CASE,), tempers={CASE.id: temper}, slower=moved)
    suspects = (make_suspect(CASE.id, METRIC),)
    checked = check_pairs(make_rehearsal(request, ()), make_run(request, ()), policy, math.inf, suspects)
    rows = judge_pairs(checked.run, policy, suspects)
    row = next((one for one in rows if one.metric is METRIC), None)
    return row, count_pairs(checked.run, CASE.id)


def bisect_once(rng: random.Random, sd: float, slower: float, commits: int) -> tuple[str, int]:
    """One bisection: what came of it, and all the pairs that it took."""
    first = rng.randint(1, commits)
    row, pairs = hold(rng, sd, slower, POLICY)
    if row is None or read_mark(row) is not Mark.BAD:
        return UNTOLD, pairs
    policy = split_difference(replace(POLICY), row)

    def ask(point: str) -> Mark:
        nonlocal pairs
        asked, more = hold(rng, sd, slower if int(point) >= first else 0.0, policy)
        pairs += more
        return read_mark(asked)

    candidates = search_first(ListSearch(points=[str(number) for number in range(commits + 1)]), ask, {})
    if len(candidates) > 1:
        return UNTOLD, pairs
    found = int(candidates[0])
    again, more = hold(rng, sd, slower if found == first else 0.0, policy)
    if read_mark(again) is not Mark.BAD:
        return UNTOLD, pairs + more
    return RIGHT if found == first else WRONG, pairs + more


def describe(count: int, total: int) -> str:
    """A share with its interval."""
    rate = compute_rate(count, total)
    return f"{count / total:6.1%} ({rate.low:.1%} to {rate.high:.1%})"


def main() -> int:
    """Print a row for each noise of pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commits", type=int, default=32)
    parser.add_argument("--slower", type=float, default=0.10)
    parser.add_argument("--bisections", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.bisections} bisections of {options.commits} commits, {options.slower:.0%} slower")
    for sd in SDS:
        rng = random.Random(f"{options.seed} {sd}")  # noqa: S311 - noise
        ends = [bisect_once(rng, sd, options.slower, options.commits) for _ in range(options.bisections)]
        tally = Counter(end for end, _ in ends)
        told = ", ".join(f"{name} {describe(tally[name], len(ends))}" for name in (RIGHT, WRONG, UNTOLD))
        print(f"pairs vary by {sd:.1%}: {told}; {sum(pairs for _, pairs in ends) / len(ends):.0f} pairs each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
