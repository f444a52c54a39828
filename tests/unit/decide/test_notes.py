"""What limits how far a verdict can be trusted, from its rows and rules."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.evidence.gather import Evidence, Stored
from gate.decide.explain.notes import (
    list_notes,
    list_notes_of_rows,
    list_notes_of_run,
    note_acquitted,
    note_difference,
    note_gone,
    note_machine,
    note_unchanged_speedup,
)
from gate.decide.judge.machine import Machine
from gate.decide.judge.screening import BaseFindings, Screening
from gate.records.cases import Acceptance, Case, DType, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Provenance, Run, Shard
from gate.records.verdict import Change, Comparison, Estimate, MachineShift, Reason, Status
from tests.hosts import CPU_HOST
from tests.make import TODAY, make_acceptance, make_baseline, make_change, make_failure, make_row, make_run

LATENCY, DRIFT, COLD = Metric.COMPILED_LATENCY, Metric.DRIFT, Metric.COLD_COMPILE_TIME
NOTHING_STORED: Mapping[str, Any] = {"status": Status.NEW, "reason": Reason.NO_BASELINE}


def list_of(code: Code, *rows: Comparison, **given: Any) -> list[Fact]:
    """The notes of a code on these rows; ``given``: the run, baselines or rules, else those of nothing."""
    cases = tuple(Case(id=name, model="m") for name in dict.fromkeys(row.case_id for row in rows))
    run, used = given.pop("run", make_run(cases=cases)), given.pop("used", ())
    rules = given.pop("rules", Policy(thresholds={}, today=TODAY))
    return [note for note in list_notes(run, rows, used, rules, **given) if note.code is code]


def estimate(centre: float) -> Estimate:
    return Estimate(centre=centre, low=None, high=None, noise=None, n=1)


@pytest.mark.parametrize(
    ("fields", "is_noted"),
    [
        ({}, True),
        ({"change": None}, False),
        ({"status": Status.ACCEPTED}, False),
        ({"status": Status.INCONCLUSIVE, "found": Reason.BEYOND_BAR, "pairs": 1}, True),
        ({"status": Status.INCONCLUSIVE, "found": Reason.BEYOND_BAR, "pairs": 0}, False),
        ({"status": Status.INCONCLUSIVE, "found": Reason.BELOW_THRESHOLD, "pairs": 1}, False),
        ({"status": Status.INCONCLUSIVE, "found": None, "pairs": 1}, False),
        ({"status": Status.IMPROVED, "found": Reason.BEYOND_BAR, "pairs": 1}, False),
    ],
)
def test_an_acceptance_that_does_not_reach_is_noted(fields: dict[str, Any], *, is_noted: bool) -> None:
    """It is exceeded by a regression, and by what is open only because of the stored baseline."""
    row = make_row("mlp/x", LATENCY, **{"change": make_change(0.2), **fields})
    entry = make_acceptance(LATENCY, 0.1)
    rules = Policy(thresholds={}, acceptances=(entry,), today=TODAY)
    notes = list_of(Code.ACCEPTANCE_EXCEEDED, row, rules=rules)
    expected = Fact(
        code=Code.ACCEPTANCE_EXCEEDED,
        numbers={"allowance": 0.1},
        cases=("mlp/x",),
        metrics=(LATENCY,),
        names={"author": ("ada",), "expires": (TODAY,)},
    )
    assert notes == ([expected] if is_noted else [])


@pytest.mark.parametrize(
    "entry",
    [
        make_acceptance(COLD, 0.1),
        make_acceptance(LATENCY, 0.1, case="vit/*"),
        make_acceptance(LATENCY, 0.1, expires="2026-02-28"),
    ],
    ids=["another metric", "another case", "expired"],
)
def test_an_acceptance_of_something_else_is_not_exceeded(entry: Acceptance) -> None:
    """Only one in force, of the metric and the case that got worse."""
    rules = Policy(thresholds={}, acceptances=(entry,), today=TODAY)
    row = make_row("mlp/x", LATENCY, change=make_change(0.2))
    assert list_of(Code.ACCEPTANCE_EXCEEDED, row, rules=rules) == []


@pytest.mark.parametrize(
    ("allowance", "since", "stored"),
    [(0.2, 0.3, 0.3), (0.19, 0.3, None), (0.3, 0.3, None), (0.29, 0.3, 0.3), (0.31, 0.3, None)],
)
def test_an_allowance_that_only_the_change_from_stored_exceeds_says_so(
    allowance: float, since: float, stored: float | None
) -> None:
    """Pairs show 20 %, which it covers, and from the stored baseline it is 30 %."""
    remark = Fact(code=Code.SINCE_STORED, numbers={"change": since, "low": 0.25})
    row = make_row("mlp/x", LATENCY, change=make_change(0.2), pairs=6, remarks=(remark,))
    rules = Policy(thresholds={}, acceptances=(make_acceptance(LATENCY, allowance),), today=TODAY)
    (note,) = list_of(Code.ACCEPTANCE_EXCEEDED, row, rules=rules)
    assert note.numbers.get("stored") == stored


def accept_lack(expires: str, case: str = "*", commit: str = "c1") -> Acceptance:
    """An acceptance of missing baselines."""
    return Acceptance(case=case, reason="first.", author=f"by {expires}", expires=expires, commit=commit)


@pytest.mark.parametrize(
    ("acceptances", "code", "name"),
    [
        ([], None, ""),
        ([make_acceptance(LATENCY, 0.1)], None, ""),
        ([accept_lack("2026-03-05", "mlp/x")], Code.LACK_ACCEPTED, "2026-03-05"),
        (
            [accept_lack("2026-03-09", "mlp/x"), accept_lack("2026-03-05"), accept_lack("2026-03-07")],
            Code.LACK_ACCEPTED,
            "2026-03-05",
        ),
        (
            [accept_lack("2026-02-01"), accept_lack("2026-03-07", "mlp/x")],
            Code.LACK_ACCEPTED,
            "2026-03-07",
        ),
        ([accept_lack("2026-02-28"), accept_lack("2026-02-27")], Code.LACK_EXPIRED, "2026-02-28"),
        ([accept_lack("2026-03-05", "vit/x"), accept_lack("2026-02-27")], Code.LACK_UNACCEPTED, ""),
    ],
    ids=["none", "of a metric", "in force", "the first to expire", "one expired", "all expired", "another"],
)
def test_accepted_missing_baselines_are_noted_with_what_ends_first(
    acceptances: list[Acceptance], code: Code | None, name: str
) -> None:
    """One case has nothing stored and another has: the acceptance still counts, has expired or is not its."""
    rows = (make_row("mlp/x", LATENCY, **NOTHING_STORED), make_row("vit/y", LATENCY, Status.UNCHANGED))
    rules = Policy(thresholds={}, acceptances=tuple(acceptances), commits=("c1",), today=TODAY)
    codes = (Code.LACK_ACCEPTED, Code.LACK_EXPIRED, Code.LACK_UNACCEPTED)
    notes = [note for lack in codes for note in list_of(lack, *rows, rules=rules)]
    assert [(note.code, note.name("expires")) for note in notes] == ([(code, name)] if code else [])
    assert [note.cases for note in notes] == [("mlp/x",) if code is Code.LACK_UNACCEPTED else ()] * len(notes)


def test_no_missing_baseline_needs_no_word_of_its_acceptance() -> None:
    """Also where nothing decides."""
    rules = Policy(thresholds={}, acceptances=(accept_lack("2026-03-05"),), commits=("c1",), today=TODAY)
    rows = (make_row("a", LATENCY, Status.UNCHANGED), make_row("b", LATENCY, **NOTHING_STORED, decides=False))
    assert list_of(Code.LACK_ACCEPTED, *rows, rules=rules) == []
    assert list_of(Code.LACK_UNACCEPTED, *rows, rules=rules) == []


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({}, {"drift": 1.2, "limit": 1.0}),
        ({"pairs": 1}, {"drift": 1.2, "limit": 1.0, "in_pairs": 1}),
        ({"candidate": estimate(1.0)}, None),
        ({"candidate": None}, None),
        ({"status": Status.REGRESSED}, None),
        ({"metric": LATENCY}, None),
        ({"case_id": "half"}, None),
        ({"case_id": "half", "candidate": estimate(1.6)}, {"drift": 1.6, "limit": 1.58}),
    ],
)
def test_drift_above_its_limit_is_noted_where_it_did_not_regress(
    fields: dict[str, Any], numbers: dict[str, float] | None
) -> None:
    """The limit is 1 of float32 and 1.58 of half precision."""
    run = make_run(cases=(Case(id="a", model="m"), Case(id="half", model="m", dtype=DType.BFLOAT16)))
    row = replace(make_row("a", DRIFT, Status.UNCHANGED, candidate=estimate(1.2)), **fields)
    notes = list_of(Code.DRIFT_ABOVE, row, run=run)
    assert [note.numbers for note in notes] == ([pytest.approx(numbers, abs=0.01)] if numbers else [])
    assert [(note.cases, note.metrics) for note in notes] == [((row.case_id,), (DRIFT,))] * len(notes)


@pytest.mark.parametrize(
    ("days", "numbers"),
    [
        (("2026-01-30",), None),  # 30 days before today
        (("2026-01-29",), {"baselines": 1, "days": 30, "oldest": 31}),
        (
            ("2026-01-29T23:59:59Z", "2026-01-20", "2026-02-28", "", "yesterday"),
            {"baselines": 2, "days": 30, "oldest": 40},
        ),
        ((), None),
    ],
)
def test_baselines_of_more_than_30_days_are_counted(
    days: Sequence[str], numbers: dict[str, float] | None
) -> None:
    """With the age of the oldest, where a date is known; none are where all is in pairs."""
    used = [make_baseline("a", {}, provenance=Provenance(created=day)) for day in days]
    expected = [Fact(code=Code.BASELINES_OLD, numbers=numbers)] if numbers else []
    assert list_of(Code.BASELINES_OLD, used=used) == expected
    assert list_of(Code.BASELINES_OLD, used=used, in_pairs=True) == []
    assert list_of(Code.BASELINES_OLD, used=used, rules=Policy(thresholds={})) == []


@pytest.mark.parametrize(
    ("reason", "codes"),
    [
        (Reason.NO_BASELINE, (Code.NO_BASELINE, Code.BASE_LACKS_CASES)),
        (Reason.STALE_DEFINITION, (Code.REDEFINED, Code.BASE_DEFINES_CASES_OTHERWISE)),
        (Reason.NOT_MEASURED, (Code.NOT_RECORDED, Code.BASE_LACKS_METRICS)),
        (Reason.MEASURED_OTHERWISE, (Code.MEASURED_BEFORE, None)),
        (Reason.UNPAIRED, (None, Code.BASE_NOT_MEASURED)),
    ],
)
def test_what_had_nothing_to_be_compared_with_is_counted(
    reason: Reason, codes: tuple[Code | None, Code | None]
) -> None:
    """By cases, with the metrics, of what decides; the words depend on which side lacks them."""
    rows = [
        make_row(case, metric, Status.NOT_COMPARABLE, reason=reason, decides=decides)
        for case, metric, decides in (
            ("a", COLD, True),
            ("a", LATENCY, True),
            ("b", COLD, True),
            ("c", DRIFT, False),
        )
    ]
    for code, in_pairs in zip(codes, (False, True), strict=True):
        notes = [] if code is None else list_of(code, *rows, in_pairs=in_pairs)
        expected = [Fact(code=code, numbers={"cases": 2}, metrics=(LATENCY, COLD))] if code else []
        assert notes == expected


def test_a_base_that_failed_is_noted_with_its_cases() -> None:
    """Head's failures are no note."""
    failures = (make_failure("a", arm="base"), make_failure("a", arm="base", trial=2), make_failure("b"))
    notes = list_of(Code.BASE_CASES_FAILED, run=make_run(failures=failures))
    assert notes == [Fact(code=Code.BASE_CASES_FAILED, numbers={"cases": 1}, cases=("a",))]


