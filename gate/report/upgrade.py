"""A few lines on an upgrade: how much changed, by model, and what got faster, slower, worse; Markdown, pure.

For verdicts of one code side by side on two stacks. A mean is the geometric one of the cases' changes, so
that twice as fast and twice as slow cancel out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from gate.metrics import SPECS, Family
from gate.records import Comparison, Metric, Status, Verdict
from gate.report.clean import clean_line
from gate.units import render_percent
from gate.words import count_noun, describe_change, mention_change, name_metric

MAX_MODELS = 8  # named in a sentence; a person reads no more, and the tables have the rest
MAX_ITEMS = 6
MAX_NAME = 120  # characters of a case's or a model's name

Name = Callable[[str], str]

_MEANS = (
    Metric.COMPILED_LATENCY,
    Metric.COLD_COMPILE_TIME,
    Metric.WARM_COMPILE_TIME,
    Metric.PEAK_MEMORY,
)
_VISIBLE = 0.005  # a mean below half a percent is not worth a line
_TIMES = frozenset({Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME})
_MEMORY = frozenset({Metric.PEAK_MEMORY})
_DRIFT = frozenset({Metric.DRIFT, Metric.DRIFT_FLOAT32})
_BROKEN = frozenset({Status.FAILED, Status.MISSING})
_COMPARED = frozenset(
    {Status.REGRESSED, Status.IMPROVED, Status.UNCHANGED, Status.INCONCLUSIVE, Status.ACCEPTED}
)
# A release number and nothing else: it may come from whoever measured.
_RELEASE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}")
_RELEASE_IN_ID = re.compile(rf"-torch({_RELEASE.pattern})")


def render_upgrade(verdict: Verdict, name: Name = clean_line, stacks: tuple[str, str] | None = None) -> str:
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
    """Find the releases of torch of base and head, as bare numbers; ``""`` where one is not told."""
    base = next(
        (found[1] for id_ in verdict.baseline_environments if (found := _RELEASE_IN_ID.search(id_))), ""
    )
    head = _RELEASE.match(verdict.environment.torch)
    return base, head[0] if head else ""


def compute_geometric_mean(changes: Iterable[float]) -> float:
    """Compute the geometric mean of changes, as a change; 0 of none."""
    logs = [math.log1p(change) for change in changes]
    return math.expm1(math.fsum(logs) / len(logs)) if logs else 0.0


def _render_stacks(verdict: Verdict, stacks: tuple[str, str] | None) -> str:
    base, head = stacks or find_stacks(verdict)
    compared = {one.case_id for one in verdict.comparisons if one.status in _COMPARED and one.change}
    models = {case.model for case in verdict.cases if case.id in compared}
    size = f"{count_noun(len(compared), 'case')} of {count_noun(len(models), 'model')}, measured side by side"
    if not base or not head:
        return f"{size}."
    same = f"torch {base} in both stacks"
    return f"{same if base == head else f'From torch {base} to {head}'}: {size}."


def _render_means(verdict: Verdict, metric: Metric, name: Name) -> str:
    """Mean change of a metric over all cases, and by model; nothing where none changed."""
    models = {case.id: case.model for case in verdict.cases}
    by_model: dict[str, list[float]] = {}
    for one in verdict.comparisons:
        counts = one.metric is metric and one.status in _COMPARED and one.case_id in models
        if counts and one.change and -1.0 < one.change.centre < math.inf:
            by_model.setdefault(models[one.case_id], []).append(one.change.centre)
    means = {model: compute_geometric_mean(changes) for model, changes in by_model.items()}
    if not any(abs(mean) >= _VISIBLE for mean in means.values()):
        return ""
    total = compute_geometric_mean(change for changes in by_model.values() for change in changes)
    ordered = sorted(means, key=lambda model: (-means[model], model))
    named = [f"{_write(model, name)} {render_percent(means[model])}" for model in _pick_ends(ordered)]
    told = f"Mean of {name_metric(metric)}: {describe_change(metric, total)}"
    return f"{told}; {_join(named, len(ordered), 'model')}."


def _pick_ends(ordered: Sequence[str]) -> Sequence[str]:
    """The models to name: all, or those at both ends, which moved most."""
    if len(ordered) <= MAX_MODELS:
        return ordered
    return (*ordered[: MAX_MODELS // 2], *ordered[-MAX_MODELS // 2 :])


def _list_changes(deciding: Sequence[Comparison], name: Name) -> tuple[str, ...]:
    def list_rows(status: Status, metrics: frozenset[Metric]) -> list[Comparison]:
        rows = [one for one in deciding if one.status is status and one.metric in metrics]
        return sorted(rows, key=lambda one: -abs(one.change.centre) if one.change else 0.0)

    counters = frozenset(metric for metric, spec in SPECS.items() if spec.family is Family.EXACT)
    broken = dict.fromkeys(one.case_id for one in deciding if one.status in _BROKEN)
    return (
        _render_items("Faster", list_rows(Status.IMPROVED, _TIMES), name),
        _render_items("Slower", list_rows(Status.REGRESSED, _TIMES), name),
        _render_items("Less memory", list_rows(Status.IMPROVED, _MEMORY), name),
        _render_items("More memory", list_rows(Status.REGRESSED, _MEMORY), name),
        _render_cases("Could not be measured", tuple(broken), name),
        _render_items("Counts that rose", list_rows(Status.REGRESSED, counters), name),
        _render_items("Counts that fell", list_rows(Status.IMPROVED, counters), name),
        _render_items("Less exact", list_rows(Status.REGRESSED, _DRIFT), name),
    )


def _render_items(title: str, rows: Sequence[Comparison], name: Name) -> str:
    if not rows:
        return ""
    named = [_render_item(one, name) for one in rows[:MAX_ITEMS]]
    return f"{title}: {_join(named, len(rows), 'comparison')}."


def _render_item(comparison: Comparison, name: Name) -> str:
    metric, change = comparison.metric, comparison.change
    told = mention_change(metric, [change.centre]) if change else name_metric(metric)
    return f"{_write(comparison.case_id, name)} {told}"


def _render_cases(title: str, case_ids: Sequence[str], name: Name) -> str:
    named = [_write(case_id, name) for case_id in case_ids[:MAX_ITEMS]]
    return f"{title}: {_join(named, len(case_ids), 'case')}." if named else ""


def _write(text: str, name: Name) -> str:
    return name(clean_line(text, MAX_NAME))


def _join(named: Sequence[str], number: int, noun: str) -> str:
    rest = number - len(named)
    return ", ".join(named) + (f" and {count_noun(rest, f'more {noun}')}" if rest else "")
