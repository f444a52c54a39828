"""What an upgrade came to on the whole, above the report of its verdict: means by model; Markdown, pure.

For verdicts of one code side by side on two stacks. A mean is the geometric one of the cases' changes, so
that twice as fast and twice as slow cancel out.
"""

from __future__ import annotations

import math
import re
from statistics import geometric_mean

from gate.metrics import Role, Unit, select_metrics
from gate.records import JUDGED, Metric, Verdict
from gate.report.clean import clean_line
from gate.report.markdown import escape_code
from gate.report.words.templates import describe_change, name_metric
from gate.units import count_noun, render_percent

MAX_MODELS = 8  # named in a sentence; a person reads no more, and the tables have the rest
_MAX_NAME = 120  # characters of a model's name
_VISIBLE = 0.005  # a mean below half a percent is not worth a line
# What decides by itself: a ratio only repeats what it is a ratio of.
_MEANS = select_metrics(
    lambda spec: (
        spec.role is Role.DECIDES and spec.follows is None and spec.unit in {Unit.SECONDS, Unit.BYTES}
    )
)
# A release number and nothing else: the measured code may have written it.
_RELEASE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}")


def render_upgrade(verdict: Verdict, stacks: tuple[str, str] | None = None) -> str:
    """Render the lines; ``stacks`` are both releases, where the verdict does not say them."""
    means = (_render_means(verdict, metric) for metric in _MEANS)
    return "\n".join([_render_stacks(verdict, stacks), "", *(f"- {mean}" for mean in means if mean)]).rstrip()


def find_stacks(verdict: Verdict) -> tuple[str, str]:
    """Find the releases of torch of base and head, as bare numbers; ``""`` where one is unknown."""
    sides = (verdict.base_environment, verdict.environment)
    versions = (one.torch if one else "" for one in sides)
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


def _render_means(verdict: Verdict, metric: Metric) -> str:
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
    left = len(ordered) - MAX_MODELS
    if left > 0:  # those at both ends moved most
        ordered = [*ordered[: MAX_MODELS // 2], *ordered[-MAX_MODELS // 2 :]]
    named = ", ".join(
        f"{escape_code(clean_line(model, _MAX_NAME))} {render_percent(means[model])}" for model in ordered
    )
    rest = f" and {count_noun(left, 'more model')}" if left > 0 else ""
    return f"Mean of {name_metric(metric)}: {describe_change(metric, total)}; {named}{rest}."
