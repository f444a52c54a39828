"""Hands out units to lanes, one or many, and joins what comes back.

A case is on one lane at a time, and stays on the lane that began it; what was begun on a lane that is gone
begins anew. Pairs for later go to lanes that would idle. A lane that is lost, or silent for longer than any
unit takes, gets nothing more; a case that loses a third lane has failed.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gate.check.schedule import Pace, compute_trial_s
from gate.check.work import (
    Engine,
    Queues,
    UnitResult,
    Waiting,
    Work,
    choose_lane,
    count_done,
    is_of,
    join_sources,
)
from gate.errors import InterruptedRunError, MachineError
from gate.records.cases import group_cases
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
from gate.units import format_noun

MOST_ANEW = 2  # a case that takes a third lane with it is the likely reason

KeepRun = Callable[[Callable[[], Run]], None]  # makes the run where it writes it


@dataclass(frozen=True, kw_only=True, slots=True)
class _Assignment:
    case_id: str
    since_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Left:
    slots: int
    seconds: float  # of them, and of those that it will probably take after them
    is_known: bool  # by its trials: no guess


class _Ahead:
    """With sums over all cases, so that a unit costs the same in any run."""

    def __init__(self) -> None:
        self.cases: dict[str, _Left] = {}
        self.slots = 0
        self._known_s = self._guessed_s = 0.0

    def put(self, case_id: str, left: _Left | None = None) -> None:
        """``None`` where the case is closed."""
        for entry, sign in ((self.cases.pop(case_id, None), -1), (left, 1)):
            if entry is not None:
                self.slots += sign * entry.slots
                self._known_s += sign * entry.seconds * entry.is_known
                self._guessed_s += sign * entry.seconds * (not entry.is_known)
        if left is not None:
            self.cases[case_id] = left

    def compute_s(self, scale: float) -> float:
        """The seconds that are left; guesses are scaled."""
        return max(self._known_s + scale * self._guessed_s, 0.0) if self.cases else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Lanes:
    """The lanes of an engine, and what they do, from one call to the next."""

    engine: Engine
    save: Callable[[Run], None]
    keep: KeepRun  # after each unit
    observe: Observer
    patience_s: float = math.inf  # longer than any unit takes
    at_work: dict[str, _Assignment] = field(default_factory=dict)  # by lane
    lost: set[str] = field(default_factory=set)
    losses: Counter[str] = field(default_factory=Counter)  # of each case


class Call:
    """Hands out units until all that is ``pressing`` is done."""

    def __init__(self, lanes: Lanes, work: Work, run: Run, pressing: Sequence[str]) -> None:
        self._lanes, self._work, self._run = lanes, work, run
        self._pressing = list(pressing)
        self._origin_s = lanes.engine.read_s() - run.wall_s
        self._cases = {case.id: case for case in run.cases}
        self._bases = {case.id: (case,) for case in run.base.cases} if run.base else {}
        self._taken = list(run.trials)  # ``_run`` has those of before: a copy a unit would be quadratic
        self._trials, self._failures = group_cases(run.trials), group_cases(run.failures)
        self._pace = Pace(run.cases, run.trials)
        self._done = count_done(run, paired=work.paired)
        self._anew: set[str] = set()  # begun on a lane that is gone: new results replace the old ones
        opened = lanes.engine.list_lanes()
        self._is_only = len(opened) == 1  # then nothing is begun elsewhere, and no lane idles
        self._living = [lane for lane in opened if lane not in lanes.lost]
        # What takes longest is begun first where lanes share the work: the last lane ends sooner. On one lane
        # the plan's order stands.
        ordered = list(work.wanted)
        if not (self._is_only or work.paired):
            ordered.sort(key=lambda case_id: -self._cases[case_id].expected_s)
        self._order = {case_id: position for position, case_id in enumerate(ordered)}
        self._queues, self._ahead = Queues(), _Ahead()
        self._paired = {trial.case_id for trial in run.trials if is_of(trial, work)}
        busy, now = {slot.case_id for slot in lanes.at_work.values()}, set(pressing)
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
                    return self._make_run()
                if not self._living:
                    self._lanes.save(self._make_run())
                    raise MachineError("no lane is left", "Start hosts again, and continue with --resume.")
                self._listen()
        except KeyboardInterrupt:
            self._lanes.save(replace(self._make_run(), wall_s=self._read_s()))
            left, fix = self._ahead.slots, "Nothing came to its end: start it again."
            if self._taken or self._run.failures:
                fix = "What was measured is saved: continue with --resume."
            after = f"after {self._done} of {self._done + left} trials"
            progress = f"with {format_noun(left, 'pair')} to go" if self._work.paired else after
            raise InterruptedRunError(f"stopped {progress}", fix) from None

    def _make_run(self) -> Run:
        return replace(self._run, trials=tuple(self._taken))

    def _put(self, case_id: str) -> None:
        """What was measured on a lane that is gone does not count."""
        if not self._count(case_id):
            return
        trials, living = self._trials.get(case_id, ()), set(self._living)
        begun_on = {trial.place for trial in trials if is_of(trial, self._work)}
        if self._is_only:
            begun_on = {*living} if begun_on else begun_on
        elif len(begun_on) > 1 or not begun_on <= living:
            self._anew.add(case_id)
            self._count(case_id)
            begun_on = set()
        rank = (*self._work.rank(self._cut(case_id)), self._order[case_id])
        begun = bool(begun_on)
        if not begun_on and living:
            others = {trial.place for trial in trials if not is_of(trial, self._work)}
            begun_on = {min(others & living, default="") or choose_lane(case_id, self._living)}
        for lane in begun_on:
            self._queues.put(lane, Waiting(rank=rank, case_id=case_id), begun=begun)

    def _count(self, case_id: str) -> bool:
        """Record what is left of a case; whether it needs any slot."""
        case_run = self._cut(case_id)
        # A guess is from what is expected of it: it is scaled by what the others took.
        pace = self._pace if case_run.trials else Pace(case_run.cases)
        seconds = [self._work.predict_s(case_run, slot, pace) for slot in self._work.list_slots(case_run)]
        further = [self._work.predict_s(case_run, slot, pace) for slot in self._work.foresee_slots(case_run)]
        left_s, is_known = sum(seconds) + sum(further), bool(case_run.trials)
        left = _Left(slots=len(seconds), seconds=left_s, is_known=is_known)
        self._ahead.put(case_id, left if seconds else None)
        return bool(seconds)

    def _cut(self, case_id: str) -> Run:
        run, trials = self._run, self._trials.get(case_id, [])
        if case_id in self._anew:
            trials = [trial for trial in trials if not is_of(trial, self._work)]
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
        return self._lanes.engine.read_s() - self._origin_s

    def _hand_out(self) -> None:
        lanes, at_work, paired = self._lanes, self._lanes.at_work, self._work.paired
        # A lane begins its own cases before one without any may take them.
        for lane in sorted(self._living, key=lambda lane: not self._queues.has_fresh(lane)):
            while lane not in at_work and (case_id := self._queues.take(lane)) is not None:
                case_run = self._cut(case_id)
                slot = self._work.list_slots(case_run)[0]
                unit = self._work.plan(case_run, slot, self._run, self._pace)
                if unit is None:
                    expected_s = self._work.predict_s(case_run, slot, self._pace)
                    lanes.observe(
                        TrialSkipped(case_id=case_id, index=slot.index, expected_s=expected_s, paired=paired)
                    )
                    self._ahead.put(case_id)
                    continue
                at_work[lane] = _Assignment(case_id=case_id, since_s=lanes.engine.read_s())
                lanes.engine.submit(lane, unit)
                progress = self._measure_progress(case_id)
                lanes.observe(
                    TrialStarted(case_id=case_id, index=unit.index, progress=progress, paired=paired)
                )

    def _listen(self) -> None:
        lanes, at_work = self._lanes, self._lanes.at_work
        overdue_s = min(slot.since_s for slot in at_work.values()) + lanes.patience_s
        answer = lanes.engine.wait(overdue_s - lanes.engine.read_s())
        self._let_join()
        if answer is None:
            limit_s = lanes.engine.read_s() - lanes.patience_s
            why = f"no answer within {lanes.patience_s:.0f} s"
            for lane in [lane for lane, slot in at_work.items() if slot.since_s <= limit_s]:
                lanes.engine.end(lane)
                self._give_up(lane, why)
        elif answer.part is None:
            self._give_up(answer.lane, answer.why)
        elif answer.lane in at_work:
            case_id = at_work.pop(answer.lane).case_id
            self._done += 1
            self._join(case_id, answer.part)
            if case_id in self._ahead.cases:
                self._put(case_id)
            lanes.keep(self._make_run)
            self._report(case_id, answer.part)

    def _join(self, case_id: str, result: UnitResult) -> None:
        """It replaces what a lost lane had left of the case."""
        run, trials = self._run, self._trials.setdefault(case_id, [])
        if case_id in self._anew:
            self._anew.remove(case_id)
            gone = {id(trial) for trial in trials if is_of(trial, self._work)}
            trials[:] = [trial for trial in trials if id(trial) not in gone]
            self._taken = [trial for trial in self._taken if id(trial) not in gone]
        trials.extend(result.trials)
        self._taken.extend(result.trials)
        self._failures.setdefault(case_id, []).extend(result.failures)
        for trial in result.trials:
            self._pace.add(trial)
            if is_of(trial, self._work):
                self._paired.add(trial.case_id)
        self._run = replace(
            run,
            failures=run.failures + result.failures,
            sources=join_sources(run.sources, result.sources),
            wall_s=self._read_s(),
        )

    def _let_join(self) -> None:
        opened = self._lanes.engine.list_lanes()
        if new := [lane for lane in opened if lane not in {*self._living, *self._lanes.lost}]:
            self._living += new
            self._is_only = False
            self._run = replace(self._run, places={**self._run.places, **opened})

    def _give_up(self, lane: str, why: str) -> None:
        """Lose a lane: its case begins anew elsewhere, unless it has lost too many lanes."""
        lanes = self._lanes
        place = lanes.engine.list_lanes().get(lane)
        names = name_words(lane=place.title if place else lane, reason=why)
        if place is None:
            self._note(Fact(code=Code.LANE_LEFT_OUT, names=names))
            return
        slot, before = lanes.at_work.pop(lane, None), set(self._anew)
        lanes.lost.add(lane)
        self._living.remove(lane)
        waiting = self._queues.drop(lane)
        lost_s, lost_case = 0.0, ""
        if slot:
            lost_s, lost_case = lanes.engine.read_s() - slot.since_s, slot.case_id
            lanes.losses[slot.case_id] += 1
            if lanes.losses[slot.case_id] > MOST_ANEW:
                self._fail(slot.case_id)
            elif slot.case_id in self._ahead.cases:
                waiting.append(slot.case_id)
        for case_id in waiting:
            self._put(case_id)
        anew = self._anew - before
        again = (trial for case_id in anew for trial in self._trials.get(case_id, ()))
        lost_s += sum(compute_trial_s(trial) for trial in again if is_of(trial, self._work))
        cases = [case_id for case_id in waiting if case_id in anew or case_id == lost_case]
        self._note(Fact(code=Code.LANE_GONE, numbers={"lost_s": lost_s}, cases=tuple(cases), names=names))

    def _fail(self, case_id: str) -> None:
        fact = Fact(code=Code.LANE_LOST, numbers={"losses": self._lanes.losses[case_id]})
        crash = CaseFailure(case_id=case_id, trial=1, kind=FailureKind.CRASH, stage=Stage.START, fact=fact)
        self._join(case_id, UnitResult(failures=(crash,)))
        self._ahead.put(case_id)

    def _note(self, fact: Fact) -> None:
        self._lanes.observe(Noted(fact=fact))
        self._run = replace(self._run, lanes=(*self._run.lanes, fact))
        self._lanes.keep(self._make_run)

    def _measure_progress(self, case_id: str) -> Progress:
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

    def _report(self, case_id: str, result: UnitResult) -> None:
        observe, progress = self._lanes.observe, self._measure_progress(case_id)
        for fact in result.notes:
            observe(Noted(fact=fact))
        for failure in result.failures:
            observe(CaseFailed(failure=failure, progress=progress))
        arms = {trial.arm: trial for trial in result.trials if not result.failures}
        if BASE_ARM in arms:
            observe(PairFinished(base=arms[BASE_ARM], head=arms[CANDIDATE_ARM], progress=progress))
        elif arms:
            observe(TrialFinished(trial=arms[CANDIDATE_ARM], progress=progress))
