"""What judging one case needs from all the others, and which questions a case poses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.finding import Question
from gate.decide.evidence.stored import Evidence, list_metrics, match_metric
from gate.decide.judge.machine import Shifts, compute_shifts
from gate.decide.judge.screen import Reading, read_change
from gate.decide.stats.moments import Variance, compute_prior, summarize_logs
from gate.metrics import SPECS, Family, Role
from gate.records import Metric, Policy, Threshold


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgingRules:
    """What one case's judgement needs from all the others: error budget, priors and shifts."""

    alpha: float  # one-sided, for each deciding noisy comparison
    priors: Mapping[Metric, Variance]
    shifts: Shifts

    def read(self, question: Question) -> Reading | None:
        """The reading of a noisy question; ``None`` where it has no logarithms."""
        logs = question.logs
        return None if logs is None else read_change(question.metric, logs, self.priors[question.metric])


def make_rules(
    evidence: Sequence[Evidence], questions: Sequence[Mapping[Metric, Question]], policy: Policy
) -> JudgingRules:
    """Divide the error budget and learn priors and shifts from all the cases."""
    variances: dict[Metric, list[Variance]] = {}
    deciding = 0
    for question in (question for posed in questions for question in posed.values()):
        if question.logs is not None:
            variances.setdefault(question.metric, []).append(question.logs.variance)
            decides = question.spec.role is Role.DECIDES
            deciding += decides and len(question.before) >= MIN_BASELINE_TRIALS
    return JudgingRules(
        alpha=policy.error_budget / (max(deciding, 1) * policy.looks),
        priors={metric: compute_prior(known) for metric, known in variances.items()},
        shifts=compute_shifts(evidence, questions),
    )


def find_threshold(policy: Policy, case_id: str, metric: Metric) -> Threshold:
    """The threshold in force: the policy's or the metric's own, under the last override that fits."""
    own = policy.thresholds.get(metric, SPECS[metric].threshold)
    return _override(own, policy, case_id, metric)


def find_pair_threshold(policy: Policy, case_id: str, metric: Metric) -> Threshold:
    """The threshold of pairs: the policy's or the metric's own, under the last override that fits.

    A policy names every metric, so a part that is the metric's default has said nothing about pairs.
    """
    spec = SPECS[metric]
    stated, usual = policy.thresholds.get(metric, spec.threshold), spec.threshold
    own = Threshold(
        relative=spec.side_by_side.relative if stated.relative == usual.relative else stated.relative,
        absolute=spec.side_by_side.absolute if stated.absolute == usual.absolute else stated.absolute,
    )
    return _override(own, policy, case_id, metric)


def list_questions(
    evidence: Evidence, policy: Policy, find: Callable[[Policy, str, Metric], Threshold] = find_threshold
) -> Mapping[Metric, Question]:
    """The metrics of a case that both sides have, each with the threshold that ``find`` finds."""
    questions = {}
    for metric in list_metrics(evidence):
        baseline = match_metric(SPECS[metric], evidence.stored).baseline
        if baseline is not None and metric in evidence.values:
            before, after = baseline.trials[metric], evidence.values[metric]
            noisy = SPECS[metric].family is Family.NOISY
            questions[metric] = Question(
                case=evidence.case,
                metric=metric,
                before=before,
                after=after,
                threshold=find(policy, evidence.case.id, metric),
                logs=summarize_logs(before, after) if noisy else None,
            )
    return questions


def _override(own: Threshold, policy: Policy, case_id: str, metric: Metric) -> Threshold:
    """Lay the last override that fits over a threshold: a part that it leaves out stays."""
    for override in reversed(policy.overrides):
        if override.metric is metric and fnmatchcase(case_id, override.case):
            return Threshold(
                relative=own.relative if override.relative is None else override.relative,
                absolute=own.absolute if override.absolute is None else override.absolute,
            )
    return own
