"""The known faults, which to try on which cases, how much of one to plant, and whether it was caught."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from statistics import median

from gate.devices import get_kind
from gate.errors import UsageError
from gate.metrics import find_planted
from gate.records.cases import (
    DEFAULT_BACKEND,
    Case,
    Metric,
    Mode,
    Task,
    Threshold,
    fits_pattern,
    fits_term,
    split_pattern,
)
from gate.records.run import CaseFailure, FailureKind
from gate.records.studies import FaultKind
from gate.records.verdict import RED, Comparison, Status

FACTORY = "gate.selftest.planted:plant"

# A change at its threshold is found in half of all cases by construction: the gate has to catch what
# is this many thresholds large. (15 % against 10 %, 5 % against 3 %.)
ASKED_THRESHOLDS = 1.4
# Memory and compile time of small cases lie so low that a tenth of them is below the absolute part of
# the threshold: then so many times that part is planted, and the report says how much it came to.
FLOOR_MARGIN = 1.5
_LIFTED = frozenset({FaultKind.MEMORY, FaultKind.COLD_COMPILE})
FALSE_ALARMS = 0.01  # of changes that must not be red: what a whole verdict allows itself
_SLOWDOWNS = (0.30, 0.10, 0.05, 0.03, 0.02)  # the surest first
_MEMORY_SIZES = (0.02, 0.10)  # below the threshold, and beyond it
_QUICK_SIZE = 0.30
_FAILURES = {
    FaultKind.VANISHED: FailureKind.ERROR,
    FaultKind.CRASH: FailureKind.CRASH,
    FaultKind.HANG: FailureKind.HANG,
    FaultKind.NOT_A_NUMBER: FailureKind.NOT_FINITE,
}
_COUNTED = (
    *(FaultKind.GRAPH_BREAK, FaultKind.RECOMPILE, FaultKind.LOST_CACHE),
    *(FaultKind.LOW_PRECISION, FaultKind.WRONG_EPS),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One fault of one size, and what is asked of the gate over many attempts."""

    kind: FaultKind
    size: float = 0.0  # a fraction of the base's value, 0 where there is none
    metric: Metric | None = None  # where it must show
    failure: FailureKind | None = None  # how the case must fail
    caught: float = 0.0  # at least this share
    missed: float = 1.0  # at most this share; what is neither is inconclusive

    @property
    def name(self) -> str:
        """What ``--faults`` calls it, and its directory begins with: ``graph_break``, ``slowdown-5%``."""
        return f"{self.kind.value}-{100 * self.size:.0f}%" if self.size else self.kind.value

    @property
    def is_certain(self) -> bool:
        """Whether nothing is left to chance: a trial or two show it, and it takes no pairs."""
        return self.caught == 1.0

    @property
    def is_harmless(self) -> bool:
        """Whether the gate must not turn red: nothing got worse."""
        return self.metric is None and self.failure is None

    @property
    def is_in_base(self) -> bool:
        """So that the head looks better."""
        return self.kind is FaultKind.EAGER_FASTER


# The same program behind the same wrapping: every other fault is compared with it.
NOTHING = Fault(kind=FaultKind.NOTHING)


def list_faults(device_kind: str, *, quick: bool = False) -> tuple[Fault, ...]:
    """In the order in which they are worth a try; ``quick`` leaves out most of what takes pairs."""
    certain = partial(Fault, caught=1.0, missed=0.0)
    memory = partial(certain, kind=FaultKind.MEMORY, metric=find_planted(FaultKind.MEMORY))
    timed = _list_timed(device_kind)
    return (
        *(certain(kind=kind, failure=failure) for kind, failure in _FAILURES.items()),
        *(certain(kind=kind, metric=find_planted(kind)) for kind in _COUNTED),
        *(memory(size=size) for size in _MEMORY_SIZES),
        *(fault for fault in timed if not quick or fault == NOTHING or fault.size == _QUICK_SIZE),
    )


def _list_timed(device_kind: str) -> tuple[Fault, ...]:
    least = get_kind(device_kind).asked_slowdown
    slowdown = partial(Fault, kind=FaultKind.SLOWDOWN, metric=find_planted(FaultKind.SLOWDOWN))
    cold_compile = find_planted(FaultKind.COLD_COMPILE)
    return (
        NOTHING,
        *(slowdown(size=size, caught=0.95, missed=0.0) for size in _SLOWDOWNS if size > least),
        slowdown(size=least, caught=0.80, missed=0.05),
        # One and a half thresholds, where pairs vary by 2 to 4 %; and several thresholds of the speedup.
        Fault(kind=FaultKind.COLD_COMPILE, size=0.15, metric=cold_compile, caught=0.80, missed=0.05),
        Fault(kind=FaultKind.EAGER_FASTER, size=0.20),
        *(slowdown(size=size) for size in _SLOWDOWNS if size < least),
    )


