"""The order of trials and the time they take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gate.check.schedule import (
    EXTENT_SHARES,
    Slot,
    compute_trial_s,
    drop_cases,
    estimate_left_s,
    list_ended,
    make_trial_schedule,
    predict_trial_s,
)
from gate.records import (
    Case,
    CaseFailure,
    Extent,
    FailureKind,
    Metric,
    Pairing,
    Provenance,
    Run,
    Trial,
)
from tests.hosts import CPU_HOST
from tests.told import make_raised

A = Case(id="a/x", model="a", expected_s=10.0)
B = Case(id="b/x", model="b", expected_s=20.0)


def make_trial(case: Case, index: int, seconds: float) -> Trial:
    """Make a trial of so many seconds, a tenth of them overhead, with start-up inside it."""
    stages = {"start": 0.05 * seconds, "compile": 0.5 * seconds, "rounds": 0.4 * seconds}
    return Trial(case_id=case.id, index=index, stages_s=stages, overhead_s=0.1 * seconds)


def test_round_robin() -> None:
    """Trial 1 of every case comes before trial 2 of any."""
    expected = (
        Slot(case=A, index=1),
        Slot(case=B, index=1),
        Slot(case=A, index=2),
        Slot(case=B, index=2),
    )
    assert expected == make_trial_schedule((A, B), 2)


def test_taken_trials_are_left_out() -> None:
    """What a stopped run has already measured is not scheduled again."""
    taken = [make_trial(A, 1, 1.0), make_trial(A, 2, 1.0), make_trial(B, 2, 1.0)]
    assert (Slot(case=B, index=1),) == make_trial_schedule((A, B), 2, taken)


def test_pairs_stand_for_no_trial() -> None:
    """A case whose pairs came back is still given the second trial that a moved counter asks for."""
    taken = [make_trial(A, 1, 1.0), replace(make_trial(A, 2, 1.0), pairing=Pairing.LIVE)]
    assert (Slot(case=A, index=2),) == make_trial_schedule((A,), 2, taken)


def test_drops_cases() -> None:
    """No slot of a dropped case is left."""
    assert (Slot(case=B, index=1), Slot(case=B, index=2)) == drop_cases(
        make_trial_schedule((A, B), 2), {"a/x"}
    )


def test_trial_time_counts_start_up_once() -> None:
    """Stages and overhead make the wall time; start-up is in the overhead."""
    assert pytest.approx(compute_trial_s(make_trial(A, 1, 40.0))) == 40.0


def test_prediction_without_trials_is_what_the_case_expects() -> None:
    """Before anything is seen, the expected time stands."""
    assert predict_trial_s(B, (A, B), ()) == 20.0


def test_prediction_follows_the_machine() -> None:
    """On a machine on which A took three times the expected, B is expected to as well."""
    assert pytest.approx(predict_trial_s(B, (A, B), (make_trial(A, 1, 30.0),))) == 60.0


def test_prediction_prefers_the_case_itself() -> None:
    """A case that was seen is predicted by its own mean."""
    trials = (make_trial(A, 1, 30.0), make_trial(B, 1, 8.0), make_trial(B, 2, 10.0))
    assert pytest.approx(predict_trial_s(B, (A, B), trials)) == 9.0


def test_light_trial_is_predicted_by_its_like() -> None:
    """Before there is one it takes a share of a whole one; no light one makes a whole one shorter."""
    whole, light = make_trial(A, 1, 30.0), replace(make_trial(A, 2, 5.0), extent=Extent.COLD)
    assert predict_trial_s(A, (A, B), (whole,), Extent.COLD) == pytest.approx(
        30.0 * EXTENT_SHARES[Extent.COLD]
    )
    assert predict_trial_s(A, (A, B), (whole, light), Extent.COLD) == pytest.approx(5.0)
    assert predict_trial_s(A, (A, B), (whole, light)) == pytest.approx(30.0)
    assert predict_trial_s(B, (A, B), (whole, light)) == pytest.approx(60.0)


def test_time_left_counts_what_is_measured() -> None:
    """A's cold process takes 5 s as before; that of B is taken for half of a whole trial."""
    trials = (
        make_trial(A, 1, 30.0),
        replace(make_trial(A, 2, 5.0), extent=Extent.COLD),
        make_trial(B, 1, 60.0),
        make_trial(B, 2, 60.0),
    )
    wanted = {A.id: {Metric.COMPILED_LATENCY}, B.id: {Metric.COLD_COMPILE_TIME}}
    slots = make_trial_schedule((A, B), 3, trials, wanted)
    left_s = 5.0 + 60.0 * EXTENT_SHARES[Extent.COLD]
    assert estimate_left_s(slots, (A, B), trials) == pytest.approx(left_s)


def test_time_left() -> None:
    """A took 30 s, so its second trial takes 30 s and each of B's two, unseen, 60 s."""
    trials = (make_trial(A, 1, 30.0),)
    slots = make_trial_schedule((A, B), 2, trials)
    assert pytest.approx(estimate_left_s(slots, (A, B), trials)) == 150.0


def test_nothing_left() -> None:
    """An empty schedule takes no time."""
    assert estimate_left_s((), (A, B), ()) == 0.0


def test_what_failed_has_ended_too() -> None:
    """A trial that was measured and failed ends once; one that only failed ends as well."""
    failures = tuple(
        CaseFailure(
            case_id=case.id, trial=1, kind=FailureKind.CRASH, stage="compile", told=make_raised("SIGSEGV")
        )
        for case in (A, B)
    )
    run = Run(
        cases=(A, B),
        environment=CPU_HOST,
        provenance=Provenance(),
        trials=(make_trial(A, 1, 1.0), make_trial(A, 2, 1.0)),
        failures=failures,
    )
    assert list_ended(run) == {("a/x", 1), ("a/x", 2), ("b/x", 1)}
