"""A lane: a device with an open lab, and the run that is to be measured there.

A command measures on one lane of its own, or hands slots to many: :mod:`gate.check.fleet`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.check import Need
from gate.check.engine import Part, Unit
from gate.lab.trials.opening import Lab
from gate.lab.trials.runner import Save
from gate.lab.trials.side_by_side import LabPairs, SideBySide, open_side_by_side
from gate.records import BASE_ARM, Fact, Run
from gate.records.events import Event, Noted, Observer, ignore_event


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneTerms:
    """What a lane is opened with, beside what its command wants."""

    out: Path
    observe: Observer = ignore_event
    cores: tuple[int, ...] = ()  # of a lane that shares a CPU with others; () for the device's own


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """An open lab with both arms, and the run that is still to be measured."""

    side_by_side: SideBySide
    run: Run
    without_base: tuple[Fact, ...] = ()  # why it has none, though nobody refused one

    def make_measurer(self, save: Save) -> LabPairs:
        """Make what measures here for a command."""
        return LabPairs(lab=self.side_by_side.lab, save=save, side_by_side=self.side_by_side)

    def measure(self, unit: Unit) -> Part:
        """Measure one slot for a fleet.

        Raises:
            MachineError: A disk is full, or an interpreter cannot be started.
            InterruptedRunError: Ctrl-C or SIGTERM.
        """
        notes = NoteKeeper()
        lab = self._listen(notes, repeats=unit.repeats)
        (case,) = unit.run.cases
        limit_s = math.inf if unit.limit_s is None else unit.limit_s
        measurer = LabPairs(
            lab=lab,
            save=lambda _: None,
            budget_s=limit_s,
            side_by_side=replace(self.side_by_side, lab=lab),
        )
        if unit.paired:
            need = Need(case_id=case.id, metrics=unit.metrics, more=1, unchanged_code=unit.unchanged_code)
            run = measurer.add_pairs(unit.run, [need], limit_s)
        else:
            run = measurer.add_trials(unit.run, {case.id: unit.metrics}, unit.index)
        return Part(
            trials=run.trials[len(unit.run.trials) :],
            failures=run.failures[len(unit.run.failures) :],
            sources=run.sources,
            notes=tuple(notes.facts),
        )

    def _listen(self, notes: Observer, *, repeats: bool) -> Lab:
        lab = self.side_by_side.lab
        settings = replace(lab.bench.settings, repeats=repeats)
        return replace(lab, bench=replace(lab.bench, settings=settings), observe=notes)


OpenLane = Callable[[LaneTerms], AbstractContextManager[Lane]]


@dataclass(kw_only=True)
class NoteKeeper:
    """Watches a lane, and keeps what a reader of the run may wonder about."""

    facts: list[Fact] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Keep a note."""
        if isinstance(event, Noted):
            self.facts.append(event.fact)


def open_same(lab: Lab) -> SideBySide:
    """Open the lab's own tree as the other arm as well: of a run that has no base, or is its own."""
    return open_side_by_side(lab, replace(lab.bench.arm, name=BASE_ARM))
