"""Whether a case compiles to the same in every fresh process: counters, code, workload and graph breaks.

    nice -n 10 python benchmarks/repeat_identity.py tag:field --out repeats.jsonl
    python benchmarks/repeat_identity.py --sum-up repeats.jsonl
    python tools/registry_page.py repeats.jsonl && python tools/generate_docs.py

The second adds what came of each case to benchmarks/registry_repeats.json, the third what it measured to
benchmarks/registry_measured.json; benchmarks/registry.md is made of both.

Measures each case of a selection in so many trials, each of two processes on caches of their own; each
repeat has a server of its own that imported everything anew. One trial after the other is appended to a
file, so that a run that was stopped goes on where it was; the device is locked for a repeat at a time.
Times taken on a busy machine tell the order of magnitude only; what is compared does not depend on them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from gate.cli.lanes import place_lab
from gate.files.codec import encode
from gate.lab.trials.opening import open_bench, prime_bench
from gate.lab.trials.trials import run_trial
from gate.metrics import SPECS, Family
from gate.project.config import Config, apply_options, load_config
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records.cases import Case, Metric
from gate.report.words.facts import describe_failure

SUMMED = Path(__file__).resolve().parent / "registry_repeats.json"
REPEATS = 3
LOCK_TIMEOUT_S = 3600.0  # others may measure meanwhile, each for minutes
TRIAL_TIMEOUT_S = 900.0  # of a worker, beside other work on all cores
COUNTERS = tuple(metric for metric, spec in SPECS.items() if spec.family is Family.EXACT)

Record = Mapping[str, Any]


def main() -> int:
    """Measure what is missing, or sum up what is there."""
    options = parse_options()
    if options.sum_up:
        summed = json.loads(SUMMED.read_text(encoding="utf-8")) if SUMMED.is_file() else {}
        for case_id, records in group_records(read_records(Path(options.sum_up))).items():
            summed[case_id] = sum_up_case(records)
            sys.stdout.write(f"{case_id}: {summed[case_id]}\n")
        SUMMED.write_text(json.dumps(summed, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    config = load_config(None)
    chosen = choose_cases(apply_options(config, select=",".join(options.cases)), load_cases(config)).cases
    out: Path = options.out
    for repeat in range(1, options.repeats + 1):
        left = [case for case in chosen if not is_taken(read_records(out), case, repeat)]
        for record in measure_cases(left, repeat, replace(config, out=out.parent / "repeats")):
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            end = record["failure"] or ""
            sys.stderr.write(f"{repeat} {record['case']}: {record['wall_s']:.0f} s {end}\n")
    return 0


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="selections, as of `compile-gate check --select`")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--out", type=Path, default=Path("repeats.jsonl"))
    parser.add_argument("--sum-up", help="sum this file up, and measure nothing")
    return parser.parse_args()


def measure_cases(cases: Sequence[Case], repeat: int, config: Config) -> Iterator[dict[str, Any]]:
    """Measure one trial of each case, two processes of its own: what came of it, and its wall seconds.

    The server that imports is a new one for each repeat, so that addresses and the seed of hashes are.
    """
    arm, settings = place_lab(config)
    settings = replace(settings, lock_timeout_s=LOCK_TIMEOUT_S, trial_timeout_s=TRIAL_TIMEOUT_S)
    with ExitStack() as stack:
        bench = None
        for case in cases:
            if bench is None:  # not before there is something to measure
                bench = stack.enter_context(open_bench(arm, settings))
                prime_bench(bench)
            begun = time.monotonic()
            outcome = run_trial(bench, case, repeat)
            yield {
                "case": case.id,
                "definition": case.definition,
                "repeat": repeat,
                "wall_s": time.monotonic() - begun,
                "failure": "".join(map(describe_failure, outcome.failures)),
                "trial": next(map(encode, outcome.trials), None),
            }


def read_records(path: Path) -> list[Record]:
    """Read what was measured before."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_taken(records: Sequence[Record], case: Case, repeat: int) -> bool:
    """Whether this repeat of the case as it is defined now is there, and did not fail."""
    return any(
        record["case"] == case.id
        and record["repeat"] == repeat
        and record["definition"] == case.definition
        and not record["failure"]
        for record in records
    )


def group_records(records: Sequence[Record]) -> Mapping[str, list[Record]]:
    """Group by case what did not fail, of each case's last definition."""
    last = {record["case"]: record["definition"] for record in records}
    grouped: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record["trial"] and not record["failure"] and record["definition"] == last[record["case"]]:
            grouped[record["case"]].append(record)
    return grouped


def sum_up_case(records: Sequence[Record]) -> dict[str, Any]:
    """Sum a case's repeats up: how many, in what they differ, what one costs, and by how much calls vary."""
    calls = [record["trial"]["samples"].get(Metric.COMPILE_CALLS, [0.0])[0] for record in records]
    return {
        "repeats": len(records),
        "differing": list_differing([record["trial"] for record in records]),
        "cpu_s": round(statistics.median(map(read_cpu_s, records)), 1),
        "wall_s": round(statistics.median(record["wall_s"] for record in records), 1),
        "calls_spread": round((max(calls) - min(calls)) / min(calls), 6) if min(calls) else 0.0,
    }


def read_cpu_s(record: Record) -> float:
    """Processor seconds of the cold compile, the compilers' included: other work does not make them more."""
    phases = record["trial"]["phases_s"]
    return float(phases.get("cpu_self", 0.0) + phases.get("cpu_children", 0.0))


def list_differing(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what is not the same in all trials, with the values: counters, code, workload, graph breaks."""
    views = [make_view(trial) for trial in trials]
    names = dict.fromkeys(name for view in views for name in view)
    differing = []
    for name in names:
        values = list(dict.fromkeys(view.get(name, "none") for view in views))
        if len(values) > 1:
            differing.append(f"{name}: {' / '.join(values)}")
    return differing


def make_view(trial: Mapping[str, Any]) -> dict[str, str]:
    """What has to be the same, by name."""
    counters = {str(name): str(trial["samples"][name]) for name in COUNTERS if name in trial["samples"]}
    kernels = trial["identity"]["kernels"]
    breaks = [(graph_break["reason"], graph_break["location"]) for graph_break in trial["graph_breaks"]]
    return {
        **counters,
        **{f"kernel {name}": digest[:8] for name, digest in kernels.items()},
        **{f"workload {name}": value for name, value in trial["workload"].items()},
        "code": trial["identity"]["digest"][:8],
        "graph breaks": str(breaks),
    }


if __name__ == "__main__":
    sys.exit(main())
