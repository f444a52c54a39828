"""The plan, scopes, outcomes, acceptances, notes and next steps of a verdict."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.coverage import Coverage, is_unconfirmed, list_uncompared, measure_coverage
from gate.decide.conclude.exit_codes import FailOn, compute_exit_code
from gate.decide.conclude.outcome import list_open
from gate.decide.evidence.gather import list_short
from gate.decide.explain.advice import is_short, list_acceptances, list_next_steps
from gate.decide.explain.notes import note_machine
from gate.decide.judge.compare import get_threshold
from gate.decide.verdict import decide_verdict
from gate.errors import ExitCode
from gate.metrics import SPECS
from gate.records.cases import AbsoluteLimit, Acceptance, Metric, Override, Policy, Threshold
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import CaseFailure, FailureKind, Shard
from gate.records.verdict import Estimate, MachineShift, Outcome, Reason, Status, Verdict
from tests.hosts import CPU_HOST, CUDA_HOST
from tests.make import (
    POLICY,
    PairedCase,
    Situation,
    decide,
    find_row,
    make_acceptance,
    make_change,
    make_failure,
    make_measured,
    make_row,
    make_run,
    make_stored,
    make_trials,
    make_verdict,
    pair_up,
    state,
)
from tests.words import describe_comparison, describe_steps, write_note, write_notes, write_opening

Judge = Callable[..., Verdict]
LATENCY, EAGER, BREAKS = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.GRAPH_BREAKS
CASE = "mlp/inference-float32-smoke-default"
FIVE = (0.0099, 0.0100, 0.0101, 0.0100, 0.0100)
SAME = {BREAKS: (0.0,)}
MORE = {BREAKS: (1.0,)}


def fail(case_id: str = CASE, trial: int = 0) -> CaseFailure:
    return make_failure(case_id, "over 300 s", trial=trial, kind=FailureKind.HANG)


# --- the plan is the index ---


def test_failed_case_makes_the_run_incomplete() -> None:
    """A case without a trial has one FAILED comparison, which names the stage."""
    verdict = decide(Situation(before=SAME, failures=(fail(),)))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert state(find_row(verdict, LATENCY)) == (Status.FAILED, Reason.CASE_FAILED)
    sentence = describe_comparison(find_row(verdict, LATENCY))
    assert sentence == "Hang in stage compile of trial 0 of head: over 300 s"
    assert verdict.failures == (fail(),)


@pytest.mark.parametrize(
    ("planned", "failures", "expected", "codes"),
    [
        (1, (), (Status.MISSING, Reason.NOT_RUN), [Code.NOTHING_MEASURED]),
        (2, (), (Status.MISSING, Reason.NOT_RUN), [Code.TRIALS_CAME]),
        (2, (fail(),), (Status.FAILED, Reason.CASE_FAILED), [Code.FAILURE]),
    ],
)
def test_a_trial_without_a_value_says_why_its_case_has_none(
    planned: int, failures: tuple[CaseFailure, ...], expected: tuple[Status, Reason], codes: list[Code]
) -> None:
    """A failure comes first, then a trial that did not come, and else it measured nothing."""
    run = make_run(*make_trials(CASE, [{}]), trials_planned=planned, failures=failures)
    (row,) = decide_verdict(run, (), POLICY).comparisons
    assert (state(row), [fact.code for fact in row.remarks]) == (expected, codes)


def test_a_case_that_failed_twice_names_its_first_failure() -> None:
    failures = (fail(), make_failure(CASE, "SIGSEGV", trial=1))
    row = find_row(decide(Situation(before=SAME, failures=failures)), LATENCY)
    assert row.remarks == (failures[0].quote(Code.FAILURE),)


def test_regression_in_a_partly_failed_case_is_listed() -> None:
    """With a failed trial and a new graph break the verdict is INCOMPLETE and names both."""
    verdict = decide(Situation(before=SAME, after=MORE, failures=(fail(trial=1),)))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert find_row(verdict, LATENCY).status is Status.FAILED
    assert find_row(verdict, BREAKS).status is Status.REGRESSED
    assert "; 1 case worse: graph breaks" in write_opening(verdict)


def judge_removed(*situations: Any, **policy: Any) -> Verdict:
    """The verdict on a run whose cases the change removed."""
    run = make_measured(*situations)
    run = replace(run, cases=tuple(replace(case, is_removed=True) for case in run.cases))
    return decide_verdict(run, make_stored(*situations), replace(POLICY, **policy))


def test_a_removed_case_that_cannot_be_run_is_missing_as_such() -> None:
    """The only next step of a removed case accepts or restores it."""
    verdict = judge_removed(Situation(before=SAME, failures=(fail(),)))

    assert verdict.outcome is Outcome.INCOMPLETE
    assert state(find_row(verdict, LATENCY)) == (Status.MISSING, Reason.REMOVED)
    assert write_opening(verdict) == "1 of 1 case removed by the change and not accepted."
    assert describe_comparison(find_row(verdict, LATENCY)).startswith(
        "Missing: the change removed or redefined this case"
    )
    assert [step.partition(",")[0] for step in describe_steps(verdict)] == [f"Where {CASE} may go"]


def test_a_removed_case_that_runs_is_judged_as_any_other() -> None:
    """A removed case that runs is judged."""
    verdict = judge_removed(Situation(before=SAME, after=MORE))
    assert state(find_row(verdict, BREAKS)) == (Status.REGRESSED, Reason.BEYOND_BAR)


@pytest.mark.parametrize("is_taken", [False, True])
def test_only_an_acceptance_of_the_change_accepts_a_removed_case(*, is_taken: bool) -> None:
    """A standing acceptance does not cover a removed case."""
    entry = make_acceptance(LATENCY, 0.5, case=CASE, reason="gone.")
    other = Situation(case_id="b/x", before=SAME, after=SAME)

    entry = replace(entry, commit="abc" if is_taken else "")
    verdict = judge_removed(Situation(before=SAME, failures=(fail(),)), other, acceptances=(entry,))

    row = find_row(verdict, LATENCY, CASE)
    assert state(row) == (Status.ACCEPTED if is_taken else Status.MISSING, Reason.REMOVED)
    assert verdict.outcome is (Outcome.PASS if is_taken else Outcome.INCOMPLETE)
    assert describe_comparison(row).endswith("Accepted by ada until 2026-03-01: gone.") == is_taken


def test_planned_case_without_a_trial_is_missing() -> None:
    """A planned case that did not come back is MISSING."""
    verdict = decide(Situation(case_id="a/x", before=SAME, after=SAME), Situation(case_id="b/x", before=SAME))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert state(find_row(verdict, LATENCY, "b/x")) == (Status.MISSING, Reason.NOT_RUN)
    first, *_ = describe_steps(verdict)
    assert first.startswith("Measure again what came back with fewer trials than planned")


def test_metric_that_is_no_longer_measured_is_missing() -> None:
    """Graph breaks that only the baseline has are MISSING: INCOMPLETE."""
    verdict = decide(Situation(before={**SAME, Metric.RECOMPILES: (0.0,)}, after=SAME))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert state(find_row(verdict, Metric.RECOMPILES)) == (Status.MISSING, Reason.NOT_MEASURED)


def test_a_case_that_lacks_a_metric_is_counted_apart_from_those_that_failed() -> None:
    """A hanging case has a log; a case without a count of recompiles has none."""
    verdict = decide(
        Situation(case_id="a/x", before={**SAME, Metric.RECOMPILES: (0.0,)}, after=SAME),
        Situation(case_id="b/x", before=SAME, failures=(fail("b/x"),)),
    )
    assert [(fact.code, dict(fact.numbers)) for fact in verdict.headline] == [
        (Code.NOT_MEASURED, {"broken": 1, "cases": 2}),
        (Code.METRICS_LACKING, {"lacking": 1, "cases": 2}),
    ]
    assert [(fact.code, fact.cases) for fact in verdict.next_steps] == [
        (Code.FIX_FAILED, ("b/x",)),
        (Code.FIX_FAILED, ("a/x",)),
    ]


@pytest.mark.parametrize(
    ("reason", "remarks", "short"),
    [
        (Reason.NOT_RUN, (), True),
        (Reason.NOT_RUN, (Fact(code=Code.NOTHING_MEASURED),), False),
        (Reason.NOT_MEASURED, (), False),
    ],
)
def test_trials_that_did_not_come_back_are_too_few(
    reason: Reason, remarks: tuple[Fact, ...], *, short: bool
) -> None:
    """Not those that came back and measured nothing."""
    assert is_short(make_row(CASE, LATENCY, Status.MISSING, reason=reason, remarks=remarks)) == short


@pytest.mark.parametrize(
    ("breaks", "recompiles", "is_better"), [(1.0, 0.0, True), (2.0, 0.0, False), (1.0, 1.0, False)]
)
def test_fewer_breaks_are_to_be_recorded(breaks: float, recompiles: float, *, is_better: bool) -> None:
    """One break instead of two is a better baseline; the same two are not, nor is a new recompile."""
    before, after = (
        {BREAKS: (count,), Metric.RECOMPILES: (other,)} for count, other in ((2.0, 0.0), (breaks, recompiles))
    )
    steps = decide(Situation(before=before, after=after)).next_steps
    assert (Code.RECORD_BETTER in [step.code for step in steps]) == is_better


def test_a_failed_case_that_the_base_lacks_has_one_step() -> None:
    """A failed case that the base lacks is named in one step only."""
    run = pair_up(PairedCase(base_definition=""))
    missing = make_row("mlp/x", LATENCY, Status.MISSING, reason=Reason.NOT_MEASURED)
    assert [(step.code, step.cases) for step in list_next_steps(run, (missing,), POLICY, in_pairs=False)] == [
        (Code.FIX_NEW, ("mlp/x",))
    ]


def test_a_metric_that_only_another_host_measures_is_not_missing_here() -> None:
    """A count is MISSING only if a baseline of this host has it."""
    situation = Situation(before=SAME, after=SAME)
    elsewhere = replace(
        situation, before={**SAME, Metric.RECOMPILES: (0.0,)}, host=replace(CPU_HOST, cpu="another")
    )
    run, policy = make_measured(situation), POLICY
    alone, both = make_stored(elsewhere), make_stored(situation, elsewhere)
    assert decide_verdict(run, alone, policy).outcome is Outcome.INCOMPLETE
    assert decide_verdict(run, both, policy).outcome is Outcome.PASS


def test_missing_explanation_is_not_incomplete() -> None:
    """A metric that only explains may be missing."""
    verdict = decide(Situation(before={**SAME, Metric.GUARDS: (9.0,)}, after=SAME))
    assert verdict.outcome is Outcome.PASS
    assert find_row(verdict, Metric.GUARDS).status is Status.MISSING


def test_stored_case_outside_the_plan_is_not_missing() -> None:
    """Baselines of unselected cases are ignored."""
    verdict = decide(Situation(before=SAME, after=SAME), Situation(case_id="x/y", before=SAME))
    other = replace(verdict, cases=verdict.cases[:1])
    assert [row.case_id for row in other.comparisons if row.case_id == "x/y"]  # planned: missing
    alone = decide(Situation(before=SAME, after=SAME))
    assert alone.outcome is Outcome.PASS


# --- which baseline ---


def test_new_case_is_measured_only() -> None:
    """Without a baseline it is NEW, NOTHING_COMPARED, and the step records one."""
    verdict = decide(Situation(after=MORE))
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert state(find_row(verdict, BREAKS)) == (Status.NEW, Reason.NO_BASELINE)
    assert find_row(verdict, BREAKS).candidate.centre == 1.0  # type: ignore[union-attr] # measured
    assert any("compile-gate baseline refresh" in step for step in describe_steps(verdict))


def test_changed_definition_is_never_passed_silently() -> None:
    """Another definition is not comparable, with a note."""
    verdict = decide(Situation(before=SAME, after=SAME, definition_before="d0"))
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert state(find_row(verdict, BREAKS)) == (Status.NOT_COMPARABLE, Reason.STALE_DEFINITION)
    assert any("defined differently" in note for note in write_notes(verdict))


def test_other_host_is_judged_on_stack_metrics_only() -> None:
    """On another CPU graph breaks are judged and latency is not, with the command to run."""
    situation = Situation(
        before={**SAME, LATENCY: FIVE},
        after={**SAME, LATENCY: (0.02,)},
        host=replace(CPU_HOST, cpu="another", device_model="another"),
    )
    verdict = decide(situation)
    assert verdict.outcome is Outcome.PASS
    assert find_row(verdict, BREAKS).status is Status.UNCHANGED
    assert state(find_row(verdict, LATENCY)) == (Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT)
    assert any("compiled latency" in note and "in this environment" in note for note in write_notes(verdict))
    assert any("baseline refresh" in step for step in describe_steps(verdict))
    assert any("CPU" in note or "cpu" in note for note in write_notes(verdict))


def test_other_threads_leave_code_counts_unjudged() -> None:
    """With other threads graph breaks are judged and Python calls are not."""
    values = {**SAME, Metric.COMPILE_CALLS: (1e6,)}
    verdict = decide(Situation(before=values, after=values, host=replace(CPU_HOST, threads=8, cores=8)))
    assert find_row(verdict, BREAKS).status is Status.UNCHANGED
    assert find_row(verdict, Metric.COMPILE_CALLS).reason is Reason.OTHER_ENVIRONMENT


def test_other_torch_compares_nothing() -> None:
    """Under another torch no metric has a baseline."""
    verdict = decide(Situation(before=SAME, after=MORE, host=replace(CPU_HOST, torch="2.11.0")))
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert state(find_row(verdict, BREAKS)) == (Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT)


def test_metric_that_the_baseline_lacks_is_not_comparable() -> None:
    """An older baseline lacks a newer metric."""
    verdict = decide(Situation(before=SAME, after={**SAME, Metric.RECOMPILES: (3.0,)}))
    assert state(find_row(verdict, Metric.RECOMPILES)) == (Status.NOT_COMPARABLE, Reason.NOT_MEASURED)
    assert verdict.outcome is Outcome.PASS


# --- outcome ---


def test_outcome_of_several_is_the_strongest() -> None:
    """REGRESSION beats INCONCLUSIVE, INCOMPLETE beats both."""
    unsettled = Situation(case_id="a/x", before={BREAKS: (0.0, 1.0)}, after={BREAKS: (1.0,)})
    regressed = Situation(case_id="b/x", before={Metric.DRIFT: (0.1,)}, after={Metric.DRIFT: (2.0,)})
    missing = Situation(case_id="c/x", before=SAME)
    assert decide(unsettled).outcome is Outcome.INCONCLUSIVE
    assert decide(unsettled, regressed).outcome is Outcome.REGRESSION
    assert decide(unsettled, regressed, missing).outcome is Outcome.INCOMPLETE


def test_controls_never_fail() -> None:
    """Eager five times slower is shown and does not decide."""
    verdict = decide(Situation(before={**SAME, EAGER: FIVE}, after={**SAME, EAGER: (0.05,) * 3}))
    assert verdict.outcome is Outcome.PASS
    assert find_row(verdict, EAGER).status is Status.REGRESSED
    assert not find_row(verdict, EAGER).decides


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    ("outcome", "inconclusive", "regression"),
    [
        (Outcome.PASS, 0, 0),
        (Outcome.NOTHING_COMPARED, 3, 3),
        (Outcome.REGRESSION, 10, 10),
        (Outcome.INCONCLUSIVE, 11, 0),
        (Outcome.INCOMPLETE, 12, 12),
    ],
)
def test_exit_codes(outcome: Outcome, inconclusive: int, regression: int, is_whole: bool) -> None:
    """`regression` ignores INCONCLUSIVE, `never` everything, `new` fails a PASS that lacks a baseline.

    An accepted lack of baselines turns that failure, and no other, into 0.
    """
    coverage = Coverage(comparisons=2, judged=2 if is_whole else 1)
    new = 3 if outcome is Outcome.PASS and not is_whole else inconclusive
    assert compute_exit_code(outcome, FailOn.NEW, coverage) == new
    assert compute_exit_code(outcome, FailOn.INCONCLUSIVE, coverage) == inconclusive
    assert compute_exit_code(outcome, FailOn.REGRESSION, coverage) == regression
    assert compute_exit_code(outcome, FailOn.NEVER, coverage) == ExitCode.PASS
    accepted = {
        fail_on: compute_exit_code(outcome, fail_on, coverage, is_lack_accepted=True) for fail_on in FailOn
    }
    assert accepted[FailOn.NEW] == (0 if new == 3 else new)
    assert accepted[FailOn.INCONCLUSIVE] == (0 if inconclusive == 3 else inconclusive)


def test_a_pass_over_part_of_the_plan_says_which_part() -> None:
    """One of two metrics of one of three cases has a baseline: 1 of 4 comparisons, in 1 of 3 cases."""
    verdict = decide(
        Situation(case_id="a/x", before=SAME, after={**SAME, Metric.RECOMPILES: (3.0,)}),
        Situation(case_id="b/x", after=SAME),
        Situation(case_id="c/x", after=SAME),
    )
    assert verdict.outcome is Outcome.PASS
    assert measure_coverage(verdict.comparisons) == Coverage(comparisons=4, judged=1, cases=3, judged_cases=1)
    text = "Nothing got worse in what was judged: 1 of 4 comparisons, in 1 of 3 cases."
    assert write_opening(verdict) == text


def test_a_run_without_cases_gives_no_reason() -> None:
    """Without cases no baseline is missing."""
    verdict = decide(Situation(before=SAME, after=SAME))
    none = Fact(code=Code.NO_BASELINE_APPLIES, numbers={"cases": 0, "quarantined": 0})
    assert write_opening(replace(verdict, headline=(none,))) == "0 cases measured, none judged."


def test_nothing_covers_nothing() -> None:
    """Without a comparison all counts are zero, and nothing is left unjudged."""
    assert measure_coverage(()) == Coverage()
    assert Coverage().is_whole


def test_what_does_not_decide_counts_neither_way() -> None:
    """An eager latency without a baseline is not counted in a PASS."""
    verdict = decide(Situation(before=SAME, after={**SAME, EAGER: FIVE}))
    assert measure_coverage(verdict.comparisons) == Coverage(comparisons=1, judged=1, cases=1, judged_cases=1)
    assert write_opening(verdict) == "Nothing got worse: 1 comparison in 1 case judged."


def test_undecided_cases_are_those_that_trials_can_settle() -> None:
    """A suspect latency and a flickering counter need more trials; a thin baseline does not."""
    suspect = Situation(case_id="a/x", before={LATENCY: FIVE}, after={LATENCY: (0.0106,)})
    unstable = Situation(case_id="b/x", before={BREAKS: (0.0, 1.0)}, after={BREAKS: (1.0,)})
    thin = Situation(case_id="c/x", before={LATENCY: FIVE[:2]}, after={LATENCY: (0.02,)})
    assert {row.case_id for row in list_open(decide(suspect, unstable, thin))} == {"a/x", "b/x"}


CONVICTED = make_row(CASE, BREAKS, candidate=Estimate(centre=1.0, low=None, high=None, noise=None, n=1))
TWO_TRIALS = Estimate(centre=1.0, low=1.0, high=1.0, noise=0.0, n=2)
FLICKERING = Estimate(centre=0.5, low=0.0, high=1.0, noise=0.5, n=2)
UNSETTLED: dict[str, Any] = {"status": Status.INCONCLUSIVE, "reason": Reason.UNSETTLED}


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        ({}, True),
        ({"decides": False}, False),
        ({"candidate": TWO_TRIALS}, False),
        ({"candidate": None}, False),
        ({"status": Status.IMPROVED}, False),
        (UNSETTLED, True),
        ({**UNSETTLED, "decides": False}, False),
        ({**UNSETTLED, "candidate": None}, True),
        ({**UNSETTLED, "candidate": TWO_TRIALS}, True),
        ({**UNSETTLED, "candidate": FLICKERING}, False),  # it does not repeat, as it should
        ({**UNSETTLED, "candidate": FLICKERING, "metric": LATENCY}, True),
        ({**UNSETTLED, "reason": Reason.SHARED_SHIFT}, True),
        ({**UNSETTLED, "reason": Reason.FEW_TRIALS}, False),
    ],
)
def test_what_more_trials_can_settle_is_open(changes: dict[str, Any], *, is_open: bool) -> None:
    """A regression of one trial, and what is unsettled and does not differ between trials by itself."""
    row = replace(CONVICTED, **changes)
    verdict = make_verdict(row, outcome=Outcome.REGRESSION)
    assert list_open(verdict) == ((row,) if is_open else ())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"pairs": 3}, False),
        ({"metric": BREAKS}, False),
        ({"decides": False}, False),
        ({"status": Status.IMPROVED}, False),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.UNPAIRED}, True),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.UNPAIRED, "metric": BREAKS}, False),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.UNPAIRED, "decides": False}, False),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.UNSETTLED}, False),
    ],
)
def test_a_time_that_no_pair_confirmed_is_unconfirmed(changes: dict[str, Any], *, expected: bool) -> None:
    """It decides, and stored values alone convict it, or no pair came."""
    assert is_unconfirmed(replace(make_row(CASE, LATENCY), **changes)) is expected


def test_what_was_not_compared_is_of_what_decides() -> None:
    """Cases with something that decides and was not judged; of what decides nothing all cases."""
    judged, new = (make_row(CASE, LATENCY, status) for status in (Status.UNCHANGED, Status.NEW))
    other, shown = replace(new, case_id="b/x"), replace(new, case_id="c/x", decides=False)
    assert list_uncompared((judged, other, shown)) == ("b/x",)
    assert list_uncompared((other, judged, new, other)) == ("b/x", CASE)
    assert list_uncompared((shown,)) == ("c/x",)
    assert list_uncompared((judged,)) == ()


def test_regression_of_one_trial_is_measured_again() -> None:
    """A graph break needs a second trial, and no third one."""
    once = Situation(before={BREAKS: (0, 0)}, after={BREAKS: (1,)})
    twice = Situation(before={BREAKS: (0, 0)}, after={BREAKS: (1, 1)})
    assert {row.case_id for row in list_open(decide(once))} == {CASE}
    assert list_open(decide(twice)) == ()


# --- policy ---


def test_override_widens_one_threshold() -> None:
    """An override of 50 % lets 30 % pass, and the comparison shows it."""
    situation = Situation(before={LATENCY: FIVE}, after={LATENCY: (0.013,) * 3})
    override = Override(case="mlp/*", metric=LATENCY, relative=0.5, reason="noisy")
    assert decide(situation).outcome is Outcome.REGRESSION
    verdict = decide(situation, overrides=(override,))
    assert verdict.outcome is Outcome.PASS
    assert find_row(verdict, LATENCY).threshold == Threshold(relative=0.5, absolute=20e-6)


@pytest.mark.parametrize(
    ("parts", "threshold"),
    [
        ({"relative": 0.12}, Threshold(relative=0.12, absolute=0.5)),
        ({"absolute": 2.0}, Threshold(relative=0.2, absolute=2.0)),
        ({"relative": 0.0, "absolute": 0.0}, Threshold(relative=0.0, absolute=0.0)),
    ],
)
def test_an_override_leaves_the_part_that_it_does_not_name(
    parts: dict[str, float], threshold: Threshold
) -> None:
    """The other part is the policy's (20 %) or the metric's (0.5 s)."""
    cold = Metric.COLD_COMPILE_TIME
    earlier = Override(case="*", metric=cold, relative=0.9, absolute=9.0, reason="an earlier one")
    override = Override(case="mlp/*", metric=cold, reason="noisy", **parts)
    others = (replace(earlier, metric=LATENCY), replace(earlier, case="bert/*"))
    overrides = (earlier, override, *others)
    policy = Policy(thresholds={cold: Threshold(relative=0.2, absolute=0.5)}, overrides=overrides)
    assert get_threshold(policy, "mlp/a", cold) == threshold


def test_an_override_leaves_the_other_part_of_what_holds_for_pairs() -> None:
    """In pairs the other part is 3 %, not the 5 % of stored baselines."""
    override = Override(case="mlp/*", metric=LATENCY, absolute=1e-3, reason="short")
    policy = Policy(thresholds={LATENCY: SPECS[LATENCY].threshold}, overrides=(override,))
    assert get_threshold(policy, "mlp/a", LATENCY, in_pairs=True) == Threshold(relative=0.03, absolute=1e-3)
    assert get_threshold(policy, "mlp/a", LATENCY) == Threshold(relative=0.05, absolute=1e-3)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (Threshold(relative=0.05, absolute=1e-5), Threshold(relative=0.03, absolute=1e-5)),
        (Threshold(relative=0.08, absolute=20e-6), Threshold(relative=0.08, absolute=20e-6)),
    ],
)
def test_a_part_of_a_threshold_that_nobody_set_is_that_of_pairs(
    stated: Threshold, expected: Threshold
) -> None:
    """An absolute part leaves the 3 % of pairs, a relative one the 20 us."""
    policy = Policy(thresholds={LATENCY: stated})
    assert get_threshold(policy, "mlp/a", LATENCY, in_pairs=True) == expected


def accept(allowance: float, expires: str, metric: Metric = BREAKS) -> Acceptance:
    return make_acceptance(metric, allowance, case="mlp/*", reason="a fix", author="ann", expires=expires)


def test_acceptance_in_force_accepts_the_regression() -> None:
    """One more break, accepted until today, is ACCEPTED, and the verdict passes."""
    verdict = decide(Situation(before=SAME, after=MORE), acceptances=(accept(1.0, "2026-03-01"),))
    assert state(find_row(verdict, BREAKS)) == (Status.ACCEPTED, Reason.ACCEPTED)
    assert "ann" in describe_comparison(find_row(verdict, BREAKS))
    assert verdict.outcome is Outcome.PASS


def test_expired_acceptance_counts_no_longer_and_is_noted() -> None:
    """An acceptance that ended yesterday does not count."""
    verdict = decide(Situation(before=SAME, after=MORE), acceptances=(accept(1.0, "2026-02-28"),))
    assert verdict.outcome is Outcome.REGRESSION
    assert any("expired on 2026-02-28" in note for note in write_notes(verdict))


def test_acceptance_does_not_cover_more_than_its_allowance() -> None:
    """Two more breaks exceed an allowance of one, and another metric is not covered."""
    two = Situation(before=SAME, after={BREAKS: (2.0,)})
    assert decide(two, acceptances=(accept(1.0, "2026-12-31"),)).outcome is Outcome.REGRESSION
    other = accept(9.0, "2026-12-31", Metric.RECOMPILES)
    assert decide(two, acceptances=(other,)).outcome is Outcome.REGRESSION


def test_acceptance_without_a_date_of_today_does_not_count() -> None:
    """Without today's date an acceptance does not count."""
    verdict = decide(Situation(before=SAME, after=MORE), today="", acceptances=(accept(1.0, "2026-12-31"),))
    assert verdict.outcome is Outcome.REGRESSION


