"""The whole suite in the field's figures: geometric means by task, mode and family; modes; scopes.

Nothing here decides anything. A mean is of plain calls under Inductor, so that a case of another kind, or
of a backend that generates no code, does not stand for a model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean

from gate.decide.evidence.values import compute_break_even, find_break_even
from gate.kinds import find_family
from gate.metrics import SPECS
from gate.records import DEFAULT_BACKEND, Case, Comparison, Kind, Metric, Mode
from gate.records.cases import group_by
from gate.records.verdict import ModeRow, ScopeRow, SuiteRow, SuiteSummary

Values = Mapping[Metric, float]
_PARTS = SPECS[Metric.BREAK_EVEN_CALLS].parts


def summarize_suite(cases: Iterable[Case], comparisons: Iterable[Comparison]) -> SuiteSummary:
    """Summarize what the candidate measured; cases without a speedup count nowhere."""
    values: dict[str, dict[Metric, float]] = {}
    for one in comparisons:
        if one.candidate is not None:
            values.setdefault(one.case_id, {})[one.metric] = one.candidate.centre
    compiled = [
        case
        for case in cases
        if case.backend == DEFAULT_BACKEND and Metric.WARM_SPEEDUP in values.get(case.id, {})
    ]
    known = [case for case in compiled if case.kind is Kind.CALL]
    return SuiteSummary(
        rows=_list_rows(known, values),
        modes=_list_modes(known, values),
        scopes=_list_scopes(compiled, values),
    )


def compute_geometric_mean(values: Sequence[float]) -> float | None:
    """Geometric mean of the positive values; ``None`` where there is none."""
    positive = [value for value in values if value > 0]
    return geometric_mean(positive) if positive else None


def _list_rows(cases: Iterable[Case], values: Mapping[str, Values]) -> tuple[SuiteRow, ...]:
    rows = []
    for (task, mode), own in group_by(cases, lambda case: (case.task, case.mode)).items():
        for family, members in (("", own), *group_by(own, find_family).items()):
            blank = SuiteRow(task=task, mode=mode, family=family, cases=len(members))
            rows.append(_fill_row(blank, [values[case.id] for case in members]))
    return tuple(rows)


def _fill_row(blank: SuiteRow, members: Sequence[Values]) -> SuiteRow:
    paid = [find_break_even(one) for one in members if all(part in one for part in _PARTS)]
    return replace(
        blank,
        speedup=_average(members, Metric.WARM_SPEEDUP),
        cold_compile_s=_average(members, Metric.COLD_COMPILE_TIME),
        warm_compile_s=_average(members, Metric.WARM_COMPILE_TIME),
        memory_ratio=_average(members, Metric.MEMORY_RATIO),
        break_even_calls=compute_geometric_mean([calls for calls in paid if calls is not None]),
        never_paid=sum(calls is None for calls in paid),
    )


def _average(members: Sequence[Values], metric: Metric) -> float | None:
    return compute_geometric_mean([one[metric] for one in members if metric in one])


def _list_modes(cases: Iterable[Case], values: Mapping[str, Values]) -> tuple[ModeRow, ...]:
    whole = (case for case in cases if all(part in values[case.id] for part in _PARTS))
    groups = group_by(whole, lambda case: _name_workload(replace(case, mode=Mode.DEFAULT)))
    return tuple(
        _make_mode_row(case, group, values) for group in groups.values() if len(group) > 1 for case in group
    )


def _name_workload(case: Case) -> str:
    """Name what is run, without what is said of it beside that: what it needs, how long it takes."""
    bare = replace(
        case, id="", tags=(), expected_s=0.0, gpu_memory_gib=0.0, needs=(), definition="", is_removed=False
    )
    return repr(bare)


def _make_mode_row(case: Case, group: Sequence[Case], values: Mapping[str, Values]) -> ModeRow:
    own = values[case.id]
    compile_s, compiled_s = own[Metric.COLD_COMPILE_TIME], own[Metric.COMPILED_LATENCY]
    default = next((one for one in group if one.mode is Mode.DEFAULT), None)
    row = ModeRow(
        case_id=case.id,
        default_id=default.id if default else "",
        cold_compile_s=max(compile_s, 0.0),
        compiled_s=compiled_s,
        break_even_calls=find_break_even(own),
    )
    if default is None or default is case:
        return row
    base = values[default.id]
    more_s = compile_s - base[Metric.COLD_COMPILE_TIME]
    over = compute_break_even(more_s, base[Metric.COMPILED_LATENCY], compiled_s)
    return replace(row, over_default_calls=over)


def _list_scopes(cases: Sequence[Case], values: Mapping[str, Values]) -> tuple[ScopeRow, ...]:
    names = {case.id: _name_workload(replace(case, kind=Kind.CALL, settings={})) for case in cases}
    wholes = {
        names[case.id]: case
        for case in cases
        if case.kind is Kind.CALL and values[case.id].get(Metric.COLD_COMPILE_TIME, 0.0) > 0
    }
    parts = (one for one in cases if one.kind is Kind.SCOPE and Metric.COLD_COMPILE_TIME in values[one.id])
    groups = group_by(parts, lambda case: names[case.id])
    return tuple(
        _make_scope_row(case, whole.id, values)
        for name, whole in wholes.items()
        if name in groups
        for case in (whole, *groups[name])
    )


def _make_scope_row(case: Case, whole_id: str, values: Mapping[str, Values]) -> ScopeRow:
    own_s = max(values[case.id][Metric.COLD_COMPILE_TIME], 0.0)
    return ScopeRow(
        case_id=case.id,
        whole_id=whole_id,
        cold_compile_s=own_s,
        cold_ratio=own_s / values[whole_id][Metric.COLD_COMPILE_TIME],
        speedup=values[case.id][Metric.WARM_SPEEDUP],
    )
