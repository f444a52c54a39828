"""What stands between a measurer and its lanes: one slot goes out, trial or pair, what came of it returns."""

import math
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple, Protocol

from gate.check.schedule import Pace, Slot, fit_slot, name_device, plan_trial, predict_pair_s
from gate.decide.constants import MIN_PAIRS, SETTLING_PAIRS
from gate.decide.evidence.pairs import list_alike
from gate.decide.suspects import Suspect
from gate.metrics import SPECS, Family
from gate.records.bounds import Natural
from gate.records.cases import Case, Metric
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, CANDIDATE_ARM, CaseFailure, Pairing, Place, Run, Trial

# Of the kernels that differ, in all of a run: it is written anew after every pair.
MAX_SOURCES_CHARS = 4_000_000
# A trial is repeated once, and all repeats of a run take at most this share of its trials.
REPEAT_SHARE = 0.25


def may_repeat(run: Run, repeated: int) -> bool:
    """Whether a run that repeated so many can afford to repeat another; a short one can once."""
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
    own_steal: float = 0.0  # what the hypervisor takes of most trials, a share of the time
    options: Mapping[str, str] = field(default_factory=dict)  # that head's worker sets first: JSON by name


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What came of a unit."""

    trials: tuple[Trial, ...] = ()
    failures: tuple[CaseFailure, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # as in ``Run``
    notes: tuple[Fact, ...] = ()  # of a lane in another process, which has no other way to tell


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a lane came back with: a part, or, once, nothing more than why it is lost or never opened."""

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

    def end(self, lane: str) -> None:
        """End a lane that answers no more, so that its close is not waited for."""
        ...


def make_trial_schedule(
    cases: Sequence[Case],
    trials: int,
    taken: Iterable[Trial],
    wanted: Mapping[str, Collection[Metric]],
) -> tuple[Slot, ...]:
    """Order ``trials`` trials of every case round-robin, leaving out those that are ``taken``.

    They are for the ``wanted`` metrics of their case. Pairs stand for none: both of their arms ran together.

    Trial 1 of every case comes before trial 2 of any: a machine that drifts during a run then spreads
    over all cases alike, and a run that is stopped early has something to say about each.
    """
    finished = {(trial.case_id, trial.index) for trial in taken if trial.pairing is Pairing.ALONE}
    return tuple(
        Slot(case=case, index=index, metrics=wanted[case.id])
        for index in range(1, trials + 1)
        for case in cases
        if (case.id, index) not in finished
    )


def list_pair_slots(run: Run, needs: Sequence[Suspect]) -> tuple[Slot, ...]:
    """List the pairs that are needed; none of a case that failed or has no counterpart in the base. Pure."""
    begun = count_pairs(run)
    cases = {case.id: case for case in run.cases}
    failed = {failure.case_id for failure in run.failures}
    alike = list_alike(run)
    open_needs = [need for need in needs if need.case_id not in failed and need.case_id in alike]
    return tuple(
        Slot(
            case=cases[need.case_id],
            index=begun[need.case_id] + step,
            metrics=need.metrics,
            unchanged_code=need.unchanged_code,
        )
        for need in open_needs
        for step in range(1, need.more + 1)
    )


def count_pairs(run: Run) -> Counter[str]:
    """Count the pairs of each case."""
    return Counter(
        trial.case_id for trial in run.trials if trial.pairing is not Pairing.ALONE and trial.arm == BASE_ARM
    )


Rank = tuple[int, ...]  # the smallest is next


def choose_lane(case_id: str, lanes: Collection[str]) -> str:
    """Choose the lane of a case by rendezvous hashing: a lane more or less moves only its own cases.

    So the nightly run finds the card again that recorded the baseline.
    """
    return max(lanes, key=lambda lane: blake2b(f"{lane}\n{case_id}".encode(), digest_size=8).digest())


class Waiting(NamedTuple):
    """A case that waits for a lane."""

    rank: Rank
    case_id: str


class Queues:
    """What waits for each lane: begun cases for that alone, others for the lane that idles first."""

    def __init__(self) -> None:
        self._begun: defaultdict[str, list[Waiting]] = defaultdict(list)
        self._fresh: defaultdict[str, list[Waiting]] = defaultdict(list)

    def put(self, lane: str, waiting: Waiting, *, begun: bool) -> None:
        """Let a case wait."""
        insort((self._begun if begun else self._fresh)[lane], waiting)

    def take(self, lane: str) -> str | None:
        """Take the next case for a lane; without one of its own to begin, the next that others have.

        That comes before further trials of its own: a case is begun where there is time.
        """
        fresh = self._fresh[lane] or min(filter(None, self._fresh.values()), default=[])
        queue = min(filter(None, [self._begun[lane], fresh]), default=[])
        return queue.pop(0).case_id if queue else None

    def drop(self, lane: str) -> list[str]:
        """Drop what waits for a lane, and name it in its order."""
        return [one.case_id for one in sorted([*self._begun.pop(lane, ()), *self._fresh.pop(lane, ())])]


