"""A few lines on an upgrade: how much changed, by model, and what got faster, slower, worse; Markdown, pure.

For verdicts of one code side by side on two stacks. A mean is the geometric one of the cases' changes, so
that twice as fast and twice as slow cancel out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from statistics import geometric_mean

from gate.metrics import SPECS, Role, Unit, select_metrics
from gate.records import BROKEN, JUDGED, Comparison, Metric, Status, Verdict
from gate.report.clean import clean_line
from gate.report.words.templates import describe_change, mention_change, name_metric
from gate.units import count_noun, render_percent

MAX_MODELS = 8  # named in a sentence; a person reads no more, and the tables have the rest
_MAX_ITEMS = 6
_MAX_NAME = 120  # characters of a case's or a model's name

NameWriter = Callable[[str], str]

_VISIBLE = 0.005  # a mean below half a percent is not worth a line
# What convicts by itself: a ratio only repeats what it is a ratio of.
_LEADING = select_metrics(lambda spec: spec.role is Role.DECIDES and spec.follows is None)
_UNITS = frozenset({Unit.SECONDS, Unit.BYTES, Unit.COUNT, Unit.LOG2})
_MEANS = tuple(metric for metric in _LEADING if SPECS[metric].unit in {Unit.SECONDS, Unit.BYTES})
# A release number and nothing else: the measured code may have written it.
_RELEASE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}")


def render_upgrade(
    verdict: Verdict, name: NameWriter = clean_line, stacks: tuple[str, str] | None = None
) -> str:
    """Render the lines. ``name`` writes the name of a case or a model; ``stacks`` are both releases."""
    deciding = [one for one in verdict.comparisons if one.decides]
    changes = [part for part in _list_changes(deciding, name) if part]
    unsettled = sum(one.status is Status.INCONCLUSIVE for one in deciding)
    items = [
        *(part for metric in _MEANS if (part := _render_means(verdict, metric, name))),
        *(changes or ["Nothing changed beyond its limit."]),
        *([f"Could not tell: {count_noun(unsettled, 'comparison')}."] if unsettled else []),
    ]
    return "\n".join([_render_stacks(verdict, stacks), "", *(f"- {item}" for item in items)])


def find_stacks(verdict: Verdict) -> tuple[str, str]:
    """Find the releases of torch of base and head, as bare numbers; ``""`` where one is unknown."""
    versions = (verdict.base.torch if verdict.base else "", verdict.environment.torch)
    base, head = (found[0] if (found := _RELEASE.match(one)) else "" for one in versions)
    return base, head


def _render_stacks(verdict: Verdict, stacks: tuple[str, str] | None) -> str:
    base, head = stacks or find_stacks(verdict)
    compared = {one.case_id for one in verdict.comparisons if one.status in JUDGED and one.change}
    models = {case.model for case in verdict.cases if case.id in compared}
    size = f"{count_noun(len(compared), 'case')} of {count_noun(len(models), 'model')}, measured side by side"
    if not base or not head:
        return f"{size}."
    same = f"torch {base} in both stacks"
    return f"{same if base == head else f'From torch {base} to {head}'}: {size}."


def _render_means(verdict: Verdict, metric: Metric, name: NameWriter) -> str:
    """Mean change of a metric over all cases, and by model; nothing where none changed."""
    models = {case.id: case.model for case in verdict.cases}
    by_model: dict[str, list[float]] = {}
    for one in verdict.comparisons:
        counts = one.metric is metric and one.status in JUDGED and one.case_id in models
        if counts and one.change and -1.0 < one.change.centre < math.inf:
            by_model.setdefault(models[one.case_id], []).append(1.0 + one.change.centre)
    means = {model: geometric_mean(factors) - 1.0 for model, factors in by_model.items()}
    if not any(abs(mean) >= _VISIBLE for mean in means.values()):
        return ""
    total = geometric_mean(factor for factors in by_model.values() for factor in factors) - 1.0
    ordered = sorted(means, key=lambda model: (-means[model], model))
    named = [f"{_write(model, name)} {render_percent(means[model])}" for model in _pick_ends(ordered)]
    text = f"Mean of {name_metric(metric)}: {describe_change(metric, total)}"
    return f"{text}; {_join(named, len(ordered), 'model')}."


def _pick_ends(ordered: Sequence[str]) -> Sequence[str]:
    """The models to name: all, or those at both ends, which moved most."""
    if len(ordered) <= MAX_MODELS:
        return ordered
    return (*ordered[: MAX_MODELS // 2], *ordered[-MAX_MODELS // 2 :])


def _list_changes(deciding: Sequence[Comparison], name: NameWriter) -> tuple[str, ...]:
    def render(title: str, status: Status, unit: Unit) -> str:
        leading = (one for one in deciding if one.metric in _LEADING and SPECS[one.metric].unit is unit)
        rows = [one for one in leading if one.status is status]
        items = [_render_item(one, name) for one in sorted(rows, key=_rank_change)]
        return _render_items(title, items, "comparison")

    worse = [one for one in deciding if one.status is Status.REGRESSED]
    listed = {(one.case_id, one.metric) for one in worse}
    others = [one for one in worse if not (_is_listed(one.metric) or _is_led(one, listed))]
    also = [_render_other(one, name) for one in sorted(others, key=_rank_change)]
    broken = dict.fromkeys(one.case_id for one in deciding if one.status in BROKEN)
    lost = [_write(case_id, name) for case_id in broken]
    return (
        render("Faster", Status.IMPROVED, Unit.SECONDS),
        render("Slower", Status.REGRESSED, Unit.SECONDS),
        render("Less memory", Status.IMPROVED, Unit.BYTES),
        render("More memory", Status.REGRESSED, Unit.BYTES),
        _render_items("Could not be measured", lost, "case"),
        render("Counts that rose", Status.REGRESSED, Unit.COUNT),
        render("Counts that fell", Status.IMPROVED, Unit.COUNT),
        render("Less exact", Status.REGRESSED, Unit.LOG2),
        render("More exact", Status.IMPROVED, Unit.LOG2),
        _render_items("Worse too", also, "comparison"),
    )


def _is_listed(metric: Metric) -> bool:
    """Whether a change of it has a line of its own; a limit of gate.yml lets others decide as well."""
    return metric in _LEADING and SPECS[metric].unit in _UNITS


def _is_led(one: Comparison, listed: Collection[tuple[str, Metric | None]]) -> bool:
    """Whether what a metric follows is listed for the case, as a speedup's compiled latency."""
    return (one.case_id, SPECS[one.metric].follows) in listed


def _rank_change(comparison: Comparison) -> float:
    return -abs(comparison.change.centre) if comparison.change else 0.0


def _render_items(title: str, items: Sequence[str], noun: str) -> str:
    return f"{title}: {_join(items[:_MAX_ITEMS], len(items), noun)}." if items else ""


def _render_item(comparison: Comparison, name: NameWriter) -> str:
    metric, change = comparison.metric, comparison.change
    text = mention_change(metric, change.centre) if change else name_metric(metric)
    return f"{_write(comparison.case_id, name)} {text}"


def _render_other(comparison: Comparison, name: NameWriter) -> str:
    """With the word for worse: of a speedup the sign alone would say the opposite."""
    metric, change = comparison.metric, comparison.change
    text = f" {describe_change(metric, change.centre)}" if change else ""
    return f"{_write(comparison.case_id, name)} {name_metric(metric)}{text}"


def _write(text: str, name: NameWriter) -> str:
    return name(clean_line(text, _MAX_NAME))


def _join(named: Sequence[str], number: int, noun: str) -> str:
    rest = number - len(named)
    return ", ".join(named) + (f" and {count_noun(rest, f'more {noun}')}" if rest else "")
