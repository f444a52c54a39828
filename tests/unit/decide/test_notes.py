"""What limits how far a verdict can be trusted, note by note."""

from dataclasses import replace
from typing import Any

import pytest

from gate.decide.explain.notes import (
    list_notes,
    list_notes_of_run,
    note_acquitted,
    note_gone,
    note_idle,
    note_machine,
    note_shard,
    note_unchanged_speedup,
    parse_day,
)
from gate.devices import TARGET_KIND
from gate.records.cases import Acceptance, Case, DType, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, Baseline, Provenance, Run, Shard
from gate.records.verdict import Comparison, Estimate, MachineShift, Reason, Status
from tests.hosts import CPU_HOST
from tests.make import TODAY, make_acceptance, make_baseline, make_change, make_failure, make_row, make_run

LATENCY, DRIFT, BREAKS = Metric.COMPILED_LATENCY, Metric.DRIFT, Metric.GRAPH_BREAKS
CASE = Case(id="a/x", model="a", factory="m:f", definition="d1")
RUN = replace(make_run(), cases=(CASE,), finished=True)
POLICY = Policy(thresholds={}, today=TODAY)


def note(
    *rows: Comparison, run: Run = RUN, used: tuple[Baseline, ...] = (), policy: Policy = POLICY, **more: bool
) -> tuple[Fact, ...]:
    return list_notes(run, rows, used, policy, **more)


def make_dated(day: str) -> Baseline:
    return make_baseline("a/x", {}, provenance=Provenance(created=day))


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        (["2026-01-30T10:00:00Z"], []),
        (["2026-01-29T10:00:00Z"], [{"baselines": 1, "days": 30, "oldest": 31}]),
        (["2026-02-28", "2026-01-20", "2026-01-10"], [{"baselines": 2, "days": 30, "oldest": 50}]),
        (["", "long ago"], []),
    ],
)
def test_baselines_of_more_than_thirty_days_are_counted(
    created: list[str], expected: list[dict[str, int]]
) -> None:
    """Of 2026-03-01; the oldest is named, and one without a date is not counted."""
    used = tuple(map(make_dated, created))
    assert [fact.numbers for fact in note(used=used) if fact.code is Code.BASELINES_OLD] == expected
    assert note(used=used, in_pairs=True) == ()
    assert note(used=used, policy=replace(POLICY, today="")) == ()


def test_a_day_is_the_first_ten_characters() -> None:
    """Of an ISO 8601 time; what is none has no day."""
    assert str(parse_day("2026-03-01T23:59:59Z")) == "2026-03-01"
    assert parse_day("yesterday") is None


def test_a_run_that_was_stopped_or_lost_its_base_is_noted() -> None:
    """A case of which base and head failed counts for the base once."""
    failures = tuple(make_failure(case, arm=arm) for case in ("a/x", "a/x") for arm in (BASE_ARM, "head"))
    facts = note(run=replace(RUN, finished=False, failures=(*failures, make_failure("a/y", arm="head"))))
    assert [fact.code for fact in facts] == [Code.STOPPED, Code.BASE_CASES_FAILED]
    assert (facts[1].numbers, facts[1].cases) == ({"cases": 1}, ("a/x",))


@pytest.mark.parametrize(
    ("fields", "is_noted"),
    [
        ({}, True),
        ({"status": Status.UNCHANGED}, False),
        ({"pairs": 2}, False),
        ({"decides": False}, False),
        ({"metric": BREAKS}, False),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.UNPAIRED}, True),
    ],
)
def test_a_time_that_only_stored_values_convict_is_noted(fields: dict[str, Any], *, is_noted: bool) -> None:
    """Or that no pair had time for; where all was compared in pairs, neither is."""
    row = replace(make_row("a/x", LATENCY), **fields)
    codes = [fact.code for fact in note(row, row)]
    assert (Code.STORED_ONLY in codes) == is_noted
    assert Code.STORED_ONLY not in [fact.code for fact in note(row, in_pairs=True)]


@pytest.mark.parametrize(
    ("drift", "fields", "numbers"),
    [
        (1.0, {}, None),
        (1.01, {}, {"drift": 1.01, "limit": 1.0}),
        (1.01, {"pairs": 2}, {"drift": 1.01, "limit": 1.0, "in_pairs": 1}),
        (1.01, {"status": Status.REGRESSED}, None),
        (1.01, {"metric": LATENCY}, None),
    ],
)
def test_a_drift_above_its_limit_that_did_not_regress_is_noted(
    drift: float, fields: dict[str, Any], numbers: dict[str, float] | None
) -> None:
    """It was as large before; one that regressed is reported as that."""
    candidate = Estimate(centre=drift, low=None, high=None, noise=None, n=1)
    row = replace(make_row("a/x", DRIFT, Status.UNCHANGED), candidate=candidate, **fields)
    noted = [fact.numbers for fact in note(row) if fact.code is Code.DRIFT_ABOVE]
    assert noted == ([numbers] if numbers else [])
    half = replace(RUN, cases=(replace(CASE, dtype=DType.FLOAT16),))
    assert Code.DRIFT_ABOVE not in [fact.code for fact in note(row, run=half)]


def lack(**fields: Any) -> Acceptance:
    return replace(make_acceptance(LATENCY, 0.0, commit="c1", **fields), case="a/x", metric=None)


