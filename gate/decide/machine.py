"""How the machine as a whole differs from when the baselines were recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gate.decide.constants import CANARY_LIMIT, MIN_CASES_FOR_SUITE, SUITE_LIMIT
from gate.decide.evidence import Evidence
from gate.decide.finding import Question
from gate.decide.stats import compute_median
from gate.records import Baseline, MachineShift, Metric, Trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Shifts:
    """Log changes of what the measured code cannot touch; + is slower, ``None`` where unknown."""

    canary: float | None = None
    suite: float | None = None
    cases: Mapping[str, float] = field(default_factory=dict)  # canaries of a case's own trials


def compute_shifts(evidence: Sequence[Evidence], questions: Sequence[Mapping[Metric, Question]]) -> Shifts:
    """Shift of the canaries over the run and in each case's trials, and of eager over the suite.

    Each canary's change is taken within a case (medians over trials), then the median over cases;
    of the canaries, the one that moved most speaks.
    """
    by_case = {one.case.id: _compute_canaries(one.trials, one.host_baseline) for one in evidence}
    arms = [posed[Metric.EAGER_LATENCY].logs for posed in questions if Metric.EAGER_LATENCY in posed]
    eager = [logs.after - logs.before for logs in arms if logs is not None]
    return Shifts(
        canary=_choose_largest(_join_canaries(by_case.values())),
        suite=compute_median(eager) if len(eager) >= MIN_CASES_FOR_SUITE else None,
        cases={
            case_id: shift
            for case_id, canaries in by_case.items()
            if (shift := _choose_largest(canaries)) is not None
        },
    )


def list_shifts(shifts: Shifts, case_id: str) -> tuple[float, ...]:
    """The shifts large enough to be judged without: of the canaries, the suite, the case's canaries."""
    candidates = (
        (shifts.canary, CANARY_LIMIT),
        (shifts.suite, SUITE_LIMIT),
        (shifts.cases.get(case_id), CANARY_LIMIT),
    )
    return tuple(shift for shift, limit in candidates if shift is not None and abs(math.expm1(shift)) > limit)


def make_machine_shift(shifts: Shifts) -> MachineShift:
    """The shifts as a record of fractions; ``known`` says whether there were canaries to compare."""
    return MachineShift(
        canary=math.expm1(shifts.canary or 0.0),
        suite=math.expm1(shifts.suite or 0.0),
        known=shifts.canary is not None,
    )


def is_machine_steady(machine: MachineShift) -> bool:
    """Whether neither the canaries nor eager over the suite moved beyond their limits."""
    return abs(machine.canary) <= CANARY_LIMIT and abs(machine.suite) <= SUITE_LIMIT


def _compute_canaries(trials: Iterable[Trial], baseline: Baseline | None) -> dict[str, float]:
    """Log change of each canary that both sides have, by name."""
    if baseline is None:
        return {}
    candidate: dict[str, list[float]] = {}
    for trial in trials:
        for name, seconds in trial.conditions.canaries_s.items():
            candidate.setdefault(name, []).append(seconds)
    return {
        name: math.log(compute_median(after) / compute_median(before))
        for name, after in candidate.items()
        if (before := baseline.canaries_s.get(name)) and min(after) > 0 and min(before) > 0
    }


def _join_canaries(cases: Iterable[Mapping[str, float]]) -> dict[str, float]:
    by_name: dict[str, list[float]] = {}
    for canaries in cases:
        for name, shift in canaries.items():
            by_name.setdefault(name, []).append(shift)
    return {name: compute_median(shifts) for name, shifts in by_name.items()}


def _choose_largest(canaries: Mapping[str, float]) -> float | None:
    return max(canaries.values(), key=abs) if canaries else None
