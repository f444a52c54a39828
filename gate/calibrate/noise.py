"""How the metrics of each case vary between and within trials, and what follows for the gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gate.calibrate.modes import find_modes
from gate.calibrate.series import NO_THRESHOLD, Series, compute_noticed, imagine_reading
from gate.decide.judge.compare import judge_steady
from gate.decide.judge.screen import compute_edge, is_too_noisy
from gate.decide.stats.estimate import estimate_metric
from gate.decide.stats.moments import compute_variance, pool_variances
from gate.metrics import SPECS, Family, Role
from gate.records import CaseFailure, Code, Fact, Metric, Status, Threshold, quote_failure
from gate.records.calibration import Effort, Flaw, Instability, MetricNoise

# Blocks are split in more than this share of the trials before the case is called two-moded for it:
# in one trial it was the minute, not the program.
SPLIT_SHARE = 0.5
MIN_SPLIT = 2


def measure_noise(series: Series, effort: Effort) -> MetricNoise:
    """Describe one series; what would be noticed follows from the trials that a check spends first."""
    floor, detectable = (_find_noticed(series, effort, bar) for bar in (NO_THRESHOLD, series.threshold))
    estimate = estimate_metric(series.metric, series.values)
    return MetricNoise(
        case_id=series.case.id,
        metric=series.metric,
        trials=len(series.values),
        centre=estimate.centre,
        within=math.sqrt(pool_variances(*map(compute_variance, series.blocks)).value),
        between=estimate.noise or 0.0,
        floor=floor,
        detectable=detectable,
        threshold=series.threshold,
        modes=find_modes(series.logs),
        split_trials=sum(_find_gap(series, blocks) is not None for blocks in series.blocks),
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
            told=quote_failure(Code.TRIAL_FAILED, failure),
        )
        for failure in failures
    ]
    deciding = [one for one in series if SPECS[one.metric].role is Role.DECIDES]
    return (*failed, *(found for one in deciding for found in _examine(one, effort)))


def _find_noticed(series: Series, effort: Effort, threshold: Threshold) -> float | None:
    """What would be noticed; ``None`` where the noise is not known: of one trial, or without a ratio."""
    reading = imagine_reading(series, effort, effort.trials)
    if reading is not None:
        return compute_noticed(reading, threshold)
    if SPECS[series.metric].family is Family.NOISY:
        return None
    # Without noise to speak of: its own judgement says.
    change = judge_steady(replace(series.question, threshold=threshold)).change
    return change.detectable if change is not None else None


def _find_gap(series: Series, logs: Sequence[float]) -> float | None:
    """How far apart the two groups of trials or blocks are; ``None`` where they are one, or nearly so."""
    modes = find_modes(logs)
    edge = compute_edge(series.threshold, min(series.values))
    return modes.apart if modes is not None and modes.are_two and modes.apart > edge else None


def _examine(series: Series, effort: Effort) -> list[Instability]:
    if not series.logs:
        return _examine_quiet(series)
    found = (_find_groups(series), _find_split(series), _find_noise(series, effort))
    return [_make_instability(series, *one) for one in found if one]


def _examine_quiet(series: Series) -> list[Instability]:
    is_noisy = SPECS[series.metric].family is Family.NOISY  # and has no ratio
    if not is_noisy and judge_steady(series.question).status is not Status.INCONCLUSIVE:
        return []
    numbers = {"trials": len(series.values), "low": min(series.values), "high": max(series.values)}
    return [_make_instability(series, Flaw.UNREPEATABLE, Fact(code=Code.VALUES_RANGE, numbers=numbers))]


def _find_groups(series: Series) -> tuple[Flaw, Fact] | None:
    gap = _find_gap(series, series.logs)
    return None if gap is None else (Flaw.TWO_MODES, Fact(code=Code.TWO_GROUPS, numbers={"apart": gap}))


def _find_split(series: Series) -> tuple[Flaw, Fact] | None:
    split = sum(_find_gap(series, blocks) is not None for blocks in series.blocks)
    if split < MIN_SPLIT or split <= SPLIT_SHARE * len(series.blocks):
        return None
    numbers = {"split": split, "trials": len(series.blocks)}
    return Flaw.TWO_MODES, Fact(code=Code.BLOCKS_SPLIT, numbers=numbers)


def _find_noise(series: Series, effort: Effort) -> tuple[Flaw, Fact] | None:
    """Whether even the most trials that a check spends leave large changes unseen."""
    reading = imagine_reading(series, effort, effort.max_trials)
    if reading is None:
        return None
    detectable = compute_noticed(reading, series.threshold)
    if not is_too_noisy(detectable, series.threshold, reading.baseline):
        return None
    numbers = {"unseen": detectable, "trials": effort.max_trials}
    return Flaw.TOO_NOISY, Fact(code=Code.TRIALS_VARY, numbers=numbers)


def _make_instability(series: Series, flaw: Flaw, told: Fact) -> Instability:
    return Instability(case_id=series.case.id, metric=series.metric, flaw=flaw, told=told)
