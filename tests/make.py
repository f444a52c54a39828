"""Records that tests make: what a test does not name is that of a plain, finished run on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gate.records import BaseArm, Case, Metric, Provenance, Run, Trial
from tests.hosts import CPU_HOST


def make_trials(case_id: str, samples: Sequence[Mapping[Metric, float]], **fields: Any) -> tuple[Trial, ...]:
    """Make trials of a case, numbered from 1, each with one sample of its metrics."""
    rows = [{metric: (value,) for metric, value in one.items()} for one in samples]
    return tuple(
        Trial(case_id=case_id, index=index, samples=row, **fields) for index, row in enumerate(rows, start=1)
    )


def make_run(*trials: Trial, base: tuple[Case, ...] | None = None, **fields: Any) -> Run:
    """Make a run of ``trials`` and their cases, unless others are named; ``base``: the cases of its base."""
    ids = dict.fromkeys(trial.case_id for trial in trials)
    made: dict[str, Any] = {
        "cases": tuple(Case(id=name, model=name.partition("/")[0], definition="d1") for name in ids),
        "environment": CPU_HOST,
        "provenance": Provenance(),
        "finished": True,
        **fields,
    }
    if base is not None:
        made["base"] = BaseArm(
            label="main", environment=made["environment"], provenance=Provenance(), cases=base
        )
    return Run(trials=trials, **made)
