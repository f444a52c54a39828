"""Records for tests; what a test does not set is that of a finished run on a CPU."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from gate.decide.evidence.pairs import Paired
from gate.decide.judge.screening import Screening
from gate.decide.verdict import decide_verdict
from gate.files.record_checks import check_verdict
from gate.metrics import SPECS
from gate.records.cases import Acceptance, Case, DType, Kind, Metric, Policy, Task
from gate.records.facts import Disturbance, Fact
from gate.records.run import (
    BASE_ARM,
    CANDIDATE_ARM,
    BaseArm,
    Baseline,
    CacheUse,
    CaseFailure,
    CodeIdentity,
    Conditions,
    Environment,
    FailureKind,
    GraphBreak,
    Pairing,
    Provenance,
    Recompile,
    Run,
    Trial,
    Worst,
)
from gate.records.verdict import Change, Comparison, MachineShift, Reason, Status, Verdict
from tests.hosts import CPU_HOST
from tests.words import make_raised

SAME: Mapping[str, Any] = MappingProxyType({})
TODAY = "2026-03-01"
CREATED = "2026-02-20T10:00:00Z"
POLICY = Policy(thresholds={metric: spec.threshold for metric, spec in SPECS.items()}, today=TODAY)
UNKNOWN = CodeIdentity(digest="")


def make_trial(case_id: str, samples: Mapping[Metric, float], index: int = 1, **fields: Any) -> Trial:
    """A trial with one sample of each metric, ``disturbed`` or not."""
    if fields.pop("disturbed", False):
        fields["conditions"] = Conditions(foreign_cores=1.4, disturbances=(Disturbance.CROWDED,))
    values = {metric: (value,) for metric, value in samples.items()}
    return Trial(case_id=case_id, index=index, samples=values, **fields)


def make_trials(case_id: str, samples: Sequence[Mapping[Metric, float]], **fields: Any) -> tuple[Trial, ...]:
    """Trials of a case, numbered from 1."""
    return tuple(
        make_trial(case_id, values, index, **fields) for index, values in enumerate(samples, start=1)
    )


def make_pair(
    case_id: str,
    index: int = 1,
    base: Mapping[str, Any] = SAME,
    head: Mapping[str, Any] = SAME,
    **fields: Any,
) -> tuple[Trial, Trial]:
    """A pair in turns; ``base`` and ``head`` are fields of one arm."""
    shared = {"case_id": case_id, "index": index, "pairing": Pairing.TURNS, **fields}
    return Trial(**shared, arm=BASE_ARM, **base), Trial(**shared, **head)


def make_paired(changes: Sequence[float], metric: Metric = Metric.COMPILED_LATENCY) -> Paired:
    """The changes of a metric in live pairs."""
    return Paired(metric=metric, changes=changes, base=(0.01,) * len(changes), head=(0.01,), is_live=True)


def make_run(*trials: Trial, base: tuple[Case, ...] | None = None, **fields: Any) -> Run:
    """A run of ``trials`` and their cases, unless ``cases`` are given; ``base``: the cases of its base."""
    ids = dict.fromkeys(trial.case_id for trial in trials)
    arguments: dict[str, Any] = {
        "cases": tuple(Case(id=name, model=name.partition("/")[0], definition="d1") for name in ids),
        "environment": CPU_HOST,
        "provenance": Provenance(),
        "finished": True,
        **fields,
    }
    run = Run(trials=trials, **arguments)
    return run if base is None else give_base(run, cases=base)


def give_base(run: Run, **fields: Any) -> Run:
    """The run with a base like itself, except for ``fields``."""
    arguments = {"environment": run.environment, "provenance": run.provenance, "cases": run.cases, **fields}
    return replace(run, base=BaseArm(**{"label": "main", **arguments}))


def make_row(case_id: str, metric: Metric, status: Status = Status.REGRESSED, **fields: Any) -> Comparison:
    """A comparison that decides, beyond the bar."""
    arguments = {"reason": Reason.BEYOND_BAR, "decides": True, **fields}
    return Comparison(case_id=case_id, metric=metric, status=status, **arguments)


def make_change(centre: float, spread: float = 0.0, detectable: float = 0.03) -> Change:
    """A change with an interval of ``spread`` to both sides."""
    return Change(centre=centre, low=centre - spread, high=centre + spread, detectable=detectable)


def make_failure(case_id: str, message: str = "SIGSEGV", **fields: Any) -> CaseFailure:
    """A crash in the first trial's compile, unless ``fields`` differ."""
    arguments = {"trial": 1, "kind": FailureKind.CRASH, "stage": "compile", **fields}
    return CaseFailure(case_id=case_id, fact=make_raised(message), **arguments)


