"""Judges one case by stored values: they are of another session of the machine, which is measured too.

So they convict only what is surely beyond its limit, and where that could have another reason they leave it
open: to more trials, or to pairs with the base. How the machine differs from when the baselines were recorded
is read off the canaries, fixed programs that the measured code cannot touch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from gate.decide.constants import (
    ALONE_EDGES,
    BASE_EDGES,
    CLEAR_CONFIDENCE,
    FAR_LIMIT,
    INTERVAL_CONFIDENCE,
    MIN_BASELINE_TRIALS,
    MIN_CASES_FOR_SUITE,
    SESSION_SD,
    SHARED_SHARE,
)
from gate.decide.evidence.programs import Work, compare_work, runs_stored_code
from gate.decide.evidence.values import Evidence, Question
from gate.decide.judge.compare import follow_leaders, judge_steady, list_comparisons, make_finding
from gate.decide.judge.counted import (
    NO_COUNT_RULES,
    CountRules,
    count_chances,
    count_repeats,
    find_flickering,
)
from gate.decide.judge.interval import BETTER, CLEAR, OPEN, WORSE, Bar, Level, Reading, Ruling, read_stored
from gate.decide.stats import (
    LogArms,
    Variance,
    compute_priors,
    compute_t_quantile,
    pool_variances,
    summarize_logs,
)
from gate.devices import is_gpu
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Role, Scope
from gate.records.cases import Metric, Policy, collect_columns
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Comparison, MachineShift, Reason, Status

# Variance of the median of many normal values over that of their mean; for few it is less.
_MEDIAN_LOSS = math.pi / 2
# Standard deviation of normal values over their median absolute deviation.
_MEDIAN_DEVIATION = 1.4826
# What compiling is like. On a GPU's host it alone speaks of compile times: the card is another machine. In a
# virtual machine of 16 cores Python's speed varied by 80 %, and the card's by 1 %.
_HOST_CANARY = "python"
# What is told of the machine: a smaller shift leaves room within the smallest threshold, 5 %.
NOTABLE_SHIFT = 0.03


# What the machine's speed moves; ratios carry their own control.
_BY_CLOCK = frozenset(metric for metric, spec in SPECS.items() if spec.unit == "s")
# What two sessions of a steady machine differ by.
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

    def find_part(self, metric: Metric) -> Machine:
        """Which of the two a time is of: a GPU, or its host, which compiles."""
        return self.host or self if metric in COMPILE_TIMES else self

    def find_shift(self, metric: Metric, *, has_base: bool) -> float:
        """By how much a time is longer for the machine's sake, as a logarithm.

        Without a base that of all cases' eager calls is the machine's too, for want of a better witness.
        """
        if metric not in _BY_CLOCK:
            return 0.0
        of_suite = self.suite_shift if metric in LATENCIES and not has_base else 0.0
        return of_suite or self.find_part(metric).shift


def compare_machine(evidence: Sequence[Evidence]) -> Machine:
    """Compare the canaries with those of the baselines, and eager with eager over the cases.

    Each canary's change is the median over the cases, and the machine's that of the one or two in the
    middle. A GPU's host is compared apart.
    """
    moves = collect_columns(map(_compare_canaries, evidence))
    asked = (one.questions.get(Metric.EAGER_LATENCY) for one in evidence)
    eager = [question.logs for question in asked if question and question.logs]
    machine = Machine()
    if len(eager) >= MIN_CASES_FOR_SUITE:
        machine = Machine(suite=_find_middle(eager), suite_shift=_find_sure_shift(eager))
    if not moves:
        return machine
    ordered = sorted(moves.values(), key=_find_middle)
    middle = [arms for found in ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1] for arms in found]
    has_host = any(is_gpu(one.host_baseline.environment.device_kind) for one in evidence if one.host_baseline)
    host = _read_canary(moves[_HOST_CANARY], Machine()) if has_host and _HOST_CANARY in moves else None
    return _read_canary(middle, replace(machine, host=host))


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
    error = math.sqrt(noise.value * trials * _MEDIAN_LOSS / len(moves))
    shift = _find_middle(moves)
    return shift if abs(shift) > -compute_t_quantile((1 - INTERVAL_CONFIDENCE) / 2, noise.df) * error else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgingRules:
    """What one case's judgement needs from all the others: error budget and priors."""

    alpha: float  # one-sided, for each deciding noisy comparison
    priors: Mapping[Metric, Mapping[str, Variance]]  # by case
    counts: CountRules = NO_COUNT_RULES
    has_base: bool = False  # pairs with it settle what stored values leave open
    uneven: Variance = SESSION  # what the cases' speedups differ by between two sessions

    def find_session(self, metric: Metric, machine: Machine) -> Variance:
        """What two sessions differ by in this metric of a case, as the variance of a logarithm."""
        sessions = [machine.find_part(metric).session if metric in _BY_CLOCK else SESSION]
        if metric in {Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP}:
            sessions.append(self.uneven)
        return max(sessions, key=lambda one: one.value)


