"""How much of a fault to plant, from what the base itself measured; and the case that carries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from gate.metrics import find_planted
from gate.records import DEFAULT_BACKEND, Case, Metric, Mode, Task, Threshold
from gate.records.faults import Fault, FaultKind

FACTORY = "gate.selftest.planted.factory:plant"

# A change at its threshold is found in half of all cases by construction: the gate has to catch what
# is this many thresholds large. (15 % against 10 %, 5 % against 3 %.)
ASKED_THRESHOLDS = 1.4
# Memory and compile time of small cases lie so low that a tenth of them is below the absolute part of
# the threshold: then so many times that part is planted, and the report says how much it came to.
FLOOR_MARGIN = 1.5
_LIFTED = frozenset({FaultKind.MEMORY, FaultKind.COLD_COMPILE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Dose:
    """How much of a fault: ``amount`` in the unit of what it changes, ``planted`` as a fraction.

    ``is_asked`` says whether the gate has to catch that much, by the thresholds in force.
    """

    amount: float = 0.0
    planted: float = 0.0
    is_asked: bool = True


def find_scale(fault: Fault) -> Metric | None:
    """Find the metric that a fault's size is a fraction of and its dose is in; ``None`` without a size."""
    return find_planted(fault.kind) if fault.size else None


def prescribe_dose(fault: Fault, base: Sequence[float], threshold: Threshold) -> Dose:
    """Prescribe a dose; ``base`` are the base's values of :func:`find_scale`'s metric.

    ``threshold`` is the one in force for that metric: what lies below it is planted all the same, but
    nobody asks the gate to catch it.
    """
    if find_scale(fault) is None:
        return Dose()
    amount = fault.size * median(base)
    if fault.kind in _LIFTED and fault.size >= ASKED_THRESHOLDS * threshold.relative:
        amount = max(amount, FLOOR_MARGIN * threshold.absolute)
    return weigh_dose(amount, base, threshold)


def weigh_dose(amount: float, base: Sequence[float], threshold: Threshold) -> Dose:
    """Weigh an amount against the base's values: those that it was prescribed by, or those beside it.

    A machine whose load changes makes the same seconds another fraction.
    """
    scale = median(base)
    edge = max(threshold.relative * scale, threshold.absolute)
    return Dose(amount=amount, planted=amount / scale, is_asked=amount >= ASKED_THRESHOLDS * edge)


def is_fitting(fault: Fault, case: Case) -> bool:
    """Whether a fault can be planted into a case and does there what it says.

    A test of the user's own has no factory; a training step holds most memory after the forward, where
    the buffer is gone again; CUDA graphs, which other modes use, have their own rules for operators; and
    with ``fullgraph``, options or another backend a fault shows in other ways than it is judged by.
    """
    is_plain = case.mode is Mode.DEFAULT and case.backend == DEFAULT_BACKEND
    if not case.factory or not is_plain or case.fullgraph or case.options:
        return False
    return fault.kind is not FaultKind.MEMORY or case.task is Task.INFERENCE


def plant_case(case: Case, fault: Fault, dose: Dose) -> Case:
    """Make the case that carries a fault: its factory builds the original and wraps its forward.

    The id and the definition stay those of the original: a fault stands for a change in the code that
    a case's factory calls, which its definition does not cover. So base and head are compared as one
    case and neither is stale.
    """
    if fault.kind is FaultKind.VANISHED:
        return replace(case, factory=f"{case.factory}_is_gone")
    arguments = {
        "factory": case.factory,
        "arguments": dict(case.arguments),
        "fault": fault.kind.value,
        "dose": dose.amount,
    }
    return replace(case, factory=FACTORY, arguments=arguments)
