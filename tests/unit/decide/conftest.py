"""Runs and baselines by hand: the values of each metric, one per trial, and little else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gate.decide.side_by_side import confirm_screening
from gate.decide.verdict import Screening, conclude_verdict, decide_verdict, screen_run
from gate.files.codec import check_verdict
from gate.metrics import SPECS
from gate.records.cases import Case, DType, Kind, Metric, Policy, Task
from gate.records.facts import Fact
from gate.records.run import (
    BaseArm,
    Baseline,
    CacheUse,
    CaseFailure,
    CodeIdentity,
    Conditions,
    Environment,
    GraphBreak,
    Pairing,
    Provenance,
    Recompile,
    Run,
    Trial,
    Worst,
)
from gate.records.verdict import Comparison, Verdict
from tests.hosts import CPU_HOST

from .one_case import CASE, NINE, STORED, Confirm, Screen

Values = Mapping[Metric, Sequence[float]]

TODAY = "2026-03-01"
CREATED = "2026-02-20T10:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Situation:
    """One case: what is stored, what came back, and the circumstances of both."""

    case_id: str = "mlp/inference-float32-smoke-default"
    dtype: DType = DType.FLOAT32
    task: Task = Task.INFERENCE
    kind: Kind = Kind.CALL
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
    recompiles_before: tuple[Recompile, ...] = ()
    recompile_reasons: tuple[Recompile, ...] = ()
    caches_before: Mapping[str, CacheUse] = field(default_factory=dict)
    caches_after: Mapping[str, CacheUse] = field(default_factory=dict)
    phases_s: Mapping[str, float] = field(default_factory=dict)
    phases_before_s: Mapping[str, float] = field(default_factory=dict)
    kernels_s: Mapping[str, float] = field(default_factory=dict)
    kernels_before_s: Mapping[str, float] = field(default_factory=dict)
    changed_imports: tuple[str, ...] | None = None
    warnings: tuple[Fact, ...] = ()
    worst: Mapping[Metric, Worst] = field(default_factory=dict)
    drift_before: int = 1  # the definition of drift
    drift_after: int = 1
    definition_before: str = "d1"
    definition_after: str = "d1"
    host: Environment = CPU_HOST  # of the baseline
    created: str = CREATED
    failures: tuple[CaseFailure, ...] = ()


def make_case(one: Situation) -> Case:
    return Case(
        id=one.case_id,
        model=one.case_id.split("/")[0],
        factory="models:build",
        dtype=one.dtype,
        task=one.task,
        kind=one.kind,
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
        caches=one.caches_after,
        phases_s=one.phases_s,
        kernels_s=one.kernels_s,
        changed_imports=one.changed_imports,
        warnings=one.warnings,
        worst=one.worst,
        drift_definition=one.drift_after,
        conditions=Conditions(
            canaries_s={name: values[index] for name, values in one.canaries_after.items()},
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
        recompile_reasons=one.recompiles_before,
        caches=one.caches_before,
        canaries_s={name: tuple(stored) for name, stored in one.canaries_before.items()},
        phases_s=one.phases_before_s,
        kernels_s=one.kernels_before_s,
        drift_definition=one.drift_before,
    )


def make_policy(**changes: object) -> Policy:
    thresholds = {metric: spec.threshold for metric, spec in SPECS.items()}
    return replace(Policy(thresholds=thresholds, today=TODAY), **changes)  # type: ignore[arg-type] # the test's


def make_run(*situations: Situation, environment: Environment = CPU_HOST) -> Run:
    return Run(
        cases=tuple(make_case(one) for one in situations),
        environment=environment,
        provenance=Provenance(commit="def"),
        trials=tuple(trial for one in situations for trial in make_trials(one)),
        failures=tuple(failure for one in situations for failure in one.failures),
        finished=True,
    )


def make_baselines(*situations: Situation) -> tuple[Baseline, ...]:
    return tuple(make_baseline(one) for one in situations if one.before is not None)


def decide(*situations: Situation, environment: Environment = CPU_HOST, **policy: object) -> Verdict:
    run = make_run(*situations, environment=environment)
    verdict = decide_verdict(run, make_baselines(*situations), make_policy(**policy))
    check_verdict(verdict, "decided")  # what could not be read again would be told once, and lost
    return verdict


LATENCIES = {Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY}
NOISY = {Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME}
TYPICAL = {
    Metric.EAGER_LATENCY: 0.020,
    Metric.COMPILED_LATENCY: 0.010,
    Metric.COLD_COMPILE_TIME: 10.0,
    Metric.WARM_COMPILE_TIME: 3.0,
    Metric.COMPILE_CALLS: 4e6,
    Metric.GRAPH_BREAKS: 0.0,
    Metric.PEAK_MEMORY: 1e8,
}
# Of the pairs' changes: they sum to nothing and spread by about 1 %.
SPREAD = (0.0, 0.01, -0.01, 0.005, -0.005, 0.012, -0.012, 0.0, 0.008, -0.008, 0.0, 0.0, 0.01, -0.01, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class PairedCase:
    """One case in pairs: how many, what base has instead of the typical values, and head of the base's."""

    pairs: int = 6
    case_id: str = "mlp/x"
    base: Mapping[Metric, float] = field(default_factory=dict)
    head: Mapping[Metric, float] = field(default_factory=dict)
    full: int | None = None  # so many of the pairs measure everything; None: all
    pairing: Pairing = Pairing.LIVE
    spread: Sequence[float] = SPREAD
    definition: str = "d1"
    base_definition: str = "d1"
    failures: tuple[CaseFailure, ...] = ()
    alone: Mapping[Metric, Sequence[float]] = field(default_factory=dict)
    identity: CodeIdentity = field(default_factory=lambda: CodeIdentity(digest=""))  # of the trials alone


