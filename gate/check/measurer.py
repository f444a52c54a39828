"""Measures for a check, slot by slot, on a lab's one lane or on a fleet's many; pure but for its engine.

A lane is a device with an open lab. The measurer hands out single slots:

- A case is on one lane at a time, and its trials, and its pairs, stay on the lane that began them. What was
  begun on a lane that is gone begins anew.
- Pairs that are for later go to lanes that would idle; they go on while the caller decides what is next.
- A lane that is lost, or silent for longer than any slot takes, is given up: it gets nothing more, and what
  it may still say is dropped. A case that it had begins anew elsewhere; what loses a third lane has failed.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.check.schedule import Pace, compute_trial_s
from gate.check.work import (
    Engine,
    PairWork,
    Part,
    Queues,
    TrialWork,
    Waiting,
    Work,
    choose_lane,
    count_done,
    count_pairs,
    is_of,
    join_sources,
)
from gate.decide.suspects import Suspect
from gate.errors import InterruptedRunError, MachineError
from gate.records.cases import Metric, group_cases
from gate.records.codes import Code
from gate.records.events import (
    CaseFailed,
    Noted,
    Observer,
    PairFinished,
    Progress,
    TrialFinished,
    TrialSkipped,
    TrialStarted,
)
from gate.records.facts import Fact, name_words
from gate.records.protocol import Stage
from gate.records.run import BASE_ARM, CANDIDATE_ARM, CaseFailure, FailureKind, Run
from gate.units import count_noun

MOST_ANEW = 2  # a case that takes a third lane with it is the likely reason


@dataclass(frozen=True, kw_only=True, slots=True)
class _Slot:
    """A slot that a lane is at work on."""

    case_id: str
    since_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Left:
    """What is left of one case."""

    slots: int
    seconds: float  # of them, and of those that it will probably take after them
    is_known: bool  # by its trials: no guess


class _Ahead:
    """What is left of each open case, with sums over all, so that a slot costs the same in any run."""

    def __init__(self) -> None:
        self.cases: dict[str, _Left] = {}
        self.slots = 0
        self._known_s = self._guessed_s = 0.0

    def put(self, case_id: str, left: _Left | None = None) -> None:
        """Replace what is left of a case; by nothing where it is closed."""
        for one, sign in ((self.cases.pop(case_id, None), -1), (left, 1)):
            if one is not None:
                self.slots += sign * one.slots
                self._known_s += sign * one.seconds * one.is_known
                self._guessed_s += sign * one.seconds * (not one.is_known)
        if left is not None:
            self.cases[case_id] = left

    def compute_s(self, scale: float) -> float:
        """Compute the seconds that are left; guesses are scaled."""
        return max(self._known_s + scale * self._guessed_s, 0.0) if self.cases else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurer:
    """Measures for :mod:`gate.check` on the lanes of an engine; ``save`` is called after each slot."""

    engine: Engine
    save: Callable[[Run], None]
    observe: Observer
    budget_s: float = math.inf  # for trials, in seconds of the run
    patience_s: float = math.inf  # longer than any slot takes
    # What the lanes are at, from one call to the next.
    at_work: dict[str, _Slot] = field(default_factory=dict)  # by lane
    lost: set[str] = field(default_factory=set)
    losses: Counter[str] = field(default_factory=Counter)  # of each case

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Add trials to some cases, round-robin on each lane, up to so many each, for what is wanted of each.

        A trial that would end after the budget, by what its case took before, is not started; a cheaper one
        that still fits is. A case that failed gets none.

        Raises:
            MachineError: A disk is full, or no lane is left; what was measured is saved.
            InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
        """
        failed = {failure.case_id for failure in run.failures if failure.arm == CANDIDATE_ARM}
        chosen = [case.id for case in run.cases if case.id in wanted and case.id not in failed]
        work = TrialWork(
            wanted={case_id: wanted[case_id] for case_id in chosen},
            trials=trials,
            limit_s=self.budget_s,
        )
        run = _Call(self, work, replace(run, finished=False), chosen).work_off()
        run = replace(run, finished=True)
        self.save(run)
        return run

    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """Add the pairs that are needed now, and on idle lanes those for later.

        A case that one arm lacks, or defines otherwise, or that failed, gets none. A pair that would end
        after ``limit_s`` seconds of the run, by what its case took before, measures the latencies alone if
        that ends in time, and is not started if not. The run is saved as unfinished. Raises as
        :meth:`add_trials`.
        """
        failed = {failure.case_id for failure in run.failures}
        open_needs = {need.case_id: need for need in needs if need.case_id not in failed}
        pairs = count_pairs(run)
        work = PairWork(
            wanted=open_needs,
            targets={case_id: pairs[case_id] + need.more for case_id, need in open_needs.items()},
            limit_s=limit_s,
        )
        if run.finished:
            run = replace(run, finished=False)
            self.save(run)
        now = [case_id for case_id, need in open_needs.items() if not need.later]
        return _Call(self, work, run, now).work_off()


