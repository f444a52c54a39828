"""Each branch of a check, with made-up trials."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from gate.check.procedure import (
    Checked,
    CheckTerms,
    PairLimit,
    _count_looks,
    _list_longer_compiles,
    check_against_base,
    check_against_baselines,
    check_pairs,
    judge_recorded,
    list_unfinished,
)
from gate.decide.constants import CHANCE_EDGES
from gate.decide.judge.screening import Screening
from gate.decide.side_by_side import decide_side_by_side, list_unsettled
from gate.decide.suspects import Suspect
from gate.decide.verdict import decide_verdict
from gate.records.cases import AbsoluteLimit, Metric, Threshold
from gate.records.codes import Code
from gate.records.run import Baseline, Pairing, Run
from gate.records.verdict import Outcome, Reason, Status, Verdict
from tests.make import POLICY, find_row, make_change, make_row

from .conftest import Given, Subject, make_pair, make_run, make_stored, make_terms

LATENCY, BREAKS, COMPILE = Metric.COMPILED_LATENCY, Metric.GRAPH_BREAKS, Metric.COLD_COMPILE_TIME
SLOW = [{LATENCY: 0.012}] * 3  # a fifth slower than what is stored
# Not quite a tenth slower: three trials do not settle it, and chance might.
DOUBTFUL = [{LATENCY: 0.0106}] * 3
Check = Callable[..., Checked]


def check_with_base(given: Given, **terms: object) -> Checked:
    run = make_run(given.subjects)
    return check_against_base(given, run, make_terms(run, **terms))


def check_alone(given: Given, **terms: object) -> Checked:
    run = replace(make_run(given.subjects), base=None)
    return check_against_baselines(given, run, make_terms(run, **terms))


def list_reasons(verdict: Verdict, metric: Metric, status: Status) -> list[tuple[str, Reason]]:
    rows = [row for row in verdict.comparisons if row.metric is metric and row.status is status]
    return [(row.case_id, row.reason) for row in rows]


@pytest.mark.parametrize("check", [check_with_base, check_alone])
def test_nothing_suspect_measures_nothing_more(check: Check) -> None:
    """Values as stored pass after one trial of each case."""
    given = Given(subjects=[Subject(name="a"), Subject(name="b")])
    checked = check(given)
    assert (checked.verdict.outcome, given.open, given.measured) == (Outcome.PASS, [], [])
    assert len(checked.run.trials) == 2


@pytest.mark.parametrize("check", [check_against_base, check_against_baselines])
def test_a_check_that_measures_nothing_ends_no_run(check: Check) -> None:
    """One that was stopped stays INCOMPLETE."""
    given = Given(subjects=[Subject()])
    run = replace(make_run(given.subjects), finished=False)
    checked = check(given, run, make_terms(run))
    assert (checked.run, checked.verdict.outcome) == (run, Outcome.INCOMPLETE)


@pytest.mark.parametrize(
    ("pairs", "metric", "fits"),
    [
        ({}, LATENCY, True),
        ({"a/x": 1}, LATENCY, True),
        ({"a/x": 2}, LATENCY, False),
        ({"a/x": 0, "b/x": 1}, LATENCY, False),
        ({"a/x": 1, "b/x": 1}, LATENCY, True),
        ({"a/x": 1, "b/x": 0}, LATENCY, True),
        ({"a/x": 1, "b/x": 2}, LATENCY, False),
        ({"a/x": 0, "b/x": 2}, BREAKS, False),
        ({"a/x": 1, "b/x": 2}, BREAKS, True),
        ({"a/x": 2, "b/x": 3}, BREAKS, False),
    ],
)
def test_beyond_its_time_a_check_takes_two_pairs_of_the_first_case(
    pairs: dict[str, int], metric: Metric, *, fits: bool
) -> None:
    """And the second look at a count; where the user set the time, nothing."""
    suspect = Suspect(case_id="a/x", metrics=(metric,))
    assert PairLimit(end_s=9.0, fits_two=True).compute_end_s(suspect, pairs) == (math.inf if fits else 9.0)
    assert PairLimit(end_s=9.0).compute_end_s(suspect, pairs) == 9.0


@pytest.mark.parametrize(("severity", "chosen"), [(0.99, True), (1.0, False)])
def test_a_compile_that_chance_may_have_made_longer_gets_a_trial(severity: float, *, chosen: bool) -> None:
    """Below CHANCE_EDGES thresholds, where nothing else of its case is open."""
    change = make_change(severity * CHANCE_EDGES * 0.25)
    threshold = Threshold(relative=0.25, absolute=0.0)
    rows = [make_row(f"{name}/x", COMPILE, change=change, threshold=threshold) for name in ("a", "b")]
    suspects = [
        Suspect(case_id="a/x", metrics=(COMPILE,)),
        Suspect(case_id="b/x", metrics=(COMPILE, LATENCY)),
    ]
    screening = cast("Screening", SimpleNamespace(comparisons=rows))
    assert _list_longer_compiles(screening, suspects) == ({"a/x": (COMPILE,)} if chosen else {})


def test_suspect_is_acquitted_by_pairs() -> None:
    """A case a fifth slower than stored passes after two pairs equal to the base."""
    given = Given(subjects=[Subject(name="a", alone=SLOW), Subject(name="b")])
    checked = check_with_base(given)
    assert checked.verdict.outcome is Outcome.PASS
    assert given.measured == ["a/x"] * 2
    assert (LATENCY, "a/x") in [(row.metric, row.case_id) for row in checked.verdict.comparisons if row.pairs]
    assert checked.run.finished


def test_suspect_that_is_the_same_program_as_the_base_gets_no_pair() -> None:
    """A slower case of the base's code and imports gets no pair; one that imports a changed file does."""
    same, other = Subject(name="a", alone=SLOW, imports=()), Subject(name="b", alone=SLOW, imports=("b.py",))
    given = Given(subjects=[same, other])
    run = make_run(given.subjects, other_changes=())
    verdict = check_against_base(given, run, make_terms(run)).verdict
    assert (verdict.outcome, given.measured) == (Outcome.PASS, ["b/x"] * 2)
    assert ("a/x", Reason.UNCHANGED_SOURCES) in list_reasons(verdict, LATENCY, Status.UNCHANGED)
    assert [note.cases for note in verdict.notes if note.code is Code.UNCHANGED_SOURCES] == [("a/x",)]
    # As where pairs clear it: it is slower than what is stored, so something else made it so.
    assert "a/x" in next(note.cases for note in verdict.notes if note.code is Code.CLEARED)