def make_rules(evidence: Sequence[Evidence], policy: Policy, *, has_base: bool) -> JudgingRules:
    """Divide the error budget and learn priors from all the cases."""
    questions = [question for one in evidence for question in one.questions.values()]
    asked = [one for one in questions if one.logs]
    flickering = find_flickering(count_repeats(questions))
    deciding = sum(one.spec.role is Role.DECIDES and len(one.before) >= MIN_BASELINE_TRIALS for one in asked)
    deciding += count_chances(flickering) * len(evidence)
    variances: dict[Metric, dict[str, Variance]] = {}
    for one in asked:
        if one.logs:
            variances.setdefault(one.metric, {})[one.case.id] = one.logs.variance
    return JudgingRules(
        alpha=policy.error_budget / (max(deciding, 1) * policy.looks),
        priors={metric: compute_priors(known, trusts_own=True) for metric, known in variances.items()},
        counts=CountRules(alpha=policy.error_budget / max(deciding, 1), flickering=flickering),
        has_base=has_base,
        uneven=SESSION if has_base else _measure_uneven(asked),
    )


def _measure_uneven(questions: Iterable[Question]) -> Variance:
    """What speedups differ by between two sessions: what the cases' changes show beside their trials' noise.

    By the median, which those that a change made slower do not move while they are few.
    """
    ratios = [one.logs for one in questions if one.logs and one.metric is Metric.WARM_SPEEDUP]
    if len(ratios) < MIN_CASES_FOR_SUITE:
        return SESSION
    middle = _find_middle(ratios)
    spread = _MEDIAN_DEVIATION * median(abs(one.after - one.before - middle) for one in ratios)
    noise = pool_variances(*(one.variance for one in ratios)).value
    sampling = noise * median(1 / one.after_trials + 1 / one.before_trials for one in ratios)
    return Variance(value=max(spread**2 - sampling, SESSION.value), df=math.inf)