def test_fraction_acceptance_covers_a_slower_program() -> None:
    """A 30 % slowdown under an allowance of 35 %."""
    situation = Situation(before={LATENCY: FIVE}, after={LATENCY: (0.013,) * 3})
    verdict = decide(situation, acceptances=(accept(0.35, "2026-12-31", LATENCY),))
    assert find_row(verdict, LATENCY).status is Status.ACCEPTED


# --- words ---


def test_regression_names_case_metric_and_the_command() -> None:
    """The headline names the worst and that no cause is known; each step has its command."""
    verdict = decide(Situation(before=SAME, after=MORE))
    assert write_opening(verdict) == (
        "1 metric worse in mlp: graph breaks 0 -> 1. Unexplained: nothing that was recorded explains it."
    )
    fix, accept_it, *_ = describe_steps(verdict)
    assert fix == f"Fix what got worse and measure it again: compile-gate check --select {CASE}"
    assert (
        f"compile-gate baseline accept '{CASE}' graph_breaks --allow 1 --reason '...' --expires 2026-03-31"
        in accept_it
    )


@pytest.mark.parametrize(
    ("machine", "ending"),
    [
        (MachineShift(canary=-0.158, known=True), "fixed test programs -15.8 % (faster)."),
        (
            MachineShift(canary=0.1, suite=0.2, known=True),
            "fixed test programs +10.0 % (slower); eager over all cases +20.0 % (slower).",
        ),
    ],
    ids=["eager unknown", "both known"],
)
def test_a_machine_that_changed_is_described_by_what_is_known(machine: MachineShift, ending: str) -> None:
    """The note leaves out eager if too few cases have it."""
    (note,) = note_machine(machine, judged=True)
    assert write_note(note) == f"The machine changed since the baselines were recorded; {ending}"


