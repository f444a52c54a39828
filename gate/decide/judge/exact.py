"""Judges what hardly varies or does not vary at all: counters, memory and Python calls."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from gate.decide.constants import RANGE_FACTOR
from gate.decide.evidence.finding import Question
from gate.decide.judge.screen import is_too_noisy
from gate.metrics import Role
from gate.records import MAYBE_WORSE, NOT_WORSE, Change, Code, Fact, Finding, Reason, Status


def judge_exact(question: Question) -> Finding:
    """Judge a counter: more is worse, and nothing is left to chance while each arm agrees with itself.

    An amount that is as exact has a threshold, which a change must exceed.
    """
    status, reason = _decide_counter(question)
    if question.spec.role is Role.EXPLAINS and status is not Status.INCONCLUSIVE:
        status = Status.UNCHANGED
    return question.find(status, reason, _count_change(question))


def judge_nearly_exact(question: Question) -> Finding:
    """Judge a metric whose noise is far below its threshold: every trial must be beyond the tolerance.

    The tolerance is the larger of both thresholds and RANGE_FACTOR ranges of the baseline.
    """
    centre = median(question.before)
    tolerance = _compute_tolerance(question)
    excess = [value - centre for value in question.after]
    status, reason = _decide_excess(excess, tolerance)
    if status is Status.UNCHANGED:
        status, reason = _decide_unchanged(question)
    return question.find(status, reason, _scale_change(question, tolerance))


def follow_peak_memory(ratio: Finding, peak: Finding | None) -> Finding:
    """Let compiled over eager memory move only with compiled memory: else eager needs less, or more."""
    is_worse = ratio.status in MAYBE_WORSE
    if peak is None or not (is_worse or ratio.status is Status.IMPROVED):
        return ratio
    if (is_worse and peak.status in NOT_WORSE) or not (is_worse or peak.status is Status.IMPROVED):
        return acquit_ratio(ratio, _compute_eager_change(ratio, peak))
    if is_worse and peak.status is Status.INCONCLUSIVE:
        return replace(ratio, status=Status.INCONCLUSIVE, reason=Reason.SUSPECT)
    return ratio


def follow_misses(calls: Finding, misses: Finding | None) -> Finding:
    """Let calls of a compile move only where the caches have no part in it.

    A process that found nothing in the caches has compiled before its calls are counted, and set the compiler
    up: it counts up to two thirds fewer.
    """
    more = misses.change.centre if misses is not None and misses.change is not None else 0.0
    if (more > 0 and calls.status is Status.IMPROVED) or (more < 0 and calls.status in MAYBE_WORSE):
        return replace(calls, status=Status.UNCHANGED, reason=Reason.CACHES_DIFFER)
    return calls


def acquit_ratio(ratio: Finding, eager: float | None) -> Finding:
    """Call a ratio unchanged whose compiled part did not move as it did; ``eager`` is what its other did."""
    told = () if eager is None else (Fact(code=Code.EAGER_CHANGED, numbers={"change": eager}),)
    return replace(ratio, status=Status.UNCHANGED, reason=Reason.LEADER_STANDS, remarks=told)


def _compute_eager_change(ratio: Finding, peak: Finding) -> float | None:
    """What the changes of compiled, and of compiled over eager, leave to eager."""
    if ratio.change is None or peak.change is None or min(ratio.change.centre, peak.change.centre) <= -1:
        return None
    return (1 + peak.change.centre) / (1 + ratio.change.centre) - 1


def _decide_counter(question: Question) -> tuple[Status, Reason]:
    before, after, tolerance = set(question.before), set(question.after), question.threshold.absolute
    if before == after and len(before) == 1:
        return Status.UNCHANGED, Reason.EXACT_EQUAL
    if max(*before, *after) - min(*before, *after) <= tolerance:
        return Status.UNCHANGED, Reason.BELOW_THRESHOLD
    if min(after) - max(before) > tolerance:
        return Status.REGRESSED, Reason.EXACT_CHANGED
    if min(before) - max(after) > tolerance:
        return Status.IMPROVED, Reason.EXACT_CHANGED
    return Status.INCONCLUSIVE, Reason.COUNTER_UNSTABLE


def _count_change(question: Question) -> Change:
    before = median(question.before)
    return Change(
        centre=median(question.after) - before,
        low=min(question.after) - max(question.before),
        high=max(question.after) - min(question.before),
        detectable=max(1.0, question.threshold.absolute),
    )


def _compute_tolerance(question: Question) -> float:
    before = question.before
    relative = question.threshold.relative * median(before)
    return max(relative, question.threshold.absolute, RANGE_FACTOR * (max(before) - min(before)))


def _decide_excess(excess: list[float], tolerance: float) -> tuple[Status, Reason]:
    if min(excess) > tolerance:
        return Status.REGRESSED, Reason.BEYOND_BAR
    if max(excess) > tolerance:
        return Status.INCONCLUSIVE, Reason.SUSPECT
    if max(excess) < -tolerance:
        return Status.IMPROVED, Reason.BEYOND_BAR
    return Status.UNCHANGED, Reason.WITHIN_NOISE


def _decide_unchanged(question: Question) -> tuple[Status, Reason]:
    before, after = set(question.before), set(question.after)
    if before == after and len(before) == 1:
        return Status.UNCHANGED, Reason.EXACT_EQUAL
    spread = max(before) - min(before)
    scale = _scale(question)
    if is_too_noisy(RANGE_FACTOR * spread / scale, question.threshold, scale):
        return Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH
    moved = abs(median(question.after) - median(question.before))
    return Status.UNCHANGED, Reason.BELOW_THRESHOLD if moved > spread else Reason.WITHIN_NOISE


def _scale_change(question: Question, tolerance: float) -> Change:
    """The change as fractions of the baseline's median."""
    centre, scale = median(question.before), _scale(question)
    return Change(
        centre=(median(question.after) - centre) / scale,
        low=(min(question.after) - centre) / scale,
        high=(max(question.after) - centre) / scale,
        detectable=tolerance / scale,
    )


def _scale(question: Question) -> float:
    """What fractions are of; one unit where the baseline is nothing at all."""
    return abs(median(question.before)) or 1.0
