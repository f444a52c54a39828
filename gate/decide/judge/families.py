"""Judges one metric, each family by its rule: times by stored values, counts and drift by any.

Stored times are of another session of the machine, so they convict only what is surely beyond its limit, and
where that could have another reason they leave it open: to more trials, or to pairs with the base.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from gate.decide.constants import (
    CLEAR_CONFIDENCE,
    DRIFT_BEYOND_ROUNDING,
    DRIFT_LIMIT_FLOAT32,
    DRIFT_LIMIT_HALF,
    DRIFT_ROUNDING_STEPS,
    DRIFT_SD_FLOOR,
    DRIFT_SIGMAS,
    MIN_BASELINE_TRIALS,
    SHARED_SHARE,
)
from gate.decide.evidence.proxies import Work
from gate.decide.evidence.values import Evidence, Question
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
    find_level,
    is_estimated_beyond,
    mirror_reading,
)
from gate.decide.stats import compute_variance, estimate_mean, estimate_metric, pool_variances
from gate.metrics import COMPILE_TIMES, Family, Role
from gate.records import MAYBE_WORSE, Case, Change, Code, Comparison, DType, Fact, Metric, Reason, Status

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


def make_finding(
    question: Question, reading: Reading, ruling: Ruling, change: Change, remarks: tuple[Fact, ...] = ()
) -> Comparison:
    """What was found by a reading, with both values and the noise that it believes."""
    before, after = math.log(reading.baseline), math.log(reading.candidate)
    return replace(
        question.find(*ruling, change, remarks),
        baseline=estimate_mean(before, reading.noise, reading.baseline_trials, of_logs=True),
        candidate=estimate_mean(after, reading.noise, reading.trials, of_logs=True),
    )


def judge_time(metric: Metric, times: Times) -> Ruling:
    """Judge one metric; the rule is in docs/decision.md."""
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
    if not keeps_pace:
        return OPEN
    # Slower by what matters, for sure, and the suite is not: eager got as much slower, by something that both
    # share. One case alone has no such machine.
    latency, latency_bar = times.readings[Metric.COMPILED_LATENCY], times.bars[Metric.COMPILED_LATENCY]
    low = compute_bound(latency, 1 - CLEAR_CONFIDENCE) - max(times.suite, 0.0)
    if is_estimated_beyond(latency, latency_bar) and low > 0:
        return _SHARED
    return _SAME if times.stored_code else OPEN


def _is_eager_faster(times: Times) -> bool:
    eager = times.readings.get(Metric.EAGER_LATENCY)
    fall = times.readings[Metric.WARM_SPEEDUP].change
    return eager is not None and -eager.change >= SHARED_SHARE * fall


def judge_steady(question: Question) -> Comparison:
    """Judge a metric that is not noisy: a counter, memory, Python calls or drift.

    A noisy one that no reading can be made of, since a value is zero or less, stays open.
    """
    if question.spec.family is Family.NOISY:
        return question.find(*OPEN, remarks=(Fact(code=Code.NO_RATIO),))
    return judge_drift(question) if question.spec.family is Family.LOG2 else judge_counted(question)


def judge_counted(question: Question) -> Comparison:
    """Judge a counter or an amount: more is worse, and every value of head counts against every stored one.

    Noise is far below what counts, so that nothing is left to chance while each arm agrees with itself.
    """
    before, after = question.before, question.after
    tolerance = max(question.threshold.relative * median(before), question.threshold.absolute)
    low, high = min(after) - max(before), max(after) - min(before)
    status, reason = OPEN
    if low > tolerance:
        status, reason = WORSE
    elif high < -tolerance:
        status, reason = BETTER
    elif high <= tolerance:
        status, reason = CLEAR
    if question.spec.role is Role.EXPLAINS and status is not Status.INCONCLUSIVE:
        status = Status.UNCHANGED
    is_ratio = question.spec.is_ratio
    scale = (median(before) or 1.0) if is_ratio else 1.0
    noticed = tolerance + max(before) - min(before)
    change = Change(
        centre=(median(after) - median(before)) / scale,
        low=low / scale,
        high=high / scale,
        detectable=(noticed if is_ratio else max(1.0, noticed)) / scale,
    )
    return question.find(status, reason, change)


def follow_leader(
    ratio: Comparison, leader: Comparison | None, eager: Comparison | None = None
) -> Comparison:
    """Let a ratio move only as far as what it is a ratio of: else eager needs less, or more.

    That is compiled's latency or peak of memory; unknown, it carries nothing. ``eager`` is what was found of
    eager's, where that is known.
    """
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


def follow_misses(calls: Comparison, misses: Comparison | None) -> Comparison:
    """Let calls of a compile move only where the caches have no part in it.

    A process that found nothing in the caches has compiled before its calls are counted, and set the compiler
    up: it counts up to two thirds fewer.
    """
    more = misses.change.centre if misses is not None and misses.change is not None else 0.0
    if (more > 0 and calls.status is Status.IMPROVED) or (more < 0 and calls.status in MAYBE_WORSE):
        return replace(calls, status=Status.UNCHANGED, reason=Reason.LEADER_STANDS)
    return calls


def judge_drift(question: Question) -> Comparison:
    """Judge the difference of the means against the absolute threshold, noise and the limit.

    A value beyond the limit convicts only when the baseline is within it and clearly lower.
    """
    before, after, threshold = question.before, question.after, question.threshold.absolute
    sd = math.sqrt(pool_variances(compute_variance(before), compute_variance(after)).value)
    noise = DRIFT_SIGMAS * max(sd, DRIFT_SD_FLOOR) * math.sqrt(1 / len(before) + 1 / len(after))
    change, limit = fmean(after) - fmean(before), get_limit(question.case, question.metric)
    if change > threshold:
        ruling = WORSE if change > noise else OPEN
    elif fmean(before) <= limit < fmean(after) and change > noise:
        ruling = Status.REGRESSED, Reason.LIMIT_EXCEEDED
    elif change < -threshold and -change > noise:
        ruling = BETTER
    else:
        ruling = OPEN if noise > threshold else CLEAR
    interval = Change(
        centre=change, low=change - noise, high=change + noise, detectable=max(threshold, noise) + noise
    )
    status, reason = ruling
    said = Fact(code=Code.DRIFT_LIMIT, numbers={"limit": limit})
    return question.find(status, reason, interval, (said,) if reason is Reason.LIMIT_EXCEEDED else ())


def judge_drift_alone(evidence: Evidence, metric: Metric) -> Comparison | None:
    """Judge drift that no baseline applies to: beyond the limit, and what rounding costs, it has regressed.

    A value beyond the limit that a baseline of another environment holds for the same definition waives it.
    ``None`` when there is nothing to say. The change is against the limit: it is what an acceptance allows.
    """
    case, after = evidence.case, evidence.values[metric]
    others = [one.baseline.trials.get(metric, ()) for one in evidence.stored if one.same_definition]
    limit = get_limit(case, metric)
    waived = any(fmean(values) > limit for values in others if values)
    if waived or fmean(after) <= limit or _is_rounding(evidence, metric):
        return None
    candidate = estimate_metric(metric, after)
    return replace(
        evidence.find_alone(metric, Status.REGRESSED, Reason.LIMIT_EXCEEDED),
        candidate=candidate,
        change=Change(
            centre=candidate.centre - limit,
            low=(candidate.centre if candidate.low is None else candidate.low) - limit,
            high=(candidate.centre if candidate.high is None else candidate.high) - limit,
            detectable=0.0,
        ),
        remarks=(Fact(code=Code.DRIFT_LIMIT, numbers={"limit": limit}),),
    )


def _is_rounding(evidence: Evidence, metric: Metric) -> bool:
    """Whether every trial is known to be no further from float64 than rounding explains."""
    most_steps = DRIFT_ROUNDING_STEPS if get_limit(evidence.case, metric) == DRIFT_LIMIT_FLOAT32 else 0.0
    known = [trial.worst.get(metric) for trial in evidence.trials if trial.samples.get(metric)]
    return all(
        one is not None
        and (0 < one.steps <= most_steps or (one.beyond is not None and one.beyond <= DRIFT_BEYOND_ROUNDING))
        for one in known
    )


_HALF = frozenset((DType.BFLOAT16, DType.FLOAT16))


def get_limit(case: Case, metric: Metric) -> float:
    """Largest drift, in log2 units, that is taken without a stored value to compare with."""
    if metric is not Metric.DRIFT_FLOAT32 and case.dtype in _HALF:
        return DRIFT_LIMIT_HALF
    return DRIFT_LIMIT_FLOAT32
