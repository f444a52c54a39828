"""From comparisons to one outcome and exit code: absolute limits laid over them, and how much was judged.

Absolute limits are what people set themselves: values alone are judged by them, whatever is stored.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, median

from gate.decide.conclude.accept import apply_acceptances, is_in_force
from gate.decide.constants import CLEAR_CONFIDENCE, SESSION_SD
from gate.decide.evidence.pairs import list_pairs
from gate.decide.evidence.trials import is_disturbed, list_screened
from gate.decide.evidence.values import Evidence
from gate.decide.judge.interval import CLEAR, OPEN
from gate.decide.judge.pairs import assume_noise
from gate.decide.stats import (
    compute_logs,
    compute_t_quantile,
    compute_variance,
    estimate_metric,
    pool_variances,
)
from gate.devices import CPU, TARGET_KIND
from gate.errors import ExitCode
from gate.kinds import has_metric
from gate.metrics import SPECS, Family, Scope, Source
from gate.records.cases import AbsoluteLimit, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Run
from gate.records.verdict import (
    BROKEN,
    JUDGED,
    MAYBE_WORSE,
    UNJUDGED,
    Change,
    Comparison,
    Outcome,
    Reason,
    Status,
    Tally,
    Verdict,
)


def apply_limits(
    comparisons: Sequence[Comparison], evidence: Sequence[Evidence], policy: Policy, device_kind: str
) -> tuple[Comparison, ...]:
    """Compare each metric with its absolute limit, in every case that measured anything.

    What surely exceeds its limit is REGRESSED and what may is INCONCLUSIVE, unless something worse is
    known of it. What is within is UNCHANGED where nothing else judged it. A limited metric that a case
    should have and has not is MISSING. An acceptance must allow both, what is beyond the limit and what is
    worse than the baseline: of two regressions the larger one is reported.
    """
    if not policy.limits:
        return tuple(comparisons)
    wanted = {}
    for one in (one for one in evidence if one.trials):
        for limit in policy.limits:
            if policy.fits(limit.case, one.case.id) and _is_expected(one, limit.metric, device_kind):
                wanted[one.case.id, limit.metric] = one, limit
    noisy = sum(SPECS[metric].family is Family.NOISY for _, metric in wanted)
    alpha = policy.error_budget / (max(1, noisy) * policy.looks)
    limited = {key: _judge_alone(one, limit, alpha) for key, (one, limit) in wanted.items()}
    judged = [
        row  # of the case: its metric only stands for it
        if row.is_of_whole_case
        else _lay_over(row, limited.pop((row.case_id, row.metric), None), policy)
        for row in comparisons
    ]
    return (*judged, *limited.values())


def _is_expected(one: Evidence, metric: Metric, device_kind: str) -> bool:
    """Whether a case of this kind, on this kind of device, has the metric: without it the limit is not kept.

    A target knows what was compiled and nothing else. Whether there are steps of training to look at is
    known in a worker alone, which notes why it could not.
    """
    spec = SPECS[metric]
    if metric in one.values:
        return True
    if metric is Metric.DRIFT_STEPS:
        notes = (fact for trial in one.trials for fact in trial.warnings)
        return any(fact.code is Code.UNMEASURED and metric in fact.metrics for fact in notes)
    if not has_metric(one.case, metric) or (spec.is_gpu_only and device_kind == CPU.name):
        return False
    return device_kind != TARGET_KIND or (spec.is_compile_signature and spec.source is not Source.WARM)


def _lay_over(row: Comparison, limited: Comparison | None, policy: Policy) -> Comparison:
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
    return replace(row, decides=True) if row.status is not Status.MISSING else limited


def _judge_alone(one: Evidence, limit: AbsoluteLimit, alpha: float) -> Comparison:
    row = Comparison(
        case_id=one.case.id,
        metric=limit.metric,
        status=Status.MISSING,
        reason=Reason.NOT_MEASURED,
        decides=True,
        remarks=(Fact(code=Code.OWN_LIMIT, numbers={"limit": limit.value}),),
    )
    values = one.values.get(limit.metric, ())
    if not values:
        return row
    excess = _measure_excess(limit, values, alpha)
    status, reason = OPEN
    if excess.low > 0:
        status, reason = Status.REGRESSED, Reason.LIMIT_EXCEEDED
    elif excess.high <= 0:
        status, reason = CLEAR
    candidate = estimate_metric(limit.metric, values)
    return replace(row, status=status, reason=reason, candidate=candidate, change=excess)


def _measure_excess(limit: AbsoluteLimit, values: Sequence[float], alpha: float) -> Change:
    """How far values are beyond a limit: what an acceptance of it has to allow.

    They surely exceed the lower bound, which is to convict, and surely not the upper one, which is to clear.
    """
    spec = SPECS[limit.metric]
    sign = -1.0 if spec.higher_is_better else 1.0
    if spec.family is Family.NOISY and min(values) > 0 and limit.value > 0:
        logs = compute_logs(values)
        noise = pool_variances(compute_variance(logs), assume_noise(limit.metric, is_live=False))
        error = math.sqrt(noise.value / len(values) + SESSION_SD**2)
        over = sign * (fmean(logs) - math.log(limit.value))
        bounds = (compute_t_quantile(p, noise.df) * error for p in (alpha, CLEAR_CONFIDENCE))
        centre, low, high = map(math.expm1, (over, *(over + bound for bound in bounds)))
    else:
        scale = limit.value if spec.is_ratio and limit.value > 0 else 1.0
        beyond = [sign * (value - limit.value) for value in values]
        centre, low, high = (value / scale for value in (median(beyond), min(beyond), max(beyond)))
    return Change(centre=centre, low=low, high=high, detectable=0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Counts of deciding comparisons and of the cases that have any: all of them, and those judged.

    A case counts as judged when at least one of its comparisons was.
    """

    comparisons: int = 0
    judged: int = 0
    cases: int = 0
    judged_cases: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing that should decide was measured only."""
        return self.judged == self.comparisons


def measure_coverage(comparisons: Iterable[Comparison]) -> Coverage:
    """Count what was judged among all comparisons of a verdict."""
    deciding = [one for one in comparisons if one.decides]
    judged = [one for one in deciding if is_judged(one)]
    return Coverage(
        comparisons=len(deciding),
        judged=len(judged),
        cases=len({one.case_id for one in deciding}),
        judged_cases=len({one.case_id for one in judged}),
    )


def list_uncompared(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Ids of the cases of which something that decides was measured only; all, where nothing decides."""
    rows = tuple(comparisons)
    deciding = [one for one in rows if one.decides]
    return tuple(dict.fromkeys(one.case_id for one in deciding or rows if not is_judged(one)))