_SAME: Ruling = (Status.UNCHANGED, Reason.SAME_WORK)
_SHARED: Ruling = (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """The readings of one case that more than one metric is judged by."""

    readings: Mapping[Metric, Reading]
    bars: Mapping[Metric, Bar]
    work: Work
    stored_code: bool = False  # a call runs nothing but the code that the baseline's compile made
    suite: float = 0.0  # median change of eager over the cases
    has_base: bool = False  # pairs settle what is left open

    def is_longer(self, metric: Metric) -> bool:
        """Whether a compile is estimated beyond its edge: a cold one by CPU time, too, where that is known.

        Without a base no more could be found out of a cold one that did the same work.
        """
        reading, bar = self.readings[metric], self.bars[metric]
        if metric is Metric.COLD_COMPILE_TIME:
            processor = math.inf if self.work.processor is None else self.work.processor
            return self.has_base and min(processor, reading.change) > bar.find_edge(reading)
        return bar.is_exceeded_by(reading)

    def mirror(self) -> Times:
        """The same with better and worse exchanged."""
        mirrored = {metric: reading.mirror() for metric, reading in self.readings.items()}
        return replace(self, readings=mirrored, work=self.work.mirror())


def compare_case(evidence: Evidence, rules: JudgingRules, machine: Machine) -> tuple[Comparison, ...]:
    """All comparisons of one case with its stored baselines, on the machine that it ran at."""
    questions = evidence.questions
    shifts = {metric: machine.find_shift(metric, has_base=rules.has_base) for metric in questions}
    readings = {
        metric: read_stored(
            metric,
            question.logs,
            rules.priors[metric][evidence.case.id],
            rules.find_session(metric, machine),
            shifts[metric],
        )
        for metric, question in questions.items()
        if question.logs is not None
    }
    edges = BASE_EDGES if rules.has_base else ALONE_EDGES
    times = Times(
        readings=readings,
        bars={
            metric: Bar(alpha=rules.alpha, threshold=questions[metric].threshold, edges=edges)
            for metric in readings
        },
        work=compare_work(evidence),
        stored_code=runs_stored_code(evidence),
        suite=machine.suite,
        has_base=rules.has_base,
    )
    findings = {}
    for metric, question in questions.items():
        part = machine.find_part(metric)
        if metric not in readings:
            findings[metric] = judge_steady(question, rules.counts)
        elif question.spec.scope is Scope.HOST and not rules.has_base and part.is_far:
            # The machine runs at another speed, and no base is at hand.
            status, reason = Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT
            findings[metric] = question.find(status, reason, remarks=_name_speed(part.shift))
        else:
            reading, bar, remarks = readings[metric], times.bars[metric], _name_speed(shifts[metric])
            ruling: Ruling | None = judge_time(metric, times)
            if question.upgrade:
                ruling = _judge_upgraded(reading, bar)
                remarks = (Fact(code=Code.SINCE_UPGRADE, names={"differences": question.upgrade}),)
            if ruling is not None:
                change = reading.make_change(bar.compute_detectable(reading))
                findings[metric] = make_finding(question, reading, ruling, change, remarks)
    return list_comparisons(evidence, follow_leaders(findings))


def _judge_upgraded(reading: Reading, bar: Bar) -> Ruling | None:
    """What got worse since an upgrade that pairs cannot see; else ``None``. More trials make it sure."""
    if not bar.is_exceeded_by(reading) or reading.compute_bound(1 - CLEAR_CONFIDENCE) <= 0:
        return None
    is_sure = bar.find_level(reading) is Level.BEYOND
    return Status.INCONCLUSIVE, Reason.OTHER_ENVIRONMENT if is_sure else Reason.UNSETTLED


def _name_speed(shift: float) -> tuple[Fact, ...]:
    """By how much times are longer for the machine's sake, where that is known and worth a word."""
    numbers = {"shift": math.expm1(shift)}
    return (Fact(code=Code.MACHINE_SPEED, numbers=numbers),) if abs(shift) > NOTABLE_SHIFT else ()


def judge_time(metric: Metric, times: Times) -> Ruling:
    """Judge one metric; the rule is in docs/decision.md."""
    reading, bar = times.readings[metric], times.bars[metric]
    if reading.baseline_trials < MIN_BASELINE_TRIALS:
        return Status.INCONCLUSIVE, Reason.FEW_TRIALS
    ruling = _find_worse(metric, times)
    if ruling is not None:
        return ruling
    if reading.change < 0 and _find_worse(metric, times.mirror()) == WORSE:
        return BETTER
    is_clear = bar.find_level(reading) is Level.CLEAR
    if metric is Metric.COMPILED_LATENCY and Metric.WARM_SPEEDUP in times.readings:
        return _clear_calls(times, is_clear=is_clear)
    if metric in COMPILE_TIMES and not is_clear and times.work.is_same(metric):
        return OPEN if times.is_longer(metric) else _SAME
    return CLEAR if is_clear else OPEN


def _find_worse(metric: Metric, times: Times) -> Ruling | None:
    """REGRESSED where it surely is, INCONCLUSIVE where that may not be the program; else ``None``."""
    reading, bar = times.readings[metric], times.bars[metric]
    is_beyond = bar.find_level(reading) is Level.BEYOND
    if metric is Metric.COMPILED_LATENCY and Metric.WARM_SPEEDUP in times.readings:
        ratio, ratio_bar = times.readings[Metric.WARM_SPEEDUP], times.bars[Metric.WARM_SPEEDUP]
        # A ratio that eager's own gain has moved is sure of nothing that compiled did.
        is_sure = is_beyond or (ratio_bar.find_level(ratio) is Level.BEYOND and not _is_eager_faster(times))
        if is_sure and ratio_bar.is_exceeded_by(ratio) and bar.is_exceeded_by(reading):
            return WORSE
        return _SHARED if is_beyond else None
    if not is_beyond:
        return None
    if metric in COMPILE_TIMES and not times.work.explains(metric):
        return Status.INCONCLUSIVE, Reason.UNCORROBORATED
    return WORSE


def _clear_calls(times: Times, *, is_clear: bool) -> Ruling:
    """What the ratio says where the clock of compiled calls ``is_clear``, or leaves them open."""
    ratio, bar = times.readings[Metric.WARM_SPEEDUP], times.bars[Metric.WARM_SPEEDUP]
    keeps_pace = bar.find_level(ratio) is Level.CLEAR
    if is_clear:
        return CLEAR if keeps_pace or _is_eager_faster(times) else OPEN
    if not keeps_pace:
        return OPEN
    # Slower by what matters, for sure, and the suite is not: eager got as much slower, by something that both
    # share. One case alone has no such machine.
    latency, latency_bar = times.readings[Metric.COMPILED_LATENCY], times.bars[Metric.COMPILED_LATENCY]
    low = latency.compute_bound(1 - CLEAR_CONFIDENCE) - max(times.suite, 0.0)
    if latency_bar.is_exceeded_by(latency) and low > 0:
        return _SHARED
    return _SAME if times.stored_code else OPEN


def _is_eager_faster(times: Times) -> bool:
    eager = times.readings.get(Metric.EAGER_LATENCY)
    fall = times.readings[Metric.WARM_SPEEDUP].change
    return eager is not None and -eager.change >= SHARED_SHARE * fall
