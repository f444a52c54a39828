"""A whole run: lock the device, prime, measure trial by trial, save after each.

The functions that a command calls::

    with open_lab(arm, settings, observe) as lab:
        measurer = LabTrials(lab=lab, save=save)
        run = measure_plan(measurer, make_run(lab, cases, selection, trials), previous)
        run = measurer.add_trials(run, want_whole(suspects), 2)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from gate.check.fleet import Fleet
from gate.check.schedule import (
    EVERY_METRIC,
    Outlook,
    Pace,
    Slot,
    compute_trial_s,
    drop_cases,
    has_other_code,
    list_ended,
    make_trial_schedule,
    want_whole,
)
from gate.decide.evidence.disturbed import sum_up_disturbances
from gate.errors import InterruptedRunError
from gate.lab.host.fitness import may_repeat
from gate.lab.host.provenance import hash_changes, load_provenance
from gate.lab.trials.merging import carry_over
from gate.lab.trials.opening import Lab
from gate.lab.trials.trace import add_trace
from gate.lab.trials.trials import TrialOutcome, run_trial
from gate.lab.workers.process import defer_interrupts
from gate.records import Case, CaseFailure, Code, Extent, Fact, Metric, Pairing, Run, Trial
from gate.records.events import (
    CaseFailed,
    Noted,
    Observer,
    Progress,
    TrialFinished,
    TrialSkipped,
    TrialStarted,
)

Save = Callable[[Run], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunClock:
    """Seconds of the run so far, counted from ``origin``, and how far they may go."""

    origin: float
    limit_s: float

    def read_s(self) -> float:
        """Return the seconds of the run so far."""
        return time.monotonic() - self.origin


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """How a slot is taken: measured, or dropped for want of time; and how to tell of what is left."""

    take: Callable[[Run, tuple[Slot, ...], RunClock], tuple[Run, tuple[Slot, ...]]]
    tell: Callable[[Run, tuple[Slot, ...]], str]


def make_run(lab: Lab, cases: Sequence[Case], selection: str, trials: int) -> Run:
    """Make the run that is still to be measured: ``trials`` trials of each of ``cases``.

    Those whose factory cannot be imported, or that the GPU cannot run, have failed already.
    """
    planned = {case.id for case in cases}
    return Run(
        cases=tuple(cases),
        failures=tuple(failure for failure in lab.failed if failure.case_id in planned),
        environment=lab.environment,
        provenance=load_provenance(Path(lab.bench.arm.directory)),
        changes=hash_changes(Path(lab.bench.arm.directory)),
        selection=selection,
        trials_planned=trials,
        toolchain_s=lab.toolchain_s,
        wall_s=lab.toolchain_s,
        sampling=asdict(lab.bench.settings.sampling),
        places={lab.place.name: lab.place},
    )


def measure_plan(measurer: LabTrials | Fleet, run: Run, previous: Run | None = None) -> Run:
    """Measure ``run`` to its end; with ``previous``, the trials that it already has are not repeated.

    It is saved before the first trial and after each; a case that failed gets no further trial.

    Raises:
        UsageError: ``previous`` is another run: other cases, environment or commit.
        MachineError: A disk is full.
        InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
    """
    if previous is not None:
        run = carry_over(run, previous)
        if not run.changes:
            measurer.observe(Noted(fact=Fact(code=Code.UNCOMMITTED_BEFORE)))
    measurer.save(run)  # an output that cannot be written shows before minutes are spent
    wanted = want_whole(case.id for case in run.cases)
    return measurer.add_trials(run, wanted, run.trials_planned)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabTrials:
    """Measures more trials for :mod:`gate.check`, with processes; ``save`` is called after each."""

    lab: Lab
    save: Save
    budget_s: float = math.inf  # of the whole run

    @property
    def observe(self) -> Observer:
        """The lab's."""
        return self.lab.observe

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Add trials to some cases, round-robin, up to so many each, for what is wanted of each.

        A trial that would end after the budget, by what its case took before, is not started; a cheaper
        one that still fits is. Raises as :func:`measure_plan`.
        """
        arm = self.lab.bench.arm.name  # a case that failed in the other one alone may run in this
        failed = {failure.case_id for failure in run.failures if failure.arm == arm}
        chosen = [case for case in run.cases if case.id in wanted and case.id not in failed]
        slots = make_trial_schedule(chosen, trials, run.trials, wanted)
        device = self.lab.bench.settings.device
        outlook = Outlook(slots, Pace(run.cases, run.trials), device, list_ended(run))
        loop = Loop(take=partial(self._take, outlook), tell=_tell_done)
        run = run_slots(replace(run, finished=False), slots, self.save, self.budget_s, loop)
        run = replace(run, finished=True)
        self.save(run)
        return run

    def _take(
        self, outlook: Outlook, run: Run, slots: tuple[Slot, ...], clock: RunClock
    ) -> tuple[Run, tuple[Slot, ...]]:
        lab, slot = self.lab, slots[0]
        predicted_s = outlook.predict_s(slot)
        if clock.read_s() + predicted_s > clock.limit_s:
            lab.observe(TrialSkipped(case_id=slot.case.id, index=slot.index, expected_s=predicted_s))
            outlook.drop(slot.case.id)
            return run, drop_cases(slots, {slot.case.id})
        progress = _compute_progress(outlook, slots)
        lab.observe(TrialStarted(case_id=slot.case.id, index=slot.index, progress=progress))
        return _run_slot(lab, outlook, run, slots, clock)


def run_slots(run: Run, slots: tuple[Slot, ...], save: Save, limit_s: float, loop: Loop) -> Run:
    """Take one slot after the other, trials or pairs, until those are left that are for later.

    ``limit_s`` is in seconds of the run, and ``save`` is called after each slot that was measured.

    Raises:
        InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
    """
    clock = RunClock(origin=time.monotonic() - run.wall_s, limit_s=limit_s)
    try:
        while slots and not slots[0].later:
            before = run
            run, slots = loop.take(run, slots, clock)
            if run is not before:
                save(run)
    except KeyboardInterrupt:
        with defer_interrupts():
            save(replace(run, wall_s=clock.read_s()))
        raise InterruptedRunError(
            f"stopped {loop.tell(run, slots)}", "What was measured is saved: continue with --resume."
        ) from None
    return run


def add_measured(run: Run, trials: Iterable[Trial], failures: Iterable[CaseFailure], clock: RunClock) -> Run:
    """Add what came of a slot."""
    return replace(
        run, trials=(*run.trials, *trials), failures=(*run.failures, *failures), wall_s=clock.read_s()
    )


def _tell_done(run: Run, slots: tuple[Slot, ...]) -> str:
    done = len(list_ended(run))
    return f"after {done} of {done + len(slots)} trials"


def _run_slot(
    lab: Lab, outlook: Outlook, run: Run, slots: tuple[Slot, ...], clock: RunClock
) -> tuple[Run, tuple[Slot, ...]]:
    came = _measure_content(lab, outlook, run, slots[0], clock)
    if lab.bench.settings.traces and came.trial and not came.failure:
        came = replace(came, trial=add_trace(lab.bench, slots[0].case, came.trial))
    run = add_measured(run, filter(None, (came.trial,)), filter(None, (came.failure,)), clock)
    left = drop_cases(slots, {came.failure.case_id}) if came.failure else slots[1:]
    outlook.end(slots[0], came.trial)
    if came.failure:
        outlook.drop(slots[0].case.id)
    progress = _compute_progress(outlook, left)
    if came.failure:
        lab.observe(CaseFailed(failure=came.failure, progress=progress))
    elif came.trial:
        lab.observe(TrialFinished(trial=came.trial, progress=progress))
    return run, left


def _measure_content(lab: Lab, outlook: Outlook, run: Run, slot: Slot, clock: RunClock) -> TrialOutcome:
    """Measure what is wanted of a slot; all there is where its code is not that of the trials before.

    A light trial of other code leaves out what that code does: its counters, memory and drift. So it is
    measured anew, even where that ends after the budget.
    """
    before = [one for one in outlook.pace.list_own(slot.case) if one.pairing is Pairing.ALONE]
    came = _measure_fit(lab, outlook, run, slot, clock)
    if came.trial is None or came.failure or came.trial.extent is Extent.WHOLE:
        return came
    if not has_other_code((*before, came.trial)):
        return came
    return _measure_fit(lab, outlook, run, replace(slot, metrics=EVERY_METRIC), clock)


def _measure_fit(lab: Lab, outlook: Outlook, run: Run, slot: Slot, clock: RunClock) -> TrialOutcome:
    """Measure a trial, and once more where the host was not fit, as far as repeats and time allow."""
    content = outlook.plan(slot)
    came = run_trial(lab.bench, slot.case, slot.index, content)
    if came.trial is None or came.failure or not came.trial.conditions.disturbances:
        return came
    if not (lab.bench.settings.repeats and may_repeat(run)):
        return came
    if clock.read_s() + compute_trial_s(came.trial) > clock.limit_s:
        return came
    told = sum_up_disturbances(Code.REPEATED, [came.trial.conditions], run.environment.cores)
    numbers = {**told.numbers, "trial": slot.index}
    lab.observe(Noted(fact=replace(told, cases=(slot.case.id,), numbers=numbers)))
    again = run_trial(lab.bench, slot.case, slot.index, content)
    if again.trial is None:
        return again
    conditions = replace(again.trial.conditions, repeated=True)
    return replace(again, trial=replace(again.trial, conditions=conditions))


def _compute_progress(outlook: Outlook, slots: tuple[Slot, ...]) -> Progress:
    return Progress(done=outlook.done, total=outlook.done + len(slots), left_s=outlook.left_s)
