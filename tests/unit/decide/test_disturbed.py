"""Trials on a host that was not fit: set aside where there are others, believed less where not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.outcome import list_open
from gate.decide.evidence.disturbed import (
    collect_head,
    note_disturbed,
    note_kept_disturbed,
    set_aside_disturbed,
)
from gate.decide.verdict import decide_verdict
from gate.records.cases import Acceptance, Case, Metric
from gate.records.codes import Code
from gate.records.run import Environment, Pairing, Trial
from gate.records.verdict import Outcome, Reason, Status, Verdict
from tests import make
from tests.hosts import CPU_HOST
from tests.make import POLICY, TODAY, find_row, make_baseline, make_run
from tests.told import tell_note, tell_notes, tell_row, tell_steps

BUSY = "other programs kept 1.4 of 2 cores busy"
CASE = Case(id="mlp/x", model="mlp", factory="m:f", definition="d")
BEFORE = {Metric.COLD_COMPILE_TIME: (10.0, 10.1, 9.9, 10.0, 10.0), Metric.GRAPH_BREAKS: (1.0,) * 5}


def make_trial(index: int, seconds: float, *, disturbed: bool, breaks: float = 1.0) -> Trial:
    samples = {Metric.COLD_COMPILE_TIME: seconds, Metric.GRAPH_BREAKS: breaks}
    return make.make_trial(CASE.id, samples, index, disturbed=disturbed)


def judge(host: Environment, trials: Sequence[Trial], *acceptances: Acceptance) -> Verdict:
    run = make_run(*trials, cases=(CASE,), environment=host)
    baseline = make_baseline(
        CASE.id, BEFORE, definition="d", environment=host, canaries_s={"matmul": (1.0,) * 5}
    )
    return decide_verdict(run, (baseline,), replace(POLICY, acceptances=acceptances))


def test_a_doubtful_regression_exceeds_no_acceptance() -> None:
    """Twice as long where half as much more is accepted, in a disturbed trial alone: nothing is exceeded."""
    taken = Acceptance(
        case=CASE.id,
        metric=Metric.COLD_COMPILE_TIME,
        allowance=0.5,
        reason="known",
        author="ada",
        expires=TODAY,
    )
    for disturbed in (False, True):
        verdict = judge(CPU_HOST, [make_trial(1, 20.0, disturbed=disturbed)], taken)
        exceeded = [note for note in verdict.notes if note.code is Code.ACCEPTANCE_EXCEEDED]
        assert bool(exceeded) is not disturbed


def test_a_regression_on_an_unfit_host_is_inconclusive() -> None:
    """Twice as long, in a disturbed trial: the sentence says what disturbed it, and more trials help."""
    verdict = judge(CPU_HOST, [make_trial(1, 20.0, disturbed=True)])
    found = find_row(verdict, Metric.COLD_COMPILE_TIME)
    assert (found.status, found.reason) == (Status.INCONCLUSIVE, Reason.UNSETTLED)
    assert tell_row(found).endswith(f"But the machine was disturbed during the measurement: {BUSY}.")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert tell_notes(verdict)[-1] == f"The machine was disturbed during 1 of 1 trials: {BUSY}."
    assert {row.case_id for row in list_open(verdict)} == {CASE.id}


CROWD = ("chromium (pid 123, 95 %)", "rsync (pid 7, 41 %)")


def test_what_disturbed_every_trial_is_to_be_stopped_first() -> None:
    """More trials, or pairs, on a machine that others use tells no more: those are named first."""
    one, other = (make_trial(index, 20.0, disturbed=True) for index in (1, 2))
    worst = replace(other, conditions=replace(other.conditions, foreign_cores=1.5, crowd=CROWD))
    assert tell_steps(judge(CPU_HOST, [one, worst]))[0] == (
        "First stop chromium (pid 123, 95 %), rsync (pid 7, 41 %), and run the same again: during every trial"
        " other programs kept 1.5 of 2 cores busy: chromium (pid 123, 95 %), rsync (pid 7, 41 %)."
    )
    unnamed = "First make the machine quiet, and run the same again: during every trial"
    assert tell_steps(judge(CPU_HOST, [one]))[0] == f"{unnamed} {BUSY}."
    # One calm trial decides, and so does a quiet answer.
    for trials in ([one, make_trial(2, 20.0, disturbed=False)], [make_trial(1, 10.0, disturbed=True)]):
        assert not any("run the same again" in step for step in tell_steps(judge(CPU_HOST, trials)))


def test_what_is_red_on_any_host_is_to_be_fixed_first() -> None:
    """A graph break more stands, whatever kept the machine busy and its times open."""
    steps = tell_steps(judge(CPU_HOST, [make_trial(1, 20.0, disturbed=True, breaks=2.0)]))
    assert not any("run the same again" in step for step in steps)


def test_a_counter_does_not_depend_on_the_host() -> None:
    """A graph break more is a regression on any host."""
    verdict = judge(CPU_HOST, [make_trial(1, 10.0, disturbed=True, breaks=2.0)])
    assert find_row(verdict, Metric.GRAPH_BREAKS).status is Status.REGRESSED
    assert verdict.outcome is Outcome.REGRESSION


def test_undisturbed_trials_decide_alone() -> None:
    """One of two trials was disturbed and slow: the other, as fast as ever, is what counts."""
    verdict = judge(CPU_HOST, [make_trial(1, 20.0, disturbed=True), make_trial(2, 10.0, disturbed=False)])
    found = find_row(verdict, Metric.COLD_COMPILE_TIME)
    assert found.status is Status.UNCHANGED
    assert found.candidate is not None
    assert found.candidate.n == 1
    assert find_row(verdict, Metric.GRAPH_BREAKS).status is Status.UNCHANGED


def test_undisturbed_trials_convict_alone() -> None:
    """A slow trial on a fit host is a regression, whatever happened in the other."""
    verdict = judge(CPU_HOST, [make_trial(1, 10.0, disturbed=True), make_trial(2, 20.0, disturbed=False)])
    assert find_row(verdict, Metric.COLD_COMPILE_TIME).status is Status.REGRESSED


def test_canaries_of_a_disturbed_moment_clear_nobody() -> None:
    """A calm trial convicts; that the canaries were slow in another, disturbed one does not acquit it."""
    calm = make_trial(1, 13.0, disturbed=False)
    stormy = make_trial(2, 13.0, disturbed=True)
    calm, stormy = (
        replace(one, conditions=replace(one.conditions, canaries_s={"matmul": seconds}))
        for one, seconds in ((calm, 1.0), (stormy, 1.5))
    )
    kept, set_aside = set_aside_disturbed(make_run(calm, stormy)).trials
    assert (kept, dict(set_aside.conditions.canaries_s)) == (calm, {})
    assert find_row(judge(CPU_HOST, [calm, stormy]), Metric.COLD_COMPILE_TIME).status is Status.REGRESSED


def test_calm_trials_are_left_as_they_are() -> None:
    """Without any disturbance the very same run is judged, and nothing is noted."""
    trials = (make_trial(1, 10.0, disturbed=False),)
    run = make_run(*trials)
    assert set_aside_disturbed(run) is run
    assert not any("disturbed" in note for note in tell_notes(judge(CPU_HOST, trials)))


@pytest.mark.parametrize("changes", [{"pairing": Pairing.LIVE}, {"arm": "base"}])
def test_pairs_are_left_alone(changes: dict[str, Any]) -> None:
    """Both arms of a pair were disturbed alike: an undisturbed trial elsewhere changes nothing of that."""
    beside = replace(make_trial(1, 20.0, disturbed=True), **changes)
    calm = make_trial(1, 10.0, disturbed=False)
    assert set_aside_disturbed(make_run(beside, calm)).trials == (beside, calm)


def test_disturbed_pairs_are_noted() -> None:
    """A pair is one, whatever its arms saw, and the note says by what it was disturbed."""
    pairs = [
        replace(make_trial(index, 10.0, disturbed=index == 1), pairing=Pairing.LIVE, arm=arm)
        for index in (1, 2)
        for arm in ("base", "head")
    ]
    assert tuple(map(tell_note, note_disturbed(collect_head(make_run(*pairs))))) == (
        f"The machine was disturbed during 1 of 2 pairs, base and head alike: {BUSY}.",
    )


@pytest.mark.parametrize(("fewest", "is_noted"), [(2, False), (3, True)])
def test_disturbed_trials_that_had_to_be_recorded_are_noted(fewest: int, is_noted: bool) -> None:
    """Two of three trials were calm: a baseline that takes three has the disturbed one, and says so."""
    trials = tuple(make_trial(index, 10.0, disturbed=index == 3) for index in (1, 2, 3))
    run = make_run(*trials)
    told = (
        f"Disturbed trials are recorded too of mlp/x: fewer than {fewest} others came back."
        " Record again on a quiet machine."
    )
    assert tuple(map(tell_note, note_kept_disturbed(run, fewest))) == ((told,) if is_noted else ())
