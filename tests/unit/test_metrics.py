"""The table of metrics is complete, and groupings follow it."""

import ast
import dataclasses
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gate
from gate.metrics import (
    COMPILE_SIGNATURES,
    COMPILE_TIMES,
    INTERLEAVED,
    LATENCIES,
    LEADING,
    NOISY_DECIDING,
    OF_WARM,
    SPECS,
    Family,
    MetricSpec,
    Role,
    Source,
    Timing,
    Unit,
    explained_by,
    find_planted,
    list_watching,
)
from gate.metrics.rows import ROWS
from gate.records.cases import Metric
from gate.records.studies import FaultKind
from gate.records.verdict import CauseKind
from gate.report.footer import COLUMNS
from gate.report.pages import _GROUPS
from gate.report.words.templates import name_direction
from gate.units import format_value

PACKAGE = Path(gate.__file__).parent
GUIDE = (PACKAGE.parent / "docs" / "dev" / "adding-a-metric.md").read_text(encoding="utf-8")

# What a copy of the package with the guide's metric must say of it, in the groupings that it belongs to.
QUESTIONS = """
from gate.check.schedule import plan_content
from gate.decide.evidence.pairs import Pair, collect_paired

from gate.metrics import INTERLEAVED, LATENCIES, LEADING, NOISY_DECIDING, OF_WARM, SPECS, explained_by
from gate.project.config import make_config
from gate.project.entries import GateFile
from gate.records.cases import Metric
from gate.records.run import Pairing, Trial
from gate.records.verdict import CauseKind
from gate.report.footer import COLUMNS
from gate.units import format_threshold, format_value
from gate.report.words.templates import describe_change

metric = Metric("p95_latency")
samples = {metric: (0.010,), Metric.COMPILED_LATENCY: (0.001,), Metric.EAGER_LATENCY: (0.002,)}
base = Trial(case_id="a/x", index=1, arm="base", pairing=Pairing.LIVE, samples=samples)
head = Trial(case_id="a/x", index=1, pairing=Pairing.LIVE, samples={**samples, metric: (0.020,)})
changes = {name: one.changes[0] for name, one in collect_paired([Pair(base=base, head=head)]).items()}
print({
    "interleaved": metric in INTERLEAVED and metric in LATENCIES,
    "of_warm": metric in OF_WARM,
    "leading": metric in LEADING and metric in NOISY_DECIDING,
    "light": plan_content([metric], 2, "cpu").compiles,
    "change": round(changes[metric], 3),
    "speedup": changes[Metric.WARM_SPEEDUP],
    "column": COLUMNS[metric],
    "causes": sorted(cause.value for cause in CauseKind if metric in explained_by(cause)),
    "value": format_value(metric, 0.0123),
    "told": describe_change(metric, 0.3),
    "limit": format_threshold(metric, make_config(GateFile(version=1)).thresholds[metric]),
    "beside": format_threshold(metric, SPECS[metric].side_by_side),
})
"""


def find_blocks(text: str) -> list[str]:
    """The guide's blocks of Python, without their indentation."""
    return [textwrap.dedent(block) for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]


def test_every_metric_has_a_row() -> None:
    """The table has one row for each metric, in order."""
    assert list(SPECS) == list(Metric)
    assert len(ROWS) == len(Metric)


def test_no_property_can_be_forgotten() -> None:
    """No field of a row has a default, so mypy finds a missing one."""
    fields = dataclasses.fields(MetricSpec)

    assert fields
    assert all(field.default is dataclasses.MISSING for field in fields)
    assert all(field.default_factory is dataclasses.MISSING for field in fields)


def test_groupings() -> None:
    """The groupings have the members of the documented decision."""
    assert LATENCIES == (Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY)
    assert set(INTERLEAVED) == {*LATENCIES, Metric.WARM_SPEEDUP}
    assert COMPILE_TIMES == (Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME)
    assert LEADING == (Metric.COMPILED_LATENCY, *COMPILE_TIMES)
    assert NOISY_DECIDING == (Metric.WARM_SPEEDUP, *LEADING)
    assert set(OF_WARM) == {
        *(Metric.WARM_COMPILE_TIME, Metric.CACHE_MISSES, Metric.COMPILE_CALLS, Metric.DRIFT),
        *(Metric.DRIFT_FLOAT32, Metric.DRIFT_STEPS, Metric.PEAK_MEMORY, Metric.MEMORY_RATIO),
        *(Metric.MEMORY_GROWTH, Metric.LAYOUT_DIFFERENCES),
    }
    assert set(COMPILE_SIGNATURES) == {
        *(Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.UNIQUE_GRAPHS, Metric.CACHE_MISSES),
        *(Metric.CAPTURED_OPS, Metric.GENERATED_KERNELS, Metric.GUARDS),
        *(Metric.CODE_LAUNCHES, Metric.TRITON_CONFIGS),
    }
    assert explained_by(CauseKind.RECOMPILE) == {Metric.RECOMPILES, Metric.UNIQUE_GRAPHS}
    assert explained_by(CauseKind.EAGER) == {Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP}
    assert explained_by(CauseKind.COMPILE_PHASE) == {*COMPILE_TIMES, Metric.COMPILE_CALLS}


