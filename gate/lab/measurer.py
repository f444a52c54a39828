"""What measures for a check on this machine: the lab's processes, the run saved after each trial and pair."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gate.check.pair_schedule import Need
from gate.codec import save_run
from gate.lab.runner import Budget, Lab, extend_run
from gate.lab.side_by_side import Duel, measure_pairs
from gate.records import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class LabTrials:
    """Measures cases on their own; raises as :func:`gate.lab.runner.run_plan`."""

    lab: Lab
    path: Path  # of the saved run
    budget_s: float = math.inf  # for trials, in seconds of the run

    def add_trials(self, run: Run, case_ids: Collection[str], trials: int) -> Run:
        """Add trials up to so many each; none that would end after the budget."""
        budget = Budget(max_trials=trials, wall_s=self.budget_s)
        return extend_run(self.lab, run, case_ids, budget, self.save)

    def save(self, run: Run) -> None:
        """Write the run to its file."""
        save_run(run, self.path)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabPairs(LabTrials):
    """Measures cases side by side with the base as well."""

    duel: Duel

    def add_pairs(self, run: Run, needs: Sequence[Need], limit_s: float) -> Run:
        """Add pairs as :func:`gate.lab.side_by_side.measure_pairs`; the saved run is not finished yet."""
        return measure_pairs(self.duel, replace(run, finished=False), needs, limit_s, self.save)
