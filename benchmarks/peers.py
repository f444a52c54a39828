"""What the rules of other tools say of the same draws: red of unchanged code, caught of one slower case.

    python benchmarks/peers.py [--worlds quiet wandering ...] [--requests 100] [--seed 1]

Rules of compiled latency alone, on the worlds of ``decide_worlds.py``. A cell is ``red / caught`` at +5, +10
and +30 %, in percent of requests of eight cases: red where any case is, though nothing changed; caught where
the slower one is. Rules that need history get a sitting a night: 6 to 38 before the change, 1 to 12 after it.

- *pytest-benchmark*, ``--benchmark-compare-fail=mean:10%``: against a saved run, or the base in the same job.
- *github-action-benchmark*, ``alert-threshold`` of 200 % (its default) and of 110 %.
- *rustc-perf*: the least of three runs, against the third quartile of 29 earlier changes and three times the
  range between the quartiles.
- *nvbench_compare*: the change against the smaller of both runs' noise, in the same job. What samples of one
  process vary by is assumed: as much as pairs of the world do.
- *PyTorch's dashboard*: the geometric mean of speedups below 0.95 of the best of six nights, twice in a row.
- *Perfherder*: t above 7 of 12 runs after against 24 before, newer ones weighing more, and more than 2 %.
- *Otava*: change points at p < 0.001 in 38 runs before and 12 after. It needs ``pip install apache-otava``.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean, quantiles, variance

from draws import Drawer
from worlds import COMPILED, EAGER, FAULTS, NOTHING, WORLDS, Fault

from gate.records.cases import Metric

OTAVA = "Otava"
CHOSEN = ("quiet", "cpu", "wandering", "busy", "heavy-tails", "two-speeds", "slower-8")
SLOWER = (0.05, 0.10, 0.30)
LEAST_SPEEDUP = 0.95  # of the dashboard
LEAST_T, LEAST_RATIO = 7.0, 1.02  # of Perfherder
Rule = Callable[[Drawer], Sequence[bool]]  # whether each case is red


def main() -> int:
    """Print a row for each rule."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=CHOSEN, metavar="WORLD")
    parser.add_argument("--requests", type=int, default=100, help="of each world and change")
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES), metavar="RULE")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if OTAVA in options.rules and importlib.util.find_spec("otava") is None:
        print("Otava is left out: pip install apache-otava", file=sys.stderr)
        options.rules.remove(OTAVA)
    print(f"| rule | {' | '.join(options.worlds)} |\n|{' --- |' * (len(options.worlds) + 1)}")
    for name in options.rules:
        cells = (judge_world(RULES[name], world, options) for world in options.worlds)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


def judge_world(rule: Rule, world: str, options: argparse.Namespace) -> str:
    """How often one rule is red without a change, and catches each size."""
    faults = [FAULTS[NOTHING], *(Fault(metric=COMPILED, amount=slower) for slower in SLOWER)]
    cells = []
    for fault in faults:
        hits = 0
        for number in range(options.requests):
            drawer = Drawer(f"{options.seed} {world} peers {number}", WORLDS[world], fault)
            red = rule(drawer)
            hits += red[0] if drawer.faulty else any(red)
        cells.append(f"{100 * hits / options.requests:.0f}")
    return f"{cells[0]} / {' '.join(cells[1:])}"


def draw_runs(
    drawer: Drawer, nights: range, *, is_head: bool, trials: int = 1, metric: Metric = COMPILED
) -> list[list[float]]:
    """The seconds of a call for each case: of so many nights, the trials of each in a row."""
    seconds: dict[str, list[float]] = {case.id: [] for case in drawer.cases}
    for night in nights:
        for trial in drawer.draw_sitting(trials, is_head=is_head, night=night):
            seconds[trial.case_id] += trial.samples[metric]
    return list(seconds.values())


def compare_stored(drawer: Drawer) -> list[float]:
    """Each case's latency over that of a stored run, of another sitting."""
    before, after = (draw_runs(drawer, range(1), is_head=is_head) for is_head in (False, True))
    return [new[0] / old[0] for old, new in zip(before, after, strict=True)]


def compare_same_job(drawer: Drawer) -> list[float]:
    """Each case's latency over that of the base, which ran before it in the same sitting."""
    still = Drawer(drawer.seed, drawer.world, FAULTS[NOTHING])
    before, after = (draw_runs(source, range(1), is_head=True, trials=2) for source in (still, drawer))
    return [new[1] / old[0] for old, new in zip(before, after, strict=True)]


