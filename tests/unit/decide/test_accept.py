"""How much an acceptance allows, and the notes on what it does not cover."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.conclude.accept import (
    apply_acceptances,
    can_be_accepted,
    compute_acceptance_limit,
    keep_own,
    list_covered,
    note_left,
)
from gate.decide.conclude.coverage import is_lack_accepted
from gate.fingerprint import compute_environment_id
from gate.records.cases import Acceptance, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.verdict import Change, Comparison, Outcome, Reason, Status
from tests.hosts import CPU_HOST, CUDA_HOST
from tests.make import TODAY, Situation, decide, find_row, make_acceptance, make_change, make_row
from tests.words import write_note, write_notes

from .one_case import UNBROKEN

CASE = "mlp/inference-float32-smoke-default"
BREAKS = Metric.GRAPH_BREAKS
ONE_BREAK = Situation(before={BREAKS: (0.0,)}, after={BREAKS: (1.0,)})
TWO_BREAKS = Situation(before={BREAKS: (0.0,)}, after={BREAKS: (2.0,)})
ACCEPTED_BY = Fact(code=Code.ACCEPTED_BY, names=name_words(author="ada", expires=TODAY, reason="known"))
LACK = Acceptance(case=CASE, reason="the first change with a gate.", author="ada", expires=TODAY)


def accept_lack(*accepted: Acceptance) -> dict[str, Any]:
    """A policy that judges one commit for each of these acceptances of missing baselines."""
    commits = tuple(f"{index:040}" for index in range(len(accepted)))
    pairs = zip(accepted, commits, strict=True)
    return {
        "acceptances": tuple(replace(acceptance, commit=commit) for acceptance, commit in pairs),
        "commits": commits,
    }


@pytest.mark.parametrize(
    ("metric", "centre", "high", "expected"),
    [
        (Metric.COMPILED_LATENCY, 0.306, 0.326, 0.33),  # to whole percent, upwards
        (Metric.COMPILED_LATENCY, 0.06, 0.07, 0.07),  # 0.07 * 100 is 7.000000000000001
        (Metric.COMPILED_LATENCY, 0.06, 9.0, 0.12),  # an interval that no regression has
        (Metric.COMPILED_LATENCY, 0.06, 0.01, 0.06),  # an interval that contradicts itself
        (Metric.PEAK_MEMORY, 0.051, 0.051, 0.06),
        (BREAKS, 2.0, 2.0, 2.0),
        (BREAKS, 1.5, 1.5, 2.0),  # the median of two trials
        (Metric.DRIFT, 1.001, 1.203, 1.21),  # to hundredths of a log2 unit
    ],
)
def test_an_allowance_is_what_was_measured_rounded_up_with_its_interval(
    metric: Metric, centre: float, high: float, expected: float
) -> None:
    """The suggested allowance is the interval's upper end, rounded up, and at most twice the estimate."""
    change = Change(centre=centre, low=0.0, high=high, detectable=0.0)
    assert compute_acceptance_limit(make_row(CASE, metric, change=change)) == pytest.approx(
        expected, abs=1e-12
    )


def test_a_removed_case_needs_no_allowance() -> None:
    """Nothing of it was measured."""
    row = make_row(CASE, Metric.COMPILED_LATENCY, Status.MISSING, reason=Reason.REMOVED)
    assert compute_acceptance_limit(row) == 0.0


def test_an_allowance_by_cpu_time_has_the_clocks_margin() -> None:
    """CPU time is 12 % more, and the clock's interval ends 5 % above its estimate: 17 %."""
    change = Change(centre=0.03, low=0.0, high=0.08, detectable=0.0)
    judged = (Fact(code=Code.PROCESSOR_TIME, numbers={"change": 0.12}),)
    row = make_row(CASE, Metric.COLD_COMPILE_TIME, change=change, remarks=judged)
    assert compute_acceptance_limit(row) == 0.17


@given(st.floats(1e-3, 1e6), st.floats(0.0, 1.0))
def test_an_allowance_covers_its_change_and_little_more(centre: float, width: float) -> None:
    """The allowance is between the estimate and the interval's end plus one step."""
    change = Change(centre=centre, low=centre, high=centre * (1 + width), detectable=0.0)
    allowance = compute_acceptance_limit(make_row(CASE, Metric.COMPILED_LATENCY, change=change))
    assert centre <= allowance <= change.high + 0.01 + 1e-9 * centre


def accept(allowance: float, expires: str = TODAY) -> Acceptance:
    return make_acceptance(BREAKS, allowance, case=CASE, expires=expires)


