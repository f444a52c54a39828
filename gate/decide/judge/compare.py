"""One comparison per case and metric: which are compared, and how a metric follows others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gate.decide.evidence.gather import Evidence, Question
from gate.decide.evidence.places import count_kinds, note_places
from gate.decide.evidence.values import find_worst_output
from gate.decide.judge.comparison import answer_question, make_comparison
from gate.decide.judge.counted import NO_COUNT_RULES, CountRules, judge_counted
from gate.decide.judge.drift import judge_drift, judge_drift_alone
from gate.decide.judge.interval import UNCHANGED, UNSETTLED, Ruling
from gate.decide.stats import summarize_logs
from gate.metrics import COMPILE_TIMES, SPECS, Family
from gate.records.cases import Metric, Policy, Threshold
from gate.records.codes import Code
from gate.records.facts import WHY_NO_DRIFT, Fact
from gate.records.verdict import BROKEN, MAYBE_WORSE, UNJUDGED, Comparison, Reason, Status

# A case that failed or did not run has one comparison of its own, under this metric.
CASE_METRIC = Metric.COMPILED_LATENCY
_NOT_RUN: Ruling = (Status.MISSING, Reason.NOT_RUN)
_NOTHING_STORED = frozenset({Reason.NO_BASELINE, Reason.MEASURED_OTHERWISE})

AnyEvidence = TypeVar("AnyEvidence", bound=Evidence)


def get_threshold(policy: Policy, case_id: str, metric: Metric, *, in_pairs: bool = False) -> Threshold:
    """The policy's or the metric's own, under the last override that fits.

    A policy names every metric: a part that equals the metric's default does not count as set for pairs.
    """
    spec = SPECS[metric]
    threshold = policy.thresholds.get(metric, spec.threshold)
    usual = spec.threshold
    paired = spec.side_by_side
    if in_pairs:
        threshold = Threshold(
            relative=paired.relative if threshold.relative == usual.relative else threshold.relative,
            absolute=paired.absolute if threshold.absolute == usual.absolute else threshold.absolute,
        )
    for override in reversed(policy.overrides):
        if override.metric is metric and policy.fits(override.case, case_id):
            return Threshold(
                relative=threshold.relative if override.relative is None else override.relative,
                absolute=threshold.absolute if override.absolute is None else override.absolute,
            )
    return threshold


def add_questions(evidence: AnyEvidence, policy: Policy, *, in_pairs: bool = False) -> AnyEvidence:
    questions = {}
    for metric in evidence.list_metrics():
        baseline = evidence.find_baseline(metric)
        upgraded = None if baseline else evidence.find_upgraded(metric)
        baseline = upgraded.baseline if upgraded else baseline
        if baseline and metric in evidence.values and (counts := count_kinds(evidence, baseline, metric)):
            before, after, remarks = counts
            noisy = SPECS[metric].family is Family.NOISY
            questions[metric] = Question(
                case=evidence.case,
                metric=metric,
                before=before,
                after=after,
                threshold=get_threshold(policy, evidence.case.id, metric, in_pairs=in_pairs),
                logs=summarize_logs(before, after) if noisy else None,
                upgrade=upgraded.upgrade if upgraded else (),
                remarks=remarks,
            )
    return replace(evidence, questions=questions)


def list_comparisons(evidence: Evidence, findings: Mapping[Metric, Comparison]) -> tuple[Comparison, ...]:
    """The findings, failures, and metrics that only one side has."""
    whole = _compare_whole(evidence)
    if not evidence.trials:
        return whole
    rows = []
    for metric in evidence.list_metrics():
        row = findings.get(metric) or _compare_unmatched(evidence, metric)
        if row is None:
            continue
        worst = find_worst_output(evidence.trials, metric) if row.status in MAYBE_WORSE else None
        rows.append(replace(row, remarks=(*row.remarks, worst)) if worst else row)
    if not (whole or rows):
        nothing = Fact(code=Code.NOTHING_MEASURED)
        return (make_comparison(evidence.case.id, CASE_METRIC, _NOT_RUN, nothing),)
    return (*whole, *rows)


def _compare_whole(evidence: Evidence) -> tuple[Comparison, ...]:
    case_id, came, planned = evidence.case.id, len(evidence.trials), evidence.planned
    if evidence.failures:
        if evidence.case.is_removed:
            return (make_comparison(case_id, CASE_METRIC, (Status.MISSING, Reason.REMOVED)),)
        failed = evidence.failures[0].quote(Code.FAILURE)
        return (make_comparison(case_id, CASE_METRIC, (Status.FAILED, Reason.CASE_FAILED), failed),)
    if not came:
        return (make_comparison(case_id, CASE_METRIC, _NOT_RUN),)
    if came < planned:
        few = Fact(code=Code.TRIALS_CAME, numbers={"came": came, "planned": planned})
        return (make_comparison(case_id, CASE_METRIC, _NOT_RUN, few),)
    return ()


def _compare_unmatched(evidence: Evidence, metric: Metric) -> Comparison | None:
    """``None`` where only one side is expected to have it."""
    after = evidence.values.get(metric, ())
    if not after:
        baseline = evidence.find_baseline(metric)
        if baseline is None or evidence.failures or evidence.is_unknown_here(metric):
            return None
        ruling = Status.MISSING, Reason.NOT_MEASURED
        why, before = _explain_missing(evidence, metric), baseline.trials[metric]
        return make_comparison(evidence.case.id, metric, ruling, *why, values=(before, ()))
    if SPECS[metric].family is Family.LOG2:
        alone = judge_drift_alone(evidence, metric)
        if alone is not None:
            return alone
    reason = evidence.explain_lack(metric)
    status = Status.NEW if reason in _NOTHING_STORED else Status.NOT_COMPARABLE
    baseline = evidence.find_baseline(metric)
    places = note_places(baseline.trials[metric], after) if baseline else ()  # it has the metric
    return make_comparison(evidence.case.id, metric, (status, reason), *places, values=((), after))


def _explain_missing(evidence: Evidence, metric: Metric) -> list[Fact]:
    codes = WHY_NO_DRIFT if SPECS[metric].family is Family.LOG2 else frozenset[Code]()
    facts = (fact for trial in evidence.trials for fact in trial.warnings)
    return [fact for fact in facts if fact.code in codes or metric in fact.metrics][:1]


def follow_leaders(findings: dict[Metric, Comparison]) -> dict[Metric, Comparison]:
    """Let a metric that depends on another one move only with it.

    A process that found nothing in the caches counts up to two thirds fewer Python calls: it has set the
    compiler up before.
    """
    eager = findings.get(Metric.EAGER_LATENCY)
    for metric, finding in findings.items():
        if leader := SPECS[metric].follows:
            eager_row = eager if leader is Metric.COMPILED_LATENCY else None
            findings[metric] = follow_leader(finding, findings.get(leader), eager_row)
    calls, misses = findings.get(Metric.COMPILE_CALLS), findings.get(Metric.CACHE_MISSES)
    more = misses.change.centre if misses and misses.change else 0.0
    explained = {Status.IMPROVED} if more > 0 else MAYBE_WORSE if more < 0 else ()
    if calls and calls.status in explained:
        findings[calls.metric] = replace(calls, status=Status.UNCHANGED, reason=Reason.LEADER_STANDS)
    cuts = [row for row in findings.values() if any(fact.code is Code.BY_PLACE for fact in row.remarks)]
    graphs = findings.get(Metric.UNIQUE_GRAPHS)
    if graphs and cuts and graphs.status not in {row.status for row in cuts}:
        findings[graphs.metric] = replace(graphs, status=Status.UNCHANGED, reason=Reason.LEADER_STANDS)
    return findings


def follow_times(rows: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Let what stands for times convict a case only where one of them got worse, or none was measured."""
    statuses = {(row.case_id, row.metric): row.status for row in rows if row.status not in UNJUDGED | BROKEN}
    followed = []
    for row in rows:
        times = {statuses.get((row.case_id, metric)) for metric in SPECS[row.metric].stands_for} - {None}
        if row.status in MAYBE_WORSE and times and Status.REGRESSED not in times:
            is_open = Status.INCONCLUSIVE in times
            status = Status.INCONCLUSIVE if is_open else Status.UNCHANGED
            reason = Reason.UNSETTLED if is_open else Reason.LEADER_STANDS
            followed.append(replace(row, status=status, reason=reason, more_pairs=None))
        else:
            followed.append(row)
    return tuple(followed)


