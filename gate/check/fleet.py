"""Many lanes measure what one lab would: a fleet is one more measurer; pure but for its engine.

A lane is a device with an open lab. The fleet hands out single slots:

- A case is on one lane at a time, and its trials, and its pairs, stay on the lane that began them. What was
  begun on a lane that is gone begins anew.
- Pairs that are for later go to lanes that would idle; they go on while the caller decides what is next.
- A lane that is lost, or silent for longer than any slot takes, is given up: it gets nothing more, and what
  it may still say is dropped. A case that it had begins anew elsewhere; what loses a third lane has failed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.check.pair_schedule import count_all_pairs
from gate.check.work import Engine, PairWork, Part, Queues, TrialWork, Work, choose_lane
from gate.decide.suspects import Suspect
from gate.errors import MachineError
from gate.records import (
    BASE_ARM,
    CANDIDATE_ARM,
    CaseFailure,
    Code,
    Fact,
    FailureKind,
    Metric,
    Pairing,
    Run,
    Trial,
    name_words,
)
from gate.records.cases import group_cases
from gate.records.events import (
    CaseFailed,
    Noted,
    Observer,
    PairFinished,
    Progress,
    TrialFinished,
    TrialStarted,
)
from gate.records.protocol import Stage

MOST_ANEW = 2  # a case that takes a third lane with it is the likely reason


@dataclass(frozen=True, kw_only=True, slots=True)
class _Slot:
    """A slot that a lane is at work on."""

    case_id: str
    since_s: float


@dataclass(kw_only=True, slots=True)
class Lanes:
    """What the lanes are at, from one call of their fleet to the next."""

    at_work: dict[str, _Slot] = field(default_factory=dict)  # by lane
    lost: set[str] = field(default_factory=set)
    losses: Counter[str] = field(default_factory=Counter)  # of each case


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """Measures for :mod:`gate.check` on the lanes of an engine."""

    engine: Engine
    save: Callable[[Run], None]  # called after each slot
    observe: Observer
    read_s: Callable[[], float]  # a clock that only goes forward
    device: str
    budget_s: float = math.inf  # for trials, in seconds of the run
    patience_s: float = math.inf  # longer than any slot takes
    may_repeat: Callable[[Run], bool] = lambda _: True  # whether a disturbed trial is measured once more
    lanes: Lanes = field(default_factory=Lanes)

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Add trials as a lab does, round-robin on each lane.

        Raises:
            MachineError: No lane is left; what was measured is saved.
        """
        failed = {failure.case_id for failure in run.failures if failure.arm == CANDIDATE_ARM}
        chosen = [case.id for case in run.cases if case.id in wanted and case.id not in failed]
        work = TrialWork(
            wanted={case_id: wanted[case_id] for case_id in chosen},
            trials=trials,
            device=self.device,
            observe=self.observe,
            budget_s=self.budget_s,
            may_repeat=self.may_repeat,
        )
        run = _Call(self, work, replace(run, finished=False)).work_off(chosen)
        run = replace(run, finished=True)
        self.save(run)
        return run

    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """Add the pairs that are needed now, and on idle lanes those for later; raises as ``add_trials``."""
        failed = {failure.case_id for failure in run.failures}
        open_needs = {need.case_id: need for need in needs if need.case_id not in failed}
        pairs = count_all_pairs(run)
        work = PairWork(
            wanted=open_needs,
            targets={case_id: pairs[case_id] + need.more for case_id, need in open_needs.items()},
            device=self.device,
            observe=self.observe,
            limit_s=limit_s,
        )
        if run.finished:
            run = replace(run, finished=False)
            self.save(run)
        now = [need.case_id for need in needs if not need.later]
        return _Call(self, work, run).work_off(now)