def make_baseline(case_id: str, trials: Mapping[Metric, tuple[float, ...]], **fields: Any) -> Baseline:
    arguments = {"definition": "d1", "environment": CPU_HOST, "provenance": Provenance(), **fields}
    return Baseline(case_id=case_id, trials=trials, **arguments)


def make_acceptance(metric: Metric, allowance: float, **fields: Any) -> Acceptance:
    """An acceptance of all cases until today."""
    arguments = {"case": "*", "reason": "known", "author": "ada", "expires": TODAY, **fields}
    return Acceptance(metric=metric, allowance=allowance, **arguments)


def make_verdict(*comparisons: Comparison, **fields: Any) -> Verdict:
    """A verdict of these comparisons, empty otherwise; ``outcome`` is required."""
    empty: dict[str, Any] = dict.fromkeys(
        ("headline", "cases", "failures", "causes", "next_steps", "notes"), ()
    )
    host = {"machine": MachineShift(), "environment": CPU_HOST, "provenance": Provenance()}
    return Verdict(comparisons=comparisons, **{**empty, **host, **fields})


Values = Mapping[Metric, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Situation:
    """One case: baseline, trials and their circumstances."""

    case_id: str = "mlp/inference-float32-smoke-default"
    dtype: DType = DType.FLOAT32
    task: Task = Task.INFERENCE
    kind: Kind = Kind.CALL
    before: Values | None = None  # None: no baseline
    after: Values = field(default_factory=dict)
    canaries_before: Mapping[str, Sequence[float]] = field(default_factory=dict)
    canaries_after: Mapping[str, Sequence[float]] = field(default_factory=dict)
    code_before: CodeIdentity = UNKNOWN
    code_after: CodeIdentity = UNKNOWN
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

    @property
    def case(self) -> Case:
        return Case(
            id=self.case_id,
            model=self.case_id.split("/")[0],
            factory="models:build",
            dtype=self.dtype,
            task=self.task,
            kind=self.kind,
            definition=self.definition_after,
        )

    @property
    def trials(self) -> tuple[Trial, ...]:
        """As many trials as the longest list of values."""
        count = max((len(values) for values in self.after.values()), default=0)
        return tuple(map(self._make_trial, range(count)))

    def _make_trial(self, index: int) -> Trial:
        return Trial(
            case_id=self.case_id,
            index=index,
            samples=pick_values(self.after, index),
            identity=self.code_after,
            workload=self.workload_after,
            graph_breaks=self.breaks_after,
            recompile_reasons=self.recompile_reasons,
            caches=self.caches_after,
            phases_s=self.phases_s,
            kernels_s=self.kernels_s,
            changed_imports=self.changed_imports,
            warnings=self.warnings,
            worst=self.worst,
            drift_definition=self.drift_after,
            conditions=Conditions(canaries_s={name: row[index] for name, row in self.canaries_after.items()}),
        )

    @property
    def baseline(self) -> Baseline:
        """The stored values, with the speedup of both latencies."""
        values = {metric: tuple(stored) for metric, stored in (self.before or {}).items()}
        if {Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY} <= values.keys():
            pairs = zip(values[Metric.EAGER_LATENCY], values[Metric.COMPILED_LATENCY], strict=True)
            values.setdefault(Metric.WARM_SPEEDUP, tuple(eager / compiled for eager, compiled in pairs))
        return Baseline(
            case_id=self.case_id,
            definition=self.definition_before,
            environment=self.host,
            provenance=Provenance(commit="abc", created=self.created),
            trials=values,
            identity=self.code_before,
            workload=self.workload_before,
            graph_breaks=self.breaks_before,
            recompile_reasons=self.recompiles_before,
            caches=self.caches_before,
            canaries_s={name: tuple(stored) for name, stored in self.canaries_before.items()},
            phases_s=self.phases_before_s,
            kernels_s=self.kernels_before_s,
            drift_definition=self.drift_before,
        )


def pick_values(rows: Values, index: int) -> dict[Metric, tuple[float]]:
    """Samples of one trial, of rows that may be shorter."""
    return {metric: (row[index],) for metric, row in rows.items() if index < len(row)}


def make_measured(*situations: Situation, environment: Environment = CPU_HOST) -> Run:
    """The run of these situations."""
    return make_run(
        *(trial for situation in situations for trial in situation.trials),
        cases=tuple(situation.case for situation in situations),
        failures=tuple(failure for situation in situations for failure in situation.failures),
        environment=environment,
        provenance=Provenance(commit="def"),
    )


def make_stored(*situations: Situation) -> tuple[Baseline, ...]:
    """The baselines of situations that have one."""
    return tuple(situation.baseline for situation in situations if situation.before is not None)


def decide(*situations: Situation, environment: Environment = CPU_HOST, **rules: Any) -> Verdict:
    """The verdict on these situations; ``rules`` are fields of the policy."""
    run = make_measured(*situations, environment=environment)
    verdict = decide_verdict(run, make_stored(*situations), replace(POLICY, **rules))
    check_verdict(verdict, "decided")  # a verdict must be readable again
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
    """One case in pairs: the base's values where not typical, and head's where not the base's."""

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
    identity: CodeIdentity = UNKNOWN  # of the trials alone

    @property
    def case(self) -> Case:
        return Case(id=self.case_id, model="mlp", factory="m:f", definition=self.definition)

    @property
    def trials(self) -> list[Trial]:
        """Trials alone, and those of pairs."""
        count = max((len(values) for values in self.alone.values()), default=0)
        alone = [
            Trial(case_id=self.case_id, index=i, samples=pick_values(self.alone, i), identity=self.identity)
            for i in range(count)
        ]
        return alone + [
            self._make_trial(index, arm)
            for index in range(1, self.pairs + 1)
            for arm in (BASE_ARM, CANDIDATE_ARM)
        ]

    def _make_trial(self, index: int, arm: str) -> Trial:
        is_head = arm == CANDIDATE_ARM
        noise = math.exp(self.spread[index - 1]) if is_head else 1.0
        samples = {
            metric: (value * (noise if metric in NOISY else 1.0),)
            for metric, value in {**TYPICAL, **self.base, **(self.head if is_head else {})}.items()
            if self.full is None or index <= self.full or metric in LATENCIES
        }
        return Trial(case_id=self.case_id, index=index, arm=arm, pairing=self.pairing, samples=samples)


def pair_up(*paired_cases: PairedCase) -> Run:
    """The run of these cases with a base, which lacks cases without ``base_definition``."""
    run = make_run(
        *(trial for paired_case in paired_cases for trial in paired_case.trials),
        cases=tuple(paired_case.case for paired_case in paired_cases),
        failures=tuple(failure for paired_case in paired_cases for failure in paired_case.failures),
        provenance=Provenance(commit="def"),
    )
    based = [
        replace(paired_case.case, definition=paired_case.base_definition)
        for paired_case in paired_cases
        if paired_case.base_definition
    ]
    provenance = Provenance(commit="1a2b3c4")
    base = BaseArm(label="main (1a2b3c4)", environment=CPU_HOST, provenance=provenance, cases=tuple(based))
    return replace(run, base=base)


def find_row(verdict: Verdict | Screening, metric: Metric, case_id: str = "") -> Comparison:
    """The only comparison of a metric (and case)."""
    (row,) = (row for row in verdict.comparisons if row.metric is metric and case_id in {"", row.case_id})
    return row


def decide_row(metric: Metric, **situation: Any) -> Comparison:
    """The comparison of a metric in one situation."""
    return find_row(decide(Situation(**situation)), metric)


def state(row: Comparison) -> tuple[Status, Reason]:
    return row.status, row.reason
