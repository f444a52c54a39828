"""Measures for a check, unit by unit, on a lab's one lane or on a fleet's many; pure but for its engine.

A lane is a device with an open lab.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.check.handout import Call, Lanes
from gate.check.work import PairWork, TrialWork
from gate.decide.suspects import Suspect
from gate.records.cases import Metric
from gate.records.run import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneMeasurer(Lanes):
    budget_s: float = math.inf  # for trials, in seconds of the run

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Round-robin on each lane, up to ``trials`` of each case, for its ``wanted`` metrics.

        A trial that would end after the budget, by what its case took before, is not started; a cheaper one
        that still fits is. A case that failed gets none.

        Raises:
            MachineError: A disk is full, or no lane is left; what was measured is saved.
            InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
        """
        chosen = [case.id for case in run.cases if case.id in wanted]
        work = TrialWork(
            wanted={case_id: wanted[case_id] for case_id in chosen},
            trials=trials,
            limit_s=self.budget_s,
        )
        run = Call(self, work, replace(run, finished=False), chosen).work_off()
        run = replace(run, finished=True)
        self.save(run)
        return run

    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """Add the pairs that are needed now, and on idle lanes those for later.

        Of a pair that would end after ``limit_s`` seconds of the run, by what its case took before, only the
        latencies are measured, if they end in time. The run is saved as unfinished. Raises as
        :meth:`add_trials`.
        """
        failed = {failure.case_id for failure in run.failures}
        open_needs = {need.case_id: need for need in needs if need.case_id not in failed}
        pairs = run.pair_counts
        work = PairWork(
            wanted=open_needs,
            targets={case_id: pairs[case_id] + need.more for case_id, need in open_needs.items()},
            limit_s=limit_s,
        )
        if run.finished:
            run = replace(run, finished=False)
            self.save(run)
        now = [case_id for case_id, need in open_needs.items() if not need.later]
        return Call(self, work, run, now).work_off()
