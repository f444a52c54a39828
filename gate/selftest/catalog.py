"""The known faults, which to try on which cases, how much of one to plant, and whether it was caught."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import fmean, median

from gate.decide.stats import compute_rate
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
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import CaseFailure, FailureKind
from gate.records.studies import Attempt, Complaint, Demand, Fault, FaultKind, FaultScore, Result
from gate.records.verdict import RED, Comparison, Status

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
# The same program behind the same wrapping: every other fault is compared with it.
NOTHING = Fault(kind=FaultKind.NOTHING, demand=HARMLESS)
_EXACT = Fault(kind=FaultKind.NOTHING, demand=EXACTLY)


def list_faults(device_kind: str, *, quick: bool = False) -> tuple[Fault, ...]:
    """List the faults for a kind of device in the order in which they are worth a try.

    ``quick`` leaves out all that takes many pairs but nothing and the largest slowdown.
    """
    timed = _list_timed(device_kind)
    if quick:
        timed = tuple(one for one in timed if one.kind is FaultKind.NOTHING or one.size == _QUICK_SIZE)
    return (*_list_exact(), *timed)


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
    return tuple(one for one in faults if one == NOTHING or fits_pattern(patterns, one.name))


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
    least = get_kind(device_kind).asked_slowdown
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
    return Fault(kind=kind, demand=demand, size=size, metric=metric)


FACTORY = "gate.selftest.planted:plant"

# A change at its threshold is found in half of all cases by construction: the gate has to catch what
# is this many thresholds large. (15 % against 10 %, 5 % against 3 %.)
ASKED_THRESHOLDS = 1.4
# Memory and compile time of small cases lie so low that a tenth of them is below the absolute part of
# the threshold: then so many times that part is planted, and the report says how much it came to.
FLOOR_MARGIN = 1.5
_LIFTED = frozenset({FaultKind.MEMORY, FaultKind.COLD_COMPILE})


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultSize:
    """How much of a fault: ``amount`` in the unit of what it changes, ``planted`` as a fraction.

    ``is_asked`` says whether the gate has to catch that much, by the thresholds in force.
    """

    amount: float = 0.0
    planted: float = 0.0
    is_asked: bool = True


def find_scale(fault: Fault) -> Metric | None:
    """Find the metric that a fault's size is a fraction of and its amount is in; ``None`` without a size."""
    return find_planted(fault.kind) if fault.size else None


def choose_size(fault: Fault, base: Sequence[float], threshold: Threshold) -> FaultSize:
    """Choose how much to plant; ``base`` are the base's values of :func:`find_scale`'s metric.

    ``threshold`` is the one in force for that metric: what lies below it is planted all the same, but
    the gate need not catch it.
    """
    amount = fault.size * median(base)
    if fault.kind in _LIFTED and fault.size >= ASKED_THRESHOLDS * threshold.relative:
        amount = max(amount, FLOOR_MARGIN * threshold.absolute)
    return measure_size(amount, base, threshold)


def measure_size(amount: float, base: Sequence[float], threshold: Threshold) -> FaultSize:
    """Compare an amount with the base's values: those that it was chosen from, or those of the same pair.

    A machine whose load changes makes the same seconds another fraction.
    """
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Agenda:
    """Which faults to try on which cases, how often those that take pairs, and for how long."""

    faults: tuple[Fault, ...]
    cases: tuple[Case, ...]
    repeats: int | None  # None: as often as time allows
    limit_s: float


def choose_attempted(cases: Sequence[Case], *, named: bool) -> tuple[Case, ...]:
    """Choose the cases that faults can be planted into: all that were named, else the cheapest.

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


def schedule_faults(agenda: Agenda) -> Iterator[tuple[Fault, Case, int]]:
    """Yield what to try next, with the number of the round: first what needs no statistics.

    Where there are several cases they take turns.
    """
    once = [fault for fault in agenda.faults if fault.is_certain]
    for turn, fault in enumerate(once):
        if fitting := [case for case in agenda.cases if is_fitting(fault, case)]:
            yield fault, fitting[turn % len(fitting)], 1
    for number in count(1) if agenda.repeats is None else range(1, agenda.repeats + 1):
        for fault in agenda.faults:
            if not fault.is_certain:
                yield fault, agenda.cases[(number - 1) % len(agenda.cases)], number


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """What the gate made of one planted fault: the metric's comparison, or why there is none."""

    result: Result
    fact: Fact | None = None
    row: Comparison | None = None


