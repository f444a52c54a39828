"""How the machine as a whole differs from when the baselines were recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from gate.decide.constants import CANARY_LIMIT, INTERVAL_CONFIDENCE, MIN_CASES_FOR_SUITE, SUITE_LIMIT
from gate.decide.evidence.finding import Question
from gate.decide.evidence.stored import Evidence
from gate.decide.stats.moments import LogArms, Variance, pool_variances, summarize_logs
from gate.decide.stats.student import compute_t_quantile
from gate.records import Baseline, MachineShift, Metric, Trial
from gate.records.groups import collect_columns

# Variance of the median of many normal values over that of their mean; for few it is less.
_MEDIAN_LOSS = math.pi / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Shifts:
    """Log changes of what the measured code cannot touch; + is slower, ``None`` where unknown.

    ``sure`` are those that exceed their own noise as well: the others can cast a doubt, but clear nobody.
    """

    canary: float | None = None
    suite: float | None = None
    cases: Mapping[str, float] = field(default_factory=dict)  # canaries of a case's own trials
    sure: Shifts | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Move:
    """One canary, or eager, of one case against its baseline."""

    change: float  # natural logarithm, + is slower
    arms: LogArms


def compute_shifts(evidence: Sequence[Evidence], questions: Sequence[Mapping[Metric, Question]]) -> Shifts:
    """Shift of the canaries over the run and in each case's trials, and of eager over the suite.

    Each canary's change is taken within a case (medians over trials), then the median over cases;
    of the canaries, the one that moved most speaks.
    """
    by_case = {one.case.id: _compare_canaries(one.trials, one.host_baseline) for one in evidence}
    by_name = collect_columns(by_case.values())
    noise = {name: _pool_noise(moves) for name, moves in by_name.items()}
    suite = [
        _Move(change=logs.after - logs.before, arms=logs)
        for posed in questions
        if Metric.EAGER_LATENCY in posed and (logs := posed[Metric.EAGER_LATENCY].logs) is not None
    ]
    if len(suite) < MIN_CASES_FOR_SUITE:
        suite = []
    alone = {
        case_id: {name: [move] for name, move in canaries.items()} for case_id, canaries in by_case.items()
    }
    return replace(
        _gather_shifts(by_name, suite, alone),
        sure=_gather_shifts(
            _keep_sure(by_name, noise),
            _keep_sure({"eager": suite}, {"eager": _pool_noise(suite)}).get("eager", []),
            {case_id: _keep_sure(canaries, noise) for case_id, canaries in alone.items()},
        ),
    )


def list_shifts(shifts: Shifts | None, case_id: str) -> tuple[float, ...]:
    """The shifts large enough to be judged without: of the canaries, the case's canaries, the suite."""
    suite = shifts.suite if shifts else None
    return (*list_canary_shifts(shifts, case_id), *_keep_large((suite,), SUITE_LIMIT))


def list_canary_shifts(shifts: Shifts | None, case_id: str) -> tuple[float, ...]:
    """Of :func:`list_shifts` those of the canaries, which the measured model has no part in."""
    return _keep_large((shifts.canary, shifts.cases.get(case_id)), CANARY_LIMIT) if shifts else ()


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


def _keep_large(shifts: Iterable[float | None], limit: float) -> tuple[float, ...]:
    return tuple(shift for shift in shifts if shift is not None and abs(math.expm1(shift)) > limit)


def _compare_canaries(trials: Iterable[Trial], baseline: Baseline | None) -> dict[str, _Move]:
    """Each canary that both sides have, by name."""
    if baseline is None:
        return {}
    moves = {}
    for name, after in collect_columns(trial.conditions.canaries_s for trial in trials).items():
        before = baseline.canaries_s.get(name)
        arms = summarize_logs(before, after) if before else None
        if before and arms is not None:
            change = math.log(median(after) / median(before))
            moves[name] = _Move(change=change, arms=arms)
    return moves


def _gather_shifts(
    canaries: Mapping[str, Sequence[_Move]],
    suite: Sequence[_Move],
    cases: Mapping[str, Mapping[str, Sequence[_Move]]],
) -> Shifts:
    largest = {case_id: _choose_largest(found) for case_id, found in cases.items()}
    return Shifts(
        canary=_choose_largest(canaries),
        suite=_compute_shift(suite) if suite else None,
        cases={case_id: shift for case_id, shift in largest.items() if shift is not None},
    )


def _choose_largest(canaries: Mapping[str, Sequence[_Move]]) -> float | None:
    return max(map(_compute_shift, canaries.values()), key=abs, default=None)


def _compute_shift(moves: Sequence[_Move]) -> float:
    return median([move.change for move in moves])


def _pool_noise(moves: Iterable[_Move]) -> Variance:
    """Variance between trials of one program, within the arms of all cases."""
    return pool_variances(*(move.arms.variance for move in moves))


def _keep_sure(
    canaries: Mapping[str, Sequence[_Move]], noise: Mapping[str, Variance]
) -> dict[str, Sequence[_Move]]:
    """Those beyond their own noise; the confidence is shared by all, since the largest will speak."""
    tail = (1 - INTERVAL_CONFIDENCE) / 2 / max(len(canaries), 1)
    return {name: moves for name, moves in canaries.items() if moves and _is_sure(moves, noise[name], tail)}


def _is_sure(moves: Sequence[_Move], noise: Variance, tail: float) -> bool:
    """Whether the median change cannot be chance; where one trial a side leaves no noise, nobody knows."""
    if noise.df <= 0:
        return False
    trials = fmean([1 / move.arms.after_trials + 1 / move.arms.before_trials for move in moves])
    error = math.sqrt(noise.value * trials * _MEDIAN_LOSS / len(moves))
    return abs(_compute_shift(moves)) > -compute_t_quantile(tail, noise.df) * error
