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
    find_place,
    lower_first,
    write_note,
)
from gate.report.words.templates import SENTENCES, fill, mention_move, name_base, name_direction, upper_first
from gate.units import count_noun, render_ratio

LIKELY = "Likely cause: "
_WORSE = "worse"
# What a case or a metric can be said to be, not what it has.
_PREDICATES = frozenset({"slower", "larger", "less exact"})
_MAX_NAME = 160  # characters of a case
_MOST_REASONS = 2  # for which comparisons are inconclusive


def write_headline(verdict: Verdict) -> str:
    """What came out, in numbers, with the worst latency, the worst of all and the first failed case."""
    facts = {fact.code: fact for fact in verdict.headline}
    parts = [
        _WRITERS[code](fact, verdict) if code in _WRITERS else fill(_TEMPLATES[code], fact)
        for code, fact in facts.items()
        if code in _WRITERS or code in _TEMPLATES
    ]
    against = f", against {name_base(verdict.base)}" if Code.AGAINST_BASE in facts else ""
    return f"{upper_first('; '.join(parts))}{against}."


def write_opening(verdict: Verdict) -> str:
    """What came out and why, in one line."""
    return f"{write_headline(verdict)} {write_why(verdict)}".rstrip()


def write_why(verdict: Verdict) -> str:
    """Why it came out so: the first failure, the likeliest cause, or what kept it from being decided."""
    if verdict.outcome is Outcome.INCOMPLETE:
        broken = next(iter(_list_broken(verdict)), None)
        if broken is None:
            return ""
        failure = next((one for one in verdict.failures if one.case_id == broken.case_id), None)
        if failure is None:
            return _write_time_up(verdict, [broken.case_id]) or describe_comparison(broken)
        place = find_place(failure)
        return f"First failure: {describe_whole(failure).rstrip('.')}{f', at {place}' if place else ''}."
    if verdict.outcome is Outcome.INCONCLUSIVE:
        open_rows = [one for one in verdict.comparisons if one.decides and one.status is Status.INCONCLUSIVE]
        # Each comparison has limits and pairs of its own, which are left out.
        listed = count_reasons(map(_find_obstacle, open_rows), "comparison", _MOST_REASONS)
        time_up = _write_time_up(verdict, [one.case_id for one in open_rows])
        return time_up or (f"{upper_first(listed)}." if listed else "")
    return write_first_cause(verdict)


def _write_time_up(verdict: Verdict, case_ids: Collection[str]) -> str:
    """That the time was up before one of these cases was settled; ``""`` where it was not."""
    notes = (note for note in verdict.notes if note.code is Code.TIME_UP)
    return next((write_note(note) for note in notes if not {*case_ids}.isdisjoint(note.cases)), "")


def _find_obstacle(one: Comparison) -> str:
    reason = describe_reason(one, is_of_many=True)
    if reason != "inconclusive":  # as pairs say
        return reason
    if one.pairs == 1:  # it takes two, even for a count
        return "measured in one pair with the base only"
    return "pairs with the base differ too much from each other"


def write_doubt(verdict: Verdict) -> str:
    """The likeliest cause of what looks worst and is inconclusive; ``""`` without one."""
    cause = find_first_cause(verdict, Status.INCONCLUSIVE)
    if cause is None or cause.fact.code is Code.UNEXPLAINED:
        return ""
    return f"{doubt_cause(describe_cause(cause.fact)).rstrip('.')} ({name_case(cause.case_id, verdict)})."


def write_first_cause(verdict: Verdict) -> str:
    """The likeliest cause of the worst regression, in plain words; ``""`` where nothing regressed."""
    cause = find_first_cause(verdict)
    if cause is None:
        return ""
    text = describe_cause(cause.fact).rstrip(".")
    if cause.fact.code in _NO_CAUSES:
        return f"{text}."
    return f"{LIKELY}{lower_first(text)}."


# What is said instead of a cause.
_NO_CAUSES = frozenset({Code.UNEXPLAINED, Code.CODE_SAME, *MISMATCH_CODES})


def _write_not_measured(fact: Fact, verdict: Verdict) -> str:
    lacks = fact.code is Code.METRICS_LACKING
    first = next((one for one in _list_broken(verdict) if (one.reason is Reason.NOT_MEASURED) == lacks), None)
    text = fill(_TEMPLATES[fact.code], fact)
    link = ", the first is" if fact.numbers["lacking" if lacks else "broken"] > 1 else ":"
    return f"{text}{link} {name_case(first.case_id, verdict)}" if first else text


def name_case(case_id: str, verdict: Verdict) -> str:
    """By its model, where no other case is of it: as `explain` takes it."""
    model = case_id.partition("/")[0]
    alike = sum(one.id.partition("/")[0] == model for one in verdict.cases)
    return clean_line(model if alike == 1 else case_id, _MAX_NAME)


def _list_broken(verdict: Verdict) -> list[Comparison]:
    """What could not be measured, whole cases first."""
    broken = [one for one in verdict.comparisons if one.decides and one.status in BROKEN]
    left = [one for one in broken if one.reason is not Reason.REMOVED]
    return sorted(left, key=lambda one: one.reason is Reason.NOT_MEASURED)


