"""A lane measures single slots; what goes in and out is JSON."""

import itertools
import json
import time
from dataclasses import replace

import pytest

from gate.check.work import Unit, UnitResult
from gate.files.codec import encode
from gate.files.structure import decode
from gate.lab.host.fitness import HostSample
from gate.lab.trials import trials as trials_module
from gate.lab.trials.bench import Bench
from gate.lab.trials.opening import Lab
from gate.lab.trials.runs import Lane, describe_base, make_run
from gate.metrics import NOISY_DECIDING
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.run import Provenance, Run
from tests.hosts import PLACE

from .conftest import make_case, make_lab


@pytest.fixture
def lab(bench: Bench) -> Lab:
    return make_lab(bench)


def open_lane(lab: Lab, case: Case) -> Lane:
    run = make_run(lab, [case], "all", 1)
    return Lane(lab=lab, run=replace(run, base=describe_base(lab, "main", Provenance(), [case])))


def measure(lane: Lane, unit: Unit) -> UnitResult:
    """Measure a slot, from JSON to JSON."""
    sent = json.dumps(encode(unit), allow_nan=False)
    came = json.dumps(encode(lane.measure(decode(Unit, json.loads(sent), "unit"))), allow_nan=False)
    part: UnitResult = decode(UnitResult, json.loads(came), "part")
    return part


def list_trials(run: Run | UnitResult) -> list[tuple[str, int, str]]:
    return [(trial.arm, trial.index, trial.place) for trial in run.trials]


def test_a_trial_and_a_pair(lab: Lab) -> None:
    """The pair comes after the trial, which its unit has."""
    lane = open_lane(lab, make_case("turns", roles=["cold", "rounds"]))
    part = measure(lane, Unit(run=lane.run, metrics=tuple(Metric), index=1))
    assert list_trials(part) == [("head", 1, PLACE.name)]
    run = replace(lane.run, trials=part.trials)
    part = measure(lane, Unit(run=run, metrics=tuple(NOISY_DECIDING), index=1, paired=True))
    assert list_trials(part) == [("base", 1, PLACE.name), ("head", 1, PLACE.name)]


def test_a_case_that_fails(lab: Lab) -> None:
    """A trial that measured nothing is its failure alone."""
    lane = open_lane(lab, make_case("error"))
    part = measure(lane, Unit(run=lane.run, metrics=tuple(Metric), index=1))
    assert (part.trials, [failure.trial for failure in part.failures]) == ((), [1])


@pytest.mark.parametrize("repeats", [False, True])
def test_what_a_lane_wonders_about_comes_with_the_slot(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, repeats: bool
) -> None:
    """A disturbed trial is repeated if that is allowed, with a note."""
    heat = itertools.count()
    monkeypatch.setattr(
        trials_module, "read_host", lambda: HostSample(at_s=time.monotonic(), heat_events=next(heat))
    )
    lane = open_lane(lab, make_case())
    part = measure(lane, Unit(run=lane.run, metrics=tuple(Metric), index=1, repeats=repeats))
    assert [fact.code for fact in part.notes] == [Code.REPEATED] * repeats
    assert [trial.conditions.repeated for trial in part.trials] == [repeats]