def test_a_regression_beyond_its_acceptance_is_noted() -> None:
    """Two graph breaks where one was accepted regress, and a note names the acceptance."""
    verdict = decide(TWO_BREAKS, acceptances=(accept(1.0),))
    assert verdict.outcome is Outcome.REGRESSION
    assert f"{CASE} graph breaks: ada accepted up to 1 until 2026-03-01, and this is more." in write_notes(
        verdict
    )


@pytest.mark.parametrize("acceptance", [accept(2.0), accept(1.0, "2026-02-28")])
def test_what_is_covered_or_expired_is_not_called_exceeded(acceptance: Acceptance) -> None:
    """An acceptance that covers the change, or has expired, is not reported as exceeded."""
    assert not any(
        "this is more" in note for note in write_notes(decide(TWO_BREAKS, acceptances=(acceptance,)))
    )


@pytest.mark.parametrize(
    ("expires", "note"),
    [
        (TODAY, "ada accepts that there are no baselines until 2026-03-01: the first change with a gate."),
        ("2026-02-28", "ada accepted that there are no baselines; that expired on 2026-02-28."),
    ],
)
def test_accepted_missing_baselines_are_noted_and_change_no_outcome(expires: str, note: str) -> None:
    """An accepted lack of baselines is noted, and the outcome stays NOTHING_COMPARED."""
    verdict = decide(Situation(after={BREAKS: (0.0,)}), **accept_lack(replace(LACK, expires=expires)))
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert note in write_notes(verdict)


def test_of_expired_acceptances_the_first_is_named() -> None:
    """Two commits of a queue were accepted until two days."""
    entries = [replace(LACK, expires=day) for day in ("2026-02-28", "2026-02-27")]
    verdict = decide(Situation(after={BREAKS: (0.0,)}), **accept_lack(*entries))
    (note,) = (note for note in verdict.notes if note.code is Code.LACK_EXPIRED)
    assert note.name("expires") == "2026-02-28"


def test_an_accepted_lack_accepts_no_change() -> None:
    """An accepted lack of baselines accepts no regression against a baseline."""
    verdict = decide(ONE_BREAK, **accept_lack(LACK))
    assert find_row(verdict, BREAKS).status is Status.REGRESSED
    assert not any("lack of baselines" in note for note in write_notes(verdict))


UNJUDGED = make_row(CASE, BREAKS, Status.NEW)
BESIDE = replace(UNJUDGED, case_id="mlp/other")


@pytest.mark.parametrize(
    ("today", "accepted", "expected"),
    [
        (TODAY, [LACK], True),
        ("2026-03-02", [LACK], False),
        ("", [LACK], False),
        (TODAY, [], False),
        (TODAY, [LACK, LACK], True),
        (TODAY, [LACK, replace(LACK, case="mlp/z")], False),
        (TODAY, [replace(LACK, metric=BREAKS, allowance=9.0)], False),
    ],
    ids=["last day", "past", "no date", "nobody", "of both commits", "of one commit", "of a change"],
)
def test_an_accepted_lack_counts_through_its_last_day(
    today: str, accepted: list[Acceptance], expected: bool
) -> None:
    """It counts through its last day, needs today's date, and every commit of a queue needs one."""
    policy = Policy(thresholds={}, **accept_lack(*accepted), today=today)
    assert is_lack_accepted([UNJUDGED], policy) is expected


def test_an_accepted_lack_covers_its_cases_only() -> None:
    """It covers only the cases that it names, and only those without a baseline."""
    policy = Policy(thresholds={}, **accept_lack(LACK), today=TODAY)
    judged = make_row(CASE, BREAKS, change=make_change(1.0, detectable=0.0))
    assert not is_lack_accepted([UNJUDGED, BESIDE], policy)
    assert not is_lack_accepted([judged], policy)
    assert is_lack_accepted([replace(judged, decides=False)], policy)  # nothing decides: all of it is taken


@pytest.mark.parametrize(
    ("accepted", "ending"),
    [
        ([replace(LACK, case="mlp/z")], f"judged: {CASE}."),
        ([LACK, replace(LACK, expires="2026-02-28")], f"judged: {CASE}."),
    ],
    ids=["of another case", "expired for one commit"],
)
def test_missing_baselines_that_nobody_accepts_are_named(accepted: list[Acceptance], ending: str) -> None:
    """A note names the case whose missing baselines nobody accepts."""
    notes = write_notes(decide(Situation(after={BREAKS: (0.0,)}), **accept_lack(*accepted)))
    assert any(
        note.startswith("Missing baselines were not accepted") and note.endswith(ending) for note in notes
    )


