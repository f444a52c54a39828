"""Absolute limits of gate.yml: users set them, whatever is stored."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean, median

from gate.decide.conclude.accept import apply_acceptances
from gate.decide.constants import CLEAR_CONFIDENCE, LIMIT_SHARE, SESSION_SD
from gate.decide.evidence.gather import Evidence
from gate.decide.judge.comparison import make_comparison
from gate.decide.judge.interval import UNCHANGED, UNSETTLED, Ruling
from gate.decide.stats import (
    Variance,
    compute_logs,
    compute_priors,
    compute_t_quantile,
    compute_variance,
    pool_variances,
)
from gate.devices import CPU, TARGET_KIND
from gate.kinds import has_metric
from gate.metrics import SPECS, Family, Source
from gate.records.cases import AbsoluteLimit, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import MAYBE_WORSE, UNJUDGED, Change, Comparison, Reason, Status


def apply_limits(
    comparisons: Sequence[Comparison], judged_limits: Iterable[Comparison], policy: Policy
) -> tuple[Comparison, ...]:
    """What surely exceeds its limit is REGRESSED; what may is INCONCLUSIVE, unless its row is worse already.

    A limited metric that a case should have and has not is MISSING. Of two regressions, from the limit and
    from the baseline, the larger one is reported.
    """
    limited = {(row.case_id, row.metric): row for row in judged_limits}
    judged = [
        row  # of the case: its metric only stands for it
        if row.is_of_whole_case
        else _merge_limit(row, limited.pop((row.case_id, row.metric), None), policy)
        for row in comparisons
    ]
    return (*judged, *limited.values())


def find_open_limits(cases: Sequence[Evidence], policy: Policy, device_kind: str) -> dict[str, set[Metric]]:
    open_limits: dict[str, set[Metric]] = {}
    for row in judge_limits(cases, policy, device_kind):
        if row.status is Status.INCONCLUSIVE and SPECS[row.metric].family is Family.NOISY:
            open_limits.setdefault(row.case_id, set()).add(row.metric)
    return open_limits


def judge_limits(cases: Sequence[Evidence], policy: Policy, device_kind: str) -> tuple[Comparison, ...]:
    """Each limit has its own error budget, however many others there are. The last of a metric counts."""
    noise = {limit.metric: _learn_noise(cases, limit.metric) for limit in policy.limits}
    alpha = LIMIT_SHARE * policy.error_budget / policy.times_judged
    rows = {
        (evidence.case.id, limit.metric): _judge_alone(
            evidence, limit, noise[limit.metric].get(evidence.case.id), alpha
        )
        for evidence in cases
        for limit in policy.limits
        if evidence.trials
        and policy.fits(limit.case, evidence.case.id)
        and _is_expected(evidence, limit.metric, device_kind)
    }
    return tuple(rows.values())


def _learn_noise(cases: Iterable[Evidence], metric: Metric) -> dict[str, Variance]:
    """Between trials of each case: its own noise, moderated by the other cases'."""
    variances = {}
    for evidence in cases:
        values, question = evidence.values.get(metric, ()), evidence.questions.get(metric)
        if SPECS[metric].family is Family.NOISY and values and min(values) > 0:
            logs = question.logs if question else None
            variances[evidence.case.id] = logs.variance if logs else compute_variance(compute_logs(values))
    priors = compute_priors(variances, trusts_own=True)
    return {case_id: pool_variances(variance, priors[case_id]) for case_id, variance in variances.items()}


def _is_expected(evidence: Evidence, metric: Metric, device_kind: str) -> bool:
    """A target only has what was compiled; only a worker knows whether there are training steps."""
    spec = SPECS[metric]
    if metric in evidence.values:
        return True
    if metric is Metric.DRIFT_STEPS:
        notes = (fact for trial in evidence.trials for fact in trial.warnings)
        return any(fact.code is Code.UNMEASURED and metric in fact.metrics for fact in notes)
    if not has_metric(evidence.case, metric) or (spec.is_gpu_only and device_kind == CPU.name):
        return False
    return device_kind != TARGET_KIND or (spec.is_compile_signature and spec.source is not Source.WARM)


def _merge_limit(row: Comparison, limited: Comparison | None, policy: Policy) -> Comparison:
    if limited is None:
        return row
    if limited.status is Status.REGRESSED and row.status in MAYBE_WORSE:
        # Of a row that is or may be worse and what is beyond its limit: what an acceptance leaves over.
        (accepted,) = apply_acceptances((limited,), policy)
        is_larger = row.change and limited.change and row.change.centre > limited.change.centre
        if accepted.status is Status.ACCEPTED or (row.status is Status.REGRESSED and is_larger):
            return replace(row, decides=True, remarks=(*row.remarks, *limited.remarks))
        return limited
    if limited.status is Status.REGRESSED or row.status in UNJUDGED:
        return limited
    if limited.status is Status.INCONCLUSIVE and row.status is not Status.REGRESSED:
        return limited
    # Of what decides nothing by itself, its limit alone decides.
    return row if row.decides and row.status is not Status.MISSING else limited


def _judge_alone(
    evidence: Evidence, limit: AbsoluteLimit, noise: Variance | None, alpha: float
) -> Comparison:
    values = evidence.values.get(limit.metric, ())
    ruling: Ruling = (Status.MISSING, Reason.NOT_MEASURED)
    excess = None
    if values:
        excess = _measure_excess(limit, values, noise, alpha)
        ruling = UNCHANGED if excess.high <= 0 else UNSETTLED
        if excess.low > 0:
            ruling = Status.REGRESSED, Reason.LIMIT_EXCEEDED
    remark = Fact(code=Code.OWN_LIMIT, numbers={"limit": limit.value})
    row = make_comparison(evidence.case.id, limit.metric, ruling, remark, values=((), values), change=excess)
    return replace(row, decides=True)


def _measure_excess(
    limit: AbsoluteLimit, values: Sequence[float], noise: Variance | None, alpha: float
) -> Change:
    """What an acceptance of it has to allow.

    Values surely exceed the lower bound, which convicts, and surely not the upper one, which clears.
    """
    spec = SPECS[limit.metric]
    sign = -1.0 if spec.higher_is_better else 1.0
    if noise is not None and limit.value > 0:
        logs = compute_logs(values)
        error = math.sqrt(noise.value / len(values) + SESSION_SD**2)
        over = sign * (fmean(logs) - math.log(limit.value))
        bounds = (compute_t_quantile(p, noise.df) * error for p in (alpha, CLEAR_CONFIDENCE))
        centre, low, high = map(math.expm1, (over, *(over + bound for bound in bounds)))
    else:
        scale = limit.value if spec.is_ratio and limit.value > 0 else 1.0
        beyond = [sign * (value - limit.value) for value in values]
        centre, low, high = (value / scale for value in (median(beyond), min(beyond), max(beyond)))
    return Change(centre=centre, low=low, high=high, detectable=0.0)
