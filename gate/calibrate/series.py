"""One metric of one case over the trials of a calibration: what its noise is learned from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gate.decide.evidence.values import PAIRS_IN_SUPER_BLOCK, Question, compute_speedup, compute_values
from gate.decide.judge.compare import SITTING, find_threshold
from gate.decide.judge.interval import Reading, compute_edge, compute_floor, read_stored
from gate.decide.stats import LogArms, Variance, compute_logs, compute_prior, compute_variance
from gate.metrics import SPECS, Family, Role
from gate.records import CANDIDATE_ARM, Case, Extent, Metric, Pairing, Policy, Run, Threshold, Trial
from gate.records.calibration import Effort

# With it a change is noticed wherever noise allows.
NO_THRESHOLD = Threshold(relative=0.0, absolute=0.0)
# Controls are calibrated too: a machine is judged by them.
_ROLES = frozenset({Role.DECIDES, Role.CONTROL})


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Values, one a trial, and each trial's blocks; ``logs`` only of a noisy metric that is positive."""

    case: Case
    metric: Metric
    threshold: Threshold
    values: tuple[float, ...]
    blocks: tuple[tuple[float, ...], ...]
    logs: tuple[float, ...] = ()
    prior: Variance | None = None  # what the metric's other cases say of its variance

    @property
    def question(self) -> Question:
        """The series compared with itself."""
        return Question(
            case=self.case,
            metric=self.metric,
            before=self.values,
            after=self.values,
            threshold=self.threshold,
        )


def gather_series(run: Run, policy: Policy) -> tuple[Series, ...]:
    """All series of a run's trials without another arm, in the order of the plan and of the metrics."""
    series = [one for case in run.cases for one in _gather_case(case, list_alone(run, case), policy)]
    priors = {
        metric: compute_prior([compute_variance(one.logs) for one in series if one.metric is metric])
        for metric in {one.metric for one in series if one.logs}
    }
    return tuple(replace(one, prior=priors.get(one.metric)) if one.logs else one for one in series)


def list_alone(run: Run, case: Case) -> tuple[Trial, ...]:
    """The whole trials of a case that had no other arm beside them."""
    return tuple(
        trial
        for trial in run.trials
        if trial.case_id == case.id
        and trial.arm == CANDIDATE_ARM
        and trial.pairing is Pairing.ALONE
        and trial.extent is Extent.WHOLE
    )


def imagine_reading(series: Series, effort: Effort, trials: int) -> Reading | None:
    """The reading of an unchanged program with this noise: so many trials against a baseline.

    ``None`` where the metric has no noise to speak of, or too few trials to know it.
    """
    if len(series.logs) < 2 or series.prior is None:  # noqa: PLR2004 - one value has no spread
        return None
    mean, variance = fmean(series.logs), compute_variance(series.logs)
    arms = LogArms(
        before=mean,
        after=mean,
        variance=Variance(value=variance.value, df=effort.baseline_trials + trials - 2.0),
        before_trials=effort.baseline_trials,
        after_trials=trials,
    )
    return read_stored(series.metric, arms, series.prior, SITTING, 0.0)


def compute_noticed(reading: Reading, threshold: Threshold) -> float:
    """Smallest change, as a fraction, that matters and shows in the noise, whatever the error budget."""
    return max(compute_edge(threshold, reading.baseline), compute_floor(reading))


def _gather_case(case: Case, trials: Sequence[Trial], policy: Policy) -> list[Series]:
    values = [compute_values(trial) for trial in trials]
    series = []
    for metric, spec in SPECS.items():
        known = tuple(one[metric] for one in values if metric in one)
        if not known or spec.role not in _ROLES:
            continue
        noisy = spec.family is Family.NOISY and min(known) > 0
        one = Series(
            case=case,
            metric=metric,
            threshold=find_threshold(policy, case.id, metric),
            values=known,
            blocks=tuple(list_blocks(trial, metric) for trial in trials) if noisy else (),
            logs=compute_logs(known) if noisy else (),
        )
        series.append(one)
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