ONE = make_acceptance(BREAKS, 1.0, case=CASE, reason="known.")
HERE, THERE = compute_environment_id(CPU_HOST), compute_environment_id(CUDA_HOST)


@pytest.mark.parametrize(
    ("scope", "is_own"),
    [
        (("a/gate.yml", HERE), True),
        (("b/gate.yml", HERE), False),
        (("a/gate.yml:slow", HERE), False),
        (("", HERE), False),
        (("a/gate.yml", THERE), False),
    ],
)
def test_an_acceptance_of_a_commit_counts_for_its_gate_and_machine_alone(
    scope: tuple[str, str], is_own: bool
) -> None:
    """For another gate.yml, key or device it does not count, and a note names both."""
    gate, environment = scope
    entry = replace(ONE, commit="a" * 40, gate=gate, environment=environment)
    verdict = decide(ONE_BREAK, acceptances=(entry,), gate="a/gate.yml")
    assert find_row(verdict, BREAKS).status is (Status.ACCEPTED if is_own else Status.REGRESSED)
    note = f"Accepted by ada for {gate} on {environment}, so it does not count here: 1 acceptance."
    assert (note in write_notes(verdict)) is not is_own


@pytest.mark.parametrize(
    ("environment", "status"),
    [("*", Status.ACCEPTED), ("cpu-*", Status.ACCEPTED), ("cuda-*", Status.REGRESSED)],
)
def test_a_standing_acceptance_may_be_of_some_machines(environment: str, status: Status) -> None:
    """An entry of accepted.yml counts on all machines, or on those that its pattern fits."""
    verdict = decide(ONE_BREAK, acceptances=(replace(ONE, environment=environment),), gate="a/gate.yml")
    assert find_row(verdict, BREAKS).status is status
    assert not any("does not count here" in note for note in write_notes(verdict))


def test_acceptances_for_other_machines_are_kept_apart() -> None:
    """An acceptance for another machine does not accept missing baselines here."""
    policy = Policy(thresholds={}, today=TODAY, **accept_lack(replace(LACK, environment=THERE), LACK))
    other, ours = policy.acceptances
    kept = keep_own(policy, compute_environment_id(CPU_HOST))
    assert (kept.acceptances, kept.elsewhere) == ((ours,), (other,))
    assert not is_lack_accepted([UNJUDGED], kept)
    assert keep_own(kept, compute_environment_id(CPU_HOST)) == kept


def test_what_an_acceptance_covers_is_listed() -> None:
    """The list has the accepted graph break of the case that one of the acceptances names."""
    entry = make_acceptance(BREAKS, 1.0, case="a/x", reason="known.")
    entries = (entry, replace(entry, case="b/x"))
    cases = (
        Situation(case_id=accepted.case, before={BREAKS: (0.0,)}, after={BREAKS: (1.0,)})
        for accepted in entries
    )
    accepted, other = decide(*cases, acceptances=entries).comparisons
    assert (accepted.status, other.status) == (Status.ACCEPTED, Status.ACCEPTED)
    rows = (
        replace(accepted, decides=False),
        replace(accepted, status=Status.REGRESSED),
        accepted,
        other,
    )
    elsewhere = replace(entry, case="c/x")
    assert list_covered(rows, (elsewhere, entry), Policy(thresholds={})) == (accepted,)


@pytest.mark.parametrize(
    ("case", "metric", "expires", "expected"),
    [
        ("mlp/*", BREAKS, TODAY, 1),
        ("mlp/*", BREAKS, "2026-02-28", 0),
        ("mlp/*", Metric.DRIFT, TODAY, 0),
        ("bert/*", BREAKS, TODAY, 0),
    ],
)
def test_an_acceptance_that_fits_what_is_recorded_is_named(
    case: str, metric: Metric, expires: str, expected: int
) -> None:
    """A valid standing acceptance that fits a recorded case and metric is noted."""
    entry = make_acceptance(metric, 1.0, case=case, expires=expires)
    baselines = [UNBROKEN, replace(UNBROKEN, case_id="cnn/x")]
    of_commit = replace(entry, allowance=2.0, commit="c" * 40)
    notes = note_left(baselines, Policy(thresholds={}, acceptances=(of_commit, entry), today=TODAY))
    assert len(notes) == expected
    beginning = "accepted.yml allows 1 more of mlp/* graph_breaks. If these baselines already"
    assert all(write_note(note).startswith(beginning) for note in notes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"decides": False}, False),
        ({"change": None}, False),  # a crash of nothing that can be weighed
        ({"status": Status.INCONCLUSIVE}, False),
        ({"status": Status.MISSING, "reason": Reason.REMOVED, "change": None}, True),
        ({"status": Status.MISSING, "reason": Reason.NOT_RUN, "change": None}, False),
        ({"status": Status.FAILED, "reason": Reason.CASE_FAILED, "change": None}, False),
    ],
)
def test_a_measured_worsening_and_a_removed_case_can_be_accepted(
    changes: dict[str, Any], expected: bool
) -> None:
    """What failed, is open or does not decide cannot be accepted."""
    row = make_row(CASE, Metric.COMPILED_LATENCY, change=make_change(0.3, 0.1))
    assert can_be_accepted(replace(row, **changes)) is expected


