"""Drawn checks with and without the trials that would settle nothing: what they spare, and what they lose."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from gate.check import PairSlot, Rehearsal, check_alone, procedure
from gate.decide.evidence.baselines import make_baselines
from gate.decide.evidence.pairs import Pair
from gate.records import Conditions, Metric, Provenance, Run, Status, Trial, Verdict

from .conftest import STORED, TYPICAL, Subject, make_run, make_terms

RUNS = 24
# Standard deviations of the stored trials of eight cases; those of this repository's smoke cases are like it.
VARY = (0.02, 0.03, 0.04, 0.05, 0.10, 0.10, 0.15, 0.20)
STRAY = 0.1  # of the trials takes longer by up to 40 %
REGRESSED, OPEN = Status.REGRESSED, Status.INCONCLUSIVE


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What is drawn: how much trials vary now, by how much the machine changed, what one case got slower."""

    noise: float = 0.02
    shift: float = 0.0  # a logarithm, + is slower
    slower: float = 0.0  # a fraction, of the case that has this run's turn
    strays: bool = False


def draw_trial(chance: random.Random, case_id: str, index: int, noise: float, extra: Machine) -> Trial:
    """Times of a trial vary together, and each a little on its own; canaries move along with the machine."""
    minute = chance.gauss(0, noise) + extra.shift
    if extra.strays and chance.random() < STRAY:
        minute += math.log1p(0.4 * chance.random())
    factors = {
        metric: math.exp(minute + chance.gauss(0, 0.3 * noise)) if metric is not Metric.GRAPH_BREAKS else 1.0
        for metric in TYPICAL
    }
    factors[Metric.COMPILED_LATENCY] *= 1 + extra.slower
    return Trial(
        case_id=case_id,
        index=index,
        samples={metric: (value * factors[metric],) for metric, value in TYPICAL.items()},
        conditions=Conditions(canaries_s={"matmul": 0.001 * math.exp(extra.shift + chance.gauss(0, 0.02))}),
    )


def take_no_pair(slot: PairSlot) -> Pair:
    """A check without a base asks for none."""
    raise AssertionError(slot)


def find_standings(verdict: Verdict) -> dict[str, Status]:
    """REGRESSED, INCONCLUSIVE or UNCHANGED, by case."""
    found = {case.id: Status.UNCHANGED for case in verdict.cases}
    for status in (OPEN, REGRESSED):
        found |= {one.case_id: status for one in verdict.comparisons if one.decides and one.status is status}
    return found


def check_drawn(seed: int, machine: Machine) -> tuple[int, dict[str, Status]]:
    """The trials of one drawn check, and how its cases stand."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    run: Run = replace(make_run([Subject(name=f"m{number}") for number in range(len(VARY))]), base=None)
    stored = [
        draw_trial(chance, case.id, index, vary, Machine())
        for case, vary in zip(run.cases, VARY, strict=True)
        for index in range(1, STORED + 1)
    ]
    turn = run.cases[seed % len(VARY)].id
    drawn = {
        (case.id, index): draw_trial(
            chance,
            case.id,
            index,
            machine.noise,
            replace(machine, slower=machine.slower if case.id == turn else 0.0),
        )
        for case in run.cases
        for index in (1, 2, 3)
    }
    baselines = make_baselines(replace(run, trials=tuple(stored)), Provenance())
    run = replace(run, trials=tuple(drawn[case.id, 1] for case in run.cases))
    measurer = Rehearsal(take_trial=lambda slot: drawn[slot.case.id, slot.index], take_pair=take_no_pair)
    checked = check_alone(measurer, run, make_terms(run, baselines=baselines))
    return len(checked.run.trials), find_standings(checked.verdict)


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(Machine(), id="unchanged"),
        pytest.param(Machine(slower=0.3), id="slower_case"),
        pytest.param(Machine(shift=-0.33, slower=0.3), id="faster_machine"),
        pytest.param(Machine(shift=0.25, slower=0.3, noise=0.04), id="slower_machine"),
        pytest.param(Machine(slower=0.15, strays=True), id="strays"),
    ],
)
def test_spared_trials_would_have_settled_next_to_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trials less a check at least; 98 of 100 cases stand as with all of them, and none turns over.

    Those that do not learn their noise from the trials of other cases too, and these are fewer.
    """
    given = [check_drawn(seed, machine) for seed in range(RUNS)]
    monkeypatch.setattr(procedure, "list_hopeless", lambda *_: ())
    every = [check_drawn(seed, machine) for seed in range(RUNS)]
    moved = Counter(
        (all_of[case_id], some[case_id])
        for (_, all_of), (_, some) in zip(every, given, strict=True)
        for case_id in all_of
        if all_of[case_id] is not some[case_id]
    )
    assert sum(moved.values()) <= 0.02 * RUNS * len(VARY), moved
    assert all(OPEN in change for change in moved)
    assert sum(count for count, _ in every) - sum(count for count, _ in given) >= 2 * RUNS
