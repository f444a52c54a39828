"""A verdict as records of PyTorch's benchmark database (schema v3), for its HUD.

Its wiki (How-to-integrate-with-PyTorch-OSS-benchmark-database) defines them; the uploader adds run and
runner.
"""

import json

from gate.metrics import SPECS
from gate.records.verdict import Verdict
from gate.report.clean import clean_line


def render_benchmark(verdict: Verdict) -> str:
    cases = {case.id: case for case in verdict.cases}
    trials = {evidence.case_id: evidence.after.values for evidence in verdict.evidence}
    environment, provenance = verdict.environment, verdict.provenance
    places = {"repo": provenance.repository, "head_branch": provenance.branch, "head_sha": provenance.commit}
    device = {"device": environment.device_kind, "arch": environment.device_model or environment.cpu}
    records = []
    for comparison in verdict.comparisons:
        if comparison.candidate is None or (case := cases.get(comparison.case_id)) is None:
            continue
        values = trials.get(case.id, {}).get(comparison.metric) or (comparison.candidate.centre,)
        status = {"status": comparison.status.value, "unit": SPECS[comparison.metric].unit.value}
        before = {"target_value": comparison.baseline.centre} if comparison.baseline else {}
        benchmark = {"name": "compile-gate", "mode": case.task.value, "dtype": case.dtype.value}
        record = {
            **{name: clean_line(text) for name, text in places.items() if text},
            "benchmark": {**benchmark, "extra_info": {**device, "compile": "true"}},
            "model": {"name": case.model, "backend": case.backend, "extra_info": {"case": case.id}},
            "metric": {
                "name": comparison.metric.value,
                "benchmark_values": values,
                **before,
                "extra_info": status,
            },
            "dependencies": {"torch": {"repo": "pytorch/pytorch", "version": environment.torch}},
        }
        records.append(record)
    return f"{json.dumps(records, indent=1, allow_nan=False)}\n"
