"""Tables of what is stored or planned."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gate.fingerprint import compute_environment_id
from gate.records.cases import Case, Metric
from gate.records.events import Check, CheckLevel
from gate.records.run import Baseline, Provenance
from gate.records.verdict import Verdict
from gate.report.tables import render_baselines, render_doctor, render_models, render_plan
from tests.make import make_baseline

CASES = (
    Case(id="bert/a", model="bert", factory="gate.models.bert:build", tags=("smoke", "pr"), expected_s=30.0),
    Case(id="lstm/b", model="lstm", node="tests/test_x.py::test_y", expected_s=20.0),
)
NOW = "2026-03-20T09:00:00Z"


@pytest.fixture
def baseline(verdicts: Mapping[str, Verdict]) -> Baseline:
    return make_baseline(
        "bert/a",
        {Metric.COMPILED_LATENCY: (1.0, math.e), Metric.COLD_COMPILE_TIME: (5.0,)},
        definition="d",
        environment=verdicts["pass"].environment,
        provenance=Provenance(
            commit="1a2b3c4d5e6f", dirty=True, created="2026-03-08T09:00:00Z", author="Mara"
        ),
    )


def test_models() -> None:
    """Each case with tags, expected time and factory."""
    expected = (
        "case    tags      expected  made by\n"
        "------  --------  --------  ----------------------\n"
        "bert/a  smoke pr      30 s  gate.models.bert:build\n"
        "lstm/b                20 s  tests/test_x.py::test_y\n"
    ).replace("----------------------\n", "-----------------------\n")

    assert f"{expected}\n2 cases" == render_models(CASES)


def test_a_plan_has_its_minutes() -> None:
    """Three trials of 30 s and 20 s are 2 min 30 s on one machine, 1 min 30 s on two."""
    report = render_plan(CASES, 3, 2)

    assert report.endswith("2 cases, about 2 min 30 s on one machine; about 1 min 30 s on 2 machines")


def test_baselines_by_environment(baseline: Baseline) -> None:
    """Age, origin and trials, with a mark for a dirty tree."""
    lines = render_baselines((baseline,), NOW).splitlines()

    assert f"{compute_environment_id(baseline.environment)} (1 baseline)" == lines[0]
    assert lines[3].split() == [
        "bert/a",
        "12",
        "days",
        "1a2b3c4d5e+",
        "Mara",
        "2",
    ]


def test_no_baselines_says_what_to_do() -> None:
    """An empty store has a hint instead of a table."""
    assert (
        render_baselines((), NOW, where="in perf")
        == "no baselines are stored in perf; record some with: compile-gate baseline refresh"
    )


def test_doctor_shows_the_worst_first() -> None:
    """A failed check is first, with its fix, and the result last."""
    checks = (
        Check(name="mode", level=CheckLevel.OK, finding="persistence mode on, MIG off", fix=""),
        Check(name="lock", level=CheckLevel.FAIL, finding="cpu is in use by ada", fix="Wait for it to end."),
    )

    expected = (
        "FAIL  lock  cpu is in use by ada\n            Wait for it to end.\n"
        "OK    mode  persistence mode on, MIG off\n\n"
    )
    assert f"{expected}not fit to judge: 1 of 2 checks failed" == render_doctor(checks)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((CheckLevel.OK,), "fit to judge"),
        ((CheckLevel.OK, CheckLevel.WARN), "fit to judge, with 1 warning"),
        ((CheckLevel.WARN, CheckLevel.FAIL), "not fit to judge: 1 of 2 checks failed"),
    ],
)
def test_doctor_concludes(levels: tuple[CheckLevel, ...], expected: str) -> None:
    """The last line is the result."""
    checks = tuple(Check(name="x", level=level, finding="MIG is enabled", fix="") for level in levels)

    assert expected == render_doctor(checks).splitlines()[-1]


def test_what_is_planned_or_found_is_json_too() -> None:
    models = json.loads(render_models(CASES, "json"))
    plan = json.loads(render_plan(CASES, 3, 2, "json"))
    check = Check(
        name="memory",
        level=CheckLevel.WARN,
        finding="2.5 GiB available",
        fix="End other programs, or raise the limit.",
        numbers={"gib": 2.5},
    )
    entry = json.loads(render_doctor((check,), "json"))[0]

    assert [case["id"] for case in models] == ["bert/a", "lstm/b"]
    assert [shard["expected_s"] for shard in plan["shards"]] == [90.0, 60.0]
    assert (entry["name"], entry["level"], entry["numbers"]) == ("memory", "warn", {"gib": 2.5})
    assert (entry["finding"], entry["fix"]) == (
        "2.5 GiB available",
        "End other programs, or raise the limit.",
    )


def test_hostile_cells_do_not_break_a_table(baseline: Baseline) -> None:
    """Line breaks and escapes in a name stay in their cell."""
    hostile = replace(baseline, provenance=Provenance(author="a\n\x1b[31mb"))

    assert "a b" in render_baselines((hostile,), NOW)