@pytest.mark.parametrize(("change", "allowed"), [(0.4, "1"), (1.0, "1"), (1.5, "2")])
def test_a_suggested_allowance_of_a_count_is_whole(change: float, allowed: str) -> None:
    """A median of counts may grow by a half; the allowance is rounded up."""
    row = make_row(CASE, BREAKS, change=make_change(change, detectable=0.0))
    (step,) = list_acceptances([row], Policy(thresholds={}))
    assert step.numbers["allowance"] == float(allowed)


@pytest.mark.parametrize(("count", "more"), [(4, []), (6, [(Code.MORE_LIKE_THESE, 2)])])
def test_four_commands_are_suggested(count: int, more: list[tuple[Code, int]]) -> None:
    """The first one says how many its case needs, and those that are not shown are counted."""
    metrics = (BREAKS, Metric.RECOMPILES, Metric.GUARDS, Metric.CACHE_MISSES, EAGER, Metric.PEAK_MEMORY)
    rows = [make_row(CASE, metric, change=make_change(1.0)) for metric in metrics[:count]]
    steps = list_acceptances(rows, Policy(thresholds={}))
    assert [(step.code, step.numbers.get("commands")) for step in steps] == [
        (Code.ACCEPT, count),
        *[(Code.ACCEPT_TOO, None)] * 3,
        *more,
    ]


