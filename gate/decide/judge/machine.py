"""How the machine of a run differs from that of its baselines, by fixed programs, eager and speedups.

Canaries are fixed programs: the measured code cannot change their times, so a change is the machine's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median

from gate.decide.constants import (
    FAR_LIMIT,
    FILLED_DEVICE,
    INTERVAL_CONFIDENCE,
    MEDIAN_DEVIATION,
    MEDIAN_LOSS,
    MEDIAN_SQUARE,
    MIN_CASES_FOR_SUITE,
    MIN_SESSIONS,
    SESSION_SD,
)
from gate.decide.evidence.gather import Evidence, Question
from gate.decide.stats import (
    NOTHING_KNOWN,
    LogArms,
    Variance,
    compute_logs,
    compute_t_quantile,
    compute_variance,
    pool_variances,
    summarize_logs,
)
from gate.devices import is_gpu
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS
from gate.records.cases import Metric, collect_columns
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import MachineShift

# On a GPU's host it alone shows the speed of compiling: the card is another machine. In a virtual machine of
# 16 cores Python's speed varied by 80 %, and the card's by 1 %.
_HOST_CANARY = "python"
# The speed of starting kernels, where the card waits for its host. The other canaries fill the card.
_LAUNCH_CANARY = "launch"
# A smaller shift is not reported: it leaves room within the smallest threshold, 5 %.
NOTABLE_SHIFT = 0.03
# What the machine's speed moves; a ratio has its own control.
BY_CLOCK = frozenset(metric for metric, spec in SPECS.items() if spec.unit == "s")
# Between two sessions of a steady machine, where its history is not known.
SESSION = Variance(value=SESSION_SD**2, df=math.inf)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine of a run compared with that of its baselines; changes are logarithms, + is slower."""

    canary: float | None = None  # the middle one of the canaries; ``None`` where unknown
    shift: float = 0.0  # of that what is more than chance; it is subtracted from changes of times
    suite: float = 0.0  # median of eager's changes over the cases; 0 of too few
    suite_shift: float = 0.0  # of that what is more than chance
    wander: float = 0.0  # by how much a canary varies from trial to trial, a standard deviation
    host: Machine | None = None  # of a GPU: where its programs are compiled
    launches: Machine | None = None  # of a GPU: where its kernels are started
    is_host: bool = False  # is one of these two

    @property
    def is_far(self) -> bool:
        """Times of programs do not scale by the shift then."""
        return abs(math.expm1(self.shift)) > FAR_LIMIT

    @property
    def since_recorded(self) -> MachineShift:
        canary, suite = math.expm1(self.canary or 0.0), math.expm1(self.suite)
        return MachineShift(canary=canary, suite=suite, known=self.canary is not None)

    @property
    def session(self) -> Variance:
        """The least variance, of logarithms, between two sessions of this machine."""
        uneven = abs(self.shift) if self.is_far else 0.0
        return Variance(value=max(self.wander, uneven) ** 2, df=math.inf)

    def get_part(self, metric: Metric, *, fills: bool) -> Machine:
        """A GPU, or its host, which compiles, and starts what ``fills`` no card."""
        if metric in COMPILE_TIMES:
            return self.host or self
        return self if fills or metric not in BY_CLOCK else self.launches or self

    def compute_shift(self, metric: Metric, *, has_base: bool, fills: bool = False) -> float:
        """By how much a time is longer because of the machine, as a logarithm.

        Without a base, the change of all cases' eager calls counts as the machine's. Where kernels fill a
        card its canaries count instead: eager calls may wait for the host.
        """
        if metric not in BY_CLOCK:
            return 0.0
        of_suite = self.suite_shift if metric in LATENCIES and not has_base and not fills else 0.0
        return of_suite or self.get_part(metric, fills=fills).shift


def fills_device(evidence: Evidence) -> bool:
    busy = evidence.values.get(Metric.DEVICE_UTILIZATION)
    return bool(busy and median(busy) >= FILLED_DEVICE)


def explain_open(evidence: Evidence, metric: Metric, part: Machine | None = None) -> tuple[Fact, ...]:
    facts = []
    if metric in LATENCIES and not fills_device(evidence):
        busy = evidence.values.get(Metric.DEVICE_UTILIZATION)
        facts += [Fact(code=Code.WAITS_FOR_HOST, numbers={"busy": median(busy)})] if busy else []
    if part is not None and part.is_host and part.wander > NOTABLE_SHIFT:
        facts.append(Fact(code=Code.HOST_VARIES, numbers={"sd": math.expm1(part.wander)}))
    return tuple(facts)


