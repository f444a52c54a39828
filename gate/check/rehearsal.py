"""Measures for a check with trials and pairs that exist, in the time that they took; pure."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.check.schedule import (
    EXTENT_SHARES,
    Content,
    Pace,
    Slot,
    compute_pair_s,
    compute_trial_s,
    compute_untimed_s,
    fit_slot,
    name_device,
    plan_content,
    plan_trial,
)
from gate.check.work import list_pair_slots, make_trial_schedule
from gate.decide.constants import LIGHT_PAIR_SHARE
from gate.decide.evidence.pairs import Pair
from gate.decide.suspects import Suspect
from gate.records.cases import Metric
from gate.records.protocol import Stage
from gate.records.run import Extent, Run, Trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """Each trial and pair is taken whole, and loses what one of its kind would not have measured."""

    take_trial: Callable[[Slot], Trial]
    take_pair: Callable[[Slot], Pair]
    budget_s: float = math.inf  # for trials, in seconds of the run

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        cases = [case for case in run.cases if case.id in wanted]
        slots = make_trial_schedule(cases, trials, run.trials, wanted)
        pace, dropped = Pace(run.cases, run.trials), set[str]()
        device = name_device(run.environment)
        for slot in slots:
            case = slot.case
            content = plan_trial(slot.metrics, pace.list_own(case), device, pace.own_steal)
            if run.wall_s + pace.predict_s(case, content.extent) > self.budget_s:
                dropped.add(case.id)
            if case.id not in dropped:
                trial = _cut_trial(self.take_trial(slot), content)
                pace.add(trial)
                run = _add(run, (trial,), compute_trial_s(trial))
        return run

    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """Or their latencies alone where no more ends in time."""
        dropped, device = set[str](), name_device(run.environment)
        for wanted in list_pair_slots(run, [need for need in needs if not need.later]):
            case = wanted.case
            if case.id in dropped:
                continue
            slot = fit_slot(Pace(run.cases, run.trials), wanted, device, limit_s - run.wall_s)
            if slot is None:
                dropped.add(case.id)
            else:
                pair = self._measure_pair(slot, device)
                run = _add(run, pair, compute_pair_s(case, pair))
        return run

    def _measure_pair(self, slot: Slot, device: str) -> tuple[Trial, Trial]:
        content = plan_content(slot.metrics, slot.index, device, finds_code=slot.unchanged_code)
        pair = self.take_pair(slot)
        if content.compiles:
            return _cut_trial(pair.base, content), _cut_trial(pair.head, content)
        base, head = drop_unmeasured(pair.base, content), drop_unmeasured(pair.head, content)
        arms = (pair.base, pair.head)
        compiles_untimed = slot.index == 1 and not slot.unchanged_code
        untimed_s = compute_untimed_s(slot.case, arms) if compiles_untimed else 0.0
        arm_s = (LIGHT_PAIR_SHARE * compute_pair_s(slot.case, arms) + untimed_s) / 2
        return _set_time(base, arm_s), _set_time(head, arm_s)


def _cut_trial(trial: Trial, content: Content) -> Trial:
    """As it would have been, and would have taken, with this content."""
    if content.extent is Extent.WHOLE:
        return drop_unmeasured(trial, content)
    seconds = EXTENT_SHARES[content.extent] * compute_trial_s(trial)
    return replace(_set_time(drop_unmeasured(trial, content), seconds), extent=content.extent)


def drop_unmeasured(trial: Trial, content: Content) -> Trial:
    kept = {metric: values for metric, values in trial.samples.items() if content.measures(metric)}
    if not content.compiles:
        return replace(trial, samples=kept, phases_s={}, kernels_s={})
    return replace(trial, samples=kept)


def _set_time(trial: Trial, seconds: float) -> Trial:
    return replace(trial, stages_s={Stage.ROUNDS: seconds}, overhead_s=0.0)


def _add(run: Run, trials: Sequence[Trial], wall_s: float) -> Run:
    return replace(run, trials=(*run.trials, *trials), wall_s=run.wall_s + wall_s)