def choose_faults(faults: Sequence[Fault], patterns: str) -> tuple[Fault, ...]:
    """Choose by name, as ``fits_pattern`` does. Nothing at all is always tried, as a measure.

    Raises:
        UsageError: A part of the pattern fits no fault.
    """
    removed, named = split_pattern(patterns)
    for term in [*removed, *named] or [""]:
        if not any(fits_term(term, fault.name) for fault in faults):
            names = ", ".join(fault.name for fault in faults)
            raise UsageError(
                f"--faults: no fault that fits the cases is called {term!r}", f"Choose among {names}."
            )
    return tuple(fault for fault in faults if fault == NOTHING or fits_pattern(patterns, fault.name))


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultSize:
    amount: float = 0.0  # in the unit of what it changes
    planted: float = 0.0  # a fraction of the base's value
    is_asked: bool = True  # whether the gate has to catch that much, by the thresholds in force


def find_scale(fault: Fault) -> Metric | None:
    """Find the metric that its size is a fraction of, and its amount is in; ``None`` without a size."""
    return find_planted(fault.kind) if fault.size else None


def choose_size(fault: Fault, base: Sequence[float], threshold: Threshold) -> FaultSize:
    """Choose how much to plant; ``base`` and ``threshold`` are of :func:`find_scale`'s metric."""
    amount = fault.size * median(base)
    if fault.kind in _LIFTED and fault.size >= ASKED_THRESHOLDS * threshold.relative:
        amount = max(amount, FLOOR_MARGIN * threshold.absolute)
    return measure_size(amount, base, threshold)


def measure_size(amount: float, base: Sequence[float], threshold: Threshold) -> FaultSize:
    """Compare an amount with the base's values: those that it was chosen from, or those of the same pair."""
    scale = median(base)
    edge = max(threshold.relative * scale, threshold.absolute)
    return FaultSize(amount=amount, planted=amount / scale, is_asked=amount >= ASKED_THRESHOLDS * edge)


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


def plant_case(case: Case, fault: Fault, size: FaultSize) -> Case:
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
        "amount": size.amount,
    }
    return replace(case, factory=FACTORY, arguments=arguments)


def choose_attempted(cases: Sequence[Case], *, named: bool) -> tuple[Case, ...]:
    """All that faults can be planted into where they were named, else the cheapest.

    Raises:
        UsageError: There is none.
    """
    fitting = sorted((case for case in cases if is_fitting(NOTHING, case)), key=lambda case: case.expected_s)
    if not fitting:
        raise UsageError(
            "no selected case can carry a fault: it needs a factory and the default mode",
            "Select another case with --select; `compile-gate models` lists them.",
        )
    return tuple(fitting if named else fitting[:1])


def schedule_faults(
    faults: Sequence[Fault], cases: Sequence[Case], repeats: int
) -> Iterator[tuple[Fault, Case, int]]:
    """Yield what to try next, with the number of the round: first what needs no statistics.

    Where there are several cases they take turns.
    """
    for turn, fault in enumerate(fault for fault in faults if fault.is_certain):
        if fitting := [case for case in cases if is_fitting(fault, case)]:
            yield fault, fitting[turn % len(fitting)], 1
    timed = [fault for fault in faults if not fault.is_certain]
    for number in range(repeats):
        yield from ((fault, cases[number % len(cases)], number + 1) for fault in timed)


class Result(StrEnum):
    CAUGHT = "caught"
    QUIET = "quiet"  # harmless, and not red
    INCONCLUSIVE = "inconclusive"
    MISSED = "missed"
    FALSE_ALARM = "false_alarm"  # harmless, and red
    BROKEN = "broken"  # the trial itself failed: nothing is known


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """What the gate made of one planted fault, and what it said: of a metric, of a failure, or nothing."""

    result: Result
    row: Comparison | None = None
    failure: CaseFailure | None = None


def judge_fault(fault: Fault, comparisons: Iterable[Comparison], failures: Sequence[CaseFailure]) -> Opinion:
    rows = [row for row in comparisons if row.decides]
    if fault.failure is not None:
        return _judge_failure(fault, rows, failures)
    if failures:
        return Opinion(result=Result.BROKEN, failure=failures[0])
    if fault.is_harmless:
        return _judge_harmless(rows)
    row = next((row for row in rows if row.metric is fault.metric), None)
    results = {Status.REGRESSED: Result.CAUGHT, Status.INCONCLUSIVE: Result.INCONCLUSIVE}
    return Opinion(result=results.get(row.status, Result.MISSED) if row else Result.MISSED, row=row)


def _judge_failure(fault: Fault, rows: Sequence[Comparison], failures: Sequence[CaseFailure]) -> Opinion:
    """A failure must be reported under its own kind, and the case must be FAILED for it."""
    failure = next((failure for failure in failures if failure.kind is fault.failure), None)
    if failure is None or not any(row.status is Status.FAILED for row in rows):
        return Opinion(result=Result.MISSED)
    return Opinion(result=Result.CAUGHT, failure=failure)


def _judge_harmless(rows: Sequence[Comparison]) -> Opinion:
    for statuses, result in ((RED, Result.FALSE_ALARM), ({Status.INCONCLUSIVE}, Result.INCONCLUSIVE)):
        row = next((row for row in rows if row.status in statuses), None)
        if row:
            return Opinion(result=result, row=row)
    return Opinion(result=Result.QUIET)
