"""Judges the noisy metrics: latencies, compile times and their ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gate.decide.constants import MIN_BASELINE_TRIALS, SHARED_SHARE
from gate.decide.judge.controls import (
    Controls,
    Doubt,
    find_doubt,
    is_same_work,
    keeps_pace,
    mirror_controls,
)
from gate.decide.judge.exact import acquit_ratio
from gate.decide.judge.screen import (
    Bar,
    Level,
    Reading,
    compute_detectable,
    is_beyond,
    is_doubtful,
    is_estimated_beyond,
    is_significant,
    is_too_noisy,
    make_change,
    mirror_reading,
    screen_change,
)
from gate.decide.stats.estimate import estimate_log_mean
from gate.records import Change, Code, Fact, Finding, Metric, Reason, Status


def judge_noisy(reading: Reading, bar: Bar, controls: Controls) -> Finding:
    """Judge one reading; the rule is in docs/decision.md, "Noisy metrics"."""
    detectable = compute_detectable(reading, bar)
    found = _decide_status(reading, bar, controls, detectable)
    told = _name_doubt(found, reading, bar, controls)
    return make_finding(reading, found, make_change(reading, detectable), told)


def make_finding(
    reading: Reading, found: tuple[Status, Reason], change: Change, remarks: tuple[Fact, ...]
) -> Finding:
    """What was found of a reading, with both values and the noise that it believes."""
    before = math.log(reading.baseline)
    after = before + reading.direction * reading.change
    return Finding(
        status=found[0],
        reason=found[1],
        baseline=estimate_log_mean(before, reading.noise, reading.baseline_trials),
        candidate=estimate_log_mean(after, reading.noise, reading.trials),
        change=change,
        remarks=remarks,
    )


def follow_latency(speedup: Finding, latency: Finding | None, controls: Controls) -> Finding:
    """Let the ratio's finding stand only as far as compiled latency's own finding carries it."""
    if speedup.status is Status.UNCHANGED or speedup.reason in _NOT_A_CHANGE:
        return speedup
    eager = math.expm1(controls.eager.change) if controls.eager else None
    carried = latency.status if latency else Status.INCONCLUSIVE
    if speedup.status is Status.IMPROVED:
        return speedup if carried is Status.IMPROVED else acquit_ratio(speedup, eager)
    if carried is Status.INCONCLUSIVE:
        return replace(speedup, status=Status.INCONCLUSIVE, reason=Reason.SUSPECT)
    if carried is Status.REGRESSED:
        return speedup
    if is_eager_faster(controls):
        return replace(speedup, status=Status.UNCHANGED, reason=Reason.EAGER_FASTER)
    return acquit_ratio(speedup, eager)


def is_eager_faster(controls: Controls) -> bool:
    """Whether eager getting faster explains at least SHARED_SHARE of the ratio's fall.

    What canaries say for sure of a faster machine is not eager's: compiled code has it as well.
    """
    eager, speedup = controls.eager, controls.speedup
    if eager is None or speedup is None:
        return False
    machine = min((shift for shift in controls.canary_shifts if shift in controls.sure_shifts), default=0.0)
    return min(machine, 0.0) - eager.change >= SHARED_SHARE * speedup.change


_SAME_WORK = (Status.UNCHANGED, Reason.SAME_WORK)
_KEPT_PACE = (Status.UNCHANGED, Reason.KEPT_PACE)
# INCONCLUSIVE for want of knowledge, not because something seems to have moved.
_NOT_A_CHANGE = frozenset({Reason.FEW_TRIALS, Reason.NOISE_TOO_HIGH})


def _decide_status(
    reading: Reading, bar: Bar, controls: Controls, detectable: float
) -> tuple[Status, Reason]:
    if reading.baseline_trials < MIN_BASELINE_TRIALS:
        return Status.INCONCLUSIVE, Reason.FEW_TRIALS
    worse = _find_worse(reading, bar, controls)
    alike = _find_alike(reading, bar, controls)
    if worse is not None:
        return alike or worse
    better = _find_better(reading, bar, controls)
    if better is Status.IMPROVED:
        return alike or (Status.IMPROVED, Reason.BEYOND_BAR)
    if is_too_noisy(detectable, bar.threshold, reading.baseline):
        return alike or (Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH)
    if alike == _KEPT_PACE and is_doubtful(reading, bar, controls.shifts):
        return alike
    return Status.UNCHANGED, _explain_unchanged(reading, bar, better)


def _explain_unchanged(reading: Reading, bar: Bar, better: Status | None) -> Reason:
    """Why nothing is claimed, beside an interval that excludes no change: not for its noise."""
    is_large = reading.change > math.log1p(bar.threshold.relative)
    if is_large and screen_change(reading, bar) is not Level.CLEAR:
        return Reason.MACHINE_SHIFT
    if not is_significant(reading):
        return Reason.WITHIN_NOISE
    return Reason.UNCLAIMED if better is Status.INCONCLUSIVE else Reason.BELOW_THRESHOLD


def _find_alike(reading: Reading, bar: Bar, controls: Controls) -> tuple[Status, Reason] | None:
    """What clears a time that only the clock doubts: a compile of the same work, calls of the same code."""
    if is_same_work(reading.metric, controls):
        shows = _is_convicted(reading, bar, controls.shifts) or _is_unwitnessed(reading, bar, controls)
        return None if shows else _SAME_WORK
    if keeps_pace(reading, bar, controls):  # by eager: what eager says of the machine is no second witness
        return None if _is_convicted(reading, bar, controls.canary_shifts) else _KEPT_PACE
    return None


def _is_unwitnessed(reading: Reading, bar: Bar, controls: Controls) -> bool:
    """Whether a warm compile looks longer than it may: its Python calls are counted without the caches.

    What it does with them, reading and loading, no counter shows.
    """
    if reading.metric is not Metric.WARM_COMPILE_TIME:
        return False
    return all(is_estimated_beyond(reading, bar, shift) for shift in (0.0, *controls.sure_shifts))


def _is_convicted(reading: Reading, bar: Bar, shifts: Sequence[float]) -> bool:
    """Whether the clock convicts in every view of the machine: then it is not the machine's doing."""
    return all(screen_change(reading, bar, shift) is Level.CONVICTED for shift in (0.0, *shifts))


