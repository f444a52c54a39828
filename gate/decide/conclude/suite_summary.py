"""Means over the cases of a verdict: by task and mode, and what a mode or a scope takes to pay."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from statistics import geometric_mean

from gate.decide.evidence.values import compute_break_even, compute_paying_calls
from gate.kinds import name_family
from gate.metrics import SPECS
from gate.records.cases import DEFAULT_BACKEND, Case, Kind, Metric, Mode, group_by
from gate.records.verdict import Comparison, ModeRow, ScopeRow, SuiteRow, SuiteSummary

_PARTS = SPECS[Metric.BREAK_EVEN_CALLS].parts

# What only describes a case, like its needs and expected time.
_DESCRIBING = {"id", "tags", "expected_s", "gpu_memory_gib", "needs", "definition", "is_removed"}
_WORKLOAD = tuple(field.name for field in fields(Case) if field.name not in _DESCRIBING)

Values = Mapping[Metric, float]


def summarize_suite(cases: Iterable[Case], comparisons: Iterable[Comparison]) -> SuiteSummary:
    """Means are of plain calls under Inductor: other kinds and backends do not represent a model."""
    values: dict[str, dict[Metric, float]] = {}
    for row in comparisons:
        if row.candidate is not None:
            values.setdefault(row.case_id, {})[row.metric] = row.candidate.centre
    compiled = [
        case
        for case in cases
        if case.backend == DEFAULT_BACKEND and Metric.WARM_SPEEDUP in values.get(case.id, {})
    ]
    calls = [case for case in compiled if case.kind is Kind.CALL]
    return SuiteSummary(
        rows=_list_rows(calls, values),
        modes=_list_modes(calls, values),
        scopes=_list_scopes(compiled, values),
    )


def compute_geometric_mean(values: Sequence[float]) -> float | None:
    positive = [value for value in values if value > 0]
    return geometric_mean(positive) if positive else None


def _list_rows(cases: Iterable[Case], values: Mapping[str, Values]) -> tuple[SuiteRow, ...]:
    rows = []
    for (task, mode), group in group_by(cases, lambda case: (case.task, case.mode)).items():
        for family, members in (("", group), *group_by(group, name_family).items()):
            members_values = [values[case.id] for case in members]
            paid = [
                compute_break_even(case_values)
                for case_values in members_values
                if all(part in case_values for part in _PARTS)
            ]
            row = SuiteRow(
                task=task,
                mode=mode,
                family=family,
                cases=len(members),
                speedup=_average(members_values, Metric.WARM_SPEEDUP),
                cold_compile_s=_average(members_values, Metric.COLD_COMPILE_TIME),
                warm_compile_s=_average(members_values, Metric.WARM_COMPILE_TIME),
                memory_ratio=_average(members_values, Metric.MEMORY_RATIO),
                break_even_calls=compute_geometric_mean([calls for calls in paid if calls is not None]),
                never_paid=sum(calls is None for calls in paid),
            )
            rows.append(row)
    return tuple(rows)


def _average(cases: Sequence[Values], metric: Metric) -> float | None:
    return compute_geometric_mean([case_values[metric] for case_values in cases if metric in case_values])


def _list_modes(cases: Iterable[Case], values: Mapping[str, Values]) -> tuple[ModeRow, ...]:
    whole = (case for case in cases if all(part in values[case.id] for part in _PARTS))
    groups = group_by(whole, lambda case: _name_workload(case, mode=Mode.DEFAULT))
    return tuple(
        _make_mode_row(case, group, values) for group in groups.values() if len(group) > 1 for case in group
    )


def _name_workload(case: Case, **changes: object) -> str:
    return repr([changes.get(name, getattr(case, name)) for name in _WORKLOAD])


def _make_mode_row(case: Case, group: Sequence[Case], values: Mapping[str, Values]) -> ModeRow:
    case_values = values[case.id]
    compile_s, compiled_s = case_values[Metric.COLD_COMPILE_TIME], case_values[Metric.COMPILED_LATENCY]
    default = next((candidate for candidate in group if candidate.mode is Mode.DEFAULT), None)
    row = ModeRow(
        case_id=case.id,
        default_id=default.id if default else "",
        cold_compile_s=max(compile_s, 0.0),
        compiled_s=compiled_s,
        break_even_calls=compute_break_even(case_values),
    )
    if default is None:
        return row
    base = values[default.id]
    more_s = compile_s - base[Metric.COLD_COMPILE_TIME]
    over = compute_paying_calls(more_s, base[Metric.COMPILED_LATENCY], compiled_s)
    return replace(row, over_default_calls=over)


def _list_scopes(cases: Sequence[Case], values: Mapping[str, Values]) -> tuple[ScopeRow, ...]:
    parts = [
        case for case in cases if case.kind is Kind.SCOPE and Metric.COLD_COMPILE_TIME in values[case.id]
    ]
    if not parts:
        return ()
    names = {case.id: _name_workload(case, kind=Kind.CALL, settings={}) for case in cases}
    wholes = {
        names[case.id]: case
        for case in cases
        if case.kind is Kind.CALL and values[case.id].get(Metric.COLD_COMPILE_TIME, 0.0) > 0
    }
    groups = group_by(parts, lambda case: names[case.id])
    return tuple(
        _make_scope_row(case, whole.id, values)
        for name, whole in wholes.items()
        if name in groups
        for case in (whole, *groups[name])
    )


def _make_scope_row(case: Case, whole_id: str, values: Mapping[str, Values]) -> ScopeRow:
    compile_s = max(values[case.id][Metric.COLD_COMPILE_TIME], 0.0)
    return ScopeRow(
        case_id=case.id,
        whole_id=whole_id,
        cold_compile_s=compile_s,
        cold_ratio=compile_s / values[whole_id][Metric.COLD_COMPILE_TIME],
        speedup=values[case.id][Metric.WARM_SPEEDUP],
    )
