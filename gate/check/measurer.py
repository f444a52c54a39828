"""What the procedure asks of whatever measures: the lab's processes, or recorded and drawn trials."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from gate.check.pair_schedule import Need
from gate.records import Metric, Run


class TrialMeasurer(Protocol):
    """Measures cases on their own."""

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Add trials to these cases up to ``trials`` each; fewer where one failed or time is up.

        Each measures the metrics that are wanted of its case, and may leave out others:
        :func:`gate.check.content.plan_trial`.
        """
        ...


class PairMeasurer(Protocol):
    """Measures cases side by side with the base."""

    def add_pairs(self, run: Run, needs: Sequence[Need], limit_s: float) -> Run:
        """Add the pairs that are needed now; none that would end after ``limit_s`` seconds of the run.

        A case that fails in either arm is a failure of the run and gets no further pair.
        """
        ...


class Measurer(TrialMeasurer, PairMeasurer, Protocol):
    """Measures both."""