def test_the_same_program_gets_no_pair_where_it_looks_faster_either() -> None:
    """A faster case of the same program gets no pair."""
    given = Given(subjects=[Subject(name="a", alone=[{LATENCY: 0.008}] * 3, imports=())])
    run = make_run(given.subjects, other_changes=())
    verdict = check_against_base(given, run, make_terms(run)).verdict
    assert (verdict.outcome, given.measured) == (Outcome.PASS, [])
    assert list_reasons(verdict, LATENCY, Status.IMPROVED) == [("a/x", Reason.BEYOND_BAR)]


SAME = Subject(alone=SLOW, imports=())


@pytest.mark.parametrize(
    ("subject", "other_changes", "thorough"),
    [
        pytest.param(replace(SAME, imports=("a.py",)), (), False, id="a file that it imports changed"),
        pytest.param(replace(SAME, imports=None), (), False, id="nobody looked at what it imports"),
        pytest.param(SAME, ("weights.bin",), False, id="a file changed that it may read"),
        pytest.param(SAME, None, False, id="nobody knows what changed"),
        pytest.param(replace(SAME, code="0ther"), (), False, id="its compile generates other code"),
        pytest.param(replace(SAME, rows="16"), (), False, id="its inputs are larger"),
        pytest.param(replace(SAME, calls={"torch.ops.mine.op": 1}), (), False, id="an operator of its own"),
        pytest.param(SAME, (), True, id="all is asked for"),
    ],
)
def test_suspect_that_may_be_another_program_gets_pairs(
    subject: Subject, other_changes: tuple[str, ...] | None, thorough: bool
) -> None:
    """Two pairs acquit it."""
    given = Given(subjects=[subject])
    run = make_run(given.subjects, other_changes)
    verdict = check_against_base(given, run, make_terms(run, thorough=thorough)).verdict
    assert given.measured == ["a/x"] * 2
    assert ("a/x", Reason.BELOW_THRESHOLD) in list_reasons(verdict, LATENCY, Status.UNCHANGED)


