"""Lanes: a device with an open lab, where one slot after the other is measured, trial or pair.

A command measures on one lane of its own, or hands slots to many: :mod:`gate.check.measurer`.

::

    with open_lab(arm, settings, observe, base=base_arm) as lab:
        run = make_measurer(lab, save).add_pairs(run, needs, limit_s)
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.check.measurer import Measurer
from gate.check.schedule import WHOLE, Content, compute_trial_s, has_other_code, plan_trial
from gate.check.work import Answer, Part, Unit
from gate.decide.evidence.trials import sum_up_disturbances
from gate.kinds import KIND_SPECS
from gate.lab.host.provenance import hash_changes
from gate.lab.trials.opening import Lab
from gate.lab.trials.pairs import make_sides, measure_pair, plan_pair
from gate.lab.trials.trials import add_trace, run_trial
from gate.lab.workers.process import defer_interrupts
from gate.records import BaseArm, Case, Code, Extent, Fact, FailureKind, Pairing, Place, Provenance, Run
from gate.records.events import Event, Noted, Observer, ignore_event


def describe_base(lab: Lab, label: str, provenance: Provenance, cases: Sequence[Case]) -> BaseArm:
    """Describe the base for the run's record."""
    return BaseArm(
        label=label,
        environment=lab.base_environment,
        provenance=provenance,
        cases=tuple(cases),
        changes=hash_changes(Path(lab.base.arm.directory)),
    )


def measure_unit(lab: Lab, unit: Unit) -> Part:
    """Measure one slot: a trial of the lab's own arm, or a pair.

    Raises:
        MachineError: A disk is full, or an interpreter cannot be started.
    """
    return _measure_pair(lab, unit) if unit.paired else _measure_trial(lab, unit)


def _measure_pair(lab: Lab, unit: Unit) -> Part:
    gpu, (case,) = lab.bench.gpu, unit.run.cases
    (base_case,) = unit.run.base.cases if unit.run.base else (case,)
    alone = gpu is not None and gpu.exclusive  # the second arm's process would be turned away
    crowded = any(one.pairing is Pairing.TURNS for one in unit.run.trials)
    pairing = Pairing.TURNS if alone or crowded else Pairing.LIVE
    kept = find_shared_caches(lab, case, unchanged_code=unit.unchanged_code)
    plan = plan_pair(unit.metrics, unit.index, lab.bench.settings.device, pairing, kept)
    return measure_pair(make_sides(lab.base, lab.bench, base_case, case), plan)


def find_shared_caches(lab: Lab, case: Case, *, unchanged_code: bool) -> Path | None:
    """Find the caches of head's trial, where base's code is known to be in them: both run on one interpreter.

    Not where code is found by a file's name: base would be given head's.
    """
    kept = lab.bench.find_kept(case)
    is_known = unchanged_code and lab.base.arm.python == lab.bench.arm.python
    is_file = KIND_SPECS[case.kind].is_file
    return kept if is_known and not is_file and kept.is_dir() else None


def _measure_trial(lab: Lab, unit: Unit) -> Part:
    """Measure what is wanted of a trial; all there is where its code is not that of the trials before.

    A light trial of other code leaves out what that code does: its counters, memory and drift. So it is
    measured anew, even where that ends after the budget.
    """
    (case,), own, begun = unit.run.cases, unit.run.trials, time.monotonic()
    content = plan_trial(unit.metrics, own, lab.bench.settings.device)
    came = _measure_fit(lab, unit, content, begun)
    if content.extent is not Extent.WHOLE and not came.failures:
        alone = [one for one in own if one.pairing is Pairing.ALONE]
        if has_other_code((*alone, *came.trials)):
            came = _measure_fit(lab, unit, WHOLE, begun)
    if lab.bench.settings.traces and not came.failures:
        return replace(came, trials=tuple(add_trace(lab.bench, case, trial) for trial in came.trials))
    return came


def _measure_fit(lab: Lab, unit: Unit, content: Content, begun: float) -> Part:
    """Measure a trial, and once more where the host was not fit, as far as repeats and time allow.

    A repeat that somebody killed says nothing of the case, which ran before: that trial is kept.
    """
    (case,) = unit.run.cases
    first = run_trial(lab.bench, case, unit.index, content)
    disturbed = [trial for trial in first.trials if trial.conditions.disturbances]
    if first.failures or not (disturbed and unit.repeats):
        return first
    (trial,) = disturbed
    at_s = unit.run.wall_s + time.monotonic() - begun
    if unit.limit_s is not None and at_s + compute_trial_s(trial) > unit.limit_s:
        return first
    told = sum_up_disturbances(Code.REPEATED, [trial.conditions], unit.run.environment.cores)
    numbers = {**told.numbers, "trial": unit.index}
    lab.observe(Noted(fact=replace(told, cases=(case.id,), numbers=numbers)))
    again = run_trial(lab.bench, case, unit.index, content)
    if any(failure.kind is FailureKind.KILLED for failure in again.failures):
        warning = again.failures[0].quote(Code.REPEAT_KILLED)
        lab.observe(Noted(fact=warning))
        again = Part(trials=(replace(trial, warnings=(*trial.warnings, warning)),))
    repeated = (replace(one, conditions=replace(one.conditions, repeated=True)) for one in again.trials)
    return replace(again, trials=tuple(repeated))


class OwnLane:
    """The lab of this process as the only lane: what it is given is measured while it is awaited."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._units: list[Unit] = []

    def list_lanes(self) -> Mapping[str, Place]:
        """The one."""
        return {self._lab.place.name: self._lab.place}

    def read_s(self) -> float:
        """Read the clock."""
        return time.monotonic()

    def submit(self, lane: str, unit: Unit) -> None:
        """Keep the next unit."""
        del lane
        self._units.append(unit)

    def wait(self, limit_s: float) -> Answer:
        """Measure it; raises as :func:`measure_unit`."""
        del limit_s  # each process has one of its own
        return Answer(lane=self._lab.place.name, part=measure_unit(self._lab, self._units.pop()))


def make_measurer(lab: Lab, save: Callable[[Run], None]) -> Measurer:
    """Make what measures in this lab."""

    def save_whole(run: Run) -> None:
        with defer_interrupts():
            save(run)

    return Measurer(engine=OwnLane(lab), save=save_whole, observe=lab.observe)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneTerms:
    """What a lane is opened with, beside what its command wants."""

    out: Path
    observe: Observer = ignore_event
    cores: tuple[int, ...] = ()  # of a lane that shares a CPU with others; () for the device's own


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """An open lab, and the run that is still to be measured."""

    lab: Lab
    run: Run

    def measure(self, unit: Unit) -> Part:
        """Measure one slot for a fleet, with what is noted on the way; raises as :func:`measure_unit`."""
        notes = NoteKeeper()
        part = measure_unit(replace(self.lab, observe=notes), unit)
        return replace(part, notes=tuple(notes.facts))


OpenLane = Callable[[LaneTerms], AbstractContextManager[Lane]]


@dataclass(kw_only=True)
class NoteKeeper:
    """Watches a lane, and keeps what a reader of the run may wonder about."""

    facts: list[Fact] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Keep a note."""
        if isinstance(event, Noted):
            self.facts.append(event.fact)
