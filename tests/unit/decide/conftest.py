"""Runs and baselines by hand: the values of each metric, one per trial, and little else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from gate.decide import decide_verdict
from gate.metrics import SPECS
from gate.records import (
    Baseline,
    Case,
    CaseFailure,
    CodeIdentity,
    Comparison,
    Conditions,
    DType,
    Environment,
    GraphBreak,
    Metric,
    Policy,
    Provenance,
    Run,
    Trial,
    Verdict,
)

Values = Mapping[Metric, Sequence[float]]

HOST = Environment(
    device_kind="cpu",
    device_model="AMD EPYC 7B13",
    device_uuid="",
    driver="",
    clocks="",
    cpu="AMD EPYC 7B13",
    cores=2,
    threads=2,
    isa="avx2",
    torch="2.13.0+cpu",
    triton="",
    cuda="",
    python="3.11",
    compiler="g++ 12.2.0",
)
TODAY = "2026-03-01"
CREATED = "2026-02-20T10:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Situation:
    """One case: what is stored, what came back, and the circumstances of both."""

    case_id: str = "mlp/inference-float32-smoke-default"
    dtype: DType = DType.FLOAT32
    before: Values | None = None  # None: no baseline
    after: Values = field(default_factory=dict)
    canaries_before: Mapping[str, Sequence[float]] = field(default_factory=dict)
    canaries_after: Mapping[str, Sequence[float]] = field(default_factory=dict)
    code_before: CodeIdentity = field(default_factory=lambda: CodeIdentity(digest=""))
    code_after: CodeIdentity = field(default_factory=lambda: CodeIdentity(digest=""))
    breaks_before: tuple[GraphBreak, ...] = ()
    breaks_after: tuple[GraphBreak, ...] = ()
    workload_before: Mapping[str, str] = field(default_factory=dict)
    workload_after: Mapping[str, str] = field(default_factory=dict)
    recompile_reasons: tuple[str, ...] = ()
    phases_s: Mapping[str, float] = field(default_factory=dict)
    phases_before_s: Mapping[str, float] = field(default_factory=dict)
    throttled: tuple[str, ...] = ()
    definition_before: str = "d1"
    definition_after: str = "d1"
    host: Environment = HOST  # of the baseline
    created: str = CREATED
    failures: tuple[CaseFailure, ...] = ()


def make_case(one: Situation) -> Case:
    return Case(
        id=one.case_id,
        model=one.case_id.split("/")[0],
        factory="models:build",
        dtype=one.dtype,
        definition=one.definition_after,
    )


def make_trials(one: Situation) -> tuple[Trial, ...]:
    """As many trials as the longest list of values has."""
    count = max((len(values) for values in one.after.values()), default=0)
    return tuple(_make_trial(one, index) for index in range(count))


def _make_trial(one: Situation, index: int) -> Trial:
    return Trial(
        case_id=one.case_id,
        index=index,
        samples={metric: (values[index],) for metric, values in one.after.items() if index < len(values)},
        identity=one.code_after,
        workload=one.workload_after,
        graph_breaks=one.breaks_after,
        recompile_reasons=one.recompile_reasons,
        phases_s=one.phases_s,
        conditions=Conditions(
            canaries_s={name: values[index] for name, values in one.canaries_after.items()},
            throttled=one.throttled,
        ),
    )


def make_baseline(one: Situation) -> Baseline:
    """The stored values, with the speedup that follows from both latencies."""
    values = {metric: tuple(stored) for metric, stored in (one.before or {}).items()}
    if {Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY} <= values.keys():
        pairs = zip(values[Metric.EAGER_LATENCY], values[Metric.COMPILED_LATENCY], strict=True)
        values.setdefault(Metric.WARM_SPEEDUP, tuple(eager / compiled for eager, compiled in pairs))
    return Baseline(
        case_id=one.case_id,
        definition=one.definition_before,
        environment=one.host,
        provenance=Provenance(commit="abc", created=one.created),
        trials=values,
        identity=one.code_before,
        workload=one.workload_before,
        graph_breaks=one.breaks_before,
        canaries_s={name: tuple(stored) for name, stored in one.canaries_before.items()},
        phases_s=one.phases_before_s,
    )


def make_policy(**changes: object) -> Policy:
    thresholds = {metric: spec.threshold for metric, spec in SPECS.items()}
    return replace(Policy(thresholds=thresholds, today=TODAY), **changes)  # type: ignore[arg-type] # the test's


def decide(*situations: Situation, environment: Environment = HOST, **policy: object) -> Verdict:
    run = Run(
        cases=tuple(make_case(one) for one in situations),
        environment=environment,
        provenance=Provenance(commit="def"),
        trials=tuple(trial for one in situations for trial in make_trials(one)),
        failures=tuple(failure for one in situations for failure in one.failures),
        finished=True,
    )
    baselines = tuple(make_baseline(one) for one in situations if one.before is not None)
    return decide_verdict(run, baselines, make_policy(**policy))


def find_comparison(verdict: Verdict, metric: Metric, case_id: str = "") -> Comparison:
    """The only comparison of a metric (of a case)."""
    (found,) = (one for one in verdict.comparisons if one.metric is metric and case_id in {"", one.case_id})
    return found


@pytest.fixture
def situation() -> Callable[..., Situation]:
    return Situation


@pytest.fixture
def judge() -> Callable[..., Verdict]:
    return decide


@pytest.fixture
def find() -> Callable[..., Comparison]:
    return find_comparison


@pytest.fixture
def host() -> Environment:
    return HOST
