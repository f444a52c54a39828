"""A lane measures single slots as the lab measures whole runs; nothing but JSON goes in and out."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from gate.check import want_whole
from gate.check.fleet import Fleet
from gate.check.work import Answer, Part, Unit
from gate.decide.suspects import Suspect
from gate.files.codec import encode
from gate.files.structure import decode
from gate.lab.host.fitness import HostSample
from gate.lab.trials import trials as trials_module
from gate.lab.trials.opening import Lab
from gate.lab.trials.runner import make_run
from gate.lab.trials.side_by_side import LabPairs, Lane, describe_base, open_same
from gate.lab.trials.trials import Bench
from gate.metrics import NOISY_DECIDING
from gate.records import Case, Code, Place, Provenance, Run
from gate.records.events import Event, Noted, ignore_event
from tests.hosts import CPU_HOST, PLACE

from .conftest import MakeCase


@dataclass(kw_only=True)
class OneLane:
    """An engine of one lane in this process."""

    lane: Lane
    answers: list[Answer] = field(default_factory=list)

    def list_lanes(self) -> Mapping[str, Place]:
        return {PLACE.name: PLACE}

    def submit(self, lane: str, unit: Unit) -> None:
        sent = json.dumps(encode(unit), allow_nan=False)
        part = self.lane.measure(decode(Unit, json.loads(sent), "unit"))
        came = json.dumps(encode(part), allow_nan=False)
        self.answers.append(Answer(lane=lane, part=decode(Part, json.loads(came), "part")))

    def wait(self, limit_s: float) -> Answer:
        del limit_s
        return self.answers.pop()


@pytest.fixture
def lab(bench: Bench) -> Lab:
    return Lab(
        bench=replace(bench, place=PLACE.name),
        environment=CPU_HOST,
        toolchain_s=0.0,
        observe=ignore_event,
        place=PLACE,
    )


def open_lane(lab: Lab, *cases: Case, trials: int = 1) -> Lane:
    side_by_side = open_same(lab)
    run = make_run(lab, cases, "all", trials)
    base = describe_base(side_by_side, "main", Provenance(), cases)
    return Lane(side_by_side=side_by_side, run=replace(run, base=base))


def make_fleet(lane: Lane, events: list[Event]) -> Fleet:
    return Fleet(
        engine=OneLane(lane=lane),
        save=lambda _: None,
        observe=events.append,
        read_s=time.monotonic,
        device="cpu",
    )


def test_a_fleet_of_one_measures_what_the_lab_measures(lab: Lab, make_case: MakeCase) -> None:
    """Two trials of each case, and a pair of those that did not fail: the same, but for how long it took."""
    cases = [make_case("turns", name, roles=["cold", "rounds"]) for name in ("one", "two")]
    lane = open_lane(lab, *cases, make_case("error", "broken"), trials=2)
    wanted = want_whole(case.id for case in lane.run.cases)
    needs = [Suspect(case_id=case.id, metrics=NOISY_DECIDING, more=1) for case in lane.run.cases]

    def measure(measurer: LabPairs | Fleet) -> Run:
        return measurer.add_pairs(measurer.add_trials(lane.run, wanted, 2), needs, math.inf)

    alone = measure(lane.make_measurer(lambda _: None))
    fleet = measure(make_fleet(lane, []))
    kinds = [
        [(trial.case_id, trial.index, trial.arm, trial.pairing, trial.place) for trial in run.trials]
        for run in (alone, fleet)
    ]
    assert len(kinds[0]) == 2 * 2 + 2 * 2
    assert kinds[1] == kinds[0]
    assert [trial.samples for trial in fleet.trials] == [trial.samples for trial in alone.trials]
    assert [(one.case_id, one.fact) for one in fleet.failures] == [
        (one.case_id, one.fact) for one in alone.failures
    ]
    assert {trial.place for trial in fleet.trials} == {PLACE.name}


def test_what_a_lane_wonders_about_is_told_by_the_fleet(
    lab: Lab, make_case: MakeCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disturbed trial is repeated where the fleet allows it, and a note says so."""
    heat = itertools.count()
    monkeypatch.setattr(
        trials_module, "read_host", lambda: HostSample(at_s=time.monotonic(), heat_events=next(heat))
    )
    lane, events = open_lane(lab, make_case()), list[Event]()
    fleet = make_fleet(lane, events)
    wanted = want_whole(case.id for case in lane.run.cases)
    kept = replace(fleet, may_repeat=lambda _: False).add_trials(lane.run, wanted, 1)
    assert not any(isinstance(event, Noted) for event in events)
    assert [trial.conditions.repeated for trial in kept.trials] == [False]
    repeated = fleet.add_trials(lane.run, wanted, 1)
    assert [event.fact.code for event in events if isinstance(event, Noted)] == [Code.REPEATED]
    assert [trial.conditions.repeated for trial in repeated.trials] == [True]
