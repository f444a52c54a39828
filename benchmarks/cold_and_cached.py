"""Whether a process that finds its compile in the caches times what one that compiled it times.

    python benchmarks/cold_and_cached.py tag:smoke --trials 12

Each turn measures a case's latencies twice, by the cold process of a trial and by a process that measures
latencies alone on the caches that the last cold one left; which goes first changes. The first cold process of
a case only fills the caches. For each case, and of all cases together, it prints of each metric

- the ratio of geometric means, cached to cold, with its 95 % t interval, of the turns' log ratios;
- the standard deviation of each kind, of logarithms: pooled over the cases;
- whether every process had the same generated code.

The interval of all cases holds for these cases. The one after it, over the cases' means, is for others too.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from gate.decide.evidence.values import compute_speedup
from gate.lab.arms.arms import make_working_tree_arm
from gate.lab.trials.bench import Bench, LabSettings, make_job, remove_cache, run_job, seed_cache
from gate.lab.trials.opening import open_bench, prime_bench
from gate.project.config import apply_options, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Case, Metric
from gate.records.protocol import WorkerResult, WorkerRole
from gate.report.words.facts import describe_failure

KINDS = {"cold": WorkerRole.COLD, "cached": WorkerRole.ROUNDS}
METRICS = (Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP)
CONFIDENCE = 0.95
MIN_TURNS = 3  # with fewer an interval says nothing

Turn = Mapping[str, Mapping[str, float | str]]  # by kind: each metric's value, and the code's digest


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean of logarithms with its standard error and degrees of freedom."""

    mean: float
    error: float
    df: int

    def describe(self) -> str:
        """The ratio and its interval in percent."""
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.df)) * self.error if self.df else math.inf
        low, centre, high = (100 * _expm1(self.mean + step) for step in (-half, 0.0, half))
        return f"{centre:+.2f} % ({low:+.2f} to {high:+.2f})"


def main() -> None:
    """Measure, write everything down after each turn, and print the tables."""
    options = parse_options()
    config = load_config(None)
    chosen = choose_cases(apply_options(config, select=options.cases), load_cases(config)).cases
    settings = LabSettings(out=options.out, threads=config.threads)
    measured: dict[str, list[Turn]] = {}
    with open_bench(make_working_tree_arm(Path.cwd()), settings) as bench:
        prime_bench(bench)
        for case in chosen:
            measured[case.id] = []
            measure_role(bench, case, WorkerRole.COLD, 0)
            for index in range(1, options.trials + 1):
                measured[case.id].append(measure_turn(bench, case, index))
                (options.out / "turns.json").write_text(json.dumps(measured))
                sys.stderr.write(f"{case.id} {index}/{options.trials}\n")
            print_table(case.id, [measured[case.id]])
    if len(measured) > 1:
        print_table(f"all {len(measured)} cases", list(measured.values()))


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", help="a selection, as of `compile-gate check --select`")
    parser.add_argument("--trials", type=int, default=12, help="of each kind and case")
    parser.add_argument("--out", type=Path, default=Path("cold-and-cached"))
    options = parser.parse_args()
    if options.trials < MIN_TURNS:
        parser.error(f"--trials is at least {MIN_TURNS}")
    return options


def measure_turn(bench: Bench, case: Case, index: int) -> Turn:
    """Measure one process of each kind; which is first changes from turn to turn."""
    kinds = list(KINDS.items())[:: 1 if index % 2 else -1]
    return {kind: measure_role(bench, case, role, index) for kind, role in kinds}


def measure_role(bench: Bench, case: Case, role: WorkerRole, index: int) -> dict[str, float | str]:
    """Measure a case's latencies by one process: one that compiles, or one on the last such one's caches."""
    caches = bench.get_kept_caches(case)
    seed_cache(bench, None if role is WorkerRole.COLD else caches)
    result = run_job(bench, make_job(bench, role, case, index))
    if not isinstance(result, WorkerResult):
        sys.exit(f"{case.id}: {describe_failure(result)}\n{result.log_tail}")
    if role is WorkerRole.COLD:
        shutil.rmtree(caches, ignore_errors=True)
        shutil.copytree(bench.trial_cache, caches, symlinks=True)
    remove_cache(bench)
    return summarize(result)


def summarize(result: WorkerResult) -> dict[str, float | str]:
    """Reduce a process to what a trial's judgement takes from it, and the code that it ran."""
    eager_s, compiled_s = (result.samples[metric] for metric in METRICS[:2])
    speedup = compute_speedup(eager_s, compiled_s)
    values = (statistics.median(eager_s), statistics.median(compiled_s), speedup or math.nan)
    return {**dict(zip(map(str, METRICS), values, strict=True)), "code": result.identity.digest}


def print_table(name: str, cases: Sequence[Sequence[Turn]]) -> None:
    """Print what differs between the kinds, over the turns of some cases."""
    codes = [len({str(turn[kind]["code"]) for turn in turns for kind in KINDS}) for turns in cases]
    same = "the same code in every process" if max(codes) == 1 else f"up to {max(codes)} different codes"
    sys.stdout.write(f"\n{name}, {len(cases[0])} turns a case, {same}\n")
    for metric in METRICS:
        logs = {kind: [_list_logs(turns, kind, metric) for turns in cases] for kind in KINDS}
        ratios = [_subtract(*both_logs) for both_logs in zip(logs["cached"], logs["cold"], strict=True)]
        sds = (100 * math.sqrt(_pool_variance(logs[kind])) for kind in KINDS)
        sys.stdout.write(
            f"  {metric:17} cached/cold {estimate_here(ratios).describe()}; "
            f"SD {' and '.join(f'{kind} {sd:.2f} %' for kind, sd in zip(KINDS, sds, strict=True))}"
            f"{_describe_others(ratios)}\n"
        )
    sys.stdout.flush()


def estimate_here(ratios: Sequence[Sequence[float]]) -> Estimate:
    """The mean over these cases' turns; its error is that of the turns within their cases. Pure."""
    turns = sum(map(len, ratios))
    error = math.sqrt(_pool_variance(ratios) / turns)
    return Estimate(mean=statistics.fmean(map(statistics.fmean, ratios)), error=error, df=turns - len(ratios))


def _describe_others(ratios: Sequence[Sequence[float]]) -> str:
    if len(ratios) == 1:
        return ""
    means = [statistics.fmean(values) for values in ratios]
    error = statistics.stdev(means) / math.sqrt(len(means))
    over = Estimate(mean=statistics.fmean(means), error=error, df=len(means) - 1)
    return f"; over cases {over.describe()}"


def _list_logs(turns: Sequence[Turn], kind: str, metric: Metric) -> list[float]:
    return [math.log(float(turn[kind][str(metric)])) for turn in turns]


def _subtract(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [first - other for first, other in zip(a, b, strict=True)]


def _pool_variance(groups: Sequence[Sequence[float]]) -> float:
    """The variance within groups of one size."""
    return statistics.fmean(map(statistics.variance, groups))


def _expm1(log: float) -> float:
    try:
        return math.expm1(log)
    except OverflowError:
        return math.inf


if __name__ == "__main__":
    main()
