"""How the metrics of each case vary within and between trials and in pairs, and what the gate notices."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gate.decide.constants import CLEAR_CONFIDENCE, INTERVAL_CONFIDENCE, LOOKS
from gate.decide.evidence.gather import Question
from gate.decide.evidence.pairs import Paired
from gate.decide.evidence.values import PAIRS_IN_SUPER_BLOCK, compute_speedup, compute_values
from gate.decide.judge.compare import get_threshold, judge_steady
from gate.decide.judge.interval import Bar, Level, Reading, compute_edge, read_stored, to_fraction
from gate.decide.judge.machine import SESSION
from gate.decide.judge.pairs import compute_pair_detectable, gather_case_pairs, make_pair_rules, read_metric
from gate.decide.stats import (
    LogArms,
    Variance,
    compute_logs,
    compute_priors,
    compute_variance,
    estimate_metric,
    pool_variances,
)
from gate.metrics import LEADING, SPECS, Family, Role
from gate.records.cases import Case, Metric, Policy, Threshold, group_by
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import CANDIDATE_ARM, CaseFailure, Extent, Pairing, Run, Trial
from gate.records.studies import Effort, Flaw, Instability, MetricNoise, PairNoise
from gate.records.verdict import Status

# Controls are calibrated too: a machine is judged by them.
_ROLES = frozenset({Role.DECIDES, Role.CONTROL})
# Two-sided p below which pairs of one program with itself are off centre: some tens of metrics are tested.
BIAS_P = 0.001
# A bias below this share of the threshold leaves the verdict as it is.
BIAS_SHARE = 1 / 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Series(Question):
    """Values, one a trial, compared with themselves, and the blocks of each trial."""

    blocks: tuple[tuple[float, ...], ...]
    own_logs: tuple[float, ...] = ()  # of the values, where the metric is noisy and all are positive
    prior: Variance | None = None  # of its variance, from the metric's other cases


def gather_series(run: Run, policy: Policy) -> tuple[Series, ...]:
    """In the order of the plan and of the metrics."""
    series = [
        metric_series
        for case in run.cases
        for metric_series in _gather_case(case, list_alone(run, case), policy)
    ]
    priors = {
        metric: compute_priors(
            {metric_series.case.id: compute_variance(metric_series.own_logs) for metric_series in group}
        )
        for metric, group in group_by(
            (metric_series for metric_series in series if metric_series.own_logs),
            lambda metric_series: metric_series.metric,
        ).items()
    }
    return tuple(
        replace(metric_series, prior=priors[metric_series.metric][metric_series.case.id])
        if metric_series.own_logs
        else metric_series
        for metric_series in series
    )


def list_alone(run: Run, case: Case) -> tuple[Trial, ...]:
    return tuple(
        trial
        for trial in run.trials
        if trial.case_id == case.id
        and trial.arm == CANDIDATE_ARM
        and trial.pairing is Pairing.ALONE
        and trial.extent is Extent.WHOLE
    )


def imagine_reading(series: Series, effort: Effort, trials: int) -> Reading | None:
    """An unchanged program with this noise: so many trials compared with a baseline.

    ``None`` where the metric is not noisy, or has too few trials.
    """
    if len(series.own_logs) < 2 or series.prior is None:  # noqa: PLR2004 - one value has no spread
        return None
    mean, variance = fmean(series.own_logs), compute_variance(series.own_logs)
    arms = LogArms(
        before=mean,
        after=mean,
        variance=Variance(value=variance.value, df=effort.baseline_trials + trials - 2.0),
        before_trials=effort.baseline_trials,
        after_trials=trials,
    )
    return read_stored(series.metric, arms, series.prior, SESSION, 0.0)


def _compute_noticed(reading: Reading, threshold: Threshold) -> float:
    """Smallest change, as a fraction, that matters and exceeds the noise, whatever the error budget."""
    floor = sum(reading.compute_margin(p) for p in (CLEAR_CONFIDENCE, INTERVAL_CONFIDENCE))
    return max(compute_edge(threshold, reading.baseline), to_fraction(floor))


def is_too_noisy(reading: Reading, bar: Bar) -> bool:
    """Whether even no change at all would be left open."""
    return bar.classify(replace(reading, change=0.0)) is not Level.CLEAR


def _gather_case(case: Case, trials: Sequence[Trial], policy: Policy) -> list[Series]:
    values = [compute_values(trial) for trial in trials]
    series = []
    for metric, spec in SPECS.items():
        measured = tuple(trial_values[metric] for trial_values in values if metric in trial_values)
        if not measured or spec.role not in _ROLES:
            continue
        noisy = spec.family is Family.NOISY and min(measured) > 0
        metric_series = Series(
            case=case,
            metric=metric,
            threshold=get_threshold(policy, case.id, metric),
            before=measured,
            after=measured,
            blocks=tuple(list_blocks(trial, metric) for trial in trials) if noisy else (),
            own_logs=compute_logs(measured) if noisy else (),
        )
        series.append(metric_series)
    return series


def list_blocks(trial: Trial, metric: Metric) -> tuple[float, ...]:
    """The logarithms of a trial's samples; of the speedup, one of each super-block."""
    if metric is Metric.WARM_SPEEDUP:
        eager = trial.samples.get(Metric.EAGER_LATENCY, ())
        compiled = trial.samples.get(Metric.COMPILED_LATENCY, ())
        starts = range(0, len(compiled), PAIRS_IN_SUPER_BLOCK)
        cuts = (slice(start, start + PAIRS_IN_SUPER_BLOCK) for start in starts)
        ratios = (compute_speedup(eager[cut], compiled[cut]) for cut in cuts)
        return tuple(math.log(ratio) for ratio in ratios if ratio is not None)
    samples = trial.samples.get(metric, ())
    return compute_logs(samples) if samples and min(samples) > 0 else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSeries:
    case_id: str
    paired: Paired
    reading: Reading
    bar: Bar


