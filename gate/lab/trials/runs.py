"""Runs: begun in a lab, and measured slot by slot on a lane, which is a device with an open lab.

::

    with open_lab(arm, settings, observe, base=base_arm) as lab:
        run = make_run(lab, cases, selection, trials)
        run = measure_plan(make_measurer(lab, save), run)
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from gate.check.handout import KeepRun
from gate.check.measurer import LaneMeasurer
from gate.check.schedule import want_whole
from gate.check.work import Answer, Unit, UnitResult
from gate.lab.arms.arms import CodeState
from gate.lab.arms.changes import hash_changes
from gate.lab.arms.provenance import load_provenance
from gate.lab.trials.bench import load_options
from gate.lab.trials.opening import Lab
from gate.lab.trials.pairs import measure_lab_pair
from gate.lab.trials.trials import measure_trial
from gate.lab.workers.process import defer_interrupts
from gate.records.cases import Case
from gate.records.events import Event, Noted, Observer, ignore_event
from gate.records.facts import Fact
from gate.records.run import BaseArm, Place, Provenance, Run

OwnCode = Callable[[], Sequence[CodeState]]  # of head and base, read where the command runs


def measure_unit(lab: Lab, unit: Unit) -> UnitResult:
    """Measure one slot.

    Raises:
        MachineError: A disk is full, or an interpreter cannot be started.
    """
    return measure_lab_pair(lab, unit) if unit.paired else measure_trial(lab, unit)


class OwnLane:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._units: list[Unit] = []

    def list_lanes(self) -> Mapping[str, Place]:
        return {self._lab.place.name: self._lab.place}

    def read_s(self) -> float:
        return time.monotonic()

    def submit(self, lane: str, unit: Unit) -> None:
        del lane
        self._units.append(unit)

    def wait(self, limit_s: float) -> Answer:
        """Raises as :func:`measure_unit`."""
        del limit_s  # each process has one of its own
        return Answer(lane=self._lab.place.name, part=measure_unit(self._lab, self._units.pop()))

    def end(self, lane: str) -> None:
        """Do nothing: it always answers."""


def make_measurer(lab: Lab, save: Callable[[Run], None], keep: KeepRun | None = None) -> LaneMeasurer:
    whole, keep = defer_interrupts(), keep or (lambda make_run: save(make_run()))
    return LaneMeasurer(engine=OwnLane(lab), save=whole(save), keep=whole(keep), observe=lab.observe)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneTerms:
    out: Path
    observe: Observer = ignore_event
    cores: tuple[int, ...] = ()  # of a lane that shares a CPU with others; () for the device's own
    project: Path = Path()  # where its code is


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    lab: Lab
    run: Run

    def measure(self, unit: Unit) -> UnitResult:
        """Measure one slot for a fleet, with its notes; raises as :func:`measure_unit`."""
        notes: list[Fact] = []
        part = measure_unit(replace(self.lab, observe=partial(keep_note, notes)), unit)
        return replace(part, notes=tuple(notes))


OpenLane = Callable[[LaneTerms], AbstractContextManager[Lane]]


def keep_note(facts: list[Fact], event: Event) -> None:
    if isinstance(event, Noted):
        facts.append(event.fact)


def make_run(lab: Lab, cases: Sequence[Case], selection: str, trials: int) -> Run:
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
        counts_only=lab.bench.settings.counts_only,
        places={lab.place.name: lab.place},
    )


def describe_base(lab: Lab, label: str, provenance: Provenance, cases: Sequence[Case]) -> BaseArm:
    return BaseArm(
        label=label,
        environment=lab.base_environment,
        provenance=provenance,
        cases=tuple(cases),
        changes=hash_changes(Path(lab.base.arm.directory)),
        defaults=compare_options(*map(load_options, (lab.base, lab.bench))),
    )


def compare_options(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Options of torch.compile that differ between two stacks, by name; "" where one has none."""
    names = sorted({*base, *head})
    sides = {name: (base.get(name, ""), head.get(name, "")) for name in names}
    return {name: values for name, values in sides.items() if values[0] != values[1]}


def measure_plan(measurer: LaneMeasurer, run: Run) -> Run:
    """Measure what ``run`` lacks. It is saved before the first trial and after each.

    Raises:
        MachineError: A disk is full.
        InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
    """
    measurer.save(run)  # an output that cannot be written shows before minutes are spent
    wanted = want_whole(case.id for case in run.cases)
    return measurer.add_trials(run, wanted, run.trials_planned)