@pytest.mark.parametrize(("grown", "pairs"), [(1.0, 0), (2.0, 2)])
def test_slower_calls_are_not_cleared_where_the_same_program_takes_more_memory(
    grown: float, pairs: int
) -> None:
    """What a program needs does not depend on the machine: something is not the same."""
    memory = {Metric.PEAK_MEMORY: grown * 1e8}
    given = Given(subjects=[Subject(alone=[{**trial, **memory} for trial in SLOW], imports=())])
    run = make_run(given.subjects, other_changes=())
    (baseline,) = make_stored(run)
    stored = replace(baseline, trials={**baseline.trials, Metric.PEAK_MEMORY: (1e8,) * 5})
    check_against_base(given, run, make_terms(run, baselines=(stored,)))
    assert len(given.measured) == pairs


def test_counter_that_moved_in_the_same_program_gets_its_pair() -> None:
    """Only times are cleared without a pair; a break that the pair lacks is INCONCLUSIVE."""
    given = Given(subjects=[Subject(name="a", alone=[{BREAKS: 1.0}], imports=()), Subject(name="b")])
    run = make_run(given.subjects, other_changes=())
    verdict = check_against_base(given, run, make_terms(run)).verdict
    assert given.measured == ["a/x"]
    assert list_reasons(verdict, BREAKS, Status.INCONCLUSIVE) == [("a/x", Reason.UNSETTLED)]


def test_suspect_is_confirmed_by_pairs() -> None:
    """A case that is slower in pairs as well regresses."""
    given = Given(subjects=[Subject(alone=SLOW, slower=0.2)])
    verdict = check_with_base(given).verdict
    assert verdict.outcome is Outcome.REGRESSION
    assert list_reasons(verdict, LATENCY, Status.REGRESSED) == [("a/x", Reason.BEYOND_BAR)]


@pytest.mark.parametrize(("thorough", "pairs"), [(False, 3), (True, 16)])
def test_convicted_case_is_measured_on_where_all_is_asked_for(thorough: bool, pairs: int) -> None:
    """After three pairs that convict the latency a thorough check measures the noisy compile on."""
    wild = [{LATENCY: 0.012, Metric.COLD_COMPILE_TIME: 20.0}] * 3
    given = Given(subjects=[Subject(alone=wild, slower=0.2, compiles=(0.5, -0.3) * 8)])
    verdict = check_with_base(given, thorough=thorough).verdict
    assert (verdict.outcome, len(given.measured)) == (Outcome.REGRESSION, pairs)


def test_counter_that_one_pair_shows_again_is_red() -> None:
    """One trial and one pair with a new graph break regress."""
    given = Given(subjects=[Subject(name="a", alone=[{BREAKS: 1.0}], breaks=1.0), Subject(name="b")])
    verdict = check_with_base(given).verdict
    assert (verdict.outcome, given.measured) == (Outcome.REGRESSION, ["a/x"])
    assert list_reasons(verdict, BREAKS, Status.REGRESSED) == [("a/x", Reason.BEYOND_BAR)]


def test_case_that_fails_in_a_pair_has_failed() -> None:
    """The run is INCOMPLETE, and the other suspect gets its pairs."""
    broken = Subject(name="a", alone=SLOW, failing_pair=2)
    given = Given(subjects=[broken, Subject(name="b", alone=SLOW)])
    checked = check_with_base(given)
    assert checked.verdict.outcome is Outcome.INCOMPLETE
    assert given.measured.count("a/x") == 1
    assert given.measured.count("b/x") == 2
    assert [failure.case_id for failure in checked.run.failures] == ["a/x"]
    assert list_reasons(checked.verdict, LATENCY, Status.REGRESSED) == []
    assert list_reasons(checked.verdict, LATENCY, Status.FAILED) == [("a/x", Reason.CASE_FAILED)]