@pytest.mark.parametrize(("drift", "expected"), [(6.3, [Code.ACCEPT]), (6.5, [Code.FIX])])
def test_no_drift_beyond_8_is_offered_to_be_accepted(drift: float, expected: list[Code]) -> None:
    """A quarter more than 6.3 is 7.88; a quarter more than 6.5 is 8.13, which is 280 times the error."""
    verdict = decide(Situation(before={Metric.DRIFT: (0.0,) * 3}, after={Metric.DRIFT: (drift,) * 3}))
    assert [step.code for step in verdict.next_steps] == expected


REGRESSED: dict[str, Any] = {"status": Status.REGRESSED, "reason": Reason.BEYOND_BAR}
OPEN: dict[str, Any] = {"status": Status.INCONCLUSIVE, "reason": Reason.UNSETTLED}
OPEN_IN_PAIRS = {**OPEN, "more_pairs": 2}
REMOVED: dict[str, Any] = {"status": Status.MISSING, "reason": Reason.REMOVED}
TENTH = make_acceptance(Metric.COMPILED_LATENCY, 0.1, case=CASE)


def apply(comparison: Comparison, *acceptances: Acceptance) -> Comparison:
    (row,) = apply_acceptances(
        [comparison], Policy(thresholds={}, today=TODAY, acceptances=acceptances or (TENTH,))
    )
    return row


@pytest.mark.parametrize(
    ("fields", "change", "is_accepted"),
    [
        (REGRESSED, (0.05, 0.2), True),
        (REGRESSED, (0.1, 0.2), True),
        (REGRESSED, (0.11, 0.2), False),
        (REGRESSED, None, False),
        ({"status": Status.UNCHANGED, "reason": Reason.BELOW_THRESHOLD}, (0.05, 0.06), False),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.SHARED_SHIFT}, (0.05, 0.06), False),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.FEW_TRIALS, "more_pairs": 2}, (0.05, 0.06), False),
        (OPEN, (0.05, 0.09), True),
        (OPEN, (0.05, 0.1), True),
        (OPEN, (0.05, 0.11), False),
        (OPEN, (0.0, 0.09), False),  # it looks no worse, and nothing more is measured
        (OPEN, (-0.02, 0.09), False),
        (OPEN, None, False),
        ({**OPEN, "found": Reason.BEYOND_BAR}, (0.05, 0.11), True),  # it is worse, but for a doubt
        ({**OPEN, "found": Reason.BEYOND_BAR}, (0.11, 0.12), False),
        (OPEN_IN_PAIRS, (-0.02, 0.09), True),
        (OPEN_IN_PAIRS, (-0.02, 0.11), False),
        (OPEN_IN_PAIRS, (0.05, 0.09), True),
        (OPEN_IN_PAIRS, None, False),
        ({**OPEN_IN_PAIRS, "pairs": 1}, (0.05, 0.05), False),  # one pair has no interval
        ({**OPEN_IN_PAIRS, "pairs": 2}, (0.05, 0.09), True),
        ({**OPEN_IN_PAIRS, "pairs": 6}, (0.05, 0.09), True),
        ({**OPEN_IN_PAIRS, "pairs": 6}, (-0.02, 0.11), False),
        (REMOVED, None, False),  # it counts from the baseline, which a removed case has none of
    ],
)
def test_a_worsening_is_accepted_that_is_within_10_percent(
    fields: dict[str, Any], change: tuple[float, float] | None, *, is_accepted: bool
) -> None:
    """What is worse is within the allowance by its estimate, and what is open by its interval."""
    row = make_row(CASE, Metric.COMPILED_LATENCY, **fields)
    if change:
        row = replace(row, change=Change(centre=change[0], low=-0.3, high=change[1], detectable=0.0))
    accepted = replace(
        row, status=Status.ACCEPTED, reason=Reason.ACCEPTED, found=row.reason, remarks=(ACCEPTED_BY,)
    )
    assert apply(row) == (accepted if is_accepted else row)


