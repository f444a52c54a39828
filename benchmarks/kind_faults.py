"""Plants a fault into one case of each kind, and tells which metric the gate catches it by.

    python benchmarks/kind_faults.py DIRECTORY [--only NAME ...]

DIRECTORY gets two projects with the small CPU cases of ``kind_fault_models.py``, one as they are and one
with their faults. What shows in counters, memory or drift is measured by ``compile-gate measure``, one trial
a side in fresh processes, and judged by ``compile-gate compare``; what shows in times by ``compile-gate ab``,
side by side, since one trial says nothing of noise. Runs that are there already are kept. It takes some
twenty minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kind_fault_models
import yaml

from gate.files import codec
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.records.cases import Case, Metric
from gate.records.verdict import Comparison, Status, Verdict
from gate.units import format_value

ROOT = Path(__file__).resolve().parent.parent
SIDES = ("without", "with")
PAIR_MINUTES = 10  # after which no pair is started
NOBODY_CHANGED = "no metric"
INTEGERS = {"batch": 64, "width": 2048, "depth": 4}
CONFIG: Mapping[str, Any] = {
    "version": 1,
    "device": "cpu",
    "threads": 1,
    "reference_models": False,
    "lock_timeout_s": 3600,
    # What a project that serves, or trains from a disk, would promise itself.
    "limits": [{"metric": "request_p99", "at_most": 0.5}, {"metric": "data_ratio", "at_most": 2.0}],
}


@dataclass(frozen=True, kw_only=True)
class Planted:
    """One fault: the case of the registry that it goes into, and the metrics that it may show in."""

    name: str
    fault: str
    metrics: tuple[Metric, ...]
    case: str = ""  # of the registry; none: the layers of integers
    # Where the fault is around compiled code, code of Inductor's would only take longer to compile.
    backend: str = "inductor"
    arguments: Mapping[str, object] = field(default_factory=dict)
    in_pairs: bool = False  # shows in times: both are measured side by side, in pairs


PLANTED = (
    Planted(
        name="shapes",
        fault="a length that code asks for",
        metrics=(Metric.RECOMPILES,),
        case="tokens/inference-float32-smoke-default-shapes*",
    ),
    Planted(
        name="export",
        fault="exported code off by 1e-4",
        metrics=(Metric.DRIFT,),
        case="blocks/inference-float32-smoke-default-export",
    ),
    Planted(
        name="cache",
        fault="a constant that is another in every process",
        metrics=(Metric.CACHE_MISSES,),
        case="blocks/inference-float32-smoke-default-cache",
    ),
    Planted(
        name="checkpoint",
        fault="activations kept after all",
        metrics=(Metric.PEAK_MEMORY,),
        case="blocks/training-float32-checkpointed-default",
    ),
    Planted(
        name="integers",
        fault="one of four quantized layers left in floats",
        metrics=(Metric.PEAK_MEMORY,),
        arguments=INTEGERS,
    ),
    Planted(
        name="distributed",
        fault="gradients that travel as float16",
        metrics=(Metric.DRIFT, Metric.BUCKETS),
        case="blocks/training-float32-spread-default-distributed-ddp",
        backend="aot_eager",
    ),
    Planted(
        name="data",
        fault="a dataset that takes 0.2 s a batch",
        metrics=(Metric.DATA_RATIO, Metric.COMPILED_LATENCY),
        case="blocks/training-float32-smoke-default-data",
        backend="aot_eager",
        in_pairs=True,
    ),
    Planted(
        name="serving",
        fault="every 40th request takes 0.6 s",
        metrics=(Metric.REQUEST_P99, Metric.REQUEST_P50),
        case="blocks/inference-float32-smoke-default-serving*",
        backend="aot_eager",
        in_pairs=True,
    ),
    Planted(
        name="blocks",
        fault="a number of each block's own that its code reads",
        metrics=(Metric.UNIQUE_GRAPHS, Metric.RECOMPILES),
        case="deep/inference-float32-smoke-default-scope-blocks",
        backend="aot_eager",
    ),
    Planted(
        name="regions",
        fault="a block that the compiler is told to leave out",
        metrics=(Metric.GRAPH_BREAKS, Metric.EAGER_FALLBACKS),
        case="deep/inference-float32-smoke-default-scope-regions",
        backend="aot_eager",
    ),
    Planted(
        name="onnx",
        fault="exported code off by 1e-4",
        metrics=(Metric.DRIFT,),
        case="blocks/inference-float32-smoke-default-onnx",
    ),
)


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", nargs="+", choices=[planted.name for planted in PLANTED])
    options = parser.parse_args()
    directory: Path = options.directory.absolute()
    chosen = [planted for planted in PLANTED if not options.only or planted.name in options.only]
    for name in SIDES:
        make_project(directory / name, is_planted=name == SIDES[1])
    print("| kind | planted | metric | before | after | verdict |\n|---|---|---|---|---|---|")
    alone = [planted for planted in chosen if not planted.in_pairs]
    groups = ((judge_trials, alone), *((judge_pairs, [planted]) for planted in chosen if planted.in_pairs))
    for judge, members in groups:
        if members:
            verdict = judge(directory, members)
            print("\n".join(row for planted in members for row in describe(planted, verdict)), flush=True)


def make_project(project: Path, *, is_planted: bool) -> None:
    """Write the models, with their faults or without, and gate.yml."""
    project.mkdir(parents=True, exist_ok=True)
    shutil.copy(kind_fault_models.__file__, project)
    cases = load_cases(load_config(ROOT / "gate.yml"))
    models = [make_model(planted, cases) for planted in PLANTED]
    (project / "gate.yml").write_text(yaml.safe_dump({**CONFIG, "models": models}, sort_keys=False))
    (project / "planted.json").write_text(json.dumps(is_planted))


def make_model(planted: Planted, cases: tuple[Case, ...]) -> dict[str, Any]:
    """Make the entry of gate.yml of one case."""
    case = Case(
        id="integers",
        model="integers",
        factory="kind_fault_models:build_integers",
        arguments=planted.arguments,
    )
    if planted.case:
        wanted = planted.case.rstrip("*")
        case = next(case for case in cases if case.id.startswith(wanted))
    entry: dict[str, Any] = {
        "task": case.task.value,
        "kind": case.kind.value,
        "backend": planted.backend,
        "settings": json.loads(json.dumps(dict(case.settings))),
    }
    arguments = {"factory": case.factory, "fault": planted.fault, "arguments": dict(case.arguments)}
    return {
        "name": planted.name,
        "factory": "kind_fault_models:build",
        "arguments": arguments,
        "cases": [{**{key: value for key, value in entry.items() if value}, "expected_s": 120}],
    }


def judge_trials(directory: Path, members: Sequence[Planted]) -> Verdict:
    """Measure the cases as they are and with their faults, and let the gate compare."""
    runs = [directory / name / "out" / "run.json" for name in SIDES]
    for name, run in zip(SIDES, runs, strict=True):
        if not run.is_file():
            arguments = ("--select", select(members), "--trials", "1", "--out", str(run.parent))
            ended = run_gate(directory / name, "measure", *arguments)
            if ended.returncode:
                sys.exit(
                    f"{name}: not measured (status {ended.returncode}):\n{ended.stdout}{ended.stderr[-3000:]}"
                )
    run_gate(directory / SIDES[1], "compare", *map(str, runs), "--out", str(directory / "compared"))
    return codec.VERDICT.load(directory / "compared" / "verdict.json")


def judge_pairs(directory: Path, members: Sequence[Planted]) -> Verdict:
    """Let the gate measure cases without and with their faults side by side."""
    out = directory / "beside" / members[0].name
    if not (out / "verdict.json").is_file():
        arguments = (
            *(str(directory / name) for name in SIDES),
            "--select",
            select(members),
            "--minutes",
            str(PAIR_MINUTES),
        )
        resumed = ("--resume",) if (out / "run.json").is_file() else ()
        run_gate(directory / SIDES[1], "ab", *arguments, "--out", str(out), *resumed)
    return codec.VERDICT.load(out / "verdict.json")


def select(members: Sequence[Planted]) -> str:
    """The selection of the cases."""
    return ",".join(f"{planted.name}/*" for planted in members)


def run_gate(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run compile-gate in the project."""
    command = (sys.executable, "-m", "gate", *arguments)
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def describe(planted: Planted, verdict: Verdict) -> Iterator[str]:
    """A row for each metric that the fault may show in, and one for all others that are red."""
    rows = {row.metric: row for row in verdict.comparisons if row.case_id.startswith(f"{planted.name}/")}
    for metric in planted.metrics:
        yield describe_row(planted, metric, rows.get(metric))
    others = [
        row for row in rows.values() if row.status is Status.REGRESSED and row.metric not in planted.metrics
    ]
    metrics = ", ".join(str(row.metric) for row in others) or NOBODY_CHANGED
    yield f"| | | also red: {metrics} | | | |"


def describe_row(planted: Planted, metric: Metric, row: Comparison | None) -> str:
    """The row of one metric."""
    if row is None:
        return f"| {planted.name} | {planted.fault} | {metric} | | | not compared |"
    values = [
        format_value(metric, estimate.centre) if estimate else ""
        for estimate in (row.baseline, row.candidate)
    ]
    verdict = f"{row.status.value}, {row.reason.value}, {'decides' if row.decides else 'advises'}"
    return f"| {planted.name} | {planted.fault} | {metric} | {' | '.join(values)} | {verdict} |"


if __name__ == "__main__":
    main()
