"""A verdict as records of PyTorch's benchmark database (schema v3), as its HUD takes them.

https://github.com/pytorch/pytorch/wiki/How-to-integrate-with-PyTorch-OSS-benchmark-database: the action that
uploads them adds the run and the runner. ``target_value`` is the value before, status and unit are extra.
"""

import json

from gate.metrics import SPECS
from gate.records.cases import Case
from gate.records.verdict import Comparison, Verdict
from gate.report.clean import clean_line


def render_benchmark(verdict: Verdict) -> str:
    """Return a JSON list with a record for each value of each case."""
    cases = {case.id: case for case in verdict.cases}
    values = {one.case_id: one.after.values for one in verdict.evidence}
    records = [
        _make_record(verdict, cases[one.case_id], one, values.get(one.case_id, {}).get(one.metric, ()))
        for one in verdict.comparisons
        if one.candidate and one.case_id in cases
    ]
    return f"{json.dumps(records, indent=1, allow_nan=False)}\n"


def _make_record(
    verdict: Verdict, case: Case, one: Comparison, values: tuple[float, ...]
) -> dict[str, object]:
    environment, provenance = verdict.environment, verdict.provenance
    places = {"repo": provenance.repository, "head_branch": provenance.branch, "head_sha": provenance.commit}
    metric: dict[str, object] = {
        "name": one.metric.value,
        "benchmark_values": values or [one.candidate.centre if one.candidate else 0.0],
        "extra_info": {"status": one.status.value, "unit": SPECS[one.metric].unit.value},
    }
    if one.baseline:
        metric["target_value"] = one.baseline.centre
    return {
        **{name: clean_line(text) for name, text in places.items() if text},
        "benchmark": {
            "name": "compile-gate",
            "mode": case.task.value,
            "dtype": case.dtype.value,
            "extra_info": {
                "device": environment.device_kind,
                "arch": clean_line(environment.device_model or environment.cpu),
                "compile": "true",
                "outcome": verdict.outcome.value,
            },
        },
        "model": {
            "name": clean_line(case.model),
            "type": case.kind.value,
            "backend": clean_line(case.backend),
            "extra_info": {"case": clean_line(case.id)},
        },
        "metric": metric,
        "dependencies": {"torch": {"repo": "pytorch/pytorch", "version": clean_line(environment.torch)}},
    }
