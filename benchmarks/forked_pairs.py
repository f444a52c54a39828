"""Whether pairs of one check are more alike than pairs of different ones, since they share servers.

    python benchmarks/forked_pairs.py elementwise/inference-float32-smoke-default --checks 8 --pairs 4
        [--ways kept compiled swapped]

Each check opens servers and caches of its own for both arms, which are of the same code, compiles once,
and measures pairs of latencies: ``kept`` as a check does; ``compiled`` with a compile of each arm before each
pair; ``swapped`` with each arm's directories and caches given to the other after every pair. A check of each
way follows one of another. For each way and latency it prints the standard deviation of ln(head / base)
within a check, what differs between checks beyond that, and the F test of its being nothing.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from scipy import stats

from gate.decide.evidence.pairs import Pair, collect_paired
from gate.lab.arms.arms import make_working_tree_arm
from gate.lab.trials.bench import Bench, LabSettings
from gate.lab.trials.opening import open_base_bench, open_bench, prime_bench
from gate.lab.trials.pairs import Sides, make_sides, measure_pair, plan_pair
from gate.lab.workers.server_pool import ServerPool
from gate.project.config import apply_options, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Case, Metric
from gate.records.run import BASE_ARM, Pairing
from gate.report.words.facts import describe_failure

WAYS = ("kept", "compiled", "swapped")
TIMED = (Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY)


def main() -> None:
    """Measure, and print the tests."""
    options = parse_options()
    config = load_config(None)
    (case,) = choose_cases(apply_options(config, select=options.case), load_cases(config)).cases
    settings = LabSettings(out=options.out, threads=config.threads)
    checks: dict[str, list[list[dict[Metric, float]]]] = {way: [] for way in options.ways}
    with open_bench(make_working_tree_arm(Path.cwd()), settings) as bench:
        prime_bench(bench)
        for _ in range(options.checks):
            for way, done in checks.items():
                done.append(measure_check(bench, case, options.pairs, way))
    for way, done in checks.items():
        for metric in TIMED:
            print(f"{way}: {describe(metric, [[change[metric] for change in check] for check in done])}")


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case")
    parser.add_argument("--checks", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=4, help="of a check, after the one that compiles")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--out", type=Path, default=Path("forked-pairs"))
    return parser.parse_args()


def measure_check(bench: Bench, case: Case, pairs: int, way: str) -> list[dict[Metric, float]]:
    """Measure the pairs of one check; the change of each latency, ln(head / base), in each pair."""
    changes: list[dict[Metric, float]] = []
    with closing(ServerPool()) as pool:
        head = replace(bench, pool=pool)
        base, _ = open_base_bench(head, replace(head.arm, name=BASE_ARM))
        sides = make_sides(base, head, case, case)
        for arm in (sides.base, sides.head):
            shutil.rmtree(arm.trial_cache, ignore_errors=True)
        for index in range(1, pairs + 2):
            plan = plan_pair(TIMED, index, "cpu", Pairing.LIVE)
            if way == "compiled":
                plan = replace(plan, content=replace(plan.content, compiles=True))
            if way == "swapped":
                sides = swap_directories(sides)
            measured = measure_pair(sides, plan)
            if measured.failures:
                sys.exit(describe_failure(measured.failures[0]))
            arms = {trial.arm: trial for trial in measured.trials}
            paired = collect_paired([Pair(base=arms[BASE_ARM], head=arms[head.arm.name])])
            changes.append({metric: paired[metric].changes[0] for metric in TIMED})
            sys.stderr.write(f"{way}, pair {index} of {pairs + 1}: {changes[-1]}\n")
    return changes[1:]  # of the first the arms had compiled before they were timed


def swap_directories(sides: Sides) -> Sides:
    """Give each arm the directories of the other, with the caches in them."""
    base, head = sides.base, sides.head
    return replace(sides, base=replace(base, scratch=head.scratch), head=replace(head, scratch=base.scratch))


def describe(metric: Metric, checks: Sequence[Sequence[float]]) -> str:
    """Describe the variance of one latency's changes within and between checks."""
    within = statistics.fmean(statistics.variance(check) for check in checks)
    means = statistics.variance([statistics.fmean(check) for check in checks])
    between = max(0.0, means - within / len(checks[0]))
    tested = stats.f_oneway(*checks)
    return (
        f"{metric}: SD within a check {100 * math.sqrt(within):.2f} %, between checks "
        f"{100 * math.sqrt(between):.2f} % more, F {tested.statistic:.2f}, p {tested.pvalue:.3f}, "
        f"n {len(checks)} x {len(checks[0])}"
    )


if __name__ == "__main__":
    main()
