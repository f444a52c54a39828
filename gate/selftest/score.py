"""Judges the judge: what the gate made of planted faults, and whether that is good enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gate.decide.stats import compute_rate
from gate.records import RED, CaseFailure, Code, Comparison, Fact, Status, name_words, quote_failure
from gate.records.selftest import Attempt, Complaint, Fault, FaultScore, Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """What the gate made of one planted fault.

    ``change`` is the metric's, + is worse; ``row`` is its comparison, ``fact`` says why there is none.
    """

    result: Result
    fact: Fact | None = None
    change: float | None = None
    row: Comparison | None = None


def judge_fault(fault: Fault, comparisons: Iterable[Comparison], failures: Sequence[CaseFailure]) -> Opinion:
    """Tell from what was said of one case with a planted fault whether the gate saw it."""
    rows = [row for row in comparisons if row.decides]
    if fault.failure is not None:
        return _judge_failure(fault, rows, failures)
    if failures:
        return Opinion(result=Result.BROKEN, fact=quote_failure(Code.FAILURE, failures[0]))
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
    return Opinion(result=Result.CAUGHT, fact=quote_failure(Code.FAILURE, failure))


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
    return Opinion(
        result=results.get(row.status, Result.MISSED),
        row=row,
        change=row.change.centre if row.change else None,
    )


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
    if fault.is_harmless:
        return replace(score, complaint=_find_alarms(score))
    asked = [one.result for one in attempts if one.is_asked and one.result is not Result.BROKEN]
    return replace(score, complaint=_find_misses(score, asked))


def _find_alarms(score: FaultScore) -> Complaint | None:
    """Find what is not good enough: only what the counts cannot be explained away by chance."""
    if score.rate is None:
        return Complaint.UNTRIED
    return Complaint.ALARMS if score.rate.low > score.demand.false_alarm else None


def _find_misses(score: FaultScore, asked: Sequence[Result]) -> Complaint | None:
    """The same of a fault that is to be seen: of those attempts in which enough of it was planted."""
    if score.rate is None:
        return Complaint.UNTRIED
    if not asked:
        return None
    missed = compute_rate(asked.count(Result.MISSED), len(asked))
    if missed.low > score.demand.miss:
        return Complaint.MISSES
    caught = compute_rate(asked.count(Result.CAUGHT), len(asked))
    return Complaint.FEW_CAUGHT if caught.high < score.demand.catch else None
