"""What stands between a fleet and its lanes: one slot goes out, trial or pair, what came of it comes back."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol

from gate.check.pair_schedule import count_pairs, fit_slot, list_pair_slots, predict_pair_s
from gate.check.schedule import Pace, make_trial_schedule, plan_trial
from gate.decide.suspects import Suspect
from gate.records import CANDIDATE_ARM, CaseFailure, Fact, Metric, Place, Run, Trial
from gate.records.bounds import Natural
from gate.records.events import Observer, TrialSkipped


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One slot: the next trial of a case, or its next pair.

    ``run`` is cut to the case; its ``wall_s`` is how long the whole run has lasted.
    """

    run: Run
    metrics: tuple[Metric, ...]
    index: Natural  # of the trial or pair
    paired: bool = False
    unchanged_code: bool = False  # of a pair: as in :class:`gate.decide.Suspect`
    limit_s: float | None = None  # a trial ends by then, in seconds of the run
    repeats: bool = False  # whether a disturbed trial is measured once more


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What came of a unit; nothing where it would not have ended in time."""

    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # as in ``Run``
    notes: tuple[Fact, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a lane came back with: a part, or nothing more than why it is lost."""

    lane: str
    part: Part | None = None
    why: str = ""


class Engine(Protocol):
    """Runs lanes somewhere. A lane has one unit at a time."""

    def list_lanes(self) -> Mapping[str, Place]:
        """The lanes that were opened, by the names of their places; lost ones too."""
        ...

    def submit(self, lane: str, unit: Unit) -> None:
        """Give a lane its next unit."""
        ...

    def wait(self, limit_s: float) -> Answer | None:
        """Wait for the next answer of any lane; ``None`` where none came within ``limit_s`` seconds."""
        ...


Rank = tuple[int, ...]  # the smallest is next


def choose_lane(case_id: str, lanes: Collection[str]) -> str:
    """Choose the lane of a case by rendezvous hashing: a lane more or less moves only its own cases.

    So the nightly run finds the card again that recorded the baseline.
    """
    return max(lanes, key=lambda lane: blake2b(f"{lane}\n{case_id}".encode(), digest_size=8).digest())


class Queues:
    """Cases that wait for a lane: begun ones for theirs alone, all others for the lane that idles first."""

    def __init__(self, lanes: Iterable[str]) -> None:
        self._begun: dict[str, list[tuple[Rank, str]]] = {lane: [] for lane in lanes}
        self._waiting: dict[str, deque[tuple[Rank, str]]] = {lane: deque() for lane in self._begun}

    def put_begun(self, lane: str, rank: Rank, case_id: str) -> None:
        """Let a case wait for the lane that began it."""
        heapq.heappush(self._begun[lane], (rank, case_id))

    def put_waiting(self, lane: str, rank: Rank, case_id: str) -> None:
        """Let a case that no lane has begun wait for this lane first; ranks come in order."""
        self._waiting[lane].append((rank, case_id))

    def take(self, lane: str) -> str | None:
        """Take the next case for a lane; without one of its own, what the busiest other is to begin last.

        That comes before further trials of its own: a case is begun where there is time.
        """
        begun, mine = self._begun[lane], self._waiting[lane]
        other = max(self._waiting.values(), key=len)
        heads = [queue[0] for queue in (begun, mine) if queue]
        if not mine and other and (not heads or other[-1] < heads[0]):
            return other.pop()[1]
        if not heads:
            return None
        return (heapq.heappop(begun) if begun and begun[0] == min(heads) else mine.popleft())[1]

    def drop(self, lane: str) -> list[tuple[Rank, str]]:
        """Take a lost lane out; what waited for it, in order."""
        return sorted((*self._begun.pop(lane), *self._waiting.pop(lane)))


@dataclass(frozen=True, kw_only=True)
class TrialWork:
    """Trials, round-robin: a first one of each case before a second of any."""

    wanted: Mapping[str, Collection[Metric]]  # of each case, in the plan's order
    trials: int  # so many of each in the end
    device: str
    observe: Observer
    budget_s: float  # none ends later, in seconds of the run
    may_repeat: Callable[[Run], bool]
    paired: bool = False

    def count(self, part: Run) -> int:
        """How many trials a case still needs, of which ``part`` is all there is; none where it failed."""
        is_failed = any(failure.arm == CANDIDATE_ARM for failure in part.failures)
        return 0 if is_failed else len(make_trial_schedule(part.cases, self.trials, part.trials))

    def plan(self, part: Run, whole: Run) -> Unit | None:
        """The next trial; ``None`` where it would end after the budget, by what the case took before."""
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

    wanted: Mapping[str, Suspect]  # of each case, the most pressing first
    targets: Mapping[str, int]  # so many pairs of each case in the end
    device: str
    observe: Observer
    limit_s: float  # none ends later, in seconds of the run
    paired: bool = True

    def count(self, part: Run) -> int:
        """How many pairs it still needs; none where it failed or has no counterpart."""
        return len(list_pair_slots(part, [self._find_need(part)]))

    def plan(self, part: Run, whole: Run) -> Unit | None:
        """The next pair, or as much of it as ends in time; ``None`` where nothing does."""
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

    def _find_need(self, part: Run) -> Suspect:
        case_id = part.cases[0].id
        more = self.targets[case_id] - count_pairs(part, case_id)
        return replace(self.wanted[case_id], more=more, later=False)


Work = TrialWork | PairWork


def _sort(metrics: Collection[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in Metric if metric in metrics)
