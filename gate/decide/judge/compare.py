"""One comparison per case and metric: finds the two sides, their thresholds, and lets the family judge."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from gate.decide.constants import ALONE_EDGES, BASE_EDGES, MIN_BASELINE_TRIALS, SESSION_SD
from gate.decide.evidence.proxies import compare_work, runs_stored_code
from gate.decide.evidence.values import Evidence, Question, find_worst
from gate.decide.judge.families import (
    Times,
    follow_leader,
    follow_misses,
    judge_drift_alone,
    judge_steady,
    judge_time,
    make_finding,
)
from gate.decide.judge.interval import Bar, compute_detectable, make_change, read_stored
from gate.decide.judge.machine import NOTABLE_SHIFT, Machine
from gate.decide.stats import Variance, compute_prior, estimate_metric, summarize_logs
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS, Family, Role, Scope
from gate.records import (
    MAYBE_WORSE,
    Code,
    Comparison,
    Fact,
    Metric,
    Policy,
    Reason,
    Status,
    Threshold,
    quote_failure,
)
from gate.records.cases import group_by

# What the machine's speed moves; ratios carry their own control.
_BY_CLOCK = frozenset(metric for metric, spec in SPECS.items() if spec.unit == "s")
# What two sessions of a steady machine differ by.
SESSION = Variance(value=SESSION_SD**2, df=math.inf)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgingRules:
    """What one case's judgement needs from all the others: error budget, priors and the machine."""

    alpha: float  # one-sided, for each deciding noisy comparison
    priors: Mapping[Metric, Variance]
    machine: Machine
    has_base: bool = False  # pairs with it settle what stored values leave open

    def find_machine(self, metric: Metric) -> Machine:
        """Which of the two a time is of: a GPU, or its host, which compiles."""
        return self.machine.host or self.machine if metric in COMPILE_TIMES else self.machine

    def find_shift(self, metric: Metric) -> float:
        """By how much a time is longer for the machine's sake, as a logarithm.

        Without a base that of all cases' eager calls is the machine's too, for want of a better witness.
        """
        if metric not in _BY_CLOCK:
            return 0.0
        is_call = metric in LATENCIES and not self.has_base
        if is_call and self.machine.suite_shift:
            return self.machine.suite_shift
        return self.find_machine(metric).shift


def make_rules(
    evidence: Iterable[Evidence], policy: Policy, machine: Machine, *, has_base: bool
) -> JudgingRules:
    """Divide the error budget and learn priors from all the cases."""
    asked = [question for one in evidence for question in one.questions.values() if question.logs]
    deciding = sum(one.spec.role is Role.DECIDES and len(one.before) >= MIN_BASELINE_TRIALS for one in asked)
    variances = group_by(asked, lambda one: one.metric)
    return JudgingRules(
        alpha=policy.error_budget / (max(deciding, 1) * policy.looks),
        priors={
            metric: compute_prior([one.logs.variance for one in found if one.logs])
            for metric, found in variances.items()
        },
        machine=machine,
        has_base=has_base,
    )


def find_threshold(policy: Policy, case_id: str, metric: Metric, *, in_pairs: bool = False) -> Threshold:
    """The threshold in force: the policy's or the metric's own, under the last override that fits.

    A policy names every metric, so a part that is the metric's default has said nothing about pairs. A part
    that an override leaves out stays.
    """
    spec = SPECS[metric]
    own, usual, paired = policy.thresholds.get(metric, spec.threshold), spec.threshold, spec.side_by_side
    if in_pairs:
        own = Threshold(
            relative=paired.relative if own.relative == usual.relative else own.relative,
            absolute=paired.absolute if own.absolute == usual.absolute else own.absolute,
        )
    for override in reversed(policy.overrides):
        if override.metric is metric and policy.fits(override.case, case_id):
            return Threshold(
                relative=own.relative if override.relative is None else override.relative,
                absolute=own.absolute if override.absolute is None else override.absolute,
            )
    return own


AnyEvidence = TypeVar("AnyEvidence", bound=Evidence)


def pose_questions(evidence: AnyEvidence, policy: Policy, *, in_pairs: bool = False) -> AnyEvidence:
    """Ask about the metrics that both sides have, each with its threshold."""
    questions = {}
    for metric in evidence.list_metrics():
        baseline = evidence.find_baseline(metric)
        if baseline is not None and metric in evidence.values:
            before, after = baseline.trials[metric], evidence.values[metric]
            noisy = SPECS[metric].family is Family.NOISY
            questions[metric] = Question(
                case=evidence.case,
                metric=metric,
                before=before,
                after=after,
                threshold=find_threshold(policy, evidence.case.id, metric, in_pairs=in_pairs),
                logs=summarize_logs(before, after) if noisy else None,
            )
    return replace(evidence, questions=questions)


# A case that failed or did not run has one comparison of its own, under this metric.
CASE_METRIC = Metric.COMPILED_LATENCY