def compare_machine(evidence: Sequence[Evidence]) -> Machine:
    """A canary's change is the median over the cases, the machine's that of the middle one or two canaries.

    A GPU's host is compared by itself: its cores may be shared where the card is not.
    """
    moves = collect_columns(map(_compare_canaries, evidence))
    asked = (case.questions.get(Metric.EAGER_LATENCY) for case in evidence)
    eager = [question.logs for question in asked if question and question.logs]
    machine = Machine()
    if len(eager) >= MIN_CASES_FOR_SUITE:
        machine = Machine(suite=_compute_middle(eager), suite_shift=_compute_sure_shift(eager))
    if any(is_gpu(case.host_baseline.environment.device_kind) for case in evidence if case.host_baseline):
        apart = {
            name: _read_canary(moves.pop(name), Machine(is_host=True))
            for name in (_HOST_CANARY, _LAUNCH_CANARY)
            if name in moves
        }
        machine = replace(machine, host=apart.get(_HOST_CANARY), launches=apart.get(_LAUNCH_CANARY))
    if not moves:
        return machine
    ordered = sorted(moves.values(), key=_compute_middle)
    middle = [
        arms for changes in ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1] for arms in changes
    ]
    return _read_canary(middle, machine)


def _read_canary(moves: Sequence[LogArms], machine: Machine) -> Machine:
    wander = math.sqrt(pool_variances(*(arms.variance for arms in moves)).value)
    return replace(machine, canary=_compute_middle(moves), shift=_compute_sure_shift(moves), wander=wander)


def _compute_middle(moves: Sequence[LogArms]) -> float:
    return median([arms.after - arms.before for arms in moves])


def name_shifts(machine: MachineShift) -> dict[str, float]:
    """Empty where none is notable."""
    # 0 where it is not known: eager speaks for the machine only over several cases.
    shifts = {"canary": machine.canary, "suite": machine.suite}
    is_notable = max(map(abs, shifts.values())) > NOTABLE_SHIFT
    return {name: shift for name, shift in shifts.items() if shift and is_notable}


def _compare_canaries(evidence: Evidence) -> dict[str, LogArms]:
    stored = evidence.host_baseline.canaries_s if evidence.host_baseline else {}
    after = collect_columns(trial.conditions.canaries_s for trial in evidence.trials)
    arms = {name: summarize_logs(stored[name], values) for name, values in after.items() if stored.get(name)}
    return {name: logs for name, logs in arms.items() if logs is not None}


def _compute_sure_shift(moves: Sequence[LogArms]) -> float:
    """The median change where it cannot be chance, else 0."""
    noise = pool_variances(*(arms.variance for arms in moves))
    if noise.df <= 0:
        return 0.0
    trials = fmean([1 / arms.after_trials + 1 / arms.before_trials for arms in moves])
    error = math.sqrt(noise.value * trials * MEDIAN_LOSS / len(moves))
    shift = _compute_middle(moves)
    return shift if abs(shift) > -compute_t_quantile((1 - INTERVAL_CONFIDENCE) / 2, noise.df) * error else 0.0


def measure_uneven(questions: Iterable[Question]) -> Variance:
    """Variance between two sessions of the cases' speedups, beyond the noise of their trials.

    A few cases that a change made slower do not move their median.
    """
    ratios = [
        question.logs for question in questions if question.logs and question.metric is Metric.WARM_SPEEDUP
    ]
    if len(ratios) < MIN_CASES_FOR_SUITE:
        return NOTHING_KNOWN
    middle = _compute_middle(ratios)
    spread = MEDIAN_DEVIATION * median(abs(question.after - question.before - middle) for question in ratios)
    noise = pool_variances(*(question.variance for question in ratios)).value
    sampling = noise * median(1 / question.after_trials + 1 / question.before_trials for question in ratios)
    return Variance(value=max(spread**2 - sampling, 0.0), df=math.inf)


def learn_session(days: Sequence[float], alpha: float) -> Variance:
    """Variance between two sessions, from a case's values of other days of the machine.

    It is twice their variance, the noise of their trials included, or SESSION where that gives a narrower
    interval at ``alpha``.
    """
    if len(days) < MIN_SESSIONS or min(days) <= 0:
        return SESSION
    variance = compute_variance(compute_logs(days))
    learned = replace(variance, value=2 * variance.value)
    return min(
        learned,
        SESSION,
        key=lambda variance: -compute_t_quantile(alpha, variance.df) * math.sqrt(variance.value),
    )


def learn_uneven(days: Sequence[float]) -> Variance:
    """From one day to the next: the median, as code changes on few days."""
    if len(days) < MIN_SESSIONS or min(days) <= 0:
        return NOTHING_KNOWN
    moves = [after - before for before, after in pairwise(compute_logs(days))]
    return Variance(value=median(move**2 for move in moves) / MEDIAN_SQUARE, df=math.inf)
