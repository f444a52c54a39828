"""The sentences of a comparison: the values, how they changed, what follows from it, and what else counts."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import itemgetter

from gate.metrics import COMPILE_TIMES, SPECS, Family, Scope
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import MISMATCH_CODES, WHY_UNMEASURED, Fact
from gate.records.verdict import MAYBE_WORSE, Comparison, Estimate, Reason, Status
from gate.report.clean import MAX_SENTENCE, clean_line
from gate.report.words.facts import describe_disturbances, describe_failed_trial, describe_measuring
from gate.report.words.templates import (
    PHRASES,
    SENTENCES,
    describe_change,
    describe_move,
    describe_speed,
    fill,
    is_shown_as_values,
    name_metric,
    upper_first,
)
from gate.units import format_change, format_noun, format_threshold, format_value

_REASONS = SENTENCES["reasons"]
_SPECIAL = SENTENCES["special_reasons"]
_INSTEAD = SENTENCES["instead"]
_CLAUSES = SENTENCES["clauses"]
_REMARKS = SENTENCES["remarks"]
_OPENINGS: Mapping[Status, str] = {
    Status.INCONCLUSIVE: "inconclusive: ",
    Status.NEW: "not judged: ",
    Status.NOT_COMPARABLE: "not judged: ",
    Status.MISSING: "missing: ",
}
_BOTH = 2
_IN_REASON = {(Reason.OTHER_ENVIRONMENT, Code.MACHINE_SPEED), (Reason.UNSETTLED, Code.NO_RATIO)}


def describe_comparison(comparison: Comparison, *, with_values: bool = True) -> str:
    """One sentence, and one more for each doubt, acceptance and quarantine."""
    instead = [text for fact in comparison.remarks if (text := _replace_reason(fact))]
    first = instead or [_describe_finding(comparison, with_values=with_values)]
    return " ".join((*first, *filter(None, map(_describe_remark, comparison.remarks))))


def complete_sentence(comparison: Comparison, *, with_values: bool = True) -> str:
    """With the smallest change that would have been noticed, if it is inconclusive."""
    sentence = clean_line(describe_comparison(comparison, with_values=with_values), MAX_SENTENCE)
    change = comparison.change
    counted = SPECS[comparison.metric].family is Family.EXACT
    if comparison.status is not Status.INCONCLUSIVE or change is None or counted:
        return sentence
    if abs(change.centre) >= change.detectable:  # it was noticed
        return sentence
    if smallest := render_noticed(comparison):
        return f"{sentence} {fill(PHRASES['noticed_from'], smallest=smallest)}".strip()
    measured = comparison.candidate.n if comparison.candidate else 0
    effort = format_noun(comparison.pairs, "pair") if comparison.pairs else format_noun(measured, "trial")
    return f"{sentence} {fill(PHRASES['nothing_noticed'], effort=effort)}".strip()


def render_noticed(comparison: Comparison) -> str:
    """``""`` for counts, and where there is none."""
    spec, change = SPECS[comparison.metric], comparison.change
    if change is None or spec.family is Family.EXACT or (spec.is_ratio and change.detectable > 1):
        return ""  # twice as slow, and unseen
    return format_change(comparison.metric, change.detectable).lstrip("+")


def describe_undecided(alike: Iterable[Comparison]) -> str:
    reasons = count_reasons(map(describe_reason, alike), "case")
    return f"{upper_first(_OPENINGS[Status.INCONCLUSIVE])}{reasons}."


def count_reasons(reasons: Iterable[str], noun: str, most: int | None = None) -> str:
    """The commonest first, each with its count; a single reason stands alone."""
    counted = Counter(reasons).most_common(most)
    if len(counted) == 1:
        return counted[0][0]
    return "; ".join(f"{reason} ({format_noun(count, noun)})" for reason, count in counted)


def _replace_reason(fact: Fact) -> str:
    if fact.code is Code.FAILURE:
        return upper_first(describe_failed_trial(fact)) if fact.names else ""
    return fill(_INSTEAD[fact.code], fact) if fact.code in _INSTEAD else ""


def _describe_remark(fact: Fact) -> str:
    if fact.code not in _REMARKS:
        return ""
    return fill(_REMARKS[fact.code], fact, disturbances=describe_disturbances(fact))


def _describe_finding(comparison: Comparison, *, with_values: bool) -> str:
    remarks, opening = comparison.remarks, _choose_opening(comparison)
    unmeasured = next((fact for fact in remarks if fact.code in MISMATCH_CODES | WHY_UNMEASURED), None)
    texts = (_describe_clause(comparison, fact) for fact in (() if unmeasured else remarks))
    clauses = [*filter(None, (_describe_need(comparison), *texts))]
    remark = f" ({'; '.join(clauses)})" if clauses else ""
    if unmeasured:
        return upper_first(f"{opening}{describe_measuring(unmeasured)}{remark}.")
    is_in_columns = not with_values and comparison.baseline and comparison.candidate
    values = "" if is_in_columns else _describe_values(comparison)
    return upper_first(f"{values}{opening}{describe_reason(comparison)}{remark}.")


def _choose_opening(comparison: Comparison) -> str:
    if comparison.more_pairs is not None:  # the reason has it
        return ""
    if comparison.found is not None:  # it was REGRESSED, or at least suspect
        return _OPENINGS[Status.INCONCLUSIVE] if comparison.found is Reason.UNSETTLED else ""
    return _OPENINGS.get(comparison.status, "")


def describe_reason(comparison: Comparison, *, is_of_many: bool = False) -> str:
    """A part of a sentence; ``is_of_many`` leaves out threshold and pairs, which differ."""
    reason = comparison.found or comparison.reason
    metric, before, after = comparison.metric, comparison.baseline, comparison.candidate
    if reason is Reason.BEYOND_BAR and SPECS[metric].family is Family.EXACT and before and after:
        arm = "base" if comparison.pairs else "baseline"
        sides = ((before, f"{arm} trial"), (after, "head trial"))
        return ", ".join(_describe_counts(metric, *side) for side in sides)
    facts = {fact.code: fact for fact in comparison.remarks}
    speed, upgrade = facts.get(Code.MACHINE_SPEED), facts.get(Code.SINCE_UPGRADE)
    leader, bar = SPECS[metric].follows, render_bar(comparison)
    has_pairs = bool(comparison.pairs) and not is_of_many
    pairs = format_noun(comparison.pairs, "pair") if has_pairs else ""
    return fill(
        _choose_template(comparison, reason, facts),
        limit=fill(PHRASES["limit"], bar="" if is_of_many else bar),
        in_pairs=fill(PHRASES["in_pairs"], pairs=pairs) if pairs else "",
        leader=name_metric(leader) if leader else "",
        leaders=" or ".join(map(name_metric, SPECS[metric].stands_for)),
        speed=describe_speed(speed.numbers["shift"]) if speed else "",
        upgrade=fill(_CLAUSES[upgrade.code], upgrade) if upgrade else "",
    )


def _choose_template(comparison: Comparison, reason: Reason, codes: Collection[Code]) -> str:
    keys: list[Code | Status] = [comparison.status]
    keys[:0] = [code for code in codes if code is not Code.OWN_LIMIT or comparison.threshold is None]
    special = next(filter(None, (_SPECIAL.get(f"{reason} {key}".lower()) for key in keys)), "")
    choose = _CHOICES.get(reason)
    return special or (choose(comparison) if choose else "") or _REASONS[reason]


def _choose_large(comparison: Comparison) -> str:
    change = comparison.change
    is_latency = comparison.metric is Metric.COMPILED_LATENCY
    return PHRASES["large_beside_eager"] if is_latency and change and change.low <= 0.0 <= change.high else ""


def _choose_open(comparison: Comparison) -> str:
    change, spec = comparison.change, SPECS[comparison.metric]
    # A ratio that is better, while what it is a ratio of is not settled.
    waits = bool(spec.follows and change and change.low < change.high < 0)
    if comparison.more_pairs is not None:
        return PHRASES["open_with_leader" if waits else "open"]
    if waits:
        return PHRASES["better_but_leader_open"]
    if spec.repeats:
        return PHRASES["trials_differ"]
    if change and change.low > 0:
        return PHRASES["too_many_comparisons"]
    is_worse = (
        change is None
        or comparison.threshold is None
        or (change.centre > 0 and exceeds_threshold(comparison))
    )
    return PHRASES["may_be_noise"] if is_worse else ""


def _choose_small(comparison: Comparison) -> str:
    change = comparison.change
    if change is None or change.low == change.high == 0.0:
        return PHRASES["same"]
    is_large = exceeds_threshold(comparison)
    is_noisy_pair = comparison.pairs and SPECS[comparison.metric].family is Family.NOISY
    if is_large and change.centre < 0 and (is_noisy_pair or change.high < 0):
        return PHRASES["not_surely_better"]
    if is_noisy_pair:
        return PHRASES["not_worse"]
    return PHRASES["within_noise"] if is_large or change.low <= 0.0 <= change.high else ""


def _choose_other(comparison: Comparison) -> str:
    spec = SPECS[comparison.metric]
    if spec.scope is Scope.HOST:
        return ""
    return PHRASES["other_codegen" if spec.same_codegen else "other_stack"]


def _choose_leader(comparison: Comparison) -> str:
    """Eager moved, and the leader did not; compile calls follow cache misses."""
    spec, change = SPECS[comparison.metric], comparison.change
    is_better = bool(change and change.centre < 0)
    if comparison.metric is Metric.UNIQUE_GRAPHS:
        return PHRASES["graphs_by_place"]
    if spec.stands_for:
        is_count = comparison.metric is Metric.COMPILE_CALLS
        return PHRASES["fewer_calls" if is_count and is_better else "no_leader_longer"]
    if spec.follows is None:
        return PHRASES["caches_explain"]
    return PHRASES["leader_not_better" if is_better and exceeds_threshold(comparison) else "leader_within"]


def _choose_unmeasured(comparison: Comparison) -> str:
    return PHRASES["never_pays_back"] if comparison.metric is Metric.BREAK_EVEN_CALLS else ""


def _choose_same(comparison: Comparison) -> str:
    return "" if comparison.metric in COMPILE_TIMES else PHRASES["same_code"]


# Of a reason that has several sentences; "" chooses the one of the reason.
_CHOICES: Mapping[Reason, Callable[[Comparison], str]] = {
    Reason.BELOW_THRESHOLD: _choose_small,
    Reason.BEYOND_BAR: _choose_large,
    Reason.LEADER_STANDS: _choose_leader,
    Reason.NOT_MEASURED: _choose_unmeasured,
    Reason.OTHER_ENVIRONMENT: _choose_other,
    Reason.SAME_WORK: _choose_same,
    Reason.UNSETTLED: _choose_open,
}


def compute_bar(comparison: Comparison) -> float | None:
    """The larger part of the threshold, in the change's unit."""
    bar = comparison.threshold
    if bar is None:
        return None
    before = comparison.baseline.centre if comparison.baseline else 0.0
    if not SPECS[comparison.metric].is_ratio:
        return max(bar.relative * before, bar.absolute)
    return max(bar.relative, bar.absolute / before if before > 0 else bar.absolute)