def test_budget_that_is_over_convicts_nobody() -> None:
    """Without time for a pair a suspect is INCONCLUSIVE."""
    given = Given(subjects=[Subject(alone=SLOW)])
    verdict = check_with_base(given, pair_budget_s=0.0).verdict
    assert (verdict.outcome, given.measured) == (Outcome.INCONCLUSIVE, [])
    assert list_reasons(verdict, LATENCY, Status.INCONCLUSIVE) == [("a/x", Reason.UNPAIRED)]


@pytest.mark.parametrize(
    ("pairs", "outcome", "expected"),
    [(0, Outcome.INCONCLUSIVE, Status.INCONCLUSIVE), (100, Outcome.PASS, Status.UNCHANGED)],
)
def test_times_that_are_stored_of_other_machines_alone_need_pairs(
    pairs: int, outcome: Outcome, expected: Status
) -> None:
    """Times without a baseline of this machine need a pair; without time they are open, with the reason."""
    given = Given(subjects=[Subject()], time_for=pairs)
    run = make_run(given.subjects)
    terms = make_terms(run)
    others = tuple(
        replace(baseline, environment=replace(baseline.environment, cpu="another"))
        for baseline in terms.baselines
    )
    verdict = check_against_base(given, run, replace(terms, baselines=others)).verdict
    row = find_row(verdict, LATENCY)
    assert (verdict.outcome, row.status) == (outcome, expected)
    assert (Code.NO_PAIR in [remark.code for remark in row.remarks]) is (pairs == 0)


def test_nothing_stored_and_no_time_for_a_pair_compares_nothing() -> None:
    """Without baselines and pairs the outcome is NOTHING_COMPARED."""
    given = Given(subjects=[Subject()], time_for=0)
    verdict = check_with_base(given, baselines=()).verdict
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert list_reasons(verdict, LATENCY, Status.INCONCLUSIVE) == [("a/x", Reason.UNPAIRED)]
    assert [step.code for step in verdict.next_steps] == [Code.SETTLE, Code.RECORD]


def test_what_looks_better_and_had_no_time_for_a_pair_is_left_open() -> None:
    """A fifth faster than stored is open, since the base may be faster still."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.008}] * 3)], time_for=0)
    verdict = check_with_base(given).verdict
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert Code.RECORD_BETTER not in [step.code for step in verdict.next_steps]


def test_what_the_base_gained_since_is_not_given_back() -> None:
    """Two breaks stored, none in the base and one in head regress."""
    given = Given(subjects=[Subject(alone=[{BREAKS: 1.0}] * 3, breaks=1.0)])
    run = make_run(given.subjects)
    terms = make_terms(run)
    broken = tuple(
        replace(baseline, trials={**baseline.trials, BREAKS: (2.0,) * 5}) for baseline in terms.baselines
    )
    verdict = check_against_base(given, run, replace(terms, baselines=broken)).verdict
    assert (verdict.outcome, list_reasons(verdict, BREAKS, Status.REGRESSED)) == (
        Outcome.REGRESSION,
        [("a/x", Reason.BEYOND_BAR)],
    )
    assert len(given.measured) == 2


def test_a_latency_that_gives_back_what_the_base_gained() -> None:
    """A fifth faster than stored and a fifth slower than the base regress."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.008}] * 3, slower=0.2)])
    verdict = check_with_base(given).verdict
    assert verdict.outcome is Outcome.REGRESSION
    assert list_reasons(verdict, LATENCY, Status.REGRESSED) == [("a/x", Reason.BEYOND_BAR)]


def test_budget_of_pairs_counts_from_their_start() -> None:
    """After 300 s of trials 20 s of pairs end at 320 s."""
    given = Given(subjects=[Subject(alone=SLOW)])
    run = replace(make_run(given.subjects), wall_s=300.0)
    check_against_base(given, run, make_terms(run, pair_budget_s=20.0))
    assert given.limits == [320.0]


