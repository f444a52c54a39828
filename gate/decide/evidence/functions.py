"""How many Python calls a compile makes within each function of the compiler, before and of head."""

from collections.abc import Mapping

from gate.decide.evidence.gather import Evidence
from gate.records.cases import Metric
from gate.records.run import Called

_MOST_KEPT, _LEAST_GROWTH = 40, 0.001  # of all calls: two compiles of one program differ by less
_MOST_SHOWN = 8  # of the functions that changed, in a table and a picture

Functions = Mapping[str, Called]
ABSENT = Called(calls=0, within=0)


def count_growth(before: Functions, after: Functions, name: str) -> int:
    return after.get(name, ABSENT).within - before.get(name, ABSENT).within


def keep_changed(before: Functions, after: Functions) -> tuple[Functions, Functions]:
    """Keep the outermost function, and those within which most was added.

    All of them are twenty times what else is stored of a trial.
    """
    if not (before and after):
        return {}, {}
    outermost = max(after, key=lambda name: after[name].within)
    least = _LEAST_GROWTH * after[outermost].within
    grown = {name: abs(count_growth(before, after, name)) for name in {*before, *after}}
    changed = [name for name in sorted(grown, key=lambda name: (-grown[name], name)) if grown[name] >= least]
    kept = {outermost, *changed[:_MOST_KEPT]}
    sides = [{name: side[name] for name in side if name in kept} for side in (before, after)]
    return sides[0], sides[1]


def get_functions(evidence: Evidence) -> tuple[Functions, Functions]:
    """Before, and of the last trial that has them; empty where one side has none."""
    baseline = evidence.find_baseline(Metric.COMPILE_CALLS)
    before = baseline.functions if baseline else {}
    after = next((trial.functions for trial in reversed(evidence.trials) if trial.functions), {})
    return (before, after) if before and after else ({}, {})


def list_shown(before: Functions, after: Functions) -> list[dict[str, int]]:
    """The calls within the functions that changed most, of each side."""
    grown = {name: abs(count_growth(before, after, name)) for name in {*before, *after}}
    ordered = sorted(grown, key=lambda name: (-grown[name], -after.get(name, ABSENT).within, name))
    shown = [name for name in ordered if grown[name]][:_MOST_SHOWN]
    return [{name: side[name].within for name in shown if name in side} for side in (before, after)]