def judge_fault(fault: Fault, comparisons: Iterable[Comparison], failures: Sequence[CaseFailure]) -> Opinion:
    """Tell from what was said of one case with a planted fault whether the gate saw it."""
    rows = [row for row in comparisons if row.decides]
    if fault.failure is not None:
        return _judge_failure(fault, rows, failures)
    if failures:
        return Opinion(result=Result.BROKEN, fact=failures[0].quote(Code.FAILURE))
    return _judge_harmless(rows) if fault.is_harmless else _judge_metric(fault, rows)


def score_faults(faults: Iterable[Fault], attempts: Sequence[Attempt]) -> tuple[FaultScore, ...]:
    """Count the attempts of every fault that was tried, and compare them with what is asked."""
    scores = []
    for fault in faults:
        own = [one for one in attempts if (one.kind, one.size) == (fault.kind, fault.size)]
        if own:
            scores.append(_score_fault(fault, own))
    return tuple(scores)


def _judge_failure(fault: Fault, rows: Sequence[Comparison], failures: Sequence[CaseFailure]) -> Opinion:
    """A failure must be reported under its own kind, and the case must be FAILED for it."""
    failure = next((one for one in failures if one.kind is fault.failure), None)
    if failure is None or not any(row.status is Status.FAILED for row in rows):
        names = name_words(kind=fault.failure or "")
        return Opinion(result=Result.MISSED, fact=Fact(code=Code.FAILURE_UNTOLD, names=names))
    return Opinion(result=Result.CAUGHT, fact=failure.quote(Code.FAILURE))


def _judge_harmless(rows: Sequence[Comparison]) -> Opinion:
    for statuses, result in ((RED, Result.FALSE_ALARM), ({Status.INCONCLUSIVE}, Result.INCONCLUSIVE)):
        found = [row for row in rows if row.status in statuses]
        if found:
            return Opinion(result=result, row=found[0])
    return Opinion(result=Result.QUIET)


def _judge_metric(fault: Fault, rows: Sequence[Comparison]) -> Opinion:
    row = next((row for row in rows if row.metric is fault.metric), None)
    if row is None:
        metrics = (fault.metric,) if fault.metric else ()
        return Opinion(result=Result.MISSED, fact=Fact(code=Code.NOT_JUDGED, metrics=metrics))
    results = {Status.REGRESSED: Result.CAUGHT, Status.INCONCLUSIVE: Result.INCONCLUSIVE}
    return Opinion(result=results.get(row.status, Result.MISSED), row=row)


def _score_fault(fault: Fault, attempts: Sequence[Attempt]) -> FaultScore:
    counts = {result: sum(one.result is result for one in attempts) for result in Result}
    tried = len(attempts) - counts[Result.BROKEN]
    hits = counts[Result.FALSE_ALARM if fault.is_harmless else Result.CAUGHT]
    score = FaultScore(
        kind=fault.kind,
        size=fault.size,
        planted=fmean([one.planted for one in attempts]),
        demand=fault.demand,
        is_asked=any(one.is_asked for one in attempts),
        tried=tried,
        caught=counts[Result.CAUGHT],
        inconclusive=counts[Result.INCONCLUSIVE],
        missed=counts[Result.MISSED],
        false_alarms=counts[Result.FALSE_ALARM],
        rate=compute_rate(hits, tried) if tried else None,
        wall_s=sum(one.wall_s for one in attempts),
    )
    asked = [one.result for one in attempts if one.is_asked and one.result is not Result.BROKEN]
    return replace(score, complaint=_find_complaint(fault, score, asked))


def _find_complaint(fault: Fault, score: FaultScore, asked: Sequence[Result]) -> Complaint | None:
    """Find what is not good enough: only what the counts cannot be explained away by chance.

    Of a fault that is to be seen the ``asked`` attempts count, in which enough of it was planted.
    """
    if score.rate is None:
        return Complaint.UNTRIED
    if fault.is_harmless:
        return Complaint.ALARMS if score.rate.low > score.demand.false_alarm else None
    if not asked:
        return None
    missed = compute_rate(asked.count(Result.MISSED), len(asked))
    if missed.low > score.demand.miss:
        return Complaint.MISSES
    caught = compute_rate(asked.count(Result.CAUGHT), len(asked))
    return Complaint.FEW_CAUGHT if caught.high < score.demand.catch else None
