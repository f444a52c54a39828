"""Which trial comes next, and how long it all takes; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import fmean
from typing import TypeVar

from gate.check.content import EVERY_METRIC, Content, plan_trial
from gate.devices import DEFAULT_DEVICE
from gate.records import Case, Extent, Metric, Pairing, Run, Trial
from gate.records.groups import group_cases
from gate.records.protocol import Stage

# Of a whole trial's time, before a case had one of the kind. On two shared cores a small BERT's cold process
# took 17 s where a whole trial had taken 41; an elementwise chain's 9 of 18.
EXTENT_SHARES: Mapping[Extent, float] = {Extent.WHOLE: 1.0, Extent.COLD: 0.5}


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One trial to be run, for these metrics; ``index`` counts from 1.

    Those for later are only counted in what is left.
    """

    case: Case
    index: int
    metrics: Collection[Metric] = EVERY_METRIC
    later: bool = False


AnySlot = TypeVar("AnySlot", bound=Slot)


def make_trial_schedule(
    cases: Sequence[Case],
    trials: int,
    taken: Iterable[Trial] = (),
    wanted: Mapping[str, Collection[Metric]] | None = None,
) -> tuple[Slot, ...]:
    """Order ``trials`` trials of every case round-robin, leaving out those that are ``taken``.

    They are for the ``wanted`` metrics of their case, or all there are.

    Those of pairs stand for none: both arms of one ran side by side.

    Trial 1 of every case comes before trial 2 of any: a machine that drifts during a run then spreads
    over all cases alike, and a run that is stopped early has something to say about each.
    """
    finished = {(trial.case_id, trial.index) for trial in taken if trial.pairing is Pairing.ALONE}
    return tuple(
        Slot(case=case, index=index, metrics=(wanted or {}).get(case.id, EVERY_METRIC))
        for index in range(1, trials + 1)
        for case in cases
        if (case.id, index) not in finished
    )


def list_ended(run: Run) -> frozenset[tuple[str, int]]:
    """List the trials, by case and index, that came to an end: measured, failed, or both."""
    measured = {(trial.case_id, trial.index) for trial in run.trials}
    return frozenset(measured | {(failure.case_id, failure.trial) for failure in run.failures})


def drop_cases(slots: Sequence[AnySlot], case_ids: Collection[str]) -> tuple[AnySlot, ...]:
    """Leave out every slot of these cases."""
    return tuple(slot for slot in slots if slot.case.id not in case_ids)


def compute_trial_s(trial: Trial) -> float:
    """Wall time of a trial in seconds: its stages and what no stage accounts for.

    The stage ``start`` is part of the overhead already.
    """
    return trial.overhead_s + sum(value for stage, value in trial.stages_s.items() if stage != Stage.START)


def plan_slot(slot: Slot, trials: Iterable[Trial], device: str) -> Content:
    """Plan what the trial of a slot measures, after those that its case had. Pure."""
    return plan_trial(slot.metrics, [one for one in trials if one.case_id == slot.case.id], device)


def predict_trial_s(
    case: Case, cases: Sequence[Case], trials: Sequence[Trial], extent: Extent = Extent.WHOLE
) -> float:
    """Predict the wall time of another trial of ``case`` in seconds.

    The mean of its own trials of this extent where there are any, else a share of its whole ones; without
    those its expected time scaled by how the other trials of this run compare with theirs.
    """
    own = [trial for trial in trials if trial.case_id == case.id]
    return _predict_s(case, own, partial(_scale, cases, trials), extent)


def estimate_left_s(
    slots: Sequence[Slot], cases: Sequence[Case], trials: Sequence[Trial], device: str = DEFAULT_DEVICE
) -> float:
    """Estimate the wall time of ``slots`` in seconds, given the trials seen so far.

    It is asked for at every trial, so it looks at each trial once.
    """
    own, counts = group_cases(trials), Counter(slot.case.id for slot in slots)
    scale = cache(partial(_scale, cases, trials))
    left_s = 0.0
    for case_id, slot in {slot.case.id: slot for slot in slots}.items():
        known = own.get(case_id, ())
        extent = plan_trial(slot.metrics, known, device).extent
        left_s += counts[case_id] * _predict_s(slot.case, known, scale, extent)
    return left_s


def _predict_s(case: Case, own: Sequence[Trial], scale: Callable[[], float], extent: Extent) -> float:
    # Further trials find the case's server there.
    seconds = {
        kind: [
            compute_trial_s(trial) - trial.stages_s.get(Stage.SERVER, 0.0)
            for trial in own
            if trial.extent is kind
        ]
        for kind in (extent, Extent.WHOLE)
    }
    if seconds[extent]:
        return fmean(seconds[extent])
    whole_s = fmean(seconds[Extent.WHOLE]) if seconds[Extent.WHOLE] else case.expected_s * scale()
    return EXTENT_SHARES[extent] * whole_s


def _scale(cases: Sequence[Case], trials: Sequence[Trial]) -> float:
    expected = {case.id: case.expected_s for case in cases}
    known = [trial for trial in trials if trial.case_id in expected and trial.extent is Extent.WHOLE]
    expected_s = sum(expected[trial.case_id] for trial in known)
    return sum(map(compute_trial_s, known)) / expected_s if expected_s > 0 else 1.0
