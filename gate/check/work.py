"""What is asked of the lanes of a fleet: the next trial, or the next pair, of each of some cases; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from gate.check.engine import Unit
from gate.check.outlook import Pace
from gate.check.pair_schedule import Need, count_pairs, fit_slot, list_pair_slots, predict_pair_s
from gate.check.queues import Rank
from gate.check.schedule import make_trial_schedule, plan_trial
from gate.records import CANDIDATE_ARM, Metric, Run
from gate.records.events import Observer, TrialSkipped


class Work(Protocol):
    """Trials, or pairs."""

    @property
    def paired(self) -> bool:
        """Which of them."""
        ...

    @property
    def order(self) -> Sequence[str]:
        """The cases, the most pressing one first."""
        ...

    def count(self, part: Run) -> int:
        """How many slots a case still needs, of which ``part`` is all there is."""
        ...

    def rank(self, part: Run) -> Rank:
        """Whose slot comes first."""
        ...

    def plan(self, part: Run, whole: Run) -> Unit | None:
        """The next slot of a case; ``None`` without need or time."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrialWork:
    """Trials, round-robin: a first one of each case before a second of any."""

    wanted: Mapping[str, Collection[Metric]]  # of each case
    trials: int  # so many of each in the end
    device: str
    observe: Observer
    budget_s: float  # none ends later, in seconds of the run
    may_repeat: Callable[[Run], bool]
    paired: bool = False

    @property
    def order(self) -> Sequence[str]:
        """As they are planned."""
        return tuple(self.wanted)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return _number(self.order)

    def count(self, part: Run) -> int:
        """None of a case that failed."""
        is_failed = any(failure.arm == CANDIDATE_ARM for failure in part.failures)
        return 0 if is_failed else len(make_trial_schedule(part.cases, self.trials, part.trials))

    def rank(self, part: Run) -> Rank:
        """By what it has."""
        return len(part.trials), self._places[part.cases[0].id]

    def plan(self, part: Run, whole: Run) -> Unit | None:
        """Skip a trial that would end after the budget, by what the case took before."""
        slot = make_trial_schedule(part.cases, self.trials, part.trials, self.wanted)[0]
        metrics, limit_s = _sort(slot.metrics), None
        if math.isfinite(self.budget_s):
            limit_s, known = self.budget_s, part if part.trials else whole
            extent = plan_trial(slot.metrics, part.trials, self.device).extent
            expected_s = Pace(known.cases, known.trials).predict_s(slot.case, extent)
            if part.wall_s + expected_s > limit_s:
                self.observe(TrialSkipped(case_id=slot.case.id, index=slot.index, expected_s=expected_s))
                return None
        repeats = self.may_repeat(whole)
        return Unit(run=part, metrics=metrics, index=slot.index, limit_s=limit_s, repeats=repeats)


@dataclass(frozen=True, kw_only=True)
class PairWork:
    """Pairs, the most pressing case first."""

    needs: Mapping[str, Need]
    targets: Mapping[str, int]  # so many pairs of each case in the end
    device: str
    observe: Observer
    limit_s: float  # none ends later, in seconds of the run
    paired: bool = True

    @property
    def order(self) -> Sequence[str]:
        """As they are needed."""
        return tuple(self.needs)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return _number(self.order)

    def count(self, part: Run) -> int:
        """None of a case that failed, or that has no counterpart."""
        return len(list_pair_slots(part, [self._find_need(part)]))

    def rank(self, part: Run) -> Rank:
        """By who is the most pressing."""
        return (self._places[part.cases[0].id],)

    def plan(self, part: Run, whole: Run) -> Unit | None:
        """The pair, or as much of it as ends in time."""
        wanted, known = list_pair_slots(part, [self._find_need(part)])[0], part if part.trials else whole
        slot = fit_slot(known, wanted, self.device, self.limit_s - part.wall_s)
        if slot is None:
            pace, case_id = Pace(known.cases, known.trials), wanted.case.id
            expected_s = predict_pair_s(pace, wanted, self.device)
            skipped = TrialSkipped(case_id=case_id, index=wanted.index, expected_s=expected_s, paired=True)
            self.observe(skipped)
            return None
        return Unit(
            run=part,
            metrics=_sort(slot.metrics),
            index=slot.index,
            paired=True,
            unchanged_code=slot.unchanged_code,
        )

    def _find_need(self, part: Run) -> Need:
        case_id = part.cases[0].id
        more = self.targets[case_id] - count_pairs(part, case_id)
        return replace(self.needs[case_id], more=more, later=False)


def _number(case_ids: Sequence[str]) -> dict[str, int]:
    return {case_id: place for place, case_id in enumerate(case_ids)}


def _sort(metrics: Collection[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in Metric if metric in metrics)
