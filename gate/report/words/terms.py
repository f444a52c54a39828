"""The words for metrics, changes and counts, the same in reports, comments, errors and help; pure.

A reader of CI output knows *slower*, *larger*, *limit* and *could not tell*, and no word of this
project's own. A change has its sign and such a word: ``+30.6 % (slower)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gate.metrics import SPECS, Family
from gate.records import Metric, PairBase, Status
from gate.units import is_another_answer, render_change, render_factor, render_interval

# As many characters of a commit as no repository has two of.
COMMIT_CHARS = 12

_NAMES: Mapping[Metric, str] = {
    Metric.DRIFT_FLOAT32: "drift in float32",
    Metric.DRIFT_STEPS: "drift after 10 steps",
}
_STATUSES: Mapping[Status, str] = {
    Status.NOT_COMPARABLE: "not judged",
    Status.NEW: "not judged",
}


def name_metric(metric: Metric) -> str:
    """Name a metric in a sentence: ``compiled latency``."""
    return _NAMES.get(metric, metric.value.replace("_", " "))


def name_status(status: Status) -> str:
    """Name a status in a count: ``regressed``, ``not judged``."""
    return _STATUSES.get(status, status.value.lower())


def name_direction(metric: Metric, change: float) -> str:
    """Name what a change (+ is worse) is: ``slower``; ``""`` where there is none."""
    if not change:
        return ""
    return SPECS[metric].worse if change > 0 else SPECS[metric].better


def describe_change(metric: Metric, change: float, word: str = "") -> str:
    """Describe a change with its sign and a word: ``+30.6 % (slower)``, ``+2 (more)``.

    ``word`` stands for the direction where that is not known: ``+6.0 % (could not tell)``.
    """
    if SPECS[metric].family is Family.LOG2 and is_another_answer(change):
        return f"{render_change(metric, change)}{f' ({word})' if word else ''}"
    if SPECS[metric].family is Family.LOG2 and change and math.isfinite(change):
        told = f", {word}" if word else ""
        return f"{render_change(metric, change).partition(' ')[0]} ({render_factor(change)} the error{told})"
    return _qualify(render_change(metric, change), word or name_direction(metric, change))


def describe_range(metric: Metric, changes: Sequence[float], word: str = "") -> str:
    """Describe the changes of several cases as one: ``+29.0 to +32.1 % (slower)``."""
    low, high = min(changes), max(changes)
    if render_change(metric, low) == render_change(metric, high):
        return describe_change(metric, high, word)
    one_way = high if low > 0 or high < 0 else 0.0
    return _qualify(render_interval(metric, low, high), word or name_direction(metric, one_way))


def mention_change(metric: Metric, changes: Sequence[float]) -> str:
    """Mention a metric and its change without brackets: ``compiled latency +30.6 %``, for a headline."""
    low, high = min(changes), max(changes)
    if SPECS[metric].family is Family.LOG2:
        if is_another_answer(high):
            return f"{name_metric(metric)}, {render_change(metric, high)}"
        factors = dict.fromkeys(map(render_factor, (low, high)))
        return f"{name_metric(metric)} {' to '.join(factors)} the error"
    told = render_change(metric, high)
    if told != render_change(metric, low):
        told = render_interval(metric, low, high)
    return f"{name_metric(metric)} {told}"


def _qualify(text: str, word: str) -> str:
    """Add the word, unless the change reads as none."""
    return f"{text} ({word})" if word and any(digit in text for digit in "123456789") else text


def name_base(base: PairBase | None) -> str:
    """Name it by its label, else by its commit."""
    if base is None or not (base.label or base.commit):
        return "the base"
    return base.label or f"the base commit {base.commit[:COMMIT_CHARS]}"
