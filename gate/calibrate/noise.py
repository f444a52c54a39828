"""How the metrics of each case vary between and within trials, and what follows for the gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gate.calibrate.modes import find_modes
from gate.calibrate.series import NO_THRESHOLD, Series, compute_noticed, imagine_reading
from gate.calibration import Effort, Flaw, Instability, MetricNoise
from gate.decide.drift import judge_drift
from gate.decide.estimate import estimate_metric
from gate.decide.exact import judge_exact, judge_nearly_exact
from gate.decide.finding import Finding, Question
from gate.decide.screen import compute_edge, is_too_noisy
from gate.decide.stats import Variance, compute_variance, pool_variances
from gate.metrics import SPECS, Family, Role
from gate.records import CaseFailure, Metric, Status, Threshold
from gate.units import render_value

# Blocks are split in more than this share of the trials before the case is called two-moded for it:
# in one trial it was the minute, not the program.
SPLIT_SHARE = 0.5
MIN_SPLIT = 2


def measure_noise(series: Series, effort: Effort) -> MetricNoise:
    """Describe one series; what would be noticed follows from the trials that a check spends first."""
    reading = imagine_reading(series, effort, effort.trials)
    floor: float | None
    detectable: float | None
    if reading is None and series.logs:  # one trial does not know its noise
        floor = detectable = None
    elif reading is None:
        floor, detectable = (_judge_itself(series, bar) for bar in (NO_THRESHOLD, series.threshold))
    else:
        floor, detectable = (compute_noticed(reading, bar) for bar in (NO_THRESHOLD, series.threshold))
    estimate = estimate_metric(series.metric, series.values)
    return MetricNoise(
        case_id=series.case.id,
        metric=series.metric,
        trials=len(series.values),
        centre=estimate.centre,
        within=math.sqrt(_pool_within(series.blocks).value),
        between=estimate.noise or 0.0,
        floor=floor,
        detectable=detectable,
        threshold=series.threshold,
        modes=find_modes(series.logs),
        split_trials=sum(_is_split(series, blocks) for blocks in series.blocks),
    )


def list_instabilities(
    series: Iterable[Series], failures: Iterable[CaseFailure], effort: Effort
) -> tuple[Instability, ...]:
    """Name the cases whose deciding metrics cannot be trusted here, with the reason."""
    failed = [
        Instability(
            case_id=failure.case_id,
            metric=Metric.COMPILED_LATENCY,
            flaw=Flaw.FAILED,
            sentence=f"Trial {failure.trial} failed at {failure.stage}: {failure.message}",
        )
        for failure in failures
    ]
    deciding = [one for one in series if SPECS[one.metric].role is Role.DECIDES]
    return (*failed, *(found for one in deciding for found in _examine(one, effort)))


def _judge_itself(series: Series, threshold: Threshold) -> float:
    """What would be noticed of a metric without noise to speak of: its own judgement says."""
    question = Question(
        case=series.case,
        metric=series.metric,
        before=series.values,
        after=series.values,
        threshold=threshold,
    )
    finding = _judge_quiet(question)
    return finding.change.detectable if finding is not None and finding.change is not None else 0.0


def _judge_quiet(question: Question) -> Finding | None:
    """Judge a metric that is not noisy; ``None`` for one that is and has no ratio."""
    family = SPECS[question.metric].family
    if family is Family.EXACT:
        return judge_exact(question)
    if family is Family.NEARLY_EXACT:
        return judge_nearly_exact(question)
    return judge_drift(question) if family is Family.LOG2 else None


def _pool_within(blocks: Sequence[Sequence[float]]) -> Variance:
    pooled = Variance(value=0.0, df=0.0)
    for one in blocks:
        pooled = pool_variances(pooled, compute_variance(one))
    return pooled


def _is_split(series: Series, blocks: Sequence[float]) -> bool:
    """Whether a trial's blocks are two groups that are a relevant change apart."""
    modes = find_modes(blocks)
    edge = compute_edge(series.threshold, min(series.values))
    return modes is not None and modes.are_two and modes.apart > edge


def _examine(series: Series, effort: Effort) -> list[Instability]:
    if not series.logs:
        return _examine_quiet(series)
    found = [_describe_modes(series), _describe_split(series), _describe_noise(series, effort)]
    return [_make_instability(series, flaw, sentence) for flaw, sentence in found if sentence]


def _examine_quiet(series: Series) -> list[Instability]:
    finding = _judge_quiet(series.question)
    if finding is not None and finding.status is not Status.INCONCLUSIVE:
        return []
    low, high = (render_value(series.metric, bound(series.values)) for bound in (min, max))
    sentence = f"{len(series.values)} trials of one program range from {low} to {high}."
    return [_make_instability(series, Flaw.UNREPEATABLE, sentence)]


def _describe_modes(series: Series) -> tuple[Flaw, str]:
    modes = find_modes(series.logs)
    edge = compute_edge(series.threshold, min(series.values))
    if modes is None or not modes.are_two or modes.apart <= edge:
        return Flaw.TWO_MODES, ""
    return Flaw.TWO_MODES, f"Trials fall into two groups that are {100 * modes.apart:.1f} % apart."


def _describe_split(series: Series) -> tuple[Flaw, str]:
    split = sum(_is_split(series, blocks) for blocks in series.blocks)
    if split < MIN_SPLIT or split <= SPLIT_SHARE * len(series.blocks):
        return Flaw.TWO_MODES, ""
    return Flaw.TWO_MODES, f"In {split} of {len(series.blocks)} trials the blocks fall into two groups."


def _describe_noise(series: Series, effort: Effort) -> tuple[Flaw, str]:
    """Whether even the most trials that a check spends leave large changes unseen."""
    reading = imagine_reading(series, effort, effort.max_trials)
    if reading is None:
        return Flaw.TOO_NOISY, ""
    detectable = compute_noticed(reading, series.threshold)
    if not is_too_noisy(detectable, series.threshold, reading.baseline):
        return Flaw.TOO_NOISY, ""
    noticed = f"a change below {100 * detectable:.0f} % could go unseen in {effort.max_trials} trials"
    return Flaw.TOO_NOISY, f"Trials vary by {100 * math.sqrt(reading.noise.value):.1f} %: {noticed}."


def _make_instability(series: Series, flaw: Flaw, sentence: str) -> Instability:
    return Instability(case_id=series.case.id, metric=series.metric, flaw=flaw, sentence=sentence)
