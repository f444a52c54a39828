"""The sentences of a comparison: the values, how they changed, what follows from it, and what else counts."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from gate.metrics import COMPILE_TIMES, SPECS, Family, Scope
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import MISMATCH_CODES, WHY_UNMEASURED, Fact
from gate.records.verdict import MAYBE_WORSE, Comparison, Estimate, Reason, Status
from gate.report.clean import MAX_SENTENCE, clean_line
from gate.report.words.facts import describe_disturbances, describe_failed_trial, describe_measuring
from gate.report.words.templates import (
    SENTENCES,
    describe_change,
    describe_move,
    describe_speed,
    fill,
    is_shown_as_values,
    name_metric,
    upper_first,
)
from gate.units import count_noun, render_change, render_threshold, render_value

_REASONS = SENTENCES["reasons"]
_SPECIAL = SENTENCES["special_reasons"]
_OTHER_STACK = "the baselines were recorded with other software or on another kind of GPU"
_OTHER_CODEGEN = f"{_OTHER_STACK}, another instruction set or another number of threads"
_TOO_MANY = "clear for one comparison, but not among as many as this check makes"
_OPENINGS: Mapping[Status, str] = {
    Status.INCONCLUSIVE: "inconclusive: ",
    Status.NEW: "not judged: ",
    Status.NOT_COMPARABLE: "not judged: ",
    Status.MISSING: "missing: ",
}
_BOTH = 2
_INSTEAD = SENTENCES["instead"]
_CLAUSES = SENTENCES["clauses"]
_IN_REASON = {(Reason.OTHER_ENVIRONMENT, Code.MACHINE_SPEED), (Reason.UNSETTLED, Code.NO_RATIO)}
_REMARKS = SENTENCES["remarks"]


def describe_comparison(one: Comparison, *, with_values: bool = True) -> str:
    """Describe it in one sentence, and one more for each doubt, acceptance and quarantine.

    Both values and the change may be left out, where they stand beside it.
    """
    instead = [text for fact in one.remarks if (text := _replace_reason(fact))]
    first = instead or [_describe_finding(one, with_values=with_values)]
    sentences = (_write_remark(fact) for fact in one.remarks)
    return " ".join((*first, *filter(None, sentences)))


def complete_sentence(comparison: Comparison, *, with_values: bool = True) -> str:
    """Return the sentence; an undecided comparison also says the smallest change that would have shown.

    The values may be left out, where columns say them.
    """
    sentence = clean_line(describe_comparison(comparison, with_values=with_values), MAX_SENTENCE)
    change = comparison.change
    counted = SPECS[comparison.metric].family is Family.EXACT
    if comparison.status is not Status.INCONCLUSIVE or change is None or counted:
        return sentence
    if abs(change.centre) >= change.detectable:  # it was noticed
        return sentence
    if smallest := render_noticed(comparison):
        return f"{sentence} A change of {smallest} or more would have been noticed.".strip()
    measured = comparison.candidate.n if comparison.candidate else 0
    of = count_noun(comparison.pairs, "pair") if comparison.pairs else count_noun(measured, "trial")
    return f"{sentence} No change could have been noticed from {of}.".strip()


def render_noticed(one: Comparison) -> str:
    """Render the smallest change that would have been noticed; "" of counts, and where there is none."""
    spec, change = SPECS[one.metric], one.change
    if change is None or spec.family is Family.EXACT or (spec.is_ratio and change.detectable > 1):
        return ""  # twice as slow, and unseen
    return render_change(one.metric, change.detectable).lstrip("+")


def describe_undecided(alike: Iterable[Comparison]) -> str:
    """Describe why several cases were not settled: each reason once, with its number of cases."""
    reasons = count_reasons(map(describe_reason, alike), "case")
    return f"{upper_first(_OPENINGS[Status.INCONCLUSIVE])}{reasons}."


def count_reasons(reasons: Iterable[str], noun: str, most: int | None = None) -> str:
    """Join the commonest reasons, each with the number of what has it; that of a lone one is all."""
    counted = Counter(reasons).most_common(most)
    if len(counted) == 1:
        return counted[0][0]
    return "; ".join(f"{reason} ({count_noun(count, noun)})" for reason, count in counted)


def _replace_reason(fact: Fact) -> str:
    if fact.code is Code.FAILURE:
        return upper_first(describe_failed_trial(fact)) if fact.names else ""
    return fill(_INSTEAD[fact.code], fact) if fact.code in _INSTEAD else ""


def _write_remark(fact: Fact) -> str:
    if fact.code is Code.DISTURBED_BY:
        why = describe_disturbances(fact)
        return fill("But the machine was disturbed during the measurement[: {why}].", fact, why=why)
    return fill(_REMARKS[fact.code], fact) if fact.code in _REMARKS else ""


def _describe_finding(one: Comparison, *, with_values: bool) -> str:
    other = next((fact for fact in one.remarks if fact.code in MISMATCH_CODES | WHY_UNMEASURED), None)
    texts = (_describe_clause(one, fact) for fact in (() if other else one.remarks))
    parts = (_describe_need(one), *texts)
    clauses = [part for part in parts if part]
    remark = f" ({'; '.join(clauses)})" if clauses else ""
    if other:
        return upper_first(f"{_find_opening(one)}{describe_measuring(other)}{remark}.")
    values = "" if not with_values and one.baseline and one.candidate else _describe_values(one)
    return upper_first(f"{values}{_find_opening(one)}{describe_reason(one)}{remark}.")


def _find_opening(one: Comparison) -> str:
    if one.more_pairs is not None:  # the reason says it
        return ""
    if one.found is not None:  # it was REGRESSED, or at least suspect
        return _OPENINGS[Status.INCONCLUSIVE] if one.found is Reason.UNSETTLED else ""
    return _OPENINGS.get(one.status, "")


def describe_reason(one: Comparison, *, is_of_many: bool = False) -> str:
    """Describe why it has its status, as a part of a sentence.

    One sentence for many comparisons leaves out the threshold and the pairs that each has of its own.
    """
    reason, before, after = one.found or one.reason, one.baseline, one.candidate
    if reason is Reason.BEYOND_BAR and SPECS[one.metric].family is Family.EXACT and before and after:
        arm = "base" if one.pairs else "baseline"
        sides = ((before, f"{arm} trial"), (after, "head trial"))
        return ", ".join(_describe_counts(one.metric, *side) for side in sides)
    if reason is Reason.LEADER_STANDS:
        return _describe_leader(one)
    facts = {fact.code: fact for fact in one.remarks}
    speed, upgrade = facts.get(Code.MACHINE_SPEED), facts.get(Code.SINCE_UPGRADE)
    bar = render_bar(one)
    return _choose_sentence(one, reason, facts).format(
        limit=f" the threshold of {bar}" if bar and not is_of_many else " the threshold",
        beside=f" in {count_noun(one.pairs, 'pair')} side by side with the base"
        if one.pairs and not is_of_many
        else "",
        speed=describe_speed(speed.numbers["shift"]) if speed else "",
        upgrade=fill(_CLAUSES[upgrade.code], upgrade) if upgrade else "",
    )


def _choose_sentence(one: Comparison, reason: Reason, codes: Collection[Code]) -> str:
    keys: list[Code | Status] = [one.status]
    keys[:0] = [code for code in codes if code is not Code.OWN_LIMIT or one.threshold is None]
    special = next(filter(None, (_SPECIAL.get(f"{reason} {key}".lower()) for key in keys)), "")
    choose = _CHOICES.get(reason)
    return special or (choose(one) if choose else _REASONS[reason])


def _choose_large(one: Comparison) -> str:
    change, is_latency = one.change, one.metric is Metric.COMPILED_LATENCY
    if is_latency and change and change.low <= 0.0 <= change.high:
        return "beyond{limit}, and too large beside eager in the same processes to be noise"
    return _REASONS[Reason.BEYOND_BAR]


def _choose_open(one: Comparison) -> str:
    """What pairs could not settle, or stored values: a change that may be there, or noise that hides one."""
    change, leader = one.change, SPECS[one.metric].follows
    # A ratio that is better, of what is not settled.
    open_leader = name_metric(leader) if leader and change and change.low < change.high < 0 else ""
    if one.more_pairs is not None:
        return f"inconclusive{{beside}}{f', since {open_leader} is too' if open_leader else ''}"
    if open_leader:
        return f"it looks better, but {open_leader} is inconclusive"
    if SPECS[one.metric].repeats:
        return "the value differs between trials of the same code"
    if change and change.low > 0:
        return f"it looks changed: {_TOO_MANY}"
    is_worse = change is None or one.threshold is None or (change.centre > 0 and exceeds_threshold(one))
    return "it looks changed, but noise could explain it" if is_worse else _REASONS[Reason.UNSETTLED]


def _choose_small(one: Comparison) -> str:
    """Why nothing that matters is there: it was not, or noise is larger, or the change is small."""
    change = one.change
    if change is None or change.low == change.high == 0.0:
        return "the same in every trial"
    is_large, is_noisy_pair = exceeds_threshold(one), one.pairs and SPECS[one.metric].family is Family.NOISY
    if is_large and change.centre < 0 and (is_noisy_pair or change.high < 0):
        return "not worse, and not surely better by more than{limit}{beside}"
    if is_noisy_pair:
        return "not worse by more than{limit}{beside}"
    if is_large or change.low <= 0.0 <= change.high:
        return "within noise"
    return _REASONS[Reason.BELOW_THRESHOLD]


def _choose_other(one: Comparison) -> str:
    if SPECS[one.metric].scope is Scope.HOST:
        return _REASONS[Reason.OTHER_ENVIRONMENT]
    return _OTHER_CODEGEN if SPECS[one.metric].same_codegen else _OTHER_STACK


_CHOICES: Mapping[Reason, Callable[[Comparison], str]] = {
    Reason.BELOW_THRESHOLD: _choose_small,
    Reason.BEYOND_BAR: _choose_large,
    Reason.OTHER_ENVIRONMENT: _choose_other,
    Reason.NOT_MEASURED: lambda one: (
        "it has a value only where compiled calls are faster than eager's"
        if one.metric is Metric.BREAK_EVEN_CALLS
        else _REASONS[Reason.NOT_MEASURED]
    ),
    Reason.SAME_WORK: lambda one: (
        _REASONS[Reason.SAME_WORK]
        if one.metric in COMPILE_TIMES
        else "the same generated code, and as fast relative to eager as before"
    ),
    Reason.UNSETTLED: _choose_open,
}


def find_bar(one: Comparison) -> float | None:
    """What a change must exceed, in its own unit: the larger part; ``None`` without a threshold."""
    bar = one.threshold
    if bar is None:
        return None
    before = one.baseline.centre if one.baseline else 0.0
    if not SPECS[one.metric].is_ratio:
        return max(bar.relative * before, bar.absolute)
    return max(bar.relative, bar.absolute / before if before > 0 else bar.absolute)


def find_largest(comparisons: Iterable[Comparison]) -> Comparison | None:
    """Find the largest change that is below its threshold, in thresholds; ``None`` where nothing changed."""
    small = (one for one in comparisons if one.reason is Reason.BELOW_THRESHOLD)
    moved = [one for one in small if one.change and one.change.centre and find_bar(one)]
    return max(
        moved,
        key=lambda one: abs(one.change.centre if one.change else 0) / (find_bar(one) or 1),
        default=None,
    )


def exceeds_threshold(one: Comparison) -> bool:
    """Whether the change itself, whatever its interval, is larger than its threshold."""
    bar = find_bar(one)
    return bar is not None and one.change is not None and abs(one.change.centre) > bar


def _describe_leader(one: Comparison) -> str:
    """What a ratio follows, which did not move: then eager did. Compile calls follow cache misses."""
    leader = SPECS[one.metric].follows
    if one.metric is Metric.UNIQUE_GRAPHS:
        return "graphs are cut at breaks and by recompiles, which are matched by place"
    if stands_for := SPECS[one.metric].stands_for:
        if one.metric is Metric.COMPILE_CALLS and one.change and one.change.centre < 0:
            return "a process that misses the caches counts fewer calls"
        return f"no {' or '.join(map(name_metric, stands_for))} got longer"
    if leader is None:
        return "the caches explain it"
    if one.change and one.change.centre < 0 and exceeds_threshold(one):
        return f"{name_metric(leader)} itself did not improve by its threshold"
    return f"{name_metric(leader)} itself is within its threshold"


def _describe_counts(metric: Metric, estimate: Estimate, noun: str) -> str:
    """What a counter was: ``0 in all 5 baseline trials``; an exact estimate's interval is its range."""
    if estimate.low is None or estimate.high is None:
        return f"{render_value(metric, estimate.centre)} in the {noun}"
    low, high = (render_value(metric, value) for value in (estimate.low, estimate.high))
    if low != high:
        return f"{low} to {high} in {estimate.n} {noun}s"
    return f"{low} in {'both' if estimate.n == _BOTH else f'all {estimate.n}'} {noun}s"


