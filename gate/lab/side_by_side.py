"""The pairs of a run: which comes next, saved after each, stopped in time.

::

    with open_lab(arm, settings, observe) as lab:
        duel = open_duel(lab, base_arm)
        run = measure_pairs(duel, run, needs, limit_s, save)
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.errors import InterruptedRunError
from gate.lab.events import CaseFailed, PairFinished, PairStarted, Progress, TrialSkipped
from gate.lab.pairs import BASE, LATENCIES, make_sides, measure_pair, open_base, plan_pair
from gate.lab.process import defer_interrupts
from gate.lab.runner import Clock, Lab, Save
from gate.lab.schedule import compute_trial_s, predict_trial_s
from gate.lab.trials import Bench
from gate.protocol import Stage, WorkerRole
from gate.records import Arm, BaseArm, Case, Environment, Metric, Pairing, Provenance, Run, Trial

_LOADING = (Stage.IMPORT, Stage.BUILD, Stage.EAGER, Stage.COMPILE)  # before an arm says that it has loaded
# A pair that compiles nothing took 15 to 20 s where a whole one took 50 s.
LIGHT_PAIR_SHARE = 0.4


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """So many more pairs of a case, for these metrics. ``later`` ones are only counted in what is left."""

    case_id: str
    metrics: Collection[Metric]
    more: int
    later: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Duel:
    """A lab and the bench of the arm that its own arm is held against."""

    lab: Lab
    base: Bench
    environment: Environment  # of the base


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSlot:
    """One pair to be measured; ``index`` counts from 1."""

    case: Case
    base_case: Case
    index: int
    metrics: Collection[Metric]
    later: bool = False


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


def measure_pairs(duel: Duel, run: Run, needs: Sequence[Need], limit_s: float, save: Save) -> Run:
    """Add the pairs that are needed now, round-robin over the cases.

    A case that one arm lacks, or defines otherwise, or that failed, gets none. A pair that would end
    after ``limit_s`` seconds of the run, by what its case took before, measures the latencies alone if
    that ends in time, and is not started if not.

    Raises:
        MachineError: A disk is full.
        InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
    """
    slots = list_pair_slots(run, needs)
    clock = Clock(origin=time.monotonic() - run.wall_s, limit_s=limit_s)
    try:
        while slots and not slots[0].later:
            device = duel.lab.bench.settings.device
            slot = fit_slot(run, slots[0], device, clock.limit_s - clock.read_s())
            if slot is None:
                duel.lab.observe(_report_skipped(run, slots[0], device))
                slots = _drop_case(slots, slots[0].case.id)
                continue
            run, slots = _measure_slot(duel, run, (slot, *slots[1:]), clock)
            save(run)
    except KeyboardInterrupt:
        with defer_interrupts():
            save(replace(run, wall_s=clock.read_s()))
        raise InterruptedRunError(
            f"stopped with {len(slots)} pairs to go", "What was measured is saved: continue with --resume."
        ) from None
    return run


def list_pair_slots(run: Run, needs: Sequence[Need]) -> tuple[PairSlot, ...]:
    """Order the pairs: a first one of every case before a second of any, and those for later last. Pure."""
    base = {case.id: case for case in run.base.cases} if run.base else {}
    cases = {case.id: case for case in run.cases}
    failed = {failure.case_id for failure in run.failures}
    open_needs = [
        need for need in needs if need.case_id not in failed and is_paired(cases[need.case_id], base)
    ]
    slots = (
        PairSlot(
            case=cases[need.case_id],
            base_case=base[need.case_id],
            index=count_pairs(run, need.case_id) + step,
            metrics=need.metrics,
            later=need.later,
        )
        for step in range(1, max((need.more for need in open_needs), default=0) + 1)
        for need in open_needs
        if step <= need.more
    )
    return tuple(sorted(slots, key=lambda slot: slot.later))


def count_pairs(run: Run, case_id: str) -> int:
    """Count the pairs of a case."""
    return sum(
        trial.case_id == case_id and trial.pairing is not Pairing.ALONE and trial.arm == BASE
        for trial in run.trials
    )


def is_paired(case: Case, base: Mapping[str, Case]) -> bool:
    """Whether the base has the case, with the same definition."""
    return case.id in base and base[case.id].definition == case.definition


def fit_slot(run: Run, slot: PairSlot, device: str, left_s: float) -> PairSlot | None:
    """The pair, or as much of it as ends within ``left_s`` seconds: all, its latencies, or ``None``. Pure."""
    latencies = frozenset(slot.metrics) & LATENCIES
    lighter = (replace(slot, metrics=latencies),) if latencies else ()
    return next((one for one in (slot, *lighter) if predict_pair_s(run, one, device) <= left_s), None)


def predict_pair_s(run: Run, slot: PairSlot, device: str) -> float:
    """Predict the wall time of a pair in seconds: as the case's last of its kind, or two trials. Pure."""
    own = [trial for trial in run.trials if trial.case_id == slot.case.id]
    paired = [trial for trial in own if trial.pairing is not Pairing.ALONE]
    if not paired:
        return 2 * predict_trial_s(slot.case, run.cases, run.trials)
    is_light = plan_pair(slot.metrics, slot.index, device, Pairing.LIVE).first is WorkerRole.ROUNDS
    alike = [trial for trial in paired if _is_light(trial) == is_light]
    if alike:
        return _compute_pair_s(alike)
    return _compute_pair_s(paired) * (LIGHT_PAIR_SHARE if is_light else 1 / LIGHT_PAIR_SHARE)


def _is_light(trial: Trial) -> bool:
    return Metric.COLD_COMPILE_TIME not in trial.samples


def _compute_pair_s(trials: Sequence[Trial]) -> float:
    """Wall time in seconds of the last pair among ``trials``, without what a further one is spared.

    Waiting for each other counts once, a case's servers are there already, and arms load at the same time.
    """
    last = [trial for trial in trials if trial.index == max(trial.index for trial in trials)]
    spared_s = sum(_sum_stages(trial, (Stage.TURN, Stage.SERVER)) for trial in last)
    if all(map(_is_light, last)):
        spared_s += min(_sum_stages(trial, _LOADING) for trial in last)
    return sum(map(compute_trial_s, last)) - spared_s


def _sum_stages(trial: Trial, stages: Sequence[Stage]) -> float:
    return sum(trial.stages_s.get(stage, 0.0) for stage in stages)


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
    left = _drop_case(slots, slot.case.id) if pair.failures else slots[1:]
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


def _drop_case(slots: tuple[PairSlot, ...], case_id: str) -> tuple[PairSlot, ...]:
    return tuple(slot for slot in slots if slot.case.id != case_id)


def _compute_progress(run: Run, slots: Sequence[PairSlot], device: str) -> Progress:
    done = sum(trial.pairing is not Pairing.ALONE for trial in run.trials) // 2
    left_s = sum(predict_pair_s(run, slot, device) for slot in slots)
    return Progress(done=done, total=done + len(slots), left_s=left_s)
