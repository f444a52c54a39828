"""Disturbed trials are left out if others remain, and otherwise convict nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.outcome import list_open
from gate.decide.evidence.disturbed import (
    blame_disturbance,
    collect_head,
    doubt_stored,
    list_hopeless,
    note_disturbed,
    note_kept_disturbed,
    set_aside_disturbed,
    sum_up_disturbances,
)
from gate.decide.evidence.gather import gather_evidence
from gate.decide.verdict import decide_verdict
from gate.records.cases import Acceptance, Metric
from gate.records.codes import Code
from gate.records.facts import Disturbance
from gate.records.run import Conditions, Pairing, Trial
from gate.records.verdict import Outcome, Reason, Status, Verdict
from tests import make
from tests.make import POLICY, find_row, make_acceptance, make_baseline, make_run
from tests.words import describe_comparison, describe_steps, write_note, write_notes

BUSY = "other programs kept 1.4 of 2 cores busy"
CASE = "mlp/x"
BEFORE = {Metric.COLD_COMPILE_TIME: (10.0, 10.1, 9.9, 10.0, 10.0), Metric.GRAPH_BREAKS: (1.0,) * 5}


def throttle(*reasons: str) -> Conditions:
    return Conditions(throttled=reasons, disturbances=(Disturbance.THROTTLED,))


def make_trial(index: int, seconds: float, *, disturbed: bool, breaks: float = 1.0) -> Trial:
    samples = {Metric.COLD_COMPILE_TIME: seconds, Metric.GRAPH_BREAKS: breaks}
    return make.make_trial(CASE, samples, index, disturbed=disturbed)


def judge(trials: Sequence[Trial], *acceptances: Acceptance) -> Verdict:
    run = make_run(*trials)
    baseline = make_baseline(CASE, BEFORE, canaries_s={"matmul": (1.0,) * 5})
    return decide_verdict(run, (baseline,), replace(POLICY, acceptances=acceptances))


CROWDED = Conditions(foreign_cores=1.5, disturbances=(Disturbance.CROWDED,))


@pytest.mark.parametrize(
    ("conditions", "numbers", "reasons"),
    [
        ([throttle("heat", "power"), throttle("heat")], {"throttled": 2}, ("heat", "power")),
        ([throttle("power"), throttle("heat")], {"throttled": 1}, ("heat", "power")),
        ([throttle("software power cap"), throttle("heat")], {"throttled": 1}, ("heat",)),
        ([Conditions(throttled=("heat",))], {}, None),
        ([CROWDED], {"crowded": 1.5, "cores": 8}, None),
        ([], {}, None),
    ],
)
def test_the_worst_of_each_disturbance_is_summed_up(
    conditions: list[Conditions], numbers: dict[str, float], reasons: tuple[str, ...] | None
) -> None:
    """With the reasons of what was throttled by more than the usual power cap, by name."""
    fact = sum_up_disturbances(Code.QUIET_FIRST, conditions, cores=8)
    assert fact.numbers == numbers
    assert fact.names.get("reasons") == reasons


@pytest.mark.parametrize(
    ("disturbed", "statuses", "expected"),
    [
        ((True, True), (Status.INCONCLUSIVE,), True),
        ((True, False), (Status.INCONCLUSIVE,), False),
        ((True, True), (Status.INCONCLUSIVE, Status.REGRESSED), False),
        ((True, True), (Status.UNCHANGED,), False),
        ((), (Status.INCONCLUSIVE,), False),
    ],
)
def test_a_quieter_machine_comes_first_where_no_trial_was_calm(
    disturbed: Sequence[bool], statuses: Sequence[Status], *, expected: bool
) -> None:
    """Something is open, nothing is red, and every trial was disturbed."""
    trials = [make_trial(index, 10.0, disturbed=each) for index, each in enumerate(disturbed, 1)]
    rows = [make.make_row(CASE, Metric.COLD_COMPILE_TIME, status) for status in statuses]
    steps = blame_disturbance(collect_head(make_run(*trials)), rows)
    assert [step.code for step in steps] == ([Code.QUIET_FIRST] if expected else [])


@pytest.mark.parametrize(
    ("disturbed", "fewest", "expected"),
    [
        ((True, False, False), 3, True),
        ((True, False, False, False), 3, False),
        ((False, False), 3, False),  # few, and none of them is disturbed
    ],
)
def test_a_case_is_hopeless_with_too_few_calm_trials(
    disturbed: Sequence[bool], fewest: int, *, expected: bool
) -> None:
    """It had disturbed ones, and fewer others than are needed."""
    trials = [make_trial(index, 10.0, disturbed=each) for index, each in enumerate(disturbed, 1)]
    assert list_hopeless(make_run(*trials), fewest) == ((CASE,) if expected else ())


@pytest.mark.parametrize(
    ("fields", "has_trial", "expected"),
    [
        ({}, True, Code.DISTURBED_BY),
        ({"metric": Metric.GRAPH_BREAKS}, True, None),
        ({"pairs": 3}, True, None),
        ({"status": Status.IMPROVED}, True, None),
        ({}, False, None),
        ({"reason": Reason.LIMIT_EXCEEDED}, True, Code.DISTURBED_BY),
    ],
)
def test_a_time_that_disturbed_trials_alone_show_is_doubted(
    fields: dict[str, Any], *, has_trial: bool, expected: Code | None
) -> None:
    """A regression of stored values is open then; a count, or what pairs show, is not doubted."""
    run = make_run(make_trial(1, 20.0, disturbed=True))
    row = replace(make.make_row(CASE, Metric.COLD_COMPILE_TIME), **fields)
    evidence = gather_evidence(run, [make_baseline(CASE, BEFORE)])
    (doubted,) = doubt_stored([row], run if has_trial else replace(run, trials=()), evidence)
    assert [fact.code for fact in doubted.remarks] == ([] if expected is None else [expected])
    assert doubted.found is (None if expected is None else row.reason)


PACKAGES = {"numpy": "1.0"}


@pytest.mark.parametrize(
    ("stored", "reason", "expected"),
    [
        ({"packages": {"numpy": "2.0"}}, Reason.BEYOND_BAR, [Code.OTHER_PACKAGES]),
        ({"packages": {"numpy": "2.0"}}, Reason.LIMIT_EXCEEDED, []),
        ({"packages": PACKAGES}, Reason.BEYOND_BAR, []),
        (None, Reason.BEYOND_BAR, []),
    ],
)
def test_what_another_package_may_explain_is_doubted(
    stored: dict[str, Any] | None, reason: Reason, expected: list[Code]
) -> None:
    """But not a limit, which no baseline explains."""
    run = make_run(replace(make_trial(1, 20.0, disturbed=False), packages=PACKAGES))
    baselines = [] if stored is None else [make_baseline(CASE, BEFORE, **stored)]
    row = make.make_row(CASE, Metric.COLD_COMPILE_TIME, reason=reason)
    (doubted,) = doubt_stored([row], run, gather_evidence(run, baselines))
    assert [fact.code for fact in doubted.remarks] == expected


def test_a_doubtful_regression_exceeds_no_acceptance() -> None:
    """A disturbed trial does not exceed an acceptance."""
    taken = make_acceptance(Metric.COLD_COMPILE_TIME, 0.5, case=CASE)
    for disturbed in (False, True):
        verdict = judge([make_trial(1, 20.0, disturbed=disturbed)], taken)
        exceeded = [note for note in verdict.notes if note.code is Code.ACCEPTANCE_EXCEEDED]
        assert bool(exceeded) is not disturbed


def test_a_regression_on_an_unfit_host_is_inconclusive() -> None:
    """Twice the time in a disturbed trial is inconclusive, and the sentence names the disturbance."""
    verdict = judge([make_trial(1, 20.0, disturbed=True)])
    row = find_row(verdict, Metric.COLD_COMPILE_TIME)
    assert (row.status, row.reason) == (Status.INCONCLUSIVE, Reason.UNSETTLED)
    assert describe_comparison(row).endswith(f"But the machine was disturbed during the measurement: {BUSY}.")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert write_notes(verdict)[-1] == f"The machine was disturbed during 1 of 1 trials: {BUSY}."
    assert {row.case_id for row in list_open(verdict)} == {CASE}


CROWD = ("chromium (pid 123, 95 %)", "rsync (pid 7, 41 %)")


def test_what_disturbed_every_trial_is_to_be_stopped_first() -> None:
    """The first step names the programs that disturbed every trial."""
    first, second = (make_trial(index, 20.0, disturbed=True) for index in (1, 2))
    worst = replace(second, conditions=replace(second.conditions, foreign_cores=1.5, crowd=CROWD))
    assert describe_steps(judge([first, worst]))[0] == (
        "First stop chromium (pid 123, 95 %), rsync (pid 7, 41 %), and run the same again: during every trial"
        " other programs kept 1.5 of 2 cores busy: chromium (pid 123, 95 %), rsync (pid 7, 41 %)."
    )
    unnamed = "First make the machine quiet, and run the same again: during every trial"
    assert describe_steps(judge([first]))[0] == f"{unnamed} {BUSY}."
    # One calm trial decides, and so does a quiet answer.
    for trials in ([first, make_trial(2, 20.0, disturbed=False)], [make_trial(1, 10.0, disturbed=True)]):
        assert not any("run the same again" in step for step in describe_steps(judge(trials)))


def test_what_is_red_on_any_host_is_to_be_fixed_first() -> None:
    """With a new graph break no step asks to run the same again."""
    steps = describe_steps(judge([make_trial(1, 20.0, disturbed=True, breaks=2.0)]))
    assert not any("run the same again" in step for step in steps)


def test_a_counter_does_not_depend_on_the_host() -> None:
    """A new graph break regresses on a disturbed host."""
    verdict = judge([make_trial(1, 10.0, disturbed=True, breaks=2.0)])
    assert find_row(verdict, Metric.GRAPH_BREAKS).status is Status.REGRESSED
    assert verdict.outcome is Outcome.REGRESSION


def test_undisturbed_trials_decide_alone() -> None:
    """A slow disturbed trial does not count if another was undisturbed."""
    verdict = judge([make_trial(1, 20.0, disturbed=True), make_trial(2, 10.0, disturbed=False)])
    row = find_row(verdict, Metric.COLD_COMPILE_TIME)
    assert row.status is Status.UNCHANGED
    assert row.candidate is not None
    assert row.candidate.n == 1
    assert find_row(verdict, Metric.GRAPH_BREAKS).status is Status.UNCHANGED


def test_undisturbed_trials_convict_alone() -> None:
    """A slow undisturbed trial regresses."""
    verdict = judge([make_trial(1, 10.0, disturbed=True), make_trial(2, 20.0, disturbed=False)])
    assert find_row(verdict, Metric.COLD_COMPILE_TIME).status is Status.REGRESSED


def test_canaries_of_a_disturbed_moment_clear_nobody() -> None:
    """Slow canaries of a disturbed trial do not clear an undisturbed one."""
    calm = make_trial(1, 13.0, disturbed=False)
    stormy = make_trial(2, 13.0, disturbed=True)
    calm, stormy = (
        replace(trial, conditions=replace(trial.conditions, canaries_s={"matmul": seconds}))
        for trial, seconds in ((calm, 1.0), (stormy, 1.5))
    )
    kept, set_aside = set_aside_disturbed(make_run(calm, stormy)).trials
    assert (kept, dict(set_aside.conditions.canaries_s)) == (calm, {})
    assert find_row(judge([calm, stormy]), Metric.COLD_COMPILE_TIME).status is Status.REGRESSED


def test_calm_trials_are_left_as_they_are() -> None:
    """Without a disturbance nothing is left out or noted."""
    trials = (make_trial(1, 10.0, disturbed=False),)
    run = make_run(*trials)
    assert set_aside_disturbed(run) is run
    assert not any("disturbed" in note for note in write_notes(judge(trials)))


@pytest.mark.parametrize("changes", [{"pairing": Pairing.LIVE}, {"arm": "base"}])
def test_pairs_are_left_alone(changes: dict[str, Any]) -> None:
    """A disturbed pair stays, since both arms were disturbed."""
    paired = replace(make_trial(1, 20.0, disturbed=True), **changes)
    calm = make_trial(1, 10.0, disturbed=False)
    assert set_aside_disturbed(make_run(paired, calm)).trials == (paired, calm)


def test_disturbed_pairs_are_noted() -> None:
    """The note counts pairs, not arms."""
    pairs = [
        replace(make_trial(index, 10.0, disturbed=index == 1), pairing=Pairing.LIVE, arm=arm)
        for index in (1, 2)
        for arm in ("base", "head")
    ]
    assert tuple(map(write_note, note_disturbed(collect_head(make_run(*pairs))))) == (
        f"The machine was disturbed during 1 of 2 pairs, base and head alike: {BUSY}.",
    )


@pytest.mark.parametrize(("fewest", "is_noted"), [(2, False), (3, True)])
def test_disturbed_trials_that_had_to_be_recorded_are_noted(fewest: int, is_noted: bool) -> None:
    """A baseline of three trials has the disturbed one if only two were calm, and a note says so."""
    trials = tuple(make_trial(index, 10.0, disturbed=index == 3) for index in (1, 2, 3))
    run = make_run(*trials)
    text = (
        f"Disturbed trials are recorded too of mlp/x: fewer than {fewest} others came back."
        " Record again on a quiet machine."
    )
    assert tuple(map(write_note, note_kept_disturbed(run, fewest))) == ((text,) if is_noted else ())
