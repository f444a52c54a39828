"""What else could explain a change: the machine, eager in the same process, a compile without more work.

A doubt never acquits: it asks for a higher bar, or leaves the comparison inconclusive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gate.decide.constants import (
    CANARY_LIMIT,
    CORROBORATING_CALLS,
    CORROBORATING_PROCESSOR,
    SHARED_SHARE,
    SHARED_THRESHOLDS,
    SHARED_TRIALS,
    STEADY_SHARE,
    UNCORROBORATED_THRESHOLDS,
)
from gate.decide.judge.screen import (
    Bar,
    Level,
    Reading,
    compute_detectable,
    compute_edge,
    is_beyond,
    is_blind,
    mirror_reading,
    screen_change,
)
from gate.metrics import COMPILE_TIMES
from gate.records import Metric, Reason, Threshold


@dataclass(frozen=True, kw_only=True, slots=True)
class Controls:
    """The controls of one case; changes are logarithms with + worse, ``None`` where unknown."""

    shifts: tuple[float, ...] = ()  # of the machine, those large enough to be judged without
    sure_shifts: tuple[float, ...] = ()  # of these, those beyond their own noise: they may clear
    canary_shifts: tuple[float, ...] = ()  # of the shifts those that eager has no part in
    canary: float | None = None
    eager: Reading | None = None
    speedup: Reading | None = None
    speedup_bar: Bar | None = None
    calls: float | None = None  # Python calls of a compile
    processor: float | None = None  # CPU time of a cold compile, its compilers' included
    traces: bool = False  # graph, caches or how much code was generated differ from the baseline's
    stored_code: bool = False  # a call runs nothing but the code that the baseline's compile made
    calm: bool = True  # no throttling and no other process on the device


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A reason not to believe a conviction unless it goes this many thresholds further."""

    reason: Reason
    thresholds: float
    liftable: bool  # whether going further is enough


def mirror_controls(controls: Controls) -> Controls:
    """The same controls with better and worse exchanged."""
    return replace(
        controls,
        shifts=tuple(-shift for shift in controls.shifts),
        sure_shifts=tuple(-shift for shift in controls.sure_shifts),
        canary_shifts=tuple(-shift for shift in controls.canary_shifts),
        canary=None if controls.canary is None else -controls.canary,
        eager=controls.eager and mirror_reading(controls.eager),
        speedup=controls.speedup and mirror_reading(controls.speedup),
        calls=None if controls.calls is None else -controls.calls,
        processor=None if controls.processor is None else -controls.processor,
    )


def find_doubt(reading: Reading, controls: Controls) -> Doubt | None:
    """The doubt that the controls cast on a worsening of this metric, if any."""
    if reading.metric is Metric.COMPILED_LATENCY and is_shared(reading, controls):
        steady = is_steady(reading, controls) and reading.trials >= SHARED_TRIALS
        return Doubt(reason=Reason.SHARED_SHIFT, thresholds=SHARED_THRESHOLDS, liftable=steady)
    if reading.metric in COMPILE_TIMES and not is_corroborated(reading.metric, controls):
        waited = reading.metric is Metric.COLD_COMPILE_TIME and controls.processor is not None
        return Doubt(reason=Reason.UNCORROBORATED, thresholds=UNCORROBORATED_THRESHOLDS, liftable=not waited)
    return None


def is_shared(reading: Reading, controls: Controls) -> bool:
    """Whether eager, in the same processes, explains half or more and the ratio is not convicted."""
    if controls.eager is None or controls.eager.change < SHARED_SHARE * reading.change:
        return False
    if controls.speedup is None or controls.speedup_bar is None:
        return True
    return not is_beyond(controls.speedup, controls.speedup_bar)


def is_steady(reading: Reading, controls: Controls) -> bool:
    """Whether the canaries are known, moved by little, and nothing else ran on the device."""
    if controls.canary is None or not controls.calm:
        return False
    allowed = max(math.log1p(CANARY_LIMIT), STEADY_SHARE * reading.change)
    return abs(controls.canary) <= allowed


def is_corroborated(metric: Metric, controls: Controls) -> bool:
    """Whether a longer compile left a trace besides the clock; so it is taken where nothing is known.

    A cold compile whose CPU time is known on both sides must have taken more of it, or made more
    Python calls: a guard more is a trace, and no reason for seconds.
    """
    if metric is Metric.COLD_COMPILE_TIME and controls.processor is not None:
        busier = controls.processor > math.log1p(CORROBORATING_PROCESSOR)
        return busier or has_more_calls(controls)
    return has_witness(controls)


def is_same_work(metric: Metric, controls: Controls) -> bool:
    """Whether a compile is known to have done its baseline's work: what repeats exactly did not move.

    Then the clock alone could tell a change of its time, and the clock varies with the machine.
    """
    if metric not in COMPILE_TIMES or controls.calls is None or has_witness(controls):
        return False
    return metric is not Metric.COLD_COMPILE_TIME or not is_corroborated(metric, controls)


def keeps_pace(reading: Reading, bar: Bar, controls: Controls) -> bool:
    """Whether calls of the baseline's own code are known to have kept pace with eager's, block by block.

    Then latency alone could tell a change, and latency varies with the machine, which slows eager as well.
    The ratio is held to what would matter of the latency, where its own threshold is larger.
    """
    speedup = controls.speedup
    if reading.metric is not Metric.COMPILED_LATENCY or not controls.stored_code:
        return False
    if speedup is None or controls.speedup_bar is None:
        return False
    own_edge = compute_edge(controls.speedup_bar.threshold, speedup.baseline)
    edge = min(own_edge, compute_edge(bar.threshold, reading.baseline))
    ratio_bar = replace(controls.speedup_bar, threshold=Threshold(relative=edge, absolute=0.0))
    if is_blind(compute_detectable(speedup, ratio_bar), ratio_bar.threshold, speedup.baseline):
        return False
    return screen_change(speedup, ratio_bar) is Level.CLEAR


def has_witness(controls: Controls) -> bool:
    """Whether a compile did other work that can be counted, or nobody counted."""
    return controls.calls is None or controls.traces or has_more_calls(controls)


def has_more_calls(controls: Controls) -> bool:
    """Whether a compile is known to have made more Python calls."""
    return controls.calls is not None and controls.calls > math.log1p(CORROBORATING_CALLS)
