"""What stands between a measurer and its lanes: one slot goes out, trial or pair, what came of it returns."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol

from gate.check.pair_schedule import (
    count_all_pairs,
    count_pairs,
    fit_slot,
    list_pair_slots,
    predict_pair_s,
)
from gate.check.schedule import Pace, Slot, make_trial_schedule, plan_trial
from gate.decide.side_by_side import Suspect
from gate.records import CANDIDATE_ARM, CaseFailure, Fact, Metric, Pairing, Place, Run, Trial
from gate.records.bounds import Natural
from gate.records.events import TrialSkipped

# Of the kernels that differ, in all of a run: it is written anew after every pair.
MAX_SOURCES_CHARS = 4_000_000
# A trial is repeated once, and all repeats of a run take at most this share of its trials.
REPEAT_SHARE = 0.25


def may_repeat(run: Run) -> bool:
    """Whether the run can still afford to repeat a disturbed trial; a short one can once."""
    repeated = sum(trial.conditions.repeated for trial in run.trials)
    return repeated < max(1.0, REPEAT_SHARE * len(run.cases) * run.trials_planned)


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One slot: the next trial of a case, or its next pair.

    ``run`` is cut to the case; its ``wall_s`` is how long the whole run has lasted.
    """

    run: Run
    metrics: tuple[Metric, ...]
    index: Natural  # of the trial or pair
    paired: bool = False
    unchanged_code: bool = False  # of a pair: as in :class:`gate.decide.side_by_side.Suspect`
    limit_s: float | None = None  # a trial ends by then, in seconds of the run
    repeats: bool = False  # whether a disturbed trial is measured once more


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What came of a unit."""

    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # as in ``Run``
    notes: tuple[Fact, ...] = ()  # of a lane in another process, which has no other way to tell


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

    def read_s(self) -> float:
        """Read a clock that only goes forward."""
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
    limit_s: float  # none ends later, in seconds of the run
    paired = False

    def list_slots(self, part: Run) -> tuple[Slot, ...]:
        """The trials that a case still needs, of which ``part`` is all there is; none where it failed."""
        if any(failure.arm == CANDIDATE_ARM for failure in part.failures):
            return ()
        return make_trial_schedule(part.cases, self.trials, part.trials, self.wanted)

    def rank(self, part: Run) -> Rank:
        """When it is a case's turn: after those that have fewer trials."""
        return (sum(trial.pairing is Pairing.ALONE for trial in part.trials),)

    def list_seconds(self, part: Run, pace: Pace) -> list[float]:
        """How long each of them takes: those of a case are for the same metrics."""
        slots = self.list_slots(part)
        return [self._predict_s(part, slots[0], pace)] * len(slots) if slots else []

    def plan(self, part: Run, whole: Run, pace: Pace) -> Unit | TrialSkipped:
        """The next trial, unless it would end after the limit, by what the case took before."""
        slot, limit_s = self.list_slots(part)[0], None
        if math.isfinite(self.limit_s):
            limit_s, expected_s = self.limit_s, self._predict_s(part, slot, pace)
            if part.wall_s + expected_s > limit_s:
                return TrialSkipped(case_id=slot.case.id, index=slot.index, expected_s=expected_s)
        metrics, repeats = _sort(slot.metrics), may_repeat(whole)
        return Unit(run=part, metrics=metrics, index=slot.index, limit_s=limit_s, repeats=repeats)

    def _predict_s(self, part: Run, slot: Slot, pace: Pace) -> float:
        return pace.predict_s(slot.case, plan_trial(slot.metrics, part.trials, self.device).extent)


@dataclass(frozen=True, kw_only=True)
class PairWork:
    """Pairs: those that are needed now before those for later.

    A check needs one case at a time now; where there are several, as in a calibration, they take turns.
    """

    wanted: Mapping[str, Suspect]  # of each case, the most pressing first
    targets: Mapping[str, int]  # so many pairs of each case in the end
    device: str
    limit_s: float  # none ends later, in seconds of the run
    paired = True

    def list_slots(self, part: Run) -> tuple[Slot, ...]:
        """The pairs that it still needs; none where it failed or has no counterpart."""
        case_id = part.cases[0].id
        more = self.targets[case_id] - count_pairs(part, case_id)
        return list_pair_slots(part, [replace(self.wanted[case_id], more=more)])

    def rank(self, part: Run) -> Rank:
        """When it is a case's turn; of those for later the most pressing one comes first."""
        case_id = part.cases[0].id
        return (1, 0) if self.wanted[case_id].later else (0, count_pairs(part, case_id))

    def list_seconds(self, part: Run, pace: Pace) -> list[float]:
        """How long each of them takes."""
        return [predict_pair_s(pace, slot, self.device) for slot in self.list_slots(part)]

    def plan(self, part: Run, whole: Run, pace: Pace) -> Unit | TrialSkipped:
        """The next pair, or as much of it as ends in time, unless nothing does."""
        wanted, known = self.list_slots(part)[0], part if part.trials else whole
        slot = fit_slot(known, wanted, self.device, self.limit_s - part.wall_s)
        if slot is None:
            expected_s = predict_pair_s(pace, wanted, self.device)
            return TrialSkipped(
                case_id=wanted.case.id, index=wanted.index, expected_s=expected_s, paired=True
            )
        return Unit(
            run=part,
            metrics=_sort(slot.metrics),
            index=slot.index,
            paired=True,
            unchanged_code=slot.unchanged_code,
        )


Work = TrialWork | PairWork


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """The slots that are left of a case, and the seconds that they take."""

    slots: int
    seconds: float
    guessed: bool  # from what is expected of it: seconds before they are scaled by what the others took


def foresee(work: Work, part: Run, pace: Pace) -> Left | None:
    """Foresee what a case still needs; ``None`` where that is nothing."""
    guessed = not part.trials
    seconds = work.list_seconds(part, Pace(part.cases) if guessed else pace)
    return Left(slots=len(seconds), seconds=sum(seconds), guessed=guessed) if seconds else None


def is_of(trial: Trial, work: Work) -> bool:
    """Whether a trial is one of those that this work asks for."""
    return (trial.pairing is not Pairing.ALONE) == work.paired


def join_sources(known: Mapping[str, str], came: Mapping[str, str]) -> Mapping[str, str]:
    """Add the source of kernels that differ between the arms, as far as there is room in a run."""
    both = {**known, **came}
    return both if sum(map(len, both.values())) <= MAX_SOURCES_CHARS else known


def count_done(run: Run, *, paired: bool) -> int:
    """Count the pairs, or the trials that came to an end: measured, failed, or both."""
    if paired:
        return sum(count_all_pairs(run).values())
    measured = {(trial.case_id, trial.index) for trial in run.trials if trial.pairing is Pairing.ALONE}
    return len(measured | {(failure.case_id, failure.trial) for failure in run.failures})


def _sort(metrics: Collection[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in Metric if metric in metrics)
