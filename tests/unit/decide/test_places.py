"""Each place of a run has its own shift, and times of another card do not decide."""

import math
from dataclasses import replace

import pytest

from gate.decide.evidence.baseline import make_baselines as record
from gate.decide.evidence.gather import gather_evidence
from gate.decide.verdict import decide_verdict, screen_run
from gate.records.cases import AbsoluteLimit, Metric
from gate.records.run import Place, Provenance, Run
from gate.records.verdict import Outcome, Reason, Status
from tests.hosts import CUDA_HOST
from tests.make import POLICY, Situation, find_row, make_measured, make_stored
from tests.words import describe_comparison

COLD, CALLS, BREAKS = Metric.COLD_COMPILE_TIME, Metric.COMPILE_CALLS, Metric.GRAPH_BREAKS
FIRST, SECOND = (Place(host=host, device=f"GPU-{host}", cores="0-3") for host in ("a", "b"))
EXACT = (1.0, 1.0, 1.0)


def slow_canaries(case_id: str, factor: float) -> Situation:
    """A case whose compile and canaries are slower by the same factor."""
    return Situation(
        case_id=case_id,
        before={COLD: (10.0, 10.0, 10.0)},
        after={COLD: (10.0 * factor,) * 3},
        canaries_before={"matmul": EXACT},
        canaries_after={"matmul": (factor,) * 3},
    )


def put(run: Run, **places: Place) -> Run:
    """Set the places of the cases of these models."""
    trials = [replace(trial, place=places[trial.case_id.partition("/")[0]].name) for trial in run.trials]
    return replace(run, trials=tuple(trials), places={place.name: place for place in places.values()})


def test_each_place_has_a_shift_of_its_own() -> None:
    """One place is 10 % slower, the other one is not."""
    cases = (slow_canaries("x/1", 1.1), slow_canaries("x/2", 1.1), slow_canaries("y/1", 1.0))
    run = put(make_measured(*cases), x=FIRST, y=SECOND)
    places = screen_run(run, make_stored(*cases), POLICY).places
    assert {name: machine.shift for name, machine in places.items()} == {
        "GPU-a": pytest.approx(math.log(1.1)),
        "GPU-b": 0.0,
    }


def test_a_case_whose_trials_ran_at_two_places_has_none() -> None:
    """A case at two places has none, nor has one of an older run."""
    run = put(make_measured(slow_canaries("x/1", 1.0)), x=FIRST)
    assert [evidence.place for evidence in gather_evidence(run, ())] == ["GPU-a"]
    first, *others = run.trials
    mixed = replace(run, trials=(replace(first, place="GPU-b"), *others))
    assert [evidence.place for evidence in gather_evidence(mixed, ())] == [""]


REGRESSED = Situation(
    case_id="x/1",
    host=CUDA_HOST,
    before={COLD: (10.0, 10.1, 9.9, 10.0, 10.0), CALLS: (1e6,) * 5, BREAKS: (0.0,) * 5},
    after={COLD: (30.0, 30.1), CALLS: (3e6, 3e6), BREAKS: (1.0, 1.0)},
)


@pytest.mark.parametrize(
    ("card", "outcome"),
    [
        ("GPU-1", (Status.REGRESSED, Reason.BEYOND_BAR)),
        ("GPU-2", (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        ("", (Status.REGRESSED, Reason.BEYOND_BAR)),
    ],
)
def test_a_baseline_of_another_card_convicts_no_time(card: str, outcome: tuple[Status, Reason]) -> None:
    """Times of another card convict nothing, graph breaks do; an unknown card counts as the same."""
    run = make_measured(REGRESSED, environment=replace(CUDA_HOST, device_uuid=card))
    verdict = decide_verdict(run, make_stored(REGRESSED), POLICY)
    row = find_row(verdict, COLD)
    assert (row.status, row.reason) == outcome
    assert find_row(verdict, BREAKS).status is Status.REGRESSED
    assert verdict.outcome is Outcome.REGRESSION
    if row.reason is Reason.UNSETTLED:
        assert row.found is Reason.BEYOND_BAR
        assert describe_comparison(row).endswith(
            "But the baseline is of another card of this model, and cards differ: compare in pairs."
        )


def test_a_limit_decides_on_any_card() -> None:
    """A compile of 30 s exceeds 5 s, whichever card recorded the baseline."""
    run = make_measured(REGRESSED, environment=replace(CUDA_HOST, device_uuid="GPU-2"))
    policy = replace(POLICY, limits=(AbsoluteLimit(case="*", metric=COLD, value=5.0),))
    row = find_row(decide_verdict(run, make_stored(REGRESSED), policy), COLD)
    assert (row.status, row.reason) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)


def test_a_baseline_is_of_the_card_that_its_trials_ran_on() -> None:
    """In a run of two cards each baseline names its own."""
    cases = (slow_canaries("x/1", 1.0), slow_canaries("y/1", 1.0))
    run = put(make_measured(*cases, environment=replace(CUDA_HOST, device_uuid="")), x=FIRST, y=SECOND)
    stored = record(run, Provenance())
    assert [baseline.environment.device_uuid for baseline in stored] == ["GPU-a", "GPU-b"]
