"""One comparison per case and metric: finds the two sides, lets the metric's family judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from gate.decide.evidence.finding import Question
from gate.decide.evidence.outputs import find_worst
from gate.decide.evidence.proxies import (
    compute_calls_change,
    compute_processor_change,
    has_traces,
    is_calm,
    runs_stored_code,
)
from gate.decide.evidence.stored import (
    Evidence,
    is_one_baseline,
    is_unknown_here,
    list_metrics,
    match_metric,
)
from gate.decide.judge.controls import Controls
from gate.decide.judge.drift import judge_drift, judge_drift_alone
from gate.decide.judge.exact import follow_misses, follow_peak_memory, judge_exact, judge_nearly_exact
from gate.decide.judge.machine import list_canary_shifts, list_shifts
from gate.decide.judge.noisy import follow_latency, judge_noisy
from gate.decide.judge.rules import JudgingRules
from gate.decide.judge.screen import Bar, Reading
from gate.decide.stats.estimate import estimate_metric
from gate.metrics import COMPILE_TIMES, SPECS, Family, Role
from gate.records import (
    MAYBE_WORSE,
    Code,
    Comparison,
    Fact,
    Finding,
    Metric,
    Reason,
    Status,
    Threshold,
    quote_failure,
)

# A case that failed or did not run has one comparison of its own, under this metric.
CASE_METRIC = Metric.COMPILED_LATENCY
_FOUND = tuple(field.name for field in fields(Finding))
# Wall-clock metrics, which the machine's shift moves; ratios carry their own control.
_TIMES = frozenset(metric for metric, spec in SPECS.items() if spec.unit == "s")


def compare_case(
    evidence: Evidence, questions: Mapping[Metric, Question], rules: JudgingRules
) -> tuple[Comparison, ...]:
    """All comparisons of one case with its stored baselines."""
    findings = _judge_questions(evidence, questions, rules) if evidence.trials else {}
    return list_comparisons(evidence, questions, findings)


def list_comparisons(
    evidence: Evidence, questions: Mapping[Metric, Question], findings: Mapping[Metric, Finding]
) -> tuple[Comparison, ...]:
    """What was found of a case, and the metrics that only one side has.

    A failure is one more comparison: what was measured is judged too.
    """
    whole = _compare_whole(evidence)
    if not evidence.trials:
        return whole
    rows = []
    for metric in list_metrics(evidence):
        finding = findings.get(metric) or _find_unmatched(evidence, metric)
        if finding is not None:
            threshold = questions[metric].threshold if metric in questions else None
            rows.append(_make_comparison(evidence, metric, finding, threshold))
    if not (whole or rows):
        nothing = Fact(code=Code.NOTHING_MEASURED)
        return (_name_whole(evidence, Status.MISSING, Reason.NOT_RUN, nothing),)
    return (*whole, *rows)


def _compare_whole(evidence: Evidence) -> tuple[Comparison, ...]:
    """The comparison that names a case which failed or did not run, or not as often as was planned."""
    if evidence.failures:
        if evidence.case.is_removed:
            return (_name_whole(evidence, Status.MISSING, Reason.REMOVED),)
        failed = quote_failure(Code.FAILURE, evidence.failures[0])
        return (_name_whole(evidence, Status.FAILED, Reason.CASE_FAILED, failed),)
    came, planned = len(evidence.trials), evidence.planned
    if not came:
        return (_name_whole(evidence, Status.MISSING, Reason.NOT_RUN),)
    if came < planned:
        few = Fact(code=Code.TRIALS_CAME, numbers={"came": came, "planned": planned})
        return (_name_whole(evidence, Status.MISSING, Reason.TRIALS_MISSING, few),)
    return ()


def _name_whole(evidence: Evidence, status: Status, reason: Reason, *remarks: Fact) -> Comparison:
    return Comparison(
        case_id=evidence.case.id,
        metric=CASE_METRIC,
        status=status,
        reason=reason,
        decides=True,
        remarks=remarks,
    )


def _judge_questions(
    evidence: Evidence, questions: Mapping[Metric, Question], rules: JudgingRules
) -> dict[Metric, Finding]:
    readings = {metric: rules.read(question) for metric, question in questions.items()}
    controls = _make_controls(evidence, questions, readings, rules)
    findings = {
        metric: _judge_question(question, readings[metric], rules, controls)
        for metric, question in questions.items()
    }
    return follow_leaders(findings, controls)


def follow_leaders(findings: dict[Metric, Finding], controls: Controls) -> dict[Metric, Finding]:
    """Let ratios stand only as far as what they are ratios of carries them."""
    if Metric.WARM_SPEEDUP in findings:
        latency = findings.get(Metric.COMPILED_LATENCY)
        findings[Metric.WARM_SPEEDUP] = follow_latency(findings[Metric.WARM_SPEEDUP], latency, controls)
    if Metric.MEMORY_RATIO in findings:
        peak = findings.get(Metric.PEAK_MEMORY)
        findings[Metric.MEMORY_RATIO] = follow_peak_memory(findings[Metric.MEMORY_RATIO], peak)
    if Metric.COMPILE_CALLS in findings:
        misses = findings.get(Metric.CACHE_MISSES)
        findings[Metric.COMPILE_CALLS] = follow_misses(findings[Metric.COMPILE_CALLS], misses)
    return findings


def _judge_question(
    question: Question, reading: Reading | None, rules: JudgingRules, controls: Controls
) -> Finding:
    if question.spec.family is not Family.NOISY:
        return judge_steady(question)
    if reading is None:
        return find_unreadable(question)
    fitting = controls if question.metric in _TIMES else Controls()
    return judge_noisy(reading, Bar(alpha=rules.alpha, threshold=question.threshold), fitting)


def judge_steady(question: Question) -> Finding:
    """Judge a metric that is not noisy: a counter, memory, Python calls or drift."""
    family = question.spec.family
    if family is Family.EXACT:
        return judge_exact(question)
    return judge_nearly_exact(question) if family is Family.NEARLY_EXACT else judge_drift(question)


def _make_controls(
    evidence: Evidence,
    questions: Mapping[Metric, Question],
    readings: Mapping[Metric, Reading | None],
    rules: JudgingRules,
) -> Controls:
    speedup = questions.get(Metric.WARM_SPEEDUP)
    # Another baseline's calls, of a newer release or another host, say nothing of what this one's time is of.
    has_calls = is_one_baseline((Metric.COMPILE_CALLS, *COMPILE_TIMES), evidence.stored)
    return Controls(
        shifts=list_shifts(rules.shifts, evidence.case.id),
        sure_shifts=list_shifts(rules.shifts.sure, evidence.case.id),
        canary_shifts=list_canary_shifts(rules.shifts, evidence.case.id),
        canary=rules.shifts.canary,
        eager=readings.get(Metric.EAGER_LATENCY),
        speedup=readings.get(Metric.WARM_SPEEDUP),
        speedup_bar=Bar(alpha=rules.alpha, threshold=speedup.threshold) if speedup else None,
        calls=compute_calls_change(questions) if has_calls else None,
        processor=compute_processor_change(evidence),
        traces=has_traces(evidence, questions),
        stored_code=runs_stored_code(evidence, questions),
        calm=is_calm(evidence.trials),
    )


def find_unreadable(question: Question) -> Finding:
    """A ratio scale with a value of zero or less: no ratio can be formed."""
    nothing = (Fact(code=Code.NO_RATIO),)
    return question.find(Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH, remarks=nothing)


def _find_unmatched(evidence: Evidence, metric: Metric) -> Finding | None:
    """A metric that only one side has; ``None`` where that is as it should be."""
    match = match_metric(SPECS[metric], evidence.stored)
    after = evidence.values.get(metric, ())
    if not after:
        if match.baseline is None or evidence.failures or is_unknown_here(metric, evidence.stored):
            return None
        before = estimate_metric(metric, match.baseline.trials[metric])
        return Finding(status=Status.MISSING, reason=Reason.NOT_MEASURED, baseline=before)
    if SPECS[metric].family is Family.LOG2:
        alone = judge_drift_alone(evidence, metric)
        if alone is not None:
            return alone
    reason = match.reason or Reason.NO_BASELINE
    reason = evidence.absence if reason is Reason.NO_BASELINE else reason
    status = Status.NEW if reason is Reason.NO_BASELINE else Status.NOT_COMPARABLE
    return Finding(status=status, reason=reason, candidate=estimate_metric(metric, after))


def _make_comparison(
    evidence: Evidence, metric: Metric, finding: Finding, threshold: Threshold | None
) -> Comparison:
    moved = SPECS[metric].family is Family.LOG2 and finding.status in MAYBE_WORSE
    worst = find_worst(evidence.trials, metric) if moved else None
    told = replace(finding, remarks=(*finding.remarks, worst)) if worst else finding
    return Comparison(
        case_id=evidence.case.id,
        metric=metric,
        decides=SPECS[metric].role is Role.DECIDES,
        threshold=threshold,
        **{name: getattr(told, name) for name in _FOUND},
    )
