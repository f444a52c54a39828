"""How the machine as a whole differs from when the baselines were recorded: one shift, one wandering.

Both are of the canaries, fixed programs that the measured code cannot touch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from gate.decide.constants import FAR_LIMIT, INTERVAL_CONFIDENCE, MIN_CASES_FOR_SUITE, SESSION_SD
from gate.decide.evidence.values import Evidence
from gate.decide.stats import LogArms, Variance, compute_t_quantile, pool_variances, summarize_logs
from gate.devices import is_gpu
from gate.records import MachineShift, Metric
from gate.records.cases import collect_columns

# Variance of the median of many normal values over that of their mean; for few it is less.
_MEDIAN_LOSS = math.pi / 2
# What compiling is like. On a GPU's host it alone speaks of compile times: the card is another machine. In a
# virtual machine of 16 cores Python's speed varied by 80 %, and the card's by 1 %.
_HOST_CANARY = "python"
# What is told of the machine: a smaller shift leaves room within the smallest threshold, 5 %.
NOTABLE_SHIFT = 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine of a run against that of its baselines; changes are logarithms, + is slower."""

    canary: float | None = None  # the middle one of the canaries; ``None`` where unknown
    is_sure: bool = False  # whether that is more than chance
    suite: float | None = None  # median of eager's changes over the cases
    is_suite_sure: bool = False
    wander: float = 0.0  # by how much a canary varies from trial to trial, a standard deviation
    host: Machine | None = None  # of a GPU: where its programs are compiled

    @property
    def shift(self) -> float:
        """By how much times are taken to be longer for the machine's sake alone."""
        return self.canary if self.canary is not None and self.is_sure else 0.0

    @property
    def suite_shift(self) -> float:
        """By how much all cases' calls are slower, eager's as well."""
        return self.suite if self.suite is not None and self.is_suite_sure else 0.0

    @property
    def is_far(self) -> bool:
        """Whether its speed is another one: what a program takes elsewhere is no rule of three."""
        return abs(math.expm1(self.shift)) > FAR_LIMIT

    @property
    def session(self) -> Variance:
        """What two sessions of this machine differ by, as the variance of a logarithm.

        What a far machine's shift leaves of each program is as uncertain as the shift is large.
        """
        uneven = abs(self.shift) if self.is_far else 0.0
        return Variance(value=max(SESSION_SD, self.wander, uneven) ** 2, df=math.inf)


def compare_machine(evidence: Sequence[Evidence]) -> Machine:
    """Compare the canaries with those of the baselines, and eager with eager over the cases.

    Each canary's change is the median over the cases, and the machine's that of the canary in the middle. A
    GPU's host is compared apart.
    """
    moves = collect_columns(map(_compare_canaries, evidence))
    shifts = sorted(
        (median([arms.after - arms.before for arms in found]), name) for name, found in moves.items()
    )
    asked = (one.questions.get(Metric.EAGER_LATENCY) for one in evidence)
    eager = [question.logs for question in asked if question and question.logs]
    machine = Machine()
    if len(eager) >= MIN_CASES_FOR_SUITE:
        suite = median([arms.after - arms.before for arms in eager])
        machine = replace(machine, suite=suite, is_suite_sure=_is_sure(suite, eager))
    if not shifts:
        return machine
    name = shifts[(len(shifts) - 1) // 2][1]
    has_host = any(is_gpu(one.host_baseline.environment.device_kind) for one in evidence if one.host_baseline)
    host = _read_canary(moves[_HOST_CANARY], Machine()) if has_host and _HOST_CANARY in moves else None
    return _read_canary(moves[name], replace(machine, host=host))


def _read_canary(moves: Sequence[LogArms], machine: Machine) -> Machine:
    shift = median([arms.after - arms.before for arms in moves])
    wander = math.sqrt(pool_variances(*(arms.variance for arms in moves)).value)
    return replace(machine, canary=shift, is_sure=_is_sure(shift, moves), wander=wander)


def make_machine_shift(machine: Machine) -> MachineShift:
    """The shifts as a record of fractions; ``known`` says whether there were canaries to compare."""
    return MachineShift(
        canary=math.expm1(machine.canary or 0.0),
        suite=math.expm1(machine.suite or 0.0),
        known=machine.canary is not None,
    )


def is_machine_steady(machine: MachineShift) -> bool:
    """Whether neither the canaries nor eager over the suite moved by what matters."""
    return max(abs(machine.canary), abs(machine.suite)) <= NOTABLE_SHIFT


def name_shifts(machine: MachineShift) -> dict[str, float]:
    """By how much the machine changed, under the names of a fact's numbers."""
    # 0 where it is not known: eager speaks for the machine only over several cases.
    shifts = {"canary": machine.canary, "suite": machine.suite}
    return {name: shift for name, shift in shifts.items() if shift}


def _compare_canaries(one: Evidence) -> dict[str, LogArms]:
    stored = one.host_baseline.canaries_s if one.host_baseline else {}
    after = collect_columns(trial.conditions.canaries_s for trial in one.trials)
    arms = {name: summarize_logs(stored[name], values) for name, values in after.items() if stored.get(name)}
    return {name: found for name, found in arms.items() if found is not None}


def _is_sure(shift: float, moves: Sequence[LogArms]) -> bool:
    """Whether a median change cannot be chance; the noise of one trial a side is unknown."""
    noise = pool_variances(*(arms.variance for arms in moves))
    if noise.df <= 0:
        return False
    trials = fmean([1 / arms.after_trials + 1 / arms.before_trials for arms in moves])
    error = math.sqrt(noise.value * trials * _MEDIAN_LOSS / len(moves))
    return abs(shift) > -compute_t_quantile((1 - INTERVAL_CONFIDENCE) / 2, noise.df) * error
