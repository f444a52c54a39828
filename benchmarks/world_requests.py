"""Judges one drawn request by the code that ships: ``check`` with a base, ``check`` without, ``ab``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from draws import POLICY, TYPICAL_S, Drawer
from worlds import World

from gate.check.procedure import (
    Checked,
    CheckTerms,
    PairLimit,
    check_against_base,
    check_against_baselines,
    check_pairs,
)
from gate.check.rehearsal import Rehearsal
from gate.check.schedule import Slot, compute_trial_s, want_whole
from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.pairs import Pair
from gate.decide.evidence.values import collect_values
from gate.records.cases import AbsoluteLimit, Metric, Policy, collect_columns
from gate.records.run import Pairing, Provenance
from gate.records.verdict import Comparison, Status

MAX_TRIALS = 3  # of a case, without a base


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What came of a request: ``red`` and ``open`` of cases that are not worse, ``fate`` of the one that is.

    ``red_for``, ``open_for`` and ``fate_for`` say which metrics, and for which reasons.
    """

    world: str
    fault: str
    number: int
    red: bool
    open: bool
    fate: str  # "caught", "open" or "missed"; "" where no case is worse
    seconds: float  # of all pairs
    pairs: int
    trials: int  # alone
    red_for: tuple[str, ...]
    open_for: tuple[str, ...]
    fate_for: tuple[str, ...]


def judge_request(drawer: Drawer, name: tuple[str, str, int]) -> Result:
    """Judge a request whose world, fault and number are ``name``."""
    checked = check_drawn(drawer)
    rows = [row for row in checked.verdict.comparisons if row.decides]
    faulty = [row for row in rows if row.case_id == drawer.faulty]
    others = [row for row in rows if row.case_id != drawer.faulty]
    alone = [trial for trial in checked.run.trials if trial.pairing is Pairing.ALONE]
    fate = _list_worst(faulty)
    world, fault, number = name
    return Result(
        world=world,
        fault=fault,
        number=number,
        red=bool(_name_rows(others, Status.REGRESSED)),
        open=bool(_name_rows(others, Status.INCONCLUSIVE)),
        fate=fate if drawer.faulty else "",
        seconds=round(checked.run.wall_s - sum(map(compute_trial_s, alone)), 1),
        pairs=(len(checked.run.trials) - len(alone)) // 2,
        trials=len(alone),
        red_for=_name_rows(others, Status.REGRESSED),
        open_for=_name_rows(others, Status.INCONCLUSIVE),
        fate_for=_name_rows(faulty, Status.REGRESSED if fate == "caught" else Status.INCONCLUSIVE),
    )


def check_drawn(drawer: Drawer) -> Checked:
    """Judge a request by its world's command."""
    world, measurer = drawer.world, make_measurer(drawer)
    policy = replace(make_policy(world), days=draw_days(drawer))
    run = drawer.make_run(has_base=world.command != "alone")
    if world.command == "ab":
        return check_pairs(measurer, run, policy, PairLimit(end_s=world.budget_s))
    terms = CheckTerms(
        baselines=make_baselines(drawer.draw_stored(), Provenance()),
        policy=policy,
        max_trials=MAX_TRIALS,
        pair_budget_s=world.budget_s,
    )
    run = measurer.add_trials(run, want_whole(case.id for case in run.cases), terms.trials)
    return (
        check_against_baselines(measurer, run, terms)
        if run.base is None
        else check_against_base(measurer, run, terms)
    )


def make_policy(world: World) -> Policy:
    """What decides in a world: with its absolute limit of every case, if it has one."""
    if world.limit is None:
        return POLICY
    metric, share = world.limit
    return replace(POLICY, limits=(AbsoluteLimit(case="*", metric=metric, value=TYPICAL_S[metric] / share),))


def draw_days(drawer: Drawer) -> dict[str, dict[Metric, tuple[float, ...]]]:
    """What the machine measured on other days, a value a day, by case and metric."""
    days: dict[str, list[Mapping[Metric, float]]] = {}
    for night in range(1, drawer.world.days + 1):
        for trial in drawer.draw_sitting(1, is_head=False, night=night):
            values = {metric: values[0] for metric, values in collect_values([trial]).items()}
            days.setdefault(trial.case_id, []).append(values)
    return {case_id: collect_columns(tables) for case_id, tables in days.items()}


def make_measurer(drawer: Drawer) -> Rehearsal:
    """What stands in for processes: head's trials, and pairs that are drawn as they are asked for."""
    sitting = drawer.draw_sitting(MAX_TRIALS, is_head=True)
    head = {(trial.case_id, trial.index): trial for trial in sitting}

    def take_pair(slot: Slot) -> Pair:
        base, after = drawer.draw_pair(slot.case.id, slot.index)
        return Pair(base=base, head=after)

    return Rehearsal(
        take_trial=lambda slot: head[slot.case.id, slot.index],
        take_pair=take_pair,
    )


def _list_worst(rows: Iterable[Comparison]) -> str:
    statuses = {row.status for row in rows}
    if Status.REGRESSED in statuses:
        return "caught"
    return "open" if Status.INCONCLUSIVE in statuses else "missed"


def _name_rows(rows: Iterable[Comparison], status: Status) -> tuple[str, ...]:
    named = {f"{row.metric.value}: {row.reason.value}" for row in rows if row.status is status}
    return tuple(sorted(named))