def judge_ratio(compare: Callable[[Drawer], Sequence[float]], limit: float, drawer: Drawer) -> list[bool]:
    """Whether each case takes more than ``limit`` times as long."""
    return [ratio > limit for ratio in compare(drawer)]


def judge_quartiles(drawer: Drawer) -> list[bool]:
    """rustc-perf's significance threshold."""
    before = draw_runs(drawer, range(1, 31), is_head=False, trials=3)
    after = draw_runs(drawer, range(1), is_head=True, trials=3)
    red = []
    for old, new in zip(before, after, strict=True):
        nights = [min(old[start : start + 3]) for start in range(0, len(old), 3)]
        changes = [abs(now / then - 1) for then, now in pairwise(nights)]
        low, _, high = quantiles(changes, n=4, method="inclusive")
        red.append(min(new) / nights[-1] - 1 > high + 3 * (high - low))
    return red


def judge_noise(drawer: Drawer) -> list[bool]:
    """nvbench_compare: a change beyond the smaller noise fails."""
    rng = random.Random(f"{drawer.seed} noise")  # noqa: S311 - repeatable, not secret
    noises = [drawer.world.pair_sd * min(rng.uniform(0.7, 1.4), rng.uniform(0.7, 1.4)) for _ in drawer.cases]
    changes = compare_same_job(drawer)
    return [ratio - 1 > noise for ratio, noise in zip(changes, noises, strict=True)]


def judge_dashboard(drawer: Drawer) -> list[bool]:
    """PyTorch's dashboard: one figure for all cases."""
    best = max(_list_speedups(drawer, range(1, 7), is_head=False))
    last = [speedup / best < LEAST_SPEEDUP for speedup in _list_speedups(drawer, range(1, 5), is_head=True)]
    return [last[-1] and last[-2]] * len(drawer.cases)


def _list_speedups(drawer: Drawer, nights: range, *, is_head: bool) -> Iterator[float]:
    """The geometric mean of all cases' speedups of each night."""
    compiled, eager = (
        draw_runs(drawer, nights, is_head=is_head, metric=metric) for metric in (COMPILED, EAGER)
    )
    for night in range(len(nights)):
        pairs = zip(compiled, eager, strict=True)
        yield math.exp(fmean(math.log(slow[night] / fast[night]) for fast, slow in pairs))


def judge_t(drawer: Drawer) -> list[bool]:
    """Perfherder's weighted t, of each case."""
    before = draw_runs(drawer, range(1, 25), is_head=False)
    after = draw_runs(drawer, range(1, 13), is_head=True)
    weights = [2 * (number + 1) / (24 * 25) for number in range(24)]
    red = []
    for old, new in zip(before, after, strict=True):
        mean = sum(weight * value for weight, value in zip(weights, old, strict=True))
        spread = sum(weight * (value - mean) ** 2 for weight, value in zip(weights, old, strict=True))
        spread /= 1 - sum(weight**2 for weight in weights)
        t = (fmean(new) - mean) / math.sqrt(spread / len(old) + variance(new) / len(new))
        red.append(t > LEAST_T and fmean(new) / mean > LEAST_RATIO)
    return red


def judge_change_points(drawer: Drawer) -> list[bool]:
    """Otava's change points: one that gets slower, at the change or up to three runs before it."""
    otava = importlib.import_module("otava.analysis")
    before = draw_runs(drawer, range(1, 39), is_head=False)
    after = draw_runs(drawer, range(1, 13), is_head=True)
    red = []
    for old, new in zip(before, after, strict=True):
        points, _ = otava.compute_change_points([*old, *new], 50, 0.001, 0.0)
        red.append(
            any(point.index >= len(old) - 3 and point.stats.mean_2 > point.stats.mean_1 for point in points)
        )
    return red


RULES: Mapping[str, Rule] = {
    "pytest-benchmark mean:10%, saved run": partial(judge_ratio, compare_stored, 1.10),
    "pytest-benchmark mean:10%, base in the same job": partial(judge_ratio, compare_same_job, 1.10),
    "github-action-benchmark 200%": partial(judge_ratio, compare_stored, 2.0),
    "github-action-benchmark 110%": partial(judge_ratio, compare_stored, 1.10),
    "rustc-perf": judge_quartiles,
    "nvbench_compare": judge_noise,
    "PyTorch's dashboard": judge_dashboard,
    "Perfherder": judge_t,
    OTAVA: judge_change_points,
}

if __name__ == "__main__":
    sys.exit(main())
