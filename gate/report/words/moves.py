"""The change of a comparison in words; of a ratio, where percent would mislead, both values; pure."""

from __future__ import annotations

from gate.metrics import SPECS, Family, Unit
from gate.records import Comparison, Metric
from gate.report.words.templates import describe_change, mention_change, name_direction, name_metric
from gate.units import render_change, render_value


def describe_values(metric: Metric, old: float, new: float | None) -> str:
    """Describe two values: ``12.1 ms -> 15.8 ms``."""
    return f"{render_value(metric, old)} -> {'not measured' if new is None else render_value(metric, new)}"


def is_shown_as_values(one: Comparison) -> bool:
    """Whether its change is both values and no percentage: of a speedup, of a share of eager's memory."""
    return bool(SPECS[one.metric].unit is Unit.RATIO and one.baseline and one.candidate)


def describe_move(one: Comparison) -> str:
    """Describe its change: ``+30.6 % (slower)``, or ``0.830x -> 0.501x (slower)``; "" without one."""
    if one.change is None:
        return ""
    if not (is_shown_as_values(one) and one.baseline and one.candidate):
        return describe_change(one.metric, one.change.centre)
    word = name_direction(one.metric, one.change.centre)
    values = describe_values(one.metric, one.baseline.centre, one.candidate.centre)
    return f"{values} ({word})" if word else values


def mention_move(one: Comparison) -> str:
    """Mention a metric and both values: ``compiled latency 12.1 ms -> 15.8 ms (+30.6 %)``."""
    spec = SPECS[one.metric]
    if one.change is None:
        return name_metric(one.metric)
    if spec.family is Family.LOG2 or not (one.baseline and one.candidate):
        return mention_change(one.metric, one.change.centre)
    values = describe_values(one.metric, one.baseline.centre, one.candidate.centre)
    is_percent = spec.is_ratio and not is_shown_as_values(one)
    percent = f" ({render_change(one.metric, one.change.centre)})" if is_percent else ""
    return f"{name_metric(one.metric)} {values}{percent}"