def test_a_regression_that_only_stored_baselines_show_is_counted() -> None:
    """By cases; not where the others are in pairs, nor a counter, which repeats."""
    rows = [
        make_row(case, metric, pairs=pairs)
        for case, metric, pairs in (
            ("a", LATENCY, 0),
            ("a", COLD, 0),
            ("b", LATENCY, 1),
            ("c", Metric.GRAPH_BREAKS, 0),
        )
    ]
    assert [note.numbers for note in list_of(Code.STORED_ONLY, *rows)] == [{"cases": 1}]
    assert list_of(Code.STORED_ONLY, *rows, in_pairs=True) == []


@pytest.mark.parametrize(
    ("entry", "is_noted"),
    [
        (make_acceptance(LATENCY, 0.1, expires="2026-02-28"), True),
        (make_acceptance(LATENCY, 0.1, expires=TODAY), False),
        (make_acceptance(COLD, 0.1, expires="2026-02-28"), False),
        (make_acceptance(LATENCY, 0.1, expires="2026-02-28", case="b"), False),
    ],
)
def test_an_acceptance_that_expired_is_noted_where_it_would_fit(entry: Acceptance, *, is_noted: bool) -> None:
    """Yesterday; on its last day it counts."""
    rules = Policy(thresholds={}, acceptances=(replace(entry, reason="known."),), today=TODAY)
    rows = (make_row("c", DRIFT), make_row("a", LATENCY))
    expected = Fact(
        code=Code.ACCEPTANCE_EXPIRED,
        metrics=(LATENCY,),
        names={"pattern": ("*",), "expires": ("2026-02-28",), "reason": ("known",)},
    )
    assert list_of(Code.ACCEPTANCE_EXPIRED, *rows, rules=rules) == ([expected] if is_noted else [])