def test_the_acceptance_of_a_lack_that_ends_first_is_named() -> None:
    """All of them must still count; one alone that is not in force has expired."""
    row = make_row("a/x", LATENCY, Status.NOT_COMPARABLE, reason=Reason.NO_BASELINE)
    both = (lack(expires="2026-03-09"), lack(expires="2026-03-05"), lack(expires="2026-02-28"))

    def find(*entries: Acceptance, rows: tuple[Comparison, ...] = (row,)) -> list[tuple[Code, str]]:
        facts = note(*rows, policy=replace(POLICY, acceptances=entries, commits=("c1",)))
        return [(fact.code, fact.name("expires")) for fact in facts if fact.code.name.startswith("LACK")]

    assert find(*both) == [(Code.LACK_ACCEPTED, "2026-03-05")]
    assert find(*both[2:]) == [(Code.LACK_EXPIRED, "2026-02-28")]
    assert find(replace(both[0], case="a/y")) == [(Code.LACK_UNACCEPTED, "")]
    judged = make_row("a/x", BREAKS, Status.UNCHANGED)
    assert find(*both, rows=(judged, row)) == [(Code.LACK_ACCEPTED, "2026-03-05")]
    assert find(*both, rows=(judged,)) == []


def test_what_is_not_compared_is_noted_by_reason() -> None:
    """With its metrics in the order of all metrics; in pairs the words are the base's."""
    fields: dict[str, Any] = {"status": Status.NOT_COMPARABLE, "reason": Reason.NO_BASELINE}
    rows = [
        replace(make_row(case, metric), **fields) for case in ("a/x", "a/y") for metric in (BREAKS, LATENCY)
    ]
    others = [make_row("a/x", DRIFT, Status.UNCHANGED), replace(rows[0], decides=False, case_id="a/z")]
    for in_pairs, code in ((False, Code.NO_BASELINE), (True, Code.BASE_LACKS_CASES)):
        (fact,) = note(*rows, *others, in_pairs=in_pairs)
        assert (fact.code, fact.numbers, fact.metrics) == (code, {"cases": 2}, (LATENCY, BREAKS))


@pytest.mark.parametrize(
    ("shift", "judged", "numbers"),
    [
        (MachineShift(canary=0.1), True, {"canary": 0.1}),
        (MachineShift(canary=0.1), False, None),
        (MachineShift(), True, None),
        (MachineShift(canary=0.001, suite=-0.2), True, {"canary": 0.001, "suite": -0.2}),
    ],
)
def test_a_machine_of_another_speed_is_noted_where_something_was_judged(
    shift: MachineShift, judged: bool, numbers: dict[str, float] | None
) -> None:
    """With both of its shifts, as soon as one is notable."""
    assert [fact.numbers for fact in note_machine(shift, judged)] == ([numbers] if numbers else [])


def test_what_a_pass_does_not_cover_is_noted() -> None:
    """Cases of the base that are gone, once each, and the other shards of a plan."""
    (gone,) = note_gone(["a/x", "a/y", "a/y"], [CASE])
    assert (gone.code, gone.cases) == (Code.CASES_GONE, ("a/y",))
    assert note_gone(["a/x"], [CASE]) == ()
    (shard,) = note_shard(replace(RUN, shard=Shard(number=1, of=3, cases=5)))
    assert (shard.numbers, shard.name("shard")) == ({"left": 4, "cases": 5}, "shard 1 of 3")
    assert note_shard(RUN) == ()


def test_three_that_pairs_cleared_are_named() -> None:
    """All are counted."""
    rows = [make_row(f"a/{number}", LATENCY) for number in range(4)]
    (fact,) = note_acquitted(rows)
    assert fact.numbers == {"comparisons": 4}
    assert (fact.cases, fact.metrics) == (("a/0", "a/1", "a/2"), (LATENCY,) * 3)
    assert note_acquitted([]) == ()


def test_what_a_steady_ratio_may_hide_is_the_most_of_any_case() -> None:
    """The end of its interval, or what could be seen, whichever is more."""
    same: dict[str, Any] = {"status": Status.UNCHANGED, "reason": Reason.SAME_WORK}
    rows = [
        replace(make_row("a/1", LATENCY), **same, change=make_change(0.1, 0.05, detectable=0.03)),
        replace(make_row("a/2", LATENCY), **same, change=make_change(0.0, 0.05, detectable=0.12)),
        replace(make_row("a/3", LATENCY), change=make_change(0.9)),
        replace(make_row("a/4", Metric.WARM_COMPILE_TIME), **same, change=make_change(0.9)),
    ]
    (fact,) = note_unchanged_speedup(rows)
    assert (fact.numbers, fact.cases) == ({"cases": 2, "hidden": pytest.approx(0.15)}, ("a/1", "a/2"))
    assert note_unchanged_speedup(rows[2:]) == ()


def test_an_acceptance_is_used_if_it_fits_one_case_of_several() -> None:
    """It need not fit them all."""
    policy = Policy(thresholds={}, acceptances=(make_acceptance(DRIFT, 1.0, case="a/x"),))
    assert note_idle(policy, [CASE, replace(CASE, id="b/x")]) == ()


def test_a_run_without_a_device_or_without_times_says_so() -> None:
    """A target's machine has no device; of a fleet's test only counts are compared."""
    target = replace(RUN, environment=replace(CPU_HOST, device_kind=TARGET_KIND))
    assert [fact.code for fact in list_notes_of_run(target, in_pairs=False)] == [Code.NO_DEVICE]
    counted = replace(RUN, counts_only=True)
    assert [fact.code for fact in list_notes_of_run(counted, in_pairs=True)] == [Code.COUNTS_ONLY]
    assert list_notes_of_run(RUN, in_pairs=False) == ()
