"""Simulates creep: many small changes of one case, each held against its own base, or against an anchor.

    python benchmarks/creep.py [--series 100] [--merges 20] [--step 0.015] [--cases 10] [--seed 1]

A series is so many merges in a row; at each of them every case runs in pairs, as ``ab`` does, through the
code that decides. One case gets slower by ``--step`` with each merge. Against its own base a merge shows
that step alone; a night's pairs with the anchor show all steps so far. In the last row nothing gets slower:
what is red there is a false alarm. Noise is that of pair_power.py, and each case keeps its own over a series.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pair_power import LIVE_SD, SHOWS, Request, Tally, describe_share, judge_ab, make_request

from gate.records import Metric, Status

OWN_BASE, ANCHOR = "own base", "the anchor"


@dataclass(frozen=True, kw_only=True)
class Series:
    """What came of the merges of one series: which were red for the case that creeps, which for others."""

    caught: tuple[bool, ...]
    alarms: tuple[bool, ...]


def simulate_series(request: Request, shown: Sequence[float]) -> Series:
    """Judge one merge after the other; ``shown`` is by how much its pairs differ, as a logarithm."""
    creeping = request.cases[0].id
    caught, alarms = [], []
    for difference in shown:
        one = replace(request, slower={creeping: difference} if difference else {})
        rows = [row for row in judge_ab(one, Tally()) if row.decides and row.status is Status.REGRESSED]
        red = {row.case_id for row in rows}
        caught.append(bool(difference) and creeping in red)
        alarms.append(bool(red - {creeping} if difference else red))
    return Series(caught=tuple(caught), alarms=tuple(alarms))


def list_shown(against: str, step: float, merges: int) -> list[float]:
    """List by how much head differs from what each merge is held against, on the logarithmic scale."""
    each = math.log1p(step)
    return [each * (merge if against == ANCHOR else 1) for merge in range(1, merges + 1)]


def describe_series(against: str, step: float, series: Sequence[Series]) -> str:
    """One row of the table."""
    total, nights = len(series), sum(len(one.alarms) for one in series)
    firsts = [one.caught.index(True) + 1 for one in series if any(one.caught)]
    first, slower = "-", "-"
    if firsts:
        middle = math.ceil(statistics.median(firsts))
        first = f"{middle} ({min(firsts)} to {max(firsts)})"
        slower = f"+{100 * ((1 + step) ** (middle if against == ANCHOR else 1) - 1):.1f} %"
    cells = (
        against,
        f"+{100 * step:g} %" if step else "nothing",
        describe_share(len(firsts), total) if step else "-",
        first,
        slower,
        describe_share(sum(any(one.alarms) for one in series), total),
        describe_share(sum(sum(one.alarms) for one in series), nights),
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| held against | slower at each merge | red at some merge | first red at merge | shown by then"
    " | series with a false alarm | merges with a false alarm |"
)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--merges", type=int, default=20)
    parser.add_argument("--step", type=float, default=0.015)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.__dict__.update(live_sd=LIVE_SD, trial_sd=None, compile_sd=None, slower=Metric.COMPILED_LATENCY)
    options.__dict__.update(shows=SHOWS[0], pair_s=1.0, pair_budget_s=math.inf)
    started = time.perf_counter()
    print(HEAD)
    print("|" + " --- |" * (HEAD.count("|") - 1))
    for against, step in ((OWN_BASE, options.step), (ANCHOR, options.step), (ANCHOR, 0.0)):
        rng = random.Random(f"{options.seed} {against} {step}")  # noqa: S311 - repeatable, not secret
        shown = list_shown(against, step, options.merges)
        series = [simulate_series(make_request(rng, options, 0.0), shown) for _ in range(options.series)]
        print(describe_series(against, step, series), flush=True)
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