@pytest.mark.parametrize(
    ("machine", "judged", "numbers"),
    [
        (MachineShift(canary=0.04), True, {"canary": 0.04}),
        (MachineShift(canary=0.04), False, None),
        (MachineShift(canary=0.03), True, None),
        (MachineShift(suite=-0.031, canary=0.01), True, {"canary": 0.01, "suite": -0.031}),
    ],
)
def test_a_machine_that_moved_by_more_than_3_percent_is_noted(
    machine: MachineShift, judged: bool, numbers: dict[str, float] | None
) -> None:
    """Where something was judged."""
    expected = (Fact(code=Code.MACHINE_CHANGED, numbers=numbers),) if numbers else ()
    assert note_machine(machine, judged=judged) == expected


def test_cases_that_are_gone_are_named() -> None:
    """What the base has and the plan has not, in the base's order."""
    expected = Fact(code=Code.CASES_GONE, numbers={"cases": 2}, cases=("c", "a"))
    assert note_gone(("c", "b", "a"), [Case(id="b", model="m"), Case(id="d", model="m")]) == (expected,)
    assert note_gone(("b",), [Case(id="b", model="m")]) == ()


def test_a_latency_that_its_ratio_cleared_says_what_may_be_hidden() -> None:
    """The most that an interval reaches, or that would have been noticed, of both cases."""
    changes = {"a": Change(centre=0.0, low=-0.1, high=0.04, detectable=0.05), "b": make_change(0.0, 0.07)}
    rows = [
        make_row(name, LATENCY, reason=Reason.SAME_WORK, change=change) for name, change in changes.items()
    ]
    others = [make_row("c", COLD, reason=Reason.SAME_WORK), make_row("d", LATENCY, change=make_change(0.5))]
    numbers = {"cases": 2, "hidden": 0.07}
    expected = Fact(code=Code.UNCHANGED_SPEEDUP, numbers=numbers, cases=("a", "b"))
    assert note_unchanged_speedup([*rows, *others]) == (expected,)
    (first,) = note_unchanged_speedup(rows[:1])
    assert first.numbers == {"cases": 1, "hidden": 0.05}
    assert note_unchanged_speedup(others) == ()