@pytest.mark.parametrize("fail_fast", [False, True])
def test_undecided_case_gets_one_trial_more_at_a_time(*, fail_fast: bool) -> None:
    """Four doubtful cases get a second trial, then a third, and stay open: no regression ends it."""
    given = Given(subjects=[Subject(name=name, alone=DOUBTFUL) for name in "abcd"])
    checked = check_alone(given, fail_fast=fail_fast)
    assert given.asked == [(f"{name}/x", trials) for trials in (2, 3) for name in "abcd"]
    assert (checked.verdict.outcome, checked.verdict.trials) == (Outcome.INCONCLUSIVE, 12)


def test_settled_case_gets_no_more_trials() -> None:
    """A regression is measured twice and no more."""
    given = Given(subjects=[Subject(alone=SLOW)])
    assert check_alone(given).verdict.outcome is Outcome.REGRESSION
    assert given.asked == [("a/x", 2)]


@pytest.mark.parametrize(
    ("value", "has_trials", "asked"),
    [
        pytest.param(0.0100, True, [("a/x", 2), ("a/x", 3)], id="at its limit, to the last"),
        pytest.param(0.0100, False, [("a/x", 2)], id="at its limit, and time is up"),
        pytest.param(0.0140, True, [], id="within it"),
        pytest.param(0.0050, True, [], id="beyond it"),
    ],
)
def test_an_open_limit_gets_its_trials_with_a_base_too(
    value: float, has_trials: bool, asked: list[tuple[str, int]]
) -> None:
    """A value near its limit gets further trials, and no pair."""
    given = Given(subjects=[Subject()], has_trials=has_trials)
    run = make_run(given.subjects)
    limit = AbsoluteLimit(case="*", metric=LATENCY, value=value)
    terms = make_terms(run, policy=replace(POLICY, limits=(limit,)))
    check_against_base(given, run, terms)
    assert given.asked == asked
    assert {metric for wanted in given.open for metrics in wanted.values() for metric in metrics} <= {LATENCY}
    assert given.measured == []


def test_a_recorded_run_is_judged_by_the_limits_it_has() -> None:
    """A recorded run's value near its limit stays open."""
    run = make_run([Subject()])
    limit = AbsoluteLimit(case="*", metric=LATENCY, value=0.0100)
    verdict = check_against_base(None, run, make_terms(run, policy=replace(POLICY, limits=(limit,)))).verdict
    assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("most", "outcome"), [(1, Outcome.REGRESSION), (3, Outcome.INCONCLUSIVE)])
