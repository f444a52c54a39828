"""Rows: one comparison as words and numbers, or that of several cases at once; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.metrics import SPECS, Family
from gate.records.cases import Metric, group_by
from gate.records.verdict import MOVED, Comparison, Estimate, Reason, Status
from gate.report.clean import ABSENT, MAX_SENTENCE, clean_line
from gate.report.words.comparisons import (
    complete_sentence,
    compute_bar,
    describe_comparison,
    describe_undecided,
    exceeds_threshold,
    render_bar,
    render_noticed,
)
from gate.report.words.templates import describe_range, is_shown_as_values, name_direction, name_metric
from gate.units import is_another_answer, render_change, render_interval, render_percent, render_value

STATUS_ORDER = (
    Status.FAILED,
    Status.MISSING,
    Status.REGRESSED,
    Status.INCONCLUSIVE,
    Status.ACCEPTED,
    Status.NEW,
    Status.NOT_COMPARABLE,
    Status.IMPROVED,
    Status.UNCHANGED,
)
RANK: Mapping[Status, int] = {status: rank for rank, status in enumerate(STATUS_ORDER)}
# By what a reader does about it: the colour and sign of a badge.
STATUS_KINDS: Mapping[Status, str] = {
    Status.REGRESSED: "bad",
    Status.FAILED: "bad",
    Status.MISSING: "bad",
    Status.INCONCLUSIVE: "unsure",
    Status.ACCEPTED: "other",
    Status.NEW: "other",
    Status.NOT_COMPARABLE: "other",
    Status.IMPROVED: "good",
    Status.UNCHANGED: "same",
}
WHOLE_CASE = "whole case"
# Of what is unchanged, reasons that its numbers show: any other is written beside them.
# BEYOND_BAR: of a figure that only explains, which is neither better nor worse.
_PLAIN = frozenset({Reason.BELOW_THRESHOLD, Reason.BEYOND_BAR})
_BESIDE_LABELS: Mapping[Status, str] = {Status.REGRESSED: "(worse)", Status.IMPROVED: "(better)"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One comparison, or several of a case that share one fate and have no numbers."""

    status: Status
    label: str  # the status, in lower-case brackets where the metric does not decide
    metric: str
    before: str = ""
    after: str = ""
    change: str = ""  # with a word: "+30.6 % (slower)"
    interval: str = ""  # of the change; only where all is shown of a case
    threshold: str = ""  # beyond which the change counts; there, too
    noticed: str = ""  # the smallest change that would have been seen; there, too
    sentence: str = ""  # "" where the numbers say it all
    decides: bool = True


def part_comparisons(comparisons: Iterable[Comparison]) -> list[list[Comparison]]:
    """Part the comparisons of a case into rows; those without a change and of one fate share one."""

    def find_fate(one: Comparison) -> object:
        if one.change is None:
            return one.status, one.reason, one.decides, describe_comparison(one)
        return one.metric

    return list(group_by(comparisons, find_fate).values())


def make_row(part: Sequence[Comparison]) -> Row:
    """Make the row of one case: of one comparison, or of several without a change."""
    first, alone = part[0], len(part) == 1
    name = WHOLE_CASE if first.is_of_whole_case else name_metric(first.metric)
    has_values = alone and bool(first.baseline or first.candidate)
    return Row(
        status=first.status,
        label=_label_status(first),
        metric=name if alone else f"{len(part)} metrics",
        before=_render_estimate(first.metric, first.baseline) if has_values else "",
        after=_render_estimate(first.metric, first.candidate) if has_values else "",
        change=_describe_changes([first]),
        interval=_render_interval(first),
        threshold=_render_threshold(first),
        noticed=render_noticed(first),
        sentence="" if _says_it_all(first) else complete_sentence(first, with_values=first.change is None),
        decides=first.decides,
    )


