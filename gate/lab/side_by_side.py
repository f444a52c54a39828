"""The pairs of a run: which comes next, saved after each, stopped in time.

::

    with open_lab(arm, settings, observe) as lab:
        duel = open_duel(lab, base_arm)
        run = LabPairs(lab=lab, save=save, duel=duel).add_pairs(run, needs, limit_s)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gate.check.pair_schedule import (
    Need,
    PairSlot,
    fit_slot,
    list_pair_slots,
    predict_pair_s,
)
from gate.check.schedule import drop_cases
from gate.errors import InterruptedRunError
from gate.lab.events import CaseFailed, PairFinished, PairStarted, Progress, TrialSkipped
from gate.lab.pairs import BASE, make_sides, measure_pair, open_base, plan_pair
from gate.lab.process import defer_interrupts
from gate.lab.runner import Clock, Lab, LabTrials
from gate.lab.trials import Bench
from gate.records import Arm, BaseArm, Case, Environment, Pairing, Provenance, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Duel:
    """A lab and the bench of the arm that its own arm is held against."""

    lab: Lab
    base: Bench
    environment: Environment  # of the base


def open_duel(lab: Lab, base: Arm) -> Duel:
    """Make the base arm ready; its caches lie in the lab's scratch directory and go with it.

    Raises:
        MachineError: The base's interpreter cannot compile here.
    """
    bench, environment = open_base(lab.bench, base)
    return Duel(lab=lab, base=bench, environment=environment or lab.environment)


def describe_base(duel: Duel, label: str, provenance: Provenance, cases: Sequence[Case]) -> BaseArm:
    """Describe the base for the run's record."""
    return BaseArm(label=label, environment=duel.environment, provenance=provenance, cases=tuple(cases))


@dataclass(frozen=True, kw_only=True, slots=True)
class LabPairs(LabTrials):
    """Measures pairs for :mod:`gate.check` as well."""

    duel: Duel

    def add_pairs(self, run: Run, needs: Sequence[Need], limit_s: float) -> Run:
        """Add the pairs that are needed now, round-robin over the cases; the run is not finished then.

        A case that one arm lacks, or defines otherwise, or that failed, gets none. A pair that would end
        after ``limit_s`` seconds of the run, by what its case took before, measures the latencies alone if
        that ends in time, and is not started if not.

        Raises:
            MachineError: A disk is full.
            InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
        """
        run, slots = replace(run, finished=False), list_pair_slots(run, needs)
        clock = Clock(origin=time.monotonic() - run.wall_s, limit_s=limit_s)
        device = self.lab.bench.settings.device
        try:
            while slots and not slots[0].later:
                slot = fit_slot(run, slots[0], device, clock.limit_s - clock.read_s())
                if slot is None:
                    self.lab.observe(_report_skipped(run, slots[0], device))
                    slots = drop_cases(slots, {slots[0].case.id})
                    continue
                run, slots = _measure_slot(self.duel, run, (slot, *slots[1:]), clock)
                self.save(run)
        except KeyboardInterrupt:
            with defer_interrupts():
                self.save(replace(run, wall_s=clock.read_s()))
            raise InterruptedRunError(
                f"stopped with {len(slots)} pairs to go",
                "What was measured is saved: continue with --resume.",
            ) from None
        return run


def _report_skipped(run: Run, slot: PairSlot, device: str) -> TrialSkipped:
    expected_s = predict_pair_s(run, slot, device)
    return TrialSkipped(case_id=slot.case.id, index=slot.index, expected_s=expected_s, paired=True)


def _measure_slot(
    duel: Duel, run: Run, slots: tuple[PairSlot, ...], clock: Clock
) -> tuple[Run, tuple[PairSlot, ...]]:
    """Measure the first slot; give the run with what came of it, and the slots that are left."""
    slot, observe, device = slots[0], duel.lab.observe, duel.lab.bench.settings.device
    observe(
        PairStarted(case_id=slot.case.id, index=slot.index, progress=_compute_progress(run, slots, device))
    )
    sides = make_sides(duel.base, duel.lab.bench, slot.base_case, slot.case)
    gpu = duel.lab.bench.gpu
    alone = gpu is not None and gpu.exclusive  # the second arm's process would be turned away
    crowded = any(one.case_id == slot.case.id and one.pairing is Pairing.TURNS for one in run.trials)
    pairing = Pairing.TURNS if alone or crowded else Pairing.LIVE
    pair = measure_pair(sides, plan_pair(slot.metrics, slot.index, device, pairing))
    left = drop_cases(slots, {slot.case.id}) if pair.failures else slots[1:]
    run = replace(
        run,
        trials=(*run.trials, *pair.trials),
        failures=(*run.failures, *pair.failures),
        wall_s=clock.read_s(),
    )
    progress = _compute_progress(run, left, device)
    for failure in pair.failures:
        observe(CaseFailed(failure=failure, progress=progress))
    if pair.trials:
        arms = {trial.arm: trial for trial in pair.trials}
        base = arms.pop(BASE)
        (head,) = arms.values()
        observe(PairFinished(base=base, head=head, progress=progress))
    return run, left


def _compute_progress(run: Run, slots: Sequence[PairSlot], device: str) -> Progress:
    done = sum(trial.pairing is not Pairing.ALONE for trial in run.trials) // 2
    left_s = sum(predict_pair_s(run, slot, device) for slot in slots)
    return Progress(done=done, total=done + len(slots), left_s=left_s)