def make_evidence(*stored: tuple[str, bool]) -> Evidence:
    """Of a case with these stored baselines: their compiler, and whether they are of this host."""
    matches = tuple(
        Stored(
            baseline=make_baseline("a", {}, environment=replace(CPU_HOST, compiler=compiler)),
            same_host=same_host,
            same_stack=same_host,
            same_codegen=same_host,
            same_definition=True,
        )
        for compiler, same_host in stored
    )
    return Evidence(case=Case(id="a", model="m"), trials=(), failures=(), values={}, stored=matches)


@pytest.mark.parametrize(
    ("cases", "differences"),
    [
        ([], ()),
        ([[]], ()),
        ([[(CPU_HOST.compiler, False)]], ()),
        ([[], [("g++ 9", True)], [("g++ 10", False), ("g++ 8", False)]], ("compiler g++ 10 -> g++ 12.2.0",)),
        ([[("g++ 9", True), ("g++ 8", False)]], ()),
        ([[("g++ 10", False)], [("g++ 8", False)]], ("compiler g++ 10 -> g++ 12.2.0",)),
    ],
    ids=["no case", "none stored", "no difference", "the nearest", "this host's too", "the first case's"],
)
def test_the_nearest_baseline_of_another_host_is_named_by_what_differs(
    cases: list[list[tuple[str, bool]]], differences: tuple[str, ...]
) -> None:
    """Of the first case that has none of this host."""
    notes = note_difference([make_evidence(*stored) for stored in cases], CPU_HOST)
    expected = Fact(code=Code.NEAREST_DIFFERS, names={"differences": differences})
    assert notes == ((expected,) if differences else ())


