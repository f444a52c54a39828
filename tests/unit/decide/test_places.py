"""Where trials ran: each place has a shift of its own, and another card's times decide nothing."""

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
from tests.told import tell_row

COLD, CALLS, BREAKS = Metric.COLD_COMPILE_TIME, Metric.COMPILE_CALLS, Metric.GRAPH_BREAKS
FIRST, SECOND = (Place(host=host, device=f"GPU-{host}", cores="0-3") for host in ("a", "b"))
EXACT = (1.0, 1.0, 1.0)


def slow_canaries(case_id: str, factor: float) -> Situation:
    """A case whose compile took as much longer as the canaries beside it."""
    return Situation(
        case_id=case_id,
        before={COLD: (10.0, 10.0, 10.0)},
        after={COLD: (10.0 * factor,) * 3},
        canaries_before={"matmul": EXACT},
        canaries_after={"matmul": (factor,) * 3},
    )


def put(run: Run, **places: Place) -> Run:
    """Say where the cases of these models ran."""
    trials = [replace(one, place=places[one.case_id.partition("/")[0]].name) for one in run.trials]
    return replace(run, trials=tuple(trials), places={place.name: place for place in places.values()})


def test_each_place_has_a_shift_of_its_own() -> None:
    """One runs 10 % slower and one as before: the middle of both would be wrong for either."""
    cases = (slow_canaries("x/1", 1.1), slow_canaries("x/2", 1.1), slow_canaries("y/1", 1.0))
    run = put(make_measured(*cases), x=FIRST, y=SECOND)
    places = screen_run(run, make_stored(*cases), POLICY).places
    assert {name: one.shift for name, one in places.items()} == {
        "GPU-a": pytest.approx(math.log(1.1)),
        "GPU-b": 0.0,
    }


def test_a_case_whose_trials_ran_at_two_places_has_none() -> None:
    """Nor does one of a run that was written before places were."""
    run = put(make_measured(slow_canaries("x/1", 1.0)), x=FIRST)
    assert [one.place for one in gather_evidence(run, ())] == ["GPU-a"]
    first, *others = run.trials
    mixed = replace(run, trials=(replace(first, place="GPU-b"), *others))
    assert [one.place for one in gather_evidence(mixed, ())] == [""]


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
    """Counters are the same on any card: a graph break convicts. An unknown card is taken for the same."""
    run = make_measured(REGRESSED, environment=replace(CUDA_HOST, device_uuid=card))
    verdict = decide_verdict(run, make_stored(REGRESSED), POLICY)
    found = find_row(verdict, COLD)
    assert (found.status, found.reason) == outcome
    assert find_row(verdict, BREAKS).status is Status.REGRESSED
    assert verdict.outcome is Outcome.REGRESSION
    if found.reason is Reason.UNSETTLED:
        assert found.found is Reason.BEYOND_BAR
        assert tell_row(found).endswith(
            "But the baseline is of another card of this model, and cards differ: compare in pairs."
        )


def test_a_limit_decides_on_any_card() -> None:
    """A compile of 30 s is surely beyond 5 s, whichever card recorded the baseline."""
    run = make_measured(REGRESSED, environment=replace(CUDA_HOST, device_uuid="GPU-2"))
    policy = replace(POLICY, limits=(AbsoluteLimit(case="*", metric=COLD, value=5.0),))
    found = find_row(decide_verdict(run, make_stored(REGRESSED), policy), COLD)
    assert (found.status, found.reason) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)


def test_a_baseline_is_of_the_card_that_its_trials_ran_on() -> None:
    """In a run of two cards that have none in common."""
    cases = (slow_canaries("x/1", 1.0), slow_canaries("y/1", 1.0))
    run = put(make_measured(*cases, environment=replace(CUDA_HOST, device_uuid="")), x=FIRST, y=SECOND)
    stored = record(run, Provenance())
    assert [one.environment.device_uuid for one in stored] == ["GPU-a", "GPU-b"]
