"""Forked and unforked trials are never compared: those of one case say themselves which they are."""

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
    """A run whose environment has forked workers; of the first case, trials of these numbers are not."""
    run = make_measured(SLOW, OTHER)
    trials = [
        replace(one, warnings=(Fact(code=code),)) if one.case_id == "x/1" and one.index in unforked else one
        for one in run.trials
    ]
    return replace(run, environment=replace(run.environment, workers="forked"), trials=tuple(trials))


def list_workers(run: Run) -> dict[str, str]:
    """What the baselines that are made of a run say of their workers."""
    return {one.case_id: one.environment.workers for one in record(run, Provenance())}


@pytest.mark.parametrize("code", WHY)
def test_baselines_say_what_their_own_trials_were(code: Code) -> None:
    """One case had no server, and the other had; where only some had one, it is neither."""
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
def test_only_likes_are_compared_by_time(before: tuple[int, ...], after: tuple[int, ...], same: bool) -> None:
    """Counts are compared all the same, and the other case is not concerned."""
    baselines, run = record(make_forked(*before), Provenance()), make_forked(*after)
    first, second = gather_evidence(run, baselines)
    assert (first.stored[0].same_host, second.stored[0].same_host) == (same, True)
    verdict = decide_verdict(run, baselines, POLICY)
    reasons = [find_row(verdict, LATENCY, case_id).reason for case_id in ("x/1", "y/1")]
    assert [reason is Reason.OTHER_ENVIRONMENT for reason in reasons] == [not same, False]
    assert find_row(verdict, BREAKS, "x/1").status is Status.UNCHANGED
