"""What other thresholds would cost on this machine: suspicions of unchanged cases, cases not judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from gate.calibrate.series import NO_THRESHOLD, Series, compute_noticed, imagine_reading
from gate.decide.constants import CLEAR_CONFIDENCE, SUSPECT_CHANGE, SUSPECT_P
from gate.decide.judge.screen import Reading, compute_edge, is_too_noisy
from gate.decide.stats.student import compute_t_quantile, compute_t_upper
from gate.metrics import SPECS, Role
from gate.records import Threshold
from gate.records.calibration import Effort, ThresholdCost

# From what only a quiet GPU resolves to what nobody would miss.
THRESHOLDS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15)


def list_costs(series: Sequence[Series], effort: Effort) -> tuple[ThresholdCost, ...]:
    """For every noisy deciding metric and relative threshold, what it would cost.

    The absolute part of each case's threshold stays as it is.
    """
    costs = []
    for metric, spec in SPECS.items():
        known = [one for one in series if one.metric is metric and one.logs]
        if spec.role is Role.DECIDES and known:
            in_force = {one.threshold.relative for one in known}
            costs += [_compute_cost(known, relative, effort) for relative in sorted({*THRESHOLDS, *in_force})]
    return tuple(cost for cost in costs if cost is not None)


def compute_suspicion(reading: Reading, threshold: Threshold) -> float:
    """Probability that the screen suspects an unchanged case whose trials vary as this reading says."""
    edge = math.log1p(compute_edge(threshold, reading.baseline))
    bound = max(
        math.log1p(SUSPECT_CHANGE) / reading.error,
        compute_t_quantile(1.0 - SUSPECT_P, reading.df),
        edge / reading.error - compute_t_quantile(CLEAR_CONFIDENCE, reading.df),
    )
    return compute_t_upper(bound, reading.df)


def _compute_cost(series: Sequence[Series], relative: float, effort: Effort) -> ThresholdCost | None:
    bars = []
    for one in series:
        reading = imagine_reading(one, effort, effort.trials)
        if reading is not None:
            bars.append((reading, replace(one.threshold, relative=relative)))
    if not bars:
        return None
    return ThresholdCost(
        metric=series[0].metric,
        relative=relative,
        suspected=fmean([compute_suspicion(*bar) for bar in bars]),
        unjudged=fmean([float(_is_unjudged(*bar)) for bar in bars]),
        below_floor=sum(_is_below_floor(*bar) for bar in bars),
        in_force=any(one.threshold.relative == relative for one in series),
    )


def _is_unjudged(reading: Reading, threshold: Threshold) -> bool:
    return is_too_noisy(compute_noticed(reading, threshold), threshold, reading.baseline)


def _is_below_floor(reading: Reading, threshold: Threshold) -> bool:
    """Whether a change of the threshold's size would go unnoticed more often than 1 time in 20."""
    return compute_noticed(reading, NO_THRESHOLD) > compute_edge(threshold, reading.baseline)
