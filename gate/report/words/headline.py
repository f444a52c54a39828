"""What a report begins with: what came out, and why."""

from collections.abc import Callable, Collection, Mapping

from gate.decide.explain.causes import find_first_cause
from gate.metrics import SPECS
from gate.records.cases import DEFAULT_BACKEND, Metric
from gate.records.codes import Code
from gate.records.facts import MISMATCH_CODES, Fact
from gate.records.verdict import BROKEN, Comparison, Outcome, Reason, Status, Verdict
from gate.report.clean import clean_line
from gate.report.words.comparisons import count_reasons, describe_comparison, describe_reason
from gate.report.words.facts import (
    describe_cause,
    describe_whole,
    doubt_cause,
    find_failing_line,
    lower_first,
    write_note,
)
from gate.report.words.templates import (
    PHRASES,
    SENTENCES,
    fill,
    mention_move,
    name_base,
    name_direction,
    upper_first,
)
from gate.units import format_noun, format_ratio

LIKELY = "Likely cause: "
_WORSE = "worse"
# Adjectives of a case or a metric; others are of what it has.
_PREDICATES = frozenset({"slower", "larger", "less exact"})
_MAX_NAME = 160  # characters of a case
_MOST_REASONS = 2  # for which comparisons are inconclusive
# Shown instead of a cause.
_NO_CAUSES = frozenset({Code.UNEXPLAINED, Code.CODE_SAME, *MISMATCH_CODES})
_GONE = frozenset({Code.CASES_GONE, Code.BASELINES_IDLE})
_TEMPLATES = SENTENCES["headline"]


def write_headline(verdict: Verdict) -> str:
    facts = {fact.code: fact for fact in verdict.headline}
    parts = [
        _WRITERS[code](fact, verdict) if code in _WRITERS else fill(_TEMPLATES[code], fact)
        for code, fact in facts.items()
        if code in _WRITERS or code in _TEMPLATES
    ]
    stack = f"torch {verdict.environment.torch} " if verdict.base and verdict.base.other_stack else ""
    against = f", {stack}against {name_base(verdict.base)}" if Code.AGAINST_BASE in facts else ""
    return f"{upper_first('; '.join(parts))}{against}."


def write_opening(verdict: Verdict) -> str:
    return f"{write_headline(verdict)} {write_why(verdict)}".rstrip()


def write_why(verdict: Verdict) -> str:
    """The first failure, the likeliest cause, or what kept it from being decided."""
    if verdict.outcome is Outcome.INCOMPLETE:
        return _describe_first_broken(verdict)
    if verdict.outcome is Outcome.INCONCLUSIVE:
        undecided = [
            comparison
            for comparison in verdict.comparisons
            if comparison.decides and comparison.status is Status.INCONCLUSIVE
        ]
        obstacles = count_reasons(map(_describe_obstacle, undecided), "comparison", _MOST_REASONS)
        time_up = _write_time_up(verdict, [comparison.case_id for comparison in undecided])
        return time_up or (f"{upper_first(obstacles)}." if obstacles else "")
    return write_first_cause(verdict)


def _describe_first_broken(verdict: Verdict) -> str:
    broken = next(iter(_list_broken(verdict)), None)
    if broken is None:
        return ""
    failure = next((failure for failure in verdict.failures if failure.case_id == broken.case_id), None)
    if failure is None:
        return _write_time_up(verdict, [broken.case_id]) or describe_comparison(broken)
    described, location = describe_whole(failure).rstrip("."), find_failing_line(failure)
    return fill(PHRASES["first_failure"], failure=described, location=location)


def _write_time_up(verdict: Verdict, case_ids: Collection[str]) -> str:
    notes = (note for note in verdict.notes if note.code is Code.TIME_UP)
    return next((write_note(note) for note in notes if not {*case_ids}.isdisjoint(note.cases)), "")


def _describe_obstacle(comparison: Comparison) -> str:
    reason = describe_reason(comparison, is_of_many=True)
    if reason != fill(PHRASES["open"]):  # of pairs
        return reason
    return PHRASES["lone_pair" if comparison.pairs == 1 else "pairs_differ"]  # it takes two, even for a count


def write_doubt(verdict: Verdict) -> str:
    cause = find_first_cause(verdict, Status.INCONCLUSIVE)
    if cause is None or cause.fact.code is Code.UNEXPLAINED:
        return ""
    return f"{doubt_cause(describe_cause(cause.fact)).rstrip('.')} ({name_case(cause.case_id, verdict)})."


def write_first_cause(verdict: Verdict) -> str:
    cause = find_first_cause(verdict)
    if cause is None:
        return ""
    text = describe_cause(cause.fact).rstrip(".")
    if cause.fact.code in _NO_CAUSES:
        return f"{text}."
    return f"{LIKELY}{lower_first(text)}."


def _write_not_measured(fact: Fact, verdict: Verdict) -> str:
    lacks = fact.code is Code.METRICS_LACKING
    rows = (row for row in _list_broken(verdict) if (row.reason is Reason.NOT_MEASURED) == lacks)
    first = next(rows, None)
    text = fill(_TEMPLATES[fact.code], fact)
    link = ", the first is" if fact.numbers["lacking" if lacks else "broken"] > 1 else ":"
    return f"{text}{link} {name_case(first.case_id, verdict)}" if first else text


def name_case(case_id: str, verdict: Verdict) -> str:
    model = case_id.partition("/")[0]
    alike = sum(case.id.partition("/")[0] == model for case in verdict.cases)
    return clean_line(model if alike == 1 else case_id, _MAX_NAME)


