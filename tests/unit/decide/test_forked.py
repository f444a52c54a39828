"""Times of forked and unforked workers are not compared."""

from dataclasses import replace

import pytest

from gate.decide.evidence.baseline import make_baselines as record
from gate.decide.evidence.gather import gather_evidence
from gate.decide.verdict import decide_verdict
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Provenance, Run
from gate.records.verdict import Reason, Status
from tests.make import POLICY, Situation, find_row, make_measured

LATENCY, BREAKS = Metric.COMPILED_LATENCY, Metric.GRAPH_BREAKS
SLOW = Situation(
    case_id="x/1",
    before={LATENCY: (0.010, 0.010, 0.010), BREAKS: (0.0, 0.0, 0.0)},
    after={LATENCY: (0.010, 0.010, 0.010), BREAKS: (1.0, 1.0, 1.0)},
)
OTHER = replace(SLOW, case_id="y/1")
WHY = (Code.ENDS_UNANNOUNCED, Code.SERVER_SILENT, Code.SERVER_GONE, Code.IMPORT_STARTS_THREADS)


def make_forked(*unforked: int, code: Code = Code.SERVER_SILENT) -> Run:
    """A run with forked workers, except in these trials of its first case."""
    run = make_measured(SLOW, OTHER)
    trials = [
        replace(trial, warnings=(Fact(code=code),))
        if trial.case_id == "x/1" and trial.index in unforked
        else trial
        for trial in run.trials
    ]
    return replace(run, environment=replace(run.environment, workers="forked"), trials=tuple(trials))


def list_workers(run: Run) -> dict[str, str]:
    """What the run's baselines record of their workers."""
    return {baseline.case_id: baseline.environment.workers for baseline in record(run, Provenance())}


def test_this_hosts_baseline_comes_before_a_newer_one_of_another() -> None:
    """Of the same host the newer one comes first."""
    run = make_measured(SLOW)
    other = replace(run, environment=replace(run.environment, cpu="another processor"))
    recorded = ((run, "2027-01-01"), (other, "2027-01-03"), (run, "2027-01-02"))
    baselines = [baseline for source, day in recorded for baseline in record(source, Provenance(created=day))]
    (evidence,) = gather_evidence(run, baselines)
    found = [(match.same_host, match.baseline.provenance.created[-2:]) for match in evidence.stored]
    assert found == [(True, "02"), (True, "01"), (False, "03")]


@pytest.mark.parametrize("code", WHY)
def test_baselines_say_what_their_own_trials_were(code: Code) -> None:
    """A baseline is forked, partly forked or not, as its own trials were."""
    assert list_workers(make_forked(code=code)) == {"x/1": "forked", "y/1": "forked"}
    assert list_workers(make_forked(0, 1, 2, code=code)) == {"x/1": "", "y/1": "forked"}
    assert list_workers(make_forked(2, code=code)) == {"x/1": "partly forked", "y/1": "forked"}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ((), (), True),
        ((), (0, 1, 2), False),
        ((0, 1, 2), (), False),
        ((0, 1, 2), (0, 1, 2), True),
        ((), (2,), False),
    ],
)
def test_times_of_forked_and_unforked_trials_are_not_compared(
    before: tuple[int, ...], after: tuple[int, ...], same: bool
) -> None:
    """Counts and the other case's times are still compared."""
    baselines, run = record(make_forked(*before), Provenance()), make_forked(*after)
    first, second = gather_evidence(run, baselines)
    assert (first.stored[0].same_host, second.stored[0].same_host) == (same, True)
    verdict = decide_verdict(run, baselines, POLICY)
    reasons = [find_row(verdict, LATENCY, case_id).reason for case_id in ("x/1", "y/1")]
    assert [reason is Reason.OTHER_ENVIRONMENT for reason in reasons] == [not same, False]
    assert find_row(verdict, BREAKS, "x/1").status is Status.UNCHANGED
