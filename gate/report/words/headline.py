"""What a report begins with: what came out, short and the worst of it alone, and the likeliest cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gate.decide.explain.causes import find_first_cause
from gate.records import Code, Fact, PairBase, Verdict
from gate.records.facts import MISMATCH_CODES
from gate.report.words.causes import describe_cause, lower_first
from gate.report.words.templates import describe_speed, fill, mention_change, name_base, name_direction
from gate.units import count_noun

_WORSE = "worse"
# What a case or a metric can be said to be, not what it has.
_PREDICATES = frozenset({"slower", "larger", "less exact"})


def write_headline(verdict: Verdict) -> str:
    """What came out, in numbers, the worst of it, and the likeliest cause of that."""
    facts = {fact.code: fact for fact in verdict.headline}
    told = "; ".join(_PARTS[code](fact, verdict.base) for code, fact in facts.items() if code in _PARTS)
    against = f", against {name_base(verdict.base)}" if Code.AGAINST_BASE in facts else ""
    why = [one] if (one := write_first_cause(verdict)) else []
    return " ".join((f"{told[:1].upper()}{told[1:]}{against}.", *why))


def write_first_cause(verdict: Verdict) -> str:
    """The likeliest cause of the worst regression, in plain words; ``""`` where nothing regressed."""
    cause = find_first_cause(verdict)
    if cause is None:
        return ""
    told = describe_cause(cause.fact).rstrip(".")
    if cause.fact.code in _NO_CAUSES:
        return f"{told}."
    return f"Likely cause: {lower_first(told)}."


# What is said instead of a cause.
_NO_CAUSES = frozenset({Code.UNEXPLAINED, Code.CODE_SAME, *MISMATCH_CODES})


def _write_regressed(fact: Fact, _base: PairBase | None) -> str:
    """How many got slower, larger or worse, where, and by how much at most."""
    return fill(f"{_REGRESSED[fact.code]}{_mention(fact)}", fact, worse=_find_word(fact))


_REGRESSED: Mapping[Code, str] = {
    Code.REGRESSED: "{cases:case} {worse}",
    Code.REGRESSED_CASE: "{metrics:metric} {worse} in {case_list}",
    Code.REGRESSED_WORST: "{cases:case} {worse}, worst {case_list}",
}


def _mention(fact: Fact) -> str:
    changes = [fact.numbers[key] for key in ("low", "high") if key in fact.numbers]
    return f": {mention_change(fact.metrics[0], changes)}" if changes and fact.metrics else ""


def _find_word(fact: Fact) -> str:
    """The one direction of all of these, if they have one."""
    words = {name_direction(metric, 1.0) for metric in fact.metrics}
    only = words.pop() if len(words) == 1 else _WORSE
    return only if only in _PREDICATES else _WORSE


def _write_unjudged(fact: Fact, base: PairBase | None) -> str:
    """Why nothing was judged: there is nothing to compare with, or it is all in quarantine."""
    cases, apart = round(fact.numbers["cases"]), round(fact.numbers["quarantined"])
    nothing = f"nothing of {name_base(base)} to compare with"
    because = nothing if fact.code is Code.BASE_HAS_NOTHING else "no baseline applies"
    left = f"{because} to the others" if 0 < apart < cases else because
    quarantined = f"{apart} {'is' if apart == 1 else 'are'} quarantined"
    parts = ([quarantined] if apart else []) + ([left] if apart < cases else [])
    told = f"{count_noun(cases, 'case')} measured, none judged"
    return f"{told}: {', '.join(parts)}" if parts else told


def _write_pass(fact: Fact, _base: PairBase | None) -> str:
    """What was judged, and how much of all: neither may hide the other."""
    numbers = fact.numbers
    also = ", {improved} better" if numbers["improved"] else ""
    if numbers["judged"] == numbers["comparisons"]:
        return fill(f"nothing got worse: {{comparisons:comparison}} in {{cases:case}} judged{also}", fact)
    some = "" if numbers["judged_cases"] == numbers["cases"] else "{judged_cases} of "
    part = f"{{judged:,.0f}} of {{comparisons:comparison}}, in {some}{{cases:case}}"
    return fill(f"nothing got worse in what was judged: {part}{also}", fact)


def _write_unjudged_times(fact: Fact, _base: PairBase | None) -> str:
    """How many timings are measured only, and why."""
    shift = fact.numbers.get("shift")
    why = "no baseline is of this machine"
    if shift:
        why = f"this machine is {describe_speed(shift)} than the one that recorded"
    return fill(f"{{comparisons:timing}} not judged: {why}", fact)


def _use(template: str) -> Callable[[Fact, PairBase | None], str]:
    return lambda fact, _base: fill(template, fact)


_PARTS: Mapping[Code, Callable[[Fact, PairBase | None], str]] = {
    Code.STOPPED: _use("the run was stopped before its end"),
    Code.NOT_MEASURED: _use("{broken} of {cases:case} could not be measured"),
    Code.FEWER_TRIALS: _use("{fewer} of {cases:case} came back with fewer trials than planned"),
    Code.CASES_REMOVED: _use("{removed} of {cases:case} removed by the change and not accepted"),
    **dict.fromkeys(_REGRESSED, _write_regressed),
    Code.REGRESSED_UNSHOWN: _use("the reason is in {cases:case} that the default branch does not have"),
    Code.COULD_NOT_TELL: _use(
        "could not tell for {undecided} of {judged:comparison}; nothing is shown to be worse"
    ),
    Code.NO_BASELINE_APPLIES: _write_unjudged,
    Code.BASE_HAS_NOTHING: _write_unjudged,
    Code.NOTHING_WORSE: _write_pass,
    Code.TIMES_UNJUDGED: _write_unjudged_times,
}
