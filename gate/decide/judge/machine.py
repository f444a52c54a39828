"""How the machine of a run differs from that of its baselines, by fixed programs, eager and speedups.

Canaries are programs that the measured code cannot touch: what they show is the machine's.
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
from gate.decide.evidence.values import Evidence, Question
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

# What compiling is like. On a GPU's host it alone speaks of compile times: the card is another machine. In a
# virtual machine of 16 cores Python's speed varied by 80 %, and the card's by 1 %.
_HOST_CANARY = "python"
# What starting kernels is like, where the card waits for its host. The other canaries fill the card.
_LAUNCH_CANARY = "launch"
# What is told of the machine: a smaller shift leaves room within the smallest threshold, 5 %.
NOTABLE_SHIFT = 0.03


# What the machine's speed moves; ratios carry their own control.
BY_CLOCK = frozenset(metric for metric, spec in SPECS.items() if spec.unit == "s")
# What two sessions of a steady machine differ by, where its history does not say.
SESSION = Variance(value=SESSION_SD**2, df=math.inf)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine of a run against that of its baselines; changes are logarithms, + is slower."""

    canary: float | None = None  # the middle one of the canaries; ``None`` where unknown
    shift: float = 0.0  # of that what is more than chance: times are taken to be so much longer for its sake
    suite: float = 0.0  # median of eager's changes over the cases; 0 of too few
    suite_shift: float = 0.0  # of that what is more than chance
    wander: float = 0.0  # by how much a canary varies from trial to trial, a standard deviation
    host: Machine | None = None  # of a GPU: where its programs are compiled
    launches: Machine | None = None  # of a GPU: where its kernels are started
    is_host: bool = False  # one of these two

    @property
    def is_far(self) -> bool:
        """Whether its speed is another one: what a program takes elsewhere is no rule of three."""
        return abs(math.expm1(self.shift)) > FAR_LIMIT

    @property
    def session(self) -> Variance:
        """What two sessions of this machine differ by at least, as the variance of a logarithm.

        What a far machine's shift leaves of each program is as uncertain as the shift is large.
        """
        uneven = abs(self.shift) if self.is_far else 0.0
        return Variance(value=max(self.wander, uneven) ** 2, df=math.inf)

    def find_part(self, metric: Metric, *, fills: bool) -> Machine:
        """Which part a time is of: a GPU, or its host, which compiles and starts what ``fills`` no card."""
        if metric in COMPILE_TIMES:
            return self.host or self
        return self if fills or metric not in BY_CLOCK else self.launches or self

    def find_shift(self, metric: Metric, *, has_base: bool, fills: bool = False) -> float:
        """By how much a time is longer for the machine's sake, as a logarithm.

        Without a base that of all cases' eager calls is the machine's too, for want of a better witness. Of
        kernels that fill a card the card is the better one: eager's may wait for the host.
        """
        if metric not in BY_CLOCK:
            return 0.0
        of_suite = self.suite_shift if metric in LATENCIES and not has_base and not fills else 0.0
        return of_suite or self.find_part(metric, fills=fills).shift


def fills_device(evidence: Evidence) -> bool:
    """Whether the kernels of a case keep a GPU busy, so that its host's speed hardly shows in its calls."""
    busy = evidence.values.get(Metric.DEVICE_UTILIZATION)
    return bool(busy and median(busy) >= FILLED_DEVICE)


def explain_open(evidence: Evidence, metric: Metric, part: Machine | None = None) -> tuple[Fact, ...]:
    """Why a GPU's time stays open: calls wait for the host, and ``part`` of it varies from trial to trial."""
    facts = []
    if metric in LATENCIES and not fills_device(evidence):
        busy = evidence.values.get(Metric.DEVICE_UTILIZATION)
        facts += [Fact(code=Code.WAITS_FOR_HOST, numbers={"busy": median(busy)})] if busy else []
    if part is not None and part.is_host and part.wander > NOTABLE_SHIFT:
        facts.append(Fact(code=Code.HOST_VARIES, numbers={"sd": math.expm1(part.wander)}))
    return tuple(facts)


