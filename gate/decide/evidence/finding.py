"""What is asked of one metric of one case, and what is found of it before that becomes a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gate.decide.stats.estimate import estimate_metric
from gate.decide.stats.moments import LogArms
from gate.metrics import SPECS, MetricSpec
from gate.records import Case, Change, Fact, Finding, Metric, Reason, Status, Threshold


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One metric of one case: its values, one per trial, and what counts as relevant."""

    case: Case
    metric: Metric
    before: Sequence[float]
    after: Sequence[float]
    threshold: Threshold
    logs: LogArms | None = None  # of noisy metrics, where every value is positive

    @property
    def spec(self) -> MetricSpec:
        """The metric's fixed properties."""
        return SPECS[self.metric]

    def find(
        self, status: Status, reason: Reason, change: Change | None = None, remarks: tuple[Fact, ...] = ()
    ) -> Finding:
        """What was found of it, with both values as they are."""
        return Finding(
            status=status,
            reason=reason,
            baseline=estimate_metric(self.metric, self.before),
            candidate=estimate_metric(self.metric, self.after),
            change=change,
            remarks=remarks,
        )
