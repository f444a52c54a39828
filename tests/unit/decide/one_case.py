"""One case by hand: what is stored, what is measured, and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gate.decide.evidence.gather import Evidence, Stored
from gate.decide.explain.inquiry import Inquiry
from gate.decide.judge.machine import Machine
from gate.decide.judge.screening import Screening
from gate.decide.side_by_side import confirm_screening
from gate.decide.suspects import list_suspects
from gate.decide.verdict import conclude_verdict, screen_run
from gate.records.cases import Case, Metric, Threshold
from gate.records.run import Baseline, CaseFailure, FailureKind, Provenance, Trial
from gate.records.verdict import Comparison, Verdict
from tests.hosts import CPU_HOST
from tests.make import POLICY, PairedCase, Values, make_baseline, make_change, make_failure, make_row, pair_up

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD, WARM, BREAKS = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME, Metric.GRAPH_BREAKS
CASE = "mlp/x"
STORED = {EAGER: 0.020, LATENCY: 0.010, COLD: 10.0}
# Nine stored values with a spread of about 0.7 %: noise is learned from their 8 degrees of freedom.
NINE = (0.990, 1.000, 1.010, 1.005, 0.995, 1.000, 0.995, 1.005, 1.000)


def scale(value: float, factors: Sequence[float] = NINE) -> tuple[float, ...]:
    return tuple(value * factor for factor in factors)


STORED_NOTHING: Mapping[str, Any] = {
    "case_id": CASE,
    "definition": "d1",
    "environment": CPU_HOST,
    "provenance": Provenance(),
    "trials": {},
}
STORED_TIMES = {metric: scale(value) for metric, value in STORED.items()}
STORED_CASE = make_baseline(CASE, {**STORED_TIMES, SPEEDUP: (2.0,) * 9})


def store(values: Mapping[Metric, tuple[float, ...]]) -> Baseline:
    """The stored case with these values as well, or instead."""
    return replace(STORED_CASE, trials={**STORED_CASE.trials, **values})


UNBROKEN = store({BREAKS: (0.0,) * 9})  # in no trial
WIDE = {LATENCY: tuple(0.01 * (1 + 6 * (factor - 1)) for factor in NINE)}  # NINE, spread six times as far


def fail(arm: str) -> CaseFailure:
    return make_failure(CASE, "ImportError: x", kind=FailureKind.ERROR, stage="build", arm=arm)


def measure(**factors: float) -> dict[Metric, Sequence[float]]:
    """One trial alone, some of whose values are the stored ones times a factor."""
    return {metric: (value * factors.get(metric, 1.0),) for metric, value in STORED.items()}


def screen(alone: Values, *, baselines: tuple[Baseline, ...] = (STORED_CASE,), **changes: Any) -> Screening:
    return screen_run(pair_up(PairedCase(alone=alone, **changes)), baselines, POLICY)


def confirm(alone: Values, **given: Any) -> Verdict:
    """The verdict on one case after screening and pairs."""
    baselines, rules = given.pop("baselines", (STORED_CASE,)), given.pop("rules", POLICY)
    run = pair_up(PairedCase(alone=alone, **given))
    screened = screen_run(run, baselines, rules)
    screening = confirm_screening(screened, run, rules, list_suspects(screened))
    return conclude_verdict(run, screening, rules)


def inquire(
    *rows: Comparison,
    machine: Machine | None = None,
    before: Mapping[str, Any] | None = None,
    trials: Sequence[Mapping[str, Any]] = (),
) -> Inquiry:
    """About a case in which all of these moved; ``before``: what its baseline holds, where one is stored."""
    stored = [Baseline(**{**STORED_NOTHING, **fields}) for fields in ([] if before is None else [before])]
    evidence = Evidence(
        case=Case(id=CASE, model="mlp"),
        trials=tuple(Trial(case_id=CASE, index=index, **fields) for index, fields in enumerate(trials)),
        failures=(),
        values={},
        stored=tuple(
            Stored(baseline=side, same_host=True, same_stack=True, same_codegen=True, same_definition=True)
            for side in stored
        ),
    )
    moved = frozenset(row.metric for row in rows)
    return Inquiry(
        evidence=evidence, comparisons=rows, moved=moved, machine=machine or Machine(), environment=CPU_HOST
    )


def make_moved(metric: Metric, times: float, **fields: Any) -> Comparison:
    """A row so many times beyond its threshold of 10 %."""
    threshold = Threshold(relative=0.1, absolute=0.0)
    change, case_id = make_change(0.1 * times), fields.pop("case_id", CASE)
    return make_row(case_id, metric, change=change, threshold=threshold, **fields)