def make_pair_trials(paired_case: PairedCase) -> list[Trial]:
    trials = []
    for index in range(1, paired_case.pairs + 1):
        full = paired_case.full is None or index <= paired_case.full
        for arm in ("base", "head"):
            values = {**TYPICAL, **paired_case.base, **(paired_case.head if arm == "head" else {})}
            noise = math.exp(paired_case.spread[index - 1]) if arm == "head" else 1.0
            samples = {
                metric: (value * (noise if metric in NOISY else 1.0),)
                for metric, value in values.items()
                if full or metric in LATENCIES
            }
            trials.append(
                Trial(
                    case_id=paired_case.case_id,
                    index=index,
                    arm=arm,
                    pairing=paired_case.pairing,
                    samples=samples,
                )
            )
    return trials


def make_alone_trials(paired_case: PairedCase) -> list[Trial]:
    count = max((len(values) for values in paired_case.alone.values()), default=0)
    return [
        Trial(
            case_id=paired_case.case_id,
            index=i,
            samples={m: (values[i],) for m, values in paired_case.alone.items()},
            identity=paired_case.identity,
        )
        for i in range(count)
    ]


def pair_up(*paired_cases: PairedCase) -> Run:
    cases = [
        Case(id=one.case_id, model="mlp", factory="m:f", definition=one.definition) for one in paired_cases
    ]
    based = [
        replace(case, definition=one.base_definition)
        for case, one in zip(cases, paired_cases, strict=True)
        if one.base_definition
    ]
    return Run(
        cases=tuple(cases),
        environment=CPU_HOST,
        provenance=Provenance(commit="def"),
        trials=tuple(
            trial for one in paired_cases for trial in (*make_alone_trials(one), *make_pair_trials(one))
        ),
        failures=tuple(failure for one in paired_cases for failure in one.failures),
        finished=True,
        base=BaseArm(
            label="main (1a2b3c4)",
            environment=CPU_HOST,
            provenance=Provenance(commit="1a2b3c4"),
            cases=tuple(based),
        ),
    )


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
def screened() -> Callable[..., Screening]:
    """The screening of one situation."""

    def screen_one(**changes: Any) -> Screening:
        one = Situation(**changes)
        return screen_run(make_run(one), make_baselines(one), make_policy())

    return screen_one


@pytest.fixture
def find() -> Callable[..., Comparison]:
    return find_comparison


@pytest.fixture
def host() -> Environment:
    return CPU_HOST


@pytest.fixture
def paired_case() -> Callable[..., PairedCase]:
    return PairedCase


@pytest.fixture
def pair_run() -> Callable[..., Run]:
    return pair_up


@pytest.fixture
def policy() -> Policy:
    return make_policy()


@pytest.fixture
def stored() -> Baseline:
    values = {metric: tuple(value * one for one in NINE) for metric, value in STORED.items()}
    return Baseline(
        case_id=CASE,
        definition="d1",
        environment=CPU_HOST,
        provenance=Provenance(commit="old"),
        trials={**values, Metric.WARM_SPEEDUP: (2.0,) * len(NINE)},
    )


@pytest.fixture
def unbroken(stored: Baseline) -> Baseline:
    """The stored values, and no graph break in any trial."""
    return replace(stored, trials={**stored.trials, Metric.GRAPH_BREAKS: (0.0,) * len(NINE)})


@pytest.fixture
def screen(policy: Policy, stored: Baseline) -> Screen:
    """The screening of one case against its stored values."""

    def run_screen(
        alone: Values, *, baselines: tuple[Baseline, ...] = (stored,), **changes: Any
    ) -> Screening:
        return screen_run(pair_up(PairedCase(alone=alone, **changes)), baselines, policy)

    return run_screen


@pytest.fixture
def confirm(policy: Policy, stored: Baseline) -> Confirm:
    """The verdict on one case that was screened and has its pairs."""

    def run_both(
        alone: Values,
        *,
        baselines: tuple[Baseline, ...] = (stored,),
        rules: Policy = policy,
        **changes: Any,
    ) -> Verdict:
        run = pair_up(PairedCase(alone=alone, **changes))
        screening = confirm_screening(screen_run(run, baselines, rules), run, rules)
        return conclude_verdict(run, screening, rules)

    return run_both