def test_used_baselines_are_named() -> None:
    """Provenance and environment id of the baselines are listed once each; the first names the stack."""
    hosts = [replace(CPU_HOST, packages={"numpy": version}) for version in ("1", "2", "3")]
    verdict = decide(
        *(Situation(case_id=f"m{n}/x", before=SAME, after=SAME, host=host) for n, host in enumerate(hosts))
    )
    assert verdict.base_environment == hosts[0]
    assert [provenance.commit for provenance in verdict.baseline_provenance] == ["abc"]
    assert len(verdict.baseline_environments) == 1
    assert verdict.trials == 3


@pytest.mark.parametrize(
    ("latency", "cases", "expected"),
    [
        (0.022, None, Status.INCONCLUSIVE),
        (0.025, None, Status.REGRESSED),
        (0.025, 2, Status.REGRESSED),
        (0.025, 4, Status.INCONCLUSIVE),
        (0.029, 4, Status.REGRESSED),
    ],
)
def test_a_run_has_the_error_budget_of_its_share_of_all_cases(
    latency: float, cases: int | None, expected: Status
) -> None:
    """Two cases of a plan of four have half of it; a whole run has all of it."""
    values: dict[str, Any] = {
        "before": {LATENCY: (0.008, 0.009, 0.01, 0.011, 0.012)},
        "after": {LATENCY: (latency,)},
    }
    situations = [Situation(case_id=name, **values) for name in "ab"]
    shard = Shard(number=1, of=2, cases=cases) if cases else None
    run = replace(make_measured(*situations), shard=shard)
    verdict = decide_verdict(run, make_stored(*situations), POLICY)
    assert {row.status for row in verdict.comparisons} == {expected}


