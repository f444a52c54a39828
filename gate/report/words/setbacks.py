"""What a refresh of baselines would move the wrong way, in words."""

from __future__ import annotations

from collections.abc import Sequence

from gate.records import Metric
from gate.store.baselines import Setback
from gate.units import join_some, render_value


def describe_hidden(setbacks: Sequence[Setback]) -> str:
    """Describe what nobody has given a reason for."""
    return f"the refresh would hide a regression: {join_some([*map(describe_setback, setbacks)], comma='; ')}"


def describe_setback(setback: Setback) -> str:
    """Describe one: ``bert/x compiled_latency 12.1 ms -> 15.8 ms``."""
    return f"{setback.case_id} {setback.metric} {describe_move(setback.metric, setback.old, setback.new)}"


def describe_move(metric: Metric, old: float, new: float | None) -> str:
    """Describe what is stored and what would be: ``12.1 ms -> 15.8 ms``."""
    return f"{render_value(metric, old)} -> {'not measured' if new is None else render_value(metric, new)}"
