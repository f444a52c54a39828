"""Judges the noisy metrics by stored values: latencies, compile times and their ratios.

They are of another sitting of the machine, so they convict only what is surely beyond its limit, and where
that could have another reason they leave it open: to more trials, or to pairs with the base.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gate.decide.constants import CLEAR_CONFIDENCE, MIN_BASELINE_TRIALS, SHARED_SHARE
from gate.decide.evidence.proxies import Work
from gate.decide.judge.interval import (
    BETTER,
    CLEAR,
    OPEN,
    WORSE,
    Bar,
    Level,
    Reading,
    Ruling,
    compute_bound,
    compute_detectable,
    find_level,
    is_estimated_beyond,
    make_change,
    mirror_reading,
)
from gate.decide.stats import estimate_log_mean
from gate.metrics import COMPILE_TIMES
from gate.records import Change, Fact, Finding, Metric, Reason, Status

_SAME: Ruling = (Status.UNCHANGED, Reason.SAME_WORK)
_SHARED: Ruling = (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """The readings of one case that more than one metric is judged by."""

    readings: Mapping[Metric, Reading]
    bars: Mapping[Metric, Bar]
    work: Work
    stored_code: bool = False  # a call runs nothing but the code that the baseline's compile made
    suite: float = 0.0  # median change of eager over the cases

    def mirror(self) -> Times:
        """The same with better and worse exchanged."""
        mirrored = {metric: mirror_reading(reading) for metric, reading in self.readings.items()}
        return replace(self, readings=mirrored, work=self.work.mirror())


def judge_time(metric: Metric, times: Times) -> Finding:
    """Judge one metric; the rule is in docs/decision.md."""
    reading, bar = times.readings[metric], times.bars[metric]
    change = make_change(reading, compute_detectable(reading, bar))
    return make_finding(reading, _decide(metric, times), change)


def make_finding(reading: Reading, ruling: Ruling, change: Change, remarks: tuple[Fact, ...] = ()) -> Finding:
    """What was found of a reading, with both values and the noise that it believes."""
    before, after = math.log(reading.baseline), math.log(reading.candidate)
    return Finding(
        status=ruling[0],
        reason=ruling[1],
        baseline=estimate_log_mean(before, reading.noise, reading.baseline_trials),
        candidate=estimate_log_mean(after, reading.noise, reading.trials),
        change=change,
        remarks=remarks,
    )


def _decide(metric: Metric, times: Times) -> Ruling:
    reading, bar = times.readings[metric], times.bars[metric]
    if reading.baseline_trials < MIN_BASELINE_TRIALS:
        return Status.INCONCLUSIVE, Reason.FEW_TRIALS
    ruling = _find_worse(metric, times)
    if ruling is not None:
        return ruling
    if reading.change < 0 and _find_worse(metric, times.mirror()) == WORSE:
        return BETTER
    is_clear = find_level(reading, bar) is Level.CLEAR
    if metric is Metric.COMPILED_LATENCY and Metric.WARM_SPEEDUP in times.readings:
        return _clear_calls(times, is_clear=is_clear)
    if metric in COMPILE_TIMES and not is_clear and times.work.is_same(metric):
        is_longer = metric is Metric.WARM_COMPILE_TIME and is_estimated_beyond(reading, bar)
        return OPEN if is_longer else _SAME
    return CLEAR if is_clear else OPEN


def _find_worse(metric: Metric, times: Times) -> Ruling | None:
    """REGRESSED where it surely is, INCONCLUSIVE where that may not be the program; else ``None``."""
    reading, bar = times.readings[metric], times.bars[metric]
    is_beyond = find_level(reading, bar) is Level.BEYOND
    if metric is Metric.COMPILED_LATENCY and Metric.WARM_SPEEDUP in times.readings:
        ratio, ratio_bar = times.readings[Metric.WARM_SPEEDUP], times.bars[Metric.WARM_SPEEDUP]
        # A ratio that eager's own gain has moved is sure of nothing that compiled did.
        is_sure = is_beyond or (find_level(ratio, ratio_bar) is Level.BEYOND and not _is_eager_faster(times))
        if is_sure and is_estimated_beyond(ratio, ratio_bar) and is_estimated_beyond(reading, bar):
            return WORSE
        return _SHARED if is_beyond else None
    if not is_beyond:
        return None
    if metric in COMPILE_TIMES and not times.work.explains(metric):
        return Status.INCONCLUSIVE, Reason.UNCORROBORATED
    return WORSE


def _clear_calls(times: Times, *, is_clear: bool) -> Ruling:
    """What the ratio says where the clock of compiled calls ``is_clear``, or leaves them open."""
    ratio, bar = times.readings[Metric.WARM_SPEEDUP], times.bars[Metric.WARM_SPEEDUP]
    keeps_pace = find_level(ratio, bar) is Level.CLEAR
    if is_clear:
        return CLEAR if keeps_pace or _is_eager_faster(times) else OPEN
    if keeps_pace and _is_slower(times):
        return _SHARED
    return _SAME if keeps_pace and times.stored_code else OPEN


def _is_slower(times: Times) -> bool:
    """Whether calls look slower by what matters, for sure, though the ratio stands and the suite does not.

    Eager got as much slower: something that both share did, and one case alone has no such machine.
    """
    latency, bar = times.readings[Metric.COMPILED_LATENCY], times.bars[Metric.COMPILED_LATENCY]
    low = compute_bound(latency, 1 - CLEAR_CONFIDENCE) - max(times.suite, 0.0)
    return is_estimated_beyond(latency, bar) and low > 0


def _is_eager_faster(times: Times) -> bool:
    eager = times.readings.get(Metric.EAGER_LATENCY)
    fall = times.readings[Metric.WARM_SPEEDUP].change
    return eager is not None and -eager.change >= SHARED_SHARE * fall