def test_same_input_gives_the_same_verdict() -> None:
    """The decision has neither clock nor random numbers."""
    situation = Situation(before={LATENCY: FIVE}, after={LATENCY: (0.0106,)})
    assert decide(situation) == decide(situation)


def test_every_sentence_is_one_line() -> None:
    """Sentences fit into a table cell."""
    cases = (
        Situation(case_id="a/x", before={LATENCY: FIVE}, after={LATENCY: (0.013,) * 3}),
        Situation(case_id="b/x", after=MORE),
        Situation(case_id="c/x", before=SAME, after=MORE, definition_before="d0"),
        Situation(case_id="d/x", before=SAME, failures=(fail("d/x"),)),
        Situation(case_id="e/x"),
    )
    sentences = [describe_comparison(row) for row in decide(*cases).comparisons]
    assert all(sentence and "\n" not in sentence for sentence in sentences)


def test_baselines_of_one_gpu_do_not_judge_another() -> None:
    """Baselines of an H100 do not judge a T4 without bfloat16."""
    before = {BREAKS: (0.0,) * 3, Metric.PEAK_MEMORY: (5e8,) * 3, Metric.EAGER_FALLBACKS: (0.0,) * 3}
    after = {BREAKS: (0.0,) * 3, Metric.PEAK_MEMORY: (5.5e8,) * 3, Metric.EAGER_FALLBACKS: (1.0,) * 3}
    h100 = replace(CUDA_HOST, device_model="NVIDIA H100", device_traits={"capability": "9.0"})
    t4 = replace(CUDA_HOST, device_model="Tesla T4", device_traits={"capability": "7.5"})
    verdict = decide(Situation(before=before, after=after, host=h100), environment=t4)
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    for metric in before:
        assert state(find_row(verdict, metric)) == (Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT)


