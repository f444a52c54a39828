"""How long trials will take, by those that a run has. No IO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from gate.check.schedule import Content, Slot, compute_trial_s, plan_trial
from gate.devices import DEFAULT_DEVICE
from gate.records import Case, Extent, Trial
from gate.records.protocol import Stage

# Of a whole trial's time, before a case had one of the kind. On two shared cores a small BERT's cold process
# took 17 s where a whole trial had taken 41; an elementwise chain's 9 of 18.
EXTENT_SHARES = {Extent.WHOLE: 1.0, Extent.COLD: 0.5}


class Pace:
    """How long the trials of each case took, beside what is expected of it."""

    def __init__(self, cases: Iterable[Case], trials: Iterable[Trial] = ()) -> None:
        self._expected_s = {case.id: case.expected_s for case in cases}
        self._took: dict[str, list[Trial]] = {}
        self._whole_s = self._whole_expected_s = 0.0
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Take another trial into account."""
        self._took.setdefault(trial.case_id, []).append(trial)
        if trial.case_id in self._expected_s and trial.extent is Extent.WHOLE:
            self._whole_s += compute_trial_s(trial)
            self._whole_expected_s += self._expected_s[trial.case_id]

    def list_own(self, case: Case) -> Sequence[Trial]:
        """The trials of a case, in their order."""
        return self._took.get(case.id, ())

    def predict_s(self, case: Case, extent: Extent = Extent.WHOLE) -> float:
        """Predict the wall time of another trial of ``case`` in seconds.

        The mean of its own trials of this extent where there are any, else a share of its whole ones; without
        those its expected time scaled by how the other trials of this run compare with theirs.
        """
        for kind, share in ((extent, 1.0), (Extent.WHOLE, EXTENT_SHARES[extent])):
            # Further trials find the case's server there.
            if seconds := [
                compute_trial_s(trial) - trial.stages_s.get(Stage.SERVER, 0.0)
                for trial in self.list_own(case)
                if trial.extent is kind
            ]:
                return share * fmean(seconds)
        scale = self._whole_s / self._whole_expected_s if self._whole_expected_s > 0 else 1.0
        return EXTENT_SHARES[extent] * case.expected_s * scale


class Outlook:
    """How long the slots that are left will take, by the trials so far."""

    def __init__(
        self,
        slots: Sequence[Slot],
        pace: Pace,
        device: str = DEFAULT_DEVICE,
        ended: Iterable[tuple[str, int]] = (),
    ) -> None:
        self.pace = pace
        self._ended = set(ended)
        self._device = device
        self._slots = {slot.case.id: slot for slot in slots}
        self._left = Counter(slot.case.id for slot in slots)

    @property
    def left_s(self) -> float:
        """The wall time of what is left, in seconds."""
        return sum(
            left * self.predict_s(self._slots[case_id]) for case_id, left in self._left.items() if left
        )

    @property
    def done(self) -> int:
        """How many trials have come to an end, those before the slots included."""
        return len(self._ended)

    def plan(self, slot: Slot) -> Content:
        """Plan what the trial of a slot measures, after those that its case had."""
        return plan_trial(slot.metrics, self.pace.list_own(slot.case), self._device)

    def predict_s(self, slot: Slot) -> float:
        """Predict the wall time of a slot's trial in seconds."""
        return self.pace.predict_s(slot.case, self.plan(slot).extent)

    def end(self, slot: Slot, trial: Trial | None) -> None:
        """A slot has ended, with or without a trial."""
        if trial is not None:
            self.pace.add(trial)
        self._ended.add((slot.case.id, slot.index))
        self._left[slot.case.id] -= 1

    def drop(self, case_id: str) -> None:
        """No further slot of a case is taken."""
        self._left[case_id] = 0