def test_looks_are_paid_for(most: int, outcome: Outcome) -> None:
    """A first trial that convicts alone does not if two more looks share the budget."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.01082}])], has_trials=False)
    assert check_alone(given, max_trials=most).verdict.outcome is outcome


def check_elsewhere(trial: dict[Metric, float], canary_s: float, **terms: object) -> tuple[Given, Verdict]:
    """Check a case with three equal trials, whose stored canaries took 1 s, without a base."""
    given = Given(subjects=[Subject(alone=[trial] * 3, canary_s=canary_s)])
    run = replace(make_run(given.subjects), base=None)
    stored = make_stored(run, canary_s=1.0)
    return given, check_against_baselines(given, run, make_terms(run, baselines=stored, **terms)).verdict


def test_times_of_a_machine_of_another_speed_are_not_judged() -> None:
    """Canaries of 0.68 s are 47 % faster: twice the latency is not judged, nor measured again."""
    given, verdict = check_elsewhere({LATENCY: 0.020}, canary_s=0.68)
    assert (verdict.outcome, given.asked) == (Outcome.PASS, [])
    assert list_reasons(verdict, LATENCY, Status.NOT_COMPARABLE) == [("a/x", Reason.OTHER_ENVIRONMENT)]
    assert list_reasons(verdict, BREAKS, Status.UNCHANGED) == [("a/x", Reason.BELOW_THRESHOLD)]
    passed, unjudged = verdict.headline
    assert (passed.numbers["judged"], passed.numbers["comparisons"]) == (1, 4)  # of them three are times
    assert unjudged.code is Code.TIMES_UNJUDGED
    assert unjudged.numbers == pytest.approx({"comparisons": 3, "shift": -0.32})
    assert [note.code for note in verdict.notes] == [Code.OTHER_SPEED, Code.MACHINE_CHANGED]
    assert [step.code for step in verdict.next_steps] == [Code.RECORD, Code.COMPARE_WITH_BASE]


def test_what_is_exact_is_judged_on_a_machine_of_another_speed() -> None:
    """A new graph break is seen twice there, and regresses."""
    given, verdict = check_elsewhere({BREAKS: 1.0}, canary_s=0.68)
    assert (verdict.outcome, given.asked) == (Outcome.REGRESSION, [("a/x", 2)])
    assert list_reasons(verdict, LATENCY, Status.NOT_COMPARABLE) == [("a/x", Reason.OTHER_ENVIRONMENT)]


def test_a_machine_that_is_a_little_slower_is_taken_out_of_what_changed() -> None:
    """Canaries and latency are 8 % slower: no change, and the sentence has the shift."""
    _, verdict = check_elsewhere({LATENCY: 0.0108, Metric.EAGER_LATENCY: 0.0216}, canary_s=1.08)
    row = find_row(verdict, LATENCY)
    assert row.status is Status.UNCHANGED
    assert row.change is not None
    assert row.change.centre == pytest.approx(0.0, abs=1e-9)
    (moved,) = (fact for fact in row.remarks if fact.code is Code.MACHINE_SPEED)
    assert moved.numbers["shift"] == pytest.approx(0.08)


def test_pairs_judge_times_on_a_machine_of_another_speed() -> None:
    """In pairs all times are judged."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.020}], canary_s=0.68)])
    run = make_run(given.subjects)
    verdict = check_against_base(
        given, run, make_terms(run, baselines=make_stored(run, canary_s=1.0))
    ).verdict
    assert (verdict.outcome, given.measured[:2]) == (Outcome.PASS, ["a/x"] * 2)
    assert Reason.OTHER_ENVIRONMENT not in {row.reason for row in verdict.comparisons if row.decides}


def test_time_that_is_up_ends_the_trials() -> None:
    """After a round without a new trial none is asked for."""
    given = Given(subjects=[Subject(name=name, alone=DOUBTFUL) for name in "abcd"], has_trials=False)
    check_alone(given)
    assert given.asked == [(f"{name}/x", 2) for name in "abcd"]


def test_nothing_compared_asks_for_no_trials() -> None:
    """Without baselines no further trial is measured."""
    given = Given(subjects=[Subject(alone=SLOW)])
    run = replace(make_run(given.subjects), base=None)
    checked = check_against_baselines(given, run, CheckTerms(baselines=(), policy=POLICY, max_trials=3))
    assert (checked.verdict.outcome, given.asked) == (Outcome.NOTHING_COMPARED, [])


def test_plan_in_pairs_needs_nothing_stored() -> None:
    """``ab`` measures six pairs of every case and finds the slower one."""
    given = Given(subjects=[Subject(name="a", slower=0.2), Subject(name="b")])
    run = replace(make_run(given.subjects), trials=(), trials_planned=0)
    checked = check_pairs(given, run, POLICY)
    assert {case_id: given.measured.count(case_id) for case_id in ("a/x", "b/x")} == {"a/x": 6, "b/x": 6}
    assert list_reasons(checked.verdict, LATENCY, Status.REGRESSED) == [("a/x", Reason.BEYOND_BAR)]


def test_cases_that_time_was_too_short_for() -> None:
    """Two cases need six pairs each: after two the counters are settled, with more time all are."""
    subjects = [Subject(name="a", slower=0.2), Subject(name="b")]
    run = replace(make_run(subjects), trials=(), trials_planned=0)
    short = check_pairs(Given(subjects=subjects, time_for=2), run, POLICY)
    assert list_unfinished(short.run, POLICY) == ("a/x", "b/x")
    assert list_unfinished(check_pairs(Given(subjects=subjects), run, POLICY).run, POLICY) == ()


