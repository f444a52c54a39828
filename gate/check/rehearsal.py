"""A measurer that starts no process: it takes trials that were recorded or are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.check.pair_schedule import (
    LIGHT_PAIR_SHARE,
    Need,
    PairSlot,
    compute_pair_s,
    compute_untimed_s,
    fit_slot,
    list_pair_slots,
)
from gate.check.schedule import (
    EXTENT_SHARES,
    Content,
    Outlook,
    Pace,
    Slot,
    compute_trial_s,
    drop_cases,
    drop_unmeasured,
    make_trial_schedule,
    plan_content,
)
from gate.decide.evidence.pairs import Pair
from gate.devices import DEFAULT_DEVICE
from gate.records import Extent, Metric, Run, Trial
from gate.records.protocol import Stage


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """Gives the trials and pairs that are asked for, as the lab does, in the time that they say they took.

    A pair, and a trial, is taken whole and given without what one of its kind would not have measured.
    """

    take_trial: Callable[[Slot], Trial]
    take_pair: Callable[[PairSlot], Pair]
    device: str = DEFAULT_DEVICE
    budget_s: float = math.inf  # for trials, in seconds of the run

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Add trials round-robin; none that would end after the budget by what its case took before."""
        cases = [case for case in run.cases if case.id in wanted]
        slots = make_trial_schedule(cases, trials, run.trials, wanted)
        outlook = Outlook(slots, Pace(run.cases, run.trials), self.device)
        while slots:
            if run.wall_s + outlook.predict_s(slots[0]) > self.budget_s:
                slots = drop_cases(slots, {slots[0].case.id})
                continue
            trial = cut_trial(self.take_trial(slots[0]), outlook.plan(slots[0]))
            outlook.end(slots[0], trial)
            run, slots = _add(run, (trial,), compute_trial_s(trial)), slots[1:]
        return run

    def add_pairs(self, run: Run, needs: Sequence[Need], limit_s: float) -> Run:
        """Add the pairs that are needed now, or their latencies alone where no more ends in time."""
        slots = list_pair_slots(run, needs)
        while slots and not slots[0].later:
            slot = fit_slot(run, slots[0], self.device, limit_s - run.wall_s)
            if slot is None:
                slots = drop_cases(slots, {slots[0].case.id})
                continue
            pair = self._measure_pair(slot)
            run, slots = _add(run, pair, compute_pair_s(slot.case, pair)), slots[1:]
        return run

    def _measure_pair(self, slot: PairSlot) -> tuple[Trial, Trial]:
        content = plan_content(slot.metrics, slot.index, self.device)
        pair = self.take_pair(slot)
        if content.compiles:
            return cut_trial(pair.base, content), cut_trial(pair.head, content)
        base, head = drop_unmeasured(pair.base, content), drop_unmeasured(pair.head, content)
        arms = (pair.base, pair.head)
        compiles_untimed = slot.index == 1 and not slot.unchanged_code
        untimed_s = compute_untimed_s(slot.case, arms) if compiles_untimed else 0.0
        arm_s = (LIGHT_PAIR_SHARE * compute_pair_s(slot.case, arms) + untimed_s) / 2
        return _set_time(base, arm_s), _set_time(head, arm_s)


def cut_trial(trial: Trial, content: Content) -> Trial:
    """What a whole trial would have been with this content, and how long it would have taken. Pure."""
    if content.extent is Extent.WHOLE:
        return drop_unmeasured(trial, content)
    seconds = EXTENT_SHARES[content.extent] * compute_trial_s(trial)
    return replace(_set_time(drop_unmeasured(trial, content), seconds), extent=content.extent)


def _set_time(trial: Trial, seconds: float) -> Trial:
    return replace(trial, stages_s={Stage.ROUNDS: seconds}, overhead_s=0.0)


def _add(run: Run, trials: Sequence[Trial], wall_s: float) -> Run:
    return replace(run, trials=(*run.trials, *trials), wall_s=run.wall_s + wall_s)