def list_unaccepted(comparisons: Iterable[Comparison], policy: Policy) -> tuple[str, ...]:
    """Ids of the cases without a baseline for which that is not accepted, today, of each commit judged."""
    taken = {
        (one.commit, one.case)
        for one in policy.acceptances
        if one.metric is None and is_in_force(one, policy)
    }
    return tuple(
        case
        for case in list_uncompared(comparisons)
        if not policy.commits or any((commit, case) not in taken for commit in policy.commits)
    )


def is_lack_accepted(comparisons: Sequence[Comparison], policy: Policy) -> bool:
    """Whether somebody accepts, today, of each case without a baseline that it has none."""
    return bool(list_uncompared(comparisons)) and not list_unaccepted(comparisons, policy)


def is_judged(comparison: Comparison) -> bool:
    """Whether a deciding comparison has a baseline, or is beyond a limit.

    A limit that somebody accepted compares nothing, and nor does what had no time for a pair.
    """
    is_waived = comparison.status is Status.ACCEPTED or comparison.reason is Reason.UNPAIRED
    is_bare = is_waived and comparison.baseline is None
    return comparison.decides and comparison.status in JUDGED and not is_bare


def find_unjudged_code(comparison: Comparison) -> Code | None:
    """Find which baselines there are instead of this environment's; ``None`` where that is not the reason."""
    if comparison.reason is not Reason.OTHER_ENVIRONMENT:
        return None
    if any(fact.code is Code.MACHINE_SPEED for fact in comparison.remarks):
        return Code.OTHER_SPEED
    return Code.OTHER_MACHINES if SPECS[comparison.metric].scope is Scope.HOST else Code.OTHER_STACK