@pytest.mark.parametrize(("pairs", "expected"), [(2, [True, False]), (3, [False, False])])
def test_a_case_whose_calls_look_slower_is_asked_for_as_such(pairs: int, expected: list[bool]) -> None:
    """Until SETTLING_PAIRS, 3; an equal case never is."""
    subjects = [Subject(name="a", slower=0.2), Subject(name="b")]
    run = replace(make_run(subjects), trials=(), trials_planned=0)
    trials = [trial for case in subjects for index in range(pairs) for trial in make_pair(case, index + 1)]
    unsettled = list_unsettled(replace(run, trials=tuple(trials)), POLICY)
    assert [suspect.slower for suspect in unsettled] == expected


@pytest.mark.parametrize(
    ("alone", "thorough", "asked", "paired"),
    [
        ([11.8, 10.0], False, [("a/x", 2)], False),
        ([11.8, 11.8], False, [("a/x", 2)], True),
        ([12.3, 10.0], False, [], True),
        ([11.8, 10.0], True, [], True),
    ],
    ids=["chance", "long again", "too long for chance", "thorough"],
)
def test_a_compile_that_took_longer_is_timed_once_more_before_pairs(
    alone: list[float], thorough: bool, asked: list[tuple[str, int]], paired: bool
) -> None:
    """10 s are stored and a tenth may be lost: the mean of 11.8 and 10 s is as much work as stored."""
    calls = {Metric.COMPILE_CALLS: 1e6}
    subject = Subject(alone=[{**calls, Metric.COLD_COMPILE_TIME: seconds} for seconds in alone])
    given, run = Given(subjects=[subject]), make_run([subject])
    (baseline,) = make_stored(run)
    stored = replace(baseline, trials={**baseline.trials, Metric.COMPILE_CALLS: (1e6,) * 5})
    terms = make_terms(run, baselines=(stored,), thorough=thorough)
    check_against_base(given, run, terms)
    assert (given.asked, bool(given.measured)) == (asked, paired)
    assert check_against_base(None, run, terms).run == run


def test_a_compile_is_not_timed_once_more_where_pairs_are_measured_anyway() -> None:
    """Its latency is open as well."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.012, Metric.COLD_COMPILE_TIME: 12.0}])])
    run = make_run(given.subjects)
    check_against_base(given, run, make_terms(run))
    assert (given.asked, bool(given.measured)) == ([], True)


def measure_pairs_of_slow(breaks: float = 0.0) -> tuple[Checked, CheckTerms]:
    """A check of one case that pairs convict and one that they acquit."""
    alone = [{**trial, BREAKS: breaks} for trial in SLOW]
    slow, calm = Subject(name="a", alone=alone, slower=0.2, breaks=breaks), Subject(name="b", alone=SLOW)
    given = Given(subjects=[slow, calm])
    run = make_run(given.subjects)
    terms = make_terms(run)
    return check_against_base(given, run, terms), terms


@pytest.mark.parametrize(("breaks", "metric"), [(0.0, LATENCY), (1.0, BREAKS)])
def test_a_recorded_check_is_judged_as_it_was(breaks: float, metric: Metric) -> None:
    """A recorded check has the same verdict."""
    checked, terms = measure_pairs_of_slow(breaks)
    verdict = judge_recorded(checked.run, terms)
    assert verdict == checked.verdict
    assert [case for case, _ in list_reasons(verdict, metric, Status.REGRESSED)] == ["a/x"]


def test_a_recorded_run_of_pairs_alone_is_judged_side_by_side() -> None:
    """A run of ``ab`` has no trial alone, so stored values do not count."""
    checked, terms = measure_pairs_of_slow()
    pairs = tuple(trial for trial in checked.run.trials if trial.pairing is not Pairing.ALONE)
    run = replace(checked.run, trials=pairs)
    verdict = judge_recorded(run, terms)
    assert verdict == decide_side_by_side(run, POLICY)
    assert [case for case, _ in list_reasons(verdict, LATENCY, Status.REGRESSED)] == ["a/x"]


@pytest.mark.parametrize("changes", [{"base": None}, {"base": None, "trials": ()}, {"finished": False}])
def test_a_recorded_run_without_a_base_or_an_end_is_judged_by_what_is_stored(
    changes: dict[str, object],
) -> None:
    """Without a base, or unfinished, pairs do not count."""
    checked, terms = measure_pairs_of_slow()
    run = replace(checked.run, **changes)  # type: ignore[arg-type] # the test's
    assert judge_recorded(run, terms) == decide_verdict(run, terms.baselines, POLICY)


def test_the_error_budget_is_for_all_looks_at_the_same_trials() -> None:
    """After one trial, after two and after three; once where no more are to come."""
    terms = make_terms(make_run([Subject()]), trials=1, max_trials=3)
    assert _count_looks(terms).times_judged == 3
    assert _count_looks(replace(terms, trials=3)).times_judged == 1


def upgrade(run: Run) -> tuple[Baseline, ...]:
    """The run's own baselines, under an older compiler."""
    return tuple(
        replace(baseline, environment=replace(baseline.environment, compiler="g++ 11.4.0"))
        for baseline in make_stored(run)
    )