def gather_pair_series(run: Run, policy: Policy) -> tuple[PairSeries, ...]:
    """As if one case were suspect."""
    sides = gather_case_pairs(run, policy)
    rules = make_pair_rules(sides, policy, {}, times=len(LEADING), cases=1)
    return tuple(
        PairSeries(
            case_id=side.case.id,
            paired=paired,
            reading=read_metric(side, metric, rules),
            bar=Bar(alpha=rules.alpha, threshold=get_threshold(policy, side.case.id, metric, in_pairs=True)),
        )
        for side in sides
        for metric, paired in side.paired.items()
    )


def measure_pair_noise(series: PairSeries) -> PairNoise:
    changes = series.paired.changes
    return PairNoise(
        pairs=len(changes),
        noise=math.sqrt(compute_variance(changes).value),
        bias=math.expm1(fmean(changes)),
    )


def list_pair_instabilities(series: PairSeries) -> Iterator[Instability]:
    metric, reading = series.paired.metric, series.reading
    if SPECS[metric].role is not Role.DECIDES:
        return
    edge = compute_edge(series.bar.threshold, reading.baseline)
    certain = abs(reading.change) > reading.compute_margin(1 - BIAS_P / 2)
    if certain and abs(math.expm1(reading.change)) > BIAS_SHARE * edge:
        numbers = {"pairs": float(reading.trials), "change": math.expm1(reading.change)}
        fact = Fact(code=Code.PAIRS_BIASED, numbers=numbers)
        yield Instability(case_id=series.case_id, metric=metric, flaw=Flaw.BIASED_PAIRS, fact=fact)
    # The same noise and no change, with as many pairs as the last look has.
    last = replace(reading.extend(LOOKS[-1]), change=0.0)
    if is_too_noisy(last, series.bar):
        detectable = compute_pair_detectable(last, series.bar)
        numbers = {"unseen": detectable, "pairs": LOOKS[-1]}
        fact = Fact(code=Code.PAIRS_VARY, numbers=numbers)
        yield Instability(case_id=series.case_id, metric=metric, flaw=Flaw.TOO_NOISY, fact=fact)


def measure_noise(series: Series, effort: Effort) -> MetricNoise:
    """What would be noticed follows from the trials that a check spends first."""
    estimate = estimate_metric(series.metric, series.after)
    return MetricNoise(
        case_id=series.case.id,
        metric=series.metric,
        trials=len(series.after),
        centre=estimate.centre,
        within=math.sqrt(pool_variances(*map(compute_variance, series.blocks)).value),
        between=estimate.noise or 0.0,
        detectable=_measure_noticed(series, effort),
        threshold=series.threshold,
    )


def list_instabilities(
    series: Iterable[Series], failures: Iterable[CaseFailure], effort: Effort
) -> tuple[Instability, ...]:
    """The deciding metrics that cannot be trusted here, with the reason."""
    failed = [
        Instability(
            case_id=failure.case_id,
            metric=Metric.COMPILED_LATENCY,
            flaw=Flaw.FAILED,
            fact=failure.quote(Code.FAILURE),
        )
        for failure in failures
    ]
    deciding = [metric_series for metric_series in series if SPECS[metric_series.metric].role is Role.DECIDES]
    return (*failed, *filter(None, (_examine(metric_series, effort) for metric_series in deciding)))


def _measure_noticed(series: Series, effort: Effort) -> float | None:
    """``None`` where the noise is not known: of one trial, or without a ratio."""
    reading = imagine_reading(series, effort, effort.trials)
    if reading is not None:
        return _compute_noticed(reading, series.threshold)
    if SPECS[series.metric].family is Family.NOISY:
        return None
    # Without noise: as it is judged.
    change = judge_steady(series).change
    return change.detectable if change is not None else None


def _examine(series: Series, effort: Effort) -> Instability | None:
    """Why a deciding metric cannot be trusted here; ``None`` where it can.

    Even the most trials of a check leave large changes unseen; or values that should repeat do not.
    """
    values, most = series.after, effort.max_trials
    if series.own_logs:
        reading = imagine_reading(series, effort, most)
        if reading is None or not is_too_noisy(reading, Bar(alpha=0.5, threshold=series.threshold)):
            return None
        numbers = {"unseen": _compute_noticed(reading, series.threshold), "trials": most}
        flaw, fact = Flaw.TOO_NOISY, Fact(code=Code.TRIALS_VARY, numbers=numbers)
    else:
        if judge_steady(series).status is not Status.INCONCLUSIVE:
            return None
        numbers = {"trials": len(values), "low": min(values), "high": max(values)}
        flaw, fact = Flaw.UNREPEATABLE, Fact(code=Code.VALUES_RANGE, numbers=numbers)
    return Instability(case_id=series.case.id, metric=series.metric, flaw=flaw, fact=fact)