def _list_deciding(verdict: Verdict, *statuses: Status) -> list[Comparison]:
    return [
        comparison
        for comparison in verdict.comparisons
        if comparison.decides and comparison.status in statuses
    ]


def _list_broken(verdict: Verdict) -> list[Comparison]:
    """Whole cases first."""
    broken = [row for row in _list_deciding(verdict, *BROKEN) if row.reason is not Reason.REMOVED]
    return sorted(broken, key=lambda row: row.reason is Reason.NOT_MEASURED)


def _write_regressed(fact: Fact, verdict: Verdict) -> str:
    only = name_case(fact.cases[0], verdict) if fact.cases else ""
    text = fill(_TEMPLATES[fact.code], fact, worse=_name_direction(fact), case_list=only)
    by_case: dict[str, list[str]] = {}
    for comparison in _list_worst(verdict):
        by_case.setdefault(comparison.case_id, []).append(mention_move(comparison))
    is_one_case = fact.code is Code.REGRESSED_CASE
    worst = [
        ", ".join(moves) + ("" if is_one_case else f" in {name_case(case_id, verdict)}")
        for case_id, moves in by_case.items()
    ]
    opening = ", worst" if fact.numbers.get("cases", 1) > 1 else ""
    return f"{text}{opening}: {', '.join(worst)}{_write_gain(verdict, by_case, only)}" if worst else text


def _write_gain(verdict: Verdict, case_ids: Collection[str], only: str) -> str:
    """Of the named cases: who accepts a slowdown has to see both."""
    leading = [
        row
        for row in _list_deciding(verdict, Status.IMPROVED)
        if row.case_id in case_ids and SPECS[row.metric].follows is None
    ]
    if not leading:
        return ""
    most = min(leading, key=lambda row: (row.metric is not Metric.COMPILED_LATENCY, row.severity))
    name = name_case(most.case_id, verdict)
    return f"; but {mention_move(most)}" + ("" if name == only else f" in {name}")


def _list_worst(verdict: Verdict) -> list[Comparison]:
    """The latency that grew most, and what exceeds its threshold by more."""
    regressed = _list_deciding(verdict, Status.REGRESSED)
    gravest = sorted((row for row in regressed if row.change), key=lambda row: -row.severity)[:1]
    slow = [row for row in regressed if row.metric is Metric.COMPILED_LATENCY]
    slowest = sorted(slow, key=lambda row: -row.change.centre if row.change else 0.0)[:1]
    is_same = any(Metric.COMPILED_LATENCY in {row.metric, SPECS[row.metric].follows} for row in gravest)
    return slowest if slowest and is_same else slowest + gravest


def _name_direction(fact: Fact) -> str:
    words = {name_direction(metric, 1.0) for metric in fact.metrics}
    only = words.pop() if len(words) == 1 else _WORSE
    return only if only in _PREDICATES else _WORSE


def _write_unjudged(fact: Fact, verdict: Verdict) -> str:
    cases, apart = round(fact.numbers["cases"]), round(fact.numbers["quarantined"])
    lack = PHRASES["base_has_nothing" if fact.code is Code.BASE_HAS_NOTHING else "no_baseline_applies"]
    others = PHRASES["to_others"].format(lack=lack) if 0 < apart < cases else lack
    reasons = ([PHRASES["quarantined"]] if apart else []) + ([others] if apart < cases else [])
    because = f": {', '.join(reasons)}" if reasons else ""
    return fill(PHRASES["none_judged"] + because, fact, base=name_base(verdict.base))


def _write_pass(fact: Fact, verdict: Verdict) -> str:
    """What was judged, how much of all, what is gone, what was accepted: none may hide another."""
    numbers = fact.numbers
    is_whole = numbers["judged"] == numbers["comparisons"]
    gone = next((note for note in verdict.notes if note.code in _GONE), None)
    return fill(
        _TEMPLATES[fact.code] if is_whole else PHRASES["nothing_worse_in_part"],
        fact,
        but_accepted=PHRASES["but_accepted"] if _list_deciding(verdict, Status.ACCEPTED) else "",
        of_cases="" if numbers["judged_cases"] == numbers["cases"] else f"{numbers['judged_cases']:.0f} of",
        gone=fill(PHRASES["gone"], gone) if gone else "",
        slower=_describe_slower(verdict),
    )


def _describe_slower(verdict: Verdict) -> str:
    """Calls that never were faster than eager's do not regress."""
    plain = {case.id for case in verdict.cases if case.backend == DEFAULT_BACKEND}
    ratios = [
        row for row in verdict.comparisons if row.metric is Metric.WARM_SPEEDUP and row.case_id in plain
    ]
    highest = [(row.candidate.high or row.candidate.centre, row.case_id) for row in ratios if row.candidate]
    slower = [(high, case_id) for high, case_id in highest if high < 1]
    if not slower:
        return ""
    high, case_id = min(slower, key=lambda pair: pair[0])
    return fill(
        PHRASES["slower_than_eager"],
        slower=f"{len(slower)}",
        cases=format_noun(len(ratios), "case"),
        worst=name_case(case_id, verdict),
        ratio=format_ratio(high),
    )


_WRITERS: Mapping[Code, Callable[[Fact, Verdict], str]] = {
    Code.NOT_MEASURED: _write_not_measured,
    Code.METRICS_LACKING: _write_not_measured,
    Code.REGRESSED: _write_regressed,
    Code.REGRESSED_CASE: _write_regressed,
    Code.NO_BASELINE_APPLIES: _write_unjudged,
    Code.BASE_HAS_NOTHING: _write_unjudged,
    Code.NOTHING_WORSE: _write_pass,
}
