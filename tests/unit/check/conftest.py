"""A measurer with made-up trials, and runs and baselines for it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.check.procedure import CheckTerms
from gate.decide.evidence.baseline import make_baselines
from gate.decide.suspects import Suspect
from gate.records.cases import Case, Metric
from gate.records.run import (
    Baseline,
    CaseFailure,
    CodeIdentity,
    Conditions,
    FailureKind,
    Pairing,
    Provenance,
    Run,
    Trial,
)
from tests import make
from tests.make import POLICY

TYPICAL = {
    Metric.COMPILED_LATENCY: 0.010,
    Metric.EAGER_LATENCY: 0.020,
    Metric.COLD_COMPILE_TIME: 10.0,
    Metric.GRAPH_BREAKS: 0.0,
}
STORED = 5  # trials of each baseline
# Of the pairs' changes; every three sum to nothing.
SPREAD = (0.0, 0.002, -0.002) * 6


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A case, and by how much each trial and pair of head differs."""

    name: str = "a"
    alone: Sequence[Mapping[Metric, float]] = ({}, {}, {})  # values instead of the typical ones
    slower: float = 0.0  # compiled latency of head in pairs, a fraction
    breaks: float = 0.0  # graph breaks of head in pairs
    compiles: Sequence[float] = ()  # spread of the cold compile; as of the latency where none is given
    spread: Sequence[float] = SPREAD
    failing_pair: int = 0  # the index of the pair in which head fails
    imports: tuple[str, ...] | None = None  # files of another content than the base's
    rows: str = "8"  # of its inputs; those of each stored baseline are 8
    calls: Mapping[str, int] = field(default_factory=dict)  # of its generated code
    canary_s: float = 0.0  # of the fixed test program, in each trial; 0: none ran
    code: str = "c0de"  # hash of what its compile generates; that of each stored baseline is "c0de"

    @property
    def case(self) -> Case:
        return Case(id=f"{self.name}/x", model=self.name, factory="m:f", definition="d")


@dataclass(kw_only=True)
class Given:
    """Measures what its subjects describe, and keeps what was asked; ``time_for`` counts pairs."""

    subjects: Sequence[Subject]
    time_for: int = 100
    has_trials: bool = True
    asked: list[tuple[str, int]] = field(default_factory=list)  # cases with the trials that they are to have
    open: list[dict[str, set[Metric]]] = field(default_factory=list)  # for what trials, each time
    measured: list[str] = field(default_factory=list)  # the case of each pair
    limits: list[float] = field(default_factory=list)  # each once

    def add_trials(self, run: Run, wanted: Mapping[str, Collection[Metric]], trials: int) -> Run:
        """Up to so many trials of each subject, or none at all."""
        self.asked += [(case.id, trials) for case in run.cases if case.id in wanted]
        self.open.append({case_id: set(metrics) for case_id, metrics in wanted.items()})
        asked = [subject for subject in self.subjects if subject.case.id in wanted and self.has_trials]
        counts = {
            subject.case.id: sum(trial.case_id == subject.case.id for trial in run.trials)
            for subject in asked
        }
        new = [
            make_trial(subject, index)
            for subject in asked
            for index in range(counts[subject.case.id] + 1, min(trials, len(subject.alone)) + 1)
        ]
        return replace(run, trials=(*run.trials, *new))

    def add_pairs(self, run: Run, needs: Sequence[Suspect], limit_s: float) -> Run:
        """All pairs of needs that are not for later, while there is time."""
        self.limits += [limit_s] if limit_s not in self.limits else []
        by_id = {subject.case.id: subject for subject in self.subjects}
        for need in needs:
            for _ in range(0 if need.later else need.more):
                subject, index = by_id[need.case_id], run.pair_counts[need.case_id] + 1
                if index == subject.failing_pair:
                    return replace(run, failures=(*run.failures, make_failure(subject, index)))
                if len(self.measured) < min(self.time_for, limit_s):
                    self.measured.append(need.case_id)
                    run = replace(run, trials=(*run.trials, *make_pair(subject, index)))
        return run


def make_conditions(canary_s: float) -> Conditions:
    """Conditions in which the fixed test program took so many seconds; 0: it did not run."""
    return Conditions(canaries_s={"matmul": canary_s} if canary_s else {})


def make_trial(subject: Subject, index: int) -> Trial:
    return make.make_trial(
        subject.case.id,
        {**TYPICAL, **subject.alone[index - 1]},
        index,
        identity=CodeIdentity(digest=subject.code, calls=subject.calls),
        workload={"inputs": subject.rows},
        changed_imports=subject.imports,
        conditions=make_conditions(subject.canary_s),
    )


def make_pair(subject: Subject, index: int) -> tuple[Trial, Trial]:
    stray = 1 + subject.spread[index - 1]
    head = {
        **TYPICAL,
        Metric.COMPILED_LATENCY: 0.010 * (1 + subject.slower) * stray,
        Metric.COLD_COMPILE_TIME: 10.0 * (1 + (subject.compiles or subject.spread)[index - 1]),
        Metric.GRAPH_BREAKS: subject.breaks,
    }
    sides = [
        {"samples": {metric: (value,) for metric, value in values.items()}} for values in (TYPICAL, head)
    ]
    return make.make_pair(subject.case.id, index, *sides, pairing=Pairing.LIVE)


def make_failure(subject: Subject, index: int) -> CaseFailure:
    return make.make_failure(subject.case.id, "no such layer", trial=index, kind=FailureKind.ERROR)


def make_run(subjects: Sequence[Subject], other_changes: tuple[str, ...] | None = None) -> Run:
    """The first trial of each subject, with a base of the same cases."""
    cases = tuple(subject.case for subject in subjects)
    run = make.make_run(
        *(make_trial(subject, 1) for subject in subjects), cases=cases, base=cases, trials_planned=1
    )
    assert run.base is not None
    return replace(run, base=replace(run.base, other_changes=other_changes))


def make_stored(
    run: Run, vary: Sequence[float] = (1.0,) * STORED, canary_s: float = 0.0
) -> tuple[Baseline, ...]:
    """Typical baselines of the run's cases, whose compiled latencies are multiplied by ``vary``."""
    trials = [
        make.make_trial(
            case.id,
            {**TYPICAL, Metric.COMPILED_LATENCY: TYPICAL[Metric.COMPILED_LATENCY] * factor},
            index,
            identity=CodeIdentity(digest="c0de"),
            workload={"inputs": "8"},
            conditions=make_conditions(canary_s),
        )
        for case in run.cases
        for index, factor in enumerate(vary, start=1)
    ]
    return make_baselines(replace(run, trials=tuple(trials)), Provenance())


def make_terms(run: Run, **changes: object) -> CheckTerms:
    """Terms with typical baselines."""
    terms = CheckTerms(baselines=make_stored(run), policy=POLICY, max_trials=3)
    return replace(terms, **changes)  # type: ignore[arg-type] # the test's
