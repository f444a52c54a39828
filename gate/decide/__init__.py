"""The decision: pure functions from a run, baselines and a policy to a verdict.

The procedure, its formulas and its constants are told in ``docs/decision.md``.
"""

from __future__ import annotations

from gate.decide.estimate import estimate_metric
from gate.decide.outcome import FailOn, compute_exit_code, list_undecided
from gate.decide.values import collect_values, compute_values
from gate.decide.verdict import Screening, conclude_verdict, decide_verdict, screen_run

__all__ = [
    "FailOn",
    "Screening",
    "collect_values",
    "compute_exit_code",
    "compute_values",
    "conclude_verdict",
    "decide_verdict",
    "estimate_metric",
    "list_undecided",
    "screen_run",
]