def compare_case(evidence: Evidence, rules: JudgingRules) -> tuple[Comparison, ...]:
    """All comparisons of one case with its stored baselines."""
    questions = evidence.questions
    readings = {
        metric: read_stored(
            metric,
            question.logs,
            rules.priors[metric],
            rules.find_machine(metric).session if metric in _BY_CLOCK else SESSION,
            rules.find_shift(metric),
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
        suite=rules.machine.suite or 0.0,
    )
    findings = {}
    for metric, question in questions.items():
        if metric not in readings:
            findings[metric] = judge_steady(question)
        elif question.spec.scope is Scope.HOST and not rules.has_base and rules.find_machine(metric).is_far:
            # The machine runs at another speed, and no base is at hand.
            speed = _name_speed(rules.find_machine(metric).shift)
            findings[metric] = question.find(Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT, remarks=speed)
        else:
            reading, speed = readings[metric], _name_speed(rules.find_shift(metric))
            change = make_change(reading, compute_detectable(reading, times.bars[metric]))
            findings[metric] = make_finding(question, reading, judge_time(metric, times), change, speed)
    return list_comparisons(evidence, follow_leaders(findings))


def list_comparisons(evidence: Evidence, findings: Mapping[Metric, Comparison]) -> tuple[Comparison, ...]:
    """What was found of a case, and the metrics that only one side has.

    A failure is one more comparison: what was measured is judged too.
    """
    whole = _compare_whole(evidence)
    if not evidence.trials:
        return whole
    rows = []
    for metric in evidence.list_metrics():
        row = findings.get(metric) or _find_unmatched(evidence, metric)
        if row is None:
            continue
        drifted = SPECS[metric].family is Family.LOG2 and row.status in MAYBE_WORSE
        worst = find_worst(evidence.trials, metric) if drifted else None  # the output that drifted most
        rows.append(replace(row, remarks=(*row.remarks, worst)) if worst else row)
    if not (whole or rows):
        nothing = Fact(code=Code.NOTHING_MEASURED)
        return (evidence.find_alone(CASE_METRIC, Status.MISSING, Reason.NOT_RUN, nothing),)
    return (*whole, *rows)


def _compare_whole(evidence: Evidence) -> tuple[Comparison, ...]:
    """The comparison that names a case which failed or did not run, or not as often as was planned."""
    if evidence.failures:
        if evidence.case.is_removed:
            return (evidence.find_alone(CASE_METRIC, Status.MISSING, Reason.REMOVED),)
        failed = quote_failure(Code.FAILURE, evidence.failures[0])
        return (evidence.find_alone(CASE_METRIC, Status.FAILED, Reason.CASE_FAILED, failed),)
    came, planned = len(evidence.trials), evidence.planned
    if not came:
        return (evidence.find_alone(CASE_METRIC, Status.MISSING, Reason.NOT_RUN),)
    if came < planned:
        few = Fact(code=Code.TRIALS_CAME, numbers={"came": came, "planned": planned})
        return (evidence.find_alone(CASE_METRIC, Status.MISSING, Reason.NOT_RUN, few),)
    return ()


def _name_speed(shift: float) -> tuple[Fact, ...]:
    """By how much times are longer for the machine's sake, where that is known and worth a word."""
    numbers = {"shift": math.expm1(shift)}
    return (Fact(code=Code.MACHINE_SPEED, numbers=numbers),) if abs(shift) > NOTABLE_SHIFT else ()


def follow_leaders(findings: dict[Metric, Comparison]) -> dict[Metric, Comparison]:
    """Let ratios stand only as far as what they are ratios of carries them."""
    eager = findings.get(Metric.EAGER_LATENCY)
    for metric, finding in findings.items():
        if leader := SPECS[metric].follows:
            beside = eager if leader is Metric.COMPILED_LATENCY else None
            findings[metric] = follow_leader(finding, findings.get(leader), beside)
    if Metric.COMPILE_CALLS in findings:
        misses = findings.get(Metric.CACHE_MISSES)
        findings[Metric.COMPILE_CALLS] = follow_misses(findings[Metric.COMPILE_CALLS], misses)
    return findings


def _find_unmatched(evidence: Evidence, metric: Metric) -> Comparison | None:
    """A metric that only one side has; ``None`` where that is as it should be."""
    after = evidence.values.get(metric, ())
    if not after:
        baseline = evidence.find_baseline(metric)
        if baseline is None or evidence.failures or evidence.is_unknown_here(metric):
            return None
        missing = evidence.find_alone(metric, Status.MISSING, Reason.NOT_MEASURED)
        return replace(missing, baseline=estimate_metric(metric, baseline.trials[metric]))
    if SPECS[metric].family is Family.LOG2:
        alone = judge_drift_alone(evidence, metric)
        if alone is not None:
            return alone
    reason = evidence.explain_lack(metric)
    status = Status.NEW if reason is Reason.NO_BASELINE else Status.NOT_COMPARABLE
    found = evidence.find_alone(metric, status, reason)
    return replace(found, candidate=estimate_metric(metric, after))
