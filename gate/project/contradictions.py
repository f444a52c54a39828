"""What does not fit together in the files that people write, though each key by itself is right.

A check gets the values of an entry's keys that are right by themselves, and the names of those that
are not. Keys that were not written are in neither.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gate.files.misfits import Misfit
from gate.metrics import SPECS, Family, Role
from gate.records import Metric
from gate.records.bounds import MOST_ALLOWED, read_amount

Values = Mapping[str, Any]

DEFAULT_TRIALS = 1  # a suspect gets more
DEFAULT_MAX_TRIALS = 3  # what settles most, in the default budget
_PARTS = ("relative", "absolute")
_BOUNDS = ("at_most", "at_least")  # by whether more is better


def check_threshold(values: Values, wrong: Collection[str]) -> Iterator[Misfit]:
    """A threshold of neither part leaves everything as it is."""
    if not _list_parts(values) and not wrong:
        yield _refuse_nothing()


def check_override(values: Values, wrong: Collection[str]) -> Iterator[Misfit]:
    """An override must say something that its metric listens to."""
    if not _list_parts(values) and not set(wrong) & set(_PARTS):
        yield _refuse_nothing()
    elif "metric" in values:
        yield from _check_parts(values["metric"], _list_parts(values), [])


def _list_parts(values: Values) -> dict[str, float]:
    return {part: values[part] for part in _PARTS if values.get(part) is not None}


def _refuse_nothing() -> Misfit:
    fix = "Write one part or both: `relative: 8%`, and `absolute` in the metric's unit."
    return Misfit(problem="names neither `relative` nor `absolute`, and so changes nothing", fix=fix)


def _check_parts(metric: Metric, parts: Mapping[str, float], path: list[str]) -> Iterator[Misfit]:
    """Refuse parts that the metric's family does not look at: they would do nothing, unnoticed."""
    family = SPECS[metric].family
    if parts and family is Family.EXACT:
        yield _refuse_counter(metric, path)
    if parts.get("relative") and family is Family.LOG2:
        problem = f"{metric} has no relative part: its changes are differences of log2 units"
        fix = f"Write `absolute` alone; the default is {SPECS[metric].threshold.absolute:g}."
        yield Misfit(problem=problem, fix=fix, path=[".relative", *path])


def _refuse_counter(metric: Metric, path: list[str]) -> Misfit:
    if SPECS[metric].role is Role.EXPLAINS:
        problem = f"{metric} has no threshold: it only explains what other metrics show, and never decides"
        return Misfit(problem=problem, fix="Remove it.", path=path)
    problem = f"{metric} has no threshold: any change of this counter counts"
    fix = "Remove it; accept a known change with `compile-gate baseline accept`, or use `quarantine`."
    return Misfit(problem=problem, fix=fix, path=path)


def check_limit(values: Values, wrong: Collection[str]) -> Iterator[Misfit]:
    """A limit is one bound, on the side on which the metric is worse."""
    given = [part for part in _BOUNDS if values.get(part) is not None]
    if set(wrong) & {"metric", *_BOUNDS} or "metric" not in values:
        return
    metric, right = values["metric"], _BOUNDS[SPECS[values["metric"]].higher_is_better]
    fix = f"Write `{right}` alone, in the metric's unit ({SPECS[metric].unit})."
    if not given:
        yield Misfit(problem="names neither `at_most` nor `at_least`, and so limits nothing", fix=fix)
    for part in given:
        if part != right:
            told = "more" if right == "at_least" else "less"
            problem = f"{metric} is better with {told}: `{part}` would refuse what is good"
            yield Misfit(problem=problem, fix=fix, path=[f".{part}"])


def check_gate_file(values: Values, wrong: Collection[str]) -> Iterator[Misfit]:
    """Thresholds and quarantines must fit their metrics, and a case cannot get more trials than the most."""
    yield from _check_quarantine(values, wrong)
    for metric, entry in values.get("thresholds", {}).items():
        parts = {part: getattr(entry, part) for part in _PARTS}
        yield from _check_parts(metric, _list_parts(parts), [f".{metric}", ".thresholds"])
    trials, most = values.get("trials", DEFAULT_TRIALS), values.get("max_trials", DEFAULT_MAX_TRIALS)
    if trials > most and "max_trials" not in wrong:
        problem = f"every case gets {trials} trials, and max_trials is only {most}"
        fix = f"Write `max_trials: {trials}` or more, or fewer trials."
        yield Misfit(problem=problem, fix=fix, path=[".max_trials" if "max_trials" in values else ".trials"])


def _check_quarantine(values: Values, wrong: Collection[str]) -> Iterator[Misfit]:
    """What never decides needs no quarantine; what has a limit decides."""
    if "limits" in wrong:
        return
    limited = [entry.metric for entry in values.get("limits", ())]
    for index, entry in enumerate(values.get("quarantine", ())):
        if entry.metric is not None and not can_decide(entry.metric, limited):
            problem = f"{entry.metric} never decides"
            fix = "There is nothing to keep from deciding: remove the entry."
            yield Misfit(problem=problem, fix=fix, path=[".metric", f"[{index}]", ".quarantine"])


def can_decide(metric: Metric, limited: Collection[Metric]) -> bool:
    """Whether a metric can fail a check: by its role, or since gate.yml has a limit for it."""
    return SPECS[metric].role is Role.DECIDES or metric in limited


def check_acceptance(values: Values, wrong: Collection[str]) -> Iterator[Misfit]:
    """An allowance is in the metric's unit. Which metrics can fail is known with gate.yml's limits alone."""
    del wrong
    if "metric" in values and "allowance" in values:
        yield from check_allowance(values["metric"], values["allowance"])


def check_allowance(metric: Metric, written: float | str) -> Iterator[Misfit]:
    """A percentage for what is compared by ratio, a plain number for counters and drift."""
    spec = SPECS[metric]
    if not spec.is_ratio and isinstance(written, str):
        problem = f"{written} does not fit {metric}, which is not compared by ratio"
        yield _refuse_allowance(problem, f"Write a plain number: the unit is {spec.unit}.")
    elif spec.family is Family.EXACT and not isinstance(written, str) and not float(written).is_integer():
        problem = f"{metric} is a count: it cannot get worse by {written:g}"
        yield _refuse_allowance(problem, f"Write a whole number, {math.ceil(written)} or more.")
    if not read_amount(written):
        example = {Family.EXACT: "1", Family.LOG2: "0.5"}.get(spec.family, "8%")
        problem = f"{written if isinstance(written, str) else 0} accepts no change at all"
        yield _refuse_allowance(problem, f"Write how much worse it may be, for example {example}.")
    if spec.is_ratio and isinstance(written, str) and read_amount(written) > MOST_ALLOWED:
        problem = f"{written} is more than {MOST_ALLOWED:.0%}"
        fix = "Record new baselines, or put the case into quarantine in gate.yml."
        yield _refuse_allowance(problem, fix)
    if spec.is_ratio and not isinstance(written, str) and written >= 1:
        problem = f"{written:g} would allow {written:.0%}"
        yield _refuse_allowance(problem, f"Write {written:g}% or {written / 100:g}.")


def _refuse_allowance(problem: str, fix: str) -> Misfit:
    return Misfit(problem=problem, fix=fix, path=[".allowance"])