def find_largest(comparisons: Iterable[Comparison]) -> Comparison | None:
    """The largest change below its threshold, in thresholds."""
    small = (comparison for comparison in comparisons if comparison.reason is Reason.BELOW_THRESHOLD)
    shares = (
        (abs(comparison.change.centre) / bar, comparison)
        for comparison in small
        if comparison.change and comparison.change.centre and (bar := compute_bar(comparison))
    )
    return max(shares, key=itemgetter(0), default=(0.0, None))[1]


def exceeds_threshold(comparison: Comparison) -> bool:
    """Whether the centre does, whatever the interval."""
    bar = compute_bar(comparison)
    return bar is not None and comparison.change is not None and abs(comparison.change.centre) > bar


def _describe_counts(metric: Metric, estimate: Estimate, noun: str) -> str:
    """``0 in all 5 baseline trials``; an exact estimate's interval is its range."""
    if estimate.low is None or estimate.high is None:
        return f"{format_value(metric, estimate.centre)} in the {noun}"
    low, high = (format_value(metric, value) for value in (estimate.low, estimate.high))
    if low != high:
        return f"{low} to {high} in {estimate.n} {noun}s"
    return f"{low} in {'both' if estimate.n == _BOTH else f'all {estimate.n}'} {noun}s"


def _describe_clause(comparison: Comparison, fact: Fact) -> str:
    metric, status = comparison.metric, comparison.status
    if fact.code is Code.OWN_LIMIT:
        bound = "least" if SPECS[metric].higher_is_better else "most"
        return fill(_CLAUSES[fact.code], bound=bound, limit=format_value(metric, fact.numbers["limit"]))
    if fact.code is Code.SINCE_STORED:
        # Times stored earlier are noisy, and matter to an acceptance alone.
        is_reliable = SPECS[metric].family is not Family.NOISY or status not in MAYBE_WORSE
        change = describe_change(metric, fact.numbers["change"])
        return fill(_CLAUSES[fact.code], change=change) if is_reliable else ""
    is_in_opening = fact.code is Code.SINCE_UPGRADE and status is Status.INCONCLUSIVE
    if is_in_opening or (comparison.found or comparison.reason, fact.code) in _IN_REASON:
        return ""
    clause = fill(_CLAUSES[fact.code], fact) if fact.code in _CLAUSES else ""
    if fact.code is Code.MACHINE_SPEED and comparison.change:
        return fill(PHRASES["left_out"], clause=clause)
    return clause


def _describe_need(comparison: Comparison) -> str:
    if comparison.more_pairs is None:
        return ""
    if not comparison.more_pairs:
        return PHRASES["pairs_do_not_help"]
    return f"needs {format_noun(comparison.more_pairs, 'more pair')}"


def render_bar(comparison: Comparison) -> str:
    bar, before = comparison.threshold, comparison.baseline.centre if comparison.baseline else None
    return format_threshold(comparison.metric, bar, before) if bar and (bar.relative or bar.absolute) else ""


def _describe_values(comparison: Comparison) -> str:
    metric, change = comparison.metric, comparison.change
    after = format_value(metric, comparison.candidate.centre) if comparison.candidate else ""
    before = format_value(metric, comparison.baseline.centre) if comparison.baseline else ""
    if not (before and after):
        return f"{after or before}, " if after or before else ""
    if change is None or change.low == change.high == 0.0:
        return f"{before} -> {after}: "
    move = describe_move(comparison)
    return f"{move}: " if is_shown_as_values(comparison) else f"{before} -> {after}, {move}: "