def _find_better(reading: Reading, bar: Bar, controls: Controls) -> Status | None:
    """IMPROVED where the mirror image would be convicted; a doubtful improvement is not claimed."""
    if -reading.change <= math.log1p(bar.threshold.relative):  # spares most the mirror
        return None
    mirror = mirror_reading(reading)
    if _find_worse(mirror, bar, mirror_controls(controls)) == (Status.REGRESSED, Reason.BEYOND_BAR):
        return Status.IMPROVED
    return None if screen_change(mirror, bar) is Level.CLEAR else Status.INCONCLUSIVE


def _find_worse(reading: Reading, bar: Bar, controls: Controls) -> tuple[Status, Reason] | None:
    """REGRESSED, INCONCLUSIVE or ``None``: convicted only as seen raw and without each shift alike.

    A shift within its own noise can keep a conviction back, and clears nobody.
    """
    views = (0.0, *controls.shifts)
    levels = [screen_change(reading, bar, shift) for shift in views]
    doubt = find_doubt(reading, controls)
    if min(levels) is Level.CONVICTED:
        if doubt is None or _is_lifted(doubt, reading, bar, views):
            return Status.REGRESSED, Reason.BEYOND_BAR
        return Status.INCONCLUSIVE, doubt.reason
    if doubt is None and _is_convicted_by_ratio(reading, bar, controls):
        return Status.REGRESSED, Reason.BEYOND_BAR
    if max(levels) is Level.CONVICTED:
        return Status.INCONCLUSIVE, Reason.MACHINE_SHIFT
    if _is_cleared(reading, bar, controls.sure_shifts) or _is_idle_suspicion(doubt, reading, bar):
        return None
    return Status.INCONCLUSIVE, doubt.reason if doubt else Reason.SUSPECT


def _is_cleared(reading: Reading, bar: Bar, sure_shifts: Sequence[float]) -> bool:
    """Whether it is no slower as seen raw, or without a slowdown that the machine is sure to have.

    As seen raw a machine that surely got faster hides a slowdown: then it is clear without that as well.
    """
    slower = [shift for shift in sure_shifts if shift > 0]
    faster = [shift for shift in sure_shifts if shift < 0]
    is_clear = {shift: screen_change(reading, bar, shift) is Level.CLEAR for shift in (0.0, *sure_shifts)}
    return any(is_clear[shift] for shift in slower) or all(is_clear[shift] for shift in (0.0, *faster))


def _is_convicted_by_ratio(reading: Reading, bar: Bar, controls: Controls) -> bool:
    """Whether eager, timed between compiled's own blocks, convicts where latency alone is too noisy.

    The ratio must be beyond its bar, compiled latency be estimated beyond its threshold in every view,
    and eager not have lowered the ratio by getting faster.
    """
    if reading.metric is not Metric.COMPILED_LATENCY or is_eager_faster(controls):
        return False
    if controls.speedup is None or controls.speedup_bar is None:
        return False
    views = (0.0, *controls.shifts)
    beyond = (is_estimated_beyond(reading, bar, shift) for shift in views)
    return is_beyond(controls.speedup, controls.speedup_bar) and all(beyond)


def _is_lifted(doubt: Doubt, reading: Reading, bar: Bar, views: tuple[float, ...]) -> bool:
    return doubt.liftable and all(is_beyond(reading, bar, shift, doubt.thresholds) for shift in views)


def _is_idle_suspicion(doubt: Doubt | None, reading: Reading, bar: Bar) -> bool:
    """A compile time that looks longer by less than its threshold while its proxies stand still."""
    if doubt is None or doubt.reason is not Reason.UNCORROBORATED:
        return False
    return reading.change <= math.log1p(bar.threshold.relative)


def _name_doubt(
    found: tuple[Status, Reason], reading: Reading, bar: Bar, controls: Controls
) -> tuple[Fact, ...]:
    """How the machine changed and what is left without that; what a compile took of CPU time."""
    status, reason = found
    if reason is Reason.UNCORROBORATED and controls.processor is not None:
        change = math.expm1(controls.processor)
        is_cold = reading.metric is Metric.COLD_COMPILE_TIME
        return (Fact(code=Code.PROCESSOR_TIME, numbers={"change": change}),) if is_cold else ()
    if reason is not Reason.MACHINE_SHIFT:
        return ()
    # What looks slower as seen raw a slower machine may explain; what does not, a faster one may hide.
    looks_slower = screen_change(reading, bar) is Level.CONVICTED or status is Status.UNCHANGED
    shifts = controls.sure_shifts if status is Status.UNCHANGED else controls.shifts
    shift = max(shifts) if looks_slower else min(shifts)
    numbers = {"shift": math.expm1(shift), "without": math.expm1(reading.change - shift)}
    return (Fact(code=Code.MACHINE_MOVED, numbers=numbers),)
