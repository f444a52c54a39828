"""Judges one case by stored values, which are of another session of the machine.

They convict only what is surely beyond its threshold and can have no other reason. The rest stays open: to
more trials, or to pairs with the base.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.decide.constants import ALONE_EDGES, BASE_EDGES, CLEAR_CONFIDENCE, MIN_BASELINE_TRIALS, SHARED_SHARE
from gate.decide.evidence.compiles import Work, compare_work, runs_stored_code
from gate.decide.evidence.gather import Evidence
from gate.decide.judge.compare import follow_leaders, judge_steady, list_comparisons
from gate.decide.judge.comparison import answer_question
from gate.decide.judge.counted import (
    NO_COUNT_RULES,
    CountRules,
    count_chances,
    count_repeats,
    find_flickering,
)
from gate.decide.judge.interval import (
    BETTER,
    UNCHANGED,
    UNSETTLED,
    WORSE,
    Bar,
    Level,
    Reading,
    Ruling,
    read_stored,
)
from gate.decide.judge.machine import (
    BY_CLOCK,
    NOTABLE_SHIFT,
    Machine,
    explain_open,
    fills_device,
    learn_session,
    learn_uneven,
    measure_uneven,
)
from gate.decide.stats import NOTHING_KNOWN, Variance, compute_priors
from gate.metrics import COMPILE_TIMES, Role, Scope
from gate.records.cases import Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Comparison, Reason, Status

_SAME: Ruling = (Status.UNCHANGED, Reason.SAME_WORK)
_SHARED: Ruling = (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgingRules:
    alpha: float  # one-sided, for each deciding noisy comparison
    priors: Mapping[Metric, Mapping[str, Variance]]  # by case
    counts: CountRules = NO_COUNT_RULES
    has_base: bool = False  # pairs with it settle what stored values leave open
    uneven: Variance = NOTHING_KNOWN  # what the cases' speedups differ by between two sessions
    days: Mapping[str, Mapping[Metric, Sequence[float]]] = field(default_factory=dict)  # see Policy

    def choose_session(self, case_id: str, metric: Metric, part: Machine) -> Variance:
        days = self.days.get(case_id, {})
        sessions = [learn_session(days.get(metric, ()), self.alpha)]
        if metric in BY_CLOCK:
            sessions.append(part.session)
        if metric in {Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP}:
            sessions += [self.uneven, learn_uneven(days.get(Metric.WARM_SPEEDUP, ()))]
        return max(sessions, key=lambda variance: variance.value)


def make_rules(evidence: Sequence[Evidence], policy: Policy, *, has_base: bool) -> JudgingRules:
    questions = [question for case in evidence for question in case.questions.values()]
    asked = [question for question in questions if question.logs]
    flickering = find_flickering(count_repeats(questions))
    deciding = sum(
        question.spec.role is Role.DECIDES and len(question.before) >= MIN_BASELINE_TRIALS
        for question in asked
    )
    deciding += count_chances(flickering) * len(evidence)
    variances: dict[Metric, dict[str, Variance]] = {}
    for question, logs in ((question, question.logs) for question in questions if question.logs):
        variances.setdefault(question.metric, {})[question.case.id] = logs.variance
    return JudgingRules(
        alpha=policy.error_budget / (max(deciding, 1) * policy.times_judged),
        priors={metric: compute_priors(of_cases, trusts_own=True) for metric, of_cases in variances.items()},
        counts=CountRules(alpha=policy.error_budget / max(deciding, 1), flickering=flickering),
        has_base=has_base,
        uneven=NOTHING_KNOWN if has_base else measure_uneven(asked),
        days=policy.days,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    readings: Mapping[Metric, Reading]
    bars: Mapping[Metric, Bar]
    work: Work
    stored_code: bool = False  # a call runs nothing but the code that the baseline's compile made
    suite: float = 0.0  # median change of eager over the cases
    has_base: bool = False  # pairs settle what is left open

    def is_longer(self, metric: Metric) -> bool:
        """A cold compile by CPU time, too, where that is known; never without a base."""
        reading, bar = self.readings[metric], self.bars[metric]
        if metric is Metric.COLD_COMPILE_TIME:
            processor = math.inf if self.work.processor is None else self.work.processor
            return self.has_base and min(processor, reading.change) > bar.compute_log_edge(reading)
        return bar.is_exceeded_by(reading)

    def mirror(self) -> Times:
        mirrored = {metric: reading.mirror() for metric, reading in self.readings.items()}
        return replace(self, readings=mirrored, work=self.work.mirror())


def compare_case(evidence: Evidence, rules: JudgingRules, machine: Machine) -> tuple[Comparison, ...]:
    questions, fills = evidence.questions, fills_device(evidence)
    parts = {metric: machine.get_part(metric, fills=fills) for metric in questions}
    shifts = {
        metric: machine.compute_shift(metric, has_base=rules.has_base, fills=fills) for metric in questions
    }
    readings = {
        metric: read_stored(
            metric,
            question.logs,
            rules.priors[metric][evidence.case.id],
            rules.choose_session(evidence.case.id, metric, parts[metric]),
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
        part = parts[metric]
        if metric not in readings:
            findings[metric] = judge_steady(question, rules.counts)
        elif question.spec.scope is Scope.HOST and not rules.has_base and part.is_far:
            # The machine runs at another speed, and no base is at hand.
            elsewhere = Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT
            findings[metric] = answer_question(question, elsewhere, *_name_speed(part.shift))
        else:
            reading, bar, remarks = readings[metric], times.bars[metric], _name_speed(shifts[metric])
            ruling: Ruling | None = judge_time(metric, times)
            if question.upgrade:
                ruling = _judge_upgraded(reading, bar)
                remarks = (Fact(code=Code.SINCE_UPGRADE, names={"differences": question.upgrade}),)
            if ruling == UNSETTLED:
                remarks += explain_open(evidence, metric, part)
            if ruling is not None:
                change = reading.make_change(bar.compute_detectable(reading))
                findings[metric] = answer_question(question, ruling, *remarks, change=change, reading=reading)
    return list_comparisons(evidence, follow_leaders(findings))


def _judge_upgraded(reading: Reading, bar: Bar) -> Ruling | None:
    """What got worse since an upgrade that pairs cannot show; else ``None``."""
    if not bar.is_exceeded_by(reading) or reading.compute_bound(1 - CLEAR_CONFIDENCE) <= 0:
        return None
    is_sure = bar.classify(reading) is Level.BEYOND
    return Status.INCONCLUSIVE, Reason.OTHER_ENVIRONMENT if is_sure else Reason.UNSETTLED


def _name_speed(shift: float) -> tuple[Fact, ...]:
    """By how much times are longer because of the machine, where that is notable."""
    numbers = {"shift": math.expm1(shift)}
    return (Fact(code=Code.MACHINE_SPEED, numbers=numbers),) if abs(shift) > NOTABLE_SHIFT else ()


def judge_time(metric: Metric, times: Times) -> Ruling:
    """By the rules of docs/decision.md."""
    reading, bar = times.readings[metric], times.bars[metric]
    if reading.baseline_trials < MIN_BASELINE_TRIALS:
        return Status.INCONCLUSIVE, Reason.FEW_TRIALS
    ruling = _judge_worse(metric, times)
    if ruling is not None:
        return ruling
    if -reading.change > bar.compute_log_edge(reading) and _judge_worse(metric, times.mirror()) == WORSE:
        return BETTER
    is_clear = bar.classify(reading) is Level.CLEAR
    if metric is Metric.COMPILED_LATENCY and Metric.WARM_SPEEDUP in times.readings:
        return _clear_calls(times, is_clear=is_clear)
    if metric in COMPILE_TIMES and not is_clear and times.work.is_same(metric):
        return UNSETTLED if times.is_longer(metric) else _SAME
    return UNCHANGED if is_clear else UNSETTLED


def _judge_worse(metric: Metric, times: Times) -> Ruling | None:
    """REGRESSED where it surely is, INCONCLUSIVE where that may not be the program; else ``None``."""
    reading, bar = times.readings[metric], times.bars[metric]
    is_beyond = bar.classify(reading) is Level.BEYOND
    if metric is Metric.COMPILED_LATENCY and Metric.WARM_SPEEDUP in times.readings:
        ratio, ratio_bar = times.readings[Metric.WARM_SPEEDUP], times.bars[Metric.WARM_SPEEDUP]
        # A ratio that eager's own gain has moved is sure of nothing that compiled did.
        is_sure = is_beyond or (ratio_bar.classify(ratio) is Level.BEYOND and not _is_eager_faster(times))
        if is_sure and ratio_bar.is_exceeded_by(ratio) and bar.is_exceeded_by(reading):
            return WORSE
        return _SHARED if is_beyond else None
    if not is_beyond:
        return None
    if metric in COMPILE_TIMES and not times.work.explains(metric):
        return Status.INCONCLUSIVE, Reason.UNCORROBORATED
    return WORSE


def _clear_calls(times: Times, *, is_clear: bool) -> Ruling:
    """Compiled latency that is not worse: its clock ``is_clear`` or open, so the ratio counts."""
    ratio, bar = times.readings[Metric.WARM_SPEEDUP], times.bars[Metric.WARM_SPEEDUP]
    keeps_pace = bar.classify(ratio) is Level.CLEAR
    if is_clear:
        return UNCHANGED if keeps_pace or _is_eager_faster(times) else UNSETTLED
    if not keeps_pace:
        return UNSETTLED
    # Surely slower than the suite, by what matters, and eager as much: something that both share got slower.
    latency, latency_bar = times.readings[Metric.COMPILED_LATENCY], times.bars[Metric.COMPILED_LATENCY]
    low = latency.compute_bound(1 - CLEAR_CONFIDENCE) - max(times.suite, 0.0)
    if latency_bar.is_exceeded_by(latency) and low > 0:
        return _SHARED
    return _SAME if times.stored_code else UNSETTLED


def _is_eager_faster(times: Times) -> bool:
    eager = times.readings.get(Metric.EAGER_LATENCY)
    fall = times.readings[Metric.WARM_SPEEDUP].change
    return eager is not None and -eager.change >= SHARED_SHARE * fall
