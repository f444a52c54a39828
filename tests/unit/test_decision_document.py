"""docs/decision.md and docs/glossary.md say what the code does."""

from __future__ import annotations

import math
import re
from importlib import import_module
from pathlib import Path

import pytest

from gate.decide import Coverage, FailOn, compute_exit_code, constants
from gate.decide.stats.student import compute_t_quantile
from gate.lab.host import fitness
from gate.metrics import SPECS
from gate.records import Metric, Outcome, Reason

DOCS = Path(__file__).parents[2] / "docs"
DECISION = (DOCS / "decision.md").read_text(encoding="utf-8")
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")


def read_table(text: str, first_column: str) -> list[list[str]]:
    """Rows of the table whose head starts with this column, cells without backticks."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_column} |")) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


def test_constants_are_those_of_the_code() -> None:
    """Every constant is in the table with its value and a reason, and there is no other."""
    stated = {
        name: [float(part) for part in value.split(",")]
        for name, value, reason in read_table(DECISION, "constant")
        if reason
    }
    coded = {
        name: [float(part) for part in (value if isinstance(value, tuple) else (value,))]
        for name, value in vars(constants).items()
        if name.isupper()
    }
    assert stated == coded


def test_limits_of_the_host_are_those_of_the_code() -> None:
    """Every limit of the host's fitness is in its table with its value and a reason."""
    stated = {name: float(value) for name, value, reason in read_table(DECISION, "limit") if reason}
    coded = {
        name: float(value)
        for name, value in vars(fitness).items()
        if name.isupper() and name[0] != "_" and isinstance(value, int | float)
    }
    assert stated == coded


def test_constants_in_the_prose_exist() -> None:
    """A name in capitals with an underscore is a constant, a status or an outcome."""
    prose = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", DECISION))
    known = {name for name in (*vars(constants), *vars(fitness)) if name.isupper()}
    assert prose - known == {"NOT_COMPARABLE", "NOTHING_COMPARED"}


def test_thresholds_are_those_of_the_code() -> None:
    """Every metric is in the table with its family, role and both thresholds, alone and side by side."""
    table = DECISION.split("## 12. Thresholds")[1]
    stated = {
        metric: (family, role, float(relative), float(absolute.split()[0]), float(paired))
        for metric, family, role, relative, absolute, paired in read_table(table, "metric")
    }
    coded = {
        str(metric): (
            spec.family.value.replace("_", " "),
            spec.role.value,
            spec.threshold.relative,
            spec.threshold.absolute,
            spec.side_by_side.relative,
        )
        for metric, spec in SPECS.items()
    }
    assert stated == coded
    assert all(spec.side_by_side.absolute == spec.threshold.absolute for spec in SPECS.values())


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_told(reason: Reason) -> None:
    """The procedure says when each reason code is given."""
    assert f"`{reason.value}`" in DECISION


def test_exit_codes_are_those_of_the_code() -> None:
    """Codes of each outcome, as they are and under another --fail-on."""
    stated = {row[0]: row[2:] for row in read_table(DECISION, "outcome")}
    ways = (FailOn.INCONCLUSIVE, FailOn.NEW, FailOn.REGRESSION, FailOn.NEVER)
    coverages = (Coverage(comparisons=2, judged=2), Coverage(comparisons=2, judged=1))
    coded = {}
    for outcome in Outcome:
        codes = [[int(compute_exit_code(outcome, way, one)) for one in coverages] for way in ways]
        coded[str(outcome)] = [", or ".join(map(str, dict.fromkeys(pair))) for pair in codes]
    assert stated == coded


def test_table_of_convictions_follows_from_the_formulas() -> None:
    """The even odds of conviction, recomputed from the formulas of section 3."""
    for sd, *stated in read_table(DECISION, "SD between trials"):
        bars = [(1, 1.0), (3, 1.0), (3, constants.SHARED_THRESHOLDS)]
        expected = [compute_even_odds(float(sd.split()[0]) / 100, *bar) for bar in bars]
        assert [f"{100 * value:.1f} %" for value in expected] == stated


def compute_even_odds(sd: float, trials: int, thresholds: float) -> float:
    """exp(ln(1 + k x 5 %) + t SE) - 1 for 24 comparisons and five baseline trials."""
    df = constants.MAX_PRIOR_DF + 4 + trials - 1
    error = math.sqrt(sd**2 * (1 / trials + 1 / 5) + constants.SESSION_SD**2)
    return math.expm1(math.log1p(thresholds * 0.05) - compute_t_quantile(0.01 / 24, df) * error)


def test_glossary_names_what_exists() -> None:
    """Every dotted name in the glossary leads to something in the package."""
    names = re.findall(r"`((?:\w+\.)+\w+)`", GLOSSARY)
    assert len(names) > len(Metric)
    for name in names:
        assert can_resolve(name.removeprefix("gate.")), name


def can_resolve(name: str) -> bool:
    """Whether `module.Thing.field` exists in gate, or `Thing.field` in the records or gate.metrics."""
    starts = ("gate", "gate.records", "gate.records.calibration", "gate.errors")
    return any(_walk(start, name.split(".")) for start in starts)


def _walk(start: str, parts: list[str]) -> bool:
    thing: object = import_module(start)
    for position, part in enumerate(parts):
        if not hasattr(thing, part) and part not in getattr(thing, "__annotations__", {}):
            module = ".".join([start, *parts[: position + 1]])
            try:
                thing = import_module(module)
            except ImportError:
                return False
            continue
        thing = getattr(thing, part, None)
    return True
