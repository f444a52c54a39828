"""The one sentence that a verdict begins with: short, without brackets, the worst of it and no more."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decide.coverage import measure_coverage
from gate.decide.quarantine import list_set_apart
from gate.decide.severity import compute_severity
from gate.records import Case, Comparison, Metric, Outcome, Reason, Status
from gate.words import count_noun, mention_change, name_direction

_BROKEN = frozenset({Status.FAILED, Status.MISSING})
_WORSE = "worse"


def write_headline(
    outcome: Outcome, comparisons: Sequence[Comparison], cases: Sequence[Case], *, finished: bool = True
) -> str:
    """One sentence: what came out, in numbers, and the worst of it; ``finished`` is whether the run was."""
    deciding = [one for one in comparisons if one.decides]
    regressed = [one for one in deciding if one.status is Status.REGRESSED]
    if outcome is Outcome.INCOMPLETE:
        stopped = "" if finished else "the run was stopped before its end"
        return _write_incomplete(deciding, regressed, len(cases), stopped)
    if outcome is Outcome.REGRESSION:
        return f"{_name_regressions(regressed)}."
    if outcome is Outcome.INCONCLUSIVE:
        return _write_inconclusive(deciding)
    if outcome is Outcome.NOTHING_COMPARED:
        return write_unjudged(comparisons, len(cases), "no baseline applies")
    return _write_pass(deciding)


def _write_incomplete(
    deciding: Sequence[Comparison], regressed: Sequence[Comparison], cases: int, stopped: str
) -> str:
    lost = [one for one in deciding if one.status in _BROKEN]
    fewer = {one.case_id for one in lost if one.reason is Reason.TRIALS_MISSING}
    broken = {one.case_id for one in lost} - fewer
    many = count_noun(cases, "case")
    parts = (
        stopped,
        f"{len(broken)} of {many} could not be measured" if broken else "",
        f"{len(fewer)} of {many} came back with fewer trials than planned" if fewer else "",
        _count_regressed(regressed) if regressed else "",
    )
    told = "; ".join(part for part in parts if part)
    return f"{told[0].upper()}{told[1:]}."


def write_unjudged(comparisons: Sequence[Comparison], cases: int, because: str) -> str:
    """Why nothing was judged: ``because`` there is nothing to compare with, or it is all in quarantine."""
    apart = list_set_apart(comparisons)
    are = "is" if len(apart) == 1 else "are"
    left = f"{because} to the others" if 0 < len(apart) < cases else because
    quarantined = f"{len(apart)} {are} quarantined"
    parts = ([quarantined] if apart else []) + ([left] if len(apart) < cases else [])
    return f"{count_noun(cases, 'case')} measured, none judged: {', '.join(parts)}."


def _write_inconclusive(deciding: Sequence[Comparison]) -> str:
    judged = measure_coverage(deciding).judged
    undecided = sum(one.status is Status.INCONCLUSIVE for one in deciding)
    return f"Could not tell for {undecided} of {count_noun(judged, 'comparison')}; none is surely worse."


def _write_pass(deciding: Sequence[Comparison]) -> str:
    """What was judged, and how much of all: neither may hide the other."""
    coverage = measure_coverage(deciding)
    improved = sum(one.status is Status.IMPROVED for one in deciding)
    also = f", {improved} better" if improved else ""
    many, cases = count_noun(coverage.comparisons, "comparison"), count_noun(coverage.cases, "case")
    if coverage.is_whole:
        return f"Nothing got worse: {many} in {cases} judged{also}."
    some = "" if coverage.judged_cases == coverage.cases else f"{coverage.judged_cases} of "
    part = f"{coverage.judged:,} of {many}, in {some}{cases}"
    return f"Nothing got worse in what was judged: {part}{also}."


def _name_regressions(regressed: Sequence[Comparison]) -> str:
    """How many got slower, larger or worse, where, and by how much at most."""
    leading = _list_leading(regressed)
    worst = leading[0]
    cases, metrics = {one.case_id for one in regressed}, {one.metric for one in leading}
    if len(cases) > 1 and len(metrics) == 1:
        return _count_regressed(regressed)
    many = count_noun(len(regressed), "metric") if len(cases) == 1 else count_noun(len(cases), "case")
    place = f" in {worst.case_id}" if len(cases) == 1 else f", worst {worst.case_id}"
    return f"{many} {_find_word(regressed)}{place}{_mention([worst])}"


def _count_regressed(regressed: Sequence[Comparison]) -> str:
    """How many cases got slower, larger or worse, without their names."""
    leading = _list_leading(regressed)
    alike = [one for one in leading if one.metric is leading[0].metric]
    many = count_noun(len({one.case_id for one in regressed}), "case")
    return f"{many} {_find_word(regressed)}{_mention(alike if len(alike) == len(leading) else leading[:1])}"


def _list_leading(regressed: Sequence[Comparison]) -> list[Comparison]:
    """The worst first, without the speedups that only follow compiled latency."""
    leading = [one for one in regressed if one.metric is not Metric.WARM_SPEEDUP] or list(regressed)
    return sorted(leading, key=compute_severity, reverse=True)


def _mention(rows: Sequence[Comparison]) -> str:
    changes = [one.change.centre for one in rows if one.change]
    return f": {mention_change(rows[0].metric, changes)}" if changes else ""


def _find_word(regressed: Sequence[Comparison]) -> str:
    """The one direction of all of these, if they have one."""
    words = {name_direction(one.metric, one.change.centre) for one in regressed if one.change}
    only = words.pop() if len(words) == 1 else _WORSE
    return only if only in _PREDICATES else _WORSE


# What a case or a metric can be said to be, not what it has.
_PREDICATES = frozenset({"slower", "larger", "less exact"})