def judge_steady(question: Question, rules: CountRules = NO_COUNT_RULES) -> Comparison:
    """A noisy metric without a reading, since a value is zero or less, stays open.

    A compile may be no longer than a call, which makes its time zero.
    """
    if question.spec.family is Family.NOISY:
        slower_s = max(question.after) - min(question.before)
        if question.metric in COMPILE_TIMES and slower_s <= question.threshold.absolute:
            return answer_question(question, UNCHANGED)
        return answer_question(question, UNSETTLED, Fact(code=Code.NO_RATIO))
    if question.spec.family is Family.LOG2:
        return judge_drift(question)
    return judge_counted(question, rules)


def follow_leader(
    ratio: Comparison, leader: Comparison | None, eager: Comparison | None = None
) -> Comparison:
    """Else eager needs less, or more: ``eager`` is its comparison, where it has one."""
    if ratio.status is Status.UNCHANGED or ratio.reason is Reason.FEW_TRIALS:
        return ratio
    status = leader.status if leader else Status.INCONCLUSIVE
    if status is ratio.status or (status is Status.REGRESSED and ratio.status in MAYBE_WORSE):
        return ratio
    if leader is None or status is Status.INCONCLUSIVE:
        more = leader.more_pairs if leader else None
        return replace(ratio, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED, more_pairs=more)
    change = eager.change.centre if eager and eager.change else None
    if change is None and ratio.change and leader.change:
        ours, theirs = 1 + ratio.change.centre, 1 + leader.change.centre
        change = theirs / ours - 1 if min(ours, theirs) > 0 else None
    fact = () if change is None else (Fact(code=Code.EAGER_CHANGED, numbers={"change": change}),)
    return replace(ratio, status=Status.UNCHANGED, reason=Reason.LEADER_STANDS, remarks=fact, more_pairs=None)
