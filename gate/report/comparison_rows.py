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
from gate.units import format_change, format_interval, format_percent, format_value, is_another_answer

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
# Reasons why something is unchanged that its numbers show: any other is written next to them.
# BEYOND_BAR: of a figure that only explains, which is neither better nor worse.
_PLAIN = frozenset({Reason.BELOW_THRESHOLD, Reason.BEYOND_BAR})
_BRACKETED: Mapping[Status, str] = {Status.REGRESSED: "(worse)", Status.IMPROVED: "(better)"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    status: Status
    label: str  # the status, in lower-case brackets where the metric does not decide
    metric: str
    before: str = ""
    after: str = ""
    change: str = ""  # with a word: "+30.6 % (slower)"
    interval: str = ""  # of the change; only where all is shown of a case
    threshold: str = ""  # beyond which the change counts; there, too
    noticed: str = ""  # the smallest change that would have been seen; there, too
    sentence: str = ""  # "" where the numbers are enough
    decides: bool = True


def group_comparisons(comparisons: Iterable[Comparison]) -> list[list[Comparison]]:
    """Into rows; comparisons without a change share one if status and reason are the same."""

    def get_key(comparison: Comparison) -> object:
        if comparison.change is None:
            return comparison.status, comparison.reason, comparison.decides, describe_comparison(comparison)
        return comparison.metric

    return list(group_by(comparisons, get_key).values())


def make_row(part: Sequence[Comparison]) -> Row:
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
        sentence=""
        if _needs_no_sentence(first)
        else complete_sentence(first, with_values=first.change is None),
        decides=first.decides,
    )


def _needs_no_sentence(comparison: Comparison) -> bool:
    if comparison.status in MOVED:
        return not comparison.may_decide
    if comparison.status is not Status.UNCHANGED or comparison.reason not in _PLAIN:
        return False
    return comparison.reason is Reason.BEYOND_BAR or not exceeds_threshold(comparison)


def make_common_row(parts: Sequence[Sequence[Comparison]]) -> Row:
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
    return _BRACKETED.get(comparison.status, f"({comparison.status.value.lower().replace('_', ' ')})")


def _render_estimate(metric: Metric, estimate: Estimate | None) -> str:
    return format_value(metric, estimate.centre) if estimate else ABSENT


def _describe_changes(alike: Sequence[Comparison]) -> str:
    first = alike[0]
    changes = [comparison.change.centre for comparison in alike if comparison.change]
    if not changes:
        return ""
    is_values = is_shown_as_values(first)
    if first.status is Status.UNCHANGED:
        return "" if is_values else format_change(first.metric, changes[0])
    word = _describe_beyond(first, min(changes), max(changes))
    if is_values:
        one_way = max(changes) if min(changes) > 0 or max(changes) < 0 else 0.0
        return word or name_direction(first.metric, one_way)
    return describe_range(first.metric, changes, word)


def _describe_beyond(comparison: Comparison, low: float, high: float) -> str:
    """``""`` where the direction is all."""
    if comparison.status is Status.INCONCLUSIVE:
        return "inconclusive"
    more = "accepted" if comparison.status is Status.ACCEPTED else ""
    more = "quarantined" if comparison.quarantined else more
    is_log2 = SPECS[comparison.metric].family is Family.LOG2  # "2.8x the error" has the direction
    direction = "" if is_log2 else name_direction(comparison.metric, high if low > 0 or high < 0 else 0.0)
    return ", ".join(part for part in (direction, more) if part) if more else ""


def _render_interval(comparison: Comparison) -> str:
    change, before, spec = comparison.change, comparison.baseline, SPECS[comparison.metric]
    if change is None or is_another_answer(comparison.metric, change.high):
        return ""
    if comparison.pairs == 1 and spec.family is Family.NOISY:
        return "no interval"  # whose noise is unknown
    if is_shown_as_values(comparison) and before and min(change.low, change.high) > -1:
        power = -1 if spec.higher_is_better else 1
        ends = sorted(before.centre * (1 + end) ** power for end in (change.low, change.high))
        return " to ".join(dict.fromkeys(format_value(comparison.metric, end) for end in ends))
    is_exact = format_change(comparison.metric, change.low) == format_change(comparison.metric, change.high)
    return "" if is_exact else format_interval(comparison.metric, change.low, change.high)


def _render_threshold(comparison: Comparison) -> str:
    """The larger part, as a percentage too: ``20 µs (11.6 %)``."""
    text, bar = render_bar(comparison) if comparison.change else "", compute_bar(comparison)
    is_share = SPECS[comparison.metric].is_ratio and text and bar and not text.endswith("%")
    return f"{text} ({format_percent(bar, signed=False)})" if is_share and bar else text


def _share(texts: Iterable[str]) -> str:
    distinct = set(texts)
    return distinct.pop() if len(distinct) == 1 else ""