class _Call:
    """One call of a fleet: hands out slots until all that is pressing is done."""

    def __init__(self, fleet: Fleet, work: Work, run: Run) -> None:
        self._fleet, self._work, self._run = fleet, work, run
        self._origin_s = fleet.read_s() - run.wall_s
        self._begun_s, self._done = run.wall_s, 0
        self._cases = {case.id: case for case in run.cases}
        self._places = {case_id: place for place, case_id in enumerate(work.wanted)}
        self._bases = {case.id: (case,) for case in run.base.cases} if run.base else {}
        self._trials, self._failures = group_cases(run.trials), group_cases(run.failures)
        self._anew: set[str] = set()  # begun on a lane that is gone: what is there goes when the new comes
        self._living = [lane for lane in fleet.engine.list_lanes() if lane not in fleet.lanes.lost]
        self._queues = Queues(self._living)
        self._open: dict[str, int] = {}  # slots that are left of a case
        self._left = 0
        busy = {slot.case_id for slot in fleet.lanes.at_work.values()}
        for case_id in work.wanted:
            if case_id in busy:
                self._count(case_id)
            else:
                self._put(case_id)

    def work_off(self, pressing: Iterable[str]) -> Run:
        """Go on until none of these cases needs more; others may be at work then."""
        pressing = list(pressing)
        while True:
            self._hand_out()
            while pressing and pressing[-1] not in self._open:
                pressing.pop()
            if not pressing:
                return self._run
            if not self._living:
                self._fleet.save(self._run)
                raise MachineError("no lane is left", "Start hosts again, and continue with --resume.")
            self._listen()

    def _put(self, case_id: str) -> None:
        """Let a case wait for its lane; what a lane that is gone has left of this kind is no beginning."""
        if not self._count(case_id):
            return
        places: dict[bool, set[str]] = {True: set(), False: set()}
        for trial in self._trials.get(case_id, ()):
            places[_is_of(trial, self._work)].add(trial.place)
        own, living = places[True], set(self._living)
        if len(own) > 1 or not own <= living:
            self._anew.add(case_id)
            self._count(case_id)
            own = set()
        # Trials go round-robin; of pairs the most pressing case comes first.
        done = 0 if self._work.paired else len(self._cut(case_id).trials)
        rank = (done, self._places[case_id])
        if own:
            self._queues.put_begun(own.pop(), rank, case_id)
        elif living:
            lane = min(places[False] & living, default="") or choose_lane(case_id, self._living)
            self._queues.put_waiting(lane, rank, case_id)

    def _count(self, case_id: str) -> int:
        """Count the slots that a case still needs; without any it is done."""
        left = self._work.count(self._cut(case_id))
        self._close(case_id)
        if left:
            self._open[case_id] = left
            self._left += left
        return left

    def _cut(self, case_id: str) -> Run:
        """All that a lane has to know of a run: one case."""
        run, trials = self._run, self._trials.get(case_id, [])
        if case_id in self._anew:
            trials = [one for one in trials if not _is_of(one, self._work)]
        return replace(
            run,
            cases=(self._cases[case_id],),
            base=run.base and replace(run.base, cases=self._bases.get(case_id, ())),
            trials=tuple(trials),
            failures=tuple(self._failures.get(case_id, ())),
            retried=(),
            sources={},
            wall_s=self._read_s(),
        )

    def _read_s(self) -> float:
        return self._fleet.read_s() - self._origin_s

    def _hand_out(self) -> None:
        fleet, at_work, paired = self._fleet, self._fleet.lanes.at_work, self._work.paired
        for lane in self._living:
            while lane not in at_work and (case_id := self._queues.take(lane)) is not None:
                unit = self._work.plan(self._cut(case_id), self._run)
                if unit is None:
                    self._close(case_id)
                    continue
                at_work[lane] = _Slot(case_id=case_id, since_s=fleet.read_s())
                fleet.engine.submit(lane, unit)
                progress = self._measure_progress()
                fleet.observe(
                    TrialStarted(case_id=case_id, index=unit.index, progress=progress, paired=paired)
                )

    def _close(self, case_id: str) -> None:
        self._left -= self._open.pop(case_id, 0)

    def _listen(self) -> None:
        fleet, at_work = self._fleet, self._fleet.lanes.at_work
        overdue_s = min(slot.since_s for slot in at_work.values()) + fleet.patience_s
        answer = fleet.engine.wait(max(0.0, overdue_s - fleet.read_s()))
        if answer is None:
            limit_s, why = fleet.read_s() - fleet.patience_s, f"no answer within {fleet.patience_s:.0f} s"
            for lane in [lane for lane, slot in at_work.items() if slot.since_s <= limit_s]:
                self._give_up(lane, why)
        elif answer.lane in at_work:
            if answer.part is None:
                self._give_up(answer.lane, answer.why)
            else:
                self._take_in(at_work.pop(answer.lane).case_id, answer.part)

    def _take_in(self, case_id: str, part: Part) -> None:
        self._done += 1
        self._join(case_id, part)
        if not (part.trials or part.failures):
            self._close(case_id)
        elif case_id in self._open:
            self._put(case_id)
        self._report(part)
        self._fleet.save(self._run)

    def _join(self, case_id: str, part: Part) -> None:
        """Add what came to the run; it replaces what a lost lane had left of the case."""
        run, own = self._run, self._trials.setdefault(case_id, [])
        kept = run.trials
        if case_id in self._anew:
            self._anew.remove(case_id)
            gone = {id(one) for one in own if _is_of(one, self._work)}
            own[:] = [one for one in own if id(one) not in gone]
            kept = tuple(one for one in kept if id(one) not in gone)
        own.extend(part.trials)
        self._failures.setdefault(case_id, []).extend(part.failures)
        self._run = replace(
            run,
            trials=(*kept, *part.trials),
            failures=(*run.failures, *part.failures),
            sources={**run.sources, **part.sources},
            wall_s=self._read_s(),
        )

    def _give_up(self, lane: str, why: str) -> None:
        """Lose a lane: what it was at begins anew elsewhere, unless it has taken too many with it."""
        lanes = self._fleet.lanes
        case_id = lanes.at_work.pop(lane).case_id
        lanes.lost.add(lane)
        lanes.losses[case_id] += 1
        self._living.remove(lane)
        names = name_words(lane=lane, reason=why)
        self._fleet.observe(Noted(fact=Fact(code=Code.LANE_GONE, names=names, cases=(case_id,))))
        waiting = [waiting_id for _, waiting_id in self._queues.drop(lane)]
        if lanes.losses[case_id] > MOST_ANEW:
            self._join(case_id, Part(failures=(_fail(case_id, lanes.losses[case_id]),)))
            self._close(case_id)
            self._fleet.save(self._run)
        elif case_id in self._open:
            waiting.insert(0, case_id)
        for waiting_id in waiting:
            self._put(waiting_id)

    def _measure_progress(self) -> Progress:
        pace_s = (self._read_s() - self._begun_s) / self._done if self._done else 0.0
        return Progress(done=self._done, total=self._done + self._left, left_s=self._left * pace_s)

    def _report(self, part: Part) -> None:
        observe, progress = self._fleet.observe, self._measure_progress()
        for fact in part.notes:
            observe(Noted(fact=fact))
        for failure in part.failures:
            observe(CaseFailed(failure=failure, progress=progress))
        arms = {trial.arm: trial for trial in part.trials if not part.failures}
        if BASE_ARM in arms:
            observe(PairFinished(base=arms[BASE_ARM], head=arms[CANDIDATE_ARM], progress=progress))
        elif arms:
            observe(TrialFinished(trial=arms[CANDIDATE_ARM], progress=progress))


def _is_of(trial: Trial, work: Work) -> bool:
    return (trial.pairing is not Pairing.ALONE) == work.paired


def _fail(case_id: str, losses: int) -> CaseFailure:
    return CaseFailure(
        case_id=case_id,
        trial=1,
        kind=FailureKind.CRASH,
        stage=Stage.START,
        fact=Fact(code=Code.LANE_LOST, numbers={"losses": losses}),
    )