class _Call:
    """One call of a measurer: hands out slots until all that is ``pressing`` is done."""

    def __init__(self, measurer: Measurer, work: Work, run: Run, pressing: Sequence[str]) -> None:
        self._measurer, self._work, self._run = measurer, work, run
        self._pressing = list(pressing)
        self._origin_s = measurer.engine.read_s() - run.wall_s
        self._cases = {case.id: case for case in run.cases}
        self._bases = {case.id: (case,) for case in run.base.cases} if run.base else {}
        self._trials, self._failures = group_cases(run.trials), group_cases(run.failures)
        self._pace = Pace(run.cases, run.trials)
        self._done = count_done(run, paired=work.paired)
        self._anew: set[str] = set()  # begun on a lane that is gone: what is there goes when the new comes
        lanes = measurer.engine.list_lanes()
        self._is_only = len(lanes) == 1  # then nothing is begun elsewhere, and no lane idles
        self._living = [lane for lane in lanes if lane not in measurer.lost]
        # What takes longest is begun first where lanes share the work: the last lane ends sooner. On one lane
        # the plan's order stands.
        ordered = list(work.wanted)
        if not (self._is_only or work.paired):
            ordered.sort(key=lambda case_id: -self._cases[case_id].expected_s)
        self._places = {case_id: place for place, case_id in enumerate(ordered)}
        self._queues, self._ahead = Queues(), _Ahead()
        self._paired = {trial.case_id for trial in run.trials if is_of(trial, work)}
        busy, now = {slot.case_id for slot in measurer.at_work.values()}, set(pressing)
        for case_id in work.wanted:
            if case_id in busy or (self._is_only and case_id not in now):
                self._count(case_id)
            else:
                self._put(case_id)

    def work_off(self) -> Run:
        """Go on until no pressing case needs more; others may be at work then."""
        try:
            while True:
                self._hand_out()
                while self._pressing and self._pressing[-1] not in self._ahead.cases:
                    self._pressing.pop()
                if not self._pressing:
                    return self._run
                if not self._living:
                    self._measurer.save(self._run)
                    raise MachineError("no lane is left", "Start hosts again, and continue with --resume.")
                self._listen()
        except KeyboardInterrupt:
            self._measurer.save(replace(self._run, wall_s=self._read_s()))
            left, fix = self._ahead.slots, "Nothing came to its end: start it again."
            if self._run.trials or self._run.failures:
                fix = "What was measured is saved: continue with --resume."
            after = f"after {self._done} of {self._done + left} trials"
            told = f"with {count_noun(left, 'pair')} to go" if self._work.paired else after
            raise InterruptedRunError(f"stopped {told}", fix) from None

    def _put(self, case_id: str) -> None:
        """Let a case wait for its lane; what a lane that is gone has left of this kind is no beginning."""
        if not self._count(case_id):
            return
        trials, living = self._trials.get(case_id, ()), set(self._living)
        own = {trial.place for trial in trials if is_of(trial, self._work)}
        if self._is_only:
            own = {*living} if own else own
        elif len(own) > 1 or not own <= living:
            self._anew.add(case_id)
            self._count(case_id)
            own = set()
        rank = (*self._work.rank(self._cut(case_id)), self._places[case_id])
        begun = bool(own)
        if not own and living:
            others = {trial.place for trial in trials if not is_of(trial, self._work)}
            own = {min(others & living, default="") or choose_lane(case_id, self._living)}
        for lane in own:
            self._queues.put(lane, Waiting(rank=rank, case_id=case_id), begun=begun)

    def _count(self, case_id: str) -> bool:
        """Foresee the slots that a case still needs, and tell whether it needs any."""
        part = self._cut(case_id)
        # A guess is from what is expected of it: it is scaled by what the others took.
        pace = self._pace if part.trials else Pace(part.cases)
        seconds = [self._work.predict_s(part, slot, pace) for slot in self._work.list_slots(part)]
        further = [self._work.predict_s(part, slot, pace) for slot in self._work.foresee_slots(part)]
        is_known = bool(self._trials.get(case_id))
        left = _Left(slots=len(seconds), seconds=sum(seconds) + sum(further), is_known=is_known)
        self._ahead.put(case_id, left if seconds else None)
        return bool(seconds)

    def _cut(self, case_id: str) -> Run:
        """All that a lane has to know of a run: one case."""
        run, trials = self._run, self._trials.get(case_id, [])
        if case_id in self._anew:
            trials = [one for one in trials if not is_of(one, self._work)]
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
        return self._measurer.engine.read_s() - self._origin_s

    def _hand_out(self) -> None:
        measurer, at_work, paired = self._measurer, self._measurer.at_work, self._work.paired
        for lane in self._living:
            while lane not in at_work and (case_id := self._queues.take(lane)) is not None:
                part = self._cut(case_id)
                slot = self._work.list_slots(part)[0]
                unit = self._work.plan(part, slot, self._run, self._pace)
                if unit is None:
                    expected_s = self._work.predict_s(part, slot, self._pace)
                    measurer.observe(
                        TrialSkipped(case_id=case_id, index=slot.index, expected_s=expected_s, paired=paired)
                    )
                    self._ahead.put(case_id)
                    continue
                at_work[lane] = _Slot(case_id=case_id, since_s=measurer.engine.read_s())
                measurer.engine.submit(lane, unit)
                progress = self._measure_progress(case_id)
                measurer.observe(
                    TrialStarted(case_id=case_id, index=unit.index, progress=progress, paired=paired)
                )

    def _listen(self) -> None:
        measurer, at_work = self._measurer, self._measurer.at_work
        overdue_s = min(slot.since_s for slot in at_work.values()) + measurer.patience_s
        answer = measurer.engine.wait(max(0.0, overdue_s - measurer.engine.read_s()))
        self._let_join()
        if answer is None:
            limit_s = measurer.engine.read_s() - measurer.patience_s
            why = f"no answer within {measurer.patience_s:.0f} s"
            for lane in [lane for lane, slot in at_work.items() if slot.since_s <= limit_s]:
                measurer.engine.end(lane)
                self._give_up(lane, why)
        elif answer.part is None:
            self._give_up(answer.lane, answer.why)
        elif answer.lane in at_work:
            case_id = at_work.pop(answer.lane).case_id
            self._done += 1
            self._join(case_id, answer.part)
            if case_id in self._ahead.cases:
                self._put(case_id)
            measurer.save(self._run)
            self._report(case_id, answer.part)

    def _join(self, case_id: str, part: Part) -> None:
        """Add what came to the run; it replaces what a lost lane had left of the case."""
        run, own = self._run, self._trials.setdefault(case_id, [])
        kept = run.trials
        if case_id in self._anew:
            self._anew.remove(case_id)
            gone = {id(one) for one in own if is_of(one, self._work)}
            own[:] = [one for one in own if id(one) not in gone]
            kept = tuple(one for one in kept if id(one) not in gone)
        own.extend(part.trials)
        self._failures.setdefault(case_id, []).extend(part.failures)
        for trial in part.trials:
            self._pace.add(trial)
            if is_of(trial, self._work):
                self._paired.add(trial.case_id)
        self._run = replace(
            run,
            trials=(*kept, *part.trials),
            failures=(*run.failures, *part.failures),
            sources=join_sources(run.sources, part.sources),
            wall_s=self._read_s(),
        )

    def _let_join(self) -> None:
        """Count in lanes that opened meanwhile."""
        lanes = self._measurer.engine.list_lanes()
        if new := [lane for lane in lanes if lane not in {*self._living, *self._measurer.lost}]:
            self._living += new
            self._is_only = False
            self._run = replace(self._run, places={**self._run.places, **lanes})

    def _give_up(self, lane: str, why: str) -> None:
        """Lose a lane: what it was at begins anew elsewhere, unless it has taken too many with it."""
        measurer = self._measurer
        place = measurer.engine.list_lanes().get(lane)
        names = name_words(lane=place.title if place else lane, reason=why)
        if place is None:
            self._note(Fact(code=Code.LANE_LEFT_OUT, names=names))
            return
        slot, before = measurer.at_work.pop(lane, None), set(self._anew)
        measurer.lost.add(lane)
        self._living.remove(lane)
        waiting = self._queues.drop(lane)
        lost_s = 0.0
        if slot:
            lost_s = measurer.engine.read_s() - slot.since_s
            measurer.losses[slot.case_id] += 1
            if measurer.losses[slot.case_id] > MOST_ANEW:
                self._fail(slot.case_id)
            elif slot.case_id in self._ahead.cases:
                waiting.insert(0, slot.case_id)
        for case_id in waiting:
            self._put(case_id)
        anew = self._anew - before
        own = (trial for case_id in anew for trial in self._trials.get(case_id, ()))
        lost_s += sum(compute_trial_s(trial) for trial in own if is_of(trial, self._work))
        cases = [one for one in waiting if one in anew or (slot and one == slot.case_id)]
        self._note(Fact(code=Code.LANE_GONE, numbers={"lost_s": lost_s}, cases=tuple(cases), names=names))

    def _fail(self, case_id: str) -> None:
        """Let a case fail that has taken too many lanes with it."""
        fact = Fact(code=Code.LANE_LOST, numbers={"losses": self._measurer.losses[case_id]})
        crash = CaseFailure(case_id=case_id, trial=1, kind=FailureKind.CRASH, stage=Stage.START, fact=fact)
        self._join(case_id, Part(failures=(crash,)))
        self._ahead.put(case_id)

    def _note(self, fact: Fact) -> None:
        """Tell of a lane, and keep it in the run."""
        self._measurer.observe(Noted(fact=fact))
        self._run = replace(self._run, lanes=(*self._run.lanes, fact))
        self._measurer.save(self._run)

    def _measure_progress(self, case_id: str) -> Progress:
        """How far the call is, as a slot of a case begins or ends."""
        left_s = self._ahead.compute_s(self._pace.scale) / max(1, len(self._living))
        progress = Progress(done=self._done, total=self._done + self._ahead.slots, left_s=left_s)
        if not self._work.paired:
            return progress
        limit_s = max(self._work.limit_s - self._read_s(), 0.0)
        waiting = {*self._ahead.cases, case_id}  # a case is not done before its look is over
        return replace(
            progress,
            left_s=min(left_s, limit_s),
            is_limited=limit_s < left_s,
            cases=len(self._paired | waiting),
            cases_done=len(self._paired - waiting),
        )

    def _report(self, case_id: str, part: Part) -> None:
        observe, progress = self._measurer.observe, self._measure_progress(case_id)
        for fact in part.notes:
            observe(Noted(fact=fact))
        for failure in part.failures:
            observe(CaseFailed(failure=failure, progress=progress))
        arms = {trial.arm: trial for trial in part.trials if not part.failures}
        if BASE_ARM in arms:
            observe(PairFinished(base=arms[BASE_ARM], head=arms[CANDIDATE_ARM], progress=progress))
        elif arms:
            observe(TrialFinished(trial=arms[CANDIDATE_ARM], progress=progress))
