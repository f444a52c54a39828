"""docs/decision.md, docs/measuring.md and docs/dev/glossary.md say what the code does."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from gate.check.work import REPEAT_SHARE
from gate.cli.recording import MOST_REFRESHED
from gate.decide import constants
from gate.decide.conclude.outcome import Coverage, FailOn, compute_exit_code
from gate.decide.evidence.pairs import Paired
from gate.decide.evidence.steal import OWN_STEAL, STEAL_STANDS_OUT
from gate.decide.judge.interval import Bar, Level, Reading, read_pairs, read_stored
from gate.decide.judge.machine import SESSION
from gate.decide.judge.pairs import assume_noise, decide_pairs
from gate.decide.stats import NOTHING_KNOWN, summarize_logs
from gate.lab.host import fitness
from gate.metrics import SPECS
from gate.records.cases import Metric, Threshold
from gate.records.verdict import Outcome, Reason, Status

DOCS = Path(__file__).parents[2] / "docs"
DECISION = (DOCS / "decision.md").read_text(encoding="utf-8")
MEASURING = (DOCS / "measuring.md").read_text(encoding="utf-8")
GLOSSARY = (DOCS / "dev" / "glossary.md").read_text(encoding="utf-8")


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
    stated = {name: float(value) for name, value, reason in read_table(MEASURING, "limit") if reason}
    coded = {
        name: float(value)
        for name, value in vars(fitness).items()
        if name.isupper() and name[0] != "_" and isinstance(value, int | float)
    }
    others = {"OWN_STEAL": OWN_STEAL, "STEAL_STANDS_OUT": STEAL_STANDS_OUT, "MOST_REFRESHED": MOST_REFRESHED}
    assert stated == {**coded, **others, "REPEAT_SHARE": REPEAT_SHARE}


def test_constants_in_the_prose_exist() -> None:
    """A name in capitals with an underscore is a constant, a status or an outcome."""
    prose = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", DECISION + MEASURING))
    known = {name for name in (*vars(constants), *vars(fitness)) if name.isupper()}
    elsewhere = {"REPEAT_SHARE", "MOST_REFRESHED", "OWN_STEAL", "STEAL_STANDS_OUT"}
    assert prose - known == {*elsewhere, "NOT_COMPARABLE", "NOTHING_COMPARED"}


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_explained(reason: Reason) -> None:
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


def test_example_is_what_the_code_computes() -> None:
    """The worked example: stored values leave 6 % open, and three pairs prove it."""
    rows = {row[0].split(",")[0]: row[1:] for row in read_table(DECISION, "step")}
    clock = read_example(Metric.COMPILED_LATENCY, (10.00, 10.10, 9.90, 10.05, 9.95), 10.60)
    ratio = read_example(Metric.WARM_SPEEDUP, (2.00, 1.99, 2.01, 2.00, 2.00), 20.10 / 10.60)
    threshold = SPECS[Metric.COMPILED_LATENCY].threshold.relative
    stored = Bar(
        alpha=0.01 / 4, threshold=Threshold(relative=threshold, absolute=0.0), edges=constants.BASE_EDGES
    )
    for name, reading in (("clock", clock), ("ratio", ratio)):
        assert rows[name] == [*describe(reading, stored), "open"]
        assert stored.find_level(reading) is Level.OPEN
    pairs, eager = (
        Paired(metric=metric, changes=changes, base=(10.0, 10.0, 10.0), head=(10.6,), is_live=True)
        for metric, changes in (
            (Metric.COMPILED_LATENCY, (0.058, 0.063, 0.055)),
            (Metric.EAGER_LATENCY, (0.002, -0.003, 0.004)),
        )
    )
    paired = read_pairs(pairs, assume_noise(Metric.COMPILED_LATENCY, is_live=True), eager)
    looks = [look for look in constants.LOOKS if look >= constants.SETTLING_PAIRS]
    threshold = SPECS[Metric.COMPILED_LATENCY].side_by_side.relative
    bar = Bar(alpha=0.01 / len(looks), threshold=Threshold(relative=threshold, absolute=0.0))
    assert decide_pairs(paired, bar)[0] is Status.REGRESSED
    assert rows["pairs +5.8"][-6:] == [*describe(paired, bar), "REGRESSED"]


def read_example(metric: Metric, stored: tuple[float, ...], seen: float) -> Reading:
    """Read one value against what is stored, by the noise of that."""
    arms = summarize_logs(stored, (seen,))
    assert arms is not None
    return read_stored(metric, arms, NOTHING_KNOWN, SESSION, 0.0)


def describe(reading: Reading, bar: Bar) -> list[str]:
    """d, SE, low, high and e, as the table has them."""
    bounds = (reading.compute_bound(p) for p in (bar.alpha, constants.CLEAR_CONFIDENCE))
    values = (reading.change, reading.error, *bounds, bar.find_edge(reading))
    return [f"{value:.3f}" for value in values]


def test_glossary_names_what_exists() -> None:
    """Every dotted name in the glossary leads to something in the package."""
    names = re.findall(r"`((?:\w+\.)+\w+)`", GLOSSARY)
    assert len(names) > len(Metric)
    for name in names:
        assert can_resolve(name.removeprefix("gate.")), name


def can_resolve(name: str) -> bool:
    """Whether `module.Thing.field` exists in gate, or `Thing.field` in the records."""
    records = (f"gate.records.{name}" for name in ("cases", "codes", "facts", "run", "verdict", "studies"))
    starts = ("gate", *records, "gate.errors")
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
