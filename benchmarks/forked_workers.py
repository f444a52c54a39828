"""Whether a forked worker measures what a process of its own measures.

    python benchmarks/forked_workers.py elementwise/inference-float32-smoke-default --trials 40 [--cold]

Measures whole trials (a cold and a warm process, or with ``--cold`` the cold one alone) of unchanged code, in
turn with processes of their own and with forked ones; the server that forks is replaced after every few
trials. For each metric it prints

- the ratio of neighbours, forked to fresh, with its 95 % t interval (of logarithms);
- the ratio of the standard deviations, and the p of equal spread (Brown and Forsythe 1974);
- whether ratios of one server are more alike than those of different ones: the p of a one-way ANOVA. (Not
  the forked trials themselves: on a machine that wanders, five in a row are alike whoever forks them.)

What is counted must be equal in every trial, and is told otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from scipy import stats

from gate.lab.arms.arms import make_working_tree_arm
from gate.lab.trials.bench import Bench, LabSettings, make_job, remove_cache, seed_cache
from gate.lab.trials.opening import open_bench, prime_bench
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import run_worker
from gate.project.config import apply_options, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Case
from gate.records.protocol import WorkerResult, WorkerRole
from gate.report.words.facts import describe_failure, describe_measuring

TRIALS_PER_SERVER = 5
KINDS = ("fresh", "forked")
ROLES = (WorkerRole.COLD, WorkerRole.WARM)
CONFIDENCE = 0.95
ALIKE = 1e-12  # values that differ by less, relatively, are one

Trial = Mapping[str, float]


def main() -> None:
    """Measure, write everything down, and print the table."""
    options = parse_options()
    config = load_config(None)
    chosen = choose_cases(apply_options(config, select=options.cases), load_cases(config)).cases
    settings = LabSettings(out=options.out.parent, threads=config.threads)
    measured: dict[str, dict[str, list[Trial]]] = {}
    with open_bench(make_working_tree_arm(Path.cwd()), settings) as bench:
        prime_bench(bench)
        for case in chosen:
            measured[case.id] = measure_case(bench, case, options.trials, ROLES[: 1 if options.cold else 2])
            options.out.write_text(json.dumps(measured))
            print_table(case.id, measured[case.id])


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", help="a selection, as of `compile-gate check --select`")
    parser.add_argument("--trials", type=int, default=40, help="of each kind")
    parser.add_argument("--cold", action="store_true", help="leave out the warm process of a trial")
    parser.add_argument("--out", type=Path, default=Path("forked.json"))
    return parser.parse_args()


def measure_case(
    bench: Bench, case: Case, trials: int, roles: Sequence[WorkerRole]
) -> dict[str, list[Trial]]:
    """Measure so many trials of each kind, in turn; which kind goes first changes."""
    taken: dict[str, list[Trial]] = defaultdict(list)
    pool = ServerPool()
    for index in range(trials):
        if index % TRIALS_PER_SERVER == 0:
            pool.close()
            pool = ServerPool()
        for kind in KINDS[:: 1 if index % 2 else -1]:
            trial = measure_trial(bench, case, pool if kind == "forked" else None, roles)
            taken[kind].append({**trial, "server": index // TRIALS_PER_SERVER})
            sys.stderr.write(f"{case.id} {index + 1}/{trials} {kind}\n")
    pool.close()
    return dict(taken)


def measure_trial(bench: Bench, case: Case, pool: ServerPool | None, roles: Sequence[WorkerRole]) -> Trial:
    """Measure the processes of a trial on one cache; medians by metric."""
    seed_cache(bench)
    measured: dict[str, float] = {}
    for role in roles:
        job = make_job(bench, role, case, 1)
        if pool is not None:
            (job,) = pool.open([job])
            if job.why_not:
                sys.exit(f"{case.id} cannot be forked: {describe_measuring(job.why_not)}")
        result = run_worker(job)
        if not isinstance(result, WorkerResult):
            sys.exit(f"{case.id}: {describe_failure(result)}\n{result.log_tail}")
        measured |= {f"{role} {name}": value for name, value in summarize(result).items()}
    remove_cache(bench)
    return measured


def summarize(result: WorkerResult) -> dict[str, float]:
    """Take the median of each metric's samples, CPU times, and the code that was generated."""
    medians = {str(metric): statistics.median(values) for metric, values in result.samples.items()}
    processor_s = {name: value for name, value in result.phases_s.items() if name.startswith("cpu_")}
    code = {"code": float(int(result.identity.digest[:12] or "0", 16))}
    return {**medians, **processor_s, **code}


def print_table(case_id: str, taken: Mapping[str, Sequence[Trial]]) -> None:
    """Print what differs between the kinds."""
    sys.stdout.write(f"\n{case_id}, {len(taken['fresh'])} trials of each kind\n")
    for name in sorted(set(taken["fresh"][0]) - {"server"}):
        fresh, forked = ([trial[name] for trial in taken[kind]] for kind in KINDS)
        sys.stdout.write(f"  {name:32} {compare(fresh, forked, taken)}\n")
    sys.stdout.flush()


def compare(fresh: Sequence[float], forked: Sequence[float], taken: Mapping[str, Sequence[Trial]]) -> str:
    """Describe how one metric's values differ between the kinds."""
    both = [*fresh, *forked]
    if math.isclose(min(both), max(both), rel_tol=ALIKE):
        return f"{both[0]:.6g} in every trial"
    if min(both) <= 0:
        return f"fresh {sorted(set(fresh))}, forked {sorted(set(forked))}"
    logs = [list(map(math.log, values)) for values in (fresh, forked)]
    changes = [after - before for before, after in zip(*logs, strict=True)]
    mean = statistics.fmean(changes)
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(changes) - 1))
    half = quantile * statistics.stdev(changes) / math.sqrt(len(changes))
    spreads = [statistics.stdev(logs_of_arm) for logs_of_arm in logs]
    spread = spreads[1] / spreads[0] if spreads[0] else math.inf
    equal = stats.levene(*logs, center="median").pvalue
    by_server: dict[float, list[float]] = defaultdict(list)
    for trial, change in zip(taken["forked"], changes, strict=True):
        by_server[trial["server"]].append(change)
    groups = [values for values in by_server.values() if len(values) > 1]
    alike = stats.f_oneway(*groups).pvalue if len(groups) > 1 else math.nan
    return (
        f"{statistics.median(fresh):.5g} forked {100 * math.expm1(mean):+.2f} % "
        f"({100 * math.expm1(mean - half):+.2f} to {100 * math.expm1(mean + half):+.2f}); "
        f"SD {100 * spreads[0]:.2f} and {100 * spreads[1]:.2f} %, x{spread:.2f}, p {equal:.3f}; "
        f"servers p {alike:.3f}"
    )


if __name__ == "__main__":
    main()