def test_one_pair_settles_what_a_count_may_be() -> None:
    """A count needs no interval: one graph break more, in one pair, is within one that is accepted."""
    row = make_row(CASE, BREAKS, **OPEN_IN_PAIRS, pairs=1, change=make_change(1.0, detectable=0.0))
    assert apply(row, accept(1.0)).status is Status.ACCEPTED
    assert apply(row, accept(0.5)).status is Status.INCONCLUSIVE


def test_a_commit_may_remove_a_case_and_the_first_that_accepted_it_is_named() -> None:
    """A removed case is within any acceptance of a commit, and stays a removed one."""
    row = make_row(CASE, Metric.COMPILED_LATENCY, **REMOVED)
    entries = [replace(TENTH, commit="c" * 40, allowance=0.0, author=author) for author in ("eve", "bob")]
    accepted = apply(row, TENTH, *entries)
    assert (accepted.status, accepted.reason) == (Status.ACCEPTED, Reason.REMOVED)
    assert [fact.name("author") for fact in accepted.remarks] == ["eve"]


@pytest.mark.parametrize(
    ("change", "low", "expected"),
    [
        (0.09, 0.085, (Status.ACCEPTED, Reason.ACCEPTED)),
        (0.1, 0.09, (Status.ACCEPTED, Reason.ACCEPTED)),
        (0.15, 0.08, (Status.ACCEPTED, Reason.ACCEPTED)),  # it may be no more than what pairs show
        (0.15, 0.09, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (0.15, 0.1, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (0.15, 0.11, (Status.REGRESSED, Reason.BEYOND_BAR)),
    ],
)
def test_a_standing_acceptance_counts_from_the_stored_baseline(
    change: float, low: float, expected: tuple[Status, Reason]
) -> None:
    """10 % are accepted and pairs show +8 %: with what came before it is within them, may be, or is not."""
    since = Fact(code=Code.SINCE_STORED, numbers={"change": change, "low": low})
    row = make_row(CASE, Metric.COMPILED_LATENCY, change=make_change(0.08, 0.02), pairs=6, remarks=(since,))
    judged = apply(row)
    assert (judged.status, judged.reason) == expected
    assert judged.found is (None if judged == row else Reason.BEYOND_BAR)


def test_what_is_surely_no_worse_than_stored_uses_up_no_acceptance() -> None:
    """Pairs show -5 % to +9 %, stored values +12 %, or surely no less than -2 %."""
    since = Fact(code=Code.SINCE_STORED, numbers={"change": 0.12, "low": -0.02})
    change = Change(centre=-0.05, low=-0.2, high=0.09, detectable=0.0)
    row = make_row(CASE, Metric.COMPILED_LATENCY, **OPEN_IN_PAIRS, pairs=6, change=change, remarks=(since,))
    assert apply(row).status is Status.ACCEPTED


@pytest.mark.parametrize("commit_first", [False, True])
def test_the_order_of_two_acceptances_decides_nothing(*, commit_first: bool) -> None:
    """Pairs show +8 %, stored values +15 %: the standing 10 % are used up, the commit's 20 % are not."""
    metric = Metric.COMPILED_LATENCY
    since = Fact(code=Code.SINCE_STORED, numbers={"change": 0.15, "low": 0.09})
    row = make_row(CASE, metric, change=make_change(0.08, 0.02), pairs=6, remarks=(since,))
    acceptances = [
        make_acceptance(metric, 0.1, case=CASE),
        make_acceptance(metric, 0.2, case=CASE, commit="c" * 40),
    ]
    policy = Policy(thresholds={}, today=TODAY, acceptances=tuple(acceptances[:: -1 if commit_first else 1]))
    assert apply_acceptances([row], policy)[0].status is Status.ACCEPTED


@pytest.mark.parametrize(
    ("metric", "before", "after", "expected"),
    [
        (Metric.GRAPH_BREAKS, 1.0, 40.0, Code.ACCEPT),
        (Metric.COMPILED_LATENCY, 0.01, 0.08, Code.ACCEPT),
        (Metric.COMPILED_LATENCY, 0.01, 0.12, Code.FIX),
    ],
)
def test_no_ratio_beyond_eleven_times_is_offered_to_be_accepted(
    metric: Metric, before: float, after: float, expected: Code
) -> None:
    """With a quarter more, +700 % is below the most of +1000 %, +1100 % is beyond; counts have no most."""
    verdict = decide(Situation(before={metric: (before,) * 5}, after={metric: (after,) * 5}))
    assert verdict.next_steps[0].code is expected
