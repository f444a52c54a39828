"""What passes between a measurer and its lanes: a unit goes out, its trial or pair comes back."""

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple, Protocol

from gate.check.schedule import Pace, Slot, fit_slot, make_pair_slots, name_device, plan_trial, predict_pair_s
from gate.decide.constants import MIN_PAIRS, SETTLING_PAIRS
from gate.decide.suspects import Suspect
from gate.records.bounds import Natural
from gate.records.cases import Case, Metric
from gate.records.facts import Fact
from gate.records.run import CANDIDATE_ARM, CaseFailure, Pairing, Place, Run, Trial

# Of kernels that differ, in a whole run, which is written after every pair.
MAX_SOURCES_CHARS = 4_000_000
# A trial is repeated once, and all repeats of a run take at most this share of its trials.
REPEAT_SHARE = 0.25

Rank = tuple[int, ...]  # the smallest is next


def may_repeat(run: Run, repeated: int) -> bool:
    return not repeated or repeated < REPEAT_SHARE * len(run.cases) * run.trials_planned


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """``run`` is cut to the case; its ``wall_s`` is how long the whole run has lasted."""

    run: Run
    metrics: tuple[Metric, ...]
    index: Natural  # of the trial or pair
    paired: bool = False
    unchanged_code: bool = False  # of a pair: as in :class:`gate.decide.suspects.Suspect`
    limit_s: float | None = None  # a trial ends by then, in seconds of the run
    repeats: bool = False  # whether a disturbed trial is measured once more
    own_steal: float = 0.0  # what the hypervisor takes of most trials, a share of the time
    options: Mapping[str, str] = field(default_factory=dict)  # that head's worker sets first: JSON by name


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitResult:
    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # as in ``Run``
    notes: tuple[Fact, ...] = ()  # of a lane in another process, which cannot report them itself


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Without a part, it has the reason why its lane is lost or never opened."""

    lane: str
    part: UnitResult | None = None
    why: str = ""


class Engine(Protocol):
    """A lane has one unit at a time."""

    def list_lanes(self) -> Mapping[str, Place]:
        """By the names of their places; lost ones included."""
        ...

    def read_s(self) -> float:
        """Read a clock that only goes forward."""
        ...

    def submit(self, lane: str, unit: Unit) -> None: ...

    def wait(self, limit_s: float) -> Answer | None:
        """The next answer of any lane; ``None`` where none came in ``limit_s`` seconds, maybe less than 0."""
        ...

    def end(self, lane: str) -> None:
        """End a lane that does not answer, so that closing does not wait for it."""
        ...


def make_trial_schedule(
    cases: Sequence[Case],
    trials: int,
    taken: Iterable[Trial],
    wanted: Mapping[str, Collection[Metric]],
) -> tuple[Slot, ...]:
    """Round-robin, without those ``taken``; trials of pairs are not, since both of their arms ran together.

    Drift of the machine then spreads over all cases alike, and a run that is stopped early has something of
    each.
    """
    finished = {(trial.case_id, trial.index) for trial in taken if trial.pairing is Pairing.ALONE}
    return tuple(
        Slot(case=case, index=index, metrics=wanted[case.id])
        for index in range(1, trials + 1)
        for case in cases
        if (case.id, index) not in finished
    )


def list_pair_slots(run: Run, needs: Sequence[Suspect]) -> tuple[Slot, ...]:
    begun = run.pair_counts
    cases = {case.id: case for case in run.cases}
    can_pair = run.pairable - {failure.case_id for failure in run.failures}
    return tuple(
        slot
        for need in needs
        if need.case_id in can_pair
        for slot in make_pair_slots(cases[need.case_id], need, begun[need.case_id])
    )


def choose_lane(case_id: str, lanes: Collection[str]) -> str:
    """Rendezvous hashing: one lane more or less moves only its own cases.

    So the nightly run finds the card again that recorded the baseline.
    """
    return max(lanes, key=lambda lane: blake2b(f"{lane}\n{case_id}".encode(), digest_size=8).digest())


class Waiting(NamedTuple):
    rank: Rank
    case_id: str


class Queues:
    """Begun cases wait for their lane only, others for the first idle one."""

    def __init__(self) -> None:
        self._begun: defaultdict[str, list[Waiting]] = defaultdict(list)
        self._fresh: defaultdict[str, list[Waiting]] = defaultdict(list)

    def put(self, lane: str, waiting: Waiting, *, begun: bool) -> None:
        insort((self._begun if begun else self._fresh)[lane], waiting)

    def has_fresh(self, lane: str) -> bool:
        return bool(self._fresh[lane])

    def take(self, lane: str) -> str | None:
        """Beginning a case comes before further trials."""
        fresh = self._fresh[lane] or min(filter(None, self._fresh.values()), default=[])
        queue = min(filter(None, [self._begun[lane], fresh]), default=[])
        return queue.pop(0).case_id if queue else None

    def drop(self, lane: str) -> list[str]:
        return [waiting.case_id for waiting in (*self._begun.pop(lane, ()), *self._fresh.pop(lane, ()))]


@dataclass(frozen=True, kw_only=True)
class TrialWork:
    wanted: Mapping[str, Collection[Metric]]  # of each case, in the plan's order
    trials: int  # so many of each in the end
    limit_s: float  # none ends later, in seconds of the run
    paired = False

    def list_slots(self, case_run: Run) -> tuple[Slot, ...]:
        """None where the case failed."""
        if any(failure.arm == CANDIDATE_ARM for failure in case_run.failures):
            return ()
        return make_trial_schedule(case_run.cases, self.trials, case_run.trials, self.wanted)

    def foresee_slots(self, case_run: Run) -> tuple[Slot, ...]:
        """None: the need for more trials is not known in advance."""
        del case_run
        return ()

    def rank(self, case_run: Run) -> Rank:
        return (sum(trial.pairing is Pairing.ALONE for trial in case_run.trials),)

    def predict_s(self, case_run: Run, slot: Slot, pace: Pace) -> float:
        device = name_device(case_run.environment)
        content = plan_trial(slot.metrics, case_run.trials, device, pace.own_steal)
        return pace.predict_s(slot.case, content.extent)

    def plan(self, case_run: Run, slot: Slot, whole: Run, pace: Pace) -> Unit | None:
        """``None`` where the trial would end after the limit, by what the case took before."""
        if case_run.wall_s + self.predict_s(case_run, slot, pace) > self.limit_s:
            return None
        return Unit(
            run=case_run,
            metrics=_sort(slot.metrics),
            index=slot.index,
            limit_s=self.limit_s if math.isfinite(self.limit_s) else None,
            repeats=may_repeat(whole, pace.repeated),
            own_steal=pace.own_steal,
        )


@dataclass(frozen=True, kw_only=True)
class PairWork:
    """Those that are needed now come before those for later."""

    wanted: Mapping[str, Suspect]  # of each case, the most pressing first
    targets: Mapping[str, int]  # so many pairs of each case in the end
    limit_s: float  # none ends later, in seconds of the run
    paired = True

    def list_slots(self, case_run: Run) -> tuple[Slot, ...]:
        """None where the case failed or has no counterpart."""
        case_id = _get_case_id(case_run)
        more = self.targets[case_id] - case_run.pair_counts[case_id]
        return list_pair_slots(case_run, [replace(self.wanted[case_id], more=more)])

    def foresee_slots(self, case_run: Run) -> tuple[Slot, ...]:
        """Those that most cases take until what is open is settled."""
        case_id = _get_case_id(case_run)
        suspect, target, begun = self.wanted[case_id], self.targets[case_id], case_run.pair_counts[case_id]
        usual = SETTLING_PAIRS if suspect.slower else MIN_PAIRS
        slots = list_pair_slots(case_run, [replace(suspect, more=max(usual, target) - begun)])
        return slots[target - begun :]

    def rank(self, case_run: Run) -> Rank:
        """The most pressing one comes first of those for later."""
        case_id = _get_case_id(case_run)
        return (1,) if self.wanted[case_id].later else (0, case_run.pair_counts[case_id])

    def predict_s(self, case_run: Run, slot: Slot, pace: Pace) -> float:
        return predict_pair_s(pace, slot, name_device(case_run.environment))

    def plan(self, case_run: Run, slot: Slot, whole: Run, pace: Pace) -> Unit | None:
        """The next pair, or as much of it as ends in time; ``None`` where nothing does."""
        del whole
        own = Pace(case_run.cases, case_run.trials, usual_share=pace.light_share)
        known = own if case_run.trials else pace
        fitting = fit_slot(known, slot, name_device(case_run.environment), self.limit_s - case_run.wall_s)
        if fitting is None:
            return None
        return Unit(
            run=case_run,
            metrics=_sort(fitting.metrics),
            index=fitting.index,
            paired=True,
            unchanged_code=fitting.unchanged_code,
        )


Work = TrialWork | PairWork


def is_of(trial: Trial, work: Work) -> bool:
    return (trial.pairing is not Pairing.ALONE) == work.paired


def join_sources(kept: Mapping[str, str], new: Mapping[str, str]) -> Mapping[str, str]:
    """As far as a run has room."""
    both = {**kept, **new}
    return both if sum(map(len, both.values())) <= MAX_SOURCES_CHARS else kept


def count_done(run: Run, *, paired: bool) -> int:
    """Pairs, or trials that were measured, failed, or both."""
    if paired:
        return sum(run.pair_counts.values())
    measured = {(trial.case_id, trial.index) for trial in run.trials if trial.pairing is Pairing.ALONE}
    return len(measured | {(failure.case_id, failure.trial) for failure in run.failures})


def _get_case_id(case_run: Run) -> str:
    (case,) = case_run.cases
    return case.id


def _sort(metrics: Collection[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in Metric if metric in metrics)