def measure_tally(run: Run, comparisons: Sequence[Comparison], cleared: Sequence[Comparison] = ()) -> Tally:
    """Count trials, pairs and rows; ``cleared`` got worse since the baselines, but not by the change."""
    pairs = [pair for found in list_pairs(run).values() for pair in found] if run.base else []
    trials = list_screened(run)
    return Tally(
        finished=run.finished,
        trials=len(trials),
        disturbed_trials=sum(map(is_disturbed, trials)),
        pairs=len(pairs),
        paired_cases=len({pair.head.case_id for pair in pairs}),
        pairs_in_turn=sum(not pair.is_live for pair in pairs),
        disturbed_pairs=sum(is_disturbed(pair.head) for pair in pairs),
        cleared=len(cleared),
        cases=len(run.cases),
        comparisons=len(comparisons),
    )


_ANYWAY = Fact(code=Code.ALREADY_REGRESSED)


def remark_regressed_anyway(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Say of what more pairs would settle that they are not needed, where their case has regressed."""
    regressed = find_regressed(comparisons)
    return tuple(
        replace(one, remarks=(*one.remarks, _ANYWAY))
        if one.case_id in regressed and one.decides and one.waits_for_pairs and one.more_pairs
        else one
        for one in comparisons
    )


def find_regressed(comparisons: Iterable[Comparison]) -> frozenset[str]:
    """Find the cases of which something that decides has regressed."""
    return frozenset(one.case_id for one in comparisons if one.decides and one.status is Status.REGRESSED)


class FailOn(StrEnum):
    """The weakest outcome that a caller wants to fail on, the strictest first."""

    NEW = "new"  # as INCONCLUSIVE, and a PASS that left something unjudged exits as NOTHING_COMPARED
    INCONCLUSIVE = "inconclusive"  # the codes as they are
    REGRESSION = "regression"  # INCONCLUSIVE exits 0
    NEVER = "never"  # every outcome exits 0: errors of usage and machine still do not


# What more trials of the candidate can change: not a baseline with too few.
_SETTLED_BY_TRIALS = frozenset({Reason.UNSETTLED, Reason.SHARED_SHIFT, Reason.UNCORROBORATED})


def decide_outcome(comparisons: Sequence[Comparison], *, finished: bool) -> Outcome:
    """The strongest outcome that any deciding comparison calls for; a run that was stopped is INCOMPLETE."""
    statuses = {one.status for one in comparisons if one.decides}
    if not finished or statuses & BROKEN:
        return Outcome.INCOMPLETE
    if Status.REGRESSED in statuses:
        return Outcome.REGRESSION
    if not any(is_judged(one) for one in comparisons):
        return Outcome.NOTHING_COMPARED
    return Outcome.INCONCLUSIVE if Status.INCONCLUSIVE in statuses else Outcome.PASS


def compute_exit_code(
    outcome: Outcome, fail_on: FailOn, coverage: Coverage, *, is_lack_accepted: bool = False
) -> ExitCode:
    """The exit code of an outcome; a laxer ``fail_on`` turns some into 0, and the caller says so.

    The strictest turns a PASS that is not about the whole plan into the code of NOTHING_COMPARED:
    either way what to do is to record baselines. ``is_lack_accepted`` is whether somebody takes it that there
    are none: that code, and no other, is 0 then.
    """
    is_lax = fail_on is FailOn.REGRESSION and outcome is Outcome.INCONCLUSIVE
    if is_lax or fail_on is FailOn.NEVER:
        return ExitCode.PASS
    is_partial = fail_on is FailOn.NEW and outcome is Outcome.PASS and not coverage.is_whole
    code = ExitCode.NOTHING_COMPARED if is_partial else ExitCode[outcome.name]
    return ExitCode.PASS if is_lack_accepted and code is ExitCode.NOTHING_COMPARED else code


def list_open(verdict: Verdict) -> tuple[Comparison, ...]:
    """The comparisons that more trials could settle.

    A regression seen in a single trial counts too: it has to be seen again.
    """
    return tuple(
        one
        for one in verdict.comparisons
        if one.decides
        and (
            (one.status is Status.REGRESSED and one.candidate is not None and one.candidate.n == 1)
            or one.reason in _SETTLED_BY_TRIALS
        )
    )