@dataclass(frozen=True, kw_only=True)
class TrialWork:
    """Trials, round-robin: a first one of each case before a second of any."""

    wanted: Mapping[str, Collection[Metric]]  # of each case, in the plan's order
    trials: int  # so many of each in the end
    limit_s: float  # none ends later, in seconds of the run
    paired = False

    def list_slots(self, part: Run) -> tuple[Slot, ...]:
        """The trials that a case still needs, of which ``part`` is all there is; none where it failed."""
        if any(failure.arm == CANDIDATE_ARM for failure in part.failures):
            return ()
        return make_trial_schedule(part.cases, self.trials, part.trials, self.wanted)

    def foresee_slots(self, part: Run) -> tuple[Slot, ...]:
        """None: what more trials show is not known before."""
        del part
        return ()

    def rank(self, part: Run) -> Rank:
        """When it is a case's turn: after those that have fewer trials."""
        return (sum(trial.pairing is Pairing.ALONE for trial in part.trials),)

    def predict_s(self, part: Run, slot: Slot, pace: Pace) -> float:
        """How long one of them takes."""
        return pace.predict_s(slot.case, plan_trial(slot.metrics, part.trials, name_device(part)).extent)

    def plan(self, part: Run, slot: Slot, whole: Run, pace: Pace) -> Unit | None:
        """The next trial; ``None`` where it would end after the limit, by what the case took before."""
        is_limited = math.isfinite(self.limit_s)
        if is_limited and part.wall_s + self.predict_s(part, slot, pace) > self.limit_s:
            return None
        return Unit(
            run=part,
            metrics=_sort(slot.metrics),
            index=slot.index,
            limit_s=self.limit_s if is_limited else None,
            repeats=may_repeat(whole, pace.repeated),
            own_steal=pace.own_steal,
        )


@dataclass(frozen=True, kw_only=True)
class PairWork:
    """Pairs: those that are needed now before those for later.

    A check needs one case at a time now; where there are several, as in a calibration, they take turns.
    """

    wanted: Mapping[str, Suspect]  # of each case, the most pressing first
    targets: Mapping[str, int]  # so many pairs of each case in the end
    limit_s: float  # none ends later, in seconds of the run
    paired = True

    def list_slots(self, part: Run) -> tuple[Slot, ...]:
        """The pairs that it still needs; none where it failed or has no counterpart."""
        case_id = part.cases[0].id
        more = self.targets[case_id] - count_pairs(part)[case_id]
        return list_pair_slots(part, [replace(self.wanted[case_id], more=more)])

    def foresee_slots(self, part: Run) -> tuple[Slot, ...]:
        """The pairs that most cases take after those that are asked for, until what is open is settled."""
        suspect, target = self.wanted[part.cases[0].id], self.targets[part.cases[0].id]
        is_timed = any(SPECS[metric].family is Family.NOISY for metric in suspect.metrics)
        usual = SETTLING_PAIRS if is_timed else MIN_PAIRS
        begun = count_pairs(part)[suspect.case_id]
        slots = list_pair_slots(part, [replace(suspect, more=max(usual, target) - begun)])
        return slots[max(target - begun, 0) :]

    def rank(self, part: Run) -> Rank:
        """When it is a case's turn; of those for later the most pressing one comes first."""
        case_id = part.cases[0].id
        return (1, 0) if self.wanted[case_id].later else (0, count_pairs(part)[case_id])

    def predict_s(self, part: Run, slot: Slot, pace: Pace) -> float:
        """How long one of them takes."""
        return predict_pair_s(pace, slot, name_device(part))

    def plan(self, part: Run, slot: Slot, whole: Run, pace: Pace) -> Unit | None:
        """The next pair, or as much of it as ends in time; ``None`` where nothing does."""
        del pace
        fitting = fit_slot(part if part.trials else whole, slot, self.limit_s - part.wall_s)
        if fitting is None:
            return None
        return Unit(
            run=part,
            metrics=_sort(fitting.metrics),
            index=fitting.index,
            paired=True,
            unchanged_code=fitting.unchanged_code,
        )


Work = TrialWork | PairWork


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
        return sum(count_pairs(run).values())
    measured = {(trial.case_id, trial.index) for trial in run.trials if trial.pairing is Pairing.ALONE}
    return len(measured | {(failure.case_id, failure.trial) for failure in run.failures})


def _sort(metrics: Collection[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in Metric if metric in metrics)
