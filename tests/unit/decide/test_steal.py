"""Time that the hypervisor takes from most trials is the machine's noise; more than that is a disturbance."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.disturbed import collect_head, excuse_run, list_hopeless, note_disturbed
from gate.decide.verdict import decide_verdict
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Disturbance
from gate.records.run import Conditions, Provenance, Run, Trial
from gate.records.verdict import Status
from tests import make
from tests.make import POLICY, find_row, make_baseline, make_trial

CASE = "mlp/x"
COLD = Metric.COLD_COMPILE_TIME


def make_run(shares: Sequence[float], seconds: float = 10.0) -> Run:
    """A run whose trials lost these shares to the hypervisor."""
    lost = [
        Conditions(stolen=share, disturbances=(Disturbance.STOLEN,) if share > 0.02 else ())
        for share in shares
    ]
    trials = (
        make_trial(CASE, {COLD: seconds}, index, conditions=conditions)
        for index, conditions in enumerate(lost, 1)
    )
    return make.make_run(*trials)


@pytest.mark.parametrize(
    ("shares", "disturbed"),
    [
        pytest.param((0.08, 0.07, 0.09, 0.06, 0.10), 0, id="about as much of each"),
        pytest.param((0.05, 0.05, 0.11, 0.05, 0.05), 1, id="more than twice as much of one"),
        pytest.param((0.05, 0.05, 0.10, 0.05, 0.05), 0, id="twice as much of one"),
        pytest.param((0.06, 0.06, 0.14, 0.00, 0.00), 1, id="by the median of those that lost some"),
        pytest.param((0.00, 0.01, 0.08, 0.00, 0.01), 1, id="little of most"),
        pytest.param((0.16, 0.16, 0.16, 0.16, 0.16), 5, id="more than 15 %"),
        pytest.param((0.15, 0.15, 0.15, 0.15, 0.15), 0, id="15 %"),
        pytest.param((0.08,), 1, id="a single trial has no neighbours"),
        pytest.param((0.08, 0.01), 1, id="one of two is not most"),
    ],
)
def test_a_trial_is_disturbed_by_what_stands_out(shares: Sequence[float], disturbed: int) -> None:
    trials = excuse_run(make_run(shares)).trials
    assert sum(bool(trial.conditions.disturbances) for trial in trials) == disturbed


def test_another_disturbance_of_such_a_trial_stays() -> None:
    run = make_run((0.08, 0.08))
    both = Conditions(stolen=0.08, disturbances=(Disturbance.STOLEN, Disturbance.HEATED))
    hot = Trial(case_id=CASE, index=3, conditions=both)
    (*_, last) = excuse_run(replace(run, trials=(*run.trials, hot))).trials
    assert last.conditions.disturbances == (Disturbance.HEATED,)


def test_a_baseline_is_made_of_what_such_a_machine_measures() -> None:
    """Five trials that lost 8 % each are recorded without a mark, with one note."""
    run = make_run((0.08,) * 5)
    (baseline,) = make_baselines(run, Provenance())
    assert (len(baseline.trials[COLD]), baseline.disturbed) == (5, 0)
    assert list_hopeless(run, 3) == ()
    (note,) = note_disturbed(collect_head(run))
    assert (note.code, note.numbers) == (Code.OWN_STEAL, {"share": 0.08})


def test_a_time_seen_worse_in_such_trials_alone_stays_open() -> None:
    """Twice the time in three trials that lost 8 % is open."""
    stored = make_baseline(CASE, {COLD: (10.0,) * 5})
    verdict = decide_verdict(make_run((0.08,) * 3, seconds=20.0), (stored,), POLICY)
    row = find_row(verdict, COLD)
    assert row.status is Status.INCONCLUSIVE
    assert [step.code for step in verdict.next_steps if step.code is Code.QUIET_FIRST] == []
