"""The pages' table of every case: what it stands for, what it costs, and what it came to where it ran.

python tools/registry_page.py TRIALS.jsonl [...]

adds what trials measured to benchmarks/registry_measured.json: a line each, with ``case`` and ``trial``.
"""

from __future__ import annotations

import ast
import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gate.decide.conclude.suite_summary import summarize_suite
from gate.decide.stats import estimate_metric
from gate.project.config import Config, load_config
from gate.project.registry import load_cases
from gate.records.cases import Case, Metric
from gate.records.verdict import Comparison, Reason, Status, SuiteSummary
from gate.report.content import describe_calls
from gate.units import format_ratio, format_seconds, format_value

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "benchmarks" / "registry_measured.json"
REPEATS = ROOT / "benchmarks" / "registry_repeats.json"  # of benchmarks/repeat_identity.py
_COLUMNS = (
    *(Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME, Metric.WARM_SPEEDUP),
    *(Metric.DRIFT, Metric.PEAK_MEMORY),
)
_KEPT = (*_COLUMNS, Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY)


def render_cases() -> str:
    """Return the registry as a section a model with a table of its cases."""
    measured = _read_measured()
    for case_id, repeats in json.loads(REPEATS.read_text(encoding="utf-8")).items():
        measured[case_id] = {**measured.get(case_id, {}), **repeats}
    models: dict[str, list[Case]] = {}
    for case in load_cases(_load_defaults()):
        models.setdefault(case.model, []).append(case)
    return "\n\n".join(_render_model(name, cases, measured) for name, cases in models.items())


def render_modes() -> str:
    """Return which mode pays back after how many calls, of the cases that were measured in several."""
    rows = [
        (
            f"`{row.case_id}`",
            format_seconds(row.cold_compile_s),
            format_seconds(row.compiled_s),
            describe_calls(row.break_even_calls),
            describe_calls(row.over_default_calls) if row.default_id not in {"", row.case_id} else "",
        )
        for row in _summarize_measured().modes
    ]
    return render_table(("case", "cold compile", "one call", "pays back over eager", "over default"), rows)


def render_scopes() -> str:
    """Return what each scope's cold compile is of the whole model's, of the models measured in several."""
    rows = [
        (
            f"`{row.case_id}`",
            format_seconds(row.cold_compile_s),
            format_ratio(row.cold_ratio),
            format_ratio(row.speedup),
        )
        for row in _summarize_measured().scopes
    ]
    return render_table(("case", "cold compile", "of the whole model's", "speedup"), rows)


def _summarize_measured() -> SuiteSummary:
    """What a report of the measured cases would say of them."""
    comparisons = [
        Comparison(
            case_id=case_id,
            metric=metric,
            status=Status.NEW,
            reason=Reason.NO_BASELINE,
            decides=False,
            candidate=estimate_metric(metric, (values[metric],)),
        )
        for case_id, values in _read_measured().items()
        for metric in _KEPT
        if metric in values
    ]
    return summarize_suite(load_cases(_load_defaults()), comparisons)


def _read_measured() -> dict[str, dict[str, Any]]:
    measured: dict[str, dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return measured


def _load_defaults() -> Config:
    return load_config(ROOT / "gate.yml")


def _render_model(name: str, cases: list[Case], measured: Mapping[str, Mapping[str, Any]]) -> str:
    head = (
        *("case", "tags", "expected", "ran on", "processor", "repeats"),
        *("cold compile", "warm compile", "speedup", "drift", "peak"),
    )
    table = render_table(head, [_make_row(case, measured.get(case.id)) for case in cases])
    return f"### {name}\n\n{describe_factory(cases[0].factory)}\n\n{table}"


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _make_row(case: Case, values: Mapping[str, Any] | None) -> tuple[str, ...]:
    sentences = [
        format_value(metric, values[metric]) if values and metric in values else "" for metric in _COLUMNS
    ]
    return (
        f"`{case.id.partition('/')[2]}`",
        ", ".join(case.tags),
        f"{case.expected_s:g} s",
        "CPU" if values else "no record",
        f"{values['cpu_s']:.0f} s" if values and "cpu_s" in values else "",
        _tell_repeats(values) if values and "repeats" in values else "",
        *sentences,
    )


def _tell_repeats(values: Mapping[str, Any]) -> str:
    """How many trials of fresh processes there were, and whether they were the same."""
    if differing := values["differing"]:
        return f"{values['repeats']}: {len(differing)} differ"
    return f"{values['repeats']}: the same" if values["repeats"] > 1 else "1"


def describe_factory(factory: str) -> str:
    """Return what a factory's module and the factory itself say first, without importing them."""
    module, _, name = factory.partition(":")
    tree = ast.parse((ROOT / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8"))
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    first = [(ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ") for node in (tree, function)]
    return " ".join(first).replace("``", "`")


def read_trials(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Read the medians of each trial of a file; what failed has none."""
    for line in path.read_text(encoding="utf-8").splitlines():
        record: dict[str, Any] = json.loads(line)
        if record.get("trial") and not record.get("failure"):
            samples = record["trial"]["samples"]
            values = {name: statistics.median(measured) for name, measured in samples.items() if measured}
            values[Metric.WARM_SPEEDUP] = values[Metric.EAGER_LATENCY] / values[Metric.COMPILED_LATENCY]
            yield record["case"], {name: float(f"{values[name]:.4g}") for name in _KEPT if name in values}


def main(arguments: list[str]) -> int:
    """Add what trials measured; return the exit code."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.is_file() else {}
    for argument in arguments:
        measured |= dict(read_trials(Path(argument)))
    MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
