"""What was judged, what was only measured, and what share of the change is the machine's; pure."""

from __future__ import annotations

from collections.abc import Sequence

from gate.metrics import SPECS
from gate.records import Comparison, MachineShift, Status, Verdict
from gate.records.targets import TARGET_KIND
from gate.report.words.terms import count_noun, name_metric
from gate.units import render_percent

# Not held against anything: the notes of the verdict say why.
_UNJUDGED = frozenset({Status.NEW, Status.NOT_COMPARABLE, Status.MISSING, Status.FAILED})


def list_scope(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Return labelled lines: what was judged, what only measured, and the machine's share."""
    deciding = [comparison for comparison in verdict.comparisons if comparison.decides]
    judged = [comparison for comparison in deciding if comparison.status not in _UNJUDGED]
    measured = [
        comparison for comparison in deciding if comparison.status in _UNJUDGED and comparison.candidate
    ]
    # Where everything was judged, names would only repeat the README's table; why something was only
    # measured, with its names, is in the verdict's notes.
    lines = [("judged", _describe_group(judged, named=bool(measured)))]
    if measured:
        lines.append(("measured", f"{_describe_group(measured, named=False)}, not judged"))
    if verdict.environment.device_kind == TARGET_KIND:  # nothing was timed
        return tuple(lines)
    return (*lines, ("machine", describe_machine(verdict.machine)))


def describe_machine(shift: MachineShift) -> str:
    """Say how much of any change in time is the machine's own."""
    parts = []
    if shift.known:
        parts.append(f"fixed test programs {render_percent(shift.canary)}")
    if shift.suite:
        parts.append(f"eager {render_percent(shift.suite)}")
    if not parts:
        return "cannot be separated out: no baseline from this machine"
    return f"{', '.join(parts)} since the baselines (+ is slower)"


def _describe_group(group: Sequence[Comparison], *, named: bool) -> str:
    """Say how many metrics of how many cases, and if asked, name the metrics in the table's order."""
    if not group:
        return "nothing"
    metrics = {comparison.metric for comparison in group}
    cases = {comparison.case_id for comparison in group}
    size = f"{count_noun(len(metrics), 'metric')} of {count_noun(len(cases), 'case')}"
    names = ", ".join(name_metric(metric) for metric in SPECS if metric in metrics)
    return f"{size}: {names}" if named else size
