"""One case against its stored values, by hand: what both measured, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gate.decide.verdict import Screening
from gate.records.cases import Metric
from gate.records.run import CaseFailure, FailureKind, Run
from gate.records.verdict import Comparison, Reason, Status, Verdict
from tests.make import make_failure

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD, WARM, BREAKS = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME, Metric.GRAPH_BREAKS
CASE = "mlp/x"
STORED = {EAGER: 0.020, LATENCY: 0.010, COLD: 10.0}
# Nine stored values with a spread of about 0.7 %: noise is learned from their 8 degrees of freedom.
NINE = (0.990, 1.000, 1.010, 1.005, 0.995, 1.000, 0.995, 1.005, 1.000)

Make = Callable[..., Any]
Pair = Callable[..., Run]
Find = Callable[..., Comparison]
Screen = Callable[..., Screening]
Confirm = Callable[..., Verdict]


def fail(arm: str) -> CaseFailure:
    return make_failure(CASE, "ImportError: x", kind=FailureKind.ERROR, stage="build", arm=arm)


def state(comparison: Comparison) -> tuple[Status, Reason]:
    return comparison.status, comparison.reason


def measure(**factors: float) -> dict[Metric, Sequence[float]]:
    """One trial that ran alone, some of its values so many times the stored one."""
    return {metric: (value * factors.get(metric, 1.0),) for metric, value in STORED.items()}
