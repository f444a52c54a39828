"""Records that tests make: what a test does not name is that of a plain, finished run on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gate.records.cases import Case, Metric
from gate.records.run import (
    BASE_ARM,
    BaseArm,
    Baseline,
    CaseFailure,
    FailureKind,
    Pairing,
    Provenance,
    Run,
    Trial,
)
from gate.records.verdict import Change, Comparison, MachineShift, Reason, Status, Verdict
from tests.hosts import CPU_HOST
from tests.told import make_raised

SAME: Mapping[str, Any] = MappingProxyType({})


def make_trials(case_id: str, samples: Sequence[Mapping[Metric, float]], **fields: Any) -> tuple[Trial, ...]:
    """Make trials of a case, numbered from 1, each with one sample of its metrics."""
    rows = [{metric: (value,) for metric, value in one.items()} for one in samples]
    return tuple(
        Trial(case_id=case_id, index=index, samples=row, **fields) for index, row in enumerate(rows, start=1)
    )


def make_pair(
    case_id: str,
    index: int = 1,
    base: Mapping[str, Any] = SAME,
    head: Mapping[str, Any] = SAME,
    **fields: Any,
) -> tuple[Trial, Trial]:
    """Make a pair, in turns; ``base`` and ``head`` are the fields of one arm."""
    shared = {"case_id": case_id, "index": index, "pairing": Pairing.TURNS, **fields}
    return Trial(**shared, arm=BASE_ARM, **base), Trial(**shared, **head)


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
        told = {name: made[name] for name in ("environment", "provenance")}
        made["base"] = BaseArm(label="main", cases=base, **told)
    return Run(trials=trials, **made)


def make_row(case_id: str, metric: Metric, status: Status = Status.REGRESSED, **fields: Any) -> Comparison:
    """Make a comparison that decides, beyond the bar."""
    made = {"reason": Reason.BEYOND_BAR, "decides": True, **fields}
    return Comparison(case_id=case_id, metric=metric, status=status, **made)


def make_change(centre: float, spread: float = 0.0, detectable: float = 0.03) -> Change:
    """Make a change that is known within ``spread`` to both sides."""
    return Change(centre=centre, low=centre - spread, high=centre + spread, detectable=detectable)


def make_failure(case_id: str, message: str = "SIGSEGV", **fields: Any) -> CaseFailure:
    """Make a failure of the first trial's compile, a crash unless it is of another ``kind``."""
    made = {"trial": 1, "kind": FailureKind.CRASH, "stage": "compile", **fields}
    return CaseFailure(case_id=case_id, fact=make_raised(message), **made)


def make_baseline(case_id: str, trials: Mapping[Metric, tuple[float, ...]], **fields: Any) -> Baseline:
    """Make a baseline of these samples."""
    made = {"definition": "d1", "environment": CPU_HOST, "provenance": Provenance(), **fields}
    return Baseline(case_id=case_id, trials=trials, **made)


def make_verdict(*comparisons: Comparison, **fields: Any) -> Verdict:
    """Make a verdict of these comparisons, with nothing to say of them; its ``outcome`` has to be named."""
    empty: dict[str, Any] = dict.fromkeys(
        ("headline", "cases", "failures", "causes", "next_steps", "notes"), ()
    )
    host = {"machine": MachineShift(), "environment": CPU_HOST, "provenance": Provenance()}
    return Verdict(comparisons=comparisons, **{**empty, **host, **fields})