def list_codes_of_rows(run: Run, *statuses: Status, **base: Any) -> list[Code]:
    """Of the notes on rows of these statuses, on a machine 10 % slower."""
    machine = Machine(canary=math.log(1.1))
    findings = BaseFindings(**base)
    screening = Screening(evidence=(), comparisons=(), machine=machine, places={}, base=findings)
    rows = [make_row("a", LATENCY, status) for status in statuses]
    return [note.code for note in list_notes_of_rows(run, screening, rows)]


def test_a_machine_is_noted_where_anything_was_judged() -> None:
    """One row of two is enough."""
    run = make_run()
    assert list_codes_of_rows(run, Status.NEW, Status.UNCHANGED) == [Code.MACHINE_CHANGED]
    assert list_codes_of_rows(run, Status.NEW) == []


def test_cases_that_only_the_base_has_are_unknown_in_a_shard() -> None:
    """Another shard may have them."""
    run = make_run(cases=(), base=(Case(id="b", model="m"),))
    assert list_codes_of_rows(run) == [Code.CASES_GONE]
    assert list_codes_of_rows(replace(run, shard=Shard(number=1, of=2, cases=7))) == []
    assert list_codes_of_rows(make_run()) == []


def test_what_the_base_cleared_is_noted_with_three_examples() -> None:
    """Comparisons are counted, and cases with the base's program are named."""
    acquitted = tuple(make_row(name, LATENCY) for name in "abcd")
    assert list_codes_of_rows(make_run(), acquitted=acquitted, same=("a",)) == [
        Code.CLEARED,
        Code.UNCHANGED_SOURCES,
    ]
    (note,) = note_acquitted(acquitted)
    assert (note.numbers, note.cases, note.metrics) == ({"comparisons": 4}, ("a", "b", "c"), (LATENCY,) * 3)


@pytest.mark.parametrize("in_pairs", [False, True])
def test_the_code_of_a_target_is_compared_with_the_base_in_pairs_alone(*, in_pairs: bool) -> None:
    """A target always has the note that no device measured, and a CPU has neither."""
    run = make_run(environment=replace(CPU_HOST, device_kind="target"), base=(), counts_only=True)
    codes = [note.code for note in list_notes_of_run(run, in_pairs=in_pairs)]
    assert codes == [Code.NO_DEVICE, Code.COUNTS_ONLY, *([Code.CODE_IS_THE_BASES] if in_pairs else [])]
    assert list_notes_of_run(make_run(base=()), in_pairs=in_pairs) == ()