def _says_it_all(one: Comparison) -> bool:
    """Whether label and numbers say why: of what decides nothing, and of no change that looks large."""
    if one.status in MOVED:
        return not one.may_decide
    if one.status is not Status.UNCHANGED or one.reason not in _PLAIN:
        return False
    return one.reason is Reason.BEYOND_BAR or not exceeds_threshold(one)


def make_common_row(parts: Sequence[Sequence[Comparison]]) -> Row:
    """Make one row of as many cases as there are parts, which differ in numbers only."""
    rows, alike = [make_row(part) for part in parts], [part[0] for part in parts]
    sentence = _share(row.sentence for row in rows)
    if not sentence and alike[0].status is Status.INCONCLUSIVE:
        sentence = clean_line(describe_undecided(alike), MAX_SENTENCE)
    return replace(
        rows[0],
        before=_share(row.before for row in rows),
        after=_share(row.after for row in rows),
        change=_describe_changes(alike),
        interval="",
        sentence=sentence,
    )


def _label_status(comparison: Comparison) -> str:
    if comparison.decides:
        return comparison.status.value
    if comparison.status is Status.UNCHANGED and comparison.reason is Reason.BEYOND_BAR:
        return "(changed)"
    return _BESIDE_LABELS.get(comparison.status, f"({comparison.status.value.lower().replace('_', ' ')})")


def _render_estimate(metric: Metric, estimate: Estimate | None) -> str:
    return render_value(metric, estimate.centre) if estimate else ABSENT


def _describe_changes(alike: Sequence[Comparison]) -> str:
    """The change of one comparison, or the range of several, with the word that says what it is."""
    first = alike[0]
    changes = [one.change.centre for one in alike if one.change]
    if not changes:
        return ""
    is_values = is_shown_as_values(first)
    if first.status is Status.UNCHANGED:
        return "" if is_values else render_change(first.metric, changes[0])
    word = _find_word(first, min(changes), max(changes))
    if is_values:
        one_way = max(changes) if min(changes) > 0 or max(changes) < 0 else 0.0
        return word or name_direction(first.metric, one_way)
    return describe_range(first.metric, changes, word)


def _find_word(comparison: Comparison, low: float, high: float) -> str:
    """What more there is to say of a change than its direction; ``""`` where that says it all."""
    if comparison.status is Status.INCONCLUSIVE:
        return "inconclusive"
    more = "accepted" if comparison.status is Status.ACCEPTED else ""
    more = "quarantined" if comparison.quarantined else more
    is_log2 = SPECS[comparison.metric].family is Family.LOG2  # "2.8x the error" says the direction
    direction = "" if is_log2 else name_direction(comparison.metric, high if low > 0 or high < 0 else 0.0)
    return ", ".join(part for part in (direction, more) if part) if more else ""


def _render_interval(one: Comparison) -> str:
    """The interval of its change, empty where it is exact; of a ratio, that of head's value."""
    change, before, spec = one.change, one.baseline, SPECS[one.metric]
    if change is None or is_another_answer(one.metric, change.high):
        return ""
    if one.pairs == 1 and spec.family is Family.NOISY:
        return "no interval"  # whose noise is unknown
    if is_shown_as_values(one) and before and min(change.low, change.high) > -1:
        power = -1 if spec.higher_is_better else 1
        ends = sorted(before.centre * (1 + end) ** power for end in (change.low, change.high))
        return " to ".join(dict.fromkeys(render_value(one.metric, end) for end in ends))
    is_exact = render_change(one.metric, change.low) == render_change(one.metric, change.high)
    return "" if is_exact else render_interval(one.metric, change.low, change.high)


def _render_threshold(one: Comparison) -> str:
    """The part in force, as a percentage too: ``20 µs (11.6 %)``."""
    text, bar = render_bar(one) if one.change else "", compute_bar(one)
    is_share = SPECS[one.metric].is_ratio and text and bar and not text.endswith("%")
    return f"{text} ({render_percent(bar, signed=False)})" if is_share and bar else text


def _share(texts: Iterable[str]) -> str:
    found = set(texts)
    return found.pop() if len(found) == 1 else ""
