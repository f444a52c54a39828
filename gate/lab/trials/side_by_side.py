"""The pairs of a run: which comes next, saved after each, stopped in time; and lanes, which measure them.

A lane is a device with an open lab, and the run that is to be measured there. A command measures on one lane
of its own, or hands slots to many: :mod:`gate.check.fleet`.

::

    with open_lab(arm, settings, observe) as lab:
        side_by_side = open_side_by_side(lab, base_arm)
        run = LabPairs(lab=lab, save=save, side_by_side=side_by_side).add_pairs(run, needs, limit_s)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.check.pair_schedule import (
    fit_slot,
    list_pair_slots,
    name_device,
    predict_pair_s,
)
from gate.check.schedule import Pace, Slot, drop_cases
from gate.check.work import Part, Unit
from gate.decide.suspects import Suspect
from gate.kinds import KIND_SPECS
from gate.lab.host.provenance import hash_changes
from gate.lab.trials.opening import Lab
from gate.lab.trials.pairs import make_sides, measure_pair, open_base_bench, plan_pair
from gate.lab.trials.runner import LabTrials, Loop, RunClock, Save, add_measured, run_slots
from gate.lab.trials.trials import Bench
from gate.records import BASE_ARM, Arm, BaseArm, Case, Environment, Fact, Pairing, Provenance, Run
from gate.records.events import (
    CaseFailed,
    Event,
    Noted,
    Observer,
    PairFinished,
    Progress,
    TrialSkipped,
    TrialStarted,
    ignore_event,
)

# Of the kernels that differ, in all of a run: it is written anew after every pair.
MAX_SOURCES_CHARS = 4_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class SideBySide:
    """A lab and the bench of the arm that its own arm is held against."""

    lab: Lab
    base: Bench
    environment: Environment  # of the base


def open_side_by_side(lab: Lab, base: Arm) -> SideBySide:
    """Make the base arm ready; its caches lie in the lab's scratch directory and go with it.

    Raises:
        MachineError: The base's interpreter cannot compile here.
    """
    bench, environment = open_base_bench(lab.bench, base)
    return SideBySide(lab=lab, base=bench, environment=environment or lab.environment)


def describe_base(
    side_by_side: SideBySide, label: str, provenance: Provenance, cases: Sequence[Case]
) -> BaseArm:
    """Describe the base for the run's record."""
    return BaseArm(
        label=label,
        environment=side_by_side.environment,
        provenance=provenance,
        cases=tuple(cases),
        changes=hash_changes(Path(side_by_side.base.arm.directory)),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class LabPairs(LabTrials):
    """Measures pairs for :mod:`gate.check` as well."""

    side_by_side: SideBySide

    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """Add the pairs that are needed now, round-robin over the cases; the run is saved as unfinished.

        A case that one arm lacks, or defines otherwise, or that failed, gets none. A pair that would end
        after ``limit_s`` seconds of the run, by what its case took before, measures the latencies alone if
        that ends in time, and is not started if not.

        Raises:
            MachineError: A disk is full.
            InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
        """
        loop = Loop(take=self._take_pair, tell=lambda _, slots: _count_left(len(slots)))
        if run.finished:
            run = replace(run, finished=False)
            self.save(run)
        return run_slots(run, list_pair_slots(run, needs), self.save, limit_s, loop)

    def _take_pair(self, run: Run, slots: tuple[Slot, ...], clock: RunClock) -> tuple[Run, tuple[Slot, ...]]:
        next_slot, device = slots[0], self.lab.bench.settings.device
        slot = fit_slot(run, next_slot, device, clock.limit_s - clock.read_s())
        if slot is not None:
            return _measure_slot(self.side_by_side, run, (slot, *slots[1:]), clock)
        case_id, expected_s = (
            next_slot.case.id,
            predict_pair_s(Pace(run.cases, run.trials), next_slot, device),
        )
        self.lab.observe(
            TrialSkipped(case_id=case_id, index=next_slot.index, expected_s=expected_s, paired=True)
        )
        return run, drop_cases(slots, {case_id})


def _measure_slot(
    side_by_side: SideBySide, run: Run, slots: tuple[Slot, ...], clock: RunClock
) -> tuple[Run, tuple[Slot, ...]]:
    slot, observe, device = slots[0], side_by_side.lab.observe, side_by_side.lab.bench.settings.device
    progress = _compute_progress(run, slots, slots, clock)
    observe(TrialStarted(case_id=slot.case.id, index=slot.index, progress=progress, paired=True))
    sides = make_sides(side_by_side.base, side_by_side.lab.bench, slot.base_case or slot.case, slot.case)
    gpu = side_by_side.lab.bench.gpu
    alone = gpu is not None and gpu.exclusive  # the second arm's process would be turned away
    crowded = any(one.case_id == slot.case.id and one.pairing is Pairing.TURNS for one in run.trials)
    pairing = Pairing.TURNS if alone or crowded else Pairing.LIVE
    pair = measure_pair(
        sides, plan_pair(slot.metrics, slot.index, device, pairing, find_shared_caches(side_by_side, slot))
    )
    left = drop_cases(slots, {slot.case.id}) if pair.failures else slots[1:]
    run = add_sources(add_measured(run, pair.trials, pair.failures, clock), pair.sources)
    progress = _compute_progress(run, left, slots, clock)
    for failure in pair.failures:
        observe(CaseFailed(failure=failure, progress=progress))
    if pair.trials:
        arms = {trial.arm: trial for trial in pair.trials}
        base = arms.pop(BASE_ARM)
        (head,) = arms.values()
        observe(PairFinished(base=base, head=head, progress=progress))
    return run, left


def add_sources(run: Run, sources: Mapping[str, str]) -> Run:
    """Add the source of kernels that differ between the arms, as far as there is room in a run."""
    new = {code: text for code, text in sources.items() if code not in run.sources}
    left = MAX_SOURCES_CHARS - sum(map(len, run.sources.values())) - sum(map(len, new.values()))
    return replace(run, sources={**run.sources, **new}) if new and left >= 0 else run


def find_shared_caches(side_by_side: SideBySide, slot: Slot) -> Path | None:
    """Find the caches of head's trial, where base's code is known to be in them: both run on one interpreter.

    Not where code is found by a file's name: base would be given head's.
    """
    head = side_by_side.lab.bench
    kept = head.find_kept(slot.case)
    is_known = slot.unchanged_code and side_by_side.base.arm.python == head.arm.python
    is_file = KIND_SPECS[slot.case.kind].is_file
    return kept if is_known and not is_file and kept.is_dir() else None


def _compute_progress(run: Run, left: Sequence[Slot], asked: Sequence[Slot], clock: RunClock) -> Progress:
    """How far the pairs are: ``left`` are those up to each case's next look.

    A case of which pairs are ``asked`` is not done before its look is over.
    """
    paired = {trial.case_id for trial in run.trials if trial.pairing is not Pairing.ALONE}
    waiting = {slot.case.id for slot in asked}
    done = sum(trial.pairing is not Pairing.ALONE for trial in run.trials) // 2
    pace, device = Pace(run.cases, run.trials), name_device(run)
    left_s = sum(predict_pair_s(pace, slot, device) for slot in left)
    limit_s = max(clock.limit_s - clock.read_s(), 0.0)
    return Progress(
        done=done,
        total=done + len(left),
        left_s=min(left_s, limit_s),
        is_limited=limit_s < left_s,
        cases=len(paired | waiting),
        cases_done=len(paired - waiting),
    )


def _count_left(pairs: int) -> str:
    return f"with {pairs} pair{'' if pairs == 1 else 's'} to go"


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
            need = Suspect(case_id=case.id, metrics=unit.metrics, more=1, unchanged_code=unit.unchanged_code)
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