def test_pairs_settle_what_looks_worse_since_an_upgrade() -> None:
    """Twice as slow as under an older compiler, and equal in pairs: it passes with a note."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.020}])])
    run = make_run(given.subjects)
    verdict = check_against_base(given, run, make_terms(run, baselines=upgrade(run))).verdict
    assert (verdict.outcome, set(given.measured)) == (Outcome.PASS, {"a/x"})
    (note,) = (note for note in verdict.notes if note.code is Code.CLEARED)
    assert (note.cases, note.metrics) == (("a/x",), (LATENCY,))
    assert Code.NEAREST_DIFFERS in {note.code for note in verdict.notes}


def test_what_pairs_convict_is_not_charged_with_an_upgrade() -> None:
    """Twice as slow as under an older compiler, and a tenth in pairs: the change is a tenth."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.020}], slower=0.1)])
    run = make_run(given.subjects)
    verdict = check_against_base(given, run, make_terms(run, baselines=upgrade(run))).verdict
    row = find_row(verdict, LATENCY)
    assert row.status is Status.REGRESSED
    assert Code.SINCE_STORED not in {fact.code for fact in row.remarks}


def test_what_is_surely_worse_since_an_upgrade_takes_no_more_trials() -> None:
    """Twice as slow without a base is inconclusive after one trial."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.020}] * 3)])
    run = replace(make_run(given.subjects), base=None)
    verdict = check_against_baselines(given, run, make_terms(run, baselines=upgrade(run))).verdict
    assert (verdict.outcome, given.asked) == (Outcome.INCONCLUSIVE, [])


def test_what_looks_worse_since_an_upgrade_is_measured_again() -> None:
    """8 % in the first of three trials is noise, and is not noted."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.0108}, {}, {}])])
    run = replace(make_run(given.subjects), base=None)
    verdict = check_against_baselines(given, run, make_terms(run, baselines=upgrade(run))).verdict
    assert verdict.outcome is not Outcome.INCONCLUSIVE
    assert given.asked
    assert list_reasons(verdict, LATENCY, Status.NOT_COMPARABLE) == [("a/x", Reason.OTHER_ENVIRONMENT)]


def test_a_regression_by_stored_values_can_end_the_search() -> None:
    """With fail_fast the doubtful case gets no further trials."""
    subjects = [Subject(name="a", alone=[{LATENCY: 0.020}] * 3), Subject(name="b", alone=DOUBTFUL)]
    measured = {}
    for fail_fast in (False, True):
        given = Given(subjects=subjects)
        checked = check_alone(given, trials=1, max_trials=3, fail_fast=fail_fast)
        measured[fail_fast] = (checked.verdict.outcome, len(checked.run.trials))
    assert measured[False][0] is measured[True][0] is Outcome.REGRESSION
    assert measured[True][1] == 2 < measured[False][1]