def _write_regressed(fact: Fact, verdict: Verdict) -> str:
    """How many got slower, larger or worse, where, the slowest call and the gravest change."""
    only = name_case(fact.cases[0], verdict) if fact.cases else ""
    text = fill(_TEMPLATES[fact.code], fact, worse=_find_word(fact), case_list=only)
    by_case: dict[str, list[str]] = {}
    for one in _list_worst(verdict):
        by_case.setdefault(one.case_id, []).append(mention_move(one))
    is_one_case = fact.code is Code.REGRESSED_CASE
    worst = [
        ", ".join(moves) + ("" if is_one_case else f" in {name_case(case_id, verdict)}")
        for case_id, moves in by_case.items()
    ]
    opening = ", worst" if fact.numbers.get("cases", 1) > 1 else ""
    return f"{text}{opening}: {', '.join(worst)}{_write_gain(verdict, by_case, only)}" if worst else text


def _write_gain(verdict: Verdict, case_ids: Collection[str], only: str) -> str:
    """The largest gain of the cases that are named: who chooses has to see both."""
    better = [one for one in verdict.comparisons if one.decides and one.status is Status.IMPROVED]
    leading = [one for one in better if one.case_id in case_ids and SPECS[one.metric].follows is None]
    most = min(
        leading, key=lambda one: (one.metric is not Metric.COMPILED_LATENCY, one.severity), default=None
    )
    if most is None:
        return ""
    name = name_case(most.case_id, verdict)
    return f"; but {mention_move(most)}" + ("" if name == only else f" in {name}")


def _list_worst(verdict: Verdict) -> list[Comparison]:
    """The latency that grew most, and what is graver in its limits than any latency."""
    found = [one for one in verdict.comparisons if one.decides and one.status is Status.REGRESSED]
    gravest = sorted((one for one in found if one.change), key=lambda one: -one.severity)[:1]
    slow = [one for one in found if one.metric is Metric.COMPILED_LATENCY]
    slowest = sorted(slow, key=lambda one: -one.change.centre if one.change else 0.0)[:1]
    is_same = any(Metric.COMPILED_LATENCY in {one.metric, SPECS[one.metric].follows} for one in gravest)
    return slowest if slowest and is_same else slowest + gravest


def _find_word(fact: Fact) -> str:
    """The one direction of all of these, if they have one."""
    words = {name_direction(metric, 1.0) for metric in fact.metrics}
    only = words.pop() if len(words) == 1 else _WORSE
    return only if only in _PREDICATES else _WORSE


def _write_unjudged(fact: Fact, verdict: Verdict) -> str:
    """Why nothing was judged: there is nothing to compare with, or it is all in quarantine."""
    cases, apart = round(fact.numbers["cases"]), round(fact.numbers["quarantined"])
    nothing = f"nothing of {name_base(verdict.base)} to compare with"
    because = nothing if fact.code is Code.BASE_HAS_NOTHING else "no baseline applies"
    left = f"{because} to the others" if 0 < apart < cases else because
    quarantined = f"{apart} {'is' if apart == 1 else 'are'} quarantined"
    parts = ([quarantined] if apart else []) + ([left] if apart < cases else [])
    text = f"{count_noun(cases, 'case')} measured, none judged"
    return f"{text}: {', '.join(parts)}" if parts else text


_GONE = frozenset({Code.CASES_GONE, Code.BASELINES_IDLE})


def _write_pass(fact: Fact, verdict: Verdict) -> str:
    """What was judged, how much of all, and what is gone: none may hide another, nor what was accepted."""
    numbers, also = fact.numbers, "[, {improved} better]"
    is_accepted = any(one.decides and one.status is Status.ACCEPTED for one in verdict.comparisons)
    nothing = f"nothing got worse{' but what was accepted' if is_accepted else ''}"
    slower = _write_slower(verdict)
    gone = next((note for note in verdict.notes if note.code in _GONE), None)
    also += fill("; {cases:case} no longer checked", gone) if gone else ""
    if numbers["judged"] == numbers["comparisons"]:
        return fill(f"{nothing}: {{comparisons:comparison}} in {{cases:case}} judged{also}", fact) + slower
    some = "" if numbers["judged_cases"] == numbers["cases"] else "{judged_cases} of "
    part = f"{{judged:,.0f}} of {{comparisons:comparison}}, in {some}{{cases:case}}"
    return fill(f"{nothing} in what was judged: {part}{also}", fact) + slower


def _write_slower(verdict: Verdict) -> str:
    """That compiled calls are surely slower than eager's: what was never better does not regress."""
    plain = {case.id for case in verdict.cases if case.backend == DEFAULT_BACKEND}
    rows = [one for one in verdict.comparisons if one.metric is Metric.WARM_SPEEDUP and one.case_id in plain]
    values = [(one.candidate.high or one.candidate.centre, one) for one in rows if one.candidate]
    slower = [(high, one) for high, one in values if high < 1]
    if not slower:
        return ""
    high, worst = min(slower, key=lambda pair: pair[0])
    where = f"{name_case(worst.case_id, verdict)} at most {render_ratio(high)}"
    return f"; compiled is slower than eager in {len(slower)} of {count_noun(len(rows), 'case')} ({where})"


_TEMPLATES = SENTENCES["headline"]
_WRITERS: Mapping[Code, Callable[[Fact, Verdict], str]] = {
    **dict.fromkeys((Code.NOT_MEASURED, Code.METRICS_LACKING), _write_not_measured),
    **dict.fromkeys((Code.REGRESSED, Code.REGRESSED_CASE), _write_regressed),
    **dict.fromkeys((Code.NO_BASELINE_APPLIES, Code.BASE_HAS_NOTHING), _write_unjudged),
    Code.NOTHING_WORSE: _write_pass,
}
