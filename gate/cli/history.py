"""A line in the history for a run that was measured."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from gate.decide.evidence.disturbed import set_aside_disturbed
from gate.decide.evidence.values import collect_values
from gate.decide.stats import estimate_metric
from gate.errors import GateError
from gate.fingerprint import compute_machine_id
from gate.metrics import Role, select_metrics
from gate.project.config import Config
from gate.records import Environment, Estimate, Metric, Pairing, Provenance, Run, Verdict
from gate.records.cases import group_cases
from gate.store.history import Figures, HistoryHead, HistoryKind, append_line, make_history_line
from gate.units import count_noun

_KEPT = select_metrics(lambda spec: spec.role is not Role.EXPLAINS)


def find_history(options: Namespace, config: Config) -> Path | None:
    """Where lines go: ``--history``, else the key of gate.yml; ``None`` where neither is given."""
    return Path(options.history) if options.history else config.history


def append_run(options: Namespace, config: Config, run: Run, kind: HistoryKind) -> None:
    """Append the values of head's own trials, without what a verdict sets aside of disturbed ones.

    Where that fails, say so and go on: the verdict stands.
    """
    if not (path := find_history(options, config)):
        return
    trials = set_aside_disturbed(run).trials
    alone = group_cases(trial for trial in trials if trial.pairing is Pairing.ALONE)
    cases = {}
    for case in run.cases:
        values = collect_values(alone.get(case.id, ()))
        figures = {
            metric: _write_estimate(estimate_metric(metric, found))
            for metric, found in values.items()
            if metric in _KEPT
        }
        if figures:
            cases[case.id] = figures
    _append(path, _make_head(kind, run.environment, run.provenance), cases)


def record_creep(options: Namespace, config: Config, verdict: Verdict) -> None:
    """Append the changes since the release anchor, as measured in pairs; + is worse."""
    if not (path := find_history(options, config)):
        return
    cases: dict[str, dict[Metric, Figures]] = {}
    for row in verdict.comparisons:
        if row.change is not None and row.metric in _KEPT:
            change = (row.change.centre, row.change.low, row.change.high)
            cases.setdefault(row.case_id, {})[row.metric] = change
    head = _make_head(HistoryKind.ANCHOR, verdict.environment, verdict.provenance)
    anchor = verdict.base.commit if verdict.base else ""
    _append(path, replace(head, anchor=anchor), cases)


def _append(path: Path, head: HistoryHead, cases: dict[str, dict[Metric, Figures]]) -> None:
    try:
        append_line(path, make_history_line(head, cases))
    except GateError as error:
        print(f"warning: {error.what}: this run is not in the history. {error.fix}", file=sys.stderr)


def _make_head(kind: HistoryKind, environment: Environment, provenance: Provenance) -> HistoryHead:
    model = environment.device_model or environment.cpu
    return HistoryHead(
        id="",
        kind=kind,
        created=provenance.created or datetime.now(UTC).isoformat(timespec="seconds"),
        machine=f"{environment.device_kind}: {model}, {count_noun(environment.threads, 'thread')}",
        host=compute_machine_id(environment),
        commit=provenance.commit,
        run_url=provenance.run_url,
        torch=environment.torch,
        driver=environment.driver,
    )


def _write_estimate(estimate: Estimate) -> Figures:
    if estimate.low is None or estimate.high is None:
        return (estimate.centre,)
    return (estimate.centre, estimate.low, estimate.high)
