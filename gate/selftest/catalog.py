"""The known faults, and those of them that are worth a try on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from gate.devices import find_kind
from gate.errors import UsageError
from gate.metrics import find_planted
from gate.records import FailureKind
from gate.records.faults import Demand, Fault, FaultKind, Method

EXACTLY = Demand(catch=1.0, miss=0.0)
# What must not be red may be so with the probability that a whole verdict allows itself.
HARMLESS = Demand(false_alarm=0.01)
UNASKED = Demand()
_SEEN = Demand(catch=0.95, miss=0.0)
_MOSTLY_SEEN = Demand(catch=0.80, miss=0.05)
_SLOWDOWNS = (0.30, 0.10, 0.05, 0.03, 0.02)  # the surest first
_COLD_COMPILE_SIZE = 0.15  # one and a half thresholds, where pairs vary by 2 to 4 %
_EAGER_SIZE = 0.20  # several thresholds of the speedup
_MEMORY_SIZES = (0.02, 0.10)  # below the threshold, and beyond it
_QUICK_SIZE = 0.30
# The same program behind the same wrapping: what every other fault is held against.
NOTHING = Fault(kind=FaultKind.NOTHING, method=Method.PAIRS, demand=HARMLESS)
_EXACT = Fault(kind=FaultKind.NOTHING, method=Method.ONCE, demand=EXACTLY)


def list_faults(device_kind: str, *, quick: bool = False) -> tuple[Fault, ...]:
    """List the faults for a kind of device in the order in which they are worth a try.

    ``quick`` leaves out all that takes many pairs but nothing and the largest slowdown.
    """
    timed = _list_timed(device_kind)
    if quick:
        timed = tuple(one for one in timed if one.kind is FaultKind.NOTHING or one.size == _QUICK_SIZE)
    return (*_list_exact(), *timed)


def choose_faults(faults: Sequence[Fault], patterns: str) -> tuple[Fault, ...]:
    """Choose by name: patterns as of a shell, joined by commas. Nothing at all is always tried, as a measure.

    Raises:
        UsageError: A pattern fits no fault.
    """
    wanted = [pattern.strip() for pattern in patterns.split(",")]
    for pattern in wanted:
        if not any(fnmatchcase(fault.name, pattern) for fault in faults):
            names = ", ".join(fault.name for fault in faults)
            raise UsageError(
                f"--faults: no fault that fits the cases is called {pattern!r}", f"Choose among {names}."
            )
    return tuple(
        fault
        for fault in faults
        if fault == NOTHING or any(fnmatchcase(fault.name, pattern) for pattern in wanted)
    )


def _list_exact() -> tuple[Fault, ...]:
    kinds = (
        *(FaultKind.GRAPH_BREAK, FaultKind.RECOMPILE, FaultKind.LOST_CACHE),
        *(FaultKind.LOW_PRECISION, FaultKind.WRONG_EPS),
    )
    failures = {
        FaultKind.VANISHED: FailureKind.ERROR,
        FaultKind.CRASH: FailureKind.CRASH,
        FaultKind.HANG: FailureKind.HANG,
        FaultKind.NOT_A_NUMBER: FailureKind.NOT_FINITE,
    }
    return (
        *(replace(_EXACT, kind=kind, failure=failure) for kind, failure in failures.items()),
        *(replace(_EXACT, kind=kind, metric=find_planted(kind)) for kind in kinds),
        *(
            replace(_EXACT, kind=FaultKind.MEMORY, size=size, metric=find_planted(FaultKind.MEMORY))
            for size in _MEMORY_SIZES
        ),
    )


def _list_timed(device_kind: str) -> tuple[Fault, ...]:
    least = find_kind(device_kind).asked_slowdown
    asked = [_make_timed(FaultKind.SLOWDOWN, size, _SEEN) for size in _SLOWDOWNS if size > least]
    unasked = [_make_timed(FaultKind.SLOWDOWN, size, UNASKED) for size in _SLOWDOWNS if size < least]
    return (
        NOTHING,
        *asked,
        _make_timed(FaultKind.SLOWDOWN, least, _MOSTLY_SEEN),
        _make_timed(FaultKind.COLD_COMPILE, _COLD_COMPILE_SIZE, _MOSTLY_SEEN),
        _make_timed(FaultKind.EAGER_FASTER, _EAGER_SIZE, HARMLESS),
        *unasked,
    )


def _make_timed(kind: FaultKind, size: float, demand: Demand) -> Fault:
    """Make a fault that takes pairs; what must not be red shows in no metric."""
    metric = None if demand is HARMLESS else find_planted(kind)
    return Fault(kind=kind, method=Method.PAIRS, demand=demand, size=size, metric=metric)