def test_fewer_trials_than_planned_are_missing() -> None:
    """One of three planned trials is MISSING, and the case is listed as short."""
    run = make_run(*make_trials(CASE, [{BREAKS: 0.0}]), environment=CPU_HOST, trials_planned=3)
    verdict = decide_verdict(run, (), POLICY)
    assert state(verdict.comparisons[0]) == (Status.MISSING, Reason.NOT_RUN)
    assert describe_comparison(verdict.comparisons[0]) == "Missing: 1 of 3 planned trials came back."
    assert [short.case.id for short in list_short(run)] == [CASE]
    assert list_short(replace(run, trials_planned=1)) == ()


def test_trials_that_measured_nothing_are_missing() -> None:
    """A trial without a sample is MISSING."""
    verdict = decide_verdict(make_run(*make_trials(CASE, [{}]), environment=CPU_HOST), (), POLICY)
    (row,) = verdict.comparisons
    assert state(row) == (Status.MISSING, Reason.NOT_RUN)
    assert describe_comparison(row) == "Missing: its trials came back and measured nothing."


def test_what_a_failure_explains_is_not_missing_too() -> None:
    """A failed case has one finding; its unmeasured latency is no other."""
    stored = {LATENCY: FIVE, BREAKS: (0.0,) * 5}
    verdict = decide(Situation(before=stored, after=SAME, failures=(fail(trial=1),)))
    assert [(row.metric, row.status) for row in verdict.comparisons] == [
        (LATENCY, Status.FAILED),
        (BREAKS, Status.UNCHANGED),
    ]


def test_counts_alone_are_judged_where_no_times_were_kept() -> None:
    """In a run of counts no time is missing, and the first note says so."""
    situation = Situation(before={**SAME, LATENCY: FIVE}, after=SAME)
    run = replace(make_measured(situation), counts_only=True)
    limits = tuple(
        AbsoluteLimit(case="*", metric=metric, value=1.0) for metric in (Metric.COLD_COMPILE_TIME, BREAKS)
    )
    verdict = decide_verdict(run, make_stored(situation), replace(POLICY, limits=limits))
    assert [(row.metric, row.status) for row in verdict.comparisons] == [(BREAKS, Status.UNCHANGED)]
    assert verdict.notes[0].code is Code.COUNTS_ONLY