def compare_machine(evidence: Sequence[Evidence]) -> Machine:
    """Compare the canaries with those of the baselines, and eager with eager over the cases.

    Each canary's change is the median over the cases, and the machine's that of the one or two in the
    middle. A GPU's host is compared apart: its cores may be shared where the card is not.
    """
    moves = collect_columns(map(_compare_canaries, evidence))
    asked = (one.questions.get(Metric.EAGER_LATENCY) for one in evidence)
    eager = [question.logs for question in asked if question and question.logs]
    machine = Machine()
    if len(eager) >= MIN_CASES_FOR_SUITE:
        machine = Machine(suite=_find_middle(eager), suite_shift=_find_sure_shift(eager))
    if any(is_gpu(one.host_baseline.environment.device_kind) for one in evidence if one.host_baseline):
        apart = {
            name: _read_canary(moves.pop(name), Machine(is_host=True))
            for name in (_HOST_CANARY, _LAUNCH_CANARY)
            if name in moves
        }
        machine = replace(machine, host=apart.get(_HOST_CANARY), launches=apart.get(_LAUNCH_CANARY))
    if not moves:
        return machine
    ordered = sorted(moves.values(), key=_find_middle)
    middle = [arms for found in ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1] for arms in found]
    return _read_canary(middle, machine)


def _read_canary(moves: Sequence[LogArms], machine: Machine) -> Machine:
    wander = math.sqrt(pool_variances(*(arms.variance for arms in moves)).value)
    return replace(machine, canary=_find_middle(moves), shift=_find_sure_shift(moves), wander=wander)


def _find_middle(moves: Sequence[LogArms]) -> float:
    return median([arms.after - arms.before for arms in moves])


def make_machine_shift(machine: Machine) -> MachineShift:
    """The shifts as a record of fractions; ``known`` says whether there were canaries to compare."""
    return MachineShift(
        canary=math.expm1(machine.canary or 0.0),
        suite=math.expm1(machine.suite),
        known=machine.canary is not None,
    )


def name_shifts(machine: MachineShift) -> dict[str, float]:
    """By how much the machine changed, under the names of a fact's numbers; none where it is not notable."""
    # 0 where it is not known: eager speaks for the machine only over several cases.
    shifts = {"canary": machine.canary, "suite": machine.suite}
    is_notable = max(map(abs, shifts.values())) > NOTABLE_SHIFT
    return {name: shift for name, shift in shifts.items() if shift and is_notable}


def _compare_canaries(one: Evidence) -> dict[str, LogArms]:
    stored = one.host_baseline.canaries_s if one.host_baseline else {}
    after = collect_columns(trial.conditions.canaries_s for trial in one.trials)
    arms = {name: summarize_logs(stored[name], values) for name, values in after.items() if stored.get(name)}
    return {name: found for name, found in arms.items() if found is not None}


def _find_sure_shift(moves: Sequence[LogArms]) -> float:
    """The median change where it cannot be chance, else 0; the noise of one trial a side is unknown."""
    noise = pool_variances(*(arms.variance for arms in moves))
    if noise.df <= 0:
        return 0.0
    trials = fmean([1 / arms.after_trials + 1 / arms.before_trials for arms in moves])
    error = math.sqrt(noise.value * trials * MEDIAN_LOSS / len(moves))
    shift = _find_middle(moves)
    return shift if abs(shift) > -compute_t_quantile((1 - INTERVAL_CONFIDENCE) / 2, noise.df) * error else 0.0


def measure_uneven(questions: Iterable[Question]) -> Variance:
    """What speedups differ by between two sessions: what the cases' changes show beside their trials' noise.

    By the median, which those that a change made slower do not move while they are few.
    """
    ratios = [one.logs for one in questions if one.logs and one.metric is Metric.WARM_SPEEDUP]
    if len(ratios) < MIN_CASES_FOR_SUITE:
        return NOTHING_KNOWN
    middle = _find_middle(ratios)
    spread = MEDIAN_DEVIATION * median(abs(one.after - one.before - middle) for one in ratios)
    noise = pool_variances(*(one.variance for one in ratios)).value
    sampling = noise * median(1 / one.after_trials + 1 / one.before_trials for one in ratios)
    return Variance(value=max(spread**2 - sampling, 0.0), df=math.inf)


def learn_session(days: Sequence[float], alpha: float) -> Variance:
    """What two sessions differ by in a time or ratio of a case, by its values of other days of the machine.

    It is twice their variance, the noise of their trials included. What is assumed stands where the quantile
    of so few days, at ``alpha``, would make it wider, or where code that changed meanwhile does.
    """
    if len(days) < MIN_SESSIONS or min(days) <= 0:
        return SESSION
    variance = compute_variance(compute_logs(days))
    learned = replace(variance, value=2 * variance.value)
    return min(learned, SESSION, key=lambda one: -compute_t_quantile(alpha, one.df) * math.sqrt(one.value))


def learn_uneven(days: Sequence[float]) -> Variance:
    """What most speedups of a case differed by from the day before: code changes on few days."""
    if len(days) < MIN_SESSIONS or min(days) <= 0:
        return NOTHING_KNOWN
    moves = [after - before for before, after in pairwise(compute_logs(days))]
    return Variance(value=median(move**2 for move in moves) / MEDIAN_SQUARE, df=math.inf)