def _describe_clause(one: Comparison, fact: Fact) -> str:
    if fact.code is Code.OWN_LIMIT:
        bound = "least" if SPECS[one.metric].higher_is_better else "most"
        return f"at {bound} {render_value(one.metric, fact.numbers['limit'])}"
    # Times stored earlier are noisy, and matter to an acceptance alone.
    is_reliable = SPECS[one.metric].family is not Family.NOISY or one.status not in MAYBE_WORSE
    if fact.code is Code.SINCE_STORED and is_reliable:
        return f"{describe_change(one.metric, fact.numbers['change'])} against the stored baseline"
    is_said = fact.code is Code.SINCE_UPGRADE and one.status is Status.INCONCLUSIVE
    if is_said or (one.found or one.reason, fact.code) in _IN_REASON:
        return ""
    if fact.code is Code.MACHINE_SPEED:
        left_out = "the change leaves out that " if one.change else ""
        return f"{left_out}this machine is now {describe_speed(fact.numbers['shift'])}"
    return fill(_CLAUSES[fact.code], fact) if fact.code in _CLAUSES else ""


def _describe_need(one: Comparison) -> str:
    if one.more_pairs is None:
        return ""
    if not one.more_pairs:
        return "too close to its threshold for more pairs to help"
    return f"needs {count_noun(one.more_pairs, 'more pair')}"


def render_bar(one: Comparison) -> str:
    """Render what a change must exceed to count; ``""`` where that is not known, or any change counts."""
    bar, before = one.threshold, one.baseline.centre if one.baseline else None
    return render_threshold(one.metric, bar, before) if bar and (bar.relative or bar.absolute) else ""


def _describe_values(one: Comparison) -> str:
    after = render_value(one.metric, one.candidate.centre) if one.candidate else ""
    before = render_value(one.metric, one.baseline.centre) if one.baseline else ""
    if not (before and after):
        return f"{after or before}, " if after or before else ""
    if one.change is None or one.change.low == one.change.high == 0.0:
        return f"{before} -> {after}: "
    move = describe_move(one)
    return f"{move}: " if is_shown_as_values(one) else f"{before} -> {after}, {move}: "
