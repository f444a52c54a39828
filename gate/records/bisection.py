"""What a bisection has found so far, step by step; records of ``out/bisect/bisection.json``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records.bounds import Natural, NotNegative
from gate.records.metric import Metric


class Mark(StrEnum):
    """What one commit or interpreter is, as ``git bisect`` calls it."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"  # could not be judged, or not be measured


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectionStep:
    """One commit or interpreter that was compared with the good one."""

    point: str  # a whole commit id, or an interpreter's path
    mark: Mark
    pairs: Natural
    wall_s: NotNegative
    change: float | None = None  # of the metric as judged, + is worse; None where there is none


@dataclass(frozen=True, kw_only=True, slots=True)
class Bisection:
    """A search between two ends for the first point at which one metric of one case is worse.

    ``change`` is that of the bad end: each step is judged to be at its level, or at the good end's.
    """

    case_id: str
    metric: Metric
    good: str
    bad: str
    change: float
    steps: tuple[BisectionStep, ...] = ()
