"""A verdict as records of PyTorch's benchmark database (schema v3), as its HUD takes them.

Its wiki (How-to-integrate-with-PyTorch-OSS-benchmark-database) says what they are:
what uploads them adds the run and the runner.
"""

import json

from gate.metrics import SPECS
from gate.records.verdict import Verdict
from gate.report.clean import clean_line


def render_benchmark(verdict: Verdict) -> str:
    """Return a JSON list with a record for each metric of each case; ``target_value`` is the value before."""
    cases = {case.id: case for case in verdict.cases}
    trials = {one.case_id: one.after.values for one in verdict.evidence}
    environment, provenance = verdict.environment, verdict.provenance
    places = {"repo": provenance.repository, "head_branch": provenance.branch, "head_sha": provenance.commit}
    device = {"device": environment.device_kind, "arch": environment.device_model or environment.cpu}
    records = []
    for one in verdict.comparisons:
        if one.candidate is None or (case := cases.get(one.case_id)) is None:
            continue
        values = trials.get(case.id, {}).get(one.metric) or (one.candidate.centre,)
        status = {"status": one.status.value, "unit": SPECS[one.metric].unit.value}
        before = {"target_value": one.baseline.centre} if one.baseline else {}
        benchmark = {"name": "compile-gate", "mode": case.task.value, "dtype": case.dtype.value}
        record = {
            **{name: clean_line(text) for name, text in places.items() if text},
            "benchmark": {**benchmark, "extra_info": {**device, "compile": "true"}},
            "model": {"name": case.model, "backend": case.backend, "extra_info": {"case": case.id}},
            "metric": {"name": one.metric.value, "benchmark_values": values, **before, "extra_info": status},
            "dependencies": {"torch": {"repo": "pytorch/pytorch", "version": environment.torch}},
        }
        records.append(record)
    return f"{json.dumps(records, indent=1, allow_nan=False)}\n"