def test_columns_are_distinct() -> None:
    """Metrics that decide come first, and names are unique."""
    assert list(COLUMNS.values()) == [
        *("speedup", "compiled", "cold compile", "warm compile", "peak memory", "drift", "eager")
    ]


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.metric)
def test_rows_do_not_contradict_themselves(spec: MetricSpec) -> None:
    """Computed metrics have measured parts, and a metric follows one that decides."""
    is_derived = spec.source is Source.DERIVED
    follows = spec.follows

    assert bool(spec.parts) == is_derived
    assert all(SPECS[part].source is not Source.DERIVED for part in spec.parts)
    assert follows is None or SPECS[follows].role is Role.DECIDES
    assert spec.timing is Timing.NONE or spec.family is Family.NOISY
    assert (spec.family is Family.LOG2) == (spec.unit is Unit.LOG2)
    assert spec.title


@pytest.mark.parametrize("metric", Metric)
def test_every_metric_has_words(metric: Metric) -> None:
    """Each metric has a unit and a word for both directions."""
    assert format_value(metric, 1.0)
    assert name_direction(metric, 0.1) != name_direction(metric, -0.1)


def test_no_fault_is_measured_in_two_metrics() -> None:
    """Each fault that does not fail is measured in one metric."""
    planted = [kind for spec in SPECS.values() for kind in spec.planted]

    assert len(planted) == len(set(planted))
    assert find_planted(FaultKind.SLOWDOWN) is Metric.COMPILED_LATENCY
    assert find_planted(FaultKind.CRASH) is None


def test_a_fault_is_watched_by_what_it_moves() -> None:
    """A slower call also moves the speedup, as does a faster eager one; a compile only itself."""
    both = (Metric.WARM_SPEEDUP, Metric.COMPILED_LATENCY)

    assert list_watching(Metric.COMPILED_LATENCY) == both
    assert list_watching(Metric.EAGER_LATENCY) == both
    assert list_watching(Metric.COLD_COMPILE_TIME) == (Metric.COLD_COMPILE_TIME,)


def test_row_of_the_guide_is_known_to_every_grouping(tmp_path: Path) -> None:
    """A copy of the package measures the guide's metric in light pairs, judges and shows it."""
    member, row = find_blocks(GUIDE)
    shutil.copytree(PACKAGE, tmp_path / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    for path, before, added in (
        (
            "records/cases.py",
            '    DEVICE_UTILIZATION = "device_utilization"\n',
            textwrap.indent(member, "    "),
        ),
        ("metrics/rows.py", "    COMPILED,\n    replace(", textwrap.indent(f"{row.rstrip()},\n", "    ")),
    ):
        file = tmp_path / "gate" / path
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1
        file.write_text(text.replace(before, added + before), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{QUESTIONS}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == {
        "interleaved": True,
        "of_warm": False,
        "leading": True,
        "light": False,
        "change": 0.693,  # twice as long: log 2
        "speedup": 0.0,
        "column": "p95",
        "causes": ["eager", "guards", "kernels", "tuning", "unchanged_code"],
        "value": "12.3 ms",
        "told": "+30.0 % (slower)",
        "limit": "10 % and 50 \N{MICRO SIGN}s",
        "beside": "6 % and 50 \N{MICRO SIGN}s",
    }


def test_every_metric_is_measured_somewhere() -> None:
    measured = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "measure").rglob("*.py"))
    computed = (PACKAGE / "decide" / "evidence" / "values.py").read_text(encoding="utf-8")
    for metric, spec in SPECS.items():
        text = computed if spec.source is Source.DERIVED else measured
        assert re.search(rf"\bMetric\.{metric.name}\b", text), f"nothing measures {metric}"


def test_what_decides_and_varies_is_drawn() -> None:
    """A verdict's page has a chart of each noisy metric that decides."""
    drawn = {metric for metrics in _GROUPS.values() for metric in metrics}
    assert set(NOISY_DECIDING) <= drawn
    assert {Metric.PEAK_MEMORY, Metric.DRIFT, Metric.PACKAGE_BYTES, Metric.REQUEST_P99} <= drawn
    assert not drawn & {Metric.GUARDS, Metric.GRAPH_BREAKS, Metric.FLOPS}
